"""What the readers of questions share: the polite frame around a question is taken off."""

from __future__ import annotations

import re

__all__ = ["tidy", "unframe"]

_LONGEST = 500
_SIGNS = str.maketrans({"’": "'", "‘": "'", "−": "-", "–": "-", "—": "-", "\u00a0": " ", "“": '"', "”": '"'})
_BEFORE = re.compile(
    r"(?:(?:hey|hi|hello|ok|okay|so|please|kindly|quick question)[,:!]?\s+"
    r"|(?:can|could|would|will) you (?:please |kindly )?(?:tell me |show me |help me )?"
    r"|(?:please )?tell me\s+|i (?:want|need|would like|'d like) (?:you )?to (?:know\s+)?|i'd like to (?:know\s+)?"
    r"|do you know\s+)",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s,]*(?:please|thanks|thank you|for me)?\s*[?.\s]*$", re.IGNORECASE)


def tidy(question: str) -> str:
    """Return the question with plain quotes, dashes and spaces."""
    return " ".join(question.translate(_SIGNS).split())


def unframe(question: str) -> str:
    """Return the question without greetings, "please" and the marks at its end; "" if it is too long to be one."""
    if len(question) > _LONGEST:
        return ""
    text = tidy(question)
    while match := _BEFORE.match(text):
        text = text[match.end() :]
    while (shorter := _AFTER.sub("", text)) != text:
        text = shorter
    return text
