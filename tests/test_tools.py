"""Tools of MCP: what they say of themselves, and how a call becomes a request."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import arguments

from memsvc.api.mcp_tools import (
    FIXED_PARAMETERS,
    GUIDE,
    GUIDE_ALIAS,
    INSTRUCTIONS,
    TOOLS,
    WORKFLOW,
    definitions,
    explain,
    find_tool,
    request_pairs,
)
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.core.errors import BadRequest
from memsvc.core.tokens import count_tokens
from memsvc.schemas.parameters import load_parameters

BUDGET = 1200
"""Most tokens that all definitions together may cost: every session of a client pays them."""

NAMES = ["search", "timeline", "get_observations", "search_memories"]


def definition(name: str) -> Any:
    return next(tool for tool in definitions() if tool["name"] == name)


# -- what the tools say of themselves -------------------------------------------------------------


def test_the_tools_are_four_operations_and_one_that_explains_them() -> None:
    assert [tool["name"] for tool in definitions()] == [GUIDE, *TOOLS]
    assert set(TOOLS) == set(NAMES)
    assert [o.name for o in OPERATIONS if o.tool and o.method != "GET"] == []


def test_all_definitions_together_stay_within_their_budget() -> None:
    listed = json.dumps({"tools": definitions()}, ensure_ascii=False, separators=(",", ":"))
    assert count_tokens(listed) <= BUDGET


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_offers_every_parameter_but_those_of_form_as_help_tells_it(
    ask: Any, name: str
) -> None:
    (told,) = ask("/api/search/help", operation=TOOLS[name].name)["operations"]
    described = {
        one["name"]: one for one in told["parameters"] if one["name"] not in FIXED_PARAMETERS
    }
    schema = definition(name)["inputSchema"]
    assert schema["properties"].keys() == described.keys()
    assert schema.get("required", []) == [n for n, one in described.items() if one["required"]]
    for parameter, one in described.items():
        assert facts(schema["properties"][parameter]) == expected_facts(one)


def facts(schema: Any) -> dict[str, Any]:
    """What a JSON Schema says of one parameter, in the words of help."""
    inner = schema.get("items", schema)
    bounds = f"{inner.get('minimum')}-{inner.get('maximum')}"
    return {
        "type": f"{schema['type']} {inner['type']}",
        "default": schema.get("default"),
        "range": bounds if "minimum" in inner else None,
        "allowed": inner.get("enum"),
    }


def expected_facts(described: Any) -> dict[str, Any]:
    types = {"list": "array string", "number": "integer integer"}
    told = {name: described.get(name) for name in ("default", "range", "allowed")}
    if told["default"] == told["allowed"]:  # none and all are the same, and the schema lists all
        told["default"] = None
    return {"type": types.get(described["type"], "string string"), **told}


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_says_what_it_does_and_what_each_parameter_means(name: str) -> None:
    tool = definition(name)
    assert tool["description"].startswith(TOOLS[name].summary)
    for parameter, schema in tool["inputSchema"]["properties"].items():
        meaning = TOOLS[name].schema.fields[parameter].metadata["description"]
        assert schema["description"]
        assert meaning.startswith(schema["description"])


def test_tools_only_read() -> None:
    assert all(tool["annotations"] == {"readOnlyHint": True} for tool in definitions())


def test_no_tool_has_an_empty_schema_and_the_guide_needs_nothing() -> None:
    assert all(tool["inputSchema"]["properties"] for tool in definitions())
    assert "required" not in definition(GUIDE)["inputSchema"]


@pytest.mark.parametrize("name", NAMES)
def test_the_guide_explains_a_tool_with_each_of_its_parameters(name: str) -> None:
    text = explain({"about": name})
    assert text.startswith(f"{name}: {definition(name)['description']}\n")
    told = re.findall(r"^- (\w+) \(", text, re.M)
    assert told == list(definition(name)["inputSchema"]["properties"])


def test_the_guide_explains_everything_unless_asked_about_a_tool() -> None:
    assert explain({}) == explain({"about": None}) == explain({"about": ""}) == WORKFLOW
    with pytest.raises(BadRequest) as caught:
        explain({"about": "get_everything"})
    assert all(name in caught.value.detail for name in ("get_everything", *NAMES))


def test_the_guide_names_the_layers_in_their_order() -> None:
    for text in (WORKFLOW, definition(GUIDE)["description"], INSTRUCTIONS):
        places = [text.index(name) for name in ("search", "timeline", "get_observations")]
        assert places == sorted(places)
    assert "never an instruction" in WORKFLOW
    assert count_tokens(WORKFLOW) < 250
    assert GUIDE_ALIAS in INSTRUCTIONS


def test_an_unknown_tool_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(BadRequest) as caught:
        find_tool("get_everything")
    assert all(name in caught.value.detail for name in ("get_everything", *NAMES, GUIDE))


# -- a call as a request --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "pairs"),
    [
        ({}, []),
        ({"query": "a b", "limit": 5}, [("query", "a b"), ("limit", "5")]),
        ({"type": ["bugfix", "decision"]}, [("type", "bugfix"), ("type", "decision")]),
        ({"type": "bugfix,decision"}, [("type", "bugfix,decision")]),
        ({"project": None, "kinds": []}, []),
        ({"explain": True}, [("explain", "1")]),
        ({"explain": False}, [("explain", "0")]),
        ({"limit": 5.0, "days": 7.5}, [("limit", "5"), ("days", "7.5")]),
        (
            {"dateRange": {"start": "7d", "end": 1_794_000_000}},
            [("dateRange[start]", "7d"), ("dateRange[end]", "1794000000")],
        ),
        ({"dateRange": {"start": None, "end": ["1d"]}}, [("dateRange[end]", "1d")]),
    ],
)
def test_arguments_become_a_query(given_: Any, pairs: list[tuple[str, str]]) -> None:
    assert request_pairs(TOOLS["search"], given_) == pairs


def test_a_range_of_dates_as_an_object_means_its_two_ends() -> None:
    pairs = request_pairs(TOOLS["search"], {"dateRange": {"start": "7d", "end": "1d"}})
    loaded = load_parameters(TOOLS["search"].schema, pairs)
    assert (loaded["dateStart"].text, loaded["dateEnd"].text) == ("7d", "1d")


@pytest.mark.parametrize("name", ["search", "timeline", "search_memories"])
@pytest.mark.parametrize(
    "form", [{"format": "full"}, {"format": ["full"]}, {"render": "json"}, {"format": "FULL"}]
)
def test_lists_are_always_the_index_and_a_call_for_more_is_shown_the_way(
    name: str, form: Any
) -> None:
    with pytest.raises(BadRequest, match="get_observations"):
        request_pairs(TOOLS[name], {"query": "x", **form})
    assert request_pairs(TOOLS[name], {"query": "x", "format": "index", "render": None})


CALLS = st.sampled_from(list(TOOLS.values())).flatmap(
    lambda operation: arguments(operation).map(lambda given_: (operation, given_))
)


def http_pairs(given_: dict[str, Any]) -> list[tuple[str, str]]:
    """A query as someone writes it by hand who wants to say the same."""
    spread = [(n, v) for n, v in given_.items() if not isinstance(v, list)]
    spread += [(n, item) for n, v in given_.items() if isinstance(v, list) for item in v]
    words = {True: "1", False: "0"}
    return [
        (n, words[v] if v is True or v is False else str(v)) for n, v in spread if v is not None
    ]


def loaded(operation: Operation, pairs: list[tuple[str, str]]) -> Any:
    """The parameters that a query means, or what is wrong with it."""
    try:
        return load_parameters(operation.schema, pairs)
    except BadRequest as error:
        return error.errors


@given(call=CALLS)
def test_any_call_means_the_same_parameters_as_the_query_of_a_request(
    call: tuple[Operation, dict[str, Any]],
) -> None:
    operation, given_ = call
    translated = loaded(operation, request_pairs(operation, given_))
    assert translated == loaded(operation, http_pairs(given_))
