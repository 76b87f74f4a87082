"""Semantic search with an index that is updated in the background.

Full text never waits for it: model and index are loaded in a separate thread. Until they are
loaded, and whenever they fail, queries raise SemanticUnavailable with the reason.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any, Final

from memsvc.application.semantic.indexer import Factories, Indexer, native_errors
from memsvc.application.semantic.neighbours import Neighbours
from memsvc.core.errors import MemsvcError
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import VectorStore
from memsvc.core.records import Kind

IDLE_SECONDS: Final = 0.5
"""Pause between two checks for new records when there is nothing to do."""

_log = logging.getLogger("memsvc")


class SemanticWorker:
    """The SemanticSearch port. `start` lets it load and index in the background.

    `threads` is the number of texts embedded at the same time, `quiet_threads` while nobody
    searches.
    """

    def __init__(
        self,
        store: Store,
        vectors: VectorStore,
        factories: Factories,
        *,
        threads: int = 1,
        quiet_threads: int = 1,
    ) -> None:
        self._vectors = vectors
        self._indexer = Indexer(
            store, vectors, factories, threads=threads, quiet_threads=quiet_threads
        )
        self._neighbours = Neighbours(store, vectors, self._indexer)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="semantic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the background work after the current text, and close the index."""
        self._indexer.stopping.set()
        if self._thread:
            self._thread.join()
        self._neighbours.close()
        self._indexer.close()

    def prepare(self, text: str) -> None:
        self._neighbours.prepare(text)

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        return self._neighbours.nearest(kind, text, limit, selection)

    def nearest_each(
        self, kind: Kind, texts: Sequence[str], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        return self._neighbours.nearest_each(kind, texts, limit, selection)

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        return self._neighbours.compare(kind, text, ids)

    def floor(self, text: str) -> float:
        return self._neighbours.floor(text)

    def unknown_among(self, kind: Kind, ids: Sequence[int]) -> set[int]:
        return self._indexer.unknown_among(kind, ids)

    def ask_rebuild(self) -> None:
        self._vectors.ask_rebuild()

    def missing(self) -> str:
        return self._indexer.missing()

    def report(self) -> dict[str, Any]:
        return self._indexer.report()

    def check(self) -> None:
        self._neighbours.check()

    def step(self) -> int:
        return self._indexer.step()

    def _run(self) -> None:
        while not self._indexer.stopping.is_set():
            if not self._try_step():
                self._indexer.stopping.wait(IDLE_SECONDS)

    def _try_step(self) -> int:
        """A step whose failure becomes the reason why queries are refused."""
        try:
            with native_errors():
                return self.step()
        except MemsvcError as error:
            self._indexer.fail(error.detail)
        except Exception as error:
            _log.exception("semantic indexing failed")
            self._indexer.fail(f"The semantic index failed ({error}); see the worker's log.")
        return 0
