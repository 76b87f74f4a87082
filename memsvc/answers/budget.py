"""Fits a page into a token budget."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from memsvc.answers.page import Page, Row
from memsvc.core.tokens import count_tokens

CLIPPED = " …[clipped: max_tokens]"
"""Marks a text that was cut to stay within the budget."""


def fit(page: Page, max_tokens: int | None, write: Callable[[Page], str]) -> str:
    """A page as text within a budget: first with fewer rows, then with the first row clipped, then
    with a stub.
    """
    written = write(page)
    if max_tokens is None or count_tokens(written) <= max_tokens:
        return written
    for smaller in _reductions(page, max_tokens, write):
        written = write(smaller)
        if count_tokens(written) <= max_tokens:
            break
    return written


def _reductions(page: Page, max_tokens: int, write: Callable[[Page], str]) -> Iterator[Page]:
    """Smaller and smaller versions of a page."""
    about = max_tokens // 2
    echo = {name: _stub_text(value) for name, value in page.echo.items()}
    short = replace(
        page,
        echo=clip(page.echo, about),
        notes=clip(page.notes, about),
        project=clip(page.project, about),
    )
    brief = replace(page, echo=echo, notes={}, project="", requested=page.requested[:2])
    count = _rows_that_fit(short, max_tokens, write)
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
"""The fields of a stub row: enough to ask for the record."""


def _rows_that_fit(page: Page, max_tokens: int, write: Callable[[Page], str]) -> int:
    """The number of rows that fit."""
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


def _stub_text(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= 8 else f"{text[:8]}…"


def clip(value: Any, length: int) -> Any:
    """A value with its texts cut to `length` and its lists to what fits, each cut marked."""
    if isinstance(value, str):
        return value if len(value) <= length + len(CLIPPED) else value[:length] + CLIPPED
    if isinstance(value, list):
        kept = [clip(item, length) for item in value[: length // 40]]
        return kept if len(kept) == len(value) else [*kept, CLIPPED]
    if isinstance(value, dict):
        return {name: clip(item, length) for name, item in value.items()}
    return value
