"""Each contract runs against each adapter; the property tests hold it against the memory store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from adapters import ADAPTERS, Compare, Opened
from memory_store import MemoryStore

from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import VectorStore


@pytest.fixture(params=ADAPTERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """An empty store of each adapter."""
    found = ADAPTERS[request.param](tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def store(opened: Opened) -> Store:
    return opened.store


@pytest.fixture
def vectors(opened: Opened) -> VectorStore:
    return opened.vectors


@pytest.fixture(scope="module", params=[name for name in ADAPTERS if name != "memory"])
def compared(request: pytest.FixtureRequest) -> Compare:
    """Opens an empty store of each adapter beside one in memory, once for each example."""

    @contextmanager
    def open_both() -> Iterator[tuple[Opened, MemoryStore]]:
        with TemporaryDirectory() as folder:
            found = ADAPTERS[request.param](Path(folder))
            yield found, MemoryStore()
            found.store.close()

    return open_both
