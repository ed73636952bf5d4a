"""Numbers in English words: `two hundred and five`, `minus` excepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

__all__ = ["NUMBER_WORDS", "ORDINALS", "SpokenNumber", "read_number"]

_UNITS = {w: n for n, w in enumerate("zero one two three four five six seven eight nine".split())}
_TEENS = {
    w: n
    for n, w in enumerate(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), start=10
    )
}
_TENS = {w: n * 10 for n, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

NUMBER_WORDS = frozenset({*_UNITS, *_TEENS, *_TENS, *_SCALES, "hundred"})

ORDINALS = {
    w: n for n, w in enumerate("third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=3)
} | {"first": 1, "second": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenNumber:
    """A number read from words.

    Attributes:
        text: The number in digits.
        words: How many words it took.
        joined: Whether an "and" was read as part of it, which in a list could have parted two items.
    """

    text: str
    words: int
    joined: bool = False


def read_number(words: Sequence[str]) -> SpokenNumber | None:
    """Read the number that the words begin with; None if they begin with none, or with no proper one.

    `words` are lower case, with hyphens taken apart. "nineteen eighty four" is a year and "one two three" a list
    of digits: neither is read.
    """
    total, current, last, i = 0, 0, "start", 0
    scale = 10**15
    joined = False
    while i < len(words):
        word = words[i]
        following = words[i + 1] if i + 1 < len(words) else ""
        if word in {"a", "an"} and last == "start" and (following == "hundred" or following in _SCALES):
            current, last = 1, "unit"
        elif word in _UNITS and last in {"start", "tens", "hundred", "scale"}:
            if word == "zero" and last != "start":
                return None
            current, last = current + _UNITS[word], "zero" if word == "zero" else "unit"
        elif (value := (_TEENS | _TENS).get(word)) and last in {"start", "hundred", "scale"}:
            current, last = current + value, "teen" if word in _TEENS else "tens"
        elif word == "hundred" and last in {"unit", "teen", "tens"} and 0 < current < 100:
            current, last = current * 100, "hundred"
        elif word in _SCALES and last in {"unit", "teen", "tens", "hundred"} and _SCALES[word] < scale:
            scale = _SCALES[word]
            total, current, last = total + current * scale, 0, "scale"
        elif word == "and" and last in {"hundred", "scale"} and following in _UNITS | _TEENS | _TENS:
            joined = True
        elif word in NUMBER_WORDS:
            return None
        else:
            break
        i += 1
    if last == "start" and words[:1] != ["point"]:
        return None
    return _with_fraction(words, i, total + current, joined=joined)


def _with_fraction(words: Sequence[str], i: int, value: int, *, joined: bool) -> SpokenNumber | None:
    digits = ""
    if i < len(words) and words[i] == "point":
        i += 1
        while i < len(words) and words[i] in _UNITS:
            digits += str(_UNITS[words[i]])
            i += 1
        if not digits or (i < len(words) and words[i] in NUMBER_WORDS):
            return None
    elif i and list(words[i : i + 3]) in (["and", "a", "half"], ["and", "a", "quarter"]):
        digits = "5" if words[i + 2] == "half" else "25"
        i, joined = i + 3, True
    text = str(Decimal(f"{value}.{digits}")) if digits else str(value)
    return SpokenNumber(text=text, words=i, joined=joined)
