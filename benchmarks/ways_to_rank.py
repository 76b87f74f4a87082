"""Ways to rank: what each leaves out of the ranking or the vectors, or does differently."""

import contextlib
import math
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType

import click
import numpy

from benchmarks.metrics import DEPTH
from memsvc.adapters.sqlite.connections import Connections
from memsvc.adapters.sqlite.fulltext import bonuses
from memsvc.adapters.sqlite.fulltext import ranking as fulltext
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application import ranking
from memsvc.application.requests import SearchRequest
from memsvc.application.services import Services
from memsvc.core import fusion
from memsvc.core.fusion import Evidence, Fused
from memsvc.core.ports.vectors import Change, Pending, Vector
from memsvc.core.query import plain_text
from memsvc.core.records import Kind, Record, Ref
from memsvc.core.semantic.cosines import unit
from memsvc.core.semantic.passages import embedding_texts

KIND = Kind.OBSERVATION

RECIPROCAL = 60
"""The k of reciprocal rank fusion, as in the paper."""

Alter = Callable[[Record, Vector], Vector]
Patch = tuple[ModuleType, str, object]


def _by_search(services: Services, search: SearchRequest) -> list[Ref]:
    """The results of a search. Raises ClickException if a needed semantic search fails."""
    found = ranking.rank_candidates(services, search)
    if found.degraded and found.strategy != "hybrid":
        raise click.ClickException(found.degraded)
    return [hit.ref for hit in found.hits]


def _by_words(services: Services, search: SearchRequest) -> list[Ref]:
    return _by_search(Services(services.store, services.clock), search)


def _by_cosine(services: Services, search: SearchRequest) -> list[Ref]:
    """The most similar records, whatever their words or age."""
    if services.semantic is None or not search.query.searchable:
        return []
    text = plain_text(search.text)
    nearest = services.semantic.nearest(KIND, text, DEPTH, search.selection)
    return [Ref(KIND, id) for id, _ in nearest]


def _fuse_by_places(
    lexical: Mapping[Hashable, float],
    cosines: Mapping[Hashable, float],
    coverage: float,
    length: int,
) -> dict[Hashable, Fused]:
    """Reciprocal rank fusion, instead of `memsvc.core.fusion.fuse`."""
    lexically, semantically = _reciprocals(lexical), _reciprocals(cosines)
    keys = {**lexically, **semantically}
    return {key: Fused(lexically.get(key, 0.0), semantically.get(key, 0.0)) for key in keys}


def _reciprocals(values: Mapping[Hashable, float]) -> dict[Hashable, float]:
    best_first = sorted(values, key=lambda key: -values[key])
    return {key: 1 / (RECIPROCAL + place) for place, key in enumerate(best_first, 1)}


@dataclass(frozen=True, slots=True)
class Filling:
    """An index, the share of the records that is embedded (chosen at random), and what is left out
    of their vectors: `titles`, `parts` or nothing.

    It is the exact index unless a row names another, to separate the effect of an idea from the
    losses of an index.
    """

    index: str = "exact"
    without: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """One row: how the queries are ranked. `recent` moves the clock back so that half of the
    records are inside the default window; the corpora are years old.
    """

    name: str
    filling: Filling = Filling()
    patches: tuple[Patch, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    recent: bool = False
    rank: Callable[[Services, SearchRequest], list[Ref]] = _by_search


FIXED_VOTE = (
    (fusion, "BIAS", math.log(0.6 / 0.4)),
    (fusion, "COEFFICIENTS", Evidence(*[0.0] * 5)),
)
NO_BONUSES = ((bonuses, "NEIGHBOURS_BONUS", 0.0), (bonuses, "EXACT_BONUS", 0.0))
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
    Way("a quarter embedded", Filling(share=0.25)),
    Way("half embedded", Filling(share=0.5)),
    Way("three quarters embedded", Filling(share=0.75)),
    Way("index chroma", Filling("chroma")),
    Way("index sqlite-vec", Filling("sqlite-vec")),
)
ON_A_SERVER = Way("index chroma-http", Filling("chroma-http"))
"""Only measured if the environment names a server."""


@contextlib.contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Replace values in modules for a while."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class Altered(SqliteVectors):
    """The vectors of a store, altered when changes are read.

    They are altered in the store, not in the index, because small selections never use the index.
    """

    def __init__(self, connections: Connections, alter: Alter) -> None:
        super().__init__(connections)
        self._alter = alter
        self._altered: dict[Ref, Vector] = {}

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        """The next changes, with altered vectors."""
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


class Partial(SqliteVectors):
    """The vectors of a random share of a store's records, as if the others still waited."""

    def __init__(self, connections: Connections, share: float) -> None:
        super().__init__(connections)
        self._share = share

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        """The next changes, without the vectors of records that wait."""
        changes = super().changes(position, limit, fingerprint)
        return [each if self._holds(each.ref) else replace(each, embedded=None) for each in changes]

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        """The vectors of records that do not wait."""
        held = [id for id in ids if self._holds(Ref(kind, id))]
        return super().vectors(kind, held, fingerprint)

    def embedded_among(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> set[int]:
        """Those of these records that do not wait."""
        return {id for id in ids if self._holds(Ref(kind, id))}

    def pending(self, limit: int) -> list[Pending]:
        """One record at least waits, or so it says to searches; nothing is embedded."""
        return [Pending(0, Ref(KIND, 0))]

    def _holds(self, ref: Ref) -> bool:
        return random.Random(str(ref)).random() < self._share


def without_parts(record: Record, vectors: Vector) -> Vector:
    """Only the first vector of a record."""
    return vectors[:1]


def without_title(record: Record, vectors: Vector, embed: Callable[[str], Vector]) -> Vector:
    """The vectors of a record with its title removed from the first.

    For a long record, that leaves the mean of its passages. Any other is assumed to have length 1;
    with files it is a little shorter, so a little of the title remains.
    """
    (*_, (title, weight)) = mixture = embedding_texts(record)[0]
    if sum(each for _, each in mixture) < 1 + weight / 2:  # the other weights add up to 1
        return vectors
    if len(vectors) > 1:
        return numpy.stack([unit(vectors[1:].mean(axis=0)), *vectors[1:]])
    vector = embed(title)
    along = weight * float(vectors[0] @ vector)
    length = along + math.sqrt(max(0.0, along**2 + 1 - weight**2))
    return unit(length * vectors[0] - weight * vector)[numpy.newaxis]
