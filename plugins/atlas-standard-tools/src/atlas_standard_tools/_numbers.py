"""Arithmetic on exact numbers, bounded in size, with the functions a calculator has.

A number is an `int` or a `Fraction` as long as the arithmetic is exact, and a `float` once a function such as
`sin` has made it one. So 0.1 + 0.2 is 3/10, 1/3 * 3 is 1, and 2**200 keeps every digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "MAX_DIGITS",
    "ExpressionError",
    "Number",
    "NumberError",
    "divide",
    "floor_divide",
    "modulo",
    "power",
    "settle",
]

Number: TypeAlias = int | Fraction | float

# Below CPython's own limit of 4,300 digits for turning an int into text, so that each result can be shown.
MAX_DIGITS = 4000
_MAX_BITS = int(MAX_DIGITS * math.log2(10))
_EPS = 2.0**-52


class ExpressionError(ValueError):
    """The expression was refused or has no result; the text says why and what to write instead."""


class NumberError(ExpressionError):
    """An operation has no result, or one too large; the text says which and why."""


def settle(value: Number) -> Number:
    """Return the value in its simplest type.

    Raises:
        NumberError: It is infinite, no number, or exact with more than `MAX_DIGITS` digits.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NumberError("the result is too large for a decimal number (over 1.8e308)")
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise NumberError(f"the result has more than {MAX_DIGITS} digits")
    return value.numerator if value.denominator == 1 else value


def real(value: Number, what: str = "the number") -> float:
    """Return the value as a float.

    Raises:
        NumberError: It is beyond what a float holds.
    """
    try:
        return float(value)
    except OverflowError:
        raise NumberError(f"{what} is too large for this function (over 1.8e308)") from None


def whole(value: Number, name: str) -> int:
    """Return the value as an int.

    Raises:
        NumberError: It has a fractional part.
    """
    if value != int(value):
        raise NumberError(f"{name} needs whole numbers, got {show(value)}")
    return int(value)


def show(value: Number) -> str:
    """Return the value in few characters, for an error text."""
    if isinstance(value, int) and value.bit_length() > 60:
        return f"a number of about {int(value.bit_length() / math.log2(10)) + 1} digits"
    try:
        return f"{value if isinstance(value, int) else float(value):.12g}"
    except OverflowError:
        return "a number over 1.8e308"


def divide(a: Number, b: Number) -> Number:
    """Return `a / b`, exact where both are."""
    if b == 0:
        raise NumberError(f"{show(a)} / 0 is undefined: nothing can be divided by zero")
    if isinstance(a, float) or isinstance(b, float):
        return real(a) / real(b)
    return Fraction(a) / Fraction(b)


def floor_divide(a: Number, b: Number) -> Number:
    """Return the quotient rounded down, as Python's `//` does."""
    if b == 0:
        raise NumberError(f"{show(a)} // 0 is undefined: nothing can be divided by zero")
    return a // b


def modulo(a: Number, b: Number) -> Number:
    """Return the remainder with the sign of `b`, as Python's `%` does."""
    if b == 0:
        raise NumberError(f"{show(a)} modulo 0 is undefined: nothing can be divided by zero")
    return a % b


def power(a: Number, b: Number) -> Number:
    """Return `a ** b`; the size is estimated before anything is computed."""
    if a == 0 and b < 0:
        raise NumberError("0 to a negative power is undefined: it would divide by zero")
    if isinstance(b, float) and b.is_integer() and abs(b) < 1e15:
        b = int(b)
    if isinstance(b, int) and not isinstance(a, float):
        return _exact_power(a, b)
    if a < 0 and not isinstance(b, int):
        raise NumberError(
            f"a negative number ({show(a)}) to a fractional power has no real result; for a cube root use cbrt(...)"
        )
    return _float_power(a, b)


def _exact_power(a: int | Fraction, b: int) -> Number:
    if a in {0, 1} or b == 0:
        return a**b if b >= 0 else a
    if a == -1:
        return 1 if b % 2 == 0 else -1
    size = max(a.numerator.bit_length(), a.denominator.bit_length())
    # A number of n bits is at least 2**(n-1): a low estimate, so that nothing that fits is refused here.
    if (size - 1) * abs(b) > _MAX_BITS:
        if a.denominator != 1:
            return _float_power(a, b)
        raise NumberError(
            f"{show(a)} to the power of {show(b)} has more than {MAX_DIGITS} digits"
            if b > 0
            else f"{show(a)} to the power of {show(b)} is too small to be written with {MAX_DIGITS} digits"
        )
    return Fraction(a) ** b if b < 0 else a**b


def _float_power(a: Number, b: Number) -> float:
    try:
        result = math.pow(real(a), real(b))
    except OverflowError:
        raise NumberError("the power is too large for a decimal number (over 1.8e308)") from None
    if result == 0 and a != 0:
        raise NumberError("the power is too small for a decimal number (under 5e-324)")
    return result


def _exact_root(value: Number, degree: int) -> Number | None:
    if isinstance(value, float):
        return None
    roots = [_integer_root(part, degree) for part in (value.numerator, value.denominator)]
    return None if roots[0] is None or roots[1] is None else Fraction(roots[0], roots[1])


def _integer_root(n: int, degree: int) -> int | None:
    if n == 0:
        return 0
    # Newton's method on whole numbers, from above; doubles the right digits with each round.
    root = 1 << -(-n.bit_length() // degree)
    while (closer := ((degree - 1) * root + n // root ** (degree - 1)) // degree) < root:
        root = closer
    return root if root**degree == n else None


def sqrt(value: Number) -> Number:
    """Square root; exact where the value is the square of an exact number."""
    if value < 0:
        raise NumberError(f"the square root of a negative number ({show(value)}) is not a real number")
    exact = _exact_root(value, 2)
    return math.sqrt(real(value)) if exact is None else exact


def cbrt(value: Number) -> Number:
    """Cube root, negative for a negative value."""
    if value < 0:
        return -cbrt(-value)
    exact = _exact_root(value, 3)
    return math.cbrt(real(value)) if exact is None else exact


def round_(value: Number, digits: Number = 0) -> Number:
    """Round to `digits` decimals, halves away from zero, as taught in school (not Python's half-to-even)."""
    places = whole(digits, "round")
    if abs(places) > 300:
        raise NumberError(f"round takes at most 300 digits, got {show(places)}")
    # A float is rounded as it is written: 2.675 is meant, not the binary number just below.
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    scaled = abs(exact) * Fraction(10) ** places
    nearest = math.floor(scaled + Fraction(1, 2))
    return (1 if exact >= 0 else -1) * Fraction(nearest) / Fraction(10) ** places


def factorial(value: Number) -> int:
    """Product of 1 to n."""
    n = whole(value, "factorial")
    if n < 0:
        raise NumberError(f"factorial needs a number of 0 or more, got {show(n)}")
    if n > MAX_DIGITS:  # n! has more than n digits from n = 25 on
        raise NumberError(f"the factorial of {show(n)} has more than {MAX_DIGITS} digits")
    return math.factorial(n)


def _choose(function: Callable[[int, int], int], name: str) -> Callable[[Number, Number], int]:
    def call(n: Number, k: Number) -> int:
        a, b = whole(n, name), whole(k, name)
        if a < 0 or b < 0:
            raise NumberError(f"{name} needs numbers of 0 or more, got {show(a)} and {show(b)}")
        if _choice_bits(a, b, ordered=name == "perm") > _MAX_BITS:
            raise NumberError(f"{name}({show(a)}, {show(b)}) has more than {MAX_DIGITS} digits")
        return function(a, b)

    return call


def _choice_bits(n: int, k: int, *, ordered: bool) -> float:
    """Estimate the bits of the number of ways to choose k of n, from above where n is too large for lgamma."""
    if k > n:
        return 0.0
    if n.bit_length() > 50:
        return float(min(n.bit_length() * (k if ordered else min(k, n - k)), 2 * _MAX_BITS))
    nats = math.lgamma(n + 1) - math.lgamma(n - k + 1) - (0.0 if ordered else math.lgamma(k + 1))
    return nats / math.log(2) - 1


def log(value: Number, base: Number | None = None) -> float:
    """Natural logarithm, or the logarithm to a base."""
    if value <= 0:
        raise NumberError(f"the logarithm of {show(value)} is undefined: it needs a number above 0")
    if base is None:
        return _log(math.log, value)
    if base <= 0 or base == 1:
        raise NumberError(f"{show(base)} is no base for a logarithm: it must be above 0 and not 1")
    exact = {2: math.log2, 10: math.log10}.get(int(base)) if base == int(base) else None
    return _log(exact, value) if exact else _log(math.log, value) / _log(math.log, base)


def _log(function: Callable[[float], float], value: Number) -> float:
    # An int goes in as it is: the math module takes the logarithm of one of any size.
    if isinstance(value, Fraction):
        return function(value.numerator) - function(value.denominator) if abs(value) > 1e300 else function(real(value))
    return function(value)


def _log_to(base: int) -> Callable[[Number], float]:
    return lambda value: log(value, base)


def _natural(value: Number) -> float:
    return log(value)


def exp(value: Number) -> float:
    """E to the power of the value."""
    try:
        return math.exp(real(value))
    except OverflowError:
        raise NumberError(f"exp({show(value)}) is too large for a decimal number (over 1.8e308)") from None


def _wave(function: Callable[[float], float]) -> Callable[[Number], float]:
    """Wrap sin or cos so that a result below the rounding error of its own argument is 0: sin(pi) is 0."""

    def call(value: Number) -> float:
        x = real(value)
        if abs(x) > 1e15:
            raise NumberError(
                f"the angle {show(value)} is too large: its digits no longer tell where in the turn it is"
            )
        result = function(x)
        return 0.0 if abs(result) < abs(x) * _EPS else result

    return call


_sin, _cos = _wave(math.sin), _wave(math.cos)


def tan(value: Number) -> float:
    """Tangent of an angle in radians."""
    if _cos(value) == 0:
        raise NumberError(f"tan({show(value)}) is undefined: the cosine is 0 there")
    return _sin(value) / _cos(value)


def _inverse(function: Callable[[float], float], name: str) -> Callable[[Number], float]:
    def call(value: Number) -> float:
        try:
            return function(real(value))
        except ValueError:
            raise NumberError(f"{name}({show(value)}) is undefined: it needs a number from -1 to 1") from None

    return call


def _plain(function: Callable[[float], float], name: str) -> Callable[[Number], float]:
    def call(value: Number) -> float:
        try:
            return function(real(value))
        except OverflowError:
            raise NumberError(f"{name}({show(value)}) is too large for a decimal number (over 1.8e308)") from None

    return call


def _each_whole(function: Callable[..., int], name: str) -> Callable[..., int]:
    return lambda *values: function(*(whole(v, name) for v in _some(values, name)))


def _some(values: Sequence[Number], name: str) -> Sequence[Number]:
    if not values:
        raise NumberError(f"{name} needs at least one number")
    return values


def lcm(*values: Number) -> int:
    """Least common multiple."""
    result = 1
    for value in _some(values, "lcm"):
        result = math.lcm(result, whole(value, "lcm"))
        settle(result)
    return result


def mean(*values: Number) -> Number:
    """Arithmetic mean."""
    return divide(sum(_some(values, "mean")), len(values))


def median(*values: Number) -> Number:
    """Middle value, or the mean of the two middle ones."""
    ordered = sorted(_some(values, "median"))
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else divide(ordered[half - 1] + ordered[half], 2)


CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}

FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": sqrt,
    "cbrt": cbrt,
    "abs": abs,
    "round": round_,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "pow": power,
    "mod": modulo,
    "factorial": factorial,
    "comb": _choose(math.comb, "comb"),
    "perm": _choose(math.perm, "perm"),
    "gcd": _each_whole(math.gcd, "gcd"),
    "lcm": lcm,
    "min": lambda *values: min(_some(values, "min")),
    "max": lambda *values: max(_some(values, "max")),
    "sum": lambda *values: sum(values),
    "mean": mean,
    "average": mean,
    "avg": mean,
    "median": median,
    "exp": exp,
    "log": log,
    "ln": _natural,
    "log10": _log_to(10),
    "log2": _log_to(2),
    "sin": _sin,
    "cos": _cos,
    "tan": tan,
    "asin": _inverse(math.asin, "asin"),
    "acos": _inverse(math.acos, "acos"),
    "atan": _plain(math.atan, "atan"),
    "sinh": _plain(math.sinh, "sinh"),
    "cosh": _plain(math.cosh, "cosh"),
    "tanh": _plain(math.tanh, "tanh"),
    "degrees": _plain(math.degrees, "degrees"),
    "radians": _plain(math.radians, "radians"),
    "hypot": lambda *values: math.hypot(*(real(v) for v in values)),
}
