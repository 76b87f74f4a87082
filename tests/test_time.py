"""Dates as people say them, spans without a query, and timelines with an end: over HTTP, on the
command line and as MCP tools.
"""

import json
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from pages import refs_of
from samples import DAY, NOW, named, refs_in_time

from benchmarks.sample import run_command, sample_worker
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.records import Prompt, Summary
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli.operations import USAGE_ERROR

LISTS = [
    *("/api/search/observations", "/api/search/sessions", "/api/search/prompts"),
    *("/api/search/by-type?type=bugfix", "/api/search/by-concept?concept=gotcha"),
    *("/api/search/by-file?filePath=a.py", "/api/search"),
]
"""Every route that searches and can list."""


def at(text: str) -> int:
    """A local time in ms."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.fixture
def dated(own_store: SqliteStore, own_client: FlaskClient) -> FlaskClient:
    """A record of each kind at the edges of days, weeks, months and years."""
    moments = [
        *("2020-12-31T23:59:59", "2021-01-01T00:00", "2021-01-03T23:59", "2021-01-04T00:00"),
        *("2021-01-10T23:59:59", "2021-01-11T00:00", "2021-01-31T23:59:59", "2021-02-01T00:00"),
        *("2021-12-31T23:59:59", "2022-01-01T00:00", "2026-09-30T23:59", "2026-10-01T00:00"),
        *("2026-10-31T23:59", "2026-11-01T00:00", "2026-11-06T12:00", "2026-11-07T09:00"),
    ]
    about: dict[str, Any] = {"type": "bugfix", "concepts": ("gotcha",), "files_read": ("a.py",)}
    for moment in moments:
        when: dict[str, Any] = {"source_id": moment, "created_at_epoch": at(moment)}
        own_store.write(
            [
                named(moment, at(moment), **about),
                Summary(source="t", request=moment, files_read=("a.py",), **when),
                Prompt(source="t", prompt_text=moment, **when),
            ]
        )
    return own_client


def rows_of(answer: Any) -> list[Any]:
    found = answer["results"]
    return [row for rows in found.values() for row in rows] if isinstance(found, dict) else found


def titles(client: FlaskClient, path: str, **given: Any) -> list[str]:
    """The times of the records that an answer lists, each once, in order."""
    response = client.get(path, query_string=given)
    assert response.status_code == 200, response.get_data(as_text=True)
    return list(dict.fromkeys(row["title"] for row in response.get_json()["results"]))


SPANS = [
    ("2021", "2021-01-01T00:00", "2021-12-31T23:59:59"),
    ("2021-01", "2021-01-01T00:00", "2021-01-31T23:59:59"),
    ("January 2021", "2021-01-01T00:00", "2021-01-31T23:59:59"),
    ("jan 2021", "2021-01-01T00:00", "2021-01-31T23:59:59"),
    ("2021-W01", "2021-01-04T00:00", "2021-01-10T23:59:59"),
    ("4 Jan 2021", "2021-01-04T00:00", "2021-01-04T23:59:59.999"),
    ("January 4th, 2021", "2021-01-04T00:00", "2021-01-04T23:59:59.999"),
    ("last month", "2026-10-01T00:00", "2026-10-31T23:59:59"),
    ("this month", "2026-11-01T00:00", "2026-11-30T23:59:59"),
    ("October", "2026-10-01T00:00", "2026-10-31T23:59:59"),
    ("last week", "2026-10-26T00:00", "2026-11-01T23:59:59"),
    ("last year", "2025-01-01T00:00", "2025-12-31T23:59:59"),
    ("yesterday", "2026-11-07T00:00", "2026-11-07T23:59:59"),
    ("Yesterday", "2026-11-07T00:00", "2026-11-07T23:59:59"),
    ("the day before yesterday", "2026-11-06T00:00", "2026-11-06T23:59:59"),
    ("last Friday", "2026-11-06T00:00", "2026-11-06T23:59:59"),
    ("saturday", "2026-11-07T00:00", "2026-11-07T23:59:59"),
    ("today", "2026-11-08T00:00", "2026-11-08T23:59:59"),
]


@pytest.mark.parametrize(("span", "first", "last"), SPANS)
def test_a_span_lists_what_lies_in_it_newest_first(
    dated: FlaskClient, zone: Any, span: str, first: str, last: str
) -> None:
    every = titles(dated, "/api/search/observations", dateStart="2000", limit=100)
    inside = [moment for moment in every if at(first) <= at(moment) <= at(last)]
    for given in ({"during": span}, {"dateStart": span, "dateEnd": span}):
        assert titles(dated, "/api/search/observations", **given) == inside
    assert inside == sorted(inside, reverse=True)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "given",
    [
        {"dateStart": "2021-01-04", "dateEnd": "2021-01-10"},
        {"during": "2021-W01"},
        {"on": "2021-W01"},
        {"dateRange": "2021-w01"},
        {"since": "4 January 2021", "until": "10 January 2021"},
        {"dateRange[start]": "2021-01-04", "dateRange[end]": "2021-01-10"},
    ],
)
def test_every_search_route_lists_exactly_a_week(
    dated: FlaskClient, path: str, given: dict[str, str]
) -> None:
    route, _, rest = path.partition("?")
    beside = dict([rest.split("=")]) if rest else {}
    response = dated.get(route, query_string=beside | given)
    assert response.status_code == 200, response.get_data(as_text=True)
    rows = rows_of(response.get_json())
    assert {row["title"] for row in rows} == {"2021-01-04T00:00", "2021-01-10T23:59:59"}


def test_a_span_is_listed_oldest_first_if_asked_and_page_by_page(dated: FlaskClient) -> None:
    asked = {"during": "2021-01", "orderBy": "date_asc"}
    rows = titles(dated, "/api/search/prompts", **asked)
    assert rows == sorted(rows)
    pages = [titles(dated, "/api/search/prompts", limit=1, offset=n, **asked) for n in range(6)]
    assert [row for page in pages for row in page] == rows


def test_a_span_back_lasts_until_now(ask: Any) -> None:
    for span, days in (("7d", 7), ("last 7 days", 7), ("1w", 7), ("past two weeks", 14)):
        page = ask("/api/search", during=span, limit=100)
        moments = [row["created_at_epoch"] for row in page["results"]]
        assert moments
        assert all(NOW - days * DAY <= moment <= NOW for moment in moments)


@pytest.mark.parametrize(
    ("text", "ago"), [("3 weeks ago", 21), ("20 days ago", 20), ("two days ago", 2)]
)
def test_so_long_ago_is_that_day_and_during_it_the_whole_unit(
    ask: Any, text: str, ago: int
) -> None:
    day = datetime.fromtimestamp((NOW - ago * DAY) / 1000).strftime("%Y-%m-%d")
    listed = ask("/api/search", dateStart=text, limit=100)["results"]
    assert listed == ask("/api/search", dateStart=day, limit=100)["results"]
    unit = "2026-W42" if "week" in text else day
    during = ask("/api/search", during=text)["results"]
    assert during == ask("/api/search", during=unit)["results"]


def test_two_years_back_are_two_years(ask: Any) -> None:
    assert ask("/api/search", since="2y") == ask("/api/search", since="24mo")


def test_an_answer_says_which_days_a_span_stands_for(ask: Any, client: FlaskClient) -> None:
    page = ask("/api/search/observations", during="last week")
    assert page["during"] == "2026-10-26 to 2026-11-01"
    text = client.get("/api/search/sessions?during=2026-10&render=text").get_data(as_text=True)
    assert "during: 2026-10-01 to 2026-10-31" in text.splitlines()[0]


def test_a_query_is_ranked_within_the_span_alone(dated: FlaskClient) -> None:
    found = titles(dated, "/api/search/observations", query="23:59:59", during="2021")
    assert found
    assert all(title.startswith("2021") for title in found)


@pytest.mark.parametrize("path", LISTS[:3])
def test_neither_a_query_nor_a_filter_is_refused_and_names_them(refuse: Any, path: str) -> None:
    problem = refuse(path)
    assert problem["error"] == "Missing required parameter: query"
    assert "project, during, dateStart, dateEnd, days" in problem["errors"]["query"][0]
    assert "kinds" not in problem["errors"]["query"][0]


def test_a_filter_alone_lists_too(ask: Any) -> None:
    page = ask("/api/search/sessions", project="docs")
    assert (refs_of(page), page["strategy"]) == (["S3"], "filter")


@pytest.mark.parametrize("beside", ["dateStart", "dateEnd", "days"])
def test_during_stands_alone(refuse: Any, beside: str) -> None:
    given = {"days": "30"} if beside == "days" else {beside: "7d"}
    problem = refuse("/api/search", during="2021-01", **given)
    assert beside in problem["errors"]["during"][0]
    assert "give during alone" in problem["detail"]


@pytest.mark.parametrize("moment", ["2026-11-06T12:00", "1793923200", "friday 14:00"])
def test_during_a_moment_nothing_happens(refuse: Any, moment: str) -> None:
    assert "give a day, week, month or year" in refuse("/api/search", during=moment)["detail"]


def test_what_is_to_be_forgotten_may_be_said_in_words(dated: FlaskClient) -> None:
    given = {"since": "last month", "until": "last month", "dry_run": "1"}
    told = dated.post("/api/forget", json=given).get_json()
    exact = {"since": "2026-10-01", "until": "2026-10-31", "dry_run": "1"}
    assert told == dated.post("/api/forget", json=exact).get_json()
    assert "2026-10-01" in str(told)


# -- timelines with an end -----------------------------------------------------------------------

TIMELINES = ["/api/context/timeline", "/api/timeline", "/api/timeline/context"]


@pytest.mark.parametrize("path", TIMELINES)
@pytest.mark.parametrize(
    "given",
    [
        {"anchor": "2021-01-04", "end": "2021-01-10"},
        {"anchor": "2021-W01"},
        {"anchor": "2021-W01", "end": "10 Jan 2021"},
    ],
)
def test_a_timeline_with_an_end_shows_all_between(
    dated: FlaskClient, path: str, given: dict[str, str]
) -> None:
    page = dated.get(path, query_string=given).get_json()
    moments = [row["title"] for row in page["results"]]
    assert moments == ["2021-01-04T00:00"] * 3 + ["2021-01-10T23:59:59"] * 3
    assert (page["before"], page["after"], page["total"]) == (0, 6, 6)
    assert page["end"].startswith("2021-01-1")
    assert "more" not in page


@pytest.mark.parametrize(("anchor", "count"), [("2021-01", 18), ("last month", 6), ("march", 0)])
def test_a_month_as_an_anchor_shows_itself(dated: FlaskClient, anchor: str, count: int) -> None:
    page = dated.get("/api/timeline", query_string={"anchor": anchor}).get_json()
    assert (page["count"], page["total"]) == (count, count)


def test_a_day_as_an_anchor_shows_what_is_around_it(ask: Any) -> None:
    by_word = ask("/api/context/timeline", anchor="yesterday", depth_before=2, depth_after=2)
    assert by_word == ask(
        "/api/context/timeline", anchor="2026-11-07", depth_before=2, depth_after=2
    )


def test_a_number_is_a_record_and_else_a_year(dated: FlaskClient, ask: Any) -> None:
    page = dated.get("/api/timeline?anchor=2021&kinds=prompt").get_json()
    assert [row["title"][:4] for row in page["results"]] == ["2021"] * 8
    assert dated.get("/api/timeline?anchor=2021&end=2020").status_code == 404
    assert dated.get("/api/timeline?anchor=1234").status_code == 404
    assert ask("/api/timeline", anchor="20")["anchor"]["ref"] == "20"


REFS = refs_in_time()


@pytest.mark.parametrize("anchor", REFS)
@pytest.mark.parametrize("depth", [0, 1, 3, 50])
def test_from_a_record_to_an_end_it_says_how_many_more_there_are(
    ask: Any, anchor: str, depth: int
) -> None:
    place = REFS.index(anchor)
    page = ask("/api/timeline", anchor=anchor, end="2027", depth_after=depth)
    between = REFS[place + 1 :]
    assert refs_of(page) == REFS[place : place + 1 + depth]
    assert page["total"] == 1 + len(between)
    left = len(between[depth:])
    assert page.get("more", "0").split()[0] == str(left)
    if left and depth:
        assert f"anchor={between[depth - 1]}" in page["more"]


def test_what_is_left_out_is_reached_from_the_last_row(ask: Any) -> None:
    shown = refs_of(ask("/api/timeline", anchor="2025", end="today", depth_after=9))
    while "more" in (page := ask("/api/timeline", anchor=shown[-1], end="today", depth_after=9)):
        shown += refs_of(page)[1:]
    assert shown + refs_of(page)[1:] == REFS


def test_records_before_the_anchor_are_shown_if_asked_for(ask: Any) -> None:
    page = ask("/api/timeline", anchor="12", end="2026-11-01", depth_before=2)
    place = REFS.index("12")
    assert refs_of(page)[:3] == REFS[place - 2 : place + 1]


def test_filters_and_kinds_hold_between_too(dated: FlaskClient) -> None:
    given = {"anchor": "2021", "kinds": "prompt", "project": "none"}
    assert dated.get("/api/timeline", query_string=given).get_json()["total"] == 0
    del given["project"]
    rows = dated.get("/api/timeline", query_string=given).get_json()["results"]
    assert {row["kind"] for row in rows} == {"prompt"}


def test_from_the_best_match_to_an_end(ask: Any) -> None:
    page = ask("/api/timeline", query="ECONNREFUSED", end="2026-11-03")
    place = REFS.index("10")
    assert refs_of(page) == REFS[place : REFS.index("7") + 1]


@pytest.mark.parametrize(
    "given", [{"anchor": "2021-02", "end": "2021-01"}, {"anchor": "today", "end": "yesterday"}]
)
def test_an_end_before_the_date_is_refused(refuse: Any, given: dict[str, str]) -> None:
    assert "before the anchor" in refuse("/api/timeline", **given)["errors"]["end"][0]


def test_an_end_before_the_record_is_refused(refuse: Any) -> None:
    assert "The end is before 12" in refuse("/api/timeline", anchor="12", end="2021")["detail"]


def test_the_text_names_the_end_and_what_is_left(client: FlaskClient) -> None:
    text = client.get(
        "/api/timeline", query_string={"anchor": "2026-11", "depth_after": 2, "render": "text"}
    ).get_data(as_text=True)
    assert text.splitlines()[0].startswith("2 of ")
    assert "end: 2026-11-30T23:59:59Z" in text.splitlines()[0]
    assert "\nmore: " in text


# -- the command line and MCP ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("search observations --since 2026-10 --until 2026-10", "--during 2026-10"),
        ("search observations --on 2026-10", "--during 'October 2026'"),
    ],
)
def test_the_command_line_lists_a_span_without_words(words: str, same: str) -> None:
    with sample_worker() as address:
        first, second = (
            run_command(f"memsvc {line} --json", address)
            for line in (words, f"search observations {same}")
        )
    assert '"2026-10-' in first
    assert _results(first) == _results(second)


def _results(printed: str) -> Any:
    return json.loads(printed)["results"]


def test_every_search_command_and_the_timeline_take_a_span() -> None:
    with sample_worker() as address:
        for command in (
            *("search", "search sessions", "search prompts", "search by-type decision"),
            *("search by-concept gotcha", "search by-file src/payments"),
        ):
            printed = run_command(f"memsvc {command} --during 2026-10 --limit 3", address)
            assert "during: 2026-10-01 to 2026-10-31" in printed, command
        ended = run_command("memsvc timeline 2026-10-01 --end 2026-10-31", address)
        assert ended == run_command("memsvc context timeline 2026-10", address)


def test_the_command_line_refuses_nothing_with_the_names_of_what_to_give() -> None:
    with sample_worker() as address:
        port = address.rsplit(":", 1)[1]
        ran = CliRunner().invoke(cli.memsvc, ["search", "observations"], env={"MEMSVC_PORT": port})
    assert ran.exit_code == USAGE_ERROR
    assert "give a query or one of these filters" in ran.output


def test_help_of_the_command_names_the_short_flags() -> None:
    told = CliRunner().invoke(cli.memsvc, ["search", "observations", "--help"]).output
    assert "--since" in told
    assert "--during" in told
