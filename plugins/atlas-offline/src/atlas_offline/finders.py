"""Values that are recognised by their form alone, wherever they stand in a text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from atlas_offline.words import in_calls

__all__ = ["FINDERS", "NUMBER", "Found", "find_dates", "find_numbers"]

Found: TypeAlias = "list[tuple[str, tuple[int, int]]]"
"""Values as text, each with where it stands."""

NUMBER = re.compile(r"(?<![\w.,/:-])-?(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?(?![\w/:]|[.,-]\d|-\w)")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"']+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/:@.\\~-])(?:~?/[\w.@+/-]*|\.{1,2}/[\w.@+/-]*|[\w@+-][\w.@+-]*/[\w.@+/-]*|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?![\w@])"
)
_ISO_DATE = re.compile(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = "|".join(f"{m}|{m[:3]}" for m in _MONTHS) + "|sept"
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\.?,? (\d{{4}})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", re.IGNORECASE)
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)


def find_numbers(text: str) -> Found:
    """Find numbers that stand alone, and the words `zero` to `twelve`; no part of a date, time, version or range.

    In the brackets of a call, `5,100` is two numbers, and `5,000`, which may be one or two, is none.
    """
    inside = in_calls(text)
    found: Found = []
    for match in NUMBER.finditer(text):
        parts = match[0].split(",") if inside[match.start()] else [match[0]]
        start = match.start()
        for part in parts if not any(re.match(r"0\d", p) for p in parts) else ():
            found.append((part, (start, start + len(part))))
            start += len(part) + 1
    found += [(str(_WORDS.index(m[0].lower())), m.span()) for m in _NUMBER_WORD.finditer(text)]
    return sorted(found, key=lambda item: item[1])


def find_dates(text: str) -> Found:
    """Find dates that can be read in one way only, as ISO 8601; `12/05/2024` is not one of them."""
    found = [(m[0], m.span()) for m in _ISO_DATE.finditer(text) if _is_date(m[0])]
    for pattern, day, month in ((_DAY_FIRST, 1, 2), (_MONTH_FIRST, 2, 1)):
        for match in pattern.finditer(text):
            number = next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(match[month].lower()[:3]))
            iso = f"{match[3]}-{number:02d}-{int(match[day]):02d}"
            if _is_date(iso):
                found.append((iso, match.span()))
    return sorted(found, key=lambda item: item[1])


def _is_date(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _finder(pattern: re.Pattern[str]) -> Callable[[str], Found]:
    def find(text: str) -> Found:
        out = []
        for match in pattern.finditer(text):
            value = match[0].rstrip(".,;:!?")
            out.append((value, (match.start(), match.start() + len(value))))
        return out

    return find


FINDERS: Mapping[str, Callable[[str], Found]] = {"email": _finder(_EMAIL), "url": _finder(_URL), "path": _finder(_PATH)}
"""By kind of parameter: what finds its values."""
