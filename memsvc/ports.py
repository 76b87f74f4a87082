"""What the core asks of the outside world. Adapters stand behind these protocols."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from memsvc.model import (
    Filter,
    Hit,
    Kind,
    Point,
    Project,
    Receipt,
    Record,
    Ref,
    WorkEntry,
    WorkSession,
)
from memsvc.query import Query

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

    def count_work_sessions(self, projects: tuple[str, ...]) -> int:
        """How many work sessions these projects have; none given means all."""

    def recent_work(self, projects: tuple[str, ...], *, limit: int, most: int) -> list[WorkEntry]:
        """The work sessions last worked on, with up to `most` records of each kind."""

    def check(self) -> None:
        """Raise StoreUnavailable unless the store can be read."""
