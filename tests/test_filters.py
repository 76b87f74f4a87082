"""Filters: AND over the fields, OR inside one, case ignored, unknown values lead to known ones."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import DAY, NOW

from memsvc.core.filters import FIELDS, Filter, selects, value_groups, without_paths
from memsvc.core.records import Observation, Prompt, Record, Summary


def _refs(page: Any) -> set[str]:
    return {row["ref"] for row in page["results"]}


@pytest.mark.parametrize("given_", ["bugfix", "BUGFIX", "Bugfix", "bugFIX,nothing"])
def test_types_ignore_case(ask: Any, given_: str) -> None:
    assert _refs(ask("/api/search/by-type", type=given_)) == {"1", "7", "10", "14"}
    by_query = ask("/api/search/by-type", type=given_, query="timeout worker")
    assert _refs(by_query) == {"1", "10", "14"}


@pytest.mark.parametrize("given_", ["trade-off", "Trade-Off", "TRADE-OFF"])
def test_concepts_ignore_case(ask: Any, given_: str) -> None:
    assert _refs(ask("/api/search/by-concept", concept=given_)) == {"2", "11"}


@pytest.mark.parametrize("given_", ["shop", "SHOP", "Shop,docs,nothing"])
def test_projects_ignore_case(ask: Any, given_: str) -> None:
    page = ask("/api/search", query="import catalogue", project=given_)
    assert _refs(page) == {"19", "S5", "P6"}


@pytest.mark.parametrize(
    ("path", "given_", "field", "near"),
    [
        ("/api/search/by-type", {"type": "bugfixes"}, "type", "bugfix"),
        ("/api/search/by-type", {"type": "descision"}, "type", "decision"),
        ("/api/search/by-concept", {"concept": "gotchas"}, "concept", "gotcha"),
        ("/api/search/by-concept", {"concept": "tradeoff"}, "concept", "trade-off"),
        ("/api/search", {"project": "shopp"}, "project", "shop"),
        ("/api/search", {"project": "shopp", "query": "payment"}, "project", "shop"),
    ],
)
def test_an_unknown_value_is_an_empty_answer_that_names_the_nearest(
    ask: Any, path: str, given_: dict[str, str], field: str, near: str
) -> None:
    page = ask(path, **given_)
    assert (page["total"], page["results"]) == (0, [])
    assert near in page["nearest"][field]


def test_a_value_like_no_other_leads_to_what_is_there(ask: Any) -> None:
    assert ask("/api/search/by-type", type="zzz")["nearest"]["type"]


def test_a_type_of_ones_own_is_found_like_any_other(ask: Any) -> None:
    assert _refs(ask("/api/search/by-type", type="security-alert")) == {"15"}
    assert _refs(ask("/api/search", query="type:security-alert token")) == {"15"}


@pytest.mark.parametrize(
    ("query", "same_as"),
    [
        ("type:bugfix", {"type": "bugfix"}),
        ("concept:gotcha", {"concepts": "gotcha"}),
        ("project:docs", {"project": "docs"}),
        ("file:src/payments", {"files": "src/payments"}),
        ("type:bugfix,decision", {"type": "bugfix,decision"}),
        ("type:bugfix project:api", {"type": "bugfix", "project": "api"}),
    ],
)
def test_a_filter_in_the_query_is_a_filter(ask: Any, query: str, same_as: dict[str, str]) -> None:
    in_query = ask("/api/search", query=query, dateStart="2000-01-01", limit=100)
    assert _refs(in_query) == _refs(ask("/api/search", **same_as, limit=100))
    assert in_query["total"] > 0


def test_a_filter_and_one_in_the_query_both_hold(ask: Any) -> None:
    assert _refs(ask("/api/search", query="type:bugfix", type="decision")) == set()
    assert _refs(ask("/api/search", query="type:bugfix", project="shop")) == {"1"}


def test_a_query_of_no_words_finds_nothing_and_says_why(ask: Any) -> None:
    page = ask("/api/search", query="?!")
    assert page["total"] == 0
    assert "no letter or digit" in page["notice"]


def test_a_query_that_finds_nothing_offers_near_words(ask: Any) -> None:
    assert "checkout" in ask("/api/search/observations", query="chekcout")["did_you_mean"]


def test_a_misspelt_ending_is_mended_although_its_stem_is_another(
    own_client: FlaskClient,
) -> None:
    own_client.post("/api/observations", json={"title": "An idempotency key for payments"})
    for typed in ("idempotncy", "idempotancy", "idempotency2"):
        page = own_client.get(f"/api/search/observations?query={typed}").get_json()
        assert page["total"] or page["did_you_mean"] == ["idempotency"]
    page = own_client.get(f"/api/search/observations?query={'idempot' * 200}").get_json()
    assert page["did_you_mean"] == []


def test_only_paths_are_brought_into_one_form() -> None:
    record = Observation(concepts=("client/", ".\\x"), files_read=("./a/", " ", "a"))
    assert FIELDS["concept"].values(record) == ("client/", ".\\x")
    assert FIELDS["file"].values(record) == ("a",)


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (Filter(), True),
        (Filter(since=NOW), True),
        (Filter(until=NOW), True),
        (Filter(since=NOW + 1), False),
        (Filter(until=NOW - 1), False),
        (Filter((("type", ("BUGFIX", "odd")),)), True),
        (Filter((("type", ("odd",)),)), False),
        (Filter((("type", ("bugfix",)), ("project", ("Shop",))), NOW, NOW), True),
        (Filter((("type", ("bugfix",)), ("project", ("api",)))), False),
        (Filter((("file", ("none", "src")),)), True),
        (Filter((("file", ("SRC",)),)), False),
    ],
)
def test_a_filter_selects_what_keeps_its_bounds_and_every_group(
    selection: Filter, selected: bool
) -> None:
    record = Observation(
        type="bugfix", project="shop", files_modified=("src/a.py",), created_at_epoch=NOW
    )
    assert selects(selection, record) is selected


@pytest.mark.parametrize(
    ("record", "groups"),
    [
        (
            Observation(type="Odd", concepts=("b", "A", "a"), project="P", files_read=("x",)),
            (("type", ("odd",)), ("concept", ("a", "b")), ("project", ("p",))),
        ),
        (Summary(project="P", files_edited=("x",)), (("project", ("p",)),)),
        (Prompt(project="P"), (("project", ("p",)),)),
    ],
)
def test_an_index_knows_the_folded_values_of_a_record_without_its_paths(
    record: Record, groups: object
) -> None:
    assert value_groups(record) == groups


def test_a_filter_without_its_paths_keeps_all_else() -> None:
    kept = ("type", ("bugfix",))
    whole = Filter((("file", ("a",)), kept), NOW - DAY, NOW)
    assert without_paths(whole) == Filter((kept,), NOW - DAY, NOW)
