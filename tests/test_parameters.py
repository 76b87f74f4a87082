"""Parameters are read leniently where clients differ, refused with a sentence where they err."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import DAY, HOUR, NOW

from memsvc.core.dates import read_date

OBSERVATIONS = "/api/search/observations"
BY_TYPE = "/api/search/by-type"


def _refs(page: Any) -> list[str]:
    return [row["ref"] for row in page["results"]]


@pytest.mark.parametrize(
    ("path", "spelling", "name", "value"),
    [
        ("/api/search/by-type", "obs_type", "type", "decision"),
        ("/api/search/by-concept", "concepts", "concept", "gotcha"),
        ("/api/search/by-file", "file", "filePath", "src/payments"),
        ("/api/search/by-file", "files", "filePath", "src/payments"),
        ("/api/search", "obs_type", "type", "decision"),
        ("/api/search", "concept", "concepts", "gotcha"),
        ("/api/search", "file", "files", "src/payments"),
        ("/api/search", "filePath", "files", "src/payments"),
        ("/api/search", "date_start", "dateStart", "2026-11-01"),
        ("/api/search", "date_from", "dateStart", "2026-11-01"),
        ("/api/search", "dateRange[start]", "dateStart", "2026-11-01"),
        ("/api/search", "date_end", "dateEnd", "2026-11-01"),
        ("/api/search", "date_to", "dateEnd", "2026-11-01"),
        ("/api/search", "dateRange[end]", "dateEnd", "2026-11-01"),
    ],
)
def test_a_spelling_that_clients_use_is_the_same_parameter(
    client: FlaskClient, path: str, spelling: str, name: str, value: str
) -> None:
    spelled = client.get(path, query_string={spelling: value})
    assert spelled.status_code == 200
    assert spelled.get_data() == client.get(path, query_string={name: value}).get_data()
    assert spelled.get_json()["total"] > 0


@pytest.mark.parametrize(
    "query",
    [
        "type=decision,refactor",
        "type=decision&type=refactor",
        "type=decision&obs_type=refactor",
        "type=%20decision%20,,refactor,decision",
        "type=decision%2Crefactor",
    ],
)
def test_a_list_is_commas_or_repeats(client: FlaskClient, query: str) -> None:
    page = client.get(f"{BY_TYPE}?{query}").get_json()
    assert sorted(_refs(page)) == ["11", "17", "2", "6"]


@pytest.mark.parametrize(
    "name", ["query", "limit", "offset", "orderBy", "format", "dateStart", "days"]
)
def test_a_single_value_given_twice_is_refused(client: FlaskClient, name: str) -> None:
    response = client.get(f"{OBSERVATIONS}?query=x&{name}=1&{name}=1")
    assert response.status_code == 400
    times = 3 if name == "query" else 2
    assert response.get_json()["errors"] == {name: [f"given {times} times; it takes one value"]}


def test_two_spellings_of_a_single_value_are_a_repeat(client: FlaskClient) -> None:
    response = client.get("/api/search?query=x&dateStart=2026-01-01&date_from=2026-02-01")
    assert "given 2 times" in response.get_json()["detail"]


@pytest.mark.parametrize(
    ("given_", "near"),
    [("limt", "limit"), ("qery", "query"), ("order_by", "orderBy"), ("projects", "project")],
)
def test_an_unknown_parameter_names_the_nearest(refuse: Any, given_: str, near: str) -> None:
    problem = refuse(OBSERVATIONS, query="x", **{given_: "3"})
    assert problem["detail"].startswith(f"{given_}: ")
    assert f"did you mean {near}?" in problem["detail"]
    assert list(problem["errors"]) == [given_]


def test_an_unknown_parameter_like_no_other_names_those_there_are(refuse: Any) -> None:
    assert "depth_before" in refuse("/api/context/timeline", anchor="1", zzz="1")["detail"]
    assert "allowed: folder, render" in refuse("/api/projects", zzz="1")["detail"]


def test_every_parameter_in_error_is_told_at_once(refuse: Any) -> None:
    problem = refuse(OBSERVATIONS, query="x", limit="0", offset="-1", format="long")
    assert set(problem["errors"]) == {"limit", "offset", "format"}


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("limit", "0", "1 to 100"),
        ("limit", "101", "1 to 100"),
        ("limit", "-1", "1 to 100"),
        ("limit", "ten", "1 to 100"),
        ("limit", "1.5", "1 to 100"),
        ("limit", "1_0", "1 to 100"),
        ("limit", "٣", "1 to 100"),
        ("limit", "", "1 to 100"),
        ("limit", "9" * 5000, "1 to 100"),
        ("offset", "-1", "0 to 100000000"),
        ("orderBy", "newest", "relevance, date_desc, date_asc"),
        ("format", "FULL", "index, full"),
        ("explain", "yes", "0, 1"),
        ("days", "0", "1 to 36500"),
        ("days", "36501", "1 to 36500"),
        ("days", "some", "all"),
        ("dateStart", "soon", "YYYY-MM-DD"),
        ("dateStart", "2026-02-30", "YYYY-MM-DD"),
        ("dateEnd", "20260", "YYYY-MM-DD"),
        ("during", "someday", "last month"),
        ("dateEnd", "-7d", "YYYY-MM-DD"),
        ("project", "", "one or more values"),
        ("type", ",", "one or more values"),
        ("render", "html", "json, text"),
    ],
)
def test_a_bad_value_is_told_with_what_is_allowed(
    refuse: Any, name: str, value: str, allowed: str
) -> None:
    problem = refuse(OBSERVATIONS, query="x", **{name: value})
    (message,) = problem["errors"][name]
    assert allowed in message
    assert f"given {value[:77]!r}"[:-1] in message
    assert problem["detail"] == f"{name} {message}"
    assert len(message) < 300


def test_bad_kinds_are_told_with_those_there_are(refuse: Any) -> None:
    assert "observation, session, prompt" in refuse("/api/search", kinds="dream")["detail"]


@pytest.mark.parametrize("id", ["0", "-1", "x", "1.0", "1e3", "9" * 30])
def test_a_bad_number_of_a_record_is_refused(refuse: Any, id: str) -> None:
    assert "id" in refuse(f"/api/observation/{id}")["errors"]


@pytest.mark.parametrize("ids", ["x", "1,,x", "S", "1.5", "P-1", "１"])
def test_a_bad_ref_is_named(refuse: Any, ids: str) -> None:
    assert "123, #123, S12, P9" in refuse("/api/observations/batch", ids=ids)["errors"]["ids"][0]


def test_too_many_refs_are_refused(refuse: Any) -> None:
    assert (
        "1000" in refuse("/api/observations/batch", ids=",".join(map(str, range(1001))))["detail"]
    )


def test_dates_the_wrong_way_round_are_refused(refuse: Any) -> None:
    problem = refuse("/api/search", dateStart="2026-11-02", dateEnd="2026-11-01")
    assert "2026-11-02" in problem["detail"]
    assert "2026-11-01" in problem["detail"]


def _moment(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-08T14:00:00Z", NOW),
        ("2026-11-08T14:00Z", NOW),
        ("2026-11-08T15:00:00+01:00", NOW),
        ("2026-11-08 14:00:00.000+00:00", NOW),
        (str(NOW // 1000), NOW),
        (str(NOW), NOW),
        ("0m", NOW),
        ("24h", NOW - DAY),
        ("7d", NOW - 7 * DAY),
        ("7D", NOW - 7 * DAY),
        ("3w", NOW - 21 * DAY),
        (" 1h ", NOW - HOUR),
        ("999999w", 0),
    ],
)
def test_a_date_has_many_forms(text: str, moment: int) -> None:
    assert read_date(text).first(NOW) == moment


@pytest.mark.parametrize(
    ("zone_name", "text", "end", "moment"),
    [
        ("UTC", "2026-11-08", False, _moment(2026, 11, 8)),
        ("UTC", "2026-11-08", True, _moment(2026, 11, 9) - 1),
        ("America/New_York", "2026-11-08", False, _moment(2026, 11, 8, 5)),
        ("America/New_York", "2026-11-08", True, _moment(2026, 11, 9, 5) - 1),
        # the clock goes back: a day of 25 hours
        ("America/New_York", "2026-11-01", False, _moment(2026, 11, 1, 4)),
        ("America/New_York", "2026-11-01", True, _moment(2026, 11, 2, 5) - 1),
        # the clock goes forward: a day of 23 hours
        ("Europe/Berlin", "2026-03-29", False, _moment(2026, 3, 28, 23)),
        ("Europe/Berlin", "2026-03-29", True, _moment(2026, 3, 29, 22) - 1),
        # the clock goes forward at midnight: the day has no first hour
        ("Asia/Beirut", "2026-03-29", False, _moment(2026, 3, 28, 22)),
        ("Asia/Beirut", "2026-03-28", True, _moment(2026, 3, 28, 22) - 1),
        ("Pacific/Kiritimati", "2026-11-08", True, _moment(2026, 11, 8, 10) - 1),
        # a date with a time names a moment, also as an end
        ("Europe/Berlin", "2026-11-08T14:00", True, _moment(2026, 11, 8, 13)),
        # what no clock of any zone can show is the nearest that it can
        ("UTC", "9999-12-31", True, _moment(9999, 12, 31) - 1),
        ("UTC", "9999-12-31", False, _moment(9999, 12, 31) - 1),
        ("UTC", "0001-01-01", False, 1),
    ],
)
def test_a_day_is_a_day_of_the_local_zone(
    zone: Any, zone_name: str, text: str, end: bool, moment: int
) -> None:
    zone(zone_name)
    date = read_date(text)
    assert (date.last(NOW) if end else date.first(NOW)) == moment


@pytest.mark.parametrize(
    ("text", "day"), [("1mo", (2026, 2, 28)), ("6mo", (2025, 9, 30)), ("12mo", (2025, 3, 31))]
)
def test_months_back_end_on_a_day_that_exists(zone: Any, text: str, day: tuple[int, ...]) -> None:
    zone("UTC")
    assert read_date(text).first(_moment(2026, 3, 31, 12)) == _moment(*day, 12)


@pytest.mark.parametrize(
    "text",
    ["", "20260", "20261108", "123", "7 d", "d", "1q", "-1", "2026-11-08T25:00", "٢٠٢٦-١١-٠٨"],
)
def test_anything_else_is_no_date(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: YYYY-MM-DD"):
        read_date(text)


def test_a_range_covers_its_last_day_in_the_local_zone(ask: Any, zone: Any) -> None:
    zone("UTC")
    page = ask("/api/search", dateStart="2026-11-06", dateEnd="2026-11-06")
    assert sorted(_refs(page)) == ["4", "P2"]
    zone("Pacific/Kiritimati")
    page = ask("/api/search", dateStart="2026-11-07", dateEnd="2026-11-07")
    assert sorted(_refs(page)) == ["4", "P2"]


def test_bounds_of_a_range_are_inclusive(ask: Any) -> None:
    moment = NOW - 2 * DAY
    assert _refs(ask("/api/search", dateStart=moment, dateEnd=moment)) == ["4"]
    assert ask("/api/search", dateStart=moment + 1, dateEnd=moment + 1)["total"] == 0


@pytest.mark.parametrize("days", ["all", "ALL", "1", "36500"])
def test_days_is_a_number_or_all(ask: Any, days: str) -> None:
    page = ask("/api/search", query="payment", days=days)
    assert str(page["window"]["days"]) == days.lower()
