"""One trial: a worker with its own store, watched while it runs, and the failures found."""

import contextlib
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests

from benchmarks.corpus import Item
from benchmarks.processes import foreign_connections
from benchmarks.worker import PATIENCE, Worker, running_worker
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.configuration.bootstrap import open_index
from memsvc.configuration.settings import Settings, load_settings
from memsvc.core.ports.vectors import Embedder, SemanticIndex

INDEX: Final = "chroma"

QUERIES = 12
"""How many questions must have the same answers before and after."""


@dataclass
class Trial:
    """One trial: its folder, the failures found, and what the worker acknowledged."""

    home: Path
    chance: random.Random
    failures: list[str] = field(default_factory=list)
    stored: dict[str, Item] = field(default_factory=dict)
    contacts: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Settings:
        return load_settings({"MEMSVC_HOME": str(self.home), "MEMSVC_SEMANTIC": INDEX})

    def check(self, holds: bool, sentence: str) -> None:
        """Record a failure unless `holds`."""
        if not holds:
            self.failures.append(sentence)
            say(f"FAILED {sentence}")


def say(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def serving(trial: Trial) -> Iterator[Worker]:
    """Run a worker on the store and watch its connections."""
    (trial.home / "worker.json").unlink(missing_ok=True)  # left by a killed worker
    with running_worker(trial.home, INDEX) as worker, _watched(trial, worker.pid):
        yield worker


@contextlib.contextmanager
def _watched(trial: Trial, pid: int) -> Iterator[None]:
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            trial.contacts.update(foreign_connections(pid))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def post(worker: Worker, batch: Sequence[Item]) -> Any:
    """A worker's answer to a write; None without an answer."""
    with direct_session() as session, contextlib.suppress(requests.RequestException):
        place = f"http://{worker.host}:{worker.port}/api/import"
        response = session.post(place, json={"records": list(batch)}, timeout=PATIENCE)
        return response.json() if response.ok else None
    return None


def direct_session() -> requests.Session:
    """A session that ignores proxies and netrc."""
    session = requests.Session()
    session.trust_env = False
    return session


@contextlib.contextmanager
def opened_index(trial: Trial, store: SqliteStore, embedder: Embedder) -> Iterator[SemanticIndex]:
    """The index as the worker left it, locked while in use."""
    name = SqliteVectors(store.connections).store_name()
    index = open_index(trial.settings, embedder, name)
    try:
        trial.check(
            SqliteVectors(store.connections).count_changes(index.position()) == 0,
            "the index has not applied every change",
        )
        yield index
    finally:
        index.close()
