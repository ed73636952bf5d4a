"""How long a server asks to wait, read from headers that may hold anything."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

__all__ = ["MOST_SECONDS", "demanded_wait"]

MOST_SECONDS = 1e9
"""What a longer demand is cut to: some thirty years, so that arithmetic and texts stay readable."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


def demanded_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, or None if it states none that can be understood.

    Reads `retry-after-ms` (OpenAI, Azure), then `retry-after` as seconds or as an HTTP date (RFC 9110, 10.2.3); of
    several values the longest. A date counts from the answer's own `date`, so that a clock that is wrong here does
    no harm. A date in the past is 0; negative numbers and nonsense say nothing.

    Args:
        headers: Names in lower case; repeated headers joined by ", ".
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return min(float(milliseconds) / 1000, MOST_SECONDS)
    value = headers.get("retry-after", "")
    numbers = [min(float(part), MOST_SECONDS) for part in map(str.strip, value.split(",")) if _NUMBER.fullmatch(part)]
    dates = [_until(date, headers.get("date", "")) for date in _dates(value)]
    return max((wait for wait in (*numbers, *dates) if wait is not None), default=None)


def _dates(value: str) -> list[str]:
    # A date has one comma of its own, after the day's name.
    return re.findall(r"[A-Za-z]{3,9}, *[0-9]{1,2}[ -][A-Za-z]{3}[ -][0-9]{2,9} [0-9:]+ *[A-Z]*", value)


def _until(date: str, now: str) -> float | None:
    then = _timestamp(date)
    if then is None:
        return None
    return min(max(0.0, then - (_timestamp(now) or time.time())), MOST_SECONDS)


def _timestamp(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        # A year past 9999 is still a wish to wait for long.
        return MOST_SECONDS * 1000 if re.search(r" [0-9]{5,9} ", date) else None
