"""How long a session waits at its start: for the page, the hook in bad moments, the MCP server."""

import contextlib
import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.corpus import sample_items
from benchmarks.http_client import Client
from benchmarks.loading import load, opened_store
from benchmarks.metrics import percentile
from benchmarks.questions import Questions, routes
from benchmarks.tables import report
from benchmarks.worker import Worker, running_worker, temporary_home
from memsvc.answers.page import to_json
from memsvc.api.mcp_tools import definitions
from memsvc.core.records import Observation
from memsvc.core.tokens import ESTIMATOR, count_tokens

SAMPLE = 2000
REQUESTS = 500
RUNS = 7

PAGE_MS, HOOK_SECONDS, MCP_SECONDS, TOOL_TOKENS = 10.0, 1.5, 1.5, 1200
"""Limits: median for the page, worst case for the hook and the server, tokens of all tools."""

Row = dict[str, Any]


def measure_start(corpus: Path, *, as_json: bool) -> int:
    """Measure with a corpus; the exit code says whether all limits were kept."""
    with temporary_home() as folder:
        print(f"importing {corpus.name}", file=sys.stderr)
        stored = load(corpus, folder / "store").stored
        chance = random.Random(1)
        ask = Questions(sample_items(corpus, SAMPLE, chance), stored, chance)
        with running_worker(folder / "store") as worker, worker.client() as client:
            page = _start_pages(client, ask, stored)
            project = folder / ask.project()
            hook = [*_with_worker(folder, worker, project), *_without_worker(), *_with_much(folder)]
            server = _start_server(worker)
    sections = {"start page": page, f"hook, {RUNS} runs each": hook, "MCP server": server}
    return report(sections, _failures(page, hook, server), as_json=as_json)


def _failures(page: Row, hook: Sequence[Row], server: Row) -> list[str]:
    late = [row for row in hook if row["worst s"] > HOOK_SECONDS or row["failed"]]
    failures = [f"hook, {row['moment']}: failed or later than {HOOK_SECONDS} s" for row in late]
    if page["p50 ms"] > PAGE_MS:
        failures.append(
            f"the session-start page takes {page['p50 ms']:.1f} ms, at most {PAGE_MS:.0f}"
        )
    if server["to the first answer s, worst"] > MCP_SECONDS:
        failures.append(f"the MCP server takes longer to start than {MCP_SECONDS} s")
    if server[f"tools, tokens ({ESTIMATOR})"] > TOOL_TOKENS:
        failures.append(f"the tools cost more than {TOOL_TOKENS} tokens")
    return failures


def _start_pages(client: Client, ask: Questions, stored: int) -> Row:
    """The session-start pages of many projects, one after the other."""
    make = routes(ask)["- session start"]
    times = [1000 * client.get(make(), "text/markdown").seconds for _ in range(REQUESTS)]
    shares = {f"p{round(100 * share)} ms": percentile(times, share) for share in (0.5, 0.95)}
    return {"records": stored, "requests": REQUESTS, **shares, "worst ms": max(times)}


def _with_worker(folder: Path, worker: Worker, project: Path) -> Iterator[Row]:
    yield _hook("worker up", worker.port, project)
    lock = sqlite3.connect(folder / "store" / "memsvc.db", isolation_level=None)
    with contextlib.closing(lock):
        lock.execute("BEGIN EXCLUSIVE")
        yield _hook("store locked", worker.port, project)


def _without_worker() -> Iterator[Row]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        yield _hook("worker down", port, Path.cwd())
        listener.listen(64)
        yield _hook("worker hanging", port, Path.cwd())


def _with_much(folder: Path) -> Iterator[Row]:
    """Ten megabytes of records: a thousand of ten kilobytes each."""
    home = folder / "much"
    note = Observation(narrative="a b c d " * 1250, project=home.name, source="made")
    made = [replace(note, title=f"note {n}", source_id=str(n)) for n in range(1000)]
    with opened_store(home) as store:
        store.write(made)
    with running_worker(home) as worker:
        yield _hook("10 MB of records", worker.port, home)


def _hook(moment: str, port: int, project: Path) -> Row:
    """Run the hook as a session in a folder does; return its seconds and what it printed."""
    print(f"hook, {moment}", file=sys.stderr)
    script = Path(sys.executable).with_name("memsvc-hook")
    environment = os.environ | {"MEMSVC_PORT": str(port), "CLAUDE_PROJECT_DIR": str(project)}
    times, codes, printed = [], [], 0
    for _ in range(RUNS):
        started = time.perf_counter()
        ran = subprocess.run([script], env=environment, capture_output=True)
        times.append(time.perf_counter() - started)
        codes.append(ran.returncode)
        printed = len(ran.stdout.decode("utf-8"))
    median = percentile(times, 0.5)
    failed = sum(code != 0 for code in codes)
    return {
        "moment": moment,
        "median s": median,
        "worst s": max(times),
        "failed": failed,
        "characters": printed,
    }


def _start_server(worker: Worker) -> Row:
    print("starting the MCP server", file=sys.stderr)
    times = [_first_answer(worker) for _ in range(RUNS)]
    return {
        "to the first answer s, median": percentile(times, 0.5),
        "to the first answer s, worst": max(times),
        f"tools, tokens ({ESTIMATOR})": count_tokens(to_json({"tools": definitions()})),
    }


def _first_answer(worker: Worker) -> float:
    """Seconds from the start of the process to its answer to `initialize`."""
    client = {"name": "benchmark", "version": "1"}
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "memsvc", "mcp"],
        env={**os.environ, "MEMSVC_PORT": str(worker.port)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        answered = json.loads(process.stdout.readline())
        took = time.perf_counter() - started
    assert answered["result"]["serverInfo"]["name"] == "memsvc"
    return took
