"""The mem-search skill: its pages made from the table of operations, checked and installed."""

import shlex
from collections.abc import Iterator

from memsvc.api.help import example_path
from memsvc.api.operations import TEN, Operation
from memsvc.api.parameter_facts import describe_parameter

NAME = "mem-search"


ADDRESS = "http://127.0.0.1:37777"


SELDOM = ("dateStart", "dateEnd", "orderBy", "offset", "format", "explain", "render")
"""Parameters that every search takes and that one line tells of."""


# -- the pages ------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Every generated page by its place in the tree."""
    return {f"operations/{operation.name}.md": page_of(operation) for operation in TEN}


def page_of(operation: Operation) -> str:
    """The page of one operation; its answer is filled in by whoever runs its command."""
    words = ["memsvc", operation.command, *_example_words(operation)]
    return f"""# {operation.name}

{operation.summary} Use it {operation.when}.

```bash
{" ".join(words)}
```

```text
```

By HTTP: `curl -s '{ADDRESS}{example_path(operation)}&render=text'`

{_parameter_head(operation)}

{chr(10).join(_parameter_lines(operation))}

Cost: {operation.cost}. Errors: {_errors(operation)}.
"""


def _example_words(operation: Operation) -> Iterator[str]:
    """The example's parameters as a command takes them: the argument bare, the rest as options."""
    for name, value in operation.example.items():
        bare = name == operation.argument
        yield value if bare else f"--{name.replace('_', '-')} {shlex.quote(value)}"


def _parameter_head(operation: Operation) -> str:
    bare = f"`{operation.argument}` bare, others " if operation.argument else ""
    return f"Parameters (command: {bare}`--name value`):"


def _parameter_lines(operation: Operation) -> Iterator[str]:
    described = [describe_parameter(n, f) for n, f in operation.schema.fields.items()]
    for one in described:
        if one["name"] not in SELDOM:
            yield f"- `{one['name']}`{_facts(one)}: {one['meaning']}"
    seldom = [f"`{one['name']}`{_values(one)}" for one in described if one["name"] in SELDOM]
    yield f"- also {', '.join(seldom)}"


def _facts(described: dict[str, object]) -> str:
    facts = ["required"] if described["required"] else []
    if "default" in described and not isinstance(described["default"], list):
        facts.append(f"default {described['default']}")
    facts += [str(described["range"])] if "range" in described else []
    return f" ({', '.join(facts)})" if facts else ""


def _values(described: dict[str, object]) -> str:
    if described["type"] == "date":
        return " (2026-10-13, 7d)"
    values = described.get("allowed")
    return f" ({'|'.join(values)})" if isinstance(values, list) else ""


_SAID = {
    "bad_parameter": "exit 2 (HTTP 400) names what is wrong and what is allowed",
    "no_such_record": "exit 4 (404), no such record",
}


def _errors(operation: Operation) -> str:
    said = [_SAID[code] for code in operation.errors if code in _SAID]
    return "; ".join([*said, "exit 3, no worker: `memsvc start`"])
