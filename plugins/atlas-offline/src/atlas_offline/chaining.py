"""Questions in several parts: where to cut them, and what "that" in a later part stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from atlas_core import ToolSchema
from atlas_offline.matching import Match, Refusal, match
from atlas_offline.phrasing import forms
from atlas_offline.words import name_words

__all__ = [
    "ANY_NUMBER",
    "REFERENCE",
    "Value",
    "borrowed",
    "calculated",
    "clauses",
    "fill",
    "pieces",
    "placeholders",
    "read_value",
    "refers",
    "seed",
    "templates",
    "unit_split",
]

REFERENCE = "\ue000"
"""Stands in a template where an earlier result goes; a private-use character that no question keeps."""
_WHOLE = "\ue001"
"""Stands in arguments for a result's whole text, put in last so that no rule ever reads a tool's output."""

_THEN = re.compile(
    r"(?:[,;.?]?\s+(?:and\s+)?(?:then|after that|afterwards|thereafter)\b"
    r"|(?:[,;.?]|(?<=!))\s+(?:and\s+)?(?:next|finally)\b)[,:]?\s+",
    re.IGNORECASE,
)
_AND = re.compile(r",?\s+and\s+(?:also\s+|finally\s+)?|,\s+(?=\S)|\s+plus\s+also\s+", re.IGNORECASE)
_LINE = re.compile(r"\s*(?:;|\n)\s*")
_LIST_MARK = re.compile(
    r"^\s*(?:\d{1,2}[.)]|[-*•](?=\s+[^\d\s(])|[a-z]\)|(?:first|second|third|fourth|last)(?:ly)?[,:])\s+(?=\S)",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"(?:hi|hello|hey|thanks|thank you|please|ok|okay|good (?:morning|afternoon|evening)|thanks in advance|cheers)"
    r"(?: there| atlas| so much| a lot)?[\s,.!?]*",
    re.IGNORECASE,
)
_NOUN = r"(?:result|answer|outcome|total|sum|product|difference|quotient|value|number|amount|output|figure)"
_THAT_WORDS = rf"(?:(?:that|this|the|your|its)(?: (?:last|previous|first|final|above))? {_NOUN}|that|this|it)"
_THAT = re.compile(rf"\b{_THAT_WORDS}\b(?!'| of\b)", re.IGNORECASE)
_IT = rf"(?: {_THAT_WORDS})?"
_OPERAND = r"(?:-?[\d.,]*\d|[a-z]+(?:-[a-z]+)?)"
_OPERATION = r"(?:times|multiplied by|plus|minus|divided by|over|modulo|mod|to the power of|raised to|squared|cubed)"
# The "!" of 3! * 4 ends no sentence.
_SENTENCE = re.compile(
    rf"(?<=\?)\s+|(?<=!)\s+(?!(?i:{_OPERATION})\b|[-+*/×÷^%)])"
    r"|(?<=[^\W\d]{2}\.)\s+(?=[A-Z\"'(\d])|(?<=\d\.)\s+(?=[A-Z])|(?<=\)\.)\s+(?=[A-Z])",
)
_FUNCTION = r"(?:(?:square|cube) root|factorial|sine|cosine|logarithm|absolute value)"
# A part without its first operand: how it reads with the earlier result in its place.
_IMPLICIT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), template)
    for pattern, template in (
        (rf"multiply{_IT} (?:by|with) (?P<x>{_OPERAND})", "{r} * {x}"),
        (rf"divide{_IT} by (?P<x>{_OPERAND})", "{r} / {x}"),
        (rf"add (?P<x>{_OPERAND})(?: to {_THAT_WORDS})?", "{r} + {x}"),
        (rf"(?:subtract|take away|deduct) (?P<x>{_OPERAND})(?: from {_THAT_WORDS})?", "{r} - {x}"),
        (rf"raise{_IT} to the power of (?P<x>{_OPERAND})", "{r} to the power of {x}"),
        (rf"double{_IT}", "{r} * 2"),
        (rf"triple{_IT}", "{r} * 3"),
        (rf"halve{_IT}", "{r} / 2"),
        (rf"square{_IT}", "{r} squared"),
        (rf"cube{_IT}", "{r} cubed"),
        (rf"(?P<x>{_OPERATION}\b.*)", "{r} {x}"),
        (r"(?P<x>(?:[+*/×÷^] ?|- )[\d(].*)", "{r} {x}"),
        (
            rf"(?:take |find |calculate |compute |what is |what's )?(?:the |its )?(?P<x>{_FUNCTION})",
            "the {x} of {r}",
        ),
        (
            rf"round{_IT}(?: off)? to (?P<x>\d+|[a-z]+) (?:decimals?|decimal places?|digits|places)",
            "round({r}, {x})",
        ),
        (rf"round{_IT}(?: off)?(?: to (?:the nearest|a) (?:whole number|integer))?", "round({r})"),
        (rf"(?:convert|change){_IT} (?:in)?to (?P<x>.+)", "convert {r} to {x}"),
        (r"(?:and |what about |what is (?:that|it|this) )?(?:in|into|to|as) (?P<x>.+)", "convert {r} to {x}"),
        (r"(?:and |what about |what is (?:that|it|this) )?(?:in|into|to|as) (?P<x>.+)", "{r} in {x}"),
    )
)
_UNIT_SPLIT = re.compile(
    r"^(?P<lead>(?:what is|what's|whats|how much is|convert|calculate|compute|express)\s+)?"
    r"(?P<expr>.*[\d)])\s*(?P<rest>[^\W\d_][^\d?]*?\s+(?:in|to|into|as)\s+[^\d?]+)$",
    re.IGNORECASE,
)
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = r"(?:[°µμΩ%]?[^\W\d_]*(?:[/*^·²³][\w^/*·²³-]*)*(?: [^\W\d_]+(?:[/^²³]\w*)?)?)"
_SAID = re.compile(r"(?:so )?(?:the |your )?(?:final )?(?:answer|result|total) (?:is|=):? ?(?=[-+]?\d)", re.IGNORECASE)
_CUT = re.compile(r"\n\[cut: [^\n]*\]$")
_MEASURE = re.compile(rf"(?:.{{0,300}}=\s*)?(?P<number>{_NUMBER})(?: ?(?P<unit>{_UNIT}))?\.?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_FIRST_OF_NUMBER = frozenset("+-0123456789")
_DATE_WORDS = frozenset({"date", "dates", "time", "day", "calendar", "clock", "now"})
_RESULT_KEYS = ("result", "value", "answer", "output")
_POWER = re.compile(r"\bpower\b|squared|cubed|\^|\*\*", re.IGNORECASE)
_SEED = re.compile(rf"(?:start(?:ing)? with|begin with|take)(?: the number)? (?P<number>{_NUMBER})", re.IGNORECASE)
# Between these and a number, "and" may go on with a list: "the sum of 1 and 2 and 3 times 4" has no one reading.
_LIST_WORDS = re.compile(
    r"\b(?:sum|product|average|mean|median|total|difference|between|add|multiply|subtract|divide|maximum|minimum|max|min|"
    r"largest|smallest|root|factorial|plus|minus|times|divided|multiplied|over|power)\b",
    re.IGNORECASE,
)
_STARTS_AS_OPERATION = re.compile(rf"(?:{_OPERATION}\b|[-+*/×÷^])", re.IGNORECASE)
_MAX_CLAUSES = 8
_PROBE = "4242"
_ROUNDED = 14  # digits: tools round to 15 or more, and a last one that is 0 is not written
_LONG = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tool's result as later parts may use it.

    Attributes:
        text: The whole, as the tool gave it.
        number: The one number that it is, in plain decimal notation, or None.
        unit: The unit after that number, or "".
        date: The date that it is, in ISO 8601, or None.
        exact: The expression that the number was calculated from, if it was rounded; else "".
    """

    text: str
    number: str | None = None
    unit: str = ""
    date: str | None = None
    exact: str = ""


ANY_NUMBER = (Value(text="", number=_PROBE), Value(text="", number=f"{_PROBE}.5"))
"""Stand-ins for a number that is not known: a whole one, for tools that want that, and one that is not."""


def read_value(text: str) -> Value:
    """Read what a result stands for: a number, a number with a unit, `... = number unit`, a date, or only a text.

    A JSON object counts by its key `result`, `value`, `answer` or `output`, with the unit under `unit`. A text that
    merely contains a number is no number.
    """
    whole = _SAID.sub("", text.strip(), count=1) if len(text) <= 400 else text.strip()
    try:
        data = json.loads(whole) if len(whole) <= 10_000 else None
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, Mapping):
        key = next((k for k in _RESULT_KEYS if k in data), None)
        inner = _read_short(str(data[key])) if key and isinstance(data[key], (str, int, float)) else Value(text=text)
        unit = data.get("unit")
        short = unit if isinstance(unit, str) and re.fullmatch(_UNIT, unit) else inner.unit
        return Value(text=text, number=inner.number, unit=short, date=inner.date)
    if isinstance(data, str):
        whole = data.strip()
    short_value = _read_short(whole)
    return Value(text=text, number=short_value.number, unit=short_value.unit, date=short_value.date)


def calculated(value: Value, expression: str) -> Value:
    """Return a calculated value with its expression, if it was rounded: 1 / 3, then times 3, is 1."""
    if value.number is None or len(value.number.strip("-0.").replace(".", "")) < _ROUNDED or len(expression) > _LONG:
        return value
    return replace(value, exact=expression)


def _read_short(text: str) -> Value:
    if "\n" in text or len(text) > 400:
        return Value(text=text)
    if text[:1] in _FIRST_OF_NUMBER:
        # A note in brackets, as in "3.79 L (gallon = US gallon)" and "2024-02-14 (Wednesday)", is no part of the value.
        text = re.sub(r"(?<=[\w°²³]) \([^()]*\)$", "", text)
    if _DATE.fullmatch(text):
        return Value(text=text, date=text)
    found = _MEASURE.fullmatch(text)
    if not found:
        return Value(text=text)
    return Value(text=text, number=_plain_number(found["number"]), unit=found["unit"] or "")


def _plain_number(text: str) -> str:
    from decimal import Decimal  # only a chain needs it

    number = Decimal(text.replace(",", ""))
    if number.adjusted() > 60 or number.adjusted() < -60:
        return text
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def clauses(question: str) -> tuple[list[str], bool]:
    """Cut a question at "then", semicolons, line ends and sentence ends.

    Returns:
        The parts in order, greetings and list marks left out, and whether "then" was among the cuts; one part
        if there is nothing to cut. An empty list if there are more than eight.
    """
    has_then = bool(_THEN.search(question))
    lines = [line for part in _THEN.split(question) for line in _LINE.split(part)]
    lines = [_LIST_MARK.sub("", line) for line in lines] if len(lines) > 1 else lines
    parts = [part.strip(" ,") for line in lines for part in _SENTENCE.split(line)]
    parts = [part for part in parts if part and not _IDLE.fullmatch(part)]
    return (parts if len(parts) <= _MAX_CLAUSES else []), has_then


def pieces(clause: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to cut a clause in two at "and" or a comma, the first cut first."""
    for found in list(_AND.finditer(clause))[:_MAX_CLAUSES]:
        left, right = clause[: found.start()].strip(), clause[found.end() :].strip()
        if not left or not right:
            continue
        if re.match(r"[-+(]?\d", right) and _LIST_WORDS.search(left):
            continue
        # "2 + 3, times 4" is 20 to one reader and 14 to another.
        if "," in found[0] and "and" not in found[0] and _STARTS_AS_OPERATION.match(right):
            continue
        yield left, right


def seed(clause: str) -> Value | None:
    """Return the number that a first part only sets, as in `start with 5`."""
    found = _SEED.fullmatch(clause.strip().rstrip("?. "))
    return Value(text=found["number"], number=_plain_number(found["number"])) if found else None


def borrowed(left: str, right: str) -> Iterator[str]:
    """Yield what a short second part may be short for: it borrows the first part's beginning.

    `What time is it in Tokyo` and `London` give `What time is it in London`; `Convert 5 km to miles` and
    `3 kg to pounds` give `Convert 3 kg to pounds`; `Convert 5 km to miles` and `to feet`, which without "then"
    speaks of the same 5 km, give `Convert 5 km to feet`. A part that is whole is yielded as it is.
    """
    tail = right.rstrip("?!. ")
    same = re.match(r"(?P<start>.*\s)(?P<word>in|into|to)\s", left, re.IGNORECASE)
    if same and re.match(rf"{same['word']}\s", right, re.IGNORECASE):
        yield same["start"] + right
        return
    yield right
    if re.fullmatch(r"[^\W\d_]+(?: [^\W\d_]+){0,2}", tail) and (
        found := re.match(r"(.*\b(?:in|for|at)\s+)", left, re.IGNORECASE)
    ):
        yield found[1] + right
    if (
        verb := re.match(r"(convert|read|list|what is|what's|calculate|compute)\b", left, re.IGNORECASE)
    ) and not re.match(verb[1], right, re.IGNORECASE):
        yield f"{verb[1]} {right}"


def templates(clause: str) -> Iterator[str]:
    """Yield the clause with an earlier result in place of "that", or of the operand that it lacks."""
    *_, text = forms(clause)  # the last form is the barest
    for pattern, template in _IMPLICIT:
        if found := pattern.fullmatch(text):
            operand = found.groupdict().get("x") or ""
            if not _THAT.search(operand):
                yield template.format(r=REFERENCE, x=operand)
    named = list(_THAT.finditer(text))
    if len(named) == 1:
        yield text[: named[0].start()] + REFERENCE + text[named[0].end() :]


def refers(clause: str) -> bool:
    """Tell whether a clause holds a word, such as "it", that may mean an earlier result."""
    return _THAT.search(clause) is not None


def unit_split(clause: str) -> tuple[str, str] | None:
    """Cut `12 * 5 km in miles` into the calculation and a template for the conversion of its result."""
    found = _UNIT_SPLIT.fullmatch(clause.strip().rstrip("?!. "))
    if not found or re.fullmatch(rf"\(?\s*{_NUMBER}\s*\)?", found["expr"].strip(), re.IGNORECASE):
        return None
    if re.search(r"\bround", found["expr"], re.IGNORECASE):
        return None  # "round 5.4 miles to km" rounds the kilometres
    return found["expr"].strip(), f"convert {REFERENCE} {found['rest'].strip()}"


def placeholders(before: Match) -> list[Value]:
    """Return stand-ins for a result that is not known yet, to learn whether a later part can be planned at all.

    Units are guessed from the earlier call's own arguments; the real result decides when it is there.
    """
    units = [v for v in before.arguments.values() if isinstance(v, str) and re.fullmatch(_UNIT, v) and v]
    dates = [Value(text="", date="2024-01-15")] if _gives_date(before) else []
    return [
        *(Value(text="", number=_PROBE, unit=unit) for unit in reversed(units)),
        *ANY_NUMBER,
        *dates,
        Value(text=""),
    ]


def _gives_date(found: Match) -> bool:
    given = [v for v in found.arguments.values() if isinstance(v, str)]
    return bool(_DATE_WORDS & set(name_words(found.tool.name))) or any(map(_DATE.fullmatch, given))


def fill(template: str, value: Value, tools: Sequence[ToolSchema]) -> Match | Refusal:
    """Plan a template with a result in it: as number and unit, number, date, and last as a quoted text.

    The last form is planned on a stand-in, so what a tool returned is passed on but never read as a question.
    """
    refusal = Refusal("no tool on offer fits the question")
    if value.number is None and _CUT.search(value.text):
        return Refusal("the result was cut, so it can't be passed on", rank=6)
    for form in _forms(value, template):
        found = match(template.replace(REFERENCE, form), tools)
        if isinstance(found, Match) and _uses(found, form):
            return _with_whole(found, value.text)
        if isinstance(found, Refusal) and found.rank > refusal.rank:
            refusal = found
    return refusal


def _forms(value: Value, template: str) -> Iterator[str]:
    if value.exact:
        yield f"({value.exact})"
    if value.number is not None:
        if value.unit:
            yield f"{value.number} {value.unit}"
        if value.number.startswith("-"):
            yield f"({value.number})"
        # Without brackets "-3 squared" may be read as -(3 squared).
        if not (value.number.startswith("-") and _POWER.search(template)):
            yield value.number
    if value.date is not None:
        yield value.date
    if value.number is None:
        yield f'"{_WHOLE}"'


def _uses(found: Match, form: str) -> bool:
    """Tell whether the arguments hold what was filled in; numbers are checked by the match itself."""
    return _WHOLE not in form or any(_holds_whole(value) for value in found.arguments.values())


def _holds_whole(value: object) -> bool:
    return any(map(_holds_whole, value)) if isinstance(value, list) else isinstance(value, str) and _WHOLE in value


def _with_whole(found: Match, text: str) -> Match:
    arguments = {k: _replace(v, text) for k, v in found.arguments.items()}
    return Match(
        tool=found.tool,
        arguments=arguments,
        how=found.how,
        clause=found.clause.replace(f'"{_WHOLE}"', "the result before"),
    )


def _replace(value: object, text: str) -> object:
    if isinstance(value, str):
        return value.replace(_WHOLE, text)
    if isinstance(value, list):
        return [_replace(item, text) for item in value]
    return value
