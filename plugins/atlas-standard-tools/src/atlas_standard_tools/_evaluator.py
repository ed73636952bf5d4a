"""The walk over an expression's tree: simpleeval with a short list of nodes, exact literals and flat sums."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

import simpleeval

from atlas_standard_tools._numbers import CONSTANTS, FUNCTIONS, MAX_DIGITS, ExpressionError, Number, settle

__all__ = ["Evaluator"]


class Evaluator(simpleeval.SimpleEval):  # type: ignore[misc]  # simpleeval ships no types
    """Evaluates trees that were checked; has a handler for each node on the list and for no other.

    Args:
        operators: What each operator does.
    """

    def __init__(self, operators: Mapping[type[ast.AST], Callable[..., Number]]) -> None:
        super().__init__(operators=operators, functions=FUNCTIONS, names=CONSTANTS)
        self.nodes = {
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Call: self._call,
            ast.Name: lambda node: CONSTANTS[node.id],
            ast.Constant: self._constant,
            ast.List: self._items,
            ast.Tuple: self._items,
        }

    def _number(self, node: ast.expr) -> Number:
        value = self._eval(node)
        if isinstance(value, tuple):
            raise ExpressionError("a list of numbers is no number; use it inside sum, mean, median, min or max")
        number: Number = value
        return number

    def _binary(self, node: ast.BinOp) -> Number:
        chain: list[ast.BinOp] = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self._number(chain[-1].left)
        for step in reversed(chain):
            value = settle(self.operators[type(step.op)](value, self._number(step.right)))
        return value

    def _unary(self, node: ast.UnaryOp) -> Number:
        value: Number = self.operators[type(node.op)](self._number(node.operand))
        return value

    def _constant(self, node: ast.Constant) -> Number:
        # The digits as written are meant, not the nearest binary fraction.
        if isinstance(node.value, int):
            return settle(node.value)
        return _decimal(self.expr, node)

    def _items(self, node: ast.List | ast.Tuple) -> tuple[Number, ...]:
        return tuple(self._number(item) for item in node.elts)

    def _call(self, node: ast.Call) -> Number:
        name = node.func.id  # type: ignore[attr-defined]  # _check has let names through only
        values: list[Number] = []
        for argument in node.args:
            value = self._eval(argument)
            values.extend(value if isinstance(value, tuple) else [value])
        try:
            return settle(FUNCTIONS[name](*values))
        except TypeError as exc:
            raise ExpressionError(f"{name} can't take {len(values)} numbers; {_arity(name)}") from exc


def _arity(name: str) -> str:
    two = {"pow", "mod", "comb", "perm"}
    return f"write {name}(a, b)" if name in two else f"write {name}(x)"


_EXPONENT = re.compile(r"e([+-]?\d+)$", re.IGNORECASE)


def _decimal(source: str, node: ast.Constant) -> Number:
    text = source[node.col_offset : node.end_col_offset].replace("_", "")
    exponent = _EXPONENT.search(text)
    if exponent and abs(int(exponent.group(1))) > MAX_DIGITS:
        raise ExpressionError(f"the number {text[:40]!r} is out of range; exponents go up to {MAX_DIGITS}")
    return settle(Fraction(text))
