"""Imports a corpus the way a user does, and measures it."""

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.processes import peak_memory
from benchmarks.worker import last_words, start_command, stop
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.configuration.settings import load_settings
from memsvc.core.filters import Filter
from memsvc.core.records import Kind

STORE_FILES = ("memsvc.db", "memsvc.db-wal", "memsvc.db-shm")


@dataclass(frozen=True, slots=True)
class Load:
    """The cost of one import; `peak` is the resident memory in MB, if the system reports it."""

    stored: int
    refused: int
    seconds: float
    peak: float | None


def load(corpus: Path, home: Path) -> Load:
    """Import a corpus into the store in `home` on the command line."""
    started = time.perf_counter()
    process = start_command(home, "import", "jsonl", str(corpus.absolute()), "--json")
    try:
        peak = _watch(process)
    finally:
        stop(process)
    seconds = time.perf_counter() - started
    if process.returncode != 0:
        raise click.ClickException(
            f"{corpus} was not imported; memsvc printed:\n{last_words(home)}"
        )
    report = json.loads((home / "stdout").read_text("utf-8"))
    return Load(report["stored"], report["refused"], seconds, peak)


def _watch(process: subprocess.Popen[bytes]) -> float | None:
    """Wait for a process to end; return its peak memory, sampled every 20 ms."""
    peak = None
    while process.poll() is None:
        peak = peak_memory(process.pid) or peak
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    return peak


def store_megabytes(home: Path) -> float:
    """The size of the store on disk."""
    paths = (home / name for name in STORE_FILES)
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


@contextlib.contextmanager
def opened_store(home: Path) -> Iterator[SqliteStore]:
    """The store in `home`, as the worker opens it."""
    store = open_store(load_settings({"MEMSVC_HOME": str(home)}).database)
    try:
        yield store
    finally:
        store.close()


def contents(home: Path) -> list[tuple[str, str, str]]:
    """Kind, source and source id of every record in a store, sorted, duplicates included."""
    with opened_store(home) as store:
        return sorted(entry for kind in Kind for entry in _of_kind(store, kind))


def _of_kind(store: SqliteStore, kind: Kind) -> Iterator[tuple[str, str, str]]:
    total = store.count(kind, Filter())
    hits = store.page([kind], Filter(), newest_first=False, limit=total, offset=0) if total else []
    for start in range(0, total, 1000):
        found = store.records(hit.ref for hit in hits[start : start + 1000])
        yield from ((kind, record.source, record.source_id) for record in found.values())


def interrupt_and_resume(corpus: Path, home: Path, expected: int) -> dict[str, int]:
    """Interrupt an import halfway and run it again; return the records after each run."""
    process = _start_interruptible(corpus, home)
    try:
        _wait_for_records(process, home, expected // 2)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        stop(process)
    kept = count_records(home)
    resumed = load(corpus, home)
    return {
        "kept when interrupted": kept,
        "stored by the second run": resumed.stored,
        "in the store": count_records(home),
        "expected": expected,
    }


def _start_interruptible(corpus: Path, home: Path) -> subprocess.Popen[bytes]:
    """Start an import that reacts to Ctrl-C, even if this process ignores it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return start_command(home, "import", "jsonl", str(corpus.absolute()), "--json")


def _wait_for_records(process: subprocess.Popen[bytes], home: Path, wanted: int) -> None:
    """Wait until an import has written this many records or has ended."""
    while process.poll() is None and not (home / "memsvc.db").exists():
        time.sleep(0.005)
    with opened_store(home) as store:
        while process.poll() is None and _count(store) < wanted:
            time.sleep(0.005)


def count_records(home: Path) -> int:
    """The number of records in the store in `home`."""
    with opened_store(home) as store:
        return _count(store)


def _count(store: SqliteStore) -> int:
    return sum(store.count(kind, Filter()) for kind in Kind)
