"""An ETag changes when, and only when, the answer would."""

import pytest
from flask.testing import FlaskClient
from samples import NOW, services_over

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.api.help import example_path
from memsvc.api.operations import OPERATIONS
from memsvc.application.services import Services
from memsvc.entrypoints.http.app import create_app

PATHS = [example_path(operation) for operation in OPERATIONS if operation.method == "GET"]


@pytest.mark.parametrize("path", [*PATHS, "/openapi.json", "/"])
def test_an_answer_that_is_known_is_not_sent_again(semantic_client: FlaskClient, path: str) -> None:
    first = semantic_client.get(path)
    again = semantic_client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.get_data()) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


def test_each_form_of_an_answer_has_an_etag_of_its_own(client: FlaskClient) -> None:
    accepts = ["application/json", "text/markdown", "text/html"]
    answers = [client.get("/api/search/help", headers={"Accept": accept}) for accept in accepts]
    assert len({answer.headers["ETag"] for answer in answers}) == 3
    assert all("Accept" in answer.headers["Vary"] for answer in answers)


def test_a_write_changes_the_answers_it_touches_and_no_other(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    own_client.post("/api/observations", json={"title": "a marmot", "project": "den"})
    touched, other = "/api/search?query=marmot&project=den", "/api/observation/1"
    tags = [own_client.get(path).headers["ETag"] for path in (touched, other)]
    own_client.post("/api/observations", json={"title": "one more marmot", "project": "den"})
    changed = own_client.get(touched, headers={"If-None-Match": tags[0]})
    same = own_client.get(other, headers={"If-None-Match": tags[1]})
    assert (changed.status_code, same.status_code) == (200, 304)


def test_forgetting_changes_the_answer(own_client: FlaskClient) -> None:
    own_client.post("/api/observations", json={"title": "a marmot"})
    tag = own_client.get("/api/search?query=marmot").headers["ETag"]
    own_client.delete("/api/observation/1")
    response = own_client.get("/api/search?query=marmot", headers={"If-None-Match": tag})
    assert response.status_code == 200


def test_time_alone_changes_nothing_within_the_hour(store: SqliteStore) -> None:
    later = create_app(Services(store, lambda: NOW + 59 * 60_000)).test_client()
    now = create_app(services_over(store)).test_client()
    for path in ("/api/search/observations?query=payment", "/api/context/recent", "/api/stats"):
        tag = now.get(path).headers["ETag"]
        assert later.get(path, headers={"If-None-Match": tag}).status_code == 304


def test_errors_and_writes_carry_no_etag(client: FlaskClient) -> None:
    assert "ETag" not in client.get("/api/observation/999").headers
    assert "ETag" not in client.post("/api/observations/batch", json={"ids": [1]}).headers
