"""The table of operations told to others: help in three forms, and OpenAPI."""

import difflib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import fields, validate

from memsvc import __version__
from memsvc.errors import KINDS as ERRORS
from memsvc.errors import BadRequest
from memsvc.model import Filter, Kind
from memsvc.operations import OPERATIONS, Operation, find_operation
from memsvc.parameters import CommaList, Date, Days
from memsvc.record_schemas import record_schema
from memsvc.results import RESULTS, result_of
from memsvc.services import Services
from memsvc.tokens import ESTIMATOR


def build_help(services: Services, given: Mapping[str, Any], base: str) -> dict[str, Any]:
    """The catalogue, or the one operation asked for; `base` is the worker's address."""
    operations = list(OPERATIONS)
    if name := given.get("operation"):
        operations = [_named(name)]
    newest = newest_refs(services)
    return {
        "service": "memsvc",
        "version": __version__,
        "base": base,
        "estimator": ESTIMATOR,
        "text": "Accept: text/markdown, or render=text, gives any answer as lean text",
        "operations": [describe(operation, base, newest) for operation in operations],
        **({} if given.get("operation") else {"vocabulary": vocabulary(services)}),
    }


def _named(name: str) -> Operation:
    operation = find_operation(name)
    if operation:
        return operation
    names = list(dict.fromkeys(operation.name for operation in OPERATIONS))
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names)}"
    message = f"given {name[:80]!r}; {hint}"
    raise BadRequest(f"operation {message}", {"operation": [message]})


def newest_refs(services: Services) -> dict[str, str]:
    """The newest record of each kind: examples that read one name one that is there."""
    with services.store.snapshot():
        found = {
            kind: services.store.page([kind], Filter(), newest_first=True, limit=1, offset=0)
            for kind in Kind
        }
    return {str(kind): str(hits[0].ref) for kind, hits in found.items() if hits}


def describe(operation: Operation, base: str, newest: Mapping[str, str]) -> dict[str, Any]:
    """One operation in words and examples."""
    return {
        "name": operation.name,
        "method": operation.method,
        "path": operation.path,
        "aliases": list(operation.aliases),
        "summary": operation.summary,
        "when": operation.when,
        "parameters": [
            describe_parameter(name, field) for name, field in operation.schema.fields.items()
        ],
        **_example(operation, base, newest),
        "cost": operation.cost,
        "errors": list(operation.errors),
    }


def _example(operation: Operation, base: str, newest: Mapping[str, str]) -> dict[str, str]:
    url = f"'{base}{example_path(operation, newest)}'"
    if operation.method == "DELETE":  # nothing to be tried out
        return {}
    if operation.sample:
        header = "-H 'Content-Type: application/json'"
        return {"example": f"curl -s {header} -d '{operation.sample}' {url}"}
    return {"example": f"curl -s {url}"}


def example_path(operation: Operation, newest: Mapping[str, str] | None = None) -> str:
    """The path and query of a request that runs as it stands; ids name the newest records."""
    path, query = operation.path, dict(operation.example)
    if newest and "ids" in query:
        query["ids"] = ",".join(newest.values())
    if "<id>" in path:
        ref = (newest or {}).get(operation.name, "")
        path = path.replace("<id>", ref.lstrip("SP") or query.get("id", "1"))
        query.pop("id", None)
    return f"{path}?{urlencode(query, safe=',/')}" if query else path


def describe_parameter(name: str, field: fields.Field[Any]) -> dict[str, Any]:
    """One parameter: its type, whether it is required, its default, its range, its meaning."""
    described: dict[str, Any] = {"name": name, "type": _type(field), "required": field.required}
    if isinstance(field.load_default, str | int | list):
        described["default"] = field.load_default
    described |= _range(field)
    return {**described, "meaning": field.metadata.get("description", "")}


def _type(field: fields.Field[Any]) -> str:
    named = ((CommaList, "list"), (Date, "date"), (Days, "days"), (fields.Integer, "number"))
    return next((word for cls, word in named if isinstance(field, cls)), "text")


def _range(field: fields.Field[Any]) -> dict[str, Any]:
    inner = field.inner if isinstance(field, CommaList) else field
    for validator in inner.validators:
        if isinstance(validator, validate.Range):
            return {"range": f"{validator.min}-{validator.max}"}
        if isinstance(validator, validate.OneOf):
            return {"allowed": list(map(str, validator.choices))}
    return {}


def vocabulary(services: Services) -> dict[str, Any]:
    """The types, concepts and projects in use, with how often each occurs."""
    store = services.store
    with store.snapshot():
        return {
            "types": store.count_values(Kind.OBSERVATION, "type"),
            "concepts": store.count_values(Kind.OBSERVATION, "concept"),
            "projects": {p.name: sum(p.counts.values()) for p in store.projects()},
        }


def help_text(catalogue: Mapping[str, Any]) -> str:
    """The catalogue as markdown, for an agent."""
    head = (
        f"# memsvc {catalogue['version']} · {catalogue['base']}\n{catalogue['text']}. "
        f"Token counts: {catalogue['estimator']}.\n"
    )
    parts = [head, *map(_operation_text, catalogue["operations"])]
    if words := catalogue.get("vocabulary"):
        parts += ["## In use\n", *(f"- {name}: {_counted(words[name])}\n" for name in words)]
    return "\n".join(parts)


def _counted(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count}" for name, count in list(counts.items())[:40]]
    return ", ".join(shown) + (" …" if len(counts) > 40 else "")


def _operation_text(operation: Mapping[str, Any]) -> str:
    also = f" (also {', '.join(operation['aliases'])})" if operation["aliases"] else ""
    lines = [
        f"## {operation['name']}: {operation['method']} {operation['path']}{also}",
        f"{operation['summary']} Use it {operation['when']}.",
        *map(parameter_text, operation["parameters"]),
        f"Cost: {operation['cost']}. Errors: {', '.join(operation['errors'])}.",
    ]
    if "example" in operation:
        lines.append(f"    {operation['example']}")
    return "\n".join(lines) + "\n"


def parameter_text(parameter: Mapping[str, Any]) -> str:
    """One described parameter as a line."""
    facts = ["required"] if parameter["required"] else []
    if "default" in parameter:
        facts.append(f"default {default_text(parameter['default'])}")
    facts += [parameter["range"]] if "range" in parameter else []
    facts += ["|".join(parameter["allowed"])] if "allowed" in parameter else []
    shape = ", ".join([parameter["type"], *facts])
    return f"- {parameter['name']} ({shape}): {parameter['meaning']}"


def default_text(default: Any) -> str:
    """A default value in words."""
    return ",".join(default) if isinstance(default, list) else str(default)


def error_codes() -> list[dict[str, Any]]:
    """The closed list of error codes with their status and title."""
    return [{"code": e.code, "status": e.status, "title": e.title} for e in ERRORS]


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


def parameter_schema(field: fields.Field[Any]) -> dict[str, Any]:
    """JSON Schema of a parameter, as far as a schema can say it."""
    described = describe_parameter("", field)
    inner: dict[str, Any] = {"type": "integer" if described["type"] == "number" else "string"}
    if "allowed" in described:
        inner["enum"] = described["allowed"]
    if "range" in described:
        low, high = described["range"].split("-")
        inner |= {"minimum": int(low), "maximum": int(high)}
    schema = {"type": "array", "items": inner} if described["type"] == "list" else inner
    return schema | ({"default": described["default"]} if "default" in described else {})
