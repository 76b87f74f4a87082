"""Recent context: the last work sessions, the last observations by a query."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import DAY, HOUR, NOW, numbered

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.records import Observation, Summary


def test_recent_shows_the_work_sessions_last_worked_on(ask: Any) -> None:
    page = ask("/api/context/recent")
    assert [row["session_id"] for row in page["results"]] == ["work-1", "work-2", "work-3"]
    assert (page["count"], page["total"], page["strategy"]) == (3, 4, "temporal")
    first = page["results"][0]
    assert (first["project"], first["status"]) == ("shop", "completed")
    assert first["counts"] == {"observations": 8, "sessions": 3, "prompts": 3}


def test_a_work_session_lists_its_newest_records_first(ask: Any) -> None:
    row = ask("/api/context/recent", limit=1)["results"][0]
    assert [child["ref"] for child in row["observations"]][:4] == ["1", "2", "9", "8"]
    for kind in ("observations", "sessions", "prompts"):
        moments = [child["created_at_epoch"] for child in row[kind]]
        assert moments == sorted(moments, reverse=True)
        assert moments


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (50, 4)])
def test_recent_shows_as_many_work_sessions_as_asked(ask: Any, limit: int, count: int) -> None:
    assert ask("/api/context/recent", limit=limit)["count"] == count


@pytest.mark.parametrize("limit", [0, 51, "x"])
def test_recent_shows_fifty_work_sessions_at_most(refuse: Any, limit: object) -> None:
    assert "1 to 50" in refuse("/api/context/recent", limit=limit)["errors"]["limit"][0]


def test_recent_keeps_to_its_project(ask: Any) -> None:
    page = ask("/api/context/recent", project="Docs")
    assert [row["session_id"] for row in page["results"]] == ["work-3"]
    assert page["total"] == 1


def test_recent_promises_no_page_that_it_cannot_give(client: FlaskClient) -> None:
    for path in ("recent?limit=1", "recent?limit=1&query=payment", "inject?limit=1"):
        assert client.get(f"/api/context/{path}&render=json").get_json()["next_offset"] is None
        assert "offset=" not in client.get(f"/api/context/{path}&render=text").get_data(
            as_text=True
        )


def _observed(count: int, title: str, project: str = "shop") -> list[Observation]:
    return [
        Observation(
            title=f"{title} {number}", project=project, created_at_epoch=NOW - number * HOUR
        )
        for number in range(count)
    ]


def test_a_query_ranks_the_last_fifty_and_never_finds_anything_older(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    old = Observation(title="payment payment", project="shop", created_at_epoch=NOW - DAY * 300)
    other = _observed(60, "payment elsewhere", "api")
    own_store.write(numbered([*_observed(49, "nothing"), old, *other]))
    page = own_client.get("/api/context/recent?query=payment&project=shop").get_json()
    assert [row["title"] for row in page["results"]] == ["payment payment"]
    own_client.post("/api/observations", json={"title": "one more", "project": "shop"})
    page = own_client.get("/api/context/recent?query=payment&project=shop").get_json()
    assert (page["count"], page["total"], page["strategy"]) == (0, 0, "temporal")


def test_a_query_puts_relevance_before_time_among_the_last(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    newer = Observation(title="the payment page", created_at_epoch=NOW)
    better = Observation(title="payment retry", created_at_epoch=NOW - DAY)
    own_store.write(numbered([newer, better, *_observed(10, "nothing")]))
    page = own_client.get("/api/context/recent?query=payment+retry").get_json()
    assert [row["title"] for row in page["results"]] == ["payment retry", "the payment page"]
    assert [row["score"] for row in page["results"]] == sorted(
        (row["score"] for row in page["results"]), reverse=True
    )


@pytest.mark.parametrize("query", ["!!!", "zzqqy", "-payment", "type:bugfix"])
def test_any_query_is_an_answer(ask: Any, query: str) -> None:
    assert ask("/api/context/recent", query=query)["query"] == query


def test_an_empty_store_has_no_recent_context(own_client: FlaskClient) -> None:
    for path in ("recent", "recent?query=x", "inject"):
        page = own_client.get(f"/api/context/{path}", headers={"Accept": "application/json"})
        assert (page.status_code, page.get_json()["count"]) == (200, 0)


def test_records_without_a_work_session_are_recent_too(own_client: FlaskClient) -> None:
    own_client.post("/api/observations", json={"title": "alone", "project": "shop"})
    rows = own_client.get("/api/context/recent").get_json()["results"]
    assert [child["title"] for row in rows for child in row["observations"]] == ["alone"]


def test_a_forgotten_work_session_is_not_recent_any_more(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    own_store.write(numbered([Summary(request="secret", project="shop", session_id="w1")]))
    assert own_client.delete("/api/session/1").status_code == 200
    assert own_client.get("/api/context/recent").get_json()["results"] == []
