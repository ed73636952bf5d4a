"""Foreign text made safe for a screen: what a model or a tool writes must not move the cursor or recolour anything."""

from __future__ import annotations

import re

__all__ = ["printable", "shortened"]

# C0 and C1 controls but tab and newline, DEL, line and paragraph separators, marks that turn the direction of
# writing (Unicode Technical Report 36, 2014, section 2.2), and surrogates, which no stream can encode.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_CARRIAGE_RETURN = re.compile(r"\r+(?=\n|\Z)")


def printable(text: str) -> str:
    r"""Return the text with each unsafe character spelt out, as in `\x1b`; line ends become `\n`."""
    return _UNSAFE.sub(_spelt, _CARRIAGE_RETURN.sub("", text))


def _spelt(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shortened(text: str, *, max_chars: int, max_lines: int) -> str:
    """Return at most so much of the text, with a note of how much was left out."""
    kept = "\n".join(text[:max_chars].split("\n")[:max_lines])
    left = len(text) - len(kept)
    return f"{kept}\n[{left} more characters]" if left else text
