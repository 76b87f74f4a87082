"""Dates in English words, such as `5 Oct 2026`, `January 2021`, `last Friday`, read by dateparser.

dateparser guesses: `12` is 2012 to it, `january 32` the year 1932. So it sees only texts made of
the words of dates, and its answer counts only if it agrees with every part of the text.
"""

import re
from datetime import datetime
from typing import Final

from memsvc.core.calendar.spans import Span, moment_of, unit_around

MAX_LENGTH: Final = 60
"""Characters of a date in words; no real one is longer."""

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_DAYS: Final = {"today", "yesterday"}
_FILLERS: Final = {"the", "of", "on", "at", "last", "utc", "gmt"}
_CLOCK: Final = re.compile(r"\d{1,2}(:\d{2}){0,2}(am|pm)|\d{1,2}(:\d{2}){1,2}|noon|midnight")
_NUMBER: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR: Final = re.compile(r"\d{4}")
_ZONE: Final = re.compile(r"[+-]\d{4}")
_ANY_DAY: Final = datetime(2023, 6, 15)
_UNITS: Final = {"day": "d", "month": "mo"}


def read_english(text: str, now: int | None = None) -> Span:
    """The day, month or moment that a text names, the latest such before `now` if it leaves that
    open. Without `now` it is only checked. Raises ValueError.
    """
    words = _words(text)
    today = datetime.fromtimestamp(now / 1000) if now else _ANY_DAY
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    when, period = _parsed(" ".join(words), midnight)
    if not _agrees(words, when, period):
        raise ValueError("dateparser read something else")
    if period == "time" or (when.hour, when.minute, when.second) != (0, 0, 0):
        return Span(moment_of(when), moment_of(when))
    return unit_around(when, _UNITS[period])


def _words(text: str) -> list[str]:
    """The words of a date. Raises ValueError if there is any other, or too little to be one."""
    if len(text) > MAX_LENGTH or not text.isascii():
        raise ValueError("too long, or not English")
    joined = re.sub(r"(\d) +(am|pm)\b", r"\1\2", text.lower().replace(",", " "))
    words = joined.split()
    numbered = any(map(_NUMBER.fullmatch, words))
    named = [word for word in words if word in _DAYS or _index(word, WEEKDAYS) is not None]
    has_month = any(_index(word, MONTHS) is not None for word in words)
    is_day = bool(named) or (numbered and has_month)
    if not all(map(_belongs, words)) or not (is_day or has_month):
        raise ValueError("not only words of a date")
    if not is_day and any(map(_CLOCK.fullmatch, words)):
        raise ValueError("a time without a day")
    if named and (has_month != numbered or len(named) > 1):
        raise ValueError("not one day")
    return words


def _belongs(word: str) -> bool:
    patterns = (_CLOCK, _NUMBER, _YEAR, _ZONE)
    return (
        word in _FILLERS | _DAYS
        or _index(word, MONTHS) is not None
        or _index(word, WEEKDAYS) is not None
        or any(pattern.fullmatch(word) for pattern in patterns)
    )


def _index(word: str, names: tuple[str, ...]) -> int | None:
    """The place of a name, given in full or by its first three or four letters."""
    near = (place for place, name in enumerate(names) if word in (name, name[:3], name[:4]))
    return next(near, None)


def _parsed(text: str, today: datetime) -> tuple[datetime, str]:
    from dateparser.date import DateDataParser  # half a second to load

    parser = DateDataParser(
        languages=["en"],
        settings={
            "PREFER_DATES_FROM": "past",
            "PREFER_DAY_OF_MONTH": "first",
            "RELATIVE_BASE": today,
            "RETURN_TIME_AS_PERIOD": True,
        },
    )
    found = parser.get_date_data(text)
    if found.date_obj is None or found.period not in {*_UNITS, "time"}:
        raise ValueError("not a date to dateparser")
    return found.date_obj, found.period


def _agrees(words: list[str], when: datetime, period: str) -> bool:
    """Whether a date has each month, day of the month, year and weekday that the words name."""
    return all(
        found is None or found == expected
        for word in words
        for found, expected in (
            (_index(word, MONTHS), when.month - 1),
            (_number(_YEAR, word), when.year),
            (_number(_NUMBER, word), when.day if period != "month" else None),
            (_index(word, WEEKDAYS), when.weekday()),
        )
    )


def _number(pattern: re.Pattern[str], word: str) -> int | None:
    match = pattern.fullmatch(word)
    return int(match[match.lastindex or 0]) if match else None
