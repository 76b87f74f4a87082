"""Private parts and secrets reach neither the disk nor an answer, whatever way they come in."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from planted import Planted, plant, planted_secrets
from samples import NOW

import memsvc as main_package
from memsvc.adapters.secrets import mask_secrets
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.application.services import Services
from memsvc.core.privacy.private_parts import list_without_private, without_private
from memsvc.entrypoints.cli.main import memsvc
from memsvc.entrypoints.http.app import create_app

# -- private parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("open <private>hidden</private> too", "open  too"),
        ("open <PRIVATE>hidden</Private> too", "open  too"),
        ('open <private reason="a > b">hidden</private> too', "open  too"),
        ("open < Private reason='x' >hidden< / private > too", "open  too"),
        ("open <private\n>hid\nden</private\t> too", "open  too"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("open <private>hidden to the end", "open"),
        ("open <private hidden to the end", "open"),
        ("open </private> too", "open  too"),
        ("<private>a</private><private>b</private>", ""),
        ("a &lt;private&gt;b&lt;/private&gt; c", "a  c"),
        ("a &#60;private&#62;b&#x3C;/private&#x3e; c", "a  c"),
        ("a \\u003cprivate\\u003eb\\u003c/private\\u003e c", "a  c"),
        ("<privateKey>shown</privateKey>", "<privateKey>shown</privateKey>"),
        ("private, but only a word", "private, but only a word"),
        ("  blanks stay as they are  ", "  blanks stay as they are  "),
    ],
)
def test_a_private_part_is_taken_out(text: str, left: str) -> None:
    assert without_private(text) == left


def test_a_private_part_may_begin_in_one_item_of_a_list_and_end_in_another() -> None:
    items = ["open", "a <private>hidden", "hidden too", "hidden</private> b", "open too"]
    assert list_without_private(items) == ("open", "a  b", "open too")


@pytest.mark.parametrize(
    "bomb", ["<private>", "</private>", "<private", "<", "< ", "<private ", "&lt;private&gt;"]
)
def test_no_private_text_takes_long(bomb: str) -> None:
    without_private(bomb * 100_000)
    without_private("<" + " " * 1_000_000 + "private")


PIECES = st.sampled_from(
    ["<private>", "</private>", "< PRIVATE x='1'>", "&lt;private&gt;", "<", ">", "open", " ", "/"]
)


@given(st.lists(PIECES).map("".join))
def test_nothing_private_is_left_to_take_out(text: str) -> None:
    left = without_private(text)
    assert without_private(left) == left


@given(st.lists(PIECES).map("".join), st.lists(PIECES).map("".join))
def test_what_stands_between_the_tags_never_stays(before: str, inside: str) -> None:
    text = f"{before}<private>hunter2{inside.replace('/', '').replace('>', '')}"
    assert "hunter2" not in without_private(text)


# -- every way in ---------------------------------------------------------------------------------

HIDDEN = "zanzibarquux"
"""A word that only private parts hold."""


@pytest.fixture(scope="module")
def planted() -> list[Planted]:
    """More than 200 secrets of more than 40 kinds."""
    found = planted_secrets(Random("planted"), 5)
    assert len(found) >= 200
    return found


def items_of(planted: list[Planted]) -> list[dict[str, object]]:
    """Observations with a secret each, in every field in turn, and a private part."""
    private = f"<private reason='x'>{HIDDEN}</private>"
    places: list[Callable[[str], dict[str, object]]] = [
        lambda text: {"narrative": f"We set {text} here. {private}"},
        lambda text: {"title": text},
        lambda text: {"facts": ["one", f"two: {text}", f"<private>{HIDDEN}", HIDDEN]},
        lambda text: {"concepts": [text, f"<private>{HIDDEN}"]},
        lambda text: {"files_read": [f"src/{text}", private]},
        lambda text: {"files_modified": [text]},
        lambda text: {"project": text},
        lambda text: {"session_id": text},
        lambda text: {"source_id": f"{text} {private}"},
        lambda text: {"type": text, "subtitle": private},
        lambda text: {"source": text},
    ]
    return [
        {"title": f"Memory {number}", **places[number % len(places)](each.text)}
        for number, each in enumerate(planted)
    ]


def leaked(home: Path, planted: list[Planted]) -> list[str]:
    """The kinds of the secrets that stand in any file under the home, and the hidden word."""
    data = b"\n".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    found = [each.kind for each in planted if _stands_in(each.secret, data)]
    return [*found, *([HIDDEN] if HIDDEN.encode() in data else [])]


def _stands_in(secret: str, data: bytes) -> bool:
    """Whether any line of a secret, as it is or as JSON writes it, stands in these bytes."""
    lines = [line for line in secret.splitlines() if "-----" not in line]
    return any(line.encode() in data for line in lines)


def answered(home: Path) -> str:
    """All that the worker answers about every record."""
    store = new_store_at(home)
    client = create_app(Services(store, lambda: NOW)).test_client()
    rows = [
        client.get(
            "/api/search",
            query_string={
                "kinds": kind,
                "format": "full",
                "limit": "100",
                "offset": str(offset),
                "days": "all",
            },
        )
        for kind in ("observation", "session", "prompt")
        for offset in (0, 100, 200)
    ]
    more = [client.get(path) for path in ("/api/projects", "/api/stats", "/api/context/recent")]
    store.close()
    return "".join(each.get_data(as_text=True) for each in (*rows, *more))


def new_store_at(home: Path) -> SqliteStore:
    from memsvc.adapters.sqlite.store import open_store

    return open_store(home / "memsvc.db")


def run(*words: str) -> str:
    result = CliRunner().invoke(memsvc, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def way_post(home: Path, items: list[dict[str, object]]) -> dict[str, object]:
    store = new_store_at(home)
    client = create_app(Services(store, lambda: NOW, mask=mask_secrets)).test_client()
    sessions = [
        {"session_id": item["session_id"], "started_at_epoch": NOW}
        for item in items
        if "session_id" in item
    ]
    body = {"observations": items, "work_sessions": sessions}
    response = client.post("/api/import", json=body)
    assert response.status_code == 201
    assert response.get_json()["stored"] == len(items)
    again = client.post("/api/import", json=body).get_json()
    assert again["unchanged"] == len(items)
    store.close()
    return again


def way_jsonl(home: Path, items: list[dict[str, object]]) -> dict[str, object]:
    path = home.parent / "memories.jsonl"
    path.write_text("\n".join(map(json.dumps, items)))
    first = json.loads(run("import", "jsonl", str(path), "--json"))
    assert first["stored"] == len(items)
    again = json.loads(run("import", "jsonl", str(path), "--json"))
    assert again["unchanged"] == len(items)
    return again


@pytest.mark.parametrize("way", [way_post, way_jsonl])
def test_no_secret_and_nothing_private_is_kept_or_answered(
    home: Path, planted: list[Planted], way: Callable[..., dict[str, object]]
) -> None:
    report = way(home, items_of(planted))
    assert leaked(home, planted) == []
    answers = answered(home).encode()
    assert [each.kind for each in planted if _stands_in(each.secret, answers)] == []
    assert HIDDEN.encode() not in answers
    masked = report["masked"]
    assert isinstance(masked, dict)
    assert sum(masked.values()) >= 200
    assert not [each.kind for each in planted if each.secret in json.dumps(report)]


def test_git_commits_are_masked(home: Path, planted: list[Planted], tmp_path: Path) -> None:
    repository = tmp_path / "shop"
    lines = []
    for number, each in enumerate(planted):
        message = f"Commit {number}\n\nIt has {each.text} <private>{HIDDEN}</private> inside.\n"
        lines.append(
            f"commit refs/heads/main\nmark :{number + 1}\n"
            f"committer A <a@b.c> {1_700_000_000 + number} +0000\n"
            f"data {len(message.encode())}\n{message}"
        )
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    subprocess.run(
        ["git", "-C", str(repository), "fast-import", "--quiet"],
        input="\n".join(lines).encode(),
        check=True,
    )
    report = json.loads(run("import", "git", str(repository), "--json"))
    assert report["stored"] == len(planted)
    assert leaked(home, planted) == []
    answers = answered(home).encode()
    assert [each.kind for each in planted if _stands_in(each.secret, answers)] == []


def github_token(seed: str = "any") -> str:
    return plant(Random(seed), "github ghp").secret


# -- what the answer tells ------------------------------------------------------------------------


@pytest.fixture
def client(own_store: SqliteStore) -> FlaskClient:
    """The routes over an empty store, with the detectors of secrets."""
    return create_app(Services(own_store, lambda: NOW, mask=mask_secrets)).test_client()


def test_a_record_of_nothing_but_private_parts_is_not_stored_and_no_error(
    client: FlaskClient,
) -> None:
    body = [{"prompt_text": "<private>all of it</private>"}, {"prompt_text": "open"}]
    response = client.post("/api/prompts", json=body)
    assert response.status_code == 201
    told = response.get_json()
    assert (told["private"], told["stored"]) == (1, 1)
    assert told["results"][0] == {"place": "[0]", "ref": None, "outcome": "private"}
    alone = client.post("/api/prompts", json=body[0])
    assert (alone.status_code, alone.get_json()["private"]) == (200, 1)


def test_secrets_that_were_masked_are_counted_by_kind(client: FlaskClient) -> None:
    token = github_token()
    told = client.post("/api/observations", json={"title": f"The key is {token}."}).get_json()
    assert told["masked"] == {"github pat": 1}
    shown = client.get("/api/observation/1").get_json()
    assert shown["title"] == "The key is [secret: github pat]."


def test_a_refusal_quotes_no_secret(client: FlaskClient) -> None:
    token = github_token()
    bad = {"title": "x", "discovery_tokens": token}
    assert token not in client.post("/api/observations", json=bad).get_data(as_text=True)
    both = client.post("/api/observations", json=[bad, {"title": "good"}])
    assert both.status_code == 201
    assert token not in both.get_data(as_text=True)


def test_records_whose_identifiers_hold_secrets_stay_apart(client: FlaskClient) -> None:
    tokens = [github_token("a"), github_token("b")]
    items = [{"title": "same", "source_id": token, "session_id": token} for token in tokens]
    assert client.post("/api/observations", json=items).get_json()["stored"] == 2
    assert client.post("/api/observations", json=items).get_json()["unchanged"] == 2
    one, other = (client.get(f"/api/observation/{id}").get_json() for id in (1, 2))
    assert one["session_id"] != other["session_id"]


def test_a_record_forgotten_before_secrets_were_masked_stays_away(own_store: SqliteStore) -> None:
    token = github_token()
    item = {"title": f"The key is {token}."}
    unmasked = create_app(Services(own_store, lambda: NOW)).test_client()
    assert unmasked.post("/api/observations", json=item).get_json()["stored"] == 1
    assert unmasked.delete("/api/observation/1").status_code == 200
    masking = create_app(Services(own_store, lambda: NOW, mask=mask_secrets)).test_client()
    assert masking.post("/api/observations", json=item).get_json()["forgotten"] == 1


def test_nothing_is_written_to_a_store_but_what_was_prepared() -> None:
    root = Path(main_package.__file__).parent
    modules = [path for path in root.rglob("*.py") if "adapters" not in path.parts]
    writing = [path.name for path in modules if re.search(r"\bstore\.write\(", path.read_text())]
    assert writing == ["intake.py"]
