"""Dates: what a text may be, which moment it names, and where the bounds lie."""

import time
from collections.abc import Callable

import pytest
from samples import DAY, HOUR, NOW

from memsvc.core.dates import local_day, local_text, now_ms, parse_date, read_date, utc_text

LAST = 253_402_214_399_999
Move = Callable[[str], None]


def test_the_clock_counts_whole_milliseconds() -> None:
    before, moment, after = time.time_ns(), now_ms(), time.time_ns()
    assert isinstance(moment, int)
    assert before // 1_000_000 <= moment <= after // 1_000_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0m", NOW),
        ("90m", NOW - 90 * 60_000),
        ("24h", NOW - DAY),
        (" 7D ", NOW - 7 * DAY),
        ("3w", NOW - 21 * DAY),
        ("999999d", 0),
        ("24000mo", 0),
        ("683mo", 0),
    ],
)
def test_a_span_counts_back_from_now_and_not_beyond_1970(text: str, moment: int) -> None:
    date = read_date(text)
    assert (date.first(NOW), date.last(NOW)) == (moment, moment)
    assert date.text == text.strip()


@pytest.mark.parametrize(
    ("now", "text", "moment"),
    [
        ("2026-11-08T14:00:00Z", "1mo", "2026-10-08T14:00:00Z"),
        ("2026-11-08T14:00:00Z", "11mo", "2025-12-08T14:00:00Z"),
        ("2026-11-08T14:00:00Z", "682mo", "1970-01-08T14:00:00Z"),
        ("2026-03-31T10:00:00Z", "1mo", "2026-02-28T10:00:00Z"),
        ("2024-03-31T10:00:00Z", "1mo", "2024-02-29T10:00:00Z"),
        ("2026-10-31T10:00:00Z", "1mo", "2026-09-30T10:00:00Z"),
        ("2026-12-31T10:00:00Z", "12mo", "2025-12-31T10:00:00Z"),
        ("2026-01-30T10:00:00Z", "0mo", "2026-01-30T10:00:00Z"),
        ("2026-01-31T10:00:00Z", "1mo", "2025-12-31T10:00:00Z"),
    ],
)
def test_a_month_back_is_the_same_day_or_the_last_of_a_shorter_month(
    zone: Move, now: str, text: str, moment: str
) -> None:
    zone("UTC")
    assert utc_text(parse_date(text, parse_date(now, 0))) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("100000000", 100_000_000_000),
        ("99999999999", 99_999_999_999_000),
        ("100000000000", 100_000_000_000),
        (str(NOW), NOW),
        (str(LAST), LAST),
    ],
)
def test_a_number_is_seconds_or_if_it_is_large_milliseconds(text: str, moment: int) -> None:
    date = read_date(text)
    assert (date.first(0), date.last(0), date.text) == (moment, moment, text)


@pytest.mark.parametrize(
    "text", ["99999999", "20260", "0", str(LAST + 1), "9" * 30, "9" * 5000, "", "soon", "2026-13-45"]
)
def test_what_is_no_date_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a date; allowed: YYYY-MM-DD, ISO 8601, epoch s"):
        read_date(text)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1971-06-01", 44_582_400_000, 44_582_400_000 + DAY - 1),
        ("1971-06-01T01:00", 44_582_400_000 + HOUR, 44_582_400_000 + HOUR),
        ("1970-06-01", 1, 1),
        ("0001-01-01", 1, 1),
        ("9998-12-31T00:00Z", 253_370_678_400_000, 253_370_678_400_000),
        ("9999-06-01", LAST, LAST),
    ],
)
def test_a_day_lasts_until_its_end_and_far_days_are_as_far_as_any(
    zone: Move, text: str, first: int, last: int
) -> None:
    zone("UTC")
    date = read_date(text)
    assert (date.first(0), date.last(0)) == (first, last)


def test_times_are_shown_in_utc_to_programs_and_in_local_time_to_people(zone: Move) -> None:
    zone("Asia/Tokyo")
    evening = parse_date("2026-11-08T14:23:45Z", 0)
    assert utc_text(evening) == "2026-11-08T14:23:45Z"
    assert (local_text(evening), local_day(evening)) == ("2026-11-08 23:23", "2026-11-08")
    assert local_day(evening + HOUR) == "2026-11-09"
