"""A timeline shows exactly what lies next to its anchor, in the store's order of time."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import refs_of
from samples import DAY, NOW, RECORDS, TIE, refs_in_time

from memsvc.core.records import Prompt, Summary

REFS = refs_in_time()
ROUTES = ["/api/context/timeline", "/api/timeline", "/api/timeline/context"]


@given(place=st.integers(0, len(REFS) - 1), before=st.integers(0, 50), after=st.integers(0, 50))
def test_shows_exactly_the_depth_on_both_sides_and_less_only_at_the_ends(
    client: FlaskClient, place: int, before: int, after: int
) -> None:
    query = {"anchor": REFS[place], "depth_before": before, "depth_after": after}
    page = client.get("/api/context/timeline", query_string=query).get_json()
    assert refs_of(page) == REFS[max(0, place - before) : place + after + 1]
    assert page["strategy"] == "temporal"


@given(
    place=st.integers(0, len(REFS) - 1),
    depth=st.integers(0, 9),
    kinds=st.sets(st.sampled_from(["observation", "session", "prompt"]), min_size=1).map(sorted),
    project=st.sampled_from(["shop", "api", "shop,docs", "SHOP"]),
)
def test_filters_choose_the_neighbours_and_never_remove_the_anchor(
    client: FlaskClient, place: int, depth: int, kinds: list[str], project: str
) -> None:
    query = {
        "anchor": REFS[place],
        "depth_before": depth,
        "depth_after": depth,
        "kinds": ",".join(kinds),
        "project": project,
    }
    rows = client.get("/api/context/timeline", query_string=query).get_json()["results"]
    kept = [ref for ref in REFS if ref == REFS[place] or _fits(ref, kinds, project.lower())]
    middle = kept.index(REFS[place])
    assert [row["ref"] for row in rows] == kept[max(0, middle - depth) : middle + depth + 1]


def _fits(ref: str, kinds: list[str], projects: str) -> bool:
    kind = {"S": "session", "P": "prompt"}.get(ref[0], "observation")
    number = ref.lstrip("SP")
    record_class = {"session": Summary, "prompt": Prompt}.get(kind)
    record = next(
        record
        for record in RECORDS
        if record.source_id == number
        and (isinstance(record, record_class) if record_class else hasattr(record, "title"))
    )
    return kind in kinds and record.project in projects.split(",")


def test_records_of_one_moment_stand_in_the_order_of_ids_then_kinds(ask: Any) -> None:
    page = ask("/api/context/timeline", anchor="P3", depth_before=1, depth_after=2)
    assert refs_of(page) == ["S2", "P3", "8", "9"]
    assert {row["created_at_epoch"] for row in page["results"]} == {TIE}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("anchor", ["12", "#12", " 12 ", "S4", "s4", "#S4", "P4", "p4"])
def test_an_anchor_is_a_record_by_its_ref(ask: Any, route: str, anchor: str) -> None:
    page = ask(route, anchor=anchor, depth_before=1, depth_after=1)
    flagged = [row["ref"] for row in page["results"] if row.get("anchor") is True]
    assert flagged == [anchor.strip().lstrip("#").upper()]
    assert page["anchor"]["ref"] == flagged[0]
    assert page["anchor"]["title"]


@pytest.mark.parametrize(
    "anchor",
    [
        "2026-11-06T00:00:00Z",
        "2026-11-06T00:00:00+00:00",
        "2026-11-06 01:00:00+01:00",
        "1793923200",
        "1793923200000",
    ],
)
def test_an_anchor_is_any_date(ask: Any, anchor: str) -> None:
    page = ask("/api/context/timeline", anchor=anchor, depth_before=2, depth_after=2)
    assert refs_of(page) == ["6", "5", "P2", "4"]
    assert page["anchor"] == {"created_at": "2026-11-06T00:00:00Z"}
    assert not any(row.get("anchor") for row in page["results"])


@pytest.mark.parametrize(("anchor", "moment"), [("2d", NOW - 2 * DAY), ("48h", NOW - 2 * DAY)])
def test_an_anchor_may_be_a_span_back_from_now(ask: Any, anchor: str, moment: int) -> None:
    rows = ask("/api/context/timeline", anchor=anchor, depth_before=1, depth_after=1)["results"]
    assert rows[0]["created_at_epoch"] < moment <= rows[1]["created_at_epoch"]


def test_a_day_as_an_anchor_is_its_local_beginning(ask: Any, zone: Any) -> None:
    zone("America/New_York")
    page = ask("/api/context/timeline", anchor="2026-11-06")
    assert page["anchor"]["created_at"] == "2026-11-06T05:00:00Z"


@pytest.mark.parametrize("anchor", ["S", "P", "12x", "#", "someday", "2026-13-01", "-1", "1.5"])
def test_anything_else_is_no_anchor(refuse: Any, anchor: str) -> None:
    problem = refuse("/api/context/timeline", anchor=anchor)
    assert "123, #123, S12, P9" in problem["errors"]["anchor"][0]
    assert repr(anchor) in problem["detail"]


@pytest.mark.parametrize("name", ["depth_before", "depth_after"])
@pytest.mark.parametrize("depth", [-1, 51, "x", ""])
def test_a_depth_lies_between_0_and_50(refuse: Any, name: str, depth: object) -> None:
    problem = refuse("/api/context/timeline", anchor="12", **{name: depth})
    assert "0 to 50" in problem["errors"][name][0]


def test_ten_records_on_each_side_are_the_default(ask: Any) -> None:
    page = ask("/api/context/timeline", anchor=REFS[15])
    assert refs_of(page) == REFS[5:26]
    assert (page["before"], page["after"]) == (10, 10)


def test_auto_turns_around_the_best_match_and_names_it(ask: Any) -> None:
    page = ask("/api/timeline/by-query", query="ECONNREFUSED", depth_before=1, depth_after=1)
    assert refs_of(page) == ["P4", "10", "S2"]
    assert page["anchor"]["title"] == "ECONNREFUSED when the worker is down"
    assert (page["query"], page["mode"]) == ("ECONNREFUSED", "auto")


@pytest.mark.parametrize(("mode", "ref"), [("observations", "19"), ("sessions", "S5")])
def test_the_older_modes_take_the_anchor_from_one_kind(ask: Any, mode: str, ref: str) -> None:
    page = ask("/api/timeline/by-query", query="catalogue", mode=mode)
    assert page["anchor"]["ref"] == ref


@pytest.mark.parametrize("kinds", ["observation", "session", "prompt", "session,prompt"])
@pytest.mark.parametrize("mode", ["auto", "interactive"])
def test_the_anchor_is_chosen_among_the_kinds_asked_for(ask: Any, kinds: str, mode: str) -> None:
    page = ask("/api/timeline/by-query", query="catalogue", kinds=kinds, mode=mode)
    assert page["results"]
    assert {row["kind"] for row in page["results"]} <= set(kinds.split(","))


def test_interactive_gives_matches_each_with_the_timeline_that_opens_it(
    ask: Any, client: FlaskClient
) -> None:
    query = {
        "query": "checkout",
        "mode": "interactive",
        "limit": 2,
        "depth_before": 1,
        "depth_after": 0,
    }
    page = ask("/api/timeline/by-query", **query)
    assert page["count"] == 2
    for row in page["results"]:
        opened = client.get(row["timeline"]).get_json()
        assert opened["anchor"]["ref"] == row["ref"]
        assert (opened["before"], opened["after"]) == (1, 0)


def test_interactive_shows_five_matches_at_most_twenty(ask: Any, refuse: Any) -> None:
    assert ask("/api/timeline/by-query", query="the", mode="interactive")["count"] == 5
    assert "limit" in refuse("/api/timeline/by-query", query="the", limit=21)["errors"]


@pytest.mark.parametrize("path", ["/api/timeline/by-query", "/api/timeline"])
@pytest.mark.parametrize("query", ["zzqqy", "!!!"])
def test_a_query_without_a_match_is_an_empty_timeline(ask: Any, path: str, query: str) -> None:
    page = ask(path, query=query)
    assert (page["count"], page["total"], page["results"]) == (0, 0, [])


def test_a_query_of_filters_alone_turns_around_the_newest(ask: Any) -> None:
    page = ask("/api/timeline/by-query", query="type:decision", depth_before=1, depth_after=1)
    assert page["anchor"]["ref"] == "2"
    assert len(page["results"]) == 3


def test_the_companion_takes_an_anchor_or_a_query(ask: Any) -> None:
    by_query = ask("/api/timeline", query="ECONNREFUSED", depth_before=1, depth_after=1)
    by_anchor = ask("/api/timeline", anchor="10", depth_before=1, depth_after=1)
    assert refs_of(by_query) == refs_of(by_anchor)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "neither"),
        ({"anchor": "12", "query": "x"}, "both"),
        ({"anchor": "", "query": " "}, "neither"),
    ],
)
def test_the_companion_takes_not_both_and_not_neither(
    refuse: Any, given_: dict[str, str], said: str
) -> None:
    problem = refuse("/api/timeline", **given_)
    assert said in problem["detail"]
    assert set(problem["errors"]) == {"anchor", "query"}


def test_full_format_shows_whole_records(ask: Any) -> None:
    rows = ask("/api/context/timeline", anchor="1", depth_before=0, depth_after=0, format="full")
    assert rows["results"][0]["narrative"].startswith("A retry")


def test_a_timeline_is_one_page_that_states_its_size(ask: Any) -> None:
    page = ask("/api/context/timeline", anchor="12", depth_before=3, depth_after=2, format="full")
    stated = {name: page[name] for name in ("count", "total", "limit", "offset", "next_offset")}
    assert stated == {"count": 6, "total": 6, "limit": 6, "offset": 0, "next_offset": None}
    assert (page["before"], page["after"]) == (3, 2)
    assert (page["format"], page["strategy"]) == ("full", "temporal")
    by_date = ask("/api/context/timeline", anchor=str(NOW - DAY), depth_before=3, depth_after=2)
    assert (by_date["count"], by_date["total"], by_date["limit"]) == (5, 5, 5)
    assert set(by_date["anchor"]) == {"created_at"}


def test_matches_to_choose_from_have_no_second_page(ask: Any) -> None:
    page = ask("/api/timeline/by-query", query="the", mode="interactive", limit=2)
    assert page["total"] > page["count"] == 2
    assert page["next_offset"] is None


def test_an_anchor_that_is_not_there_is_named_with_the_remedy(client: FlaskClient) -> None:
    response = client.get("/api/context/timeline?anchor=S99")
    assert response.status_code == 404
    assert "session S99" in response.get_json()["detail"]
    assert "take a ref from a search" in response.get_json()["detail"]
