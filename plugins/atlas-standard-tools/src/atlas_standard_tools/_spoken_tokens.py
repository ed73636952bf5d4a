"""The words and signs of spoken arithmetic, each as a token; a word that has no place in it ends the reading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from atlas_standard_tools._commas import UnclearCommaError, separating
from atlas_standard_tools._words import NUMBER_WORDS, ORDINALS, read_number

__all__ = ["CALLS", "Token", "Unreadable", "tokens_of"]


class Unreadable(Exception):  # noqa: N818  # no failure: the question is for someone else
    """The question is no arithmetic, or has two readings."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, phrase or sign.

    Attributes:
        kind: What part it can play.
        value: Which of its kind it is; for a number, its digits.
        unclear_in_list: A number whose own "and" or comma could part two items of a list.
        loose: A minus that stands apart from what follows, so that it may be no sign of that; a comma that does, so
            that it can be no decimal comma; a power in words, so that it may reach further than one number.
        written: How a sign is written.
        spacing: The blanks around a sign: "even" on both sides, "uneven" on one, "none".
    """

    kind: str
    value: str
    unclear_in_list: bool = False
    loose: bool = False
    written: str = ""
    spacing: str = ""


_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | ORDINALS | {f"{w}s": n for w, n in ORDINALS.items()}
del _PARTS["first"], _PARTS["firsts"], _PARTS["second"], _PARTS["seconds"]
_SMALL = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
          "nine": 9}  # fmt: skip
_ORDINAL = rf"(?:{'|'.join(ORDINALS)}|\d+(?:st|nd|rd|th))"
_PLAIN = r"\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?(?![\d.]*\d)|\.\d+"
_GROUPED = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])"

_PHRASES: list[tuple[str, str, str]] = [
    # kind, value, pattern; tried from the top, so the longer of two that begin alike stands first
    ("skip", "", r"\s+|the\b(?=\s)|number\b(?=\s+\d)"),
    ("prefix", "sqrt", r"(?:square root|sqrt) of\b"),
    ("prefix", "cbrt", r"cube root of\b"),
    ("prefix", "square", r"square of\b"),
    ("prefix", "cube", r"cube of\b"),
    ("prefix", "factorial", r"factorial of\b"),
    ("prefix", "abs", r"absolute value of\b"),
    ("prefix", "reciprocal", r"reciprocal of\b"),
    ("prefix", "ln", r"(?:natural log(?:arithm)?|ln) of\b"),
    ("prefix", "log10", r"(?:common log(?:arithm)?|log ?10|log(?:arithm)? (?:to )?(?:the )?base (?:10|ten)) of\b"),
    ("prefix", "log2", r"(?:binary log(?:arithm)?|log ?2|log(?:arithm)? (?:to )?(?:the )?base (?:2|two)) of\b"),
    ("prefix", "sin", r"(?:sine|sin)(?: of)?\b(?!\()"),
    ("prefix", "cos", r"(?:cosine|cos)(?: of)?\b(?!\()"),
    ("prefix", "tan", r"(?:tangent|tan)(?: of)?\b(?!\()"),
    ("angle", "degrees", r"degrees?\b|°"),
    ("angle", "radians", r"radians?\b"),
    ("list", "+", r"(?:sum|total|sum total) of\b"),
    ("list", "*", r"product of\b"),
    ("list", "|-|", r"difference between\b"),
    ("list", "-", r"difference of\b"),
    ("list", "/", r"quotient of\b"),
    ("list", "gcd", r"(?:greatest common (?:divisor|factor)|highest common factor|gcd|gcf|hcf) (?:of|between)\b"),
    ("list", "lcm", r"(?:(?:least|lowest|smallest) common multiple|lcm) of\b"),
    ("list", "mean", r"(?:average|mean|arithmetic mean)(?: value)? of\b"),
    ("list", "median", r"median(?: value)? of\b"),
    ("list", "min", r"(?:minimum|min|smallest|lowest|least)(?: number| value)? (?:of|among)\b"),
    ("list", "max", r"(?:maximum|max|largest|highest|biggest|greatest)(?: number| value)? (?:of|among)\b"),
    ("remainder-when", "", r"remainder (?:when|if|of)\b"),
    ("what-percent", "", r"what (?:percent(?:age)?|per cent|%)(?!\w)"),
    ("is-what-percent", "", r"(?:is what (?:percent(?:age)?|per cent|%)|as a percent(?:age)?)(?!\w)"),
    ("percent-change", "", r"percent(?:age)? (?:change|increase) from\b"),
    ("op", "^", r"(?:raised )?to the power(?: of)?\b|raised to(?: the power(?: of)?)?\b|(?:to the)(?= \w+ power)"),
    ("op", "^", r"\*\*|\^"),
    ("op", "*", r"times\b|multiplied (?:by|with)\b|\*|×|·"),
    ("op", "/", r"divided by\b|over\b|/|÷"),
    ("subtracted-from", "", r"(?:subtracted|taken(?: away)?) from\b"),
    ("added-to", "", r"added to\b"),
    ("more-than", "", r"more than\b"),
    ("less-than", "", r"less than\b"),
    ("changed-by", "+", r"increased by\b"),
    ("changed-by", "-", r"(?:decreased|reduced) by\b"),
    ("op", "+", r"plus\b|\+"),
    ("op", "-", r"minus\b|take away\b|-"),
    ("op", "%", r"mod(?:ulo|ulus)?\b|(?<=\s)%(?=\s+\d)"),
    ("percent", "", r"%|percent\b|per cent\b"),
    ("negative", "", r"negative\b"),
    ("post", "2", r"squared\b|²"),
    ("post", "3", r"cubed\b|³"),
    ("post", "!", r"!|factorial\b(?!\()"),
    ("times-of", "2", r"(?:twice|double|twofold)\b"),
    ("times-of", "3", r"(?:thrice|triple)\b"),
    ("times-of", "4", r"quadruple\b"),
    ("verb", "add", r"add\b"),
    ("verb", "subtract", r"subtract\b"),
    ("verb", "multiply", r"multiply\b"),
    ("verb", "divide", r"divide\b"),
    ("verb", "take", r"take\b"),
    ("verb", "raise", r"raise\b"),
    ("verb", "square", r"square\b"),
    ("verb", "cube", r"cube\b"),
    ("verb", "increase", r"increase\b"),
    ("verb", "decrease", r"(?:decrease|reduce)\b"),
    ("verb", "round", r"round\b(?: off\b)?"),
    ("rounded", "", r"rounded(?: off)?(?= to\b)"),
    ("places", "", r"(?:decimals?(?: places?)?|places?(?: after the (?:decimal )?point)?|dp)\b"),
    ("nearest", "1", r"nearest (?:whole number|integer|unit|one)\b"),
    ("nearest", "100", r"nearest hundred\b(?! thousand)"),
    ("nearest", "1000", r"nearest thousand\b"),
    ("nearest", "1000000", r"nearest million\b"),
    ("places-of", "1", r"nearest tenth\b"),
    ("places-of", "2", r"nearest hundredth\b"),
    ("places-of", "3", r"nearest thousandth\b"),
    ("nearest", "", r"nearest(?= (?:\d|ten\b))"),
    ("skip", "", r"away\b(?= from)"),
    ("then", "", r"then\b|after that\b|afterwards\b"),
    ("it", "", r"(?:it|that|this|result|answer)\b"),
    ("constant", "pi", r"pi\b|π"),
    ("root-sign", "", r"√"),
    ("off", "", r"off(?: of)?\b"),
    ("of", "", r"of\b"),
    ("by", "", r"by\b"),
    ("to", "", r"to\b"),
    ("from", "", r"from\b"),
    ("is", "", r"is\b"),
    ("and", "", r"and\b|&"),
    ("power", "", r"power\b"),
    ("comma", "", r","),
    ("open", "", r"\("),
    ("close", "", r"\)"),
]
_NESTING = {"open", "call", "prefix", "list", "times-of", "fraction", "root-sign", "percent"}
_SIGNS = {"op", "comma", "post"}
_ONE, _TWO, _ANY = (1, 1), (2, 2), (1, 100)
CALLS = {
    **dict.fromkeys("sqrt cbrt abs ln log10 log2 factorial floor ceil trunc exp degrees radians".split(), _ONE),
    **dict.fromkeys("sin cos tan asin acos atan sinh cosh tanh".split(), _ONE),
    **dict.fromkeys("pow mod comb perm".split(), _TWO),
    **dict.fromkeys("min max gcd lcm mean average avg median sum hypot".split(), _ANY),
    "round": (1, 2),
}
"""The functions that may be written with brackets, with the least and the most numbers that each takes."""
_CALL = re.compile(rf"({'|'.join(sorted(CALLS, key=len, reverse=True))})\(")
_ROOT = re.compile(rf"({_ORDINAL}) root of\b")
_FRACTION = re.compile(rf"(?:((?:{'|'.join(_SMALL)})(?=[ -])|\d+(?= ))[ -])?({'|'.join(_PARTS)}) of\b|(\d+)/(\d+) of\b")
_ORDINALS = re.compile(rf"({_ORDINAL})\b")
_SCALED = r"(?: (hundred|thousand|million|billion|trillion))?(?=$|[^\w.]|x\s*\d|\.$)"
_NUMBER = re.compile(rf"({_GROUPED}|{_PLAIN}){_SCALED}")
_ARGUMENT = re.compile(rf"({_PLAIN}){_SCALED}")
_TIMES_X = re.compile(r"x(?=\s*[\d(])")
# A hyphen or slash that ties a word to another or to a number names something: 7-eleven, ten-4, one-way.
_TIED = re.compile(r"[a-z][-/](?!(?:pi|sqrt)\b)[a-z]|\d[-/](?!pi\b|[a-z0-9]+\()[a-z]")
_WORDS = re.compile(r"[a-z]+(?:[ -]+[a-z]+)*")
_SCALE = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_COMPILED = [(kind, value, re.compile(pattern)) for kind, value, pattern in _PHRASES]


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a question in lower case.

    Raises:
        Unreadable: A word or sign has no place in arithmetic, or a comma has two meanings.
    """
    try:
        tokens = list(_scan(text, separating(text)))
    except UnclearCommaError as exc:
        raise Unreadable from exc
    # Each of these nests; so many are no question, and the reader calls itself for each.
    if sum(token.kind in _NESTING or token.value == "^" for token in tokens) > 20:
        raise Unreadable
    return tokens


def _scan(text: str, in_call: Sequence[bool]) -> Iterator[Token]:
    at = 0
    last = ""
    while at < len(text):
        token, at = _one(text, at, last, _ARGUMENT if in_call[at] else _NUMBER)
        if token.kind != "skip":
            last = token.kind
            yield token


def _one(text: str, at: int, last: str, number: re.Pattern[str]) -> tuple[Token, int]:
    if match := _CALL.match(text, at):
        return Token("call", match.group(1)), match.end()
    if match := _ROOT.match(text, at):
        return Token("prefix", f"root {_ordinal(match.group(1))}"), match.end()
    if match := _FRACTION.match(text, at):
        return _fraction(match), match.end()
    if (match := _TIMES_X.match(text, at)) and last in {"number", "close"}:
        return Token("op", "*"), match.end()
    if match := number.match(text, at):
        return _number(match), match.end()
    if match := _ORDINALS.match(text, at):
        return Token("ordinal", str(_ordinal(match.group(1)))), match.end()
    if spoken := _spoken(text, at):
        return spoken
    for kind, value, pattern in _COMPILED:
        if match := pattern.match(text, at):
            if _TIED.match(text, max(0, at - 1)):
                raise Unreadable
            return (_sign(kind, value, text, match) if kind in _SIGNS else Token(kind, value)), match.end()
    raise Unreadable


def _sign(kind: str, value: str, text: str, sign: re.Match[str]) -> Token:
    loose = kind != "post" and _is_loose(text, sign)
    blanks = text[: sign.start()].endswith(" ") + text[sign.end() :].startswith(" ")
    return Token(kind, value, loose=loose, written=sign.group(), spacing=("none", "uneven", "even")[blanks])


def _is_loose(text: str, sign: re.Match[str]) -> bool:
    """Tell whether a minus or comma stands apart from what follows, or a power is written in words."""
    written = sign.group()
    return (written in {"-", ","} and not re.match(r"[\d.(]", text[sign.end() :])) or written[-1:].isalpha()


def _ordinal(text: str) -> int:
    return ORDINALS.get(text) or int(re.sub(r"\D", "", text))


def _fraction(match: re.Match[str]) -> Token:
    if match.group(3):
        return Token("fraction", f"{match.group(3)} / {match.group(4)}")
    count, part = match.group(1), match.group(2)
    if count is None and part != "half":
        raise Unreadable
    n = 1 if count is None else _SMALL.get(count) or int(count)
    return Token("fraction", f"{n} / {_PARTS[part]}")


def _number(match: re.Match[str]) -> Token:
    digits, scale = match.groups()
    plain = digits.replace(",", "")
    if scale:
        plain = f"{(Decimal(plain) * _SCALE[scale]).normalize():f}"
    # Nobody lists the number 000: a comma before it can only part thousands.
    return Token("number", plain, unclear_in_list="," in digits and not digits.endswith(",000"))


def _spoken(text: str, at: int) -> tuple[Token, int] | None:
    match = _WORDS.match(text, at)
    if match is None:
        return None
    spans = [m.span() for m in re.finditer(r"[a-z]+", text[at : match.end()])]
    words = [text[at + a : at + b] for a, b in spans]
    if words[0] not in NUMBER_WORDS | {"a", "an", "point"}:
        return None
    number = read_number(words)
    if number is None:
        raise Unreadable
    end = at + spans[number.words - 1][1]
    return Token("number", number.text, unclear_in_list=number.joined), end
