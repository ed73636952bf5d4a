"""What a comma between digits means: thousands outside a function's brackets, the next argument inside them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from atlas_standard_tools._numbers import FUNCTIONS, ExpressionError

__all__ = ["THOUSANDS", "UnclearCommaError", "separating"]

THOUSANDS = re.compile(r"(?<![\d.,\w])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d|,\d)")
_ALONE = re.compile(r"\s*[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*")
_TIGHT = re.compile(r"\d+,\d{3}(?!\d)")
_LEADING_ZERO = re.compile(r"\d+(?:,\d+)*,0\d+")
_WIDE = re.compile(r",\s")
_NAME = re.compile(r"[^\W\d]\w*$")
# These take one number or two, so that "round(1,250)" is as good as "round(1250)".
_ONE_OR_TWO = {"round", "log"}


class UnclearCommaError(ExpressionError):
    """Digits parted by a comma that may be one number or several."""


@dataclass(slots=True)
class _Bracket:
    """An open bracket.

    Attributes:
        name: The function it belongs to, "[" for a list, "" for a bracket that only groups.
        in_call: Whether a function's bracket or a list is around it.
        own: Its text so far, with `@` for each bracket inside it.
    """

    name: str
    in_call: bool = False
    own: list[str] = field(default_factory=list)

    @property
    def is_call(self) -> bool:
        return bool(self.name)


def separating(text: str) -> list[bool]:
    """Tell for each character whether a comma there parts arguments: whether its innermost bracket is a call or list.

    Args:
        text: An expression, or a question that may hold one; its brackets need not match.
    Raises:
        UnclearCommaError: In a call: `,0dd`, commas of both kinds as in `max(1,500, 3)`, and `round(1,250)`. In a
            grouping bracket: `(5,100)` alone, or anywhere inside a call, where it could be a list.
    """
    stack = [_Bracket("")]
    inside: list[bool] = []
    for at, char in enumerate(text):
        if char in "([":
            around = stack[-1]
            around.own.append("@")
            inside.append(around.is_call)
            stack.append(_Bracket(_opener(text, at), in_call=around.is_call or around.in_call))
            continue
        if char in ")]" and len(stack) > 1:
            _check(stack.pop())
        else:
            stack[-1].own.append(char)
        inside.append(stack[-1].is_call)
    for bracket in stack[1:]:
        _check(bracket)
    return inside


def _opener(text: str, at: int) -> str:
    if text[at] == "[":
        return "["
    if attached := _NAME.search(text[max(0, at - 40) : at]):
        return attached.group()
    apart = _NAME.search(text[max(0, at - 40) : at].rstrip())
    return apart.group() if apart and apart.group().lower() in FUNCTIONS else ""


def _check(bracket: _Bracket) -> None:
    own = "".join(bracket.own)
    if not bracket.is_call:
        found = _TIGHT.search(own) if bracket.in_call else _ALONE.fullmatch(own)
        unclear = found
    else:
        found = _TIGHT.search(own)
        mixed = found and (_WIDE.search(own) or (bracket.name in _ONE_OR_TWO and _ALONE.fullmatch(own)))
        unclear = _LEADING_ZERO.search(own) or (found if mixed else None)
    if unclear:
        raise UnclearCommaError(
            f"{unclear.group().strip()[:40]!r} inside brackets may be one number or several; write a number without "
            "commas, and a blank after each comma between two"
        )
