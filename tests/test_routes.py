"""Every route answers, as JSON and as text, in the shape it promises."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from memsvc import __version__
from memsvc.api.help import example_path
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS, TEN
from memsvc.schemas.results import RESULTS

READABLE = [operation for operation in OPERATIONS if operation.method == "GET"]
PATHS = [
    pytest.param(operation, path, id=path)
    for operation in READABLE
    for path in (operation.path, *operation.aliases)
]


DOCUMENTS = {
    "help": {"service", "version", "base", "operations"},
    "projects": {"count", "projects"},
    "stats": {"kinds", "work_sessions", "projects", "types", "concepts", "days", "economics"},
    "health": {"status", "version"},
    "readiness": {"ready", "parts"},
}
"""What the answers that are no records hold; their schema allows anything."""


def _request(operation: Operation, path: str) -> str:
    return example_path(operation).replace(operation.path.split("<")[0], path.split("<")[0], 1)


@pytest.mark.parametrize(("operation", "path"), PATHS)
def test_answers_in_the_shape_that_openapi_shows(
    semantic_client: FlaskClient, operation: Operation, path: str
) -> None:
    asked = _request(operation, path)
    response = semantic_client.get(asked, headers={"Accept": "application/json"})
    assert response.status_code == 200
    assert response.content_type == "application/json; charset=utf-8"
    schema = RESULTS[operation.result]()
    body = response.get_json()
    assert schema.validate(body) == {}
    promised = {name for name, field in schema.fields.items() if field.required}
    assert promised | DOCUMENTS.get(operation.name, set()) <= body.keys()
    assert promised or operation.name in DOCUMENTS, "nothing says what this answer holds"


def test_health_says_that_the_worker_lives_and_which_version_it_is(ask: Any) -> None:
    assert ask("/api/health") == {"status": "ok", "version": __version__}


@pytest.mark.parametrize(("operation", "path"), PATHS)
@pytest.mark.parametrize("accept", ["text/markdown", "text/plain"])
def test_answers_as_text_to_who_accepts_text(
    semantic_client: FlaskClient, operation: Operation, path: str, accept: str
) -> None:
    response = semantic_client.get(_request(operation, path), headers={"Accept": accept})
    assert response.status_code == 200
    assert response.mimetype == "text/markdown"
    assert not response.get_data(as_text=True).startswith("{")


@pytest.mark.parametrize("operation", READABLE, ids=lambda operation: operation.name)
def test_render_text_gives_what_the_accept_header_gives(
    client: FlaskClient, operation: Operation
) -> None:
    path = example_path(operation)
    joined = f"{path}{'&' if '?' in path else '?'}render=text"
    by_header = client.get(path, headers={"Accept": "text/markdown"})
    assert client.get(joined).get_data() == by_header.get_data()


def test_the_ten_routes_are_those_of_the_original() -> None:
    assert [operation.path for operation in TEN] == [
        "/api/search/observations",
        "/api/search/sessions",
        "/api/search/prompts",
        "/api/search/by-type",
        "/api/search/by-concept",
        "/api/search/by-file",
        "/api/context/recent",
        "/api/context/timeline",
        "/api/timeline/by-query",
        "/api/search/help",
    ]


@pytest.mark.parametrize(
    ("alias", "path"),
    [
        ("/api/timeline/context?anchor=12", "/api/context/timeline?anchor=12"),
        ("/api/help?operation=by-file", "/api/search/help?operation=by-file"),
    ],
)
def test_an_alias_answers_as_the_route_it_stands_for(
    client: FlaskClient, alias: str, path: str
) -> None:
    assert client.get(alias).get_data() == client.get(path).get_data()


@pytest.mark.parametrize(
    ("path", "given", "refs"),
    [
        ("/api/search/observations", {"query": "idempotency"}, {"1", "2"}),
        ("/api/search/sessions", {"query": "bank"}, {"S1"}),
        ("/api/search/prompts", {"query": "guide"}, {"P5"}),
        ("/api/search/by-type", {"type": "refactor"}, {"6"}),
        ("/api/search/by-concept", {"concept": "why-it-exists"}, {"11"}),
        ("/api/search", {"query": "catalogue"}, {"19", "S5", "P6"}),
        ("/api/search", {"project": "docs", "kinds": "session,prompt"}, {"S3", "P5"}),
    ],
)
def test_a_search_finds_what_was_stored(
    ask: Any, path: str, given: dict[str, str], refs: set[str]
) -> None:
    assert {row["ref"] for row in ask(path, **given)["results"]} == refs


def test_a_page_echoes_the_query_and_counts_itself(ask: Any) -> None:
    page = ask("/api/search/observations", query="double charge", limit=1)
    assert (page["query"], page["format"], page["strategy"]) == (
        "double charge",
        "index",
        "fulltext",
    )
    assert (page["count"], page["offset"], page["limit"], page["next_offset"]) == (1, 0, 1, 1)
    assert page["total"] > 1


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/api/search/by-type", "type", "decision"),
        ("/api/search/by-concept", "concept", "gotcha"),
        ("/api/search/by-file", "filePath", "src/payments"),
    ],
)
def test_a_route_by_metadata_echoes_its_own_parameter(
    ask: Any, path: str, name: str, value: str
) -> None:
    page = ask(path, **{name: value, "query": "payment"})
    assert (page[name], page["query"]) == (value, "payment")


def test_an_index_row_names_prices_and_dates_its_record(ask: Any) -> None:
    page = ask("/api/search/observations", query="idempotency retry", limit=1)
    (row,), full = page["results"], ask("/api/observation/1")
    assert page["project"] == "shop"
    assert {name: row[name] for name in ("id", "ref", "kind", "type", "title")} == {
        "id": 1,
        "ref": "1",
        "kind": "observation",
        "type": "bugfix",
        "title": "Fixed the double charge at checkout",
    }
    assert (row["created_at"], row["created_at_epoch"]) == (
        full["created_at"],
        full["created_at_epoch"],
    )
    assert "**retry**" in row["snippet"]
    assert row["read_tokens"] == (len(_compact(full)) + 3) // 4


def _compact(document: Any) -> bytes:
    import json

    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def test_a_full_row_holds_every_field_with_lists_as_lists(ask: Any) -> None:
    row = ask("/api/search/observations", query="idempotency retry", limit=1, format="full")
    record = ask("/api/observation/1")
    assert row["results"][0].items() >= record.items()
    assert record["facts"] == [
        "PaymentClient.charge sends an Idempotency-Key",
        "the key lives for 24 hours",
    ]
    assert record["concepts"] == ["problem-solution", "gotcha"]
    assert (record["source"], record["source_id"]) == ("samples", "1")


def test_the_answer_states_what_it_costs_and_what_reading_all_costs(client: FlaskClient) -> None:
    response = client.get("/api/search/observations?query=payment")
    page = response.get_json()
    assert page["tokens"] == {
        "this": (len(response.get_data()) + 3) // 4,
        "full": sum(row["read_tokens"] for row in page["results"]),
    }


@pytest.mark.parametrize(("path", "title"), [("session/1", "request"), ("prompt/1", "prompt_text")])
def test_one_record_is_read_by_its_number(ask: Any, path: str, title: str) -> None:
    record = ask(f"/api/{path}")
    assert record["id"] == 1
    assert "charged twice" in record[title]


def test_a_batch_keeps_the_order_asked_for_and_lists_what_is_missing(ask: Any) -> None:
    page = ask("/api/observations/batch", ids="P3,#2,999,S1,2")
    assert [row["ref"] for row in page["results"]] == ["P3", "2", "S1"]
    assert page["missing"] == ["999"]


@pytest.mark.parametrize("ids", [[2, "S1", "#3"], "2,S1,3", ["2,S1", 3]])
def test_a_batch_may_be_asked_for_in_a_body(client: FlaskClient, ids: Any) -> None:
    response = client.post("/api/observations/batch", json={"ids": ids})
    assert response.status_code == 200
    assert [row["ref"] for row in response.get_json()["results"]] == ["2", "S1", "3"]


def test_a_batch_in_a_body_takes_order_project_and_budget(client: FlaskClient) -> None:
    body = {"ids": [1, 2, 3, 17], "orderBy": "date_asc", "project": "shop", "max_tokens": 5000}
    page = client.post("/api/observations/batch", json=body).get_json()
    assert [row["ref"] for row in page["results"]] == ["17", "2", "1"]
    assert page["missing"] == ["3"]


def test_projects_and_stats_count_what_is_stored(ask: Any) -> None:
    projects = {entry["project"]: entry for entry in ask("/api/projects")["projects"]}
    assert projects["docs"]["observations"] == 4 - 1
    stats = ask("/api/stats")
    assert stats["kinds"] == {"observations": 20, "sessions": 5, "prompts": 6}
    assert sum(stats["projects"].values()) == 31
    assert stats["types"]["bugfix"] == 4
    assert stats["concepts"]["trade-off"] == 2
    assert stats["days"]["2026-11-08"] >= 1


def test_the_root_shows_the_help(client: FlaskClient) -> None:
    assert client.get("/").get_data() == client.get("/api/search/help").get_data()


def test_readiness_names_each_part(ask: Any) -> None:
    answer = ask("/api/readiness")
    assert answer["ready"] is True
    assert set(answer["parts"]) == {"store", "fulltext", "semantic"}
