"""Reading, writing and reckoning with dates and times."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo

from atlas_standard_tools._zones import TimeError, zone_name

__all__ = ["Amounts", "Moment", "difference", "read_moment", "shift", "weekday", "write"]

MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december"]  # fmt: skip
_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_NAMED = [
    re.compile(rf"{_DAY}(?: of)? {_MONTH},? (?P<year>\d{{4}})", re.IGNORECASE),
    re.compile(rf"{_MONTH} {_DAY},? (?P<year>\d{{4}})", re.IGNORECASE),
]
_NUMBERS = re.compile(r"(\d{1,4})[/.-](\d{1,2})[/.-](\d{1,4})")
_RELATIVE = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
_MOST = 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How far to move; each in its own unit, any sign."""

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0

    def negated(self) -> Amounts:
        """Return the way back."""
        return Amounts(**{name: -getattr(self, name) for name in self.__slots__})

    def clock(self) -> timedelta:
        """Return the part that is time elapsed, whatever the clocks on the wall do."""
        return timedelta(hours=self.hours, minutes=self.minutes, seconds=self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A date, or a point in time.

    Attributes:
        at: A `date` if no time of day was given; a `datetime` with or without a zone else.
        notes: What had to be decided to read it or get there, in words.
    """

    at: date | datetime
    notes: tuple[str, ...] = field(default=())


def read_moment(text: str, *, zone: tzinfo | None, now: datetime) -> Moment:
    """Read a date or time.

    Args:
        text: ISO 8601 ("2024-02-29", "2024-02-29T15:30+01:00"), a date with the month's name ("29 February 2024"),
            or one of today, now, tomorrow, yesterday.
        zone: What a time without offset is on the clock of; one with an offset is moved to it. None for neither.
        now: The present, with a zone.
    Raises:
        TimeError: It is none of these, has several readings, or was skipped by the clocks of the zone.
    """
    plain = " ".join(text.split())
    if plain.lower() in _RELATIVE:
        return _relative(plain.lower(), now.astimezone(zone) if zone else now)
    if named := _named(plain):
        return Moment(at=named)
    value = _iso(plain)
    if not isinstance(value, datetime) or (zone is None and value.tzinfo is None):
        return Moment(at=value)
    if value.tzinfo is None:
        return _placed(value, zone or UTC)
    return Moment(at=value.astimezone(zone) if zone else value)


def _relative(word: str, now: datetime) -> Moment:
    if word == "now":
        return Moment(at=now.replace(microsecond=0))
    return Moment(at=now.date() + timedelta(days=_RELATIVE[word]))


def _named(text: str) -> date | None:
    for form in _NAMED:
        if match := form.fullmatch(text):
            word = match.group("month").lower()
            fits = [i for i, month in enumerate(MONTHS, start=1) if month.startswith(word)]
            if not fits:
                return None
            try:
                return date(int(match.group("year")), fits[0], int(match.group("day")))
            except ValueError as exc:
                raise TimeError(f"{text!r} is no date: {exc}") from exc
    return None


def _iso(text: str) -> date | datetime:
    if (match := _NUMBERS.fullmatch(text)) and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise _ambiguous(text, *match.groups())
    if re.fullmatch(r"[\d,.]+", text):
        raise TimeError(f"{text[:60]!r} is a bare number, not a date; write it as in '2024-02-29'")
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        problem = str(exc)
    try:
        return datetime.fromisoformat(text)
    except ValueError as exc:
        why = f": {problem}" if "must be in" in problem or "out of range" in problem else ""
        raise TimeError(
            f"{text[:60]!r} is no date{why}; write it as in '2024-02-29', '2024-02-29T15:30' or '29 February 2024'"
        ) from exc


def _ambiguous(text: str, first: str, second: str, third: str) -> TimeError:
    if len(first) == 4:
        orders = [(first, second, third)]
    elif len(third) == 4:
        orders = [(third, second, first), (third, first, second)]
    else:
        return TimeError(f"{text!r} is ambiguous: which part is the year? write it as in '2024-02-29'")
    readings = []
    for year, month, day in orders:
        try:
            readings.append(date(int(year), int(month), int(day)).isoformat())
        except ValueError:
            continue
    if not readings:
        return TimeError(f"{text!r} is no date: there is no such day or month; write it as in '2024-02-29'")
    what = "is ambiguous" if len(set(readings)) > 1 else "is not in ISO form"
    return TimeError(f"{text!r} {what}; write {' or '.join(map(repr, dict.fromkeys(readings)))}")


def _exists(value: datetime) -> bool:
    return value.astimezone(UTC).astimezone(value.tzinfo).replace(tzinfo=None) == value.replace(tzinfo=None)


def _is_twice(value: datetime) -> bool:
    return value.utcoffset() != value.replace(fold=1).utcoffset() and _exists(value)


def _placed(value: datetime, zone: tzinfo) -> Moment:
    local = value.replace(tzinfo=zone)
    if not _exists(local):
        raise TimeError(
            f"{value.isoformat()} does not exist in {zone_name(zone)}: the clocks were put forward over it; write a "
            f"time that does, such as {_after_gap(local).replace(tzinfo=None).isoformat()}"
        )
    return Moment(at=local, notes=(_first_of_two(local),) if _is_twice(local) else ())


def _after_gap(local: datetime) -> datetime:
    """Move a time that the clocks skipped forward by what they skipped."""
    return local.astimezone(UTC).astimezone(local.tzinfo)


def _first_of_two(local: datetime) -> str:
    first, second = (local.replace(fold=n).isoformat(timespec="minutes")[16:] for n in (0, 1))
    return (
        f"{local:%Y-%m-%d %H:%M} happens twice in {zone_name(local.tzinfo or UTC)}, as the clocks are put back; "
        f"the first is taken ({first}), for the second write the offset {second}"
    )


def shift(moment: Moment, amounts: Amounts) -> Moment:
    """Move a moment: first by years and months, then weeks and days on the calendar, then by elapsed time.

    Raises:
        TimeError: The result lies outside the years 1 to 9999, or a time of day is missing.
    """
    from dateutil.relativedelta import relativedelta

    _check_amounts(amounts)
    if amounts.clock() and not isinstance(moment.at, datetime):
        raise TimeError(
            f"{moment.at.isoformat()} has no time of day to add hours, minutes or seconds to; write it as in "
            f"'{moment.at.isoformat()}T00:00'"
        )
    try:
        months = moment.at + relativedelta(years=amounts.years, months=amounts.months)
        moved = months + timedelta(weeks=amounts.weeks, days=amounts.days)
        if moved == moment.at:
            moved = moment.at  # the sum forgets which of two equal times on the clock it was
        notes = moment.notes
        if (amounts.years or amounts.months) and months.day != moment.at.day:
            notes += (f"{months.year}-{months.month:02} has no day {moment.at.day}, so its last day is taken",)
        if isinstance(moved, datetime):
            return _elapse(moved, amounts.clock(), notes)
    except (OverflowError, ValueError) as exc:
        raise TimeError("the result lies outside the years 1 to 9999") from exc
    return Moment(at=moved, notes=notes)


def _check_amounts(amounts: Amounts) -> None:
    for name in Amounts.__slots__:
        if abs(getattr(amounts, name)) > _MOST * (10_000 if name in {"seconds", "minutes", "hours"} else 1):
            raise TimeError(f"{name}={getattr(amounts, name)} is out of range")


def _elapse(moved: datetime, elapsed: timedelta, notes: tuple[str, ...]) -> Moment:
    if moved.tzinfo is None:
        return Moment(at=moved + elapsed, notes=notes)
    if not _exists(moved):
        skipped, moved = moved, _after_gap(moved)
        where = zone_name(skipped.tzinfo or UTC)
        note = (
            f"{skipped:%Y-%m-%d %H:%M} does not exist in {where}, as the clocks are put forward; {moved:%H:%M} is taken"
        )
        notes = (*notes, note)
    elif not moved.fold and _is_twice(moved) and _first_of_two(moved) not in notes:
        notes = (*notes, _first_of_two(moved))
    return Moment(at=(moved.astimezone(UTC) + elapsed).astimezone(moved.tzinfo), notes=notes)


def difference(start: Moment, end: Moment) -> str:
    """Return how far it is from start to end, in words: total days, and years, months, days."""
    from dateutil.relativedelta import relativedelta

    a, b = start.at, end.at
    if not isinstance(a, datetime) and not isinstance(b, datetime):
        return _days_apart(a, b, relativedelta(b, a))
    a, b = _as_datetime(a), _as_datetime(b)
    if (a.tzinfo is None) != (b.tzinfo is None):
        raise TimeError("one of the two times has an offset and the other has none; give both, or a timezone")
    elapsed = (b.astimezone(UTC) - a.astimezone(UTC)) if a.tzinfo else b - a
    seconds = int(elapsed.total_seconds())
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    parts = [
        (seconds // 86400, "day"),
        (seconds // 3600 % 24, "hour"),
        (seconds // 60 % 60, "minute"),
        (seconds % 60, "second"),
    ]
    text = ", ".join(_count(n, unit) for n, unit in parts if n) or "0 seconds"
    return f"{sign}{text} ({sign}{seconds} seconds in all)"


def _as_datetime(value: date | datetime) -> datetime:
    if isinstance(value, datetime):
        return value
    raise TimeError(
        f"{value.isoformat()} has no time of day, the other has one; give both, such as '{value.isoformat()}T00:00'"
    )


def _days_apart(a: date, b: date, parts: object) -> str:
    days = (b - a).days
    weeks, rest = divmod(abs(days), 7)
    pieces = [(abs(getattr(parts, unit + "s")), unit) for unit in ("year", "month", "day")]
    calendar = ", ".join(_count(n, unit) for n, unit in pieces if n)
    in_weeks = _count(weeks, "week") + (f" and {_count(rest, 'day')}" if rest else "")
    extra = ([in_weeks] if weeks else []) + ([calendar] if pieces[0][0] or pieces[1][0] else [])
    sign, earlier = ("-", " earlier") if days < 0 else ("", "")
    return f"{sign}{_count(abs(days), 'day')}" + (f" ({f'{earlier}; or '.join(extra)}{earlier})" if extra else "")


def _count(n: int, unit: str) -> str:
    return f"{n} {unit}{'' if n == 1 else 's'}"


def weekday(moment: Moment) -> str:
    """Return the day of the week, with week and day of the year."""
    iso = moment.at.isocalendar()
    in_year = f"ISO week {iso.week} of {iso.year}, day {moment.at.timetuple().tm_yday} of the year"
    return "; note: ".join([f"{_day(moment.at)}, {moment.at.isoformat()} ({in_year})", *moment.notes])


def _day(value: date) -> str:
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return names[value.weekday()]  # not strftime, which speaks the language of the machine's locale


def write(moment: Moment) -> str:
    """Return a moment in ISO form with its weekday, zone, and what had to be decided."""
    value = moment.at
    if not isinstance(value, datetime):
        text = f"{value.isoformat()} ({_day(value)})"
    else:
        zone = f", {zone_name(value.tzinfo)}" if value.tzinfo else ""
        text = f"{value.isoformat()} ({_day(value)}{zone})"
    return "; note: ".join([text, *moment.notes])
