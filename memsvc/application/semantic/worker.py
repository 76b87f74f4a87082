"""Semantic search: the records nearest in meaning to a text, from an index kept up in background.

Full text never waits for it: the model and the index are loaded by a thread of their own, and until
they are there, and whenever they fail, every question gets SemanticUnavailable with the reason.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy

from memsvc.application.semantic.index_sync import embed_some, follow_some
from memsvc.core.errors import MemsvcError, SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import Embedder, SemanticIndex, Vector, VectorStore
from memsvc.core.records import Kind

IDLE_SECONDS: Final = 0.5
"""How often the store is asked for new records when there is nothing to do."""

RETRY_SECONDS: Final = 5.0
"""How long a part that failed is left alone before it is tried again."""

MOST_BEHIND: Final = 0.1
"""Share of the records that may be missing from the index before it is not asked at all: a
ranking that knows only some of the records would put those first.
"""

MOST_EXACT: Final = 8_000
"""Selections of so many records are compared one by one, whatever the index."""

WIDER: Final = 8
"""How many times as many neighbours are asked for where files, which no index knows, must hold."""

REMEMBERED: Final = 1_024
"""Questions whose vectors are kept."""

_log = logging.getLogger("memsvc")


@dataclass(frozen=True, slots=True)
class Parts:
    """What makes the vectors and what finds them; `open_index` is told the name of the store."""

    load_embedder: Callable[[], Embedder]
    open_index: Callable[[Embedder, str], SemanticIndex]


class Semantic:
    """The semantic part of a worker. `start` lets it load and index in the background.

    `threads` embed records at the same time.
    """

    def __init__(
        self, store: Store, vectors: VectorStore, parts: Parts, *, threads: int = 1
    ) -> None:
        self._store, self._vectors, self._parts = store, vectors, parts
        self._embedder: Embedder | None = None
        self._index: SemanticIndex | None = None
        self._reason = "The semantic index is loading."
        self._rebuilds = vectors.rebuilds()
        self._behind = 0
        self._healed = False
        self._retry_at = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._reader = ThreadPoolExecutor(1, "meaning")
        self._embedders = ThreadPoolExecutor(threads, "embedding")
        self._begin = lru_cache(REMEMBERED)(lambda text: self._reader.submit(self._embed, text))

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="semantic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the background work after the text at hand, and let go of the index."""
        self._stopping.set()
        if self._thread:
            self._thread.join()
        self._embedders.shutdown()
        self._reader.shutdown()
        self._drop_index()

    def prepare(self, text: str) -> None:
        """Begin to embed a text beside whatever the caller does until it asks for neighbours."""
        with contextlib.suppress(SemanticUnavailable):  # then nobody will ask for any
            self._ready_index()
            if not self._stopping.is_set():
                self._begin(text)

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records of a kind nearest to a text within a filter: id and cosine, nearest first.

        Raises SemanticUnavailable, saying why, when that cannot be told.
        """
        index = self._ready_index()
        try:
            with _panics():
                return self._nearest(index, kind, text, limit, selection)
        except SemanticUnavailable as error:
            self._fail(error.detail)
            raise

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        """A few records by how near they are to a text, by their vectors in the store: exact."""
        self._ready_index()
        assert self._embedder is not None
        kept = self._vectors.vectors(kind, ids, self._embedder.fingerprint)
        return best_of(kept, self._vector_of(text))

    def ask_rebuild(self) -> None:
        """Ask whoever owns the index to make it anew from the vectors in the store."""
        self._vectors.ask_rebuild()

    def missing(self) -> str:
        """What the index does not know yet, in a sentence; empty if it knows everything."""
        waiting = self._waiting()
        return f"{_records(waiting)} not in the semantic index yet." if waiting else ""

    def report(self) -> dict[str, Any]:
        """Whether semantic search works, why not, and what is still to be done."""
        rebuilds = self._rebuilds  # first: all else must be as it is after this rebuild
        ok, detail = True, self.missing() or "all records are indexed"
        if rebuilds != self._vectors.rebuilds():
            ok, detail = False, "The semantic index is about to be made anew."
        try:
            self._ready_index()
        except SemanticUnavailable as error:
            ok, detail = False, error.detail
        return {"ok": ok, "detail": detail, "waiting": self._waiting(), "rebuilds": rebuilds}

    def _waiting(self) -> int:
        return self._vectors.count_pending() + self._behind

    def _ready_index(self) -> SemanticIndex:
        if self._index is None or self._embedder is None:
            raise SemanticUnavailable(self._reason)
        if waiting := self._waiting():
            total = sum(self._store.count(kind, Filter()) for kind in Kind)
            if waiting > max(1, total * MOST_BEHIND):
                raise SemanticUnavailable(f"Still indexing: {_records(waiting)} to be done.")
        return self._index

    def _vector_of(self, text: str) -> Vector:
        try:
            return self._begin(text).result()
        except Exception:
            self._begin.cache_clear()  # what failed once must not fail for ever
            raise

    def _embed(self, text: str) -> Vector:
        assert self._embedder is not None, "asked only when the index is ready"
        return self._embedder.embed(text)

    def _nearest(
        self, index: SemanticIndex, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        vector = self._vector_of(text)
        if selection == Filter():
            return index.nearest(kind, vector, limit, selection)
        if self._store.count(kind, selection) <= MOST_EXACT:
            return self.compare(kind, text, self._store.selected_ids(kind, selection))[:limit]
        known = replace(selection, groups=_without_files(selection))
        depth = limit if known == selection else limit * WIDER
        found = index.nearest(kind, vector, depth, known)
        # an index may be a moment behind the store, and knows no files
        held = self._store.selected_among(kind, selection, [id for id, _ in found])
        return [each for each in found if each[0] in held][:limit]

    # -- in the background ------------------------------------------------------------------------

    def step(self) -> int:
        """Embed some records and let the index follow; how much was done. Raises MemsvcError."""
        embedder = self._embedder or self._load()
        done = embed_some(self._vectors, embedder, self._stopping.is_set, self._embedders)
        if self._stopping.is_set() or time.monotonic() < self._retry_at:
            return done
        index = self._index or self._open(embedder)
        self._rebuild_if_asked(index)
        done += follow_some(self._vectors, index, embedder.fingerprint)
        self._behind = self._vectors.count_changes(index.position())
        return done

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._tried():
                self._stopping.wait(IDLE_SECONDS)

    def _tried(self) -> int:
        try:
            with _panics():
                return self.step()
        except MemsvcError as error:
            self._fail(error.detail)
        except Exception as error:
            _log.exception("semantic indexing failed")
            self._fail(f"The semantic index failed ({error}); the log says more.")
        return 0

    def _load(self) -> Embedder:
        if time.monotonic() < self._retry_at:
            raise SemanticUnavailable(self._reason)
        embedder = self._parts.load_embedder()
        self._vectors.queue_others(embedder.fingerprint)
        self._embedder = embedder
        return embedder

    def _open(self, embedder: Embedder) -> SemanticIndex:
        index = self._parts.open_index(embedder, self._vectors.store_name())
        try:
            self._rebuild_if_asked(index)
            self._behind = self._vectors.count_changes(self._read_position(index))
        except BaseException:
            index.close()
            raise
        self._index = index
        return index

    def _read_position(self, index: SemanticIndex) -> int:
        """Where an index stands. One that cannot be read is made anew, once: it is only a cache."""
        try:
            with _panics():
                return index.position()
        except SemanticUnavailable as error:
            if self._healed:
                raise
            self._healed = True
            _log.warning("the semantic index is made anew: %s", error.detail)
            index.clear()
            return index.position()

    def _rebuild_if_asked(self, index: SemanticIndex) -> None:
        asked = self._vectors.rebuilds()
        if asked != self._rebuilds:
            # The lag comes first: nobody may ask the empty index, or take it for the one made anew.
            self._behind = self._vectors.count_changes(0)
            index.clear()
            self._rebuilds = asked

    def _fail(self, reason: str) -> None:
        if time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + RETRY_SECONDS
        self._reason = reason
        self._drop_index()

    def _drop_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()


@contextlib.contextmanager
def _panics() -> Iterator[None]:
    """Native code panics past Exception, which would end this thread: make it an error."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        told = " ".join(str(error).split())[:200]
        raise SemanticUnavailable(f"The semantic index cannot be used ({told}).") from error


def best_of(kept: Mapping[int, Vector], vector: Vector) -> list[tuple[int, float]]:
    """Records by the nearest of their vectors to a vector: id and cosine, nearest first."""
    if not kept:
        return []
    cosines = numpy.concatenate(list(kept.values())) @ vector
    starts = numpy.cumsum([0, *(len(each) for each in kept.values())][:-1])
    best = numpy.maximum.reduceat(cosines, starts).astype(float).clip(-1, 1)
    # the last bits depend on where a row lies, and on half precision
    return sorted(
        zip(kept, best.round(6).tolist(), strict=True), key=lambda each: (-each[1], each[0])
    )


def _without_files(selection: Filter) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(group for group in selection.groups if group[0] != "file")


def _records(number: int) -> str:
    return f"{number:,} records are" if number != 1 else "1 record is"
