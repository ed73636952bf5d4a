"""Numbers that are no arithmetic: dates, phone numbers, ids, addresses, versions, algebra."""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlas_core import ToolSchema
from atlas_offline.words import name_words

__all__ = ["calculates", "lookalike"]

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
# In order: the first that is found is named. All are plain scans without nested repetition.
_ALWAYS: tuple[tuple[str, str], ...] = (
    ("a URL", r"\b[a-z][a-z0-9+.-]{1,20}://\S+|\bwww\.\S+"),
    ("an e-mail address", r"[\w.+-]+@[\w-]+\.\w+"),
    ("an id", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("an ISBN", r"\bisbn\b|\b97[89]-\d[\d-]{8,14}\b"),
    ("an IP address", r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"),
    (
        "a date",
        r"(?<![\d/.-])\d{1,2}([/.-])\d{1,2}\1\d{4}(?![\d/.-])|(?<![\d/.-])\d{4}([/.-])\d{1,2}\2\d{1,2}(?![\d/.-])",
    ),
    ("a date", r"(?<![\d/.])(?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|[12]\d|3[01])/\d{2}(?![\d/])"),
    ("a date", rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?)(?: |,|$)"),
    ("a version number", r"(?<![\d.])\d+\.\d+\.\d+|\b(?:version|release|python|v) ?\d+(?:\.\d+)*\b"),
    ("a time of day", r"\b\d{1,2}:\d{2}\b"),
    ("a ratio or score", r"(?<![\d:])\d+:\d+(?![\d:])"),
    (
        "a phone number",
        r"(?<!\w)\+\d{1,3}[ .-]\(?\d{1,4}\)?[ .-]\d{2,4}|\(\d{3}\) ?\d{3}-\d{4}|\b\d{3}[-.]\d{3}[-.]\d{4}\b",
    ),
    ("a phone number", r"\b(?:phone|telephone|mobile|call me|dial)\b"),
    ("an id", r"\b\d{3}-\d{2}-\d{4}\b|\b\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}\b"),
    (
        "an id",
        (
            r"\b(?:order|invoice|ticket|account|room|flight|route|serial|part|model|zip|postcode|case|issue) "
            r"(?:no\.? ?|number |id |code |#)?#?\d+"
        ),
    ),
    ("an id", r"(?<!\w)#\d+\b"),
    (
        "algebra",
        (
            r"(?<![\w'])[a-df-hj-z] ?(?:[-+*/^=]|\*\*) ?[\d(a-z]|[\d)] ?[-+*/^=] ?[a-df-hj-z](?![\w'])"
            r"|\b\d+[xyz]\b(?! ?\d)"
        ),
    ),
    ("a name", r"\b\d+-[^\W\d_]{2,}|(?<![^\W\d_]{2}-)\b[^\W\d_]{2,}-\d+\b"),
    ("algebra", r"[^<>!=]=[^=]*[\w)]|\bsolve\b|\bderivative\b|\bintegral\b|\bsimplify\b|\bfactor(?:i[sz]e)? [a-z]"),
)
# These may be meant as arithmetic; only a word such as "calculate" or blanks around the sign says so.
_UNLESS_ASKED: tuple[tuple[str, str], ...] = (
    ("a phone number", r"(?<![\w.-])\d{3}-\d{4}(?![\w-]|\.\d)"),
    ("a range of years", r"(?<![\w.-])(?:1[5-9]|20)\d\d-(?:1[5-9]|20)\d\d(?![\w-]|\.\d)"),
    ("a ZIP code", r"(?<![\w.-])\d{5}-\d{4}(?![\w-]|\.\d)"),
    ("a way of speaking", r"(?<![\w./])(?:24/7|9/11|7/11|50/50|20/20)(?![\w/]|\.\d)"),
)
# Blanks around the sign are no sign of arithmetic where the years are all that is said.
_YEARS = re.compile(r"\s*((?:1[5-9]|20)\d\d) [-–—] ((?:1[5-9]|20)\d\d)[\s.?!]*")
_ASKED = re.compile(
    r"\b(?:calculate|compute|evaluate|work out|divide|subtract|calculator)\b|\bresult of\b", re.IGNORECASE
)
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _ALWAYS)
_COMPILED_SOFT = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _UNLESS_ASKED)
_CALCULATOR_WORDS = frozenset({"calc", "calculate", "calculator", "math", "maths", "arithmetic", "evaluate", "eval"})
_EXPRESSION_WORDS = frozenset({"expression", "expr", "formula", "calculation", "equation"})


def lookalike(text: str) -> str | None:
    """Return why a number in the text is none to calculate with: `'24/7' reads as a way of speaking, ...`; or None."""
    for kind, pattern in _COMPILED:
        if found := pattern.search(text):
            return f"{found[0].strip()!r} reads as {kind}, not as arithmetic"
    if (years := _YEARS.fullmatch(text)) and years[1] < years[2]:
        return f"{years[0].strip(' .?!')!r} reads as a range of years, not as arithmetic"
    if not _ASKED.search(text):
        for kind, pattern in _COMPILED_SOFT:
            if found := pattern.search(text):
                return f"{found[0].strip()!r} reads as {kind}, not as arithmetic"
    return None


def calculates(tool: ToolSchema, arguments: Mapping[str, object]) -> bool:
    """Tell whether a call would do arithmetic on text: its tool or one of its text arguments is named for that."""
    named = set(name_words(tool.name))
    if named & _CALCULATOR_WORDS and not named & {"date", "time"}:
        return True
    return any(isinstance(v, str) and _EXPRESSION_WORDS.intersection(name_words(k)) for k, v in arguments.items())
