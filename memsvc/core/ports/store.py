"""The store: what the use cases ask of whatever keeps memories, and what it answers.

`tests/contracts` holds every adapter to what is written here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from memsvc.core.economics import Economics
from memsvc.core.filters import Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.query import Query
from memsvc.core.records import Kind, Record, Ref, WorkSession

Clock = Callable[[], int]
"""Gives the present moment in ms since 1970, UTC."""


Terms = dict[str, list[str]]
"""Words and phrases, each with the fields of a record that hold it."""


class Outcome(StrEnum):
    """What became of one record given to the store: it is new; it replaces what its source wrote
    before; nothing changed; another record already stands for it; the user had it forgotten. All
    that a private one says is private: it is never given to the store.
    """

    STORED = "stored"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    MERGED = "merged"
    FORGOTTEN = "forgotten"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one record, and which record of the store stands for it now, if any."""

    outcome: Outcome
    ref: Ref | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record belongs, and how many characters its texts have, lists as JSON."""

    project: str
    session_id: str
    length: int


WORK: Final = "work"
"""What a trace of a forgotten work session has in place of a kind."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What is left of something forgotten, so that no import brings it back: where it came from,
    and a hash of what it said. For a work session, `kind` is WORK and `source_id` its `work_hash`.
    """

    kind: str
    source: str
    source_id: str
    content_hash: int = 0
    created_at_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """One found record: when it was made, and why it is here.

    Its score (0-1) is `relevance` plus `recency`; `semantic_share` is the share of its relevance
    that comes from semantic search, and `shares` has that of each wording, if there are several.
    `older` marks one from before the default time window, `named` one that the query names: it
    comes first, whatever else was found.
    """

    ref: Ref
    created_at_epoch: int
    relevance: float = 0.0
    recency: float = 0.0
    older: bool = False
    semantic_share: float = 0.0
    shares: tuple[float, ...] = ()
    named: bool = False


class Title(NamedTuple):
    """What a record is called, and in which project."""

    text: str
    project: str


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the store's order of time: by the moment, then the id, then the kind's name."""

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

    What a filter selects is what `filters.selects` says. A record matches a query in full text if
    it holds any of its words or, where something is required, all of that, and nothing excluded;
    a query that asks for nothing matches nothing, one that only excludes matches all the rest. A
    word is found in any text, file or piece of an identifier (as `words` cuts them), whatever its
    case and accents, and in its simple other forms: fail, fails, failing, failed. A phrase holds
    such words in their order. A prefix finds all that begins so; an adapter may find other forms of
    that too. `title:` looks in the title alone, but for Chinese, Japanese and Korean. A query with
    other wordings (`Query.also`) matches what it or any of them matches by itself.

    The hash of a commit is one word, and found in the same text however it is abbreviated. It also
    matches the observation of that commit, whose source id is the hash, as if it held the word;
    that one comes first, with relevance 1.

    How matches are ranked is the adapter's own affair. All methods may be called from any thread;
    past the deadline of that thread (`core.limits.deadline`), within a snapshot at the latest, they
    raise DeadlineExceeded, and what they have begun to write is undone.
    """

    def generation(self) -> int:
        """A number that every change of the store counts up; it never falls."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Within it, this thread's reads see the state that the first of them saw. It nests, and
        the thread may write within it.
        """

    def write(
        self,
        records: Iterable[Record],
        work_sessions: Iterable[WorkSession] = (),
        *,
        merge_within: int | None = None,
        keep_ids: bool = False,
    ) -> list[Receipt]:
        """Store a batch, all or nothing, and say what became of each record, in their order.

        Kind, source and source id identify a record: written again, it is unchanged or updated. A
        record without a time gets that of its first write. Forgotten records stay away. Ids count
        up from 1 in each kind, and none is used twice. With `keep_ids`, a new record whose own id
        is above all that its kind has given out keeps it.

        With `merge_within`, a new record that says the same (`content_hash`) as another of its
        kind and source, no more than so many ms apart, is merged into the earliest such; if that
        was forgotten, the new one stays away too.

        Work sessions come into being with their records and span the times of these; of those
        given, status and end are taken over. One that was forgotten stays away until a record of it
        is written.
        """

    def preview(
        self, records: Iterable[Record], *, merge_within: int | None = None
    ) -> list[Receipt]:
        """What `write` would answer for each record by itself, where a new one has no ref yet;
        nothing is written.
        """

    def forget(self, ref: Ref) -> bool:
        """Remove a record everywhere, for good, so that no byte of its text is left where it was
        kept; False if there is none.

        With the last record of a work session that goes too, and with the last of a project all
        its work sessions.
        """

    def forget_all(self, refs: Iterable[Ref]) -> int:
        """Forget a batch of records, all or nothing, and say how many there were.

        It is `forget` for each, but faster; `sweep` completes it.
        """

    def rewrite(
        self,
        records: Iterable[tuple[Record, Record]] = (),
        work_sessions: Iterable[tuple[WorkSession, WorkSession]] = (),
    ) -> list[Ref]:
        """Overwrite stored records and rename work sessions, all or nothing: (before, after) pairs.

        A record that is not as `before` any more is left alone; the answer names the others. One
        that takes on the source and source id of another is dropped, because that stands for it.
        Vectors of what was overwritten are dropped, and made anew. `sweep` completes it.
        """

    def rename_forgotten(self, name: Callable[[str], str]) -> int:
        """Change the sources and source ids by which forgotten records are known; how many."""

    def sweep(self) -> bool:
        """Leave nothing of removed and overwritten texts in any file, once the semantic index is
        rebuilt too, which it asks for. False if a reader kept them in the log for now.
        """

    def work_sessions(self) -> list[WorkSession]:
        """All work sessions, by project and id."""

    def from_sources(self, kind: Kind, sources: Sequence[str]) -> set[int]:
        """The ids of all records of a kind that came from any of these sources."""

    def project_from(self, kind: Kind, family: str, source_id: str) -> str | None:
        """The project of the record that a source of a family (`git` has `git:shop`) knows by this
        id: of several the newest record. None without one.
        """

    def last_ids(self) -> dict[Kind, int]:
        """The highest id that each kind has given out, to forgotten records too; 0 at first."""

    def contents(self, selection: Filter) -> Iterator[WorkSession | Record | Trace]:
        """The store piece by piece: the selected work sessions (see `count_work_sessions`), the
        selected records of each kind by rising id, and, if everything is selected, all traces.
        """

    def adopt(self, traces: Iterable[Trace], last_ids: Mapping[Kind, int]) -> None:
        """Take over what another store has forgotten and the ids that it has given out.

        What exists here is kept, and so are ids that are higher here.
        """

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        """The records that exist among these refs."""

    def commits(self, commit: Commit) -> list[Ref]:
        """The observations of a commit (`commits.names_commit`), newest first; several if the hash
        is too short, or if it was imported under several names.
        """

    def page(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
        offset: int,
    ) -> list[Hit]:
        """One page of what a filter selects, in the order of time (see `Point`) or its reverse."""

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
        """The `limit` records nearest to a point on one side of it, in the order of time.

        A record that stands at the point is on neither side.
        """

    def rank(self, kind: Kind, query: Query, selection: Filter, depth: int) -> list[Hit]:
        """The best `depth` full-text matches, best first, with their relevance (0-1).

        Equally relevant ones come newest first; a query that only excludes ranks nothing: its
        matches have relevance 0, the newest first.
        """

    def rank_among(self, kind: Kind, query: Query, ids: Sequence[int]) -> list[Hit]:
        """Those of a few records that match in full text, best first, with relevance (0-1)."""

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
        """A page of the matches outside `without`, best first, for what follows the ranked
        candidates: without those, it gives all other matches, each once.
        """

    def matches_by_time(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
    ) -> list[Hit]:
        """The first `limit` full-text matches in the order of time or its reverse; relevance 0."""

    def matched_terms(self, kind: Kind, ids: Sequence[int], query: Query) -> dict[int, Terms]:
        """Which words and phrases of a query each of a few records holds, and in which fields.

        Words are in small letters; `files` stands for all its files, `parts` for pieces of words.
        """

    def suggest(self, kind: Kind, query: Query) -> list[str]:
        """Words that occur, for those of a query that do not but are spelt much alike."""

    def count_values(self, kind: Kind, field: str) -> dict[str, int]:
        """How many records of a kind carry each value of a field of `FIELDS`, most used first.

        Values that differ in case alone are one, in a spelling that was written.
        """

    def projects(self, until: int | None = None) -> list[Project]:
        """Every project, last worked on first: what is dated after `until` does not count for that,
        and a project that has nothing else comes last, with its newest date.
        """

    def days(self, since: int) -> dict[str, int]:
        """How many records each local day has from a moment on, newest day first."""

    def economics(self) -> Economics:
        """What reading all records costs, what learning them did, and what that saves.

        Reading costs the tokens of a record's JSON; a discovery of several records counts once
        (`economics.learned`).
        """

    def count_work_sessions(self, selection: Filter) -> int:
        """How many work sessions hold a record that a filter selects.

        A filter by nothing but project and `until` also counts those without any record, by their
        own project and end.
        """

    def recent_work(self, selection: Filter, *, limit: int, most: int) -> list[WorkEntry]:
        """The first `limit` of the same work sessions, last worked on first, each with up to `most`
        of its selected records of each kind, newest first, and how many there are.

        What is dated after the filter's `until` does not count as worked on.
        """

    def check(self) -> None:
        """Raise StoreUnavailable, saying why, unless the store can be read and written, as far as
        that shows at a glance; StoreDamaged once any damage was found. It never waits.
        """

    def examine(self) -> None:
        """Look through all that is stored for damage, as long as that takes, and remember what is
        found: `check` tells it, and `write` and `forget` refuse from then on. `close` ends it.
        """

    def coverage(self, query: Query, ref: Ref) -> float:
        """How much of a query's words, by their weight, a record holds: 1 if all, 0 if none."""

    def matches_among(
        self, kind: Kind, query: Query, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        """Those of a few records that match a query in full text within a filter."""

    def selected_ids(self, kind: Kind, selection: Filter) -> list[int]:
        """The ids of all records of a kind that a filter selects, in any order."""

    def selected_among(self, kind: Kind, selection: Filter, ids: Sequence[int]) -> set[int]:
        """Those of a few records that a filter selects."""

    def titles(self, refs: Iterable[Ref]) -> dict[Ref, Title]:
        """The titles of these records, which cost less than the records; those that do not exist
        are left out.
        """

    def origins(self, refs: Iterable[Ref]) -> dict[Ref, Origin]:
        """The work sessions and lengths of these records; those that do not exist are left out."""

    def times(self, refs: Iterable[Ref]) -> dict[Ref, int]:
        """When these records were made (ms); those that do not exist are left out."""

    def close(self) -> None:
        """Close every connection, of all threads."""
