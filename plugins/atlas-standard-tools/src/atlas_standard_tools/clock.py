"""The tools for the present time and for reckoning with dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Literal

from atlas_core import Example, ToolError, ToolHints, tool

if TYPE_CHECKING:
    from atlas_standard_tools._dates import Amounts, Moment

__all__ = ["Clock"]

Operation = Literal["add", "subtract", "difference", "weekday", "convert"]


def _parse_now(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_dates import read_now

    return read_now(question)


def _parse_dates(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_dates import read_reckoning

    return read_reckoning(question)


_NOW_HINTS = ToolHints(
    examples=(
        Example("What time is it in Tokyo?", {"timezone": "Tokyo"}),
        Example("What is the current time in Europe/Paris?", {"timezone": "Europe/Paris"}),
        Example("What is today's date?", {}),
    ),
    parse=_parse_now,
)
_DATE_HINTS = ToolHints(
    examples=(
        Example("What day of the week is 2024-02-29?", {"operation": "weekday", "date": "2024-02-29"}),
        Example(
            "How many days are there between 2024-01-01 and 2024-03-01?",
            {"operation": "difference", "date": "2024-01-01", "other_date": "2024-03-01"},
        ),
        Example("What is the date 30 days after 2024-01-15?", {"operation": "add", "date": "2024-01-15", "days": 30}),
        Example("Subtract 2 weeks from 2024-01-15", {"operation": "subtract", "date": "2024-01-15", "weeks": 2}),
    ),
    parse=_parse_dates,
)


def _system_now() -> datetime:
    return datetime.now(UTC)


class Clock:
    """The time tools.

    Args:
        timezone: The zone where a call names none.
        now: Returns the present with a zone; for a clock of one's own.
    """

    def __init__(self, timezone: str = "UTC", *, now: Callable[[], datetime] = _system_now) -> None:
        self._timezone = timezone
        self._now = now

    @tool(effects="read", timeout_s=10, hints=_NOW_HINTS)
    def current_time(self, timezone: str | None = None) -> str:
        """Tell the present date, time and weekday, here or in another time zone.

        Args:
            timezone: An IANA name such as "Europe/Paris", a city in one ("Tokyo"), or an offset such as "+02:00".
                Left out, it is the zone set in the settings, UTC unless changed.
        """
        from atlas_standard_tools._dates import Moment, write
        from atlas_standard_tools._zones import TimeError

        try:
            now = self._now().astimezone(self._zone(timezone))
        except TimeError as exc:
            raise ToolError(str(exc), tool="current_time") from exc
        return write(Moment(at=now.replace(microsecond=0)))

    @tool(effects="read", timeout_s=10, hints=_DATE_HINTS)
    def date_arithmetic(
        self,
        operation: Operation,
        date: str,
        other_date: str | None = None,
        years: int = 0,
        months: int = 0,
        weeks: int = 0,
        days: int = 0,
        hours: int = 0,
        minutes: int = 0,
        seconds: int = 0,
        timezone: str | None = None,
        to_timezone: str | None = None,
    ) -> str:
        """Reckon with dates and times: add, subtract, find the difference or the weekday, convert between zones.

        Years, months, weeks and days move on the calendar (31 January plus 1 month is the last of February); hours,
        minutes and seconds are time elapsed, so clock changes count.

        Args:
            operation: "add" or "subtract" the amounts to `date`; "difference" from `date` to `other_date`;
                "weekday" of `date`; "convert" the time `date` to `to_timezone`.
            date: "2024-02-29", "2024-02-29T15:30", with an offset if known, "29 February 2024", or one of today,
                now, tomorrow, yesterday. Forms such as 03/04/2024 are refused, as they have two readings.
            other_date: The end, for "difference"; written like `date`.
            years: For "add" and "subtract", like the six that follow.
            months: Calendar months.
            weeks: Weeks.
            days: Calendar days.
            hours: Hours elapsed; need a time of day.
            minutes: Minutes elapsed.
            seconds: Seconds elapsed.
            timezone: Zone of times without an offset: IANA name, city or offset.
            to_timezone: Zone to "convert" to.
        """
        from atlas_standard_tools._dates import Amounts
        from atlas_standard_tools._zones import TimeError

        amounts = Amounts(
            years=years, months=months, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds
        )
        try:
            return self._reckon(operation, date, other_date, amounts, timezone, to_timezone)
        except TimeError as exc:
            raise ToolError(str(exc), tool="date_arithmetic") from exc
        except OverflowError as exc:
            raise ToolError("a time lies outside the years 1 to 9999", tool="date_arithmetic") from exc

    def _zone(self, name: str | None) -> tzinfo:
        from atlas_standard_tools._zones import find_zone

        return find_zone(name or self._timezone)

    def _reckon(
        self,
        operation: Operation,
        date: str,
        other_date: str | None,
        amounts: Amounts,
        timezone: str | None,
        to_timezone: str | None,
    ) -> str:
        from atlas_standard_tools import _dates
        from atlas_standard_tools._zones import TimeError

        zone = self._zone(timezone) if timezone else None
        now = self._now().astimezone(self._zone(None))
        if operation != "difference" and other_date is not None:
            raise TimeError(f"other_date is for 'difference' only, not for {operation!r}; leave it out")
        start = _dates.read_moment(date, zone=zone, now=now)
        if operation == "weekday":
            return _dates.weekday(start)
        if operation == "difference":
            if other_date is None:
                raise TimeError("'difference' needs other_date, the date to count to")
            end = _dates.read_moment(other_date, zone=zone, now=now)
            return "; note: ".join([_dates.difference(start, end), *start.notes, *end.notes])
        if operation == "convert":
            return self._convert(start, date, to_timezone)
        if amounts == _dates.Amounts():
            raise TimeError(f"{operation!r} needs an amount: years, months, weeks, days, hours, minutes or seconds")
        return _dates.write(_dates.shift(start, amounts if operation == "add" else amounts.negated()))

    def _convert(self, start: Moment, date: str, to_timezone: str | None) -> str:
        from atlas_standard_tools._dates import Moment, write
        from atlas_standard_tools._zones import TimeError

        if to_timezone is None:
            raise TimeError("'convert' needs to_timezone, the zone to convert to")
        if not isinstance(start.at, datetime) or start.at.tzinfo is None:
            raise TimeError(f"{date!r} has no zone to convert from; give a time of day, and its offset or a timezone")
        return write(Moment(at=start.at.astimezone(self._zone(to_timezone)), notes=start.notes))
