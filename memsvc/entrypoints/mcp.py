"""The MCP server: tools over standard input and output; each call is a request to the worker."""

import logging
import signal
from typing import Any

from memsvc import __version__
from memsvc.api.mcp_tools import (
    GUIDE,
    GUIDE_ALIAS,
    INSTRUCTIONS,
    definitions,
    explain,
    find_tool,
    request_pairs,
)
from memsvc.configuration.settings import Settings
from memsvc.core.errors import MemsvcError
from memsvc.entrypoints.client import answer_text, ask_worker, problem_text
from memsvc.entrypoints.place import session_folder, with_folder

try:
    import anyio
    from mcp import types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
except ImportError as error:
    raise MemsvcError(
        "The MCP server needs the package mcp; install it: pip install 'memsvc[mcp]'"
    ) from error

Context = ServerRequestContext[Any]

_log = logging.getLogger("memsvc")


def run_server(settings: Settings) -> None:
    """Serve one MCP client over standard input and output until it disconnects."""
    # Ctrl-C ends the process at once: nothing else wakes the thread that reads standard input
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve, build_server(settings))


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def build_server(settings: Settings) -> Server[Any]:
    """The server, whose tools send requests to the worker of these settings."""

    async def list_tools(
        context: Context, given: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(d) for d in definitions()])

    async def call_tool(
        context: Context, given: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(
            answer_call, settings, given.name, given.arguments or {}, abandon_on_cancel=True
        )

    return Server(
        "memsvc",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answer_call(settings: Settings, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """The answer of a tool. Errors are answers too, for the model to read."""
    try:
        return _answer(settings, name, arguments)
    except MemsvcError as error:
        return _result(error.detail, is_error=True)
    except Exception as error:
        _log.exception("the tool %s failed", name)
        return _result(
            f"Something went wrong ({type(error).__name__}). "
            "This is a bug in memsvc; try another tool. Its standard error says more.",
            is_error=True,
        )


def _answer(settings: Settings, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    if name in (GUIDE, GUIDE_ALIAS):
        return _result(explain(arguments))
    tool = find_tool(name)
    pairs = request_pairs(tool, arguments)
    if tool.by_folder:
        pairs = with_folder(settings, pairs, session_folder())
    response = ask_worker(settings, tool.method, tool.path, pairs, accept="text/markdown")
    if response.ok:
        return _result(answer_text(response))
    return _result(problem_text(response), is_error=True)


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
