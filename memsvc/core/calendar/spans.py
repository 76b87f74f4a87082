"""Stretches of time, from the first to the last millisecond (ms since 1970, UTC)."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

LAST_MOMENT: Final = (
    253_402_214_399_999  # a day before the year 10000, so that no time zone overflows
)
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

_UNIT_MS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_MONTHS: Final = {"mo": 1, "y": 12}
_UNITS: Final = ("m", "h", "d", "w", "mo", "y")


class Span(NamedTuple):
    """The time from `first` to `last`, both inclusive."""

    first: int
    last: int


def moment_of(when: datetime) -> int:
    """A moment in ms; before 1971 it is the first, in the year 9999 the last that there is."""
    if not 1970 < when.year < 9999:
        return 1 if when.year <= 1970 else LAST_MOMENT
    return int(when.timestamp() * 1000)


def unit_around(when: datetime, unit: str) -> Span:
    """The minute, hour, day, week from Monday, month or year (m, h, d, w, mo, y) with a moment."""
    first = _start(when, unit)
    moment = moment_of(first)
    if not 1970 < first.year < 9999:
        return Span(moment, moment)
    return Span(moment, moment_of(_next(first, unit)) - 1)


def _start(when: datetime, unit: str) -> datetime:
    coarse = _UNITS.index(unit)
    start = when.replace(second=0, microsecond=0)
    start = start.replace(minute=0) if coarse >= 1 else start
    start = start.replace(hour=0) if coarse >= 2 else start
    if unit == "w":
        return start - timedelta(days=start.weekday())
    start = start.replace(day=1) if unit in _MONTHS else start
    return start.replace(month=1) if unit == "y" else start


def _next(start: datetime, unit: str) -> datetime:
    if unit not in _MONTHS:
        return start + timedelta(milliseconds=_UNIT_MS[unit])
    months = start.month - 1 + _MONTHS[unit]
    return start.replace(year=start.year + months // 12, month=months % 12 + 1)


def time_ago(count: int, unit: str, now: int) -> int:
    """The moment so many units before now; a month back is the same day of the month or, if the
    month is too short, its last.
    """
    if unit not in _MONTHS:
        return max(0, now - count * _UNIT_MS[unit])
    local = datetime.fromtimestamp(now / 1000)
    months = local.year * 12 + local.month - 1 - count * _MONTHS[unit]
    if months < 1970 * 12:
        return 0
    first = local.replace(year=months // 12, month=months % 12 + 1, day=1)
    month_end = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return int(first.replace(day=min(local.day, month_end.day)).timestamp() * 1000)
