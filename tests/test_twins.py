"""Twins, as cherry-picks and reverts, share one row, and no page repeats or loses a record."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import every_page, get, refs_of, rows_of
from profiles import FEWER
from samples import DAY, NOW, named, numbered, services_over

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.core.ranking.subjects import subject_of
from memsvc.core.ranking.twins import MAX_TWINS
from memsvc.core.records import Observation, Prompt, Record, Summary
from memsvc.entrypoints.http.app import create_app

PATH = "/api/search/observations"


@pytest.mark.parametrize(
    "title",
    [
        "Fix the pool",
        "Fix the pool (#12)",
        "fix the pool.",
        "Fix the pool, closes #12, #13",
        "Fix the pool (#12) (cherry picked from commit abc)",
        'Revert "Fix the pool"',
        'Revert "Fix the pool (#12)" (#13)',
        'Reapply "Revert "Fix the pool""',
    ],
)
def test_copies_of_a_commit_have_one_subject(title: str) -> None:
    assert subject_of(title) == "fix the pool"


@pytest.mark.parametrize(
    "title", ["Fix the pools", "feat: fix the pool", "Fix the pool in #12 too"]
)
def test_another_subject_stays_another(title: str) -> None:
    assert subject_of(title) != "fix the pool"


@given(st.text(max_size=400))
def test_a_subject_is_its_own_subject(title: str) -> None:
    assert subject_of(subject_of(title)) == subject_of(title)


def write(store: SqliteStore, *records: Record) -> None:
    store.write(numbered(records))


def test_cherry_picks_and_reverts_share_the_best_row(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    write(
        own_store,
        named("Fix the pool (#1)", NOW, narrative="It leaked."),
        named(
            "Fix the pool (#2)",
            NOW - DAY,
            narrative="It leaked.\n\n(cherry picked from commit abc)",
        ),
        named('Revert "Fix the pool"', NOW - 2 * DAY, narrative="This reverts commit abc."),
        named("Empty the pool", NOW - 3 * DAY),
    )
    page = get(own_client, PATH, query="fix pool")
    assert [row.get("twins") for row in rows_of(page)] == [["3", "2"], None]
    assert (page["count"], page["total"], page["folded"]) == (2, 4, 2)
    assert page["next_offset"] is None
    text = own_client.get(f"{PATH}?query=fix+pool&render=text").get_data(as_text=True)
    assert "Fix the pool (#1) +2 alike: #3 #2 |" in text


@pytest.mark.parametrize(
    "other",
    [
        Observation(title="Fix the pool", narrative="It was never filled."),
        Observation(title="Fix the pool", project="api"),
        Summary(request="Fix the pool"),
        Prompt(prompt_text="Fix the pool"),
    ],
    ids=["it says something else", "another project", "another kind", "a prompt"],
)
def test_others_keep_their_rows(
    own_client: FlaskClient, own_store: SqliteStore, other: Record
) -> None:
    write(own_store, named("Fix the pool", NOW, narrative="It leaked."), other)
    page = get(own_client, "/api/search", query="pool")
    assert page["count"] == page["total"] == 2
    assert "folded" not in page


def test_a_common_subject_alone_is_no_reason_to_share_a_row(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    write(
        own_store,
        named("Fix tests", NOW),
        named("Fix tests", NOW - DAY),
        named("Fix tests", NOW - 2 * DAY, files_modified=("tests/a.py",)),
        named("Fix tests (#2)", NOW - 3 * DAY, files_modified=("tests/a.py",)),
    )
    page = get(own_client, PATH, query="tests")
    assert [row.get("twins") for row in rows_of(page)] == [None, None, ["4"]]


def test_prompts_are_moments_and_never_folded(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    write(own_store, *(Prompt(prompt_text="continue", created_at_epoch=NOW - n) for n in range(3)))
    assert get(own_client, "/api/search/prompts", query="continue")["count"] == 3


@pytest.mark.parametrize("given_", [{"orderBy": "date_desc"}, {"query": "", "dateStart": "9d"}])
def test_a_list_by_time_is_not_folded(
    own_client: FlaskClient, own_store: SqliteStore, given_: dict[str, str]
) -> None:
    write(own_store, named("Fix the pool", NOW), named("Fix the pool", NOW - DAY))
    page = get(own_client, "/api/search", **{"query": "pool"} | given_)
    assert page["count"] == 2


def test_full_records_are_given_one_by_one(own_client: FlaskClient, own_store: SqliteStore) -> None:
    write(own_store, named("Fix the pool", NOW), named("Fix the pool", NOW - DAY))
    page = get(own_client, PATH, query="pool", format="full")
    assert page["count"] == page["total"] == 2
    assert "folded" not in page


def test_many_twins_take_several_rows_that_name_them_all(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    said = {"narrative": "It leaked."}
    write(own_store, *(named("Fix the pool", NOW - n, **said) for n in range(MAX_TWINS + 3)))
    first, second = rows_of(get(own_client, PATH, query="pool"))
    assert (len(first["twins"]), len(second["twins"])) == (MAX_TWINS, 1)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """More matches than are ranked as candidates, with many twins among them and beyond."""
    opened = open_store(tmp_path_factory.mktemp("crowd") / "memsvc.db")
    write(opened, *_crowd())
    yield create_app(services_over(opened)).test_client()
    opened.close()


def _crowd() -> Iterator[Record]:
    for number in range(160):
        words = f"payment {'retry ' * (number % 4)}{number % 37}"
        place: dict[str, Any] = {
            "project": ("shop", "api")[number % 2],
            "created_at_epoch": NOW - number % 60 * 3 * DAY,
        }
        title = (words, f'Revert "{words}"', f"{words} (#{number})")[number % 3]
        yield Observation(title=title, narrative=("", "ledger")[number % 5 == 0], **place)
        if number % 3:
            yield Summary(request=words, **place)
            yield Prompt(prompt_text=words, **place)


OPTIONS = st.fixed_dictionaries(
    {
        "query": st.sampled_from(["payment", "payment retry", "retry ledger", "how does retry 3"]),
        "limit": st.integers(1, 100),
    },
    optional={
        "project": st.just("shop"),
        "days": st.sampled_from(["all", "30"]),
        "max_tokens": st.integers(900, 4000),
        "kinds": st.sampled_from(["observation", "session,observation", "prompt,session"]),
    },
)


@FEWER
@given(given_=OPTIONS)
def test_pages_with_their_twins_hold_every_match_exactly_once(
    crowd: FlaskClient, given_: dict[str, Any]
) -> None:
    pages = every_page(crowd, "/api/search", **{**given_, "limit": max(13, given_["limit"])})
    shown = [ref for page in pages for ref in refs_of(page)]
    folded = [ref for page in pages for row in rows_of(page) for ref in row.get("twins", ())]
    assert len(shown + folded) == len({*shown, *folded})
    assert {page["total"] for page in pages} == {len(shown) + len(folded)}
    assert {page.get("folded", 0) for page in pages} == {len(folded)}


@FEWER
@given(given_=OPTIONS)
def test_the_rows_of_a_page_do_not_depend_on_its_size(
    crowd: FlaskClient, given_: dict[str, Any]
) -> None:
    given_ = {**given_, "max_tokens": 50_000}
    whole = [
        (row["ref"], row.get("twins"))
        for page in every_page(crowd, "/api/search", **{**given_, "limit": 100})
        for row in rows_of(page)
    ]
    offset = len(whole) // 2
    page = get(crowd, "/api/search", **{**given_, "offset": offset})
    found = [(row["ref"], row.get("twins")) for row in rows_of(page)]
    assert found == whole[offset : offset + given_["limit"]]
