"""Secrets are masked before they are stored, in every way in."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import KINDS, plant

from memsvc.adapters.importers.jsonl import SAMPLE, read_jsonl
from memsvc.adapters.secrets import mask_secrets
from memsvc.core.privacy.preparing import prepare_record
from memsvc.core.records import Record

AROUND = [
    "…",
    "We set … and it worked.",
    "The key is ….",
    "the key (…), then",
    "**…**",
    "see `…` there",
    "it is <…>",
    '"…"',
    "first\n…\nlast",
    "密钥…。",
    "… # gitleaks:allow",
]
"""Texts around a secret."""


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_masked_whatever_stands_around_it(kind: str, around: str) -> None:
    random = Random(f"{kind}{around}")
    for _ in range(5):
        planted = plant(random, kind)
        masked = mask_secrets(around.replace("…", planted.text))
        assert planted.secret not in masked.text
        assert "[secret: " in masked.text
        assert masked.secrets


@given(
    st.lists(st.tuples(st.sampled_from(list(KINDS)), st.sampled_from(AROUND)), max_size=4),
    st.randoms(use_true_random=False),
)
def test_masking_a_masked_text_changes_nothing(
    chosen: list[tuple[str, str]], random: Random
) -> None:
    text = "\n".join(around.replace("…", plant(random, kind).text) for kind, around in chosen)
    masked = mask_secrets(text).text
    assert mask_secrets(masked).text == masked
    assert not mask_secrets(masked).secrets


@pytest.mark.parametrize("kind", ["github ghp", "rsa key", "yaml password", "json web token"])
def test_a_secret_is_masked_wherever_it_stands_in_a_long_text(kind: str) -> None:
    random = Random(kind)
    planted = [plant(random, kind) for _ in range(60)]
    text = " ".join(f"{'a word ' * random.randrange(150)} {each.text}" for each in planted)
    masked = mask_secrets(f"{text}\n")
    assert [each.kind for each in planted if each.secret in masked.text] == []


def test_a_secret_as_long_as_a_page_is_masked_whole() -> None:
    head, tail = plant(Random(1), "json web token").secret.rsplit(".", 1)
    token = f"{head}{'a1B2c3' * 800}.{tail}"
    for before in range(0, 9000, 450):
        assert "a1B2c3" not in mask_secrets(f"{'word ' * (before // 5)}{token} end").text


def test_the_sample_holds_no_secret() -> None:
    records = [item for item in read_jsonl(SAMPLE).items if isinstance(item, Record)]
    assert len(records) > 50
    assert [record for record in records if prepare_record(record, mask_secrets).secrets] == []


@given(st.text())
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    if not mask_secrets(text).secrets:
        assert mask_secrets(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "password=None",
        'password = os.environ["DB_PASSWORD"]',
        "password: <your password>",
        "API_KEY=***",
        "token = get_token(request)",
        "password = settings.database_password1",
        'api_key: "${API_KEY_2}"',
        "--password $DB_PASSWORD1",
        "--password PASSWORD is the option for it",
        "the secret is to sleep well",
        "Password: see 1Password",
        "postgres://user:${DB_PASSWORD}@host/db",
        "https://example.org:8080/a@b",
        "The token expires after 24 hours",
        "commit 5582cd4e0b9f1a7c5582cd4e0b9f1a7c5582cd4e",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "key lives for 24 hours",
        "-----BEGIN RSA PRIVATE" + " KEY----- is how such a file begins",
        "the Authorization: Bearer header was missing",
    ],
)
def test_what_only_names_a_secret_stays(text: str) -> None:
    assert mask_secrets(text).text == text


@pytest.mark.parametrize(
    "bomb",
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----\n",
        "-----BEGIN RSA PRIVATE" + " KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "-----BEGIN rsa private" + " key-----\n",
        "-----BEGIN ",
        "password=",
        "password: ",
        'password="',
        "a://b:",
        "eyJ",
        "sk-",
        "A",
        "authorization: bearer ",
        "?sig=",
        "https://a:b@",
    ],
)
def test_no_text_takes_long(bomb: str) -> None:
    mask_secrets(bomb * (200_000 // len(bomb)))
