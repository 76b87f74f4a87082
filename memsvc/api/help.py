"""Help as JSON and as markdown, generated from the table of operations."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from memsvc import __version__
from memsvc.answers.quoting import HIDDEN, MEMORY_IS_DATA, QUOTED, name_of, visible
from memsvc.answers.text import WHOLE
from memsvc.api.operation import Operation
from memsvc.api.parameter_facts import parameter_line, parameters_of
from memsvc.application.requests import HelpRequest
from memsvc.application.services import Services
from memsvc.core.dates import FORMS
from memsvc.core.errors import ERRORS, BadRequest
from memsvc.core.filters import EVERYTHING
from memsvc.core.records import Kind
from memsvc.core.tokens import ESTIMATOR

TEXT_OF_MEMORY: Final = (
    f"{MEMORY_IS_DATA} In text, several lines of a record each begin with {QUOTED.strip()!r}, and "
    f"{HIDDEN} stands for invisible or control characters."
)

COST_OF_READING: Final = (
    "A row's read_tokens, its last cell in text, is what reading its record costs in the same "
    f"form. {WHOLE!r} means that the row has all the words of its record; reading adds only its "
    "files, its labels and where it came from."
)


def build_help(
    operations: Sequence[Operation], services: Services, request: HelpRequest
) -> dict[str, Any]:
    """Help for these operations, or for the one requested."""
    one = request.operation
    newest = newest_refs(services)
    shown = [_named(operations, one)] if one else operations
    return {
        "service": "memsvc",
        "version": __version__,
        "base": request.base,
        "estimator": ESTIMATOR,
        "text": "Send Accept: text/markdown, or render=text, to get any answer as compact text",
        "memory": TEXT_OF_MEMORY if one else f"{TEXT_OF_MEMORY} {COST_OF_READING}",
        "operations": [describe(operation, request.base, newest) for operation in shown],
        **({} if one else {"dates": FORMS, "vocabulary": vocabulary(services)}),
    }


def _named(operations: Sequence[Operation], name: str) -> Operation:
    if operation := find_operation(operations, name):
        return operation
    names = list(dict.fromkeys(operation.name for operation in operations))
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names)}"
    raise BadRequest.of("operation", f"given {name[:80]!r}; {hint}")


def find_operation(operations: Sequence[Operation], name: str) -> Operation | None:
    """The operation with this name, command or path, or else the first whose path ends with it."""
    wanted = name.strip().lower().strip("/")
    for operation in operations:
        if wanted in (operation.name, operation.command, operation.path.strip("/")):
            return operation
    return next((o for o in operations if o.path.endswith(f"/{wanted}")), None)


def newest_refs(services: Services) -> dict[Kind, str]:
    """The newest ref of each kind, so that the examples read records that exist."""
    with services.store.snapshot():
        found = {
            kind: services.store.page([kind], EVERYTHING, newest_first=True, limit=1, offset=0)
            for kind in Kind
        }
    return {kind: str(hits[0].ref) for kind, hits in found.items() if hits}


def describe(operation: Operation, base: str, newest: Mapping[Kind, str]) -> dict[str, Any]:
    """One operation, described, with an example."""
    return {
        "name": operation.name,
        "method": operation.method,
        "path": operation.path,
        "aliases": list(operation.aliases),
        "summary": operation.summary,
        "when": operation.when,
        "parameters": [each.as_json() for each in parameters_of(operation.schema.fields)],
        **_example(operation, base, newest),
        "cost": operation.cost,
        "errors": list(operation.errors),
    }


def _example(operation: Operation, base: str, newest: Mapping[Kind, str]) -> dict[str, str]:
    """A curl command that runs as printed; none for DELETE."""
    path = f"{base}{example_path(operation, newest)}"
    if operation.method == "DELETE":  # an example would delete a record
        return {}
    if operation.sample:
        header = "-H 'Content-Type: application/json'"
        return {"example": f"curl -s {header} -d '{operation.sample}' '{path}'"}
    return {"example": f"curl -s '{path}'"}


def example_path(operation: Operation, newest: Mapping[Kind, str] | None = None) -> str:
    """The path and query of a request that runs as printed, with the refs of the newest records."""
    path, query = operation.path, dict(operation.example)
    refs = [ref for kind, ref in (newest or {}).items() if kind in operation.kinds]
    if operation.refs and refs:
        query[operation.refs] = ",".join(refs)
    for name in [name for name in query if f"<{name}>" in path]:
        path = path.replace(f"<{name}>", query.pop(name).lstrip("SP"))
    return f"{path}?{urlencode(query, safe=',/')}" if query else path


def vocabulary(services: Services) -> dict[str, Any]:
    """The types, concepts and projects in use, with their counts."""
    store = services.store
    with store.snapshot():
        return {
            "types": store.count_values(Kind.OBSERVATION, "type"),
            "concepts": store.count_values(Kind.OBSERVATION, "concept"),
            "projects": {
                p.name: sum(p.counts.values()) for p in store.projects(until=services.latest)
            },
        }


def help_text(catalogue: Mapping[str, Any]) -> str:
    """Help as markdown, for agents."""
    head = (
        f"# memsvc {catalogue['version']} · {catalogue['base']}\n{catalogue['text']}. "
        f"Token counts: {catalogue['estimator']}. {catalogue['memory']}\n"
    )
    blocks = [head, *map(_operation_text, catalogue["operations"])]
    if words := catalogue.get("vocabulary"):
        blocks.append(f"Dates: {catalogue['dates']}.\n")
        blocks += ["## In use\n", *(f"- {name}: {_counted(words[name])}\n" for name in words)]
    return visible("\n".join(blocks))


def _counted(counts: Mapping[str, int]) -> str:
    shown = [f"{name_of(name)} {count}" for name, count in list(counts.items())[:40]]
    return ", ".join(shown) + (" …" if len(counts) > 40 else "")


def _operation_text(operation: Mapping[str, Any]) -> str:
    also = f" (also {', '.join(operation['aliases'])})" if operation["aliases"] else ""
    lines = [
        f"## {operation['name']}: {operation['method']} {operation['path']}{also}",
        f"{operation['summary']} Use it {operation['when']}.",
        *map(parameter_line, operation["parameters"]),
        f"Cost: {operation['cost']}. Errors: {', '.join(operation['errors'])}.",
    ]
    if "example" in operation:
        lines.append(f"    {operation['example']}")
    return "\n".join(lines) + "\n"


def error_codes() -> list[dict[str, Any]]:
    """All error codes, with their status and title."""
    return [{"code": e.code, "status": e.status, "title": e.title} for e in ERRORS]
