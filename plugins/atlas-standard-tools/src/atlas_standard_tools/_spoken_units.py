"""Read a question that asks for one conversion between units, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlas_standard_tools._question import unframe
from atlas_standard_tools._words import read_number

__all__ = ["read_conversion"]

_DIGITS = (
    r"(?:[-+]|minus |negative )?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)(?![\d,.]*\d)"
)
_VALUE = rf"(?P<value>{_DIGITS}|(?=[a-z]))"  # a number in words is found together with its unit
_WORD = r"[^\d\s,?!;:=+]+\d?"
_UNIT = rf"{_WORD}(?:\s{_WORD}){{0,8}}?"
_FROM = rf"{_VALUE}\s*(?P<from_unit>{_UNIT})"
_TO = rf"(?P<to_unit>{_UNIT})"
_LINK = r"(?:in to|into|in|to|as|expressed in|expressed as|converted to|converted into)"
_WHAT = (
    r"(?:what(?:'s| is| are| would be)|whats"
    r"|how (?:much|far|long|tall|high|heavy|hot|cold|fast|big|wide|deep) (?:is|are))"
)
_ARE_IN = (
    r"(?:are there in|is there in|are in|is in|are|is|in|make up|make|equals?|does it take to make|do you get from)"
)
_SHAPES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:convert|change|turn|express|give me|show me) {_FROM} {_LINK} {_TO}",
        rf"(?:{_WHAT} )?{_FROM} {_LINK} {_TO}",
        rf"how (?:many|much) {_TO} {_ARE_IN} {_FROM}",
        rf"{_FROM} (?:is|are|equals?|makes?) how (?:many|much) {_TO}",
        rf"{_FROM} (?:=|equals) (?:\? ?)?{_TO}",
    )
]
_VAGUE = re.compile(r"degrees?|deg|°", re.IGNORECASE)
# A day count of a month or a year depends on which; the average that pint uses would be a wrong answer.
_CALENDAR = re.compile(r"(?:month|year|yr|decade|centur|quarter)", re.IGNORECASE)
_CALENDAR_ONLY = re.compile(r"\s*(?:months?|years?|yrs?|decades?|centur(?:y|ies)|millenni(?:um|a))\s*", re.IGNORECASE)


def read_conversion(question: str) -> Mapping[str, object] | None:
    """Return the arguments of the converter, or None if the question may ask for anything else."""
    text = unframe(question).rstrip("!")
    if len(text) > 120:
        return None
    for shape in _SHAPES:
        match = shape.fullmatch(text)
        if match and (found := _arguments(match.group("value"), match.group("from_unit"), match.group("to_unit"))):
            return found
    return None


def _arguments(value: str, from_unit: str, to_unit: str) -> Mapping[str, object] | None:
    number, from_unit = _number(value.lower()), _trimmed(from_unit)
    if not value:
        number, from_unit = _spoken(from_unit)
    to_unit = _trimmed(to_unit)
    if number is None or not _known(from_unit, to_unit) or _unclear(from_unit, to_unit):
        return None
    return {"value": number, "from_unit": from_unit, "to_unit": to_unit}


def _trimmed(unit: str) -> str:
    unit = re.sub(r"^(?:the|of)\s+", "", unit.strip(), flags=re.IGNORECASE)
    return unit.rstrip(".") if len(unit) > 1 else unit


def _number(text: str) -> int | float | None:
    text = re.sub(r"^(?:minus|negative) ", "-", text).replace(",", "")
    if not text or re.match(r"[-+]?0\d", text):
        return None
    number = float(text)
    return int(number) if number.is_integer() else number


def _spoken(text: str) -> tuple[int | float | None, str]:
    """Part a number in words from the unit after it: "two hundred and five pounds", "half a gallon"."""
    if match := re.match(r"(?P<half>half )?(?:of )?an? (?!hundred|thousand|million|billion)", text, re.IGNORECASE):
        return (0.5 if match.group("half") else 1), text[match.end() :]
    sign = -1 if (minus := re.match(r"(?:minus|negative) ", text, re.IGNORECASE)) else 1
    text = text[minus.end() :] if minus else text
    words = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text).split()
    spoken = read_number([word.lower() for word in words])
    if spoken is None:
        return None, text
    number = float(spoken.text) * sign
    return (int(number) if number.is_integer() else number), " ".join(words[spoken.words :])


def _unclear(from_unit: str, to_unit: str) -> bool:
    calendar = [bool(_CALENDAR.search(u)) for u in (from_unit, to_unit)]
    if any(calendar) and not all(_CALENDAR_ONLY.fullmatch(u) for u in (from_unit, to_unit)):
        return True
    vague = [bool(_VAGUE.fullmatch(u)) for u in (from_unit, to_unit)]
    return any(vague) and not any(re.search("rad|turn|grad|arc", u) for u in (from_unit, to_unit))


def _known(from_unit: str, to_unit: str) -> bool:
    from atlas_standard_tools._unit_names import UnitError, is_plain, read_unit

    try:
        source, target = read_unit(from_unit, other=to_unit), read_unit(to_unit, other=from_unit)
    except UnitError:
        return False
    # Units of two kinds go to the tool, which explains, but only where nothing else can be meant: to pint, "cats"
    # are hundredths of a technical atmosphere.
    return bool(source.dimensionality == target.dimensionality) or (is_plain(from_unit) and is_plain(to_unit))
