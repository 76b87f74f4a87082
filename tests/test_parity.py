"""HTTP, the command line and MCP give the same answers and the same errors."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner
from fake_semantic import indexed
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from strategies import arguments

from memsvc.api.mcp_tools import TOOLS, request_pairs
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.configuration.settings import load_settings
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.mcp import build_server
from tests.documents import sample_worker

Answer = tuple[bool, str]
"""Whether it was answered, and the text; an error's is its sentence."""

READING = [o for o in OPERATIONS if o.method == "GET" and o.command]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A worker over the bundled sample, with semantic search."""
    with sample_worker(indexed) as where:
        yield where


@pytest.fixture(scope="module")
def call_tool(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, dict[str, Any]], Answer]]:
    """Call a tool of a server in this process, by the official client."""
    home, port = tmp_path_factory.mktemp("no worker file"), address.rsplit(":", 1)[1]
    server = build_server(load_settings({"MEMSVC_HOME": str(home), "MEMSVC_PORT": port}))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server)) as client,
    ):

        def call(name: str, given_: dict[str, Any]) -> Answer:
            result = portal.call(client.call_tool, name, given_)
            (block,) = result.content
            return not result.is_error, block.text if not result.is_error else _sentence(block.text)

        yield call


def _sentence(text: str) -> str:
    """The first line of an error, without what follows on its parameters and on help."""
    return text.partition("\n")[0]


def by_http(
    address: str, operation: Operation, pairs: list[tuple[str, str]], accept: str = "text/markdown"
) -> Answer:
    path = operation.path.replace("<id>", dict(pairs).get("id", ""))
    query = [pair for pair in pairs if pair[0] != "id"]
    response = requests.get(f"{address}{path}", params=query, headers={"Accept": accept})
    text = response.content.decode()
    return response.ok, text if response.ok else json.loads(text)["error"]


def by_command(
    address: str, operation: Operation, pairs: list[tuple[str, str]], *flags: str
) -> Answer:
    bare = [value for name, value in pairs if name == operation.argument]
    options = [f"--{name}={value}" for name, value in pairs if name != operation.argument]
    end = ["--"] if operation.argument else []
    words = [*operation.command.split(), *flags, *options, *end, *bare]
    result = CliRunner().invoke(cli.memsvc, words, env={"MEMSVC_PORT": address.rsplit(":", 1)[1]})
    if result.exit_code == 0:
        return True, result.stdout
    return False, _sentence(result.stderr).removeprefix("memsvc: ")


def ended(answer: Answer) -> Answer:
    """An answer as a terminal shows it: it ends its last line."""
    ok, text = answer
    return ok, f"{text.removesuffix(chr(10))}\n" if ok else text


# -- every operation ------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.command)
def test_the_example_of_an_operation_is_answered_alike(
    address: str, call_tool: Callable[..., Answer], operation: Operation
) -> None:
    pairs = list(operation.example.items())
    text = by_http(address, operation, pairs)
    assert text[0], text[1]
    assert by_command(address, operation, pairs) == ended(text)
    data = by_http(address, operation, pairs, "application/json")
    assert by_command(address, operation, pairs, "--json") == ended(data)
    if operation.tool:
        assert call_tool(operation.tool.name, dict(pairs)) == text


# -- the tools ------------------------------------------------------------------------------------

CALLS = st.sampled_from(list(TOOLS.values())).flatmap(
    lambda operation: arguments(operation).map(lambda given_: (operation, given_))
)


@given(call=CALLS)
def test_any_call_is_answered_alike(
    address: str, call_tool: Callable[..., Answer], call: tuple[Operation, dict[str, Any]]
) -> None:
    operation, given_ = call
    pairs = request_pairs(operation, given_)
    text = by_http(address, operation, pairs)
    assert operation.tool
    assert call_tool(operation.tool.name, given_) == text
    assert by_command(address, operation, pairs) == ended(text)


@pytest.mark.parametrize(
    ("tool", "given_"),
    [
        ("search", {"query": "x", "limt": 5}),
        ("search", {"query": "x", "obs_type": "bugfix", "date_start": "30d"}),
        ("search", {"query": "x", "dateRange": {"start": "30d", "end": "soon"}}),
        ("search", {"query": ["two", "queries"]}),
        ("search_memories", {}),
        ("get_observations", {}),
        ("get_observations", {"ids": ["87"], "format": "full"}),
        ("timeline", {}),
        ("timeline", {"anchor": 87, "query": "both"}),
        ("timeline", {"anchor": "P9999"}),
    ],
)
def test_a_call_beside_the_schema_is_answered_as_http_answers_it(
    address: str, call_tool: Callable[..., Answer], tool: str, given_: dict[str, Any]
) -> None:
    pairs = request_pairs(TOOLS[tool], given_)
    assert call_tool(tool, given_) == by_http(address, TOOLS[tool], pairs)
