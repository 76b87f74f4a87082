"""Starting and stopping a worker that runs on its own."""

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

TO_COME = 120.0
"""Seconds that a worker may take to come up, as long as its process lives: bringing a store of a
million records up to date takes ten."""

TO_GO = 10.0
"""Seconds that a worker may take to go."""

STALLED = 30.0
"""Seconds that a worker may take to index anything at all: a few long records take ten."""

STEP = 0.05


def is_running(settings: Settings) -> bool:
    """Whether a worker answers."""
    try:
        return ask_worker(settings, "GET", "/api/health").ok
    except StoreUnavailable:
        return False


def start_worker(settings: Settings) -> str:
    """Start a worker that outlives this command and say where it is.

    One that runs already is left alone. Raises StoreUnavailable with what the worker said when it
    does not come up.
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
    end = time.monotonic() + TO_COME
    while time.monotonic() < end and worker.poll() is None:
        if settings.worker_file.exists() and is_running(settings):
            return
        time.sleep(STEP)
    if worker.poll() is None:
        worker.terminate()
    said = log.read_text("utf-8", "replace").strip().splitlines()
    last = said[-1] if said else "it said nothing"
    raise StoreUnavailable(f"The worker did not come up: {last.removeprefix('memsvc: ')}")


def stop_worker(settings: Settings) -> str:
    """Ask the worker over this store to end, and wait until it has."""
    try:
        pid = int(json.loads(settings.worker_file.read_text("utf-8"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "no worker runs over this store"
    if not is_running(settings):  # the number may be another program's by now
        settings.worker_file.unlink(missing_ok=True)
        return "no worker runs over this store"
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + TO_GO
    while settings.worker_file.exists() and time.monotonic() < end:
        time.sleep(STEP)
    return "stopped"


def follow_here(settings: Settings, semantic: SemanticSearch) -> Iterator[int]:
    """Index in this process until all is done; how many records wait, again and again.

    Raises SemanticUnavailable when it cannot be done.
    """
    try:
        while semantic.step():
            yield semantic.report()["waiting"]
    finally:
        semantic.stop()


def follow_worker(settings: Settings, semantic: SemanticSearch) -> Iterator[int]:
    """Watch the worker index until all is done; how many records wait, again and again.

    Raises SemanticUnavailable when it cannot be done.
    """
    before, end = None, time.monotonic() + STALLED
    while True:
        told = ask_worker(settings, "GET", "/api/readiness").json()["parts"]["semantic"]
        if told["ok"] and not told["waiting"]:
            return
        if told["waiting"] != before:
            before, end = told["waiting"], time.monotonic() + STALLED
            yield before
        if time.monotonic() > end:
            raise SemanticUnavailable(told["detail"])
        time.sleep(STEP)
