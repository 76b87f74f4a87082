"""Starts, stops and watches a background worker, and keeps a second one away."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memsvc.configuration.home import new_private, open_home
from memsvc.configuration.settings import Settings
from memsvc.core.errors import SemanticUnavailable, StoreUnavailable
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.entrypoints.client import answers, ask_worker, worker_address
from memsvc.entrypoints.worker_file import read_worker_file

MAX_START = 120.0
"""Seconds that a worker may take to start while its process is alive: migrating a store of a
million records takes ten.
"""

MAX_STOP = 10.0
"""Seconds that a worker may take to stop."""

MAX_STALL = 30.0
"""Seconds that indexing may make no progress: a few long records take ten."""

MAX_HANDOVER = 3.0
"""Seconds in which a worker that was told to stop is gone."""

MAX_CLOSE = 0.6
"""Seconds that a worker may take to close its store and index. What it leaves, such as a text that
is being embedded or an index that is open, it finds again: everything acknowledged is on disk.
"""

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
    worker = read_worker_file(settings.worker_file)
    return worker.address if worker and answers(worker.address) else ""


def start_worker(settings: Settings) -> str:
    """Start a worker that outlives this command; return a sentence with its address.

    A running worker is left alone. Raises StoreUnavailable with the last line of the
    worker's log if it does not start.
    """
    if is_running(settings):
        return f"memsvc is already running on {worker_address(settings)}"
    open_home(settings.home)
    log = settings.home / "worker.log"
    with new_private(log) as output:
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
    worker = read_worker_file(settings.worker_file)
    if worker is None:
        return "no worker is running for this store"
    if not is_running(settings):  # the process id may belong to another program by now
        settings.worker_file.unlink(missing_ok=True)
        return "no worker is running for this store"
    os.kill(worker.pid, signal.SIGTERM)
    end = time.monotonic() + MAX_STOP
    while settings.worker_file.exists() and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return "stopped"


@contextlib.contextmanager
def hold_home(settings: Settings) -> Iterator[None]:
    """Keep the home to this worker; the system lets go of it when the process ends, however it
    ends. Raises StoreUnavailable with the process id and address of the worker that has it.
    """
    from filelock import FileLock, Timeout

    open_home(settings.home)
    lock = FileLock(settings.home / "worker.lock", mode=0o600)
    try:
        # without its file the other is about to be gone, or has not begun to listen
        lock.acquire(timeout=0 if settings.worker_file.exists() else MAX_HANDOVER)
    except Timeout:
        raise StoreUnavailable(_holder(settings)) from None
    except OSError as error:
        raise StoreUnavailable(
            f"The folder {settings.home} cannot be used ({error.strerror}); set MEMSVC_HOME to a "
            "writable folder."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _holder(settings: Settings) -> str:
    """Who holds the home, as far as its file says, and what to do."""
    worker = read_worker_file(settings.worker_file)
    who = f"process {worker.pid}, on {worker.address}" if worker else "which tells no address yet"
    return (
        f"Another worker ({who}) already serves {settings.home}. Use that one, stop it "
        "(memsvc stop), or set MEMSVC_HOME to another folder."
    )


def end_process_after(close: Callable[[], None]) -> None:
    """Close what is open; if that takes longer than MAX_CLOSE, end the process without it."""
    closing = threading.Thread(target=close, name="closing", daemon=True)
    closing.start()
    closing.join(MAX_CLOSE)
    if closing.is_alive():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


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
