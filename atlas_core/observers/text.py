"""Foreign text made safe for a screen: what a model or a tool writes must not move the cursor or recolour anything."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlas_core.messages import Usage

__all__ = ["amount_text", "printable", "shortened", "usage_text"]

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


def usage_text(usage: Usage, *, requests: int) -> str:
    """Return what was used, in one line; the cost only where there is one.

    Args:
        usage: Tokens and cost.
        requests: How many model requests it took.
    """
    cached = f" ({usage.cached_input_tokens:,} cached)" if usage.cached_input_tokens else ""
    cost = f", cost {amount_text(usage.cost)}" if usage.cost else ""
    return (
        f"{requests:,} request{'' if requests == 1 else 's'}, {usage.input_tokens:,} tokens in{cached}, "
        f"{usage.output_tokens:,} out{cost}"
    )


def amount_text(amount: float) -> str:
    """Return an amount of money with three significant digits, at least two after the point, and no exponent."""
    if not amount or not math.isfinite(amount):
        return f"{amount:.2f}"
    digits = max(2, 2 - math.floor(math.log10(abs(amount))))
    return f"{amount:.{digits}f}"
