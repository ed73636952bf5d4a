"""Time zones by IANA name, by city, or as a fixed offset."""

from __future__ import annotations

import difflib
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

__all__ = ["TimeError", "find_zone", "zone_name"]


class TimeError(ValueError):
    """A date, time or zone is wrong or has several meanings; the text says what to write."""


_OFFSET = re.compile(r"(?:UTC|GMT)?\s*(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.IGNORECASE)
# Letters that name several zones, or only half a year of one.
_LETTERS = {
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PT": "America/Los_Angeles",
    "EDT": "America/New_York", "EST": "America/New_York", "ET": "America/New_York", "CST": "America/Chicago",
    "CDT": "America/Chicago", "CT": "America/Chicago", "MST": "America/Denver", "MDT": "America/Denver",
    "BST": "Europe/London", "IST": "Asia/Kolkata", "CEST": "Europe/Paris", "CET": "Europe/Paris",
    "JST": "Asia/Tokyo", "AEST": "Australia/Sydney", "KST": "Asia/Seoul", "MSK": "Europe/Moscow",
}  # fmt: skip


@cache
def _places() -> dict[str, list[str]]:
    """Return the zones by name and by last part of the name, both in lower case with spaces."""
    places: dict[str, list[str]] = {}
    for key in sorted(available_timezones()):
        if key.startswith(("Etc/", "SystemV/", "posix/", "right/")) or key in {"localtime", "Factory"}:
            continue
        for name in {key, key.rsplit("/", 1)[-1]}:
            places.setdefault(_plain(name), []).append(key)
    return places


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").lower().split())


def find_zone(name: str) -> tzinfo:
    """Return the zone that a name means.

    Args:
        name: "Europe/Paris", "Tokyo", "new york", "UTC", "+02:00", "UTC-5", in any case.
    Raises:
        TimeError: There is none, or several with different clocks.
    """
    text = name.strip()
    if _plain(text) in {"utc", "z", "gmt", "zulu", "etc/utc", "etc/gmt"}:
        return UTC
    if offset := _OFFSET.fullmatch(text):
        return _fixed(offset, text)
    if text.upper() in _LETTERS:
        raise TimeError(
            f"{text!r} is an abbreviation that does not say which clock is meant; write an IANA name such as "
            f"{_LETTERS[text.upper()]!r}, or an offset such as '+02:00'"
        )
    keys = _places().get(_plain(text)) or []
    exact = [key for key in keys if _plain(key) == _plain(text)] or keys
    if not exact:
        raise _unknown(text)
    zones = [_load(key) for key in exact]
    if len({_clock(zone) for zone in zones}) > 1:
        raise TimeError(f"{text!r} names several time zones: {', '.join(exact)}; write one of these")
    return zones[0]


def _load(key: str) -> ZoneInfo:
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, OSError, ValueError) as exc:
        raise TimeError(f"the data of time zone {key!r} can't be read; install the package 'tzdata'") from exc


def _clock(zone: tzinfo) -> tuple[object, ...]:
    return tuple(zone.utcoffset(datetime(year, month, 1)) for year in (2000, 2020, 2026) for month in (1, 4, 7, 10))  # noqa: DTZ001  # a wall clock is what utcoffset takes


def _fixed(match: re.Match[str], text: str) -> tzinfo:
    hours, minutes = int(match.group("hours")), int(match.group("minutes") or 0)
    if hours > 14 or minutes > 59:
        raise TimeError(f"{text!r} is no offset from UTC; they go from -12:00 to +14:00")
    delta = timedelta(hours=hours, minutes=minutes)
    return timezone(-delta if match.group("sign") == "-" else delta)


def _unknown(text: str) -> TimeError:
    close = difflib.get_close_matches(_plain(text)[:60], _places(), n=1, cutoff=0.75)
    hint = f"did you mean {_places()[close[0]][0]!r}?" if close else "write an IANA name such as 'Europe/Paris'"
    return TimeError(f"{text[:60]!r} is no known time zone; {hint}")


def zone_name(zone: tzinfo) -> str:
    """Return the IANA name of a zone, or its offset."""
    return zone.key if isinstance(zone, ZoneInfo) else str(zone)
