"""Parses dates as people and programs write them, and formats times (ms since 1970, UTC)."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FORMS = "YYYY-MM-DD, ISO 8601, epoch s or ms, or a span back: 24h, 7d, 3w, 6mo"

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_SPAN = re.compile(r"(\d{1,6})(mo|h|d|w|m)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SPAN_MS = {"m": 60_000, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_FIRST_SECONDS = 10**8  # 1973: a smaller number is far more likely to be an id or a year
_FIRST_MILLISECONDS = 10**11
_LAST_MILLISECONDS = (
    253_402_214_399_999  # a day before the year 10000, so that no time zone overflows
)


@dataclass(frozen=True, slots=True)
class Date:
    """A parsed date: the time from `first_ms` to `last_ms`, or a span back from now.

    `text` is the date as given.
    """

    text: str
    first_ms: int = 0
    last_ms: int = 0
    span: tuple[int, str] | None = None

    def first(self, now: int) -> int:
        """The first millisecond of the date; spans count back from `now`."""
        return _time_ago(*self.span, now) if self.span else self.first_ms

    def last(self, now: int) -> int:
        """The last millisecond of the date: a day without a time includes all of it."""
        return _time_ago(*self.span, now) if self.span else self.last_ms


def now_ms() -> int:
    """The current time in ms since 1970, UTC."""
    return time.time_ns() // 1_000_000


def read_date(text: str) -> Date:
    """The date that a text names; without a zone it is local. Raises ValueError with a sentence."""
    text = text.strip()
    if match := _SPAN.fullmatch(text.lower()):
        return Date(text, span=(int(match[1]), match[2]))
    if text.isascii() and text.isdigit():
        moment = _epoch(text)
        return Date(text, moment, moment)
    try:
        return Date(text, *_calendar(text))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"not a date; allowed: {FORMS}") from None


def parse_date(text: str, now: int) -> int:
    """The first millisecond of the date that a text names. Raises ValueError with a sentence."""
    return read_date(text).first(now)


def _time_ago(count: int, unit: str, now: int) -> int:
    if unit != "mo":
        return max(0, now - count * _SPAN_MS[unit])
    local = datetime.fromtimestamp(now / 1000)
    months = local.year * 12 + local.month - 1 - count
    if months < 1970 * 12:
        return 0
    first = local.replace(year=months // 12, month=months % 12 + 1, day=1)
    month_end = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return int(first.replace(day=min(local.day, month_end.day)).timestamp() * 1000)


def _epoch(digits: str) -> int:
    value = int(digits) if len(digits) <= 18 else _LAST_MILLISECONDS + 1
    if value < _FIRST_SECONDS or value > _LAST_MILLISECONDS:
        raise ValueError(f"not a date; allowed: {FORMS}")
    return value if value >= _FIRST_MILLISECONDS else value * 1000


def _calendar(text: str) -> tuple[int, int]:
    moment = datetime.fromisoformat(text)
    if not 1970 < moment.year < 9999:
        limit = 1 if moment.year <= 1970 else _LAST_MILLISECONDS
        return limit, limit
    first = int(moment.timestamp() * 1000)
    if not _DATE.fullmatch(text):
        return first, first
    return first, int((moment + timedelta(days=1)).timestamp() * 1000) - 1


def utc_text(epoch: int) -> str:
    """A time as JSON answers show it: `2026-11-08T14:23:45Z`."""
    return datetime.fromtimestamp(epoch / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_text(epoch: int) -> str:
    """A time as people read it, in the worker's time zone: `2026-11-08 14:23`."""
    return datetime.fromtimestamp(epoch / 1000).strftime("%Y-%m-%d %H:%M")


def local_day(epoch: int) -> str:
    """The local day of a time: `2026-11-08`."""
    return datetime.fromtimestamp(epoch / 1000).strftime("%Y-%m-%d")
