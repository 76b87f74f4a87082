"""The adapters that keep the contracts. One more joins by a factory in `ADAPTERS`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from memory_store import MemoryStore

from memsvc.adapters.sqlite.store import open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import VectorStore


@dataclass(frozen=True)
class Opened:
    """A store, and the vectors beside it: those of the folder, at first empty."""

    store: Store
    vectors: VectorStore


def open_sqlite(folder: Path) -> Opened:
    """SQLite, at first in a copy of an empty file: making one takes longer than an example."""
    path = folder / "memsvc.db"
    if not path.exists():
        path.write_bytes(_empty_file())
    store = open_store(path)
    return Opened(store, SqliteVectors(store.connections))


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memsvc.db"
        open_store(path).close()
        return path.read_bytes()


def open_memory(folder: Path) -> Opened:
    """Plain dictionaries."""
    store = MemoryStore()
    return Opened(store, store)


ADAPTERS: dict[str, Callable[[Path], Opened]] = {"sqlite": open_sqlite, "memory": open_memory}

Compare = Callable[[], AbstractContextManager[tuple[Opened, MemoryStore]]]
"""Opens an empty store of an adapter beside one in memory."""
