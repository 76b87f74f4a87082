"""Starts, stops and watches a background worker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from memsvc.configuration.settings import Settings, worker_url
from memsvc.core.errors import SemanticUnavailable, StoreUnavailable
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.entrypoints.client import answers, ask_worker, worker_address

MAX_START = 120.0
"""Seconds that a worker may take to start while its process is alive: migrating a store of a
million records takes ten.
"""

MAX_STOP = 10.0
"""Seconds that a worker may take to stop."""

MAX_STALL = 30.0
"""Seconds that indexing may make no progress: a few long records take ten."""

POLL_SECONDS = 0.05
"""Seconds between two checks of the worker."""


def is_running(settings: Settings) -> bool:
    """Whether a worker is running."""
    try:
        return ask_worker(settings, "GET", "/api/health").ok
    except StoreUnavailable:
        return False


def worker_of(settings: Settings) -> str:
    """The address of the worker that runs for this store; empty if none does.

    Unlike `is_running` it asks only the worker that has written its address beside the store.
    """
    try:
        written = json.loads(settings.worker_file.read_text("utf-8"))
        where = worker_url(str(written["host"]), int(written["port"]))
        return where if answers(where) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def start_worker(settings: Settings) -> str:
    """Start a worker that outlives this command; return a sentence with its address.

    A running worker is left alone. Raises StoreUnavailable with the last line of the
    worker's log if it does not start.
    """
    if is_running(settings):
        return f"memsvc is already running on {worker_address(settings)}"
    settings.home.mkdir(parents=True, exist_ok=True)
    log = settings.home / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "memsvc", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _await_answer(settings, worker, log)
    return f"memsvc is running on {worker_address(settings)}"


def _await_answer(settings: Settings, worker: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + MAX_START
    while time.monotonic() < end and worker.poll() is None:
        if settings.worker_file.exists() and is_running(settings):
            return
        time.sleep(POLL_SECONDS)
    if worker.poll() is None:
        worker.terminate()
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else "its log is empty"
    raise StoreUnavailable(f"The worker did not start: {last.removeprefix('memsvc: ')}")


def stop_worker(settings: Settings) -> str:
    """Stop the worker of this store and wait until it has stopped."""
    try:
        pid = int(json.loads(settings.worker_file.read_text("utf-8"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "no worker is running for this store"
    if not is_running(settings):  # the process id may belong to another program by now
        settings.worker_file.unlink(missing_ok=True)
        return "no worker is running for this store"
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + MAX_STOP
    while settings.worker_file.exists() and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return "stopped"


def index_here(semantic: SemanticSearch) -> Iterator[int]:
    """Index in this process until everything is done; yields the number of pending records.

    Raises SemanticUnavailable.
    """
    try:
        while semantic.step():
            yield semantic.report()["waiting"]
    finally:
        semantic.stop()


def await_worker_index(settings: Settings) -> Iterator[int]:
    """Wait until the worker has indexed everything; yields the number of pending records.

    Raises SemanticUnavailable when the number has not changed for too long.
    """
    before, end = None, time.monotonic() + MAX_STALL
    while True:
        state = ask_worker(settings, "GET", "/api/readiness").json()["parts"]["semantic"]
        if state["ok"] and not state["waiting"]:
            return
        if state["waiting"] != before:
            before, end = state["waiting"], time.monotonic() + MAX_STALL
            yield before
        if time.monotonic() > end:
            raise SemanticUnavailable(state["detail"])
        time.sleep(POLL_SECONDS)
