"""What an operation answers: a page of rows under a header, and how it fits a budget."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from memsvc.tokens import count_tokens

Row = dict[str, Any]

CLIPPED = " …[clipped: max_tokens]"
"""Stands where a text was cut to keep the answer inside its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of rows, with all that its answer says about them.

    `echo` repeats what was asked, `notes` is what else there is to say; `grouped` answers the
    rows by kind; `asked` are the refs of records asked for one by one.
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
    asked: tuple[str, ...] = ()

    @property
    def next_offset(self) -> int | None:
        """Where the next page starts; None after the last."""
        end = self.offset + len(self.rows)
        return end if self.rows and end < self.total else None

    @property
    def unread(self) -> list[str]:
        """The refs asked for that did not fit."""
        return list(self.asked[len(self.rows) :])

    @property
    def full_tokens(self) -> int:
        """What opening all listed records in full costs."""
        return sum(_read_tokens(row) for row in self.rows)


def _read_tokens(row: Row) -> int:
    own = int(row.get("read_tokens", 0))
    nested = [child for value in row.values() if isinstance(value, list) for child in value]
    return own + sum(_read_tokens(child) for child in nested if isinstance(child, dict))


def page_body(page: Page, this: int) -> dict[str, Any]:
    """The answer as a JSON object; `this` is what it costs."""
    return {
        **page.echo,
        "format": page.format,
        "count": len(page.rows),
        "total": page.total,
        "offset": page.offset,
        "limit": page.limit,
        "next_offset": page.next_offset,
        "strategy": page.strategy,
        **({"window": page.window} if page.window else {}),
        "tokens": {"this": this, "full": page.full_tokens},
        **page.notes,
        **({"unread": page.unread} if page.unread else {}),
        "results": _results(page),
    }


def _results(page: Page) -> Any:
    if not page.grouped:
        return list(page.rows)
    return {f"{kind}s": [row for row in page.rows if row["kind"] == kind] for kind in page.grouped}


def to_json(body: Any) -> str:
    """JSON as every answer writes it: compact, real characters instead of escapes."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def write_json(page: Page) -> str:
    """A page as JSON, its own cost inside."""
    return priced(lambda this: to_json(page_body(page, this)))


def priced(write: Callable[[int], str]) -> str:
    """A text that states its own cost: written until the number it holds is the true one."""
    this = 0
    for _ in range(5):
        written = write(this)
        cost = count_tokens(written)
        if cost == this:
            break
        this = max(cost, this)  # never down again: one digit more or less must not swing for ever
    return written


def fit(page: Page, max_tokens: int | None, write: Callable[[Page], str]) -> str:
    """A page as text within a budget: fewer rows, then the last one clipped, then a short echo."""
    written = write(page)
    if max_tokens is None or count_tokens(written) <= max_tokens:
        return written
    for smaller in _reductions(page, max_tokens):
        written = write(smaller)
        if count_tokens(written) <= max_tokens:
            return written
    return write(_bare(page))


def _reductions(page: Page, max_tokens: int) -> list[Page]:
    """Ever smaller pages. The budget bounds how many rows or characters can fit at all."""
    shown = [_first(page, count) for count in range(len(page.rows) - 1, 0, -1)]
    cuts = [4 * max_tokens >> step for step in range(12)]
    one = _first(page, 1)
    clipped = [replace(one, rows=tuple(clip(row, cut) for row in one.rows)) for cut in cuts]
    return [*shown, *(clipped if page.rows else []), _first(page, 0)]


def _first(page: Page, count: int) -> Page:
    return replace(page, rows=page.rows[:count])


def clip(value: Any, length: int) -> Any:
    """A value whose texts are cut to a length, with a marker; lists keep what fits."""
    if isinstance(value, str):
        return value if len(value) <= length + len(CLIPPED) else value[:length] + CLIPPED
    if isinstance(value, list):
        kept = [clip(item, length) for item in value[: max(1, length // 40)]]
        return kept if length >= 40 else []
    if isinstance(value, dict):
        return {name: clip(item, length) for name, item in value.items()}
    return value


def _bare(page: Page) -> Page:
    """The smallest page there is: nothing but counts and a hint of what was asked."""
    return replace(page, rows=(), echo=clip(page.echo, 8), notes={}, asked=())
