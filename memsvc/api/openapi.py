"""TODO openapi."""

from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from memsvc import __version__
from memsvc.api.operations import OPERATIONS, Operation
from memsvc.api.parameter_facts import parameter_schema
from memsvc.core.records import Kind
from memsvc.schemas.records import record_schema
from memsvc.schemas.results import RESULTS, result_of


def build_openapi(base: str) -> dict[str, Any]:
    """OpenAPI 3.1 of every operation."""
    spec = APISpec(
        "memsvc",
        __version__,
        "3.1.0",
        plugins=[MarshmallowPlugin()],
        info={"description": "The memory a coding agent searches."},
        servers=[{"url": base}],
    )
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
        "responses": {
            "200": _content(operation, result_of(operation)),
            "4XX": {
                "description": f"One of {', '.join(operation.errors)}",
                "content": {"application/problem+json": {"schema": _reference("Problem")}},
            },
        },
    }
    if operation.body:
        entry["requestBody"] = {"required": True, "content": {"application/json": _body(operation)}}
    if operation.body != "parameters":
        entry["parameters"] = [_openapi_parameter(operation, n) for n in operation.schema.fields]
    return entry


def _content(operation: Operation, schema: str) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": _reference(schema)}}
    if operation.method == "GET":
        content["text/markdown"] = {"schema": {"type": "string"}}
    return {"description": operation.summary, "content": content}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _body(operation: Operation) -> dict[str, Any]:
    if operation.body == "parameters":
        members = operation.schema.fields
        properties = {name: parameter_schema(field) for name, field in members.items()}
        required = [name for name, field in members.items() if field.required]
        return {"schema": {"type": "object", "properties": properties, "required": required}}
    kinds = [kind for kind in Kind if operation.name == f"add-{kind}s"] or list(Kind)
    records = [_reference(f"{kind.capitalize()}Record") for kind in kinds]
    one = records[0] if len(records) == 1 else {"anyOf": records}
    many: list[dict[str, Any]] = [one, {"type": "array", "items": one}]
    if operation.name == "import":
        many.append({"type": "object"})
    return {"schema": {"anyOf": many}}


def _openapi_parameter(operation: Operation, name: str) -> dict[str, Any]:
    field = operation.schema.fields[name]
    in_path = f"<{name}>" in operation.path
    entry: dict[str, Any] = {
        "name": name,
        "in": "path" if in_path else "query",
        "required": field.required or in_path,
        "description": field.metadata.get("description", ""),
        "schema": parameter_schema(field),
    }
    return entry
