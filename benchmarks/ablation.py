"""What does each part of the ranking add? Evaluation sets ranked with it, and without it.

Ranks in this process, over the exact index unless a row names another, so that what an index loses
does not mix with what an idea adds. No index is asked where a filter selects few records: those are
compared one by one.
"""

import contextlib
import math
import os
import statistics
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy
from numpy.typing import NDArray

from benchmarks.evaluation import EvaluationSet, Query, read_sets
from benchmarks.loading import load, opened_store
from benchmarks.metrics import DEPTH, average, score
from benchmarks.tables import report
from benchmarks.worker import home_in
from memsvc import fusion, ranking
from memsvc import query as language
from memsvc.bootstrap import load_embedder, open_index
from memsvc.dates import DAY_MS, now_ms
from memsvc.errors import MemsvcError
from memsvc.fusion import Fused
from memsvc.indexing import embed_some, unit
from memsvc.model import Change, Filter, Hit, Kind, Record, Ref
from memsvc.parameters import DEFAULT_DAYS
from memsvc.passages import passages
from memsvc.ports import Embedder, Vector
from memsvc.request import Search, read_search
from memsvc.semantic import Parts, Semantic
from memsvc.services import Services
from memsvc.settings import Settings, load_settings
from memsvc.store import fulltext
from memsvc.store.connections import Connections
from memsvc.store.sqlite import SqliteStore
from memsvc.store.vectors import SqliteVectors

KIND = Kind.OBSERVATION
METRIC = "ndcg@10"
SHOWN = (METRIC, "recall@10")

DIALOGUES = "locomo_"
"""How the names of sets start whose queries may be asked within their projects."""

RECIPROCAL = 60
"""The k of reciprocal rank fusion, as in its paper."""

RESAMPLES = 1_000
SEED = 1

SHORT = {
    "locomo_session": "sess",
    "locomo_turn": "turn",
    "locomo_turn_adversarial": "adv",
    "longmemeval_evidence": "lmem",
    "probe_identifiers_cjk": "probe",
    "sw_claudemem_changelog": "cmem",
    "sw_pallets_changelog": "pall",
    "sw_requests_changelog": "reqs",
    "sw_simonw_changelog": "simw",
    "sw_simonw_issues keywords": "i-key",
    "sw_simonw_issues paraphrase": "i-par",
}
"""Heads of columns, so that a table fits a screen; other sets keep their names."""

Row = dict[str, Any]
Score = dict[str, float]
Results = dict[str, dict[str, list[Score]]]
"""For each column, for each way by its name, the scores of the queries, always in one order."""

Numbers = NDArray[numpy.float64]
Alter = Callable[[Record, Vector], Vector]
Patch = tuple[ModuleType, str, object]


def _by_search(services: Services, search: Search) -> list[Ref]:
    """What a search finds. Raises ClickException where meaning should have a say and has none."""
    found = ranking.rank_candidates(services, search)
    if found.degraded:
        raise click.ClickException(found.degraded)
    return [hit.ref for hit in found.hits]


def _by_words(services: Services, search: Search) -> list[Ref]:
    return _by_search(Services(services.store, services.clock), search)


def _by_cosine(services: Services, search: Search) -> list[Ref]:
    """The records nearest in meaning, whatever words they hold and however old they are."""
    if services.semantic is None or not search.query.searchable:
        return []
    text = language.meaning(search.text)
    nearest = services.semantic.nearest(KIND, text, DEPTH, search.selection)
    return [Ref(KIND, id) for id, _ in nearest]


def _fuse_by_places(
    lexical: Mapping[Hashable, float], cosines: Mapping[Hashable, float], coverage: float
) -> dict[Hashable, Fused]:
    """Reciprocal rank fusion, in place of `memsvc.fusion.fuse`."""
    lexically, semantically = _reciprocals(lexical), _reciprocals(cosines)
    keys = {**lexically, **semantically}
    return {key: Fused(lexically.get(key, 0.0), semantically.get(key, 0.0)) for key in keys}


def _reciprocals(values: Mapping[Hashable, float]) -> dict[Hashable, float]:
    best_first = sorted(values, key=lambda key: -values[key])
    return {key: 1 / (RECIPROCAL + place) for place, key in enumerate(best_first, 1)}


@dataclass(frozen=True, slots=True)
class Filling:
    """An index, and what is left out of its vectors: `titles`, `parts` or nothing."""

    index: str = "exact"
    without: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """One row: how the queries are ranked. `recent` moves the clock back, so that half of the
    records lie inside the default bound; the corpora are years old.
    """

    name: str
    filling: Filling = Filling()
    patches: tuple[Patch, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    recent: bool = False
    rank: Callable[[Services, Search], list[Ref]] = _by_search


FIXED_VOTE = (
    (fusion, "WORDS_LEAST", 0.6),
    (fusion, "WORDS_COVERED", 0.0),
    (fusion, "WORDS_NEAR", 0.0),
)
NO_BONUSES = ((fulltext, "NEIGHBOURS_BONUS", 0.0), (fulltext, "EXACT_BONUS", 0.0))
FLAT = {kind: (fulltext.TEXT_WEIGHT, *others) for kind, (_, *others) in fulltext.WEIGHTS.items()}

FULL_TEXT = Way("full text", rank=_by_words)
FUSED = Way("fused")
WAYS = (
    FULL_TEXT,
    Way("vectors alone", rank=_by_cosine),
    FUSED,
    Way("fused, days=all", parameters={"days": "all"}),
    Way("fused, half recent", recent=True),
    Way("fixed vote .6", patches=FIXED_VOTE),
    Way("reciprocal rank fusion", patches=((ranking, "fuse", _fuse_by_places),)),
    Way("no bonuses", patches=NO_BONUSES),
    Way("title weight 1", patches=((fulltext, "WEIGHTS", FLAT),)),
    Way("no title in vectors", Filling(without="titles")),
    Way("no part vectors", Filling(without="parts")),
    Way("index chroma", Filling("chroma")),
    Way("index sqlite-vec", Filling("sqlite-vec")),
)
ON_A_SERVER = Way("index chroma-http", Filling("chroma-http"))
"""Measured only where the environment names the server."""


def measure_ablation(
    folder: Path, names: Sequence[str], *, project_filter: bool, keep: Path | None, as_json: bool
) -> int:
    """Print how the sets of a folder are ranked in every way; the exit code is 0."""
    ways = [*WAYS, *([ON_A_SERVER] if os.environ.get("MEMSVC_CHROMA_URL") else [])]
    results: Results = {}
    try:
        for column, way, scores in _measured(read_sets(folder, names), ways, project_filter, keep):
            results.setdefault(column, {})[way] = scores
    except MemsvcError as error:
        raise click.ClickException(error.detail) from error
    tables = {metric: _table(results, metric) for metric in SHOWN}
    return report({**tables, **_intervals(results)}, [], as_json=as_json)


# -- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """Judged queries that are averaged together: a set, or the part of it that has one style."""

    name: str
    queries: tuple[Query, ...]
    gold: Mapping[str, Mapping[str, float]]
    in_project: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """One store and what its records are ranked with; `middle` is when half of them were made."""

    home: Path
    store: SqliteStore
    embedder: Embedder
    source_ids: Mapping[Ref, str]
    middle: int

    @contextlib.contextmanager
    def semantic(self, filling: Filling) -> Iterator[Semantic]:
        """The semantic part over an index that knows all records."""
        settings = _settings(self.home, filling.index)
        parts = Parts(lambda: self.embedder, lambda *which: open_index(settings, *which))
        semantic = AskedSemantic(self.store, self._vectors(filling.without), parts)
        try:
            while semantic.step():
                pass
            yield semantic
        finally:
            semantic.stop()

    def _vectors(self, without: str) -> SqliteVectors:
        connections = self.store.connections
        if without == "parts":
            return Altered(connections, without_parts)
        if without == "titles":
            return Altered(connections, partial(without_title, embed=self.embedder.embed))
        return SqliteVectors(connections)

    def scores(self, column: Column, way: Way, semantic: Semantic) -> list[Score]:
        """The scores of the queries of a column, in their order, ranked in one way."""
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
        search = read_search(services, given, [KIND], windowed=True)
        with self.store.snapshot():
            return [self.source_ids[ref] for ref in way.rank(services, search)[:DEPTH]]


class Altered(SqliteVectors):
    """The vectors of a store as an alteration leaves them, once all changes were asked for.

    They are altered in the store, not in the index: a selection of few records never asks the
    index.
    """

    def __init__(self, connections: Connections, alter: Alter) -> None:
        super().__init__(connections)
        self._alter = alter
        self._altered: dict[Ref, Vector] = {}

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        """The next changes, with vectors altered."""
        changes = super().changes(position, limit, fingerprint)
        records = self.records(change.ref for change in changes)
        return [self._followed(change, records.get(change.ref)) for change in changes]

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        """The altered vectors of records."""
        refs = (Ref(kind, id) for id in ids)
        return {ref.id: self._altered[ref] for ref in refs if ref in self._altered}

    def _followed(self, change: Change, record: Record | None) -> Change:
        if change.embedded is None or record is None:
            return change
        altered = self._altered[change.ref] = self._alter(record, change.embedded.vectors)
        return replace(change, embedded=replace(change.embedded, vectors=altered))


def without_parts(record: Record, vectors: Vector) -> Vector:
    """The first vector of a record alone."""
    return vectors[:1]


def without_title(record: Record, vectors: Vector, embed: Callable[[str], Vector]) -> Vector:
    """The vectors of a record with its title taken out of the first again.

    That of a long record is then the mean of its parts, any other taken to be of length 1: with
    files it is a little shorter, and a little of the title stays.
    """
    (*_, (title, weight)) = mixture = passages(record)[0]
    if sum(each for _, each in mixture) < 1 + weight / 2:  # the other weights come to 1
        return vectors
    if len(vectors) > 1:
        return numpy.stack([unit(vectors[1:].mean(axis=0)), *vectors[1:]])
    vector = embed(title)
    along = weight * float(vectors[0] @ vector)
    length = along + math.sqrt(max(0.0, along**2 + 1 - weight**2))
    return unit(length * vectors[0] - weight * vector)[numpy.newaxis]


class AskedStore(SqliteStore):
    """A store that finds once what several ways ask for: full text takes most of their time."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        plain = SqliteStore(connections)
        self._ranks = lru_cache(None)(lambda _, *asked: plain.rank(*asked))
        self._matches = lru_cache(None)(plain.matches_among)
        self._coverage = lru_cache(None)(plain.coverage)

    def rank(self, kind: Kind, query: language.Query, selection: Filter, depth: int) -> list[Hit]:
        """The best matches; again for other weights and bonuses."""
        state = (fulltext.WEIGHTS[kind], fulltext.NEIGHBOURS_BONUS, fulltext.EXACT_BONUS)
        return self._ranks(state, kind, query, selection, depth)

    def matches_among(
        self, kind: Kind, query: language.Query, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        """Those of a few records that match a query."""
        return self._matches(kind, query, selection, tuple(sorted(ids)))

    def coverage(self, query: language.Query, ref: Ref) -> float:
        """How much of a query a record holds."""
        return self._coverage(query, ref)


class AskedSemantic(Semantic):
    """Semantic search that finds once what several ways ask for."""

    def __init__(self, store: SqliteStore, vectors: SqliteVectors, parts: Parts) -> None:
        super().__init__(store, vectors, parts)
        self._answer = lru_cache(None)(super().nearest)

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records nearest to a text, as they were found first; all are indexed before."""
        return self._answer(kind, text, limit, selection)


class Remembering:
    """An embedder that embeds each text once: every index is asked the same queries."""

    def __init__(self, embedder: Embedder) -> None:
        self.fingerprint = embedder.fingerprint
        self.embed = lru_cache(None)(embedder.embed)


@contextlib.contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Names of modules stand for other values, until the end."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _measured(
    sets: Sequence[EvaluationSet], ways: Sequence[Way], project_filter: bool, keep: Path | None
) -> Iterator[tuple[str, str, list[Score]]]:
    """The scores of every column in every way; sets that share a corpus share its store."""
    embedder = load_embedder(load_settings())
    remembering = Remembering(embedder)
    for corpus in dict.fromkeys(each.corpus for each in sets):
        shared = (each for each in sets if each.corpus == corpus)
        columns = [column for each in shared for column in _columns(each, project_filter)]
        with home_in(keep, corpus.parent.name) as home:
            load(corpus, home)
            with opened_store(home) as store:
                _embed_missing(store, embedder)
                bench = _bench(home, AskedStore(store.connections), remembering)
                yield from _ranked(bench, columns, ways)


def _ranked(
    bench: Bench, columns: Sequence[Column], ways: Sequence[Way]
) -> Iterator[tuple[str, str, list[Score]]]:
    """The scores over one store; an index is filled once for all ways that it serves."""
    for filling in dict.fromkeys(way.filling for way in ways):
        print(f"{bench.home.name}: filling the index {filling.index}", file=sys.stderr)
        with bench.semantic(filling) as semantic:
            for way in (each for each in ways if each.filling == filling):
                print(f"{bench.home.name}: {way.name}", file=sys.stderr)
                for column in columns:
                    yield column.name, way.name, bench.scores(column, way, semantic)


def _columns(chosen: EvaluationSet, project_filter: bool) -> Iterator[Column]:
    has_projects = all("project" in query.meta for query in chosen.queries)
    in_project = project_filter and has_projects and chosen.name.startswith(DIALOGUES)
    by_style: dict[str, list[Query]] = {}
    for query in chosen.queries:
        if query.id in chosen.gold:
            by_style.setdefault(query.meta.get("style", ""), []).append(query)
    for style, queries in sorted(by_style.items()):
        name = f"{chosen.name} {style}".strip()
        yield Column(name, tuple(queries), chosen.gold, in_project)


def _bench(home: Path, store: SqliteStore, embedder: Embedder) -> Bench:
    total = store.count(KIND, Filter())
    hits = store.page([KIND], Filter(), newest_first=True, limit=total, offset=0)
    ids: dict[Ref, str] = {}
    for start in range(0, total, 1_000):
        records = store.records(hit.ref for hit in hits[start : start + 1_000])
        ids |= {ref: record.source_id for ref, record in records.items()}
    middle = int(statistics.median(hit.created_at_epoch for hit in hits))
    return Bench(home, store, embedder, ids, middle)


def _embed_missing(store: SqliteStore, embedder: Embedder) -> None:
    """Give every record of a store its vectors."""
    vectors = SqliteVectors(store.connections)
    vectors.queue_others(embedder.fingerprint)
    for step in count():
        if not step % 100 and (waiting := vectors.count_pending()):
            print(f"{waiting:,} records to be embedded", file=sys.stderr)
        if not embed_some(vectors, embedder):
            return


def _settings(home: Path, index: str) -> Settings:
    return load_settings({**os.environ, "MEMSVC_HOME": str(home), "MEMSVC_SEMANTIC": index})


# -- telling --------------------------------------------------------------------------------------


def _table(results: Results, metric: str) -> list[Row]:
    """One row a way: the mean of each column, the mean of those, and how it stands to fused."""
    ways = list(next(iter(results.values())))
    means = {
        way: {_short(column): average(by_way[way])[metric] for column, by_way in results.items()}
        for way in ways
    }
    overall = {way: statistics.fmean(means[way].values()) for way in ways}
    return [
        {
            "row": way,
            **means[way],
            "mean": f"{overall[way]:.4f}",
            "-fused": f"{overall[way] - overall[FUSED.name]:+.4f}",
        }
        for way in ways
    ]


def _short(column: str) -> str:
    return SHORT.get(column, column)


def _intervals(results: Results) -> dict[str, list[Row]]:
    """How far the differences in nDCG@10 may be chance: each where 95 % of the resamples lie."""
    by_column = [
        {
            "column": _short(column),
            "set": column,
            "queries": len(by_way[FUSED.name]),
            **_interval(_gains(by_way, FUSED.name, FULL_TEXT.name)),
        }
        for column, by_way in results.items()
    ]
    others = [way for way in next(iter(results.values())) if way != FUSED.name]
    by_way = [{"row": way, **_interval(*_all_gains(results, way))} for way in others]
    return {
        "nDCG@10, fused - full text, 95 % of 1,000 resamples": by_column,
        "mean nDCG@10, row - fused, 95 % of 1,000 resamples": by_way,
    }


def _all_gains(results: Results, way: str) -> list[Numbers]:
    return [_gains(by_way, way, FUSED.name) for by_way in results.values()]


def _gains(by_way: Mapping[str, Sequence[Score]], way: str, other: str) -> Numbers:
    """What each query gains by one way over another."""
    pairs = zip(by_way[way], by_way[other], strict=True)
    return numpy.array([one[METRIC] - two[METRIC] for one, two in pairs])


def _interval(*gains: Numbers) -> Row:
    """The mean over columns of the mean gain of their queries, and where 95 % of its resamples lie:
    each draws as many queries of a column as it has, with replacement.
    """
    chance = numpy.random.default_rng(SEED)
    drawn = [each[chance.integers(len(each), size=(RESAMPLES, len(each)))] for each in gains]
    means = numpy.mean([each.mean(axis=1) for each in drawn], axis=0)
    low, high = numpy.percentile(means, [2.5, 97.5])
    mean = numpy.mean([each.mean() for each in gains])
    return {"difference": f"{mean:+.4f}", "from": f"{low:+.4f}", "to": f"{high:+.4f}"}
