"""The ways people write arithmetic, turned into Python's: ×, ÷, ^, √, 5!, 15% of 80, 1,000."""

from __future__ import annotations

import re

from atlas_standard_tools._commas import THOUSANDS, separating
from atlas_standard_tools._numbers import ExpressionError

__all__ = ["NotationError", "to_python"]


class NotationError(ExpressionError):
    """A spelling that has more than one meaning, or none; the text offers the clear ones."""


_SIGNS = str.maketrans({
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-", "\u00a0": " ",
    "\u2009": " ", "\u202f": " ", "π": " pi ", "τ": " tau ", "²": "**2", "³": "**3",
})  # fmt: skip
_TOKEN = re.compile(r"\s*(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\w+|\*\*|//|!=|.)", re.DOTALL)
_MONEY = re.compile(r"[$€£¥₹]")


def to_python(text: str) -> str:
    """Return the expression in Python's own notation.

    Raises:
        NotationError: It holds a sign of money, an ambiguous percent sign, or a sign that is no arithmetic.
        UnclearCommaError: Digits parted by a comma may be one number or several.
    """
    text = text.translate(_SIGNS).strip().removesuffix("=").strip()
    if money := _MONEY.search(text):
        raise NotationError(f"{money.group()!r} is a sign of money; write the amounts as plain numbers")
    if odd := re.search(r"[^\x20-\x7e\s√]|#", text):
        raise NotationError(f"{odd.group()!r} has no meaning in an expression; leave it out")
    tokens = [match.group(1) for match in _TOKEN.finditer(_without_thousands(text))]
    tokens = _roots(_factorials(_percents(tokens)))
    return " ".join("**" if token == "^" else token for token in tokens)


def _without_thousands(text: str) -> str:
    inside = separating(text)
    return THOUSANDS.sub(lambda m: m.group() if inside[m.start()] else m.group().replace(",", ""), text)


def _percents(tokens: list[str]) -> list[str]:
    out: list[str] = []
    if tokens.count("%") > 100:
        raise NotationError("there are over 100 '%'; split the expression into several")
    for i, token in enumerate(tokens):
        following = tokens[i + 1] if i + 1 < len(tokens) else ""
        if token == "of" and out[-2:] == ["100", ")"]:
            out.append("*")
        elif token != "%" or _starts_operand(following):
            out.append(token)
        elif following in {"+", "-"}:
            raise NotationError(f"'% {following}' may be a percentage or a remainder; write /100, or mod(a, b)")
        else:
            start = _operand_start(out)
            if following not in {"of", "*", "/", "**"} and _is_added(out, start):
                raise NotationError("a percentage after + or - is ambiguous; write a * (1 + p/100) or a + p/100")
            out[start:] = ["(", *out[start:], "/", "100", ")"]
    return out


def _is_added(tokens: list[str], start: int) -> bool:
    """Tell whether the operand from `start` is added to or taken from something before it."""
    return start > 1 and tokens[start - 1] in {"+", "-"} and tokens[start - 2] not in "+-*/%^(,["


def _starts_operand(token: str) -> bool:
    return token != "of" and (token[:1].isalnum() or token in {"(", ".", "√"} or token[:1] == ".")


def _operand_start(tokens: list[str]) -> int:
    """Return where the operand that ends the list starts: a number, a name, a bracket, or a call."""
    if not tokens or not (tokens[-1][-1:].isalnum() or tokens[-1] == ")" or tokens[-1].endswith(".")):
        raise NotationError("'%' or '!' needs a number or a bracket before it")
    if tokens[-1] != ")":
        return len(tokens) - 1
    depth = 0
    for i in range(len(tokens) - 1, -1, -1):
        depth += (tokens[i] == ")") - (tokens[i] == "(")
        if depth == 0:
            return i - 1 if i and tokens[i - 1].isidentifier() else i
    raise NotationError("a bracket is closed that was not opened")


def _factorials(tokens: list[str]) -> list[str]:
    out: list[str] = []
    if tokens.count("!") > 100:
        raise NotationError("there are over 100 '!'; each is a factorial")
    for token in tokens:
        if token != "!":
            out.append(token)
            continue
        start = _operand_start(out)
        out[start:] = ["factorial", "(", *out[start:], ")"]
    return out


def _roots(tokens: list[str]) -> list[str]:
    out: list[str] = []
    close = False
    for i, token in enumerate(tokens):
        if token == "√":
            following = tokens[i + 1] if i + 1 < len(tokens) else ""
            if not (following[:1].isdigit() or following in {"(", "pi", "e"}):
                raise NotationError("'√' needs a number or a bracket after it")
            close = following != "("
            out += ["sqrt", "("] if close else ["sqrt"]
            continue
        out.append(token)
        if close:
            out.append(")")
            close = False
    return out
