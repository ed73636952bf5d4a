"""Where a written fraction may be one number: "10 divided by 1/2" is 20 to most readers and 5 by the order of signs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from atlas_standard_tools._spoken_tokens import Token

__all__ = ["is_over", "is_unclear", "one_fraction"]

_REACHING = {"prefix", "root-sign"}


def is_over(token: Token) -> bool:
    """Tell whether a token is "over", which may reach to the ends of what stands before and after it."""
    return token.kind == "op" and token.written == "over"


def is_unclear(operands: Sequence[Sequence[Token]], signs: Sequence[Token]) -> bool:
    """Tell whether a product may be meant with one of its fractions as a number.

    Args:
        operands: The tokens of each operand.
        signs: The signs between them, one fewer.
    """
    return any(
        _is_spoken(operands[at : at + 2])
        if sign.written == "divided by"
        else _is_bar(sign)
        and _may_reach(operands[at : at + 2], sign, signs[at - 1] if at else None, last=sign is signs[-1])
        for at, sign in enumerate(signs)
    )


def _is_spoken(sides: Sequence[Sequence[Token]]) -> bool:
    """Tell whether a power in words may reach over "divided by": 3 divided by 4 squared."""
    above, below = ([*_outside_brackets(side)] for side in sides)
    ends = above[-1].kind in {"power", "close"}
    if any(token.value == "^" and token.loose for token in [*([] if ends else above), *below]):
        return True
    posted = any(token.kind == "post" for token in above)
    return not posted and any(token.kind == "post" and token.written.isalpha() for token in below)


def _is_bar(sign: Token) -> bool:
    return sign.value == "/" and sign.written in {"/", "over"}


def _may_reach(sides: Sequence[Sequence[Token]], bar: Token, before: Token | None, *, last: bool) -> bool:
    above, below = ([*_outside_brackets(side)] for side in sides)
    if is_over(bar) and not last:
        return True  # 3 over 4 times 2: 1.5 or 3/8
    if before is not None and before.value in {"/", "%"} and not _is_plain_division(before, bar):
        return True  # 10 mod 3/2
    if any(token.kind in _REACHING for token in above) or _has_power(above, bar):
        return True  # the square root of 9 over 16, 8^1/3
    if any(token.kind == "percent" for token in below) or _has_power(below, bar):
        return True  # 1/2 % of 200, 3/4 to the power of 2
    return _is_posted(above, below, bar)


def _is_plain_division(before: Token, bar: Token) -> bool:
    """Tell whether `100 / 5 / 2` or `1/2 / 3` is read from the left: the second bar binds no tighter than the first."""
    return before.written == "/" and _is_apart(bar)


def _is_apart(bar: Token) -> bool:
    return bar.written == "/" and bar.spacing == "even"


def _has_power(side: Sequence[Token], bar: Token) -> bool:
    """Tell whether a side has a power that binds no tighter than the bar by its look: 2^10 / 4 is clear."""
    powers = [token for token in side if token.kind == "op" and token.value == "^"]
    return bool(powers) and not (_is_apart(bar) and all(p.spacing == "none" for p in powers))


def _is_posted(above: Sequence[Token], below: Sequence[Token], bar: Token) -> bool:
    """Tell whether the "squared" or "!" of what is below may be meant of the whole: 2/3 squared."""
    posts = [token for token in below if token.kind == "post"]
    if not posts or any(token.kind == "post" for token in above):
        return False
    return not _is_apart(bar) or any(token.written.isalpha() for token in posts)


def _outside_brackets(side: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token in side:
        depth -= token.kind == "close"
        if depth == 0:
            yield token
        depth += token.kind in {"open", "call"}


def one_fraction(tokens: Sequence[Token]) -> str | None:
    """Return `1 / 4` if that, written without blanks, is all there is: "the square root of" takes the whole of it."""
    if [token.kind for token in tokens] != ["number", "op", "number"]:
        return None
    above, bar, below = tokens
    if bar.written != "/" or bar.spacing != "none" or not re.fullmatch(r"\d+", above.value + below.value):
        return None
    return f"{above.value} / {below.value}"
