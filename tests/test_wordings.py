"""Several wordings of one question in one request: each finds what it finds, every row is one."""

from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import every_page, get, matches_of
from samples import OBSERVATIONS
from strategies import plain_queries

from memsvc.api.operations import OPERATIONS
from memsvc.core.query import MAX_LENGTH, parse
from memsvc.core.ranking.wordings import combine, narrowed, united
from memsvc.entrypoints.cli.main import memsvc

SEARCHES = ["observations", "sessions", "prompts"]
ROUTES = ["/api/search", *(f"/api/search/{name}" for name in SEARCHES)]

TITLE_WORDS = sorted({word for record in OBSERVATIONS for word in record.title.split()})
wordings = st.one_of(
    st.lists(st.sampled_from(TITLE_WORDS), min_size=1, max_size=4).map(" ".join),
    st.sampled_from(['"double charge"', "title:guide", "worker -route", "time* pay*", "登录"]),
)
several = st.lists(wordings, min_size=1, max_size=5)
relevances = st.dictionaries(
    st.sampled_from("abcdef"), st.floats(0.01, 1).map(lambda value: round(value, 3)), max_size=6
)


def found(client: FlaskClient, path: str = "/api/search", **given_: Any) -> list[str]:
    return [
        ref for page in every_page(client, path, limit=100, **given_) for ref in matches_of(page)
    ]


# -- what is found --------------------------------------------------------------------------------


@given(query=wordings, also=several, days=st.sampled_from(["all", "30", None]))
def test_all_that_any_wording_finds_is_found_once_and_counted(
    client: FlaskClient, query: str, also: list[str], days: str | None
) -> None:
    bound = {"days": days} if days else {}
    alone = {ref for each in (query, *also) for ref in found(client, query=each, **bound)}
    page = get(client, "/api/search", query=query, also=also, limit=100, **bound)
    assert len(matches_of(page)) == len(set(matches_of(page))) == page["total"]
    assert set(matches_of(page)) == alone


@given(query=wordings, also=several)
def test_with_semantic_search_too_every_page_is_new_and_the_total_holds(
    semantic_client: FlaskClient, query: str, also: list[str]
) -> None:
    pages = every_page(semantic_client, "/api/search", query=query, also=also, limit=7)
    refs = [ref for page in pages for ref in matches_of(page)]
    assert len(refs) == len(set(refs))
    assert {page["total"] for page in pages} == {len(refs)}


@pytest.mark.parametrize("path", ROUTES)
def test_every_search_of_texts_takes_other_wordings(client: FlaskClient, path: str) -> None:
    alone = found(client, path, query="checkout")
    more = found(client, path, query="checkout", also=["catalogue", "worker"])
    assert set(alone) < set(more)


@pytest.mark.parametrize("order", ["date_desc", "date_asc"])
def test_in_the_order_of_time_the_matches_of_all_wordings_are_listed(
    client: FlaskClient, order: str
) -> None:
    given_ = {"query": "guide", "also": ["catalogue", "ties"], "orderBy": order, "limit": 100}
    rows = get(client, "/api/search", **given_)["results"]
    moments = [row["created_at_epoch"] for row in rows]
    assert moments == sorted(moments, reverse=order == "date_desc")
    assert {"S3", "P5", "S5", "P6", "19", "8", "P3"} <= {row["ref"] for row in rows}


@pytest.mark.parametrize("also", [["checkout"], ["checkout", " checkout "], ["", "  "]])
def test_a_wording_that_says_the_same_or_nothing_changes_nothing(
    client: FlaskClient, also: list[str]
) -> None:
    for given_ in ({}, {"explain": "1"}):
        alone = get(client, "/api/search", query="checkout", **given_)
        more = get(client, "/api/search", query="checkout", also=also, **given_)
        assert more["results"] == alone["results"]
        assert more["total"] == alone["total"]


def test_a_comma_belongs_to_the_wording(client: FlaskClient) -> None:
    page = get(client, "/api/search", query="guide", also="catalogue, '\"worker, the\"'")
    assert page["also"] == ["catalogue, '\"worker, the\"'"]


def test_what_the_query_filters_and_excludes_holds_for_all_wordings(client: FlaskClient) -> None:
    given_ = {"also": ["checkout", "payments"], "days": "all"}
    assert set(found(client, query="charge project:shop -ledger", **given_)) == set(
        found(client, query="charge -ledger", project="shop", **given_)
    )
    assert "17" in found(client, query="charge", **given_)  # which says ledger
    assert "17" not in found(client, query="charge -ledger", **given_)
    assert found(client, query="-ledger", also="charge") == found(client, query="charge -ledger")


def test_a_wording_narrows_itself_alone(client: FlaskClient) -> None:
    refs = found(client, query="ledger", also=['"double charge" ', "worker -route"], days="all")
    assert {"1", "17", "10"} <= set(refs)
    assert "4" not in refs  # the only worker with a route


# -- how it is ranked -----------------------------------------------------------------------------


def test_what_two_wordings_find_comes_before_what_one_finds(client: FlaskClient) -> None:
    given_ = {"query": "delivery", "also": ["guide", "date"], "days": "all"}
    assert set(found(client, **given_)[:2]) == {"12", "S4"}


@given(query=plain_queries, also=several)
def test_explain_says_what_each_wording_contributes(
    semantic_client: FlaskClient, query: str, also: list[str]
) -> None:
    given_ = {"query": query, "also": also, "explain": "1", "limit": 20}
    for row in get(semantic_client, "/api/search", **given_)["results"]:
        if "explain" in row:
            told = row["explain"]
            parts = told["lexical"] + told["semantic"]
            assert parts + told["recency"] == pytest.approx(row["score"], abs=1e-9)
            by = told.get("wordings", {"query": parts})
            assert sum(by.values()) == pytest.approx(parts, abs=1e-3)


def test_explain_names_the_wordings_that_found_a_row(client: FlaskClient) -> None:
    given_ = {"query": "guide", "also": ["catalogue", "import"], "explain": "1"}
    first = get(client, "/api/search", **given_)["results"][0]["explain"]
    assert list(first["wordings"]) == ["also 1", "also 2"]
    assert f"| by also 1 {first['wordings']['also 1']}; also 2" in first["line"]
    assert {"catalogue", "import"} <= set(first["terms"])


def test_the_answer_repeats_the_beginning_of_each_wording(client: FlaskClient) -> None:
    long = "the worker refuses the connection because it is down"
    page = get(client, "/api/search", query="guide", also=[long, "catalogue"])
    assert page["also"] == [f"{long[:40]}…", "catalogue"]


def test_a_timeline_is_around_the_best_match_of_all_wordings(client: FlaskClient) -> None:
    page = get(client, "/api/timeline/by-query", query="nothing", also=["health route", "worker"])
    assert page["anchor"]["ref"] in ("4", "P2")
    assert page["also"] == ["health route", "worker"]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"also": "worker"}, "also adds wordings to a query; give the first of them as query"),
        ({"query": "x", "also": "type:bugfix y"}, "filters belong in query"),
        ({"query": "x", "also": "y -project:api"}, "filters belong in query"),
        ({"query": "x", "also": "-worker"}, "a wording needs a word to search for"),
        ({"query": "x", "also": "?!"}, "a wording needs a word to search for"),
        ({"query": "x", "also": list("abcdef")}, "allowed: at most 5"),
        ({"query": "x", "also": "y" * (MAX_LENGTH + 1)}, "allowed: at most 2,000"),
    ],
)
def test_a_wording_that_cannot_be_searched_is_refused_with_a_sentence(
    refuse: Any, given_: dict[str, Any], told: str
) -> None:
    problem = refuse("/api/search", **given_)
    assert told in problem["detail"]
    assert list(problem["errors"]) == ["also"]


def test_terms_left_out_of_any_wording_are_told(client: FlaskClient) -> None:
    many = " ".join(f"word{number}" for number in range(70))
    page = get(client, "/api/search", query="guide", also=many)
    assert "6 were ignored" in page["notice"]


def test_on_the_command_line_also_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def note(method: str, path: str, pairs: Any, accept: str) -> None:
        asked.extend(pairs)

    monkeypatch.setattr("memsvc.entrypoints.cli.operations.ask", note)
    monkeypatch.setattr("memsvc.entrypoints.cli.operations.print_answer", lambda answer: None)
    words = ["search", "guide", "--also", "worker, down", "--also", "route"]
    assert CliRunner().invoke(memsvc, words).exit_code == 0
    assert [pair for pair in asked if pair[0] == "also"] == [
        ("also", "worker, down"),
        ("also", "route"),
    ]


def test_only_searches_of_texts_take_other_wordings() -> None:
    taking = {each.name for each in OPERATIONS if "also" in each.schema.fields}
    assert taking == {"search", *SEARCHES, "timeline-by-query"}


# -- the sum --------------------------------------------------------------------------------------


def summed(rankings: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: sum(parts) for key, parts in combine(rankings).items()}


@given(rankings=st.lists(relevances, min_size=1, max_size=6), data=st.data())
def test_the_order_of_the_wordings_does_not_matter(
    rankings: list[dict[str, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rankings))
    assert summed(shuffled) == pytest.approx(summed(rankings))


@given(ranking=relevances)
def test_one_wording_alone_keeps_its_relevance(ranking: dict[str, float]) -> None:
    assert summed([ranking]) == pytest.approx(ranking)


@given(rankings=st.lists(relevances, min_size=1, max_size=6))
def test_relevance_lies_between_the_mean_and_the_best_of_a_record(
    rankings: list[dict[str, float]],
) -> None:
    for key, total in summed(rankings).items():
        each = [ranking.get(key, 0.0) for ranking in rankings]
        assert sum(each) / len(each) <= total + 1e-9
        assert total <= max(each) + 1e-9 <= 1 + 1e-9


@given(rankings=st.lists(relevances, min_size=2, max_size=6), relevance=st.floats(0.01, 1))
def test_a_record_found_by_two_wordings_outranks_the_same_found_by_one(
    rankings: list[dict[str, float]], relevance: float
) -> None:
    first, second, *others = rankings
    once, twice = {"once": relevance, "twice": relevance}, {"twice": relevance / 2}
    totals = summed([first | once, second | twice, *others])
    assert totals["twice"] > totals["once"]


def test_one_query_stands_for_all_wordings_and_what_the_first_excludes_holds_for_all() -> None:
    query = parse("worker -route type:bugfix")
    other = narrowed(parse('"health check" -down'), query)
    whole = united([query, other])
    assert whole.wordings == (query, other)
    assert [term.text for term in other.excluded] == ["route", "down"]
    assert other.filters == query.filters
    assert united([query]) == query
