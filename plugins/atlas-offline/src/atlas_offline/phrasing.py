"""The polite words around a question, and the question without them."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["forms", "unpunctuated"]

_POLITE_START = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|well|so|and|also|please|now|first|firstly|atlas|then|finally|"
    r"thanks|thank you|good (?:morning|afternoon|evening))\b[,!. ]*)+",
    re.IGNORECASE,
)
_POLITE_ASK = re.compile(
    r"^(?:(?:can|could|would|will) (?:you|u)(?: please| kindly)?|i(?: would|'d) like(?: you)? to(?: know)?|"
    r"i (?:want|need)(?: you)? to(?: know)?|please|kindly|"
    r"do you know|tell me|let me know)\s+(?:(?:just|also) )?(?:(?:tell|show) me |let me know )?",
    re.IGNORECASE,
)
_INDIRECT = re.compile(r"^(?:what|how much) (.+?) (?:is|are|equals?|makes?)[\s?!.]*$", re.IGNORECASE)
_POLITE_END = re.compile(r"[,\s]*\b(?:please|thanks|thank you|for me|pls)\b[\s.!?]*$", re.IGNORECASE)

_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion "
    "pi"
).split()
# After a number, but not after a date, "!" may be a factorial: without it, 10 - 3! would be 7.
_COUNTED = re.compile(
    rf"(?:(?:[\d)²³π](?<!\d{{4}}-\d\d-\d\d))|\b(?:{'|'.join(_NUMBER_WORDS)}))\s*![\s?!.,]*$", re.IGNORECASE
)


def unpunctuated(text: str) -> str:
    """Return a text without the punctuation at its end; a "!" that may be a factorial stays."""
    return text.strip().rstrip("?., " if _COUNTED.search(text) else "?!., ")


def forms(clause: str) -> Iterator[str]:
    """Yield the clause as it is, then without polite words, each also without its last punctuation."""
    seen = set()
    bare = _POLITE_END.sub("", _POLITE_START.sub("", clause))
    asked = _POLITE_ASK.sub("", bare)
    for text in (clause, bare, asked, _INDIRECT.sub(r"what is \1", asked)):
        for form in (text.strip(), unpunctuated(text)):
            if form and form not in seen:
                seen.add(form)
                yield form
