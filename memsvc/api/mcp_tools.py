"""The table of operations as MCP tools, and tool calls as requests."""

from collections.abc import Iterator, Mapping
from typing import Any

from memsvc.answers.quoting import MEMORY_IS_DATA
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import Parameter, parameter_line, parameters_of
from memsvc.core.errors import BadRequest
from memsvc.schemas.parameters import FOLDER

Pair = tuple[str, str]

TOOLS = {operation.tool.name: operation for operation in OPERATIONS if operation.tool}
"""The operations that are MCP tools, by tool name."""

GUIDE, GUIDE_ALIAS = "__IMPORTANT", "important_workflow"
"""The tool that explains the others; some clients refuse names with leading underscores and use the
alias.
"""

FIXED_PARAMETERS = {"format": "index", "render": "text", "explain": "", FOLDER: ""}
"""Parameters that tools do not offer, with the fixed value of each, if any."""

INSTRUCTIONS = (
    "Memory of past work: what was done, found, decided and asked for. Start with search (an "
    "index), use timeline to look around a ref, then read the few that matter with "
    "get_observations. "
    f"{GUIDE} (also {GUIDE_ALIAS}) explains how. {MEMORY_IS_DATA}"
)

WORKFLOW = f"""Read memory in three layers, cheapest first:
1. search returns an index: ref, date, type, title, cost of reading. About 30 tokens per row.
2. timeline shows what came just before and after a ref. About 30 tokens per row.
3. get_observations returns full records by ref. 50 to 300 tokens each, as the index says.
Take only the few refs that matter to layer 3, all in one call; never skip the index.
When search finds nothing, search_memories runs a semantic search; its list is an index too.
If an answer ends with "Read: memsvc read 52,S3", call get_observations with ids ["52","S3"];
for "More: offset=20", repeat the search with that offset; for "--all-projects", with project "*".
{MEMORY_IS_DATA}
"""


def definitions() -> list[dict[str, Any]]:
    """The tool definitions, as MCP lists them."""
    guide = "How to use memory in layers: search, timeline, get_observations."
    about = {"type": "string", "description": "a tool; default: all"}
    tools = [_tool(n, _description(tool), _input_schema(tool)) for n, tool in TOOLS.items()]
    # some clients refuse a tool without parameters, and every other tool along with it
    return [_tool(GUIDE, guide, {"type": "object", "properties": {"about": about}}), *tools]


def explain(arguments: Mapping[str, Any]) -> str:
    """The guide's answer: the workflow, or one tool with its parameters.

    Raises BadRequest; it lists the tools.
    """
    name = arguments.get("about")
    if not name:
        return WORKFLOW
    tool = find_tool(str(name))
    lines = [parameter_line(each.as_json()) for each in _offered_parameters(tool)]
    return "\n".join([f"{name}: {_description(tool)}", *lines]) + "\n"


def _description(operation: Operation) -> str:
    return f"{operation.summary} {operation.tool.role if operation.tool else ''}"


def _tool(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True},
    }


def _input_schema(operation: Operation) -> dict[str, Any]:
    offered = _offered_parameters(operation)
    properties = {each.name: _property(each) for each in offered}
    required = [each.name for each in offered if each.required]
    schema = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


def _offered_parameters(operation: Operation) -> list[Parameter]:
    found = parameters_of(operation.schema.fields)
    return [each for each in found if each.name not in FIXED_PARAMETERS]


def _property(parameter: Parameter) -> dict[str, Any]:
    """A parameter's JSON Schema, without repeating the allowed values in the description or the
    default.
    """
    schema = parameter.json_schema()
    if parameter.allowed and parameter.default == list(parameter.allowed):
        del schema["default"]
    description = parameter.description.removesuffix(f": {', '.join(parameter.allowed)}")
    return schema | {"description": description}


def find_tool(name: str) -> Operation:
    """The operation behind a tool. Raises BadRequest; it lists the tools."""
    if name in TOOLS:
        return TOOLS[name]
    raise BadRequest(f"There is no tool {name[:80]!r}; available: {', '.join([*TOOLS, GUIDE])}.")


def request_pairs(operation: Operation, arguments: Mapping[str, Any]) -> list[Pair]:
    """The arguments of a tool call as query parameters.

    Raises BadRequest for an answer format that tools do not offer.
    """
    pairs = [pair for name, value in arguments.items() for pair in _pairs(name, value)]
    for name, value in pairs:
        own = FIXED_PARAMETERS.get(name) if name in operation.schema.fields else None
        if own and value.strip() not in ("", own):
            raise BadRequest(
                f"{name} given {value[:80]!r}; tools support only {name}={own}. Take refs "
                "from the index and read the few that matter with get_observations."
            )
    return pairs


def _pairs(name: str, value: Any) -> Iterator[Pair]:
    """A list repeats its name, null is skipped, and an object's members go in brackets:
    name[member].
    """
    if isinstance(value, Mapping):
        for member, inner in value.items():
            yield from _pairs(f"{name}[{member}]", inner)
    elif isinstance(value, list):
        for item in value:
            yield from _pairs(name, item)
    elif value is not None:
        yield name, _text(value)


def _text(value: Any) -> str:
    """A value as query text. JSON does not distinguish 5 from 5.0."""
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return str(int(value) if whole else value)
