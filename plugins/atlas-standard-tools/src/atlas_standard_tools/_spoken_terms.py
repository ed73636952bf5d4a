"""The pieces that an expression is put together from while a question is read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ADD", "ATOM", "MUL", "POW", "SIGN", "Term", "binary", "function_template", "joined", "postfixed", "tail"]

# How tightly a piece holds together.
ADD, MUL, SIGN, POW, ATOM = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Term:
    """A piece of the expression.

    Attributes:
        text: Its text.
        level: How tightly it holds together; a looser one gets brackets where a tighter one is wanted.
        open: What must not follow, as it could be read as part of this piece: "" nothing, "power" a power,
            "sum" also + and -, "any" every operator.
        number: Its value, if it is a bare number.
        work: Whether it computes anything.
        posted: Whether it ends with "squared" or the like, which may be meant of more than its last number.
    """

    text: str
    level: int
    open: str = ""
    number: float | None = None
    work: bool = True
    posted: bool = False

    @property
    def is_bracket(self) -> bool:
        """Whether it is a bracket as it was written."""
        return self.level == ATOM and self.text.startswith("(")

    def at(self, level: int) -> str:
        """Return its text, in brackets where it holds together less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"


def binary(op: str, a: Term, b: Term) -> Term:
    """Return `a op b`, for any of + - * / %."""
    level = ADD if op in "+-" else MUL
    # The right side of - and / must hold together more tightly than the left: 10 - (4 - 1).
    return Term(f"{a.at(level)} {op} {b.at(level + 1)}", level)


def tail(argument: Term) -> str:
    """Return what must not follow a phrase such as "half of" with this argument; a bracket shows where it ends."""
    return argument.open if argument.open == "any" else "power" if argument.is_bracket else "sum"


def function_template(name: str) -> tuple[str, int]:
    """Return the pattern a phrase is written with, and how tightly that holds together."""
    if name.startswith("root "):
        return f"{{}} ^ (1 / {name[5:]})", POW
    return {
        "square": ("{} ^ 2", POW),
        "cube": ("{} ^ 3", POW),
        "reciprocal": ("1 / {}", MUL),
    }.get(name, (f"{name}({{}})", ATOM))


def postfixed(base: Term, post: str) -> Term:
    """Return the factorial of a piece (`!`), or its power (`2`, `3`)."""
    if post == "!":
        inner = base.text[1:-1] if base.is_bracket and base.text.count("(") == 1 else base.text
        return Term(f"factorial({inner})", ATOM)
    return Term(f"{base.at(ATOM)} ^ {post}", POW)


def joined(op: str, items: list[Term]) -> Term:
    """Return the sum (`+`) or product (`*`) of a list, after which no operator may follow."""
    level = ADD if op == "+" else MUL
    return Term(f" {op} ".join(i.at(level + 1) for i in items), level, open="any")
