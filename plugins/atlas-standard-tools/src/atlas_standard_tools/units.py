"""The unit converter tool."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from atlas_core import Example, ToolError, ToolHints, tool

if TYPE_CHECKING:
    import pint

__all__ = ["convert", "unit_converter"]


def _parse(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_units import read_conversion

    return read_conversion(question)


_HINTS = ToolHints(
    examples=(
        Example("Convert 5 miles to km", {"value": 5, "from_unit": "miles", "to_unit": "km"}),
        Example("How many feet are in 3 meters?", {"value": 3, "from_unit": "meters", "to_unit": "feet"}),
        Example("What is 72°F in °C?", {"value": 72, "from_unit": "°F", "to_unit": "°C"}),
        Example("100 km/h in mph", {"value": 100, "from_unit": "km/h", "to_unit": "mph"}),
        Example("20 celsius in fahrenheit", {"value": 20, "from_unit": "celsius", "to_unit": "fahrenheit"}),
    ),
    parse=_parse,
)


@tool(effects="read", timeout_s=20, hints=_HINTS)
def unit_converter(value: float, from_unit: str, to_unit: str) -> str:
    """Convert a measured value from one unit to another: length, mass, temperature, speed, volume, data, energy, ...

    Args:
        value: The number to convert.
        from_unit: Its unit by English name or symbol, such as "mile", "km/h", "°C", "square feet", "MB".
        to_unit: The unit wanted, written the same way.
    Returns:
        The converted number with its unit, such as "8.04672 km", rounded to 12 digits. US customary sizes are meant by
        gallon, pint, cup and ton, and said so.
    """
    from atlas_standard_tools._unit_names import UnitError

    try:
        return convert(value, from_unit, to_unit)
    except UnitError as exc:
        raise ToolError(str(exc), tool="unit_converter") from exc


def convert(value: float, from_unit: str, to_unit: str) -> str:
    """Return the value in the other unit, as text.

    Raises:
        UnitError: A unit is unknown or ambiguous, the two measure different things, or the value is out of range.
    """
    from atlas_standard_tools._unit_names import UnitError, read_unit

    if not math.isfinite(value):
        raise UnitError(f"the value {value!r} is no finite number")
    source, target = read_unit(from_unit, other=to_unit), read_unit(to_unit, other=from_unit)
    _check(source, from_unit, target, to_unit)
    number = _magnitude(value, source, target)
    return f"{_rounded(number)} {_symbol(target)}{_note(source, target)}"


def _magnitude(value: float, source: pint.Unit, target: pint.Unit) -> Fraction:
    from atlas_standard_tools._unit_names import UnitError, registry

    # The digits as written are meant, not the nearest binary fraction.
    quantity = registry().Quantity(Fraction(repr(value)), source)
    if _is_scale(_names(source)) and quantity.to("kelvin").magnitude < 0:
        raise UnitError(f"{value:g} {_symbol(source)} is below absolute zero (0 K, -273.15 °C, -459.67 °F)")
    try:
        return Fraction(quantity.to(target).magnitude)
    except (OverflowError, TypeError, ValueError) as exc:
        # The text of pint's own error can't be built where powers are fractions.
        raise UnitError(f"{_symbol(source)} and {_symbol(target)} are not related by a plain factor") from exc


def _is_scale(names: dict[str, int]) -> bool:
    return len(names) == 1 and names.keys() <= _SCALES and set(names.values()) == {1}


def _names(unit: pint.Unit) -> dict[str, int]:
    """Return the powers of a unit's factors by their full names."""
    from atlas_standard_tools._unit_names import registry

    return {str(name): int(str(power)) for name, power in registry().Quantity(1, unit).unit_items()}


def _rounded(number: Fraction) -> str:
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    value = Context(prec=12).divide(Decimal(number.numerator), Decimal(number.denominator)).normalize()
    return f"{value:f}" if -6 < value.adjusted() < 15 else f"{value:e}"


def _symbol(unit: pint.Unit) -> str:
    """Write a unit in symbols, `kg*m²/s²`; pint's own formatter can't write powers that are exact fractions."""
    from atlas_standard_tools._unit_names import registry

    above: list[str] = []
    below: list[str] = []
    for name, power in _names(unit).items():
        symbol = _SYMBOLS.get(name) or registry().get_symbol(name)
        (above if power > 0 else below).append(symbol + _POWERS.get(abs(power), f"^{abs(power)}"))
    return "/".join(["*".join(above) or "1", *below])


_SCALES = {"degree_Celsius", "degree_Fahrenheit", "degree_Reaumur", "degree_Rankine", "kelvin"}
_SYMBOLS = {"liter": "L", "milliliter": "mL", "year": "years", "month": "months", "day": "days", "week": "weeks",
            "mile_per_hour": "mph", "kilometer_per_hour": "km/h"}  # fmt: skip
_POWERS = {1: "", 2: "²", 3: "³"}
_CUSTOMARY = {
    "gallon": "US gallon", "quart": "US quart", "pint": "US pint", "cup": "US cup", "fluid_ounce": "US fluid ounce",
    "tablespoon": "US tablespoon", "teaspoon": "US teaspoon", "ton": "US short ton of 2000 lb",
    "barrel": "US liquid barrel of 31.5 gal, not the oil_barrel of 42 gal",
    "month": "average month of 30.4375 days", "year": "Julian year of 365.25 days", "calorie": "4.184 J",
}  # fmt: skip
_CALENDAR = {"month", "year", "decade", "century", "millennium"}
_ANGLES = {"revolution", "turn", "revolutions_per_minute", "degree", "radian", "revolutions_per_second", "cycle"}


def _check(source: pint.Unit, from_unit: str, target: pint.Unit, to_unit: str) -> None:
    from atlas_standard_tools._unit_names import UnitError

    if source.dimensionality != target.dimensionality:
        raise UnitError(_mismatch(from_unit, source, to_unit, target))
    for unit, text in ((source, from_unit), (target, to_unit)):
        names = _names(unit)
        if names.keys() & _SCALES - {"kelvin", "degree_Rankine"} and not _is_scale(names):
            raise UnitError(f"{text!r} puts a temperature scale into a product; write delta_degC or delta_degF there")
    a, b = _names(source).keys(), _names(target).keys()
    if any("hertz" in n for n in {*a, *b}) and bool(a & _ANGLES) != bool(b & _ANGLES):
        # pint takes a turn as 2 pi without a unit, and so 60 rpm as 6.28 Hz; people mean 1 Hz.
        raise UnitError(f"{from_unit!r} and {to_unit!r} count turns and cycles; 1 Hz is 60 rpm, or 1 turn/second")


def _note(source: pint.Unit, target: pint.Unit) -> str:
    a, b = _names(source).keys(), _names(target).keys()
    named = sorted((a | b) & _CUSTOMARY.keys())
    if not named or a == b or (a | b) <= _CALENDAR:
        return ""
    return f" ({'; '.join(f'{n} = {_CUSTOMARY[n]}' for n in named)})"


def _mismatch(from_unit: str, source: pint.Unit, to_unit: str, target: pint.Unit) -> str:
    return (
        f"{from_unit!r} measures {_measured(source)} and {to_unit!r} measures {_measured(target)}, so one can't be "
        "converted to the other; choose two units of one kind"
    )


def _measured(unit: pint.Unit) -> str:
    names = [f"{n.strip('[]')}{'' if p == 1 else f'^{p}'}" for n, p in unit.dimensionality.items()]
    return " * ".join(names) or "a plain number or angle"
