"""The table of operations as OpenAPI 3.1."""

from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from memsvc import __version__
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import Parameter, parameters_of
from memsvc.core.records import Kind
from memsvc.schemas.records import record_schema
from memsvc.schemas.results import RESULTS, Result

TOKEN = "token"
"""The name of the security scheme."""


def build_openapi(base: str, needs_token: bool = False) -> dict[str, Any]:
    """The OpenAPI 3.1 description of all operations, for a worker that may need a token."""
    with_token: dict[str, list[str]] = {TOKEN: []}
    spec = APISpec(
        "memsvc",
        __version__,
        "3.1.0",
        plugins=[MarshmallowPlugin()],
        info={"description": "The memory a coding agent searches."},
        servers=[{"url": base}],
        security=[with_token] if needs_token else [{}, with_token],
    )
    spec.components.security_scheme(TOKEN, {"type": "http", "scheme": "bearer"})
    for name, schema in RESULTS.items():
        spec.components.schema(name, schema=schema)
    for kind in Kind:
        spec.components.schema(f"{kind.capitalize()}Record", schema=record_schema(kind))
    for operation in OPERATIONS:
        for path in (operation.path, *operation.aliases):
            entries = {operation.method.lower(): _entry(operation, path)}
            spec.path(path.replace("<id>", "{id}"), operations=entries)
    return spec.to_dict()


def _entry(operation: Operation, path: str) -> dict[str, Any]:
    alias = "" if path == operation.path else path.replace("/", "-")
    entry: dict[str, Any] = {
        "operationId": f"{operation.name}-{operation.method.lower()}{alias}",
        "summary": operation.summary,
        "description": f"Use it {operation.when}. Cost: {operation.cost}.",
        "responses": _responses(operation),
    }
    if operation.name == "health":
        entry["security"] = []
    if operation.body:
        entry["requestBody"] = {"required": True, "content": {"application/json": _body(operation)}}
    if operation.body != "parameters":
        found = parameters_of(operation.schema.fields)
        entry["parameters"] = [_parameter(operation, each) for each in found]
    return entry


def _responses(operation: Operation) -> dict[str, Any]:
    """The answers by status; a worker that is not ready answers in the shape of one that is."""
    found = {"200": _content(operation, operation.summary)}
    if operation.result is Result.WRITTEN:
        found["201"] = _content(operation, "At least one record was stored.")
    if operation.method == "GET":
        found["304"] = {"description": "The answer still has the tag in If-None-Match."}
    if operation.name == "readiness":
        found["503"] = _content(operation, "The store cannot be used.")
    problem = {"application/problem+json": {"schema": _reference("Problem")}}
    found["4XX"] = {"description": f"One of {', '.join(operation.errors)}", "content": problem}
    found["5XX"] = {"description": "The worker cannot answer.", "content": problem}
    return found


def _content(operation: Operation, description: str) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": _reference(operation.result)}}
    content["text/markdown"] = {"schema": {"type": "string"}}
    if operation.html:
        content["text/html"] = {"schema": {"type": "string"}}
    return {"description": description, "content": content}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _body(operation: Operation) -> dict[str, Any]:
    if operation.body == "parameters":
        members = parameters_of(operation.schema.fields)
        properties = {each.name: each.json_schema() for each in members}
        required = [each.name for each in members if each.required]
        return {"schema": {"type": "object", "properties": properties, "required": required}}
    records = [_reference(f"{kind.capitalize()}Record") for kind in operation.kinds]
    one = records[0] if len(records) == 1 else {"anyOf": records}
    many: list[dict[str, Any]] = [one, {"type": "array", "items": one}]
    if len(records) > 1:  # a bundle of lists
        many.append({"type": "object"})
    return {"schema": {"anyOf": many}}


def _parameter(operation: Operation, parameter: Parameter) -> dict[str, Any]:
    in_path = f"<{parameter.name}>" in operation.path
    return {
        "name": parameter.name,
        "in": "path" if in_path else "query",
        "required": parameter.required or in_path,
        "description": parameter.description,
        "schema": parameter.json_schema(),
    }
