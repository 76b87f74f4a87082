"""Starting, stopping and watching a worker in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from memsvc.configuration.settings import Settings
from memsvc.core.errors import SemanticUnavailable, StoreUnavailable
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.entrypoints.client import ask_worker, worker_address

MAX_START = 120.0
"""Seconds that a worker may take to start while its process lives: bringing a store of a million
records up to date takes ten."""

MAX_STOP = 10.0
"""Seconds that a worker may take to stop."""

MAX_STALL = 30.0
"""Seconds that a worker may index nothing: a few long records take ten."""

STEP = 0.05
"""Seconds between two looks at the worker."""


def is_running(settings: Settings) -> bool:
    """Whether a worker answers."""
    try:
        return ask_worker(settings, "GET", "/api/health").ok
    except StoreUnavailable:
        return False


def start_worker(settings: Settings) -> str:
    """Start a worker that outlives this command, and say where it listens.

    A worker that already runs is left alone. Raises StoreUnavailable with the last line of the
    worker's log if it does not start.
    """
    if is_running(settings):
        return f"memsvc listens on {worker_address(settings)} already"
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
    return f"memsvc listens on {worker_address(settings)}"


def _await_answer(settings: Settings, worker: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + MAX_START
    while time.monotonic() < end and worker.poll() is None:
        if settings.worker_file.exists() and is_running(settings):
            return
        time.sleep(STEP)
    if worker.poll() is None:
        worker.terminate()
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else "its log is empty"
    raise StoreUnavailable(f"The worker did not start: {last.removeprefix('memsvc: ')}")


def stop_worker(settings: Settings) -> str:
    """Stop the worker over this store, and wait until it has ended."""
    try:
        pid = int(json.loads(settings.worker_file.read_text("utf-8"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "no worker runs over this store"
    if not is_running(settings):  # the process id may belong to another program by now
        settings.worker_file.unlink(missing_ok=True)
        return "no worker runs over this store"
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + MAX_STOP
    while settings.worker_file.exists() and time.monotonic() < end:
        time.sleep(STEP)
    return "stopped"


def follow_here(semantic: SemanticSearch) -> Iterator[int]:
    """Index in this process until all is done, yielding how many records still wait.

    Raises SemanticUnavailable.
    """
    try:
        while semantic.step():
            yield semantic.report()["waiting"]
    finally:
        semantic.stop()


def follow_worker(settings: Settings) -> Iterator[int]:
    """Watch the worker index until all is done, yielding how many records still wait.

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
        time.sleep(STEP)
