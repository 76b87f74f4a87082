"""The loaded model and index, and the work that keeps the index up to date, in small steps."""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from memsvc.application.semantic.index_sync import Model, apply_some, embed_some
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import Embedder, SemanticIndex, Vector, VectorStore
from memsvc.core.records import Kind

RETRY_SECONDS: Final = 5.0
"""Pause before a model or an index that failed is tried again."""

MAX_BEHIND: Final = 0.1
"""The share of records whose vectors the index may still have to take in, in seconds, before it is
queried.
"""

QUIET_SECONDS: Final = 2.0
"""Time without a search after which embedding takes the threads that are kept for searches."""

LOADING: Final = "The semantic index is loading; try again in a moment."
"""Why answers lack the index for a moment after a start."""

_log = logging.getLogger("memsvc")


@dataclass(frozen=True, slots=True)
class Factories:
    """Load the model; open the index of its vectors for the store with a name."""

    load_embedder: Callable[[], Embedder]
    open_index: Callable[[Embedder, str], SemanticIndex]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and the index of its vectors, ready to be queried."""

    embedder: Embedder
    index: SemanticIndex


class Indexer:
    """Loads model and index when it is first stepped; `threads` is the number of texts embedded at
    the same time, `quiet_threads` while nobody searches.

    One thread calls `step`; all other methods may be called from any thread.
    """

    def __init__(
        self,
        store: Store,
        vectors: VectorStore,
        factories: Factories,
        *,
        threads: int,
        quiet_threads: int,
    ) -> None:
        self._store, self._vectors, self._factories = store, vectors, factories
        self._embedder: Embedder | None = None
        self._index: SemanticIndex | None = None
        self._reason = LOADING
        self._rebuilds = vectors.rebuilds()
        self._behind = 0
        self._begun = False  # whether any record has a vector; counting takes long in large stores
        self._rebuilt = False
        self._retry_at = 0.0
        self._pool = ThreadPoolExecutor(threads, "embedding")
        self._quiet_pool = ThreadPoolExecutor(quiet_threads, "embedding")
        self._searched_at = -math.inf
        self.stopping = threading.Event()

    def ready(self) -> Loaded:
        """The model and the index. Raises SemanticUnavailable, saying why they cannot be used."""
        embedder, index = self._embedder, self._index
        if embedder is None or index is None:
            raise SemanticUnavailable(self._reason)
        if self._behind > 1 or not self._begun:
            total = sum(self._store.count(kind, Filter()) for kind in Kind)
            unknown = 0 if self._begun else self._vectors.count_unknown()
            if (unknown and unknown == total) or self._behind > max(1, total * MAX_BEHIND):
                raise SemanticUnavailable(f"Still indexing: {_records(self._waiting())} pending.")
            self._begun = total > 0
        return Loaded(embedder, index)

    def unknown_among(self, kind: Kind, ids: Sequence[int]) -> set[int]:
        """Those of these records that have no vectors yet."""
        if self._embedder is None:
            return set(ids)
        if all(first.has_lead for first in self._vectors.pending(1)):  # the others come first
            return set()
        return set(ids) - self._vectors.embedded_among(kind, ids, self._embedder.fingerprint)

    def embed(self, text: str) -> Vector:
        """The vector of a text, once the indexer has been ready."""
        assert self._embedder is not None
        return self._embedder.embed(text)

    def missing(self) -> str:
        """A sentence about the records whose meaning is not known yet; empty if there are none."""
        unknown = self._vectors.count_unknown() + self._behind
        return f"{_records(unknown)} not in the semantic index yet." if unknown else ""

    def report(self) -> dict[str, Any]:
        """Whether semantic search works, why not, and what is pending."""
        rebuilds = self._rebuilds  # read first: the rest must hold after this rebuild
        waiting = self._waiting()
        by_title = f"{_records(waiting)} indexed by title only so far."
        ok, detail = True, self.missing() or (by_title if waiting else "all records are indexed")
        if rebuilds != self._vectors.rebuilds():
            ok, detail = False, "The semantic index is about to be rebuilt."
        try:
            self.ready()
        except SemanticUnavailable as error:
            ok, detail = False, error.detail
        return {"ok": ok, "detail": detail, "waiting": waiting, "rebuilds": rebuilds}

    def note_search(self) -> None:
        """Leave threads to searches for a while."""
        self._searched_at = time.monotonic()

    def step(self) -> int:
        """Embed some records and update the index; return how much was done, 0 if nothing is left.

        Raises MemsvcError.
        """
        embedder = self._embedder or self._load()
        quiet = time.monotonic() - self._searched_at > QUIET_SECONDS
        pool = self._quiet_pool if quiet else self._pool
        done = embed_some(self._vectors, Model(embedder, pool, self.stopping.is_set))
        if self.stopping.is_set() or time.monotonic() < self._retry_at:
            return done
        index = self._index or self._open(embedder)
        self._rebuild_if_asked(index)
        done += apply_some(self._vectors, index, embedder.fingerprint)
        self._behind = self._vectors.count_changes(index.position())
        return done

    def fail(self, reason: str) -> None:
        """Close the index and wait before it is opened again; `ready` gives the reason."""
        if time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + RETRY_SECONDS
        self._reason = reason
        self._drop_index()

    def close(self) -> None:
        """Let the records that are being embedded finish, and close the index."""
        self._pool.shutdown()
        self._quiet_pool.shutdown()
        self._drop_index()

    def _waiting(self) -> int:
        return self._vectors.count_pending() + self._behind

    def _load(self) -> Embedder:
        if time.monotonic() < self._retry_at:
            raise SemanticUnavailable(self._reason)
        embedder = self._factories.load_embedder()
        self._vectors.queue_others(embedder.fingerprint)
        self._embedder = embedder
        return embedder

    def _open(self, embedder: Embedder) -> SemanticIndex:
        index = self._factories.open_index(embedder, self._vectors.store_name())
        try:
            self._rebuild_if_asked(index)
            self._behind = self._vectors.count_changes(self._read_position(index))
        except BaseException:
            index.close()
            raise
        self._index = index
        return index

    def _read_position(self, index: SemanticIndex) -> int:
        """The index's position. An unreadable index is cleared, once: it is only a cache."""
        try:
            with native_errors():
                return index.position()
        except SemanticUnavailable as error:
            if self._rebuilt:
                raise
            self._rebuilt = True
            _log.warning("the semantic index is rebuilt: %s", error.detail)
            index.clear()
            return index.position()

    def _rebuild_if_asked(self, index: SemanticIndex) -> None:
        asked = self._vectors.rebuilds()
        if asked != self._rebuilds:
            # Before the index is cleared: nobody may query it while it is empty or half full.
            self._behind = self._vectors.count_changes(0)
            index.clear()
            self._rebuilds = asked

    def _drop_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()


@contextlib.contextmanager
def native_errors() -> Iterator[None]:
    """Raise SemanticUnavailable for panics in native code, which are not an Exception."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        text = " ".join(str(error).split())[:200]
        raise SemanticUnavailable(f"The semantic index cannot be used ({text}).") from error


def _records(number: int) -> str:
    return f"{number:,} records are" if number != 1 else "1 record is"
