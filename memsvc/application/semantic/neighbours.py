"""The records nearest to a text: from the index, or by comparing the vectors in the store."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final

from memsvc.application.semantic.indexer import Indexer, Loaded, native_errors
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter, without_paths
from memsvc.core.limits import deadline
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import Vector, VectorStore
from memsvc.core.records import Kind
from memsvc.core.semantic.cosines import rank_each
from memsvc.core.semantic.floor import lowest_cosine
from memsvc.core.words import STOP_WORDS, tokens

MAX_COMPARED: Final = 8_000
"""Up to this many selected records are compared one by one, without the index."""

FILE_FILTER_FACTOR: Final = 8
"""Factor on `limit` when a filter has files, which the index cannot filter by."""

MAX_NEWEST: Final = 20
"""Records of a kind among which `check` looks for one with vectors."""

SAME_COSINE: Final = 0.95
"""The cosine from which a vector counts as the same: indexes may keep it at half precision."""

MAX_AT_ONCE: Final = 2
"""Queries that are embedded at the same time: one search may ask in several wordings."""

MAX_TEXTS: Final = 1_024
"""Queries whose vectors are cached."""


class Neighbours:
    """Answers queries with the model and the index of an indexer."""

    def __init__(self, store: Store, vectors: VectorStore, indexer: Indexer) -> None:
        self._store, self._vectors, self._indexer = store, vectors, indexer
        self._reader = ThreadPoolExecutor(MAX_AT_ONCE, "query")
        self._embedding = lru_cache(MAX_TEXTS)(
            lambda text: self._reader.submit(indexer.embed, text)
        )

    def prepare(self, text: str) -> None:
        """Start embedding a text, while the caller does other work before it asks."""
        self._indexer.note_search()
        with contextlib.suppress(SemanticUnavailable):  # then nobody will ask
            self._indexer.ready()
            if not self._indexer.stopping.is_set():
                self._embedding(text)

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records of a kind nearest to a text within a filter: id and cosine, nearest first.

        Raises SemanticUnavailable with the reason.
        """
        (found,) = self.nearest_each(kind, [text], limit, selection)
        return found

    def nearest_each(
        self, kind: Kind, texts: Sequence[str], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        """The same for several texts, which share what is read."""
        loaded = self._indexer.ready()
        try:
            with native_errors():
                return self._nearest_each(loaded, kind, texts, limit, selection)
        except SemanticUnavailable as error:
            self._indexer.fail(error.detail)
            raise

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        """These records by similarity to a text, computed exactly from their stored vectors."""
        (found,) = self._compare(self._indexer.ready(), kind, [text], ids, len(ids))
        return found

    def floor(self, text: str) -> float:
        """The lowest cosine at which a record without any word of a text counts as similar.

        Raises SemanticUnavailable with the reason.
        """
        words = [token for token in tokens(text) if token.casefold() not in STOP_WORDS]
        return lowest_cosine(self._indexer.ready().embedder.known_share(" ".join(words)))

    def check(self) -> None:
        """Raise SemanticUnavailable unless the index finds a new record of each kind by its vector.

        A record may be missing as long as the index has changes of the store to follow.
        """
        loaded = self._indexer.ready()
        with native_errors():
            position = loaded.index.position()
            lost = [kind for kind in Kind if not self._finds_newest(loaded, kind)]
            if lost and not self._vectors.count_changes(position):
                raise SemanticUnavailable(
                    f"The semantic index does not find the newest {lost[0]} that it holds; rebuild "
                    "it: memsvc index --rebuild"
                )

    def _finds_newest(self, loaded: Loaded, kind: Kind) -> bool:
        hits = self._store.page([kind], Filter(), newest_first=True, limit=MAX_NEWEST, offset=0)
        ids = [hit.ref.id for hit in hits]
        kept = self._vectors.vectors(kind, ids, loaded.embedder.fingerprint)
        if not kept:
            return True
        vector = kept[max(kept)][0]
        found = loaded.index.nearest(kind, vector, 1, Filter())
        return bool(found) and found[0][1] >= SAME_COSINE

    def close(self) -> None:
        """Let the text that is being embedded finish."""
        self._reader.shutdown()

    def _nearest_each(
        self, loaded: Loaded, kind: Kind, texts: Sequence[str], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        if selection != Filter() and self._store.count(kind, selection) <= MAX_COMPARED:
            ids = self._store.selected_ids(kind, selection)
            return self._compare(loaded, kind, texts, ids, limit)
        vectors = [self._vector_of(text) for text in texts]
        known = without_paths(selection)
        depth = limit if known == selection else limit * FILE_FILTER_FACTOR
        found = loaded.index.nearest_each(kind, vectors, depth, known)
        if selection == Filter():
            return found
        # an index may lag behind the store, and it stores no files
        ids = sorted({id for each in found for id, _ in each})
        held = self._store.selected_among(kind, selection, ids)
        return [[each for each in one if each[0] in held][:limit] for one in found]

    def _compare(
        self, loaded: Loaded, kind: Kind, texts: Sequence[str], ids: Sequence[int], limit: int
    ) -> list[list[tuple[int, float]]]:
        vectors = self._vectors.vectors(kind, ids, loaded.embedder.fingerprint)
        return rank_each(vectors, [self._vector_of(text) for text in texts], limit)

    def _vector_of(self, text: str) -> Vector:
        try:
            return self._embedding(text).result(deadline.left(None))
        except TimeoutError:
            raise deadline.exceeded() from None
        except Exception:
            self._embedding.cache_clear()  # a failure must not be cached
            raise
