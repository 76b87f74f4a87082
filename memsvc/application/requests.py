"""Requests: frozen, typed, and parsed once, at the entry points."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.query import NO_QUERY, Query
from memsvc.core.records import Kind, Record, Ref, WorkSession

MAX_EXPLAINED: Final = 20
"""Rows of a page that `explain` explains; each takes a look-up for every word and field."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One of several wordings of a search: what an answer calls it, as typed, and parsed."""

    name: str
    text: str
    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search. `text` is the query as typed; `echo` is what the answer repeats.

    If there are several `wordings`, `query` stands for all of them: it matches what any matches.

    `window_start` is the start of the default time window (ms), or None without one; `days` is what
    the answer says about the window: a number of days, `all`, or None. `order` is relevance,
    date_desc or date_asc; `grouped` groups the rows by kind.
    """

    kinds: tuple[Kind, ...]
    text: str = ""
    query: Query = NO_QUERY
    wordings: tuple[Wording, ...] = ()
    selection: Filter = EVERYTHING
    order: str = "date_desc"
    window_start: int | None = None
    days: int | str | None = None
    offset: int = 0
    limit: int = 20
    format: str = "index"
    explain: bool = False
    grouped: bool = False
    echo: Mapping[str, Any] = field(default_factory=dict)

    def each_wording(self) -> list["SearchRequest"]:
        """The same search for each wording by itself."""
        return [
            replace(self, text=each.text, query=each.query, wordings=()) for each in self.wordings
        ] or [self]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """What happened around an anchor: a record, a time (ms), or the best match of a search.

    With `until` (ms) it shows what lies between, at most `after` records. `interactive` asks for
    the matches to choose an anchor from; `otherwise` is the request to answer if the anchor is a
    record that does not exist.
    """

    kinds: tuple[Kind, ...]
    anchor: Ref | int | SearchRequest
    before: int
    after: int
    until: int | None = None
    otherwise: "TimelineRequest | None" = None
    selection: Filter = EVERYTHING
    format: str = "index"
    interactive: bool = False
    echo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRequest:
    """The latest work sessions; with a search, the latest observations, ranked by it."""

    limit: int
    selection: Filter = EVERYTHING
    search: SearchRequest | None = None
    format: str = "index"
    echo: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestRequest:
    """The records most similar to a text."""

    text: str
    kinds: tuple[Kind, ...]
    limit: int
    selection: Filter = EVERYTHING
    format: str = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Records to read in full, in this order unless `order` (date_desc, date_asc) is given."""

    refs: tuple[Ref | Commit, ...]
    selection: Filter = EVERYTHING
    order: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Records to store, each with its place in the body, and the records refused."""

    records: tuple[tuple[str, Record], ...]
    work_sessions: tuple[WorkSession, ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What to forget: the records that a filter selects, that hold all words of a query, and that
    came from one of the sources, if any is given. With `dry_run` nothing is forgotten.
    """

    selection: Filter
    query: Query = NO_QUERY
    sources: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpRequest:
    """Help for all operations, or for one; `base` is the worker's address."""

    base: str
    operation: str | None = None
