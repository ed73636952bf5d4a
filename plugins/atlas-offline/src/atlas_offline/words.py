"""Words and numbers of a question: what carries meaning, what does not, which numbers it states."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = [
    "QUOTED",
    "READ_WORDS",
    "STOP_WORDS",
    "Word",
    "content_words",
    "in_calls",
    "name_words",
    "normalise",
    "number_values",
    "phrases",
    "stem",
    "unused_numbers",
    "without_quotes",
    "words",
]

# Words that say nothing about what is wanted. Negations, "how", "why", "who", "when", "should" and the past tense are
# left out on purpose: "how do I delete ..." and "don't delete ..." must never read as "delete ...".
STOP_WORDS = frozenset(
    """
    a an the this that these those it its and or of in on at to for from by with into as about is are be am i me my you
    your we us our what whats which please can could would will give tell show want need like let lets know say here
    there just now also then so many much some any all hey hi hello thanks thank okay ok do does using use call value
    equal equals number named called
    """.split()
)

# What a tool that only reads is called by; their presence or absence in a question decides nothing.
READ_WORDS = frozenset(
    """
    get gets getting fetch fetches find finds look looks lookup up show shows list lists query queries retrieve
    retrieves return returns check checks tell tells compute computes calculate calculates count counts give gives
    read reads tool current info information data see display print determine determines
    """.split()
)

QUOTED = re.compile(r"\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)|`([^`\n]+)`")
"""A text in quotes: the text itself is in the one group that is not None."""

_WORD = re.compile(r"(?:\be-(?=mail))?[^\W\d_]+(?:['’][^\W\d_]+)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+(?!\w))?"
    r"|(?<=[^\W\d_][.,])\d+|(?<=\d,)\d+(?:\.\d+)?(?:e[+-]?\d+(?!\w))?|(?<=\d\.)\d+|(?<=_)\d+",
    re.IGNORECASE,
)
_ANY_DIGITS = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d+(?!\w))?|\.\d+", re.IGNORECASE)
_FRACTION = re.compile(r"(?<![\w.,/])(?:(\d+)\s+)?(\d+)\s*/\s*(\d+)(?![\w./]|,\d)")
# What a number may become on its way into an argument: itself, a percentage, a scaled one, an hour after noon, a dozen.
_SCALES = {"%": 0.01, "percent": 0.01, "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9}
_SCALES |= {"trillion": 1e12, "dozen": 12.0}
_PUNCTUATION = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "−": "-"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written, in lower case, and where it stands."""

    text: str
    start: int
    end: int


def normalise(text: str) -> str:
    """Return the text with compatible characters unified (NFKC), straight quotes and single blanks; lines are kept.

    Superscript digits become `^2` and the like first, since NFKC would glue them to the number before.
    """
    text = re.sub(
        "[⁰¹²³⁴-⁹]+", lambda m: "^" + unicodedata.normalize("NFKC", m[0]) if _after_digit(text, m) else m[0], text
    )
    text = "".join(c if c in "²³½¼¾°º" else unicodedata.normalize("NFKC", c) for c in text).translate(_PUNCTUATION)
    return re.sub(r" *\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def _after_digit(text: str, match: re.Match[str]) -> bool:
    return match.start() > 0 and (text[match.start() - 1].isdigit() or text[match.start() - 1] == ")")


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text in lower case, numbers left out."""
    for match in _WORD.finditer(text):
        yield Word(match[0].lower().replace("’", "'").replace("e-mail", "email"), match.start(), match.end())


def stem(word: str) -> str:
    """Fold the commonest English endings, so that `words` meets `word`. No more than that is needed here."""
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word.removesuffix("e") if len(word) > 3 else word


def name_words(name: str) -> list[str]:
    """Split an identifier, in snake, kebab or camel case, into lower-case words."""
    return [part for part in re.split(r"[\W_]+", _CAMEL.sub("_", name).lower()) if part]


def content_words(text: str, spans: Iterable[tuple[int, int]] = ()) -> list[Word]:
    """Return the words that carry meaning, those inside `spans` left out."""
    spans = tuple(spans)
    return [
        word
        for word in words(text)
        if word.text.removesuffix("'s") not in STOP_WORDS
        and not any(start <= word.start and word.end <= end for start, end in spans)
    ]


def phrases(text: str, *, most: int = 4) -> list[str]:
    """Return runs of neighbouring content words, as facts to show."""
    runs: list[list[Word]] = []
    for word in content_words(text):
        if runs and text[runs[-1][-1].end : word.start] == " ":
            runs[-1].append(word)
        else:
            runs.append([word])
    return [" ".join(word.text for word in run) for run in runs][:most]


def without_quotes(text: str) -> tuple[str, int]:
    """Return the text without what stands in quotes, and how many quoted texts there were."""
    return QUOTED.subn("", text)


def in_calls(text: str) -> list[bool]:
    """Tell for each character whether the innermost bracket around it is a list or belongs to a name, as in `f(1,2)`.

    A comma parts arguments there, while `1,200` is one number elsewhere.
    """
    stack = [False]
    inside: list[bool] = []
    for at, char in enumerate(text):
        if char in ")]" and len(stack) > 1:
            stack.pop()
        inside.append(stack[-1])
        if char in "([":
            stack.append(char == "[" or text[max(0, at - 1) : at].isalnum())
    return inside


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _numbers(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a text with start and end; `5,100` in the brackets of a call is two."""
    inside: list[bool] | None = None
    for match in pattern.finditer(text):
        start = match.start()
        if "," not in match[0]:
            yield match[0], start, match.end()
            continue
        inside = inside or in_calls(text)
        for part in match[0].split(",") if inside[start] else [match[0]]:
            yield part, start, start + len(part)
            start += len(part) + 1


def number_values(text: str) -> list[float]:
    """Return the numbers that a question states, in order; digits inside a word, as in `H2O`, are no number."""
    return [_value(number) for number, _, _ in _numbers(_NUMBER, text)]


def unused_numbers(question: str, arguments: Iterable[object]) -> list[str]:
    """Return the numbers of the question, as written, that are in none of the arguments.

    Each use counts once. A number counts as used in the forms that tools commonly want: a percentage as a part
    of one, with its scale word (`2 million`), an hour after noon, and `1 1/2` as 1.5.
    """
    have = _argument_numbers(arguments)
    unused: list[str] = []
    for group in _number_groups(question):
        if not any(_take(have, way) for way in group):
            unused.extend(text for text, _ in _written(group))
    return unused


def _written(group: list[list[float]]) -> list[tuple[str, float]]:
    return [(f"{value:.15g}", value) for value in group[0]]


def _number_groups(question: str) -> Iterator[list[list[float]]]:
    """Yield, for each number or fraction, the ways in which it may appear, the literal one first."""
    fractions = [m for m in _FRACTION.finditer(question) if int(m[3])]
    for match in fractions:
        parts = [float(g) for g in match.groups() if g]
        whole = (float(match[1]) if match[1] else 0.0) + int(match[2]) / int(match[3])
        yield [parts, [whole]]
    for number, start, end in _numbers(_NUMBER, question):
        if any(f.start() <= start < f.end() for f in fractions):
            continue
        value = _value(number)
        yield [[value], *([other] for other in _other_forms(value, question[end : end + 12]))]


def _other_forms(value: float, after: str) -> Iterator[float]:
    found = re.match(r"\s*([%a-z]+)", after, re.IGNORECASE)
    if found and (scale := _SCALES.get(found[1].lower())):
        yield value * scale
    if 1 <= value <= 12 and re.match(r"(:\d\d)?\s*[ap]\.?m\b", after, re.IGNORECASE):
        yield (value + 12) % 24
        yield value - 12


def _argument_numbers(arguments: Iterable[object]) -> list[float]:
    found: list[float] = []
    for argument in arguments:
        if isinstance(argument, bool) or argument is None:
            continue
        if isinstance(argument, (int, float)):
            found.append(abs(float(argument)))
        elif isinstance(argument, str):
            found.extend(_value(number) for number, _, _ in _numbers(_ANY_DIGITS, argument))
        elif isinstance(argument, dict):
            found.extend(_argument_numbers(argument.values()))
        elif isinstance(argument, Iterable):
            found.extend(_argument_numbers(argument))
    return found


def _take(have: list[float], wanted: list[float]) -> bool:
    left = list(have)
    for value in wanted:
        near = next((x for x in left if abs(x - value) <= 1e-9 * max(1.0, abs(value))), None)
        if near is None:
            return False
        left.remove(near)
    have[:] = left
    return True
