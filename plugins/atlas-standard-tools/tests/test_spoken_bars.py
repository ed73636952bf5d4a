from __future__ import annotations

import pytest
from atlas_standard_tools._arithmetic import evaluate
from atlas_standard_tools._spoken_arithmetic import read_expression
from hypothesis import given, settings
from hypothesis import strategies as st

_AROUND = [
    ("{} squared", "({}) ^ 2"),
    ("{} cubed", "({}) ^ 3"),
    ("{} to the power of 2", "({}) ^ 2"),
    ("the square root of {}", "sqrt({})"),
    ("the cube root of {} times 3", "cbrt({}) * 3"),
    ("the reciprocal of {}", "1 / ({})"),
    ("log base 2 of {}", "log2({})"),
    ("10 divided by {}", "10 / ({})"),
    ("10 ÷ {}", "10 / ({})"),
    ("1/3 / {}", "1 / 3 / ({})"),
    ("10 mod {}", "10 % ({})"),
    ("8 to the power of {}", "8 ^ ({})"),
    ("8 raised to minus {}", "8 ^ -({})"),
    ("8^{}", "8 ^ ({})"),
    ("{}% of 80", "({}) / 100 * 80"),
    ("3 times {}", "3 * {}"),
    ("5 minus {}", "5 - {}"),
    ("{} divided by 4", "{} / 4"),
    ("half of {}", "1 / 2 * {}"),
    ("{} of 90", "{} * 90"),
]


@given(st.integers(1, 9), st.integers(2, 9), st.sampled_from(["/", " over "]), st.sampled_from(_AROUND))
@settings(max_examples=500, deadline=None)
def test_a_written_fraction_is_one_number_or_nothing_is_read(a: int, b: int, bar: str, around: tuple[str, str]) -> None:
    """Where a fraction stands next to a sign that binds more tightly, its parts are never torn from each other."""
    spoken, meant = around
    expression = read_expression(spoken.format(f"{a}{bar}{b}"))
    if expression is not None:
        assert evaluate(expression) == pytest.approx(evaluate(meant.format(f"{a} / {b}")), rel=1e-12), expression


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("(2+1)!", "factorial(2 + 1)"),
        ("5! / 3!", "factorial(5) / factorial(3)"),
        ("What is 3! + 4!?", "factorial(3) + factorial(4)"),
        ("6 / 3! + 2!", "6 / factorial(3) + factorial(2)"),
        ("100 / 5 / 2", "100 / 5 / 2"),
        ("2^10 / 4", "2 ^ 10 / 4"),
        ("sqrt(9) / 4", "sqrt(9) / 4"),
        ("10 - 3!", None),
        ("2 times 3!", None),
        ("5!! + 1", None),
        ("6/3! + 2!", None),
        ("2^3 squared", None),
        ("3 squared factorial", None),
        ("1 plus 2 over 3", None),
        ("3 over 4 times 2", None),
    ],
)
def test_only_clear_bars_and_factorials_are_read(question: str, expression: str | None) -> None:
    """A "!" at the end counts beside another or alone; a fraction bar where blanks or brackets show its reach."""
    assert read_expression(question) == expression
