"""A page of rows: the answer of most operations, and its JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from memsvc.answers.quoting import escape_hidden
from memsvc.core.limits import deadline
from memsvc.core.tokens import count_tokens

Row = dict[str, Any]


class ReadCost(int):
    """The cost of reading a record, in tokens: the number itself as JSON, `as_text` as text.

    Text is written, and counted, only for answers as text.
    """

    write: Callable[[], str]

    @classmethod
    def of(cls, json: str, write: Callable[[], str]) -> Self:
        cost = cls(count_tokens(json))
        cost.write = write
        return cost

    @cached_property
    def as_text(self) -> int:
        return count_tokens(self.write())


def cost_as_text(row: Row) -> int:
    """The cost of reading the record of a row as text, in tokens; 0 if it is not known."""
    cost = row.get("read_tokens", 0)
    return cost.as_text if isinstance(cost, ReadCost) else int(cost)


def cost_as_json(row: Row) -> int:
    """The cost of reading the record of a row as JSON, in tokens; 0 if it is not known."""
    return int(row.get("read_tokens", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of rows, with everything that its answer says about them.

    `echo` repeats the request, `notes` holds additional fields, `grouped` lists the kinds to group
    the rows by, `requested` holds the refs of records requested by id, `folded` counts the matches
    that share the row of another, `paged` says whether a next page can be requested, and `tally`
    sums up the rows that fit the budget. `project` is that of all rows, if they do not name theirs.
    """

    echo: dict[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    total: int = 0
    offset: int = 0
    limit: int = 0
    format: str = "index"
    strategy: str = "fulltext"
    window: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    grouped: tuple[str, ...] = ()
    paged: bool = True
    requested: tuple[str, ...] = ()
    folded: int = 0
    tally: Callable[[Sequence[Row]], dict[str, Any]] = lambda rows: {}
    project: str = ""

    @property
    def next_offset(self) -> int | None:
        """The offset of the next page; None on the last page."""
        end = self.offset + len(self.rows)
        return end if self.paged and self.rows and end < self.total - self.folded else None

    @property
    def unread(self) -> list[str]:
        """The requested refs that did not fit."""
        return list(self.requested[len(self.rows) :])

    @property
    def records(self) -> list[Row]:
        """The rows that are records: those of the page, or those of its work sessions."""
        return [record for row in self.rows for record in _records(row)]


def _records(row: Row) -> list[Row]:
    nested = [child for value in row.values() if isinstance(value, list) for child in value]
    return [child for child in nested if isinstance(child, dict)] or [row]


def page_body(page: Page, this: int) -> dict[str, Any]:
    """The answer as a JSON object; `this` is its own cost in tokens."""
    return {
        **page.echo,
        **({"project": page.project} if page.project else {}),
        "format": page.format,
        "count": len(page.rows),
        "total": page.total,
        **({"folded": page.folded} if page.folded else {}),
        "offset": page.offset,
        "limit": page.limit,
        "next_offset": page.next_offset,
        "strategy": page.strategy,
        **({"window": page.window} if page.window else {}),
        "tokens": {"this": this, "full": sum(map(cost_as_json, page.records))},
        **page.tally(page.rows),
        **page.notes,
        **({"unread": page.unread} if page.unread else {}),
        "results": _results(page),
    }


def name_projects(page: Page) -> Page:
    """The page, whose short rows name their project only if there are several; those of a work
    session share its project.
    """
    if page.format == "full":
        return page
    projects = {row["project"] for row in page.rows}
    asked = page.echo.get("project", next(iter(projects), ""))
    if {name.casefold() for name in projects} != {asked.casefold()}:
        return replace(page, rows=tuple(map(_with_bare_children, page.rows)))
    rows = (row if row["kind"] == "work_session" else _without_project(row) for row in page.rows)
    return replace(page, rows=tuple(map(_with_bare_children, rows)), project=asked)


def _with_bare_children(row: Row) -> Row:
    """A work session without the projects of the records in it; any other row as it is."""
    if row["kind"] != "work_session":
        return row
    return {
        name: [_without_project(child) for child in value] if isinstance(value, list) else value
        for name, value in row.items()
    }


def _without_project(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "project"}


def _results(page: Page) -> Any:
    if not page.grouped:
        return list(page.rows)
    return {f"{kind}s": [row for row in page.rows if row["kind"] == kind] for kind in page.grouped}


def compact_json(body: Any) -> str:
    """Compact JSON, with every character as it is."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def to_json(body: Any) -> str:
    """Compact JSON as in every answer: of all characters only hidden ones are escaped."""
    return escape_hidden(compact_json(body))


def write_json(page: Page) -> str:
    """A page as JSON that states its own cost."""
    return with_own_cost(lambda this: to_json(page_body(page, this)))


def with_own_cost(write: Callable[[int], str]) -> str:
    """A text that states its own cost in tokens: rendered until the number is right."""
    this = count_tokens(write(999))  # three digits are nearly always right
    this -= this < 100  # two digits are a character shorter, which may be a token
    for _ in range(5):
        deadline.check()
        written = write(this)
        cost = count_tokens(written)
        if cost == this:
            break
        this = max(cost, this)  # never lower: the number of digits must not oscillate
    return written
