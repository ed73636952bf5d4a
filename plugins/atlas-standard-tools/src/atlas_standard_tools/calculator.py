"""The calculator tool."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from atlas_core import Example, ToolError, ToolHints, tool

__all__ = ["calculator_tool"]


def _parse(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_arithmetic import read_expression

    expression = read_expression(question)
    return None if expression is None else {"expression": expression}


_HINTS = ToolHints(
    examples=(
        Example("What is the square root of 144 multiplied by 5?", {"expression": "sqrt(144) * 5"}),
        Example("What is 15% of 80?", {"expression": "15 / 100 * 80"}),
        Example("How much is two hundred and five minus twelve?", {"expression": "205 - 12"}),
        Example("Add 2 and 3, then multiply the result by 4", {"expression": "(2 + 3) * 4"}),
        Example("2 ** 10", {"expression": "2 ^ 10"}),
    ),
    parse=_parse,
)


@tool(effects="read", timeout_s=10, hints=_HINTS)
def calculator_tool(expression: str) -> int | float | Decimal:
    """Evaluate an arithmetic expression exactly.

    Use it for every calculation, also for small ones. Operators: + - * / // % and ** or ^ for powers, brackets,
    n! and "15% of 80". Functions: sqrt, cbrt, abs, round(x, digits), floor, ceil, trunc, log (natural, or
    log(x, base)), ln, log10, log2, exp, sin, cos, tan, asin, acos, atan (radians), degrees, radians, factorial,
    comb, perm, gcd, lcm, min, max, sum, mean, median, mod, hypot. Constants: pi, e, tau. Whole numbers and decimals
    are exact (0.1 + 0.2 is 0.3); round() rounds halves away from zero.

    Args:
        expression: The expression, such as "sqrt(144) * 5" or "mean(3, 4, 8.5)". No variables, no units.
    """
    from atlas_standard_tools._arithmetic import ExpressionError, evaluate

    try:
        return evaluate(expression)
    except ExpressionError as exc:
        raise ToolError(str(exc), tool="calculator_tool") from exc
