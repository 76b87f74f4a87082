"""Dates: what a text may be, which moment it names, and where the bounds lie."""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import DAY, HOUR, NOW

from memsvc.core.dates import FORMS, local_day, local_text, now_ms, parse_date, read_date, utc_text

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
    "text",
    ["99999999", "20260", "0", str(LAST + 1), "9" * 30, "9" * 5000, "", "soon", "2026-13-45"],
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


SAID = [
    ("5 Oct 2026", "2026-10-05", "2026-10-05"),
    ("5th of October, 2026", "2026-10-05", "2026-10-05"),
    ("Oct 5 2026", "2026-10-05", "2026-10-05"),
    ("5 October", "2026-10-05", "2026-10-05"),
    ("9 November", "2025-11-09", "2025-11-09"),
    ("8 November", "2026-11-08", "2026-11-08"),
    ("29 Feb 2024", "2024-02-29", "2024-02-29"),
    ("2021 January", "2021-01-01", "2021-01-31"),
    ("Sept 2021", "2021-09-01", "2021-09-30"),
    ("march", "2026-03-01", "2026-03-31"),
    ("december", "2025-12-01", "2025-12-31"),
    ("monday", "2026-11-02", "2026-11-02"),
    ("Last Friday", "2026-11-06", "2026-11-06"),
    ("sunday", "2026-11-01", "2026-11-01"),
    ("2021-W02-3", "2021-01-13", "2021-01-13"),
    ("2020-W53", "2020-12-28", "2021-01-03"),
    ("two months ago", "2026-09-08", "2026-09-08"),
    ("a year ago", "2025-11-08", "2025-11-08"),
    ("This Week", "2026-11-02", "2026-11-08"),
]


@pytest.mark.parametrize(("text", "first", "last"), SAID)
def test_a_date_in_words_is_all_of_what_it_names(
    zone: Move, text: str, first: str, last: str
) -> None:
    zone("UTC")
    date = read_date(text)
    ends = parse_date(first, NOW), parse_date(last, NOW) + DAY - 1
    assert (date.first(NOW), date.last(NOW)) == ends


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("yesterday at 3 pm", "2026-11-07T15:00:00Z"),
        ("friday 14:00", "2026-11-06T14:00:00Z"),
        ("5 Oct 2026 midnight", "2026-10-05T00:00:00Z"),
        ("Mon Oct 5 10:00:00 2026 +0200", "2026-10-05T08:00:00Z"),
        ("Mon, 5 Oct 2026 10:00:00 GMT", "2026-10-05T10:00:00Z"),
        ("3 hours ago", "2026-11-08T11:00:00Z"),
        ("the last 90 minutes", "2026-11-08T12:30:00Z"),
    ],
)
def test_a_time_in_words_is_a_moment(zone: Move, text: str, moment: str) -> None:
    zone("UTC")
    date = read_date(text)
    assert utc_text(date.first(NOW)) == utc_text(date.last(NOW)) == moment


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Tokyo", "Europe/Berlin"])
@pytest.mark.parametrize("text", ["2021-03", "March 2021", "2021-10", "2021-W12", "2021-W43"])
def test_a_span_begins_and_ends_at_local_midnight_when_clocks_change(
    zone: Move, name: str, text: str
) -> None:
    zone(name)
    date = read_date(text)
    assert local_text(date.first(NOW)).endswith(" 00:00")
    assert local_text(date.last(NOW) + 1).endswith(" 00:00")


NO_DATES = [
    *(
        "12",
        "1.5",
        "12x",
        "a",
        "in",
        "noon",
        "14:30",
        "oct pm",
        "oct 5 pm",
        "last",
        "the of",
    ),
    *("99/99/2020", "10/11/2021", "2026-13-01", "2021-13", "2021-00", "2021-W54", "2021-1", "1234"),
    *("january 32", "0 january 2021", "30 Feb 2021", "29 Feb 2021", "monday january 2021"),
    *("tuesday 5 oct 2026", "monday friday", "jan 2021 feb 2022", "2021 5", "yesterday 2021"),
    *(
        "next week",
        "in 3 days",
        "5 octobre 2026",
        "5. Oktober 2026",
        "last 7 days ago",
        "３ weeks ago",
    ),
    *("hier", "since january 2021", "5 oct 2021 99:99", "monday 25:00", "a b", "today march"),
]


@pytest.mark.parametrize("text", NO_DATES)
def test_what_only_resembles_a_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a date; allowed: .*3 weeks ago"):
        read_date(text)


PIECES = [
    *("jan", "May", "october", "monday", "Sun", "today", "yesterday", "last", "this", "the", "of"),
    *(
        "week",
        "month",
        "years",
        "day",
        "ago",
        "a",
        "two",
        "at",
        "noon",
        "pm",
        "3pm",
        "14:30",
        "utc",
    ),
    *("0", "1", "5", "12", "29", "31", "32", "99", "1969", "2021", "2024", "9999", "5th", "+0200"),
    *("-", "/", ",", ".", ":", "W02", "T", "Z", "7d", "２", "٣", "\x00", "\ud800", "before", "q"),
]
WORDY = st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join)


@settings(max_examples=3 * settings().max_examples)
@given(text=st.text(max_size=40) | WORDY | WORDY.map(lambda text: text.replace(" ", "")))
@example("29 feb")
@example("monday 5 october")
@example("last month " * 200)
@example("9" * 2000)
@example("january " * 250)
@example("5 oct 2021 " + "\U0001d4d0" * 50)
def test_any_text_is_a_date_at_any_time_or_a_sentence(text: str) -> None:
    try:
        date = read_date(text)
    except ValueError:
        with pytest.raises(ValueError, match=f"^not a date; allowed: {re.escape(FORMS)}$"):
            read_date(text)
        return
    for now in (0, DAY, NOW, NOW + 300 * DAY, parse_date("2028-03-01", 0)):
        assert 0 <= date.first(now) <= date.last(now) <= LAST
        whole = date.whole(now)
        assert 0 <= whole.first <= whole.last <= max(LAST, now)


def test_a_text_too_long_for_a_date_is_never_given_to_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        "dateparser.date.DateDataParser.get_date_data", lambda _, text: seen.append(text)
    )
    for text in ("5 october 2021 " * 5, "soon", "2021-13", "x" * 2000, "yesterday", "2021"):
        with contextlib.suppress(ValueError):
            read_date(text)
    assert not seen


def test_plain_dates_do_not_load_the_library() -> None:
    plain = ["2021", "2021-01", "7d", "2y", "3 weeks ago", "last month", "yesterday", "2021-W02"]
    code = (
        "import sys; from memsvc.core.dates import read_date; "
        f"print([read_date(text).first(0) for text in {plain}], 'dateparser' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("False\n")


@pytest.mark.parametrize("text", ["yesterday", "2021", "2021-01", "3 weeks ago", "5 Oct 2026"])
def test_a_record_gives_no_date_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a date; allowed: .*2y\)$"):
        parse_date(text, NOW)
