"""A store that is ranked in this process in many ways; shared results are computed once."""

import contextlib
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from pathlib import Path

from benchmarks.evaluation import Query
from benchmarks.metrics import DEPTH, Score, score
from benchmarks.ways_to_rank import (
    KIND,
    Altered,
    Filling,
    Partial,
    Way,
    patched,
    without_parts,
    without_title,
)
from memsvc.adapters.sqlite.connections import Connections
from memsvc.adapters.sqlite.fulltext import bonuses
from memsvc.adapters.sqlite.fulltext import ranking as fulltext
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.api.requests import Call, search_request
from memsvc.application.semantic.index_sync import Model, embed_some
from memsvc.application.semantic.indexer import Factories
from memsvc.application.semantic.worker import SemanticWorker
from memsvc.application.services import Services
from memsvc.configuration.bootstrap import open_index
from memsvc.configuration.settings import Settings, load_settings
from memsvc.core.calendar.spans import DAY_MS
from memsvc.core.dates import now_ms
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit
from memsvc.core.ports.vectors import Embedder
from memsvc.core.query import Query as TypedQuery
from memsvc.core.records import Kind, Ref
from memsvc.schemas.parameters import DEFAULT_DAYS


@dataclass(frozen=True, slots=True)
class Column:
    """Judged queries that are averaged: those of a set, or those of one style in it."""

    name: str
    queries: tuple[Query, ...]
    gold: Mapping[str, Mapping[str, float]]
    in_project: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """One store with all that ranking needs; `middle` is the median time of its records."""

    home: Path
    store: SqliteStore
    embedder: Embedder
    source_ids: Mapping[Ref, str]
    middle: int

    @contextlib.contextmanager
    def semantic(self, filling: Filling) -> Iterator[SemanticWorker]:
        """Semantic search with an index of all records."""
        settings = _settings(self.home, filling.index)
        factories = Factories(lambda: self.embedder, lambda *which: open_index(settings, *which))
        semantic = AskedSemantic(self.store, self._vectors(filling), factories)
        try:
            while semantic.step():
                pass
            yield semantic
        finally:
            semantic.stop()

    def _vectors(self, filling: Filling) -> SqliteVectors:
        connections, without = self.store.connections, filling.without
        if filling.share < 1:
            return Partial(connections, filling.share)
        if without == "parts":
            return Altered(connections, without_parts)
        if without == "titles":
            return Altered(connections, partial(without_title, embed=self.embedder.embed))
        return SqliteVectors(connections)

    def scores(self, column: Column, way: Way, semantic: SemanticWorker) -> list[Score]:
        """The scores of a column's queries, in order, ranked in one way."""
        then = self.middle + DEFAULT_DAYS * DAY_MS
        services = Services(self.store, (lambda: then) if way.recent else now_ms, semantic)
        with patched(way.patches):
            return [
                score(self._ranking(services, way, column, query), column.gold[query.id])
                for query in column.queries
            ]

    def _ranking(self, services: Services, way: Way, column: Column, query: Query) -> list[str]:
        project = {"project": (query.meta["project"],)} if column.in_project else {}
        given = {"query": query.text, **way.parameters, **project}
        call = Call(values=given, now=services.clock())
        search = search_request(call, (KIND,), windowed=True)
        with self.store.snapshot():
            return [self.source_ids[ref] for ref in way.rank(services, search)[:DEPTH]]


def bench_of(home: Path, store: SqliteStore, embedder: Embedder) -> Bench:
    """A store with everything needed to rank it."""
    total = store.count(KIND, Filter())
    hits = store.page([KIND], Filter(), newest_first=True, limit=total, offset=0)
    ids: dict[Ref, str] = {}
    for start in range(0, total, 1_000):
        records = store.records(hit.ref for hit in hits[start : start + 1_000])
        ids |= {ref: record.source_id for ref, record in records.items()}
    middle = int(statistics.median(hit.created_at_epoch for hit in hits))
    return Bench(home, store, embedder, ids, middle)


def embed_missing(store: SqliteStore, embedder: Embedder) -> None:
    """Embed every record of a store."""
    vectors = SqliteVectors(store.connections)
    vectors.queue_others(embedder.fingerprint)
    for step in count():
        if not step % 100 and (waiting := vectors.count_pending()):
            print(f"{waiting:,} records to embed", file=sys.stderr)
        if not embed_some(vectors, Model(embedder)):
            return


def _settings(home: Path, index: str) -> Settings:
    return load_settings({**os.environ, "MEMSVC_HOME": str(home), "MEMSVC_SEMANTIC": index})


class AskedStore(SqliteStore):
    """A store that caches results, because full text takes most of the time."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        plain = SqliteStore(connections)
        self._ranks = lru_cache(None)(lambda _, *asked: plain.rank(*asked))
        self._matches = lru_cache(None)(plain.matches_among)
        self._coverage = lru_cache(None)(plain.coverage)

    def rank(self, kind: Kind, query: TypedQuery, selection: Filter, depth: int) -> list[Hit]:
        """The best matches, cached per weights and bonuses."""
        state = (fulltext.WEIGHTS[kind], bonuses.NEIGHBOURS_BONUS, bonuses.EXACT_BONUS)
        return self._ranks(state, kind, query, selection, depth)

    def matches_among(
        self, kind: Kind, query: TypedQuery, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        """Which of these records match a query."""
        return self._matches(kind, query, selection, tuple(sorted(ids)))

    def coverage(self, query: TypedQuery, ref: Ref) -> float:
        """The share of a query's words that a record has."""
        return self._coverage(query, ref)


class AskedSemantic(SemanticWorker):
    """Semantic search that caches its results."""

    def __init__(self, store: SqliteStore, vectors: SqliteVectors, factories: Factories) -> None:
        super().__init__(store, vectors, factories)
        self._answer = lru_cache(None)(super().nearest)

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records nearest to a text, cached; everything is indexed before."""
        return self._answer(kind, text, limit, selection)

    def nearest_each(
        self, kind: Kind, texts: Sequence[str], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        """The same for several texts."""
        return [self._answer(kind, text, limit, selection) for text in texts]


class Remembering:
    """An embedder that caches, because every index gets the same queries."""

    def __init__(self, embedder: Embedder) -> None:
        self.fingerprint = embedder.fingerprint
        self.embed = lru_cache(None)(embedder.embed)
        self.embed_all = embedder.embed_all
        self.known_share = embedder.known_share
