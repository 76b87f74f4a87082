"""Pages of any size hold every match exactly once, in one order, and the total tells how many."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import every_page, get, refs_of, rows_of
from profiles import FEWER
from samples import DAY, HOUR, NOW, numbered, services_over

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.core.records import Observation, Prompt, Record, Summary
from memsvc.entrypoints.http.app import create_app

MANY = 150


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """More matches than are ranked as candidates, of every kind, old, new, many at one moment."""
    opened = open_store(tmp_path_factory.mktemp("crowd") / "memsvc.db")
    opened.write(numbered(_crowd()))
    yield create_app(services_over(opened)).test_client()
    opened.close()


def _crowd() -> Iterator[Record]:
    for number in range(MANY):
        words = f"payment {'retry ' * (number % 4)}{'ledger' if number % 3 else 'cache'} {number}"
        place: dict[str, Any] = {
            "project": ("shop", "api")[number % 2],
            "session_id": f"work-{number % 5}",
            "created_at_epoch": NOW - number % 60 * 3 * DAY - number % 7 * HOUR,
        }
        kind_of_work, path = (
            ("bugfix", "decision", "change")[number % 3],
            f"src/{number % 9}/main.py",
        )
        yield Observation(title=words, type=kind_of_work, files_read=(path,), **place)
        if number % 5:
            yield Prompt(prompt_text=f"why {words}", **place)
        if number % 3:
            yield Summary(request=words, notes="parser " * (number % 5), **place)


QUERIES = st.sampled_from(
    [
        "payment",
        "retry",
        "payment retry",
        "ledger -retry",
        '"payment retry"',
        "pay*",
        "parser ledger",
        "title:cache payment",
        "-ledger",
        "type:bugfix",
        "project:api retry",
        "nothing",
    ]
)
OPTIONS = st.fixed_dictionaries(
    {"query": QUERIES, "limit": st.sampled_from([17, 50, 99, 100])},
    optional={
        "orderBy": st.sampled_from(["relevance", "date_desc", "date_asc"]),
        "project": st.sampled_from(["shop", "shop,api"]),
        "days": st.sampled_from(["all", "30", "90"]),
        "dateStart": st.just("120d"),
    },
)
ALSO = st.lists(
    st.sampled_from(["retry", "ledger -retry", '"payment retry"', "parser", "title:cache"]),
    min_size=1,
    max_size=3,
)
REQUESTS = st.one_of(
    st.tuples(
        st.just("/api/search"),
        st.builds(
            lambda options, kinds: {**options, "kinds": ",".join(kinds)},
            OPTIONS,
            st.sets(st.sampled_from(["observation", "session", "prompt"]), min_size=1).map(sorted),
        ),
    ),
    st.tuples(
        st.sampled_from(
            ["/api/search/observations", "/api/search/sessions", "/api/search/prompts"]
        ),
        OPTIONS,
    ),
    st.tuples(
        st.sampled_from(["/api/search", "/api/search/observations", "/api/search/prompts"]),
        st.builds(lambda options, also: {**options, "also": also}, OPTIONS, ALSO),
    ),
    st.tuples(
        st.just("/api/search/by-type"), OPTIONS.map(lambda o: {**o, "type": "bugfix,decision"})
    ),
    st.tuples(st.just("/api/search/by-file"), OPTIONS.map(lambda o: {**o, "filePath": "src/4"})),
)


@FEWER
@given(request=REQUESTS)
def test_pages_never_repeat_or_skip_and_the_total_is_what_they_hold(
    crowd: FlaskClient, request: tuple[str, dict[str, Any]]
) -> None:
    path, given_ = request
    pages = every_page(crowd, path, **given_)
    refs = [ref for page in pages for ref in refs_of(page)]
    assert len(refs) == len(set(refs))
    assert {page["total"] for page in pages} == {len(refs)}
    assert [page["count"] for page in pages[:-1]] == [given_["limit"]] * (len(pages) - 1)


@FEWER
@given(given_=OPTIONS, also=st.just([]) | ALSO, small=st.integers(1, 30))
def test_pages_of_any_size_give_one_order(
    crowd: FlaskClient, given_: dict[str, Any], also: list[str], small: int
) -> None:
    given_ = {**given_, "also": also}
    whole = [ref for page in every_page(crowd, "/api/search", **given_) for ref in refs_of(page)]
    offset = len(whole) // 2
    page = get(crowd, "/api/search", **{**given_, "limit": small, "offset": offset})
    assert refs_of(page) == whole[offset : offset + small]


@FEWER
@given(given_=OPTIONS, also=st.just([]) | ALSO)
def test_scores_lie_between_0_and_1_and_never_rise(
    crowd: FlaskClient, given_: dict[str, Any], also: list[str]
) -> None:
    given_ = {**given_, "orderBy": "relevance", "also": also}
    pages = every_page(crowd, "/api/search", **given_)
    scores = [row.get("score", 0.0) for page in pages for row in rows_of(page)]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("order", "falling"), [("date_desc", True), ("date_asc", False)])
@pytest.mark.parametrize("query", [{}, {"query": "payment"}])
def test_date_orders_follow_time_over_all_kinds(
    crowd: FlaskClient, order: str, falling: bool, query: dict[str, str]
) -> None:
    given_ = {"orderBy": order, "limit": 100, "project": "shop", **query}
    rows = [row for page in every_page(crowd, "/api/search", **given_) for row in rows_of(page)]
    moments = [(row["created_at_epoch"], row["id"]) for row in rows]
    assert moments == sorted(moments, reverse=falling)
    assert {row["kind"] for row in rows} == {"observation", "session", "prompt"}


def test_with_and_without_a_query_ties_fall_in_the_same_order(crowd: FlaskClient) -> None:
    listed, matched = (
        every_page(crowd, "/api/search", orderBy="date_desc", limit=100, **given_)
        for given_ in ({"dateStart": "400d"}, {"query": "payment"})
    )
    assert list(map(refs_of, listed)) == list(map(refs_of, matched))


def test_no_query_lists_the_newest_first_and_a_query_ranks(crowd: FlaskClient) -> None:
    listed = crowd.get("/api/search/by-type?type=bugfix&limit=100").get_json()["results"]
    assert [row["created_at_epoch"] for row in listed] == sorted(
        (row["created_at_epoch"] for row in listed), reverse=True
    )
    ranked = crowd.get("/api/search/by-type?type=bugfix&limit=5&query=retry").get_json()
    assert ranked["strategy"] == "fulltext"


def test_a_page_behind_the_last_is_empty(crowd: FlaskClient) -> None:
    page = crowd.get("/api/search?query=payment&offset=100000").get_json()
    assert (page["count"], page["next_offset"], page["results"]) == (0, None, [])
    assert page["total"] > 0


@pytest.mark.parametrize("query", ["ledger", "payment"])  # some of these are no candidates
def test_older_matches_follow_and_are_marked_and_counted(crowd: FlaskClient, query: str) -> None:
    pages = every_page(crowd, "/api/search/observations", query=query, limit=100)
    rows = [row for page in pages for row in rows_of(page)]
    older = [row for row in rows if row.get("older")]
    assert older == [row for row in rows if row["created_at_epoch"] < NOW - 90 * DAY]
    assert {page["window"]["older_matches"] for page in pages} == {len(older)}
    assert pages[0]["window"]["days"] == 90


@pytest.mark.parametrize("bound", [{"days": 30}, {"dateStart": "30d"}])
def test_an_explicit_bound_is_hard(crowd: FlaskClient, bound: dict[str, Any]) -> None:
    pages = every_page(crowd, "/api/search", query="payment", limit=100, **bound)
    rows = [row for page in pages for row in rows_of(page)]
    assert rows
    assert all(row["created_at_epoch"] >= NOW - 30 * DAY for row in rows)
    assert not any("older" in row for row in rows)


def test_all_days_rank_without_a_bound(crowd: FlaskClient) -> None:
    page = crowd.get("/api/search/observations?query=ledger&days=all").get_json()
    assert page["window"] == {"days": "all", "older_matches": 0}
    assert not any("older" in row for row in page["results"])


def test_a_hard_bound_counts_what_it_leaves_out(crowd: FlaskClient) -> None:
    path, query = "/api/search/observations", "payment"
    everything = get(crowd, path, query=query, days="all")["total"]
    for order in ("relevance", "date_desc", "date_asc"):
        page = get(crowd, path, query=query, days=30, orderBy=order)
        older = everything - page["total"]
        assert older > 0
        assert page["window"] == {"days": 30, "older_matches": older}
        assert page["strategy"] == ("fulltext" if order == "relevance" else "temporal")


def test_many_older_records_that_match_better_do_not_hide_a_recent_one(
    own_store: SqliteStore, own_client: FlaskClient
) -> None:
    old = [Observation(title="payment retry", created_at_epoch=NOW - 200 * DAY)] * 130
    recent = Observation(title="payment retry ledger", created_at_epoch=NOW - DAY)
    own_store.write(numbered([*old, recent]))
    rows = get(own_client, "/api/search/observations", query="payment retry")["results"]
    assert rows[0]["ref"] == "131"
