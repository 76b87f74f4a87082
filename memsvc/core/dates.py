"""Reads dates as people and programs write them, and formats times (ms since 1970, UTC)."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

from memsvc.core.calendar.english import read_english
from memsvc.core.calendar.spans import LAST_MOMENT, Span, moment_of, time_ago, unit_around

MOMENTS: Final = "YYYY-MM-DD, ISO 8601, epoch s or ms, or a span back (24h, 7d, 3w, 6mo, 2y)"
"""The dates that a record may give."""

FORMS: Final = (
    f"{MOMENTS}; a year (2021), month (2021-01) or week (2021-W02); English (yesterday, "
    "last month, 3 weeks ago, 5 Oct 2026)"
)
"""The dates that a request may give."""

MAX_LENGTH: Final = 100
"""Characters of a date."""

_UNITS: Final = {"minute": "m", "hour": "h", "day": "d", "week": "w", "month": "mo", "year": "y"}
_COUNTS: Final = {
    word: number
    for number, words in enumerate(
        ("a an one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1
    )
    for word in words.split()
}
_BACK = re.compile(r"(\d{1,6})(mo|h|d|w|m|y)", re.ASCII)
_COUNTED: Final = rf"(\d{{1,6}}|{'|'.join(_COUNTS)}) ({'|'.join(_UNITS)})s?"
_BACK_IN_WORDS = re.compile(rf"(?:the )?(?:(?:last|past) )?{_COUNTED}", re.ASCII)
_AGO = re.compile(rf"{_COUNTED} ago", re.ASCII)
_NAMED = re.compile(r"(?:(this|last) )(week|month|year)", re.ASCII)
_NAMED_DAYS: Final = {"today": 0, "yesterday": 1, "day before yesterday": 2}
_YEAR = re.compile(r"(?:19|20|21)\d\d", re.ASCII)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_WEEK = re.compile(r"\d{4}-[Ww]\d{2}", re.ASCII)
_DAY = re.compile(r"\d{4}-(\d{2}-\d{2}|W\d{2}-\d)", re.ASCII)
_FIRST_SECONDS: Final = 10**8  # 1973: a smaller number is far more likely to be an id or a year
_FIRST_MILLISECONDS: Final = 10**11

Reader = Callable[[int], Span]
"""Gives a stretch of time for the present moment (ms)."""


@dataclass(frozen=True, slots=True)
class Date:
    """A date as given, `text`: a stretch of time, which may depend on the present moment.

    `whole` is all of what it names: the days from `7d` to now, the week of `3 weeks ago`.
    """

    text: str
    span: Reader = field(compare=False)
    whole: Reader = field(compare=False)

    def first(self, now: int) -> int:
        """The first millisecond of the date; spans count back from `now`."""
        return self.span(now).first

    def last(self, now: int) -> int:
        """The last millisecond of the date: a day without a time includes all of it."""
        return self.span(now).last


def now_ms() -> int:
    """The current time in ms since 1970, UTC."""
    return time.time_ns() // 1_000_000


def read_date(text: str) -> Date:
    """The date that a text names; without a zone it is local. Raises ValueError with a sentence."""
    text = text.strip()
    words = " ".join(text.lower().split()) if len(text) <= MAX_LENGTH else ""
    if date := _relative(text, words):
        return date
    span = _absolute(text, words)
    return Date(text, span, span)


def parse_date(text: str, now: int) -> int:
    """The moment that a record gives as its date; no words, which mean another day tomorrow. Raises
    ValueError with a sentence.
    """
    text = text.strip()
    if match := _BACK.fullmatch(text.lower()):
        return time_ago(int(match[1]), match[2], now)
    try:
        return _exact(text).first
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"not a date; allowed: {MOMENTS}") from None


def _absolute(text: str, words: str) -> Reader:
    try:
        return partial(_same, _fixed(text))
    except (ValueError, OverflowError, OSError):
        return _english(words)


def _same(span: Span, now: int) -> Span:
    return span


def _relative(text: str, words: str) -> Date | None:
    """A date that counts from now, if it is one."""
    if match := _AGO.fullmatch(words):
        count, unit = _counted(match)
        return Date(text, partial(_ago, count, unit), partial(_unit_ago, count, unit))
    if match := _BACK.fullmatch(words) or _BACK_IN_WORDS.fullmatch(words):
        count, unit = _counted(match)
        return Date(text, partial(_back, count, unit), partial(_until_now, count, unit))
    if match := _NAMED.fullmatch(words):
        span = partial(_unit_ago, int(match[1] == "last"), _UNITS[match[2]])
        return Date(text, span, span)
    days = _NAMED_DAYS.get(words.removeprefix("the "))
    if days is None:
        return None
    day = partial(_unit_ago, days, "d")
    return Date(text, day, day)


def _counted(match: re.Match[str]) -> tuple[int, str]:
    count, unit = match[1], match[2]
    return _COUNTS.get(count) or int(count), _UNITS.get(unit, unit)


def _back(count: int, unit: str, now: int) -> Span:
    moment = time_ago(count, unit, now)
    return Span(moment, moment)


def _until_now(count: int, unit: str, now: int) -> Span:
    return Span(time_ago(count, unit, now), now)


def _ago(count: int, unit: str, now: int) -> Span:
    """The day so long ago, or the moment if that is counted in hours or minutes."""
    if unit in ("m", "h"):
        return _back(count, unit, now)
    return unit_around(_local(time_ago(count, unit, now)), "d")


def _unit_ago(count: int, unit: str, now: int) -> Span:
    return unit_around(_local(time_ago(count, unit, now)), unit)


def _local(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000)


def _fixed(text: str) -> Span:
    """The date of a text that means the same at any time."""
    if _YEAR.fullmatch(text):
        return unit_around(datetime(int(text), 1, 1), "y")
    if _MONTH.fullmatch(text):
        return unit_around(datetime.strptime(text, "%Y-%m"), "mo")
    if _WEEK.fullmatch(text):
        return unit_around(datetime.fromisoformat(text.upper()), "w")
    return _exact(text)


def _exact(text: str) -> Span:
    """A day or moment in ISO 8601, or an epoch time."""
    if text.isascii() and text.isdigit():
        moment = _epoch(text)
        return Span(moment, moment)
    when = datetime.fromisoformat(text)
    if _DAY.fullmatch(text):
        return unit_around(when, "d")
    return Span(moment_of(when), moment_of(when))


def _epoch(digits: str) -> int:
    value = int(digits) if len(digits) <= 18 else LAST_MOMENT + 1
    if value < _FIRST_SECONDS or value > LAST_MOMENT:
        raise ValueError
    return value if value >= _FIRST_MILLISECONDS else value * 1000


def _english(words: str) -> Reader:
    try:
        read_english(words)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"not a date; allowed: {FORMS}") from None
    return partial(read_english, words)


def utc_text(epoch: int) -> str:
    """A time as JSON answers show it: `2026-11-08T14:23:45Z`."""
    return datetime.fromtimestamp(epoch / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_text(epoch: int) -> str:
    """A time as people read it, in the worker's time zone: `2026-11-08 14:23`."""
    return datetime.fromtimestamp(epoch / 1000).strftime("%Y-%m-%d %H:%M")


def local_day(epoch: int) -> str:
    """The local day of a time: `2026-11-08`."""
    return datetime.fromtimestamp(epoch / 1000).strftime("%Y-%m-%d")
