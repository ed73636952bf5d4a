"""Evaluate an arithmetic expression from an untrusted source: an allow-list over the parsed tree, with bounds.

simpleeval walks the tree; it is given no attribute access, no comprehension, no text, and functions of
`_numbers` alone, which refuse before they compute what would be too large.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from atlas_standard_tools._notation import to_python
from atlas_standard_tools._numbers import (
    CONSTANTS,
    FUNCTIONS,
    ExpressionError,
    Number,
    divide,
    floor_divide,
    modulo,
    power,
    settle,
)

__all__ = ["ExpressionError", "evaluate"]

MAX_LENGTH = 2000
MAX_DEPTH = 60

OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: divide,
    ast.FloorDiv: floor_divide,
    ast.Mod: modulo,
    ast.Pow: power,
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: a,
}
_NODES = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.List, ast.Tuple, ast.Load)
_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "attribute access (a dot after a name)",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.IfExp: "a condition (if ... else)",
    ast.Compare: "a comparison",
    ast.BoolOp: "and / or",
    ast.Subscript: "an index ([...] after a value)",
    ast.JoinedStr: "text",
    ast.NamedExpr: "an assignment",
    ast.Starred: "a * before an argument",
    ast.keyword: "a named argument",
    ast.Set: "braces",
    ast.Dict: "braces",
}


def evaluate(expression: str) -> int | float | Decimal:
    """Return the value of an arithmetic expression.

    Args:
        expression: At most 2,000 characters, nested at most 60 deep. Numbers, `+ - * / // % ** ^`, brackets,
            postfix `!`, percentages, the names in `FUNCTIONS` and `CONSTANTS`.
    Returns:
        An int where the result is whole; else a float of at most 15 significant digits: what goes on for ever, as
        5/6 or sqrt(2) does, is rounded to that many, which hides the noise of binary fractions. A `Decimal` where
        a float would lose digits of an exact decimal, or can't hold a value so large or small.
    Raises:
        ExpressionError: It is no such expression, or its result is undefined or too large.
    """
    try:
        source, tree = _parse(expression)
        return _presentable(settle(_run(source, tree)))
    except OverflowError as exc:
        raise ExpressionError("a value is too large for a decimal number (over 1.8e308)") from exc
    except (RecursionError, MemoryError) as exc:
        raise ExpressionError("the expression is nested too deeply; split it into several") from exc


def _parse(expression: str) -> tuple[str, ast.expr]:
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(expression)} characters; at most {MAX_LENGTH} are evaluated")
    if not expression.strip():
        raise ExpressionError("the expression is empty; write one such as 'sqrt(144) * 5'")
    _check_brackets(expression)
    source = to_python(expression)
    try:
        # The compiler warns of forms such as `2(3)`, which are refused below in words of our own.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source, mode="eval")
    except SyntaxError as exc:
        raise ExpressionError(_syntax(expression, source, exc)) from exc
    _check(tree, source)
    return source, tree.body


def _check_brackets(text: str) -> None:
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_DEPTH:
            raise ExpressionError(f"brackets are nested over {MAX_DEPTH} deep; split the expression into several")


def _syntax(expression: str, source: str, exc: SyntaxError) -> str:
    if exc.msg and "leading zeros" in exc.msg:
        return f"{expression[:60]!r} holds a number with a leading zero; write numbers without"
    if "=" in source:
        return f"{expression[:60]!r} holds an equation or assignment; give one expression to evaluate, without '='"
    near = source[exc.offset - 1 :][:20] if exc.offset else ""
    place = f" near {near!r}" if near else " at its end"
    return (
        f"{expression[:60]!r} is no arithmetic expression: something is wrong{place}; write one such as '2 * (3 + 4)'"
    )


def _check(tree: ast.Expression, source: str) -> None:
    """Refuse every node that is not on the list, without evaluating any."""
    called: set[int] = set()
    stack: list[tuple[ast.AST, int]] = [(tree.body, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested over {MAX_DEPTH} deep; split it into several")
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        _check_node(node, source, called=id(node) in called)
        for child in ast.iter_child_nodes(node):
            # A long sum leans to the left; it is evaluated in a loop, so it counts as flat.
            left_of = isinstance(node, ast.BinOp) and child is node.left and isinstance(child, ast.BinOp)
            stack.append((child, depth if left_of else depth + 1))


def _check_node(node: ast.AST, source: str, *, called: bool) -> None:
    if isinstance(node, ast.operator | ast.unaryop):
        if type(node) not in OPERATORS:
            raise ExpressionError(f"the operator {type(node).__name__} is not arithmetic; use + - * / // % ** and ^")
    elif not isinstance(node, _NODES):
        word = _WORDS.get(type(node), type(node).__name__)
        raise ExpressionError(f"{word} is not allowed; only numbers, operators, brackets and functions are")
    elif isinstance(node, ast.Constant):
        _check_constant(node)
    elif isinstance(node, ast.Name):
        _check_name(node.id, called=called)
    elif isinstance(node, ast.Call):
        _check_call(node, source)


def _check_constant(node: ast.Constant) -> None:
    if isinstance(node.value, str | bytes):
        raise ExpressionError("text is not allowed; only numbers, operators, brackets and functions are")
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise ExpressionError(f"{node.value!r:.40} is no real number")


def _check_name(name: str, *, called: bool) -> None:
    known = FUNCTIONS if called else CONSTANTS
    if name in known:
        return
    if name in FUNCTIONS:
        raise ExpressionError(f"{name!r} is a function; write {name}(...)")
    what = "function" if called else "name"
    close = difflib.get_close_matches(name[:40], [*FUNCTIONS, *CONSTANTS], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"functions are {', '.join(FUNCTIONS)}; constants pi, e, tau"
    raise ExpressionError(f"there is no {what} {name[:40]!r} here; {hint}")


def _check_call(node: ast.Call, source: str) -> None:
    if isinstance(node.func, ast.Name):
        if node.keywords:
            raise ExpressionError(f"a named argument is not allowed; write {node.func.id}(value)")
        return
    if isinstance(node.func, ast.Constant | ast.BinOp | ast.Call):
        raise ExpressionError("a number or bracket is followed by '('; write '*' to multiply, as in 2*(3+4)")
    word = _WORDS.get(type(node.func), "this")
    raise ExpressionError(f"{word} can't be called; only functions by name can, such as sqrt(2)")


def _run(source: str, tree: ast.expr) -> Number:
    # simpleeval loads here, when the first expression is evaluated
    from atlas_standard_tools._evaluator import Evaluator

    value = Evaluator(OPERATORS).eval(source, previously_parsed=tree)
    if isinstance(value, tuple):
        raise ExpressionError("the expression is a list, not a number; use sum(...), mean(...) or another function")
    number: Number = value
    return number


def _presentable(value: Number) -> int | float | Decimal:
    if isinstance(value, float):
        value = float(f"{value:.15g}")
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, int):
        return value
    return _fraction(value)


def _fraction(value: Fraction) -> float | Decimal:
    exact = _terminating(value)
    if exact is not None and len(exact.as_tuple().digits) > 15:
        return exact
    rounded = Context(prec=15).divide(Decimal(value.numerator), Decimal(value.denominator))
    return float(rounded) if 1e-300 < abs(value) < 1e300 else rounded


def _terminating(value: Fraction) -> Decimal | None:
    """Return a fraction as the exact decimal it is, or None if it needs over 40 digits."""
    context = Context(prec=40)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return quotient.normalize(context) if Fraction(quotient) == value else None
