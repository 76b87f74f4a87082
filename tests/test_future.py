"""A record dated in the future leads no window; what an answer leaves out for that, it says."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from fake_semantic import indexed
from flask.testing import FlaskClient
from pages import get, refs_of
from samples import DAY, HOUR, NOW, named, numbered

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.application.services import Services
from memsvc.core.records import Observation, Record, Summary
from memsvc.entrypoints.http.app import create_app

FAR = 4_070_908_800_000
"""2099-01-01T00:00:00Z."""

LATEST = NOW + HOUR + DAY
"""The samples' now is a full hour: what is dated later than a day after the next is the future."""

SAID = "dated after 2026-11-09T15:00:00Z and left out; dateStart=2026-11-09T15:00:00Z finds"


def of(name: str, when: int, **given: Any) -> Observation:
    return named(f"marmot {name}", when, project="alps", session_id=name, **given)


@pytest.fixture
def client(own_store: SqliteStore, own_client: FlaskClient) -> FlaskClient:
    """Three records: #1 of yesterday, #2 dated in 2099, #3 of a year ago."""
    own_store.write([of("near", NOW - DAY), of("far", FAR), of("old", NOW - 365 * DAY)])
    return own_client


def test_it_is_not_recent_work_and_the_answer_says_so(client: FlaskClient) -> None:
    page = get(client, "/api/context/recent")
    assert [row["session_id"] for row in page["results"]] == ["near", "old"]
    assert page["total"] == 2
    assert page["future"] == f"1 record is {SAID} them."


def test_its_work_session_shows_the_rest(client: FlaskClient, own_store: SqliteStore) -> None:
    own_store.write([of("more", NOW - HOUR)])
    own_store.write(numbered([of("near", FAR + DAY)]))
    page = get(client, "/api/context/recent", project="alps")
    assert [row["session_id"] for row in page["results"]] == ["more", "near", "old"]
    assert refs_of({"results": page["results"][1]["observations"]}) == ["1"]
    assert page["results"][1]["last_at_epoch"] == NOW - DAY
    assert page["future"] == f"2 records are {SAID} them."


def test_a_query_among_the_last_fifty_does_not_meet_it(client: FlaskClient) -> None:
    page = get(client, "/api/context/recent", query="marmot")
    assert (refs_of(page), page["among_last"]) == (["1", "3"], 2)
    assert "1 record is" in page["future"]


def test_the_start_page_does_not_show_it_and_says_so(
    client: FlaskClient, own_store: SqliteStore
) -> None:
    summaries = [("now", NOW - DAY), ("then", FAR)]
    own_store.write(numbered([Summary(request=t, created_at_epoch=at) for t, at in summaries]))
    text = client.get("/api/context/inject").get_data(as_text=True)
    assert re.findall(r"^#(\d+) ", text, re.M) == ["3", "1"]
    assert "newest 2 of 2 observations" in text
    assert re.search("^Last summary S1 .*: now$", text, re.M)
    assert f"\n2 records are {SAID} them.\n" in text


def test_a_store_of_nothing_else_is_not_called_empty(
    own_store: SqliteStore, own_client: FlaskClient
) -> None:
    own_store.write([of("far", FAR)])
    text = own_client.get("/api/context/inject").get_data(as_text=True)
    assert text.splitlines()[1].endswith(f"1 record is {SAID} them.")
    assert get(own_client, "/api/context/recent")["total"] == 0


@pytest.mark.parametrize(("when", "boosted"), [(LATEST, True), (LATEST + 1, False), (FAR, False)])
def test_a_clock_may_be_a_day_ahead(
    own_store: SqliteStore, own_client: FlaskClient, when: int, boosted: bool
) -> None:
    own_store.write(numbered([of("near", NOW - DAY), of("near", when)]))
    page = get(own_client, "/api/search/observations", query="marmot", explain=1)
    rows = {row["ref"]: row for row in page["results"]}
    assert rows["1"]["explain"]["recency"] > 0
    assert (rows["2"]["explain"]["recency"] > 0) is boosted
    assert (rows["2"]["score"] == rows["1"]["score"]) is boosted
    assert page["window"].get("future_matches", 0) == (not boosted)


@pytest.mark.parametrize("path", ["/api/search/observations", "/api/search"])
def test_in_the_default_window_it_has_no_bonus_and_is_counted(
    client: FlaskClient, path: str
) -> None:
    page = get(client, path, query="marmot")
    assert refs_of(page)[0] == "1"
    assert sorted(refs_of(page)) == ["1", "2", "3"]
    assert page["window"] == {"days": 90, "older_matches": 1, "future_matches": 1}
    text = client.get(path, query_string={"query": "marmot", "render": "text"})
    assert "90 days · 1 older · 1 in the future · " in text.get_data(as_text=True).splitlines()[0]


def test_semantic_search_gives_it_no_bonus_either(
    client: FlaskClient, own_store: SqliteStore
) -> None:
    services = Services(own_store, lambda: NOW, indexed(own_store))
    page = get(create_app(services).test_client(), "/api/search/observations", query="marmot")
    assert (page["strategy"], refs_of(page)[0]) == ("hybrid", "1")
    near = get(
        create_app(services).test_client(), "/api/search/semantic", query="marmot", days_back=30
    )
    assert refs_of(near) == ["1"]
    assert "1 record is" in near["future"]


def test_of_equal_matches_it_comes_last(own_store: SqliteStore, own_client: FlaskClient) -> None:
    same: list[Record] = [
        Observation(title="marmot", created_at_epoch=when) for when in (FAR, NOW - DAY, NOW)
    ]
    own_store.write(numbered(same))
    page = get(own_client, "/api/search/observations", query="marmot", days="all")
    assert refs_of(page) == ["3", "2", "1"]


def test_many_of_them_do_not_crowd_out_what_is_recent(
    own_store: SqliteStore, own_client: FlaskClient
) -> None:
    own_store.write(numbered([of("x", FAR + number) for number in range(120)]))
    own_store.write([of("x", NOW - DAY)])
    page = get(own_client, "/api/search/observations", query="marmot", limit=5)
    assert page["results"][0]["ref"] == "121"
    assert page["window"]["future_matches"] == 120


def test_a_number_of_days_ends_now_and_what_comes_later_is_counted(client: FlaskClient) -> None:
    page = get(client, "/api/search/observations", query="marmot", days=30)
    assert refs_of(page) == ["1"]
    assert page["window"] == {"days": 30, "older_matches": 1, "future_matches": 1}
    listed = get(client, "/api/search", days=30)
    assert refs_of(listed) == ["1"]
    assert listed["future"] == f"1 record is {SAID} them."


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        ({"dateStart": "2026-11-09T15:00:00Z"}, ["2"]),
        ({"dateStart": "2098-01-01", "dateEnd": "2099-12-31"}, ["2"]),
        ({"dateStart": "2098-01-01", "dateEnd": "2099-12-31", "query": "marmot"}, ["2"]),
        ({"dateEnd": "2099-12-31", "kinds": "observation"}, ["2", "1", "3"]),
        ({"dateStart": "2090-01-01", "days": "30"}, ["2"]),
        ({"kinds": "observation"}, ["2", "1", "3"]),
        ({"kinds": "observation", "orderBy": "date_asc"}, ["3", "1", "2"]),
    ],
)
def test_dates_that_reach_it_find_it_and_lists_keep_the_order_of_time(
    client: FlaskClient, given_: dict[str, str], found: list[str]
) -> None:
    page = get(client, "/api/search", **given_)
    assert refs_of(page) == found
    assert "future" not in page


def test_a_timeline_stands_in_the_order_of_time(client: FlaskClient) -> None:
    page = get(client, "/api/context/timeline", anchor=1)
    assert refs_of(page) == ["3", "1", "2"]


def test_its_project_does_not_lead_and_its_day_is_not_the_newest(
    client: FlaskClient, own_store: SqliteStore, zone: Callable[[str], None]
) -> None:
    zone("UTC")
    own_store.write([named("today", NOW, project="today"), named("x", FAR, project="ahead")])
    assert [each["project"] for each in get(client, "/api/projects")["projects"]] == [
        *("today", "alps", "ahead")
    ]
    stats = get(client, "/api/stats")
    assert list(stats["projects"]) == ["today", "alps", "ahead"]
    assert stats["days"] == {"2026-11-08": 1, "2026-11-07": 1, "future": 2}
    text = client.get("/api/search/help?render=text").get_data(as_text=True)
    assert "- projects: today 1, alps 3, ahead 1\n" in text


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("9999-12-31", "9999-12-30T23:59:59Z"),
        ("9998-12-31T23:59:59Z", "9998-12-31T23:59:59Z"),
        (253_402_214_399_999, "9999-12-30T23:59:59Z"),
        ("1970-01-01", "1970-01-01T00:00:00Z"),
        ("0001-01-01", "1970-01-01T00:00:00Z"),
        ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
        ("1971-01-01T00:00:00Z", "1971-01-01T00:00:00Z"),
    ],
)
def test_times_far_away_are_kept_within_what_a_date_can_say(
    own_client: FlaskClient, given_: object, kept: str
) -> None:
    own_client.post("/api/observations", json={"title": "marmot", "created_at": given_})
    assert own_client.get("/api/observation/1").get_json()["created_at"] == kept
    for path in ("/api/context/recent", "/api/context/timeline", "/api/search"):
        given_ = {"anchor": "1"} if path.endswith("timeline") else {"query": "marmot"}
        for render in ("json", "text"):
            response = own_client.get(path, query_string={**given_, "render": render})
            assert response.status_code == 200


@pytest.mark.parametrize(
    "given_", [-1, -(10**13), 253_402_214_400_000, 10**30, "-5d", "10000-01-01"]
)
def test_times_that_no_date_can_say_are_refused_with_a_sentence(
    own_client: FlaskClient, given_: object
) -> None:
    response = own_client.post("/api/observations", json={"title": "x", "created_at": given_})
    problem = response.get_json()
    assert response.status_code == 400
    assert "not a date; allowed: YYYY-MM-DD" in problem["error"]
