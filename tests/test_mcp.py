"""`memsvc mcp`: an MCP client over standard input and output, as clients really start it."""

import contextlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from fake_semantic import indexed
from mcp import Client, StdioServerParameters
from workers import PATIENCE, patient_program

from memsvc import __version__
from memsvc.api.mcp_tools import GUIDE, GUIDE_ALIAS, TOOLS, WORKFLOW, explain
from memsvc.configuration.settings import load_settings
from memsvc.core.tokens import count_tokens
from memsvc.entrypoints import mcp as mcp_server
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli import operations as commands
from tests.documents import ROOT, sample_worker

COMMAND = [sys.executable, "-m", "memsvc", "mcp"]
PATIENT_COMMAND = [
    *patient_program("from memsvc.entrypoints.cli.main import main; main()"),
    "mcp",
]

Use = Callable[[Client], Awaitable[Any]]
Ask = Callable[[Use], Any]
"""What a use of the client gives, in a session that is under way."""


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """The port of a worker over the bundled sample, by full text alone."""
    with sample_worker() as address:
        yield address.rsplit(":", 1)[1]


@pytest.fixture
def foreign_port() -> Iterator[str]:
    """A port where something else than memsvc answers."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield str(server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


class Stranger(http.server.BaseHTTPRequestHandler):
    """A server that knows nothing of memory."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b"<p>no such page</p>")

    def log_message(self, *args: object) -> None:
        """Nothing: tests read no log."""


@contextlib.contextmanager
def session(command: Sequence[str] = PATIENT_COMMAND, **environment: str) -> Iterator[Ask]:
    """A session of the official client with a server of its own."""
    program, *words = command
    server = StdioServerParameters(command=program, args=words, env={**os.environ, **environment})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server)) as client,
    ):

        async def run(use: Use) -> Any:
            with anyio.fail_after(PATIENCE):
                return await use(client)

        yield lambda use: portal.call(run, use)


@pytest.fixture(scope="module")
def ask_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Ask]]:
    """One session for all tests, each of which says at which port its worker is."""
    home = tmp_path_factory.mktemp("home")
    with session(MEMSVC_HOME=str(home), MEMSVC_PORT="") as ask:

        def at(port: str) -> Ask:
            worker = {"pid": 1, "host": "127.0.0.1", "port": int(port)}
            (home / "worker.json").write_text(json.dumps(worker))
            return ask

        yield at


@pytest.fixture
def ask(ask_at: Callable[[str], Ask], port: str) -> Ask:
    """A session with a worker."""
    return ask_at(port)


@pytest.fixture
def ask_alone(ask_at: Callable[[str], Ask], free_port: str) -> Ask:
    """A session without a worker."""
    return ask_at(free_port)


def answers(ask: Ask, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """What these calls of tools give: whether it is an error, and the text."""

    async def use(client: Client) -> list[tuple[bool, str]]:
        return [told(await client.call_tool(name, given)) for name, given in calls]

    return list(ask(use))


def told(result: Any) -> tuple[bool, str]:
    (block,) = result.content
    return bool(result.is_error), block.text


# -- the official client --------------------------------------------------------------------------


def test_the_client_learns_who_answers_what_tools_there_are_and_how_to_use_them(ask: Ask) -> None:
    async def use(client: Client) -> Any:
        return client.server_info, client.instructions, (await client.list_tools()).tools

    info, instructions, tools = ask(use)
    assert (info.name, info.version) == ("memsvc", __version__)
    assert [tool.name for tool in tools] == [GUIDE, *TOOLS]
    assert GUIDE_ALIAS in instructions


def test_the_three_layers_lead_from_a_question_to_whole_records(ask: Ask) -> None:
    async def use(client: Client) -> tuple[str, str, str]:
        _, index = told(await client.call_tool("search", {"query": "double charge", "limit": 3}))
        refs = re.findall(r"^\| #(\d+) \|", index, re.M)
        given = {"anchor": refs[0], "depth_before": 1, "depth_after": 1}
        _, around = told(await client.call_tool("timeline", given))
        _, whole = told(await client.call_tool("get_observations", {"ids": refs[:2]}))
        return index, around, whole

    index, around, whole = ask(use)
    assert index.startswith("3 of ")
    assert around.count("<- anchor") == 1
    assert around.count("\n| ") == 3
    assert whole.count("\n### #") == 2
    assert "narrative: " in whole


def test_a_span_is_listed_without_a_query_and_a_timeline_has_an_end(ask: Ask) -> None:
    calls = [
        ("search", {"during": "2026-10", "limit": 3}),
        ("search", {"dateStart": "October 2026", "dateEnd": "October 2026", "limit": 3}),
        ("timeline", {"anchor": "2026-10-13", "end": "2026-10-13"}),
    ]
    span, ends, day = answers(ask, *calls)
    assert not span[0] + ends[0] + day[0]
    assert "during: 2026-10-01 to 2026-10-31" in span[1]
    assert [line for line in span[1].splitlines() if line.startswith("|")] == [
        line for line in ends[1].splitlines() if line.startswith("|")
    ]
    rows = [line for line in day[1].splitlines() if line.startswith("|")]
    assert rows
    assert all("| 2026-10-13 " in line for line in rows)


def test_memories_near_in_meaning_are_listed_with_match_percent_and_date(
    ask_at: Callable[[str], Ask],
) -> None:
    asked = ("search_memories", {"query": "customers billed twice", "limit": 3})
    with sample_worker(indexed) as address:
        ((failed, text),) = answers(ask_at(address.rsplit(":", 1)[1]), asked)
    assert not failed
    row = r"^(\d)\. \d+% \d{4}-\d\d-\d\d \S+ \S+ .+ \((?:\d+ tokens|whole)\)$"
    rows = re.findall(row, text, re.M)
    assert rows == ["1", "2", "3"]


def test_memories_near_in_meaning_need_an_index_and_say_so(ask: Ask) -> None:
    ((failed, text),) = answers(ask, ("search_memories", {"query": "x"}))
    assert not failed
    assert "fulltext" in text.splitlines()[0]
    assert "degraded: This worker has no semantic index" in text


def test_the_guide_answers_under_both_its_names_without_a_worker(ask_alone: Ask) -> None:
    about = {"about": "timeline"}
    calls = [(GUIDE, {}), (GUIDE_ALIAS, {}), (GUIDE, about), (GUIDE_ALIAS, {"about": "x"})]
    (whole, alias, one, unknown) = answers(ask_alone, *calls)
    assert whole == alias == (False, WORKFLOW)
    assert one == (False, explain(about))
    assert unknown[0]


def test_an_error_is_the_sentence_of_the_worker_and_the_address_of_help(
    ask: Ask, port: str
) -> None:
    calls = [("search", {"query": "x", "limit": 500}), ("timeline", {"anchor": "9999"})]
    (limit, missing) = answers(ask, *calls)
    base = f"http://127.0.0.1:{port}/api/search/help?operation="
    assert limit == (True, f"limit given '500'; allowed: 1 to 100\nhelp: {base}search")
    assert missing[0]
    assert missing[1].startswith("There is no observation 9999")


def test_what_tools_do_not_offer_is_refused_with_what_they_do(ask: Ask) -> None:
    calls = [("search", {"query": "x", "format": "full"}), ("read_all", {})]
    ((full_failed, full), (unknown_failed, unknown)) = answers(ask, *calls)
    assert full_failed
    assert unknown_failed
    assert "get_observations" in full
    assert all(name in unknown for name in TOOLS)


# -- no worker ------------------------------------------------------------------------------------


def test_without_a_worker_the_answer_names_the_command_that_starts_one(
    ask_alone: Ask, free_port: str
) -> None:
    ((failed, text),) = answers(ask_alone, ("search", {"query": "x"}))
    assert failed
    assert re.fullmatch(
        rf"No worker is running at http://127.0.0.1:{free_port} \(\w+\)\. .*memsvc start", text
    )


def test_a_worker_that_never_answers_is_told_of_and_holds_nobody_up(silent_port: str) -> None:
    calls = [("search", {"query": "x"}), (GUIDE, {})]
    with session(COMMAND, MEMSVC_PORT=silent_port) as ask:
        ((failed, text), guide) = answers(ask, *calls)
    assert failed
    assert "does not answer" in text
    assert "memsvc start" in text
    assert guide == (False, WORKFLOW)


def test_a_worker_that_comes_later_is_found_by_the_same_session(
    ask_at: Callable[[str], Ask], free_port: str, port: str
) -> None:
    asked = ("search", {"query": "double charge"})
    failed = [answers(ask_at(where), asked)[0][0] for where in (free_port, port)]
    assert failed == [True, False]


def test_what_a_stranger_at_the_port_refuses_is_an_error_as_it_came(
    ask_at: Callable[[str], Ask], foreign_port: str
) -> None:
    given = answers(ask_at(foreign_port), ("search", {"query": "x"}))
    assert given == [(True, "<p>no such page</p>")]


def test_a_bug_is_an_answer_and_the_session_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*asked: object, **options: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("memsvc.entrypoints.mcp.ask_worker", broken)

    async def use() -> list[tuple[bool, str]]:
        async with Client(mcp_server.build_server(load_settings({}))) as client:
            calls = [("search", {"query": "x"}), (GUIDE, {})]
            return [told(await client.call_tool(name, given)) for name, given in calls]

    failed, guide = anyio.run(use)
    assert failed[0]
    assert failed[1].startswith("Something went wrong (ZeroDivisionError).")
    assert guide == (False, WORKFLOW)


# -- no library: lines of JSON --------------------------------------------------------------------


@contextlib.contextmanager
def raw_session(port: str) -> Iterator[Callable[..., Any]]:
    """Ask a server by lines of JSON alone."""
    server = subprocess.Popen(
        PATIENT_COMMAND,
        env={**os.environ, "MEMSVC_PORT": port},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin
    assert server.stdout

    def ask(line: dict[str, Any] | str) -> Any:
        print(line if isinstance(line, str) else json.dumps(line), file=server.stdin, flush=True)
        return json.loads(server.stdout.readline()) if "id" in line else None

    try:
        yield ask
    finally:
        rest, _ = server.communicate(timeout=PATIENCE)
        assert (rest, server.returncode) == ("", 0)


def request(number: int, method: str, **given: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": given}


def shake_hands(ask: Callable[..., Any]) -> Any:
    """Begin a session as clients of the protocol of June 2025 do."""
    client = {"name": "script", "version": "1"}
    given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    begun = ask(request(1, "initialize", **given))
    ask({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return begun["result"]


def call_raw(ask: Callable[..., Any], number: int, name: str, **arguments: Any) -> str:
    """The text that a tool answers."""
    answered = ask(request(number, "tools/call", name=name, arguments=arguments))
    assert (answered["id"], answered["result"]["isError"]) == (number, False)
    (block,) = answered["result"]["content"]
    return str(block["text"])


def test_a_script_without_any_library_gets_the_tools_and_goes_through_the_layers(port: str) -> None:
    with raw_session(port) as ask:
        begun = shake_hands(ask)
        listed = ask(request(2, "tools/list"))["result"]["tools"]
        index = call_raw(ask, 3, "search", query="double charge", limit=3)
        (anchor, *_) = re.findall(r"^\| #(\d+) \|", index, re.M)
        around = call_raw(ask, 4, "timeline", anchor=anchor, depth_before=1, depth_after=1)
        whole = call_raw(ask, 5, "get_observations", ids=[int(anchor)])
    assert begun["protocolVersion"] == "2025-06-18"
    assert begun["serverInfo"]["name"] == "memsvc"
    assert [tool["name"] for tool in listed] == [GUIDE, *TOOLS]
    assert count_tokens(json.dumps(listed, separators=(",", ":"))) <= 1200
    assert f"| #{anchor} <- anchor |" in around
    assert whole.startswith(f"### #{anchor} ")
    assert "\nnarrative: " in whole


def test_lines_that_are_no_protocol_do_not_end_the_session(port: str) -> None:
    with raw_session(port) as ask:
        shake_hands(ask)
        ask("not json")
        ask("[]")
        assert "error" in ask(request(2, "tools/call", name=5))
        assert "error" in ask(request(3, "no/such/method"))
        arguments = {"query": "𝄞 \x00 " + "long " * 100_000}
        answered = ask(request(4, "tools/call", name="search", arguments=arguments))
        assert "result" in answered
        assert ask(request(5, "ping"))["result"] == {}


# -- how it is started ----------------------------------------------------------------------------


def test_without_its_package_the_command_names_what_to_install() -> None:
    start = "from memsvc.entrypoints.cli.main import main; main()"
    code = f"import sys; sys.modules['mcp'] = None; {start}"
    ran = subprocess.run([sys.executable, "-c", code, "mcp"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (commands.FAILED, "")
    assert re.fullmatch(r"memsvc: .*pip install 'memsvc\[mcp\]'\n", ran.stderr)


@pytest.mark.parametrize("module", ["memsvc.entrypoints.cli.main", "memsvc.api.mcp_tools"])
def test_nothing_else_loads_its_package(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"mcp", "anyio", "pydantic"} & set(ran.stdout.split()) == set()


def test_the_plugin_and_every_client_of_the_documents_start_the_command_that_there_is() -> None:
    page = (ROOT / "docs" / "clients.md").read_text("utf-8")
    files = re.findall(r"```json\n(\{\"(?:mcpS|s)ervers\".*?)```", page, re.S)
    for text in ((ROOT / ".mcp.json").read_text("utf-8"), *files):
        ((servers),) = json.loads(text).values()
        assert servers["memsvc"]["command"] == "memsvc"
        assert servers["memsvc"]["args"][0] in cli.memsvc.commands
    assert len(files) == 2
