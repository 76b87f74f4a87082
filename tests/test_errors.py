"""Every error is a problem (RFC 9457) that says what was given, what is allowed, where to look."""

import contextlib
import importlib
import json
import pkgutil
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import NOW, services_over

import memsvc
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.api.help import error_codes
from memsvc.api.operations import OPERATIONS
from memsvc.application.services import Services
from memsvc.core.errors import ERRORS, MemsvcError, StoreUnavailable
from memsvc.core.records import Record, Ref
from memsvc.entrypoints.http.app import MAX_BODY, create_app
from memsvc.schemas.results import Problem

JSON = "application/json"


def _problem(response: Any, status: int, code: str) -> Any:
    """The problem in a response, its shape checked."""
    assert response.status_code == status
    assert response.content_type == "application/problem+json; charset=utf-8"
    problem = response.get_json()
    assert Problem().validate(problem) == {}
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["error"] == problem["detail"]
    assert problem["type"].endswith(f"#{code}")
    return problem


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/search/observations", "query"),
        ("/api/search/sessions", "query"),
        ("/api/search/prompts", "query"),
        ("/api/search/by-type", "type"),
        ("/api/search/by-concept", "concept"),
        ("/api/search/by-file", "filePath"),
        ("/api/context/timeline", "anchor"),
        ("/api/timeline/by-query", "query"),
        ("/api/observations/batch", "ids"),
    ],
)
def test_a_missing_parameter_is_named_in_the_words_of_the_original(
    client: FlaskClient, path: str, name: str
) -> None:
    problem = _problem(client.get(path), 400, "bad_parameter")
    assert problem["error"] == f"Missing required parameter: {name}"
    (message,) = problem["errors"].pop(name)
    assert message.startswith("missing; ")
    assert not problem["errors"]


@pytest.mark.parametrize("blank", ["", "%20", "%09%0A"])
def test_a_blank_query_is_a_missing_one(client: FlaskClient, blank: str) -> None:
    problem = _problem(client.get(f"/api/search/prompts?query={blank}"), 400, "bad_parameter")
    assert problem["error"] == "Missing required parameter: query"


def test_a_problem_leads_to_the_help_of_its_operation(client: FlaskClient) -> None:
    problem = _problem(client.get("/api/search/by-file"), 400, "bad_parameter")
    help_path = problem["help"].removeprefix("http://localhost")
    assert client.get(help_path).get_json()["operations"][0]["name"] == "by-file"


@pytest.mark.parametrize("path", ["/api/observation/999", "/api/session/999", "/api/prompt/999"])
def test_a_record_that_is_not_there_is_named(client: FlaskClient, path: str) -> None:
    assert "999" in _problem(client.get(path), 404, "no_such_record")["detail"]
    assert "999" in _problem(client.delete(path), 404, "no_such_record")["detail"]


@pytest.mark.parametrize("anchor", ["999", "#999", "S999", "P999", "S100000000"])
def test_an_anchor_that_is_not_there_is_named(client: FlaskClient, anchor: str) -> None:
    response = client.get("/api/context/timeline", query_string={"anchor": anchor})
    assert anchor.lstrip("#") in _problem(response, 404, "no_such_record")["detail"]


@pytest.mark.parametrize("path", ["/api/nothing", "/nothing", "/api/search/observations/x", "/api"])
def test_a_route_that_is_not_there_leads_to_the_help(client: FlaskClient, path: str) -> None:
    problem = _problem(client.get(path), 404, "no_such_route")
    assert problem["help"].endswith("/api/search/help")


def test_doubled_slashes_name_no_route(client: FlaskClient) -> None:
    _problem(client.get("/api//health"), 404, "no_such_route")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/search/observations"), ("GET", "/api/import"), ("PUT", "/api/observation/1")],
)
def test_a_method_that_is_not_allowed_names_those_that_are(
    client: FlaskClient, method: str, path: str
) -> None:
    response = client.open(path, method=method)
    problem = _problem(response, 405, "method_not_allowed")
    allowed = {o.method for o in OPERATIONS if o.path.replace("<id>", "1") == path}
    assert allowed <= set(response.headers["Allow"].split(", "))
    assert all(name in problem["detail"] for name in allowed)


@pytest.mark.parametrize("path", [o.path for o in OPERATIONS if o.body])
def test_a_body_that_is_not_json_is_refused(client: FlaskClient, path: str) -> None:
    _problem(client.post(path, data="title=x"), 415, "not_json")
    _problem(client.post(path, data="{}", content_type="text/plain"), 415, "not_json")


@pytest.mark.parametrize("body", ["", "{", "[1,", "nul", "\xff", "[" * 40_000, "9" * 5000])
def test_a_body_that_cannot_be_parsed_is_refused(client: FlaskClient, body: str) -> None:
    data = body.encode("latin-1")
    response = client.post("/api/observations", data=data, content_type=JSON)
    _problem(response, 400, "bad_parameter")


def test_a_body_over_five_mebibytes_is_refused(client: FlaskClient) -> None:
    body = json.dumps({"title": "x" * MAX_BODY})
    response = client.post("/api/observations", data=body, content_type=JSON)
    assert "5 MiB" in _problem(response, 413, "body_too_large")["detail"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:37777", "10.0.0.1"]
)
def test_a_foreign_host_is_refused(client: FlaskClient, host: str) -> None:
    _problem(client.get("/api/health", headers={"Host": host}), 403, "foreign_host")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:37777", "[::1]:37777", "LOCALHOST:80"])
def test_loopback_names_are_served(client: FlaskClient, host: str) -> None:
    assert client.get("/api/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_a_foreign_origin_is_refused_whatever_it_asks(
    client: FlaskClient, origin: str, method: str
) -> None:
    path = "/api/observations/batch" if method == "POST" else "/api/observation/1"
    response = client.open(path, method=method, headers={"Origin": origin})
    _problem(response, 403, "foreign_host")


def test_a_page_of_our_own_may_ask(client: FlaskClient) -> None:
    response = client.get("/api/health", headers={"Origin": "http://127.0.0.1:37777"})
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/api/health", "/api/search/observations?query=payment", "/"])
def test_head_answers_as_get_without_a_body(client: FlaskClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert head.status_code == 200
    assert head.get_data() == b""
    assert head.headers["ETag"] == get.headers["ETag"]
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize("path", ["/api/health", "/api/observation/1", "/api/search/help"])
def test_a_slash_at_the_end_changes_nothing(client: FlaskClient, path: str) -> None:
    assert client.get(f"{path}/").get_data() == client.get(path).get_data()


class BrokenStore:
    """A store in which every look fails in the same way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        raise self.error

    def check(self) -> None:
        raise self.error

    def __getattr__(self, name: str) -> Any:
        raise self.error


def _broken(error: Exception) -> FlaskClient:
    services = Services(BrokenStore(error), lambda: NOW)  # type: ignore[arg-type]
    return create_app(services).test_client()


def test_a_bug_shows_a_request_id_and_no_internals(caplog: pytest.LogCaptureFixture) -> None:
    problem = _problem(
        _broken(RuntimeError("secret /home/me")).get("/api/observation/1"), 500, "internal_error"
    )
    assert "secret" not in json.dumps(problem)
    [request_id] = re.findall(r"[0-9a-f]{12}", problem["detail"])
    assert request_id in caplog.text
    assert "secret" in caplog.text


def test_what_no_one_foresaw_in_the_store_shows_no_internals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = _broken(MemsvcError("The store /home/me/memsvc.db answered: no such column: x"))
    problem = _problem(broken.get("/api/stats"), 500, "internal_error")
    assert "/home/me" not in json.dumps(problem)
    assert "no such column" in caplog.text


@pytest.mark.parametrize("path", ["/api/observation/1", "/api/search?query=x", "/api/projects"])
def test_a_store_that_cannot_be_used_is_no_bug_of_ours(path: str) -> None:
    sentence = "The store is locked by another program."
    problem = _problem(_broken(StoreUnavailable(sentence)).get(path), 503, "store_unavailable")
    assert problem["detail"] == sentence


def test_the_worker_lives_and_says_what_is_not_ready_while_the_store_is_away() -> None:
    broken = _broken(StoreUnavailable("The store is locked."))
    assert broken.get("/api/health").status_code == 200
    response = broken.get("/api/readiness", headers={"Accept": JSON})
    assert response.status_code == 503
    assert response.get_json()["parts"]["store"] == {"ok": False, "detail": "The store is locked."}
    text = broken.get("/api/readiness", headers={"Accept": "text/markdown"})
    assert text.status_code == 503
    assert "detail: The store is locked." in text.get_data(as_text=True)


@pytest.mark.parametrize(
    "path",
    [
        "/api/observation/1",
        "/api/observations/batch?ids=1",
        "/api/search?query=x",
        "/api/search/by-type?type=bugfix",
        "/api/search/by-file?filePath=src",
        "/api/context/recent",
        "/api/context/timeline?anchor=1",
        "/api/context/inject",
        "/api/projects",
        "/api/stats",
        "/api/search/help",
    ],
)
def test_a_file_that_is_damaged_while_we_run_is_a_503_in_one_sentence(
    own_client: FlaskClient, own_store: SqliteStore, tmp_path: Path, path: str
) -> None:
    own_client.post("/api/observations", json={"title": "x"})
    own_store.close()
    _overwrite_tables(tmp_path / "memsvc.db")
    with contextlib.closing(open_store(tmp_path / "memsvc.db")) as store:
        client = create_app(services_over(store)).test_client()
        problem = _problem(client.get(path), 503, "store_damaged")
    assert "damaged" in problem["detail"]
    assert str(tmp_path) not in problem["detail"]


def _overwrite_tables(path: Path) -> None:
    """Spoil the first page of every table and index, but not the schema itself."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage").fetchall()
    with path.open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * 4096)
            file.write(b"x" * 4096)


def _errors_of(base: type[MemsvcError]) -> set[type[MemsvcError]]:
    """An error of the package and all that derive from it, in whatever module."""
    derived = {each for child in base.__subclasses__() for each in _errors_of(child)}
    return {each for each in (base, *derived) if each.__module__.startswith("memsvc")}


def test_the_list_of_codes_is_closed_and_documented() -> None:
    for module in pkgutil.walk_packages(memsvc.__path__, "memsvc."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert set(ERRORS) == _errors_of(MemsvcError)
    told = {entry["code"]: (entry["status"], entry["title"]) for entry in error_codes()}
    assert told == {each.code: (each.status, each.title) for each in _errors_of(MemsvcError)}
    assert len(error_codes()) == len(told) == len(ERRORS), "two errors have one code"
    assert {code for o in OPERATIONS for code in o.errors} <= told.keys()
