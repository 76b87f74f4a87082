"""What an operation answers: a page of rows under a header, and how it fits a budget."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memsvc.core.tokens import count_tokens

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of rows, with all that its answer says about them.

    `echo` repeats what was asked, `notes` is what else there is to say; `grouped` answers the
    rows by kind; `asked` are the refs of records asked for one by one; `paged` says whether there
    is a way to ask for the next page; `tally` sums up just those rows that fit.
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
    asked: tuple[str, ...] = ()
    tally: Callable[[Sequence[Row]], dict[str, Any]] = lambda rows: {}

    @property
    def next_offset(self) -> int | None:
        """Where the next page starts; None after the last."""
        end = self.offset + len(self.rows)
        return end if self.paged and self.rows and end < self.total else None

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
        **page.tally(page.rows),
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
    this = count_tokens(write(999))  # three digits are nearly always right
    this -= this < 100  # two are a letter less, which may be a token
    for _ in range(5):
        written = write(this)
        cost = count_tokens(written)
        if cost == this:
            break
        this = max(cost, this)  # never down again: one digit more or less must not swing for ever
    return written
