"""A real worker in its own process, with its own store; both are removed afterwards."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.http_client import Client

PATIENCE = 60.0
"""Seconds that a worker may take to start, and to stop."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker: its process id, its address, and when it was started."""

    pid: int
    host: str
    port: int
    started: float

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """A keep-alive connection to this worker."""
        client = Client(self.host, self.port)
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def temporary_home() -> Iterator[Path]:
    """A temporary folder for a store."""
    with TemporaryDirectory(prefix="memsvc-benchmark-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def home_in(folder: Path | None, name: str) -> Iterator[Path]:
    """A folder for a store: a permanent one below `keep`, or a temporary one."""
    if folder is None:
        with temporary_home() as home:
            yield home
    else:
        yield folder / name


def start_command(home: Path, *arguments: str, semantic: str = "off") -> subprocess.Popen[bytes]:
    """Start a memsvc command on the store in `home`; its output goes to files there."""
    home.mkdir(parents=True, exist_ok=True)
    environment = {"MEMSVC_HOME": str(home), "MEMSVC_HOST": "127.0.0.1", "MEMSVC_PORT": "0"}
    environment["MEMSVC_SEMANTIC"] = semantic
    with (home / "stdout").open("wb") as output, (home / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "memsvc", *arguments],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )


@contextlib.contextmanager
def running_worker(home: Path, semantic: str = "off") -> Iterator[Worker]:
    """Run a worker on the store in `home`, with one of the semantic indexes."""
    started = time.perf_counter()
    process = start_command(home, "serve", semantic=semantic)
    try:
        host, port = _address(home, process)
        yield Worker(process.pid, host, port, started)
    finally:
        stop(process)


def _address(home: Path, process: subprocess.Popen[bytes]) -> tuple[str, int]:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads((home / "worker.json").read_text("utf-8"))
            return str(told["host"]), int(told["port"])
        time.sleep(0.002)
    raise click.ClickException(f"The worker did not start. It printed:\n{last_words(home)}")


def await_index(client: Client) -> None:
    """Wait until all records are in the worker's semantic index, or until that is impossible."""
    told, end = "", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = client.get("/api/readiness").json["parts"]["semantic"]
        if state["ok"] and not state["waiting"]:
            return
        if state["detail"] != told:
            told, end = state["detail"], time.monotonic() + PATIENCE
            print(told, file=sys.stderr)
        time.sleep(1)
    raise click.ClickException(f"The semantic index is not ready: {told}")


def last_words(home: Path) -> str:
    """The last output of a command on standard error."""
    return (home / "stderr").read_text("utf-8", "replace")[-2000:]


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that was started here."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
