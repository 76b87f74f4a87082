"""The generated pages of the mem-search skill."""

import shlex
from collections.abc import Iterator

from memsvc.api.help import example_path
from memsvc.api.operation import Operation
from memsvc.api.operations import TEN
from memsvc.api.parameter_facts import Parameter, facts_of, parameters_of

NAME = "mem-search"
ADDRESS = "http://127.0.0.1:37777"


def pages() -> dict[str, str]:
    """Every generated page, by its path in the skill."""
    return {f"operations/{operation.name}.md": page_of(operation) for operation in TEN}


def page_of(operation: Operation) -> str:
    """The page of one operation, with an empty answer block: `python -m tests.documents` fills it
    in.
    """
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
    """The example as command-line words: the argument without a flag, the rest as options."""
    for name, value in operation.example.items():
        bare = name == operation.argument
        yield value if bare else f"--{name.replace('_', '-')} {shlex.quote(value)}"


def _parameter_head(operation: Operation) -> str:
    bare = f"`{operation.argument}` without a flag, others " if operation.argument else ""
    return f"Parameters ({bare}`--name value`):"


def _parameter_lines(operation: Operation) -> Iterator[str]:
    found = parameters_of(operation.schema.fields)
    for each in found:
        if not each.seldom:
            yield f"- `{each.name}`{_constraints(each)}: {each.description}"
    seldom = [f"`{each.name}`{_allowed_values(each)}" for each in found if each.seldom]
    yield f"- also {', '.join(seldom)}"


def _constraints(parameter: Parameter) -> str:
    """The facts about a parameter, without its type and what its description says already."""
    described = parameter.as_json() | {"type": "", "allowed": ()}
    if isinstance(parameter.default, list):
        del described["default"]
    facts = facts_of(described)
    return f" ({', '.join(facts)})" if facts else ""


def _allowed_values(parameter: Parameter) -> str:
    if parameter.type == "date":
        return " (2026-10-13, 7d)"
    return f" ({'|'.join(parameter.allowed)})" if parameter.allowed else ""


_ERROR_TEXTS = {
    "bad_parameter": "exit 2 (HTTP 400): a bad parameter",
    "no_such_record": "exit 4 (404): no such record",
}


def _errors(operation: Operation) -> str:
    texts = [_ERROR_TEXTS[code] for code in operation.errors if code in _ERROR_TEXTS]
    return "; ".join([*texts, "exit 3: run `memsvc start`"])
