"""The store: what the use cases ask of whatever keeps memories, and what it answers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memsvc.core.economics import Economics
from memsvc.core.filters import Filter
from memsvc.core.query import Query
from memsvc.core.records import Kind, Record, Ref, WorkSession

Clock = Callable[[], int]
"""Gives the present moment in ms since 1970, UTC."""


class Outcome(StrEnum):
    """What became of one record that was handed to the store."""

    STORED = "stored"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    MERGED = "merged"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one record, and which record of the store stands for it now."""

    outcome: Outcome
    ref: Ref | None


@dataclass(frozen=True, slots=True)
class Hit:
    """One found record: when it was made, and why it is here.

    Its score (0-1) is `relevance` plus `recency`; `semantic_share` is the share of its relevance
    that comes from semantic search. `older` marks one from before the default time window.
    """

    ref: Ref
    created_at_epoch: int
    relevance: float = 0.0
    recency: float = 0.0
    older: bool = False
    semantic_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the store's order of time: first the moment, then the id, then the kind."""

    created_at_epoch: int
    id: int = 0
    kind: Kind = Kind.OBSERVATION


@dataclass(frozen=True, slots=True)
class Project:
    """How much of each kind a project holds, and when it was last worked on (ms)."""

    name: str
    counts: dict[Kind, int]
    last_at_epoch: int


@dataclass(frozen=True, slots=True)
class WorkEntry:
    """One work session with its records of each kind, newest first, and how many there are."""

    session: WorkSession
    last_at_epoch: int
    hits: dict[Kind, list[Hit]]
    counts: dict[Kind, int]


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

    def preview(
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

    def count_work_sessions(self, selection: Filter) -> int:
        """How many work sessions hold a record that a filter selects.

        A filter by nothing but project also counts those without any record.
        """

    def recent_work(self, selection: Filter, *, limit: int, most: int) -> list[WorkEntry]:
        """The same work sessions, last worked on first, each with up to `most` of its selected
        records of each kind, newest first, and how many there are.
        """

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

    def times(self, refs: Iterable[Ref]) -> dict[Ref, int]:
        """When these records were made (ms), those that exist."""

    def close(self) -> None:
        """Close every connection, of all threads."""
