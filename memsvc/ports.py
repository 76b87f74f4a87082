"""What the core asks of the outside world. Adapters stand behind these protocols."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from memsvc.economics import Economics
from memsvc.model import (
    Change,
    Embedded,
    Filter,
    Hit,
    Kind,
    Pending,
    Point,
    Project,
    Receipt,
    Record,
    Ref,
    WorkEntry,
    WorkSession,
)
from memsvc.query import Query

if TYPE_CHECKING:  # numpy is imported by those who calculate, not by those who only speak of it
    import numpy

    Vector = numpy.typing.NDArray[numpy.float32]
else:
    Vector = object

Clock = Callable[[], int]
"""Gives the present moment in ms since 1970, UTC."""


class Store(Protocol):
    """Where memories are kept. SQLite today; nothing in it names SQL.

    Reads inside `snapshot()` all see the same state of the store.
    """

    def generation(self) -> int:
        """A number that every write counts up."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Within it, this thread's reads see one state."""

    def write(
        self,
        records: Iterable[Record],
        work_sessions: Iterable[WorkSession] = (),
        *,
        merge_within: int | None = None,
    ) -> list[Receipt]:
        """Store a batch, all or nothing, and say what became of each record.

        With `merge_within`, a new record that says the same as another of its source, no more than
        so many ms apart, is merged into it.
        """

    def foresee(
        self, records: Iterable[Record], *, merge_within: int | None = None
    ) -> list[Receipt]:
        """What `write` would answer for each record by itself; nothing is written."""

    def forget(self, ref: Ref) -> bool:
        """Remove a record everywhere; False if there is none."""

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        """The records that exist among these refs."""

    def page(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
        offset: int,
    ) -> list[Hit]:
        """One page of what a filter selects, in the order of time."""

    def count(self, kind: Kind, selection: Filter) -> int:
        """How many records of a kind a filter selects."""

    def neighbours(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        point: Point,
        *,
        before: bool,
        limit: int,
    ) -> list[Hit]:
        """The records nearest to a point on one side of it, in the order of time."""

    def rank(self, kind: Kind, query: Query, selection: Filter, depth: int) -> list[Hit]:
        """The best `depth` full-text matches, best first, with their relevance."""

    def rank_among(self, kind: Kind, query: Query, ids: Sequence[int]) -> list[Hit]:
        """Those of a few records that match in full text, best first."""

    def count_matches(self, kind: Kind, query: Query, selection: Filter) -> int:
        """How many records match a query in full text."""

    def rest(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        without: Sequence[int],
        limit: int,
        offset: int,
    ) -> list[Hit]:
        """The matches outside `without`, best first, for pages beyond the ranked candidates."""

    def matches_by_time(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
    ) -> list[Hit]:
        """The first `limit` full-text matches in the order of time."""

    def matched_terms(self, ref: Ref, query: Query) -> dict[str, list[str]]:
        """Which words of a query a record holds, and in which of its fields."""

    def suggest(self, kind: Kind, query: Query) -> list[str]:
        """The nearest words in the index for a query that finds nothing."""

    def count_values(self, kind: Kind, field: str) -> dict[str, int]:
        """How often each value of a field (type, concept, project, file) is carried."""

    def projects(self) -> list[Project]:
        """Every project, last worked on first."""

    def days(self, since: int) -> dict[str, int]:
        """How many records each local day has from a moment on, newest day first."""

    def economics(self) -> Economics:
        """What reading all records costs, what learning them did, and what that saves."""

    def count_work_sessions(self, projects: tuple[str, ...]) -> int:
        """How many work sessions these projects have; none given means all."""

    def recent_work(self, projects: tuple[str, ...], *, limit: int, most: int) -> list[WorkEntry]:
        """The work sessions last worked on, with up to `most` records of each kind."""

    def check(self) -> None:
        """Raise StoreUnavailable unless the store can be read."""

    def coverage(self, query: Query, ref: Ref) -> float:
        """How much of a query's words, by their weight, a record holds (0-1)."""

    def matches_among(
        self, kind: Kind, query: Query, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        """Those of a few records that match a query in full text within a filter."""

    def selected_ids(self, kind: Kind, selection: Filter) -> list[int]:
        """The ids of all records of a kind that a filter selects."""

    def selected_among(self, kind: Kind, selection: Filter, ids: Sequence[int]) -> set[int]:
        """Those of a few records that a filter selects."""

    def moments(self, refs: Iterable[Ref]) -> dict[Ref, int]:
        """When these records were made (ms), those that exist."""


class VectorStore(Protocol):
    """Where vectors are kept for good, and what is still to be done about them."""

    def store_name(self) -> str:
        """Tells this store from others that share a server; never changes."""

    def rebuilds(self) -> int:
        """How often a rebuild of the index was asked for."""

    def ask_rebuild(self) -> None:
        """Ask whoever owns the index to make it anew from the vectors."""

    def queue_others(self, fingerprint: str) -> None:
        """Put every record in the queue that has no vectors of this fingerprint."""

    def pending(self, limit: int) -> list[Pending]:
        """The newest records that wait for their vectors."""

    def count_pending(self) -> int:
        """How many records wait for their vectors."""

    def keep_vectors(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        """Store vectors, all or none, but for records that changed since they were begun."""

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        """The vectors of records, of shape (n, dimension), those of one fingerprint only."""

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        """The next changes after a position that an index has to follow, in order."""

    def count_changes(self, position: int) -> int:
        """How many changes an index at this position has not followed yet."""

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        """The records that exist among these refs."""


class Embedder(Protocol):
    """What turns texts into vectors of unit length."""

    @property
    def fingerprint(self) -> str:
        """Names all that vectors depend on: dimension, model, tokens, texts."""

    def embed(self, text: str) -> Vector:
        """The vector of a text, of shape (dimension,). Any text has one."""


class SemanticIndex(Protocol):
    """Finds the nearest vectors. A cache: all that it holds can be made anew from the store.

    A record may have several vectors; the nearest of them stands for it. Methods may be called from
    any thread. They raise SemanticUnavailable when the index cannot do its work.
    """

    def upsert(self, records: Sequence[Embedded]) -> None:
        """Put records in, each in place of all that the index held of it."""

    def remove(self, refs: Sequence[Ref]) -> None:
        """Take records out; those that are not there are passed over."""

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The `limit` nearest records of a kind that a filter selects: id and cosine (-1 to 1),
        nearest first, each once. The filter is applied before the nearest are taken; it holds no
        group of files.
        """

    def count(self) -> int:
        """How many vectors there are."""

    def position(self) -> int:
        """The last change of the store that the index has followed; 0 in an empty index."""

    def advance(self, position: int) -> None:
        """Note, for good, that every change up to this one is in the index."""

    def clear(self) -> None:
        """Throw everything away, the position too; also when what is there cannot be read."""

    def close(self) -> None:
        """Let go of files, locks and threads."""


class SemanticSearch(Protocol):
    """What finds records by their meaning, as far as it is there."""

    def start(self) -> None:
        """Load and index in the background until `stop`."""

    def stop(self) -> None:
        """End the background work and let go of the index."""

    def step(self) -> int:
        """Do some of what is to be done, in this thread; how much it was, 0 when all is done.

        Raises MemsvcError when it cannot be done.
        """

    def ask_rebuild(self) -> None:
        """Ask whoever owns the index to make it anew from the vectors in the store."""

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records of a kind nearest to a text within a filter: id and cosine, nearest first.

        Raises SemanticUnavailable, saying why, when that cannot be told.
        """

    def prepare(self, text: str) -> None:
        """Begin with a text that `nearest` or `compare` will be asked about; never fails."""

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        """A few records by how near they are to a text: id and cosine, nearest first.

        Raises SemanticUnavailable.
        """

    def missing(self) -> str:
        """What is not known to it yet, in a sentence; empty if nothing."""

    def report(self) -> dict[str, Any]:
        """Whether it works (`ok`), `detail` why not or what is still to be done, how many records
        are `waiting`, and how many `rebuilds` it has seen.
        """
