"""/openapi.json is OpenAPI 3.1 and holds every route with its parameters."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator

from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS


@pytest.fixture
def spec(ask: Any) -> Any:
    return ask("/openapi.json")


def test_is_valid_openapi(spec: Any) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(spec).iter_errors()] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path}")
def test_holds_every_route_with_its_parameters(spec: Any, operation: Operation) -> None:
    for path in (operation.path, *operation.aliases):
        entry = spec["paths"][path.replace("<id>", "{id}")][operation.method.lower()]
        names = {parameter["name"] for parameter in entry.get("parameters", [])}
        if operation.body == "parameters":
            names = set(entry["requestBody"]["content"]["application/json"]["schema"]["properties"])
        assert names == set(operation.schema.fields)


def test_names_every_operation_once(spec: Any) -> None:
    ids = [entry["operationId"] for path in spec["paths"].values() for entry in path.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere(spec: Any) -> None:
    for name in re.findall(r"#/components/schemas/(\w+)", str(spec)):
        assert name in spec["components"]["schemas"]


def test_parameters_say_their_limits_and_defaults(spec: Any) -> None:
    entry = spec["paths"]["/api/search/observations"]["get"]
    told = {parameter["name"]: parameter for parameter in entry["parameters"]}
    assert told["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 20,
    }
    assert told["query"]["required"] is False
    assert told["type"]["schema"]["type"] == "array"
    assert told["format"]["schema"]["enum"] == ["index", "full"]


@pytest.mark.parametrize(
    ("method", "path", "status", "accept"),
    [
        ("GET", "/api/search/semantic?query=x", 200, "application/json"),
        ("GET", "/api/readiness", 200, "text/markdown"),
        ("GET", "/api/search/help", 200, "text/html"),
        ("GET", "/api/stats", 304, "application/json"),
        ("GET", "/api/stats?x=1", 400, "text/markdown"),
        ("POST", "/api/observations", 201, "text/markdown"),
        ("POST", "/api/observations", 200, "application/json"),
        ("DELETE", "/api/observation/1", 200, "text/markdown"),
        ("DELETE", "/api/observation/1", 404, "text/markdown"),
    ],
)
def test_holds_every_status_and_form_of_an_answer(
    own_client: FlaskClient, spec: Any, method: str, path: str, status: int, accept: str
) -> None:
    if status in (200, 404) and method != "GET":
        own_client.post("/api/observations", json={"title": "x"})
    if status == 404:
        own_client.delete(path)
    asked = {"Accept": accept, **({"If-None-Match": "*"} if status == 304 else {})}
    response = own_client.open(path, method=method, headers=asked, json={"title": "x"})
    assert response.status_code == status
    entry = spec["paths"][path.split("?")[0].replace("/1", "/{id}")][method.lower()]
    described = entry["responses"].get(str(status)) or entry["responses"][f"{status // 100}XX"]
    assert status == 304 or response.mimetype in described["content"]
