from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from atlas_standard_tools._spoken_dates import read_now, read_reckoning
from atlas_standard_tools.clock import Clock
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import ToolError


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at a known time."""
    return Clock(now=lambda: datetime(2026, 11, 30, 13, 13, 15, 999, tzinfo=UTC))


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        (None, "2026-11-30T13:13:15+00:00 (Monday, UTC)"),
        ("utc", "2026-11-30T13:13:15+00:00 (Monday, UTC)"),
        ("Europe/Paris", "2026-11-30T14:13:15+01:00 (Monday, Europe/Paris)"),
        ("europe/paris", "2026-11-30T14:13:15+01:00 (Monday, Europe/Paris)"),
        ("Tokyo", "2026-11-30T22:13:15+09:00 (Monday, Asia/Tokyo)"),
        ("new  york", "2026-11-30T08:13:15-05:00 (Monday, America/New_York)"),
        ("Louisville", "2026-11-30T08:13:15-05:00 (Monday, America/Kentucky/Louisville)"),
        ("Kiritimati", "2026-12-01T03:13:15+14:00 (Tuesday, Pacific/Kiritimati)"),
        ("+02:00", "2026-11-30T15:13:15+02:00 (Monday, UTC+02:00)"),
        ("UTC-5", "2026-11-30T08:13:15-05:00 (Monday, UTC-05:00)"),
        ("+0530", "2026-11-30T18:43:15+05:30 (Monday, UTC+05:30)"),
    ],
)
def test_the_present_is_told_in_a_zone(clock: Clock, zone: str | None, text: str) -> None:
    """IANA names in any case, cities and offsets are zones."""
    assert clock.current_time(zone) == text


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Pariss", "did you mean 'Europe/Paris'?"),
        ("PST", "write an IANA name such as 'America/Los_Angeles'"),
        ("ist", "abbreviation"),
        ("Mordor", "no known time zone"),
        ("../../etc/passwd", "no known time zone"),
        ("/etc/localtime", "no known time zone"),
        ("\0", "no known time zone"),
        ("+25:00", "no offset"),
        ("+02:75", "no offset"),
        ("x" * 10_000, "no known time zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest(clock: Clock, zone: str, text: str) -> None:
    """An abbreviation has no one meaning, and a path is no zone."""
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        clock.current_time(zone)
    assert len(str(caught.value)) < 300


def test_the_default_zone_is_the_option(clock: Clock) -> None:
    """A clock set to a zone tells the time there."""
    there = Clock("Tokyo", now=lambda: datetime(2026, 11, 30, 20, tzinfo=UTC))
    assert there.current_time() == "2026-12-01T05:00:00+09:00 (Tuesday, Asia/Tokyo)"
    assert there.date_arithmetic("weekday", "today").startswith("Tuesday, 2026-12-01")


def test_the_machine_s_own_clock_is_used() -> None:
    """Without a clock of one's own, the time is now."""
    told = datetime.fromisoformat(Clock().current_time().split(" ")[0])
    assert abs(datetime.now(UTC) - told) < timedelta(seconds=10)


SKIPPED = "2024-03-31 02:30 does not exist in Europe/Paris, as the clocks are put forward"
TWICE = (
    "2024-10-27 02:30 happens twice in Europe/Paris, as the clocks are put back; the first is taken (+02:00), for the "
    "second write the offset +01:00"
)
PARIS = {"timezone": "Europe/Paris"}
RECKONED: list[tuple[dict[str, Any], str]] = [
    ({"operation": "add", "date": "2024-01-15", "days": 30}, "2024-02-14 (Wednesday)"),
    ({"operation": "subtract", "date": "2024-01-15", "weeks": 2, "days": 1}, "2023-12-31 (Sunday)"),
    ({"operation": "add", "date": "29 February 2024", "years": 4}, "2028-02-29 (Tuesday)"),
    ({"operation": "add", "date": "Feb 28, 2024", "days": 1}, "2024-02-29 (Thursday)"),
    ({"operation": "add", "date": "2024-W03-1", "days": 1}, "2024-01-16 (Tuesday)"),
    ({"operation": "add", "date": "tomorrow", "days": 1}, "2026-12-02 (Wednesday)"),
    ({"operation": "add", "date": "now", "hours": -1}, "2026-11-30T12:13:15+00:00 (Monday, UTC)"),
    ({"operation": "add", "date": "2024-01-15T10:00", "hours": 30}, "2024-01-16T16:00:00 (Tuesday)"),
    (
        {"operation": "add", "date": "2024-01-31", "months": 1},
        "2024-02-29 (Thursday); note: 2024-02 has no day 31, so its last day is taken",
    ),
    (
        {"operation": "add", "date": "2024-02-29", "years": 1},
        "2025-02-28 (Friday); note: 2025-02 has no day 29, so its last day is taken",
    ),
    # a day on the calendar, or 24 hours: the clocks are put back in between
    (
        {"operation": "add", "date": "2024-10-26T12:00", "days": 1, **PARIS},
        "2024-10-27T12:00:00+01:00 (Sunday, Europe/Paris)",
    ),
    (
        {"operation": "add", "date": "2024-10-26T12:00", "hours": 24, **PARIS},
        "2024-10-27T11:00:00+01:00 (Sunday, Europe/Paris)",
    ),
    (
        {"operation": "add", "date": "2024-03-30T02:30", "days": 1, **PARIS},
        f"2024-03-31T03:30:00+02:00 (Sunday, Europe/Paris); note: {SKIPPED}; 03:30 is taken",
    ),
    (
        {"operation": "add", "date": "2024-10-27T02:30", "minutes": 1, **PARIS},
        f"2024-10-27T02:31:00+02:00 (Sunday, Europe/Paris); note: {TWICE}",
    ),
    (
        {"operation": "add", "date": "2024-10-27T02:30+01:00", "minutes": 1, **PARIS},
        "2024-10-27T02:31:00+01:00 (Sunday, Europe/Paris)",
    ),
    (
        {"operation": "add", "date": "2024-10-26T02:30", "days": 1, **PARIS},
        f"2024-10-27T02:30:00+02:00 (Sunday, Europe/Paris); note: {TWICE}",
    ),
    (
        {"operation": "difference", "date": "2024-01-01", "other_date": "2024-03-01"},
        "60 days (8 weeks and 4 days; or 2 months)",
    ),
    (
        {"operation": "difference", "date": "2024-03-01", "other_date": "2024-01-01"},
        "-60 days (8 weeks and 4 days earlier; or 2 months earlier)",
    ),
    ({"operation": "difference", "date": "2024-01-01", "other_date": "2024-01-02"}, "1 day"),
    ({"operation": "difference", "date": "2024-01-01", "other_date": "2024-01-08"}, "7 days (1 week)"),
    ({"operation": "difference", "date": "2024-01-08", "other_date": "2024-01-01"}, "-7 days (1 week earlier)"),
    ({"operation": "difference", "date": "2024-01-08", "other_date": "2024-01-06"}, "-2 days"),
    (
        {"operation": "difference", "date": "1990-05-17", "other_date": "2024-02-29"},
        "12341 days (1763 weeks; or 33 years, 9 months, 12 days)",
    ),
    ({"operation": "difference", "date": "today", "other_date": "2026-12-25"}, "25 days (3 weeks and 4 days)"),
    (
        {"operation": "difference", "date": "2024-03-30T12:00", "other_date": "2024-03-31T12:00", **PARIS},
        "23 hours (82800 seconds in all)",
    ),
    (
        {"operation": "difference", "date": "2024-03-30T12:00Z", "other_date": "2024-03-28T11:59:30+01:00"},
        "-2 days, 1 hour, 30 seconds (-176430 seconds in all)",
    ),
    (
        {"operation": "difference", "date": "2024-03-30T12:00", "other_date": "2024-03-30T12:00"},
        "0 seconds (0 seconds in all)",
    ),
    ({"operation": "weekday", "date": "2024-02-29"}, "Thursday, 2024-02-29 (ISO week 9 of 2024, day 60 of the year)"),
    (
        {"operation": "weekday", "date": "July 4th, 1776"},
        "Thursday, 1776-07-04 (ISO week 27 of 1776, day 186 of the year)",
    ),
    (
        {"operation": "weekday", "date": "1st of Sept 2024"},
        "Sunday, 2024-09-01 (ISO week 35 of 2024, day 245 of the year)",
    ),
    (
        {"operation": "convert", "date": "2024-06-01T12:00", "timezone": "Paris", "to_timezone": "Tokyo"},
        "2024-06-01T19:00:00+09:00 (Saturday, Asia/Tokyo)",
    ),
    (
        {"operation": "convert", "date": "2024-06-01T12:00Z", "to_timezone": "-03:00"},
        "2024-06-01T09:00:00-03:00 (Saturday, UTC-03:00)",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), RECKONED, ids=[" ".join(map(str, a.values())) for a, _ in RECKONED])
def test_dates_are_reckoned_on_the_calendar_and_times_by_the_clock(
    clock: Clock, arguments: dict[str, Any], text: str
) -> None:
    """Month ends, leap days and clock changes come out right, and what had to be decided is said."""
    assert clock.date_arithmetic(**arguments) == text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"operation": "weekday", "date": "03/04/2024"}, "ambiguous; write '2024-04-03' or '2024-03-04'"),
    ({"operation": "weekday", "date": "25/12/2024"}, "not in ISO form; write '2024-12-25'"),
    ({"operation": "weekday", "date": "12/25/2024"}, "write '2024-12-25'"),
    ({"operation": "weekday", "date": "5.5.2024"}, "write '2024-05-05'"),
    ({"operation": "weekday", "date": "2024/2/29"}, "write '2024-02-29'"),
    ({"operation": "weekday", "date": "45/45/2024"}, "no such day or month"),
    ({"operation": "weekday", "date": "01/02/03"}, "which part is the year"),
    ({"operation": "weekday", "date": "2023-02-29"}, "out of range"),
    ({"operation": "weekday", "date": "30 February 2024"}, "is no date"),
    ({"operation": "weekday", "date": "3 Foo 2024"}, "is no date"),
    ({"operation": "weekday", "date": "20240229"}, "bare number"),
    ({"operation": "weekday", "date": "next friday"}, "is no date"),
    ({"operation": "weekday", "date": ""}, "is no date"),
    ({"operation": "weekday", "date": "x" * 5000}, "is no date"),
    ({"operation": "add", "date": "2024-01-31", "hours": 1}, "no time of day"),
    ({"operation": "add", "date": "2024-01-31"}, "needs an amount"),
    ({"operation": "add", "date": "9999-12-31", "days": 1}, "outside the years 1 to 9999"),
    ({"operation": "subtract", "date": "0001-01-01", "years": 1}, "outside the years 1 to 9999"),
    ({"operation": "add", "date": "2024-01-01", "days": 10**30}, "out of range"),
    ({"operation": "add", "date": "2024-01-01T00:00", "seconds": 10**30}, "out of range"),
    ({"operation": "add", "date": "0001-01-01T00:00", "hours": 1, "timezone": "Tokyo"}, "outside the years 1 to 9999"),
    ({"operation": "add", "date": "2024-03-31T02:30", "days": 1, **PARIS}, "does not exist in Europe/Paris"),
    ({"operation": "add", "date": "2024-01-01", "days": 1, "timezone": "Mordor"}, "no known time zone"),
    ({"operation": "difference", "date": "2024-01-01"}, "needs other_date"),
    ({"operation": "difference", "date": "2024-01-01T00:00", "other_date": "2024-01-02"}, "no time of day"),
    ({"operation": "difference", "date": "2024-01-01T00:00Z", "other_date": "2024-01-02T00:00"}, "has an offset"),
    ({"operation": "weekday", "date": "2024-01-01", "other_date": "2024-01-02"}, "for 'difference' only"),
    ({"operation": "convert", "date": "2024-01-01T00:00Z"}, "needs to_timezone"),
    ({"operation": "convert", "date": "2024-01-01T00:00", "to_timezone": "Tokyo"}, "no zone to convert from"),
    ({"operation": "convert", "date": "2024-01-01", "to_timezone": "Tokyo"}, "no zone to convert from"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED, ids=[" ".join(map(str, a.values()))[:60] for a, _ in REFUSED])
def test_what_can_t_be_reckoned_is_explained(clock: Clock, arguments: dict[str, Any], text: str) -> None:
    """Ambiguous forms list their readings; the rest says what to write."""
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        clock.date_arithmetic(**arguments)
    assert len(str(caught.value)) < 300


@given(st.dates(), st.integers(-100_000, 100_000))
def test_adding_days_and_taking_the_difference_agree(start: date, days: int) -> None:
    """The difference to a date so many days away is so many days."""
    clock = Clock()
    try:
        end = start + timedelta(days=days)
    except OverflowError:
        return
    if days:
        assert clock.date_arithmetic("add", start.isoformat(), days=days).startswith(end.isoformat())
    told = clock.date_arithmetic("difference", start.isoformat(), end.isoformat())
    assert int(told.split()[0]) == days


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_a_refusal(text: str) -> None:
    """No other error escapes."""
    with contextlib.suppress(ToolError):
        assert Clock().date_arithmetic("weekday", text)


@given(st.text("0123456789-/.:TZ+W ", max_size=25))
def test_any_jumble_of_digits_is_a_date_or_a_refusal(text: str) -> None:
    """The same for text that looks like a date."""
    with contextlib.suppress(ToolError):
        assert Clock().date_arithmetic("add", text, days=1, timezone="Europe/Paris")


NOW: list[tuple[str, dict[str, object] | None]] = [
    ("What time is it?", {}),
    ("what time is it in Tokyo?", {"timezone": "Tokyo"}),
    ("What's the time in New York right now?", {"timezone": "New York"}),
    ("time in Europe/Paris", {"timezone": "Europe/Paris"}),
    ("what is the current time in UTC", {"timezone": "UTC"}),
    ("What is today's date?", {}),
    ("what's the date", {}),
    ("what is the date in Tokyo", {"timezone": "Tokyo"}),
    ("what day is it today", {}),
    ("what day is today?", {}),
    ("current time", {}),
    ("what time is it in Mordor", None),
    ("what time is the meeting in Tokyo", None),
    ("what time is it in 5 hours", None),
    ("what is the time complexity of quicksort", None),
    ("what is the date of Easter", None),
    ("what day is 2024-02-29", None),
    ("", None),
    ("x" * 1000, None),
]


@pytest.mark.parametrize(("question", "arguments"), NOW, ids=[repr(q[:50]) for q, _ in NOW])
def test_questions_about_the_present_are_read(question: str, arguments: dict[str, object] | None) -> None:
    """Only a zone that exists is one; other questions of time are left alone."""
    assert read_now(question) == arguments


def _add(date: str, **amounts: int) -> dict[str, object]:
    return {"operation": "add", "date": date, **amounts}


def _sub(date: str, **amounts: int) -> dict[str, object]:
    return {"operation": "subtract", "date": date, **amounts}


def _gap(date: str, other: str) -> dict[str, object]:
    return {"operation": "difference", "date": date, "other_date": other}


DATES: list[tuple[str, dict[str, object] | None]] = [
    ("What day is 2024-02-29?", {"operation": "weekday", "date": "2024-02-29"}),
    ("what day of the week was July 4, 1776", {"operation": "weekday", "date": "July 4, 1776"}),
    ("which weekday is 29 February 2024", {"operation": "weekday", "date": "29 February 2024"}),
    ("what day will 2030-01-01 be", {"operation": "weekday", "date": "2030-01-01"}),
    ("what day does 2030-01-01 fall on", {"operation": "weekday", "date": "2030-01-01"}),
    ("what is the weekday of 2024-02-29?", {"operation": "weekday", "date": "2024-02-29"}),
    ("how many days between 2024-01-01 and 2024-03-01", _gap("2024-01-01", "2024-03-01")),
    ("how many days from 2024-01-01 until 2024-03-01", _gap("2024-01-01", "2024-03-01")),
    ("How many days are there between January 1, 2024 and March 1, 2024?", _gap("January 1, 2024", "March 1, 2024")),
    ("what is the difference between 2024-01-01 and 2024-03-01", _gap("2024-01-01", "2024-03-01")),
    ("how many days until 2026-12-25", _gap("today", "2026-12-25")),
    ("how many days are left until 2026-12-25", _gap("today", "2026-12-25")),
    ("how many days since 2020-01-01", _gap("2020-01-01", "today")),
    ("What is the date 30 days after 2024-01-15?", _add("2024-01-15", days=30)),
    ("what date is two weeks before 2024-01-15", _sub("2024-01-15", weeks=2)),
    ("2 months and 3 days after 2024-01-15", _add("2024-01-15", months=2, days=3)),
    ("twenty five days after 2024-01-15", _add("2024-01-15", days=25)),
    ("add 30 days to 2024-01-15", _add("2024-01-15", days=30)),
    ("subtract 1,000 days from 2024-01-15", _sub("2024-01-15", days=1000)),
    ("2024-01-15 plus 90 days", _add("2024-01-15", days=90)),
    ("what is 30 days from today", _add("today", days=30)),
    ("what was the date 100 days ago", _sub("today", days=100)),
    ("a week ago", _sub("today", weeks=1)),
    ("what is the date in 10 days", _add("today", days=10)),
    ("5 minutes ago", _sub("now", minutes=5)),
    ("which day is 03/04/2024", None),
    ("what day is 2024-02-30", None),
    ("what day is today", None),
    ("how many days until christmas", None),
    ("what is 5 days in hours", None),
    ("2 days and 3 days after 2024-01-15", None),
    ("one two days after 2024-01-15", None),
    ("1.5 days after 2024-01-15", None),
    ("5 days", None),
    ("what day comes after monday", None),
    ("", None),
    ("a day " * 80, None),
    ("a day and " * 19 + "x", None),
]


@pytest.mark.parametrize(("question", "arguments"), DATES, ids=[repr(q[:60]) for q, _ in DATES])
def test_questions_about_dates_are_read(question: str, arguments: dict[str, object] | None) -> None:
    """Dates that exist and amounts in words or digits are read; other questions are left alone."""
    assert read_reckoning(question) == arguments
