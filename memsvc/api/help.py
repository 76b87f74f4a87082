"""The table of operations told to others: help in three forms, and OpenAPI."""

import difflib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from memsvc import __version__
from memsvc.api.operations import OPERATIONS, Operation, find_operation
from memsvc.api.parameter_facts import describe_parameter, parameter_text
from memsvc.application.services import Services
from memsvc.core.errors import KINDS as ERRORS
from memsvc.core.errors import BadRequest
from memsvc.core.filters import Filter
from memsvc.core.records import Kind
from memsvc.core.tokens import ESTIMATOR


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


def error_codes() -> list[dict[str, Any]]:
    """The closed list of error codes with their status and title."""
    return [{"code": e.code, "status": e.status, "title": e.title} for e in ERRORS]
