"""What an operation answers: a page of rows under a header, and how it fits a budget."""

import json
from collections.abc import Callable, Iterator, Sequence
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


def fit(page: Page, max_tokens: int | None, write: Callable[[Page], str]) -> str:
    """A page as text within a budget: fewer rows, then the first one clipped, then hardly any."""
    written = write(page)
    if max_tokens is None or count_tokens(written) <= max_tokens:
        return written
    for smaller in _reductions(page, max_tokens, write):
        written = write(smaller)
        if count_tokens(written) <= max_tokens:
            break
    return written


def _reductions(page: Page, max_tokens: int, write: Callable[[Page], str]) -> Iterator[Page]:
    """Ever smaller pages."""
    about = max_tokens // 2
    echo = {name: _brief(value) for name, value in page.echo.items()}
    short = replace(page, echo=clip(page.echo, about), notes=clip(page.notes, about))
    brief = replace(page, echo=echo, notes={}, asked=page.asked[:2])
    count = _most_rows(short, max_tokens, write)
    if count:
        yield _first(short, count)
    for base in (short, brief) if page.rows else ():
        cuts = (4 * max_tokens >> step for step in range(12))
        yield from (_with_row(base, clip(page.rows[0], cut)) for cut in cuts)
    for row in page.rows[:1]:
        yield _with_row(
            brief, {name: row[name] for name in _STUB if name in row} | {"title": CLIPPED}
        )
    yield _first(short, 0)
    yield _first(brief, 0)


_STUB = ("ref", "kind", "created_at_epoch")
"""What remains of a row when nothing else fits: enough to ask for it."""


def _most_rows(page: Page, max_tokens: int, write: Callable[[Page], str]) -> int:
    """How many rows fit."""
    low, high = 0, len(page.rows)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count_tokens(write(_first(page, middle))) <= max_tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _first(page: Page, count: int) -> Page:
    return replace(page, rows=page.rows[:count])


def _with_row(page: Page, row: Row) -> Page:
    return replace(page, rows=(row,))


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= 8 else f"{text[:8]}…"


def clip(value: Any, length: int) -> Any:
    """A value whose texts are cut to a length and lists to what fits, with a marker each."""
    if isinstance(value, str):
        return value if len(value) <= length + len(CLIPPED) else value[:length] + CLIPPED
    if isinstance(value, list):
        kept = [clip(item, length) for item in value[: length // 40]]
        return kept if len(kept) == len(value) else [*kept, CLIPPED]
    if isinstance(value, dict):
        return {name: clip(item, length) for name, item in value.items()}
    return value
