"""Which unit a spelling means: the common ones that pint lacks or reads otherwise, then pint's own, then any case."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pint

__all__ = ["UnitError", "is_plain", "read_unit", "registry"]


class UnitError(ValueError):
    """A unit is unknown, has several meanings, or can't be had from another; the text says what to write."""


MAX_LENGTH = 60
MAX_FACTORS = 8
MAX_POWER = 12

# Spellings, in lower case, of units that pint knows under another name.
_ALIASES = {
    "℃": "degC", "° c": "degC", "deg c": "degC", "degree c": "degC", "degrees c": "degC", "centigrade": "degC",
    "degrees celsius": "degC", "degree celsius": "degC", "degrees centigrade": "degC",
    "℉": "degF", "° f": "degF", "°f": "degF", "deg f": "degF", "degree f": "degF", "degrees f": "degF",
    "degrees fahrenheit": "degF", "degree fahrenheit": "degF", "farenheit": "degF", "fahrenheit": "degF",
    "degrees kelvin": "kelvin", "degrees rankine": "degR", "rankine": "degR",
    "kmh": "kilometer/hour", "km/h": "kilometer/hour", "kph": "kilometer/hour", "kmph": "kilometer/hour",
    "mi/h": "mile/hour", "mph": "mile/hour", "fps": "foot/second",
    "sqft": "foot**2", "sq ft": "foot**2", "sqm": "meter**2", "sq m": "meter**2", "sqkm": "kilometer**2",
    "cuft": "foot**3", "cu ft": "foot**3", "cbm": "meter**3", "cc": "centimeter**3",
    "fl oz": "fluid_ounce", "fl. oz": "fluid_ounce", "fluid ounces": "fluid_ounce", "fluid ounce": "fluid_ounce",
    "nautical miles": "nautical_mile", "nautical mile": "nautical_mile", "light years": "light_year",
    "light-years": "light_year", "lightyears": "light_year", "lightyear": "light_year", "light year": "light_year",
    "light-year": "light_year", "astronomical units": "astronomical_unit", "metric tons": "metric_ton",
    "metric ton": "metric_ton", "metric tonnes": "metric_ton", "short tons": "short_ton", "short ton": "short_ton",
    "long tons": "long_ton", "long ton": "long_ton", "us gallons": "gallon", "us gallon": "gallon",
    "imperial gallons": "imperial_gallon", "imperial gallon": "imperial_gallon", "uk gallons": "imperial_gallon",
    "imperial pints": "imperial_pint", "imperial pint": "imperial_pint", "uk pint": "imperial_pint",
    "uk pints": "imperial_pint", "lbs.": "pound", "lbs": "pound", "#": "pound", "kgs": "kilogram", "kms": "kilometer",
    "kilos": "kilogram", "kilo": "kilogram", "klick": "kilometer", "klicks": "kilometer", "gms": "gram",
    "cms": "centimeter", "mms": "millimeter", "mls": "milliliter", "mcg": "microgram", "msec": "millisecond",
    "msecs": "millisecond", "cal": "calorie", "kilocalories": "kilocalorie", "horse power": "horsepower",
    "sec": "second", "secs": "second", "hrs": "hour", "wks": "week", "wk": "week", "yrs": "year", "mins": "minute",
    "kilowatt hours": "kilowatt_hour", "kilowatt hour": "kilowatt_hour", "kilowatt-hours": "kilowatt_hour",
    "kilowatt-hour": "kilowatt_hour", "watt hours": "watt_hour", "inch": "inch", "ins": "inch", '"': "inch",
    "'": "foot", "foots": "foot", "mpg": "mile/gallon",
    "kg": "kilogram", "km": "kilometer", "cm": "centimeter", "ft": "foot", "yd": "yard", "mi": "mile", "in": "inch",
    "lb": "pound", "oz": "ounce",
    "gal": "gallon", "qt": "quart", "pt": "pint", "ac": "acre", "ha": "hectare", "hr": "hour", "min": "minute",
    "ev": "electron_volt", "ah": "ampere_hour", "db": "decibel",
}  # fmt: skip
# Spellings in their own case: here a capital makes another unit.
_EXACT = {
    "KB": "kilobyte", "kB": "kilobyte", "Mb": "megabit", "Gb": "gigabit", "Tb": "terabit", "Kbit": "kilobit",
    "Mbps": "megabit/second", "Gbps": "gigabit/second", "kbps": "kilobit/second", "MBps": "megabyte/second",
    "GBps": "gigabyte/second", "Kbps": "kilobit/second", "Cal": "kilocalorie", "PB": "petabyte",
    "PA": "pascal", "pa": "pascal", "Gal": "galileo", "mmhg": "mmHg", "MMHG": "mmHg", "mah": "milliampere_hour",
    "MAH": "milliampere_hour",
}  # fmt: skip
_UNCLEAR = {
    "mb": "'MB' (megabyte) or 'Mb' (megabit)", "gb": "'GB' (gigabyte) or 'Gb' (gigabit)",
    "tb": "'TB' (terabyte) or 'Tb' (terabit)", "kb": "'kB' (kilobyte) or 'kbit' (kilobit)",
    "Kb": "'kB' (kilobyte) or 'kbit' (kilobit)", "b": "'byte' or 'bit'", "mbps": "'Mbps' (megabit/second) or 'MB/s'",
    "gbps": "'Gbps' (gigabit/second) or 'GB/s'", "ML": "'mL' (millilitre) or 'megaliter'",
    "Ml": "'mL' (millilitre) or 'megaliter'", "MM": "'mm' (millimetre) or 'Mm' (megametre)",
    "M": "'m' (metre) or 'mol/L'", "MS": "'ms' (millisecond) or 'megasecond'",
    "NM": "'nm' (nanometre) or 'nmi' (nautical mile)",
    "KN": "'kN' (kilonewton) or 'knot'", "ma": "'mA' (milliampere)",
    "MW/H": "'MW' or 'MWh'",
}  # fmt: skip
_MONEY = re.compile(
    r"\$|€|£|¥|usd|eur|gbp|jpy|inr|cny|chf|dollars?|euros?|rupees?|yen|yuan|cents?|bitcoins?|btc", re.IGNORECASE
)
_TEMPERATURES = {"C": "degC", "F": "degF", "c": "degC", "f": "degF", "K": "kelvin", "k": "kelvin"}
_ALLOWED = re.compile(r"[\w\s°℃℉µμΩÅ²³'\"#./*^()·-]+")
_NAME = r"[^\s*/^²³·()]+"
_FACTOR = re.compile(
    rf"\s*(?P<op>\*(?!\*)|·|/|\bper\b)?\s*(?P<name>{_NAME}(?:\s+{_NAME})*)\s*(?P<power>(?:\*\*|\^)\s*-?\d+|²|³)?"
)
_SQUARES = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_AFTER_SQUARES = {"squared": 2, "cubed": 3}


@cache
def registry() -> pint.UnitRegistry[Any]:
    """Return the unit registry, made when first asked for (0.4 s); it computes with exact fractions."""
    from fractions import Fraction

    import pint

    return pint.UnitRegistry(non_int_type=Fraction)


def read_unit(text: str, *, other: str = "") -> pint.Unit:
    """Return the unit that a spelling means.

    Args:
        text: A name, symbol or product such as "km/h", "square feet", "kg*m^2/s^2".
        other: The unit at the conversion's other end; a bare C or F is a temperature if that is one.
    Raises:
        UnitError: It is unknown, has several meanings, or is no unit.
    """
    text = " ".join(text.split())
    if not text:
        raise UnitError("the unit is empty; write one such as 'km' or 'degC'")
    if len(text) > MAX_LENGTH or not _ALLOWED.fullmatch(text):
        raise UnitError(f"{text[:MAX_LENGTH]!r} is no unit; write one such as 'km/h', 'square feet' or 'kg*m^2'")
    if text in _TEMPERATURES and _is_temperature(other):
        return registry().Unit(_TEMPERATURES[text])
    whole = _named(text)
    return whole if whole is not None else _product(text)


def is_plain(text: str) -> bool:
    """Tell whether the spelling is the full name of a unit, in singular or plural, without a prefix."""
    parts = registry().parse_unit_name(text.strip().lower().replace(" ", "_"))
    return len(text.strip()) > 2 and bool(parts) and not parts[0][0]


def _is_temperature(text: str) -> bool:
    text = " ".join(text.split())
    if text in _TEMPERATURES:
        return True
    try:
        return bool(_named(text).dimensionality == {"[temperature]": 1})  # type: ignore[union-attr]  # None has none
    except (UnitError, AttributeError):
        return False


def _named(text: str) -> pint.Unit | None:
    """Return the unit of one spelling, or None if it is unknown as a whole."""
    if text in _UNCLEAR:
        raise UnitError(f"{text!r} has more than one meaning; write {_UNCLEAR[text]}")
    alias = _EXACT.get(text) or _ALIASES.get(text.lower())
    if alias:
        return registry().Unit(alias)
    name = text.replace(" ", "_").replace("-", "_")
    if not name.replace("°", "").replace("Å", "A").isidentifier() and name != "°":
        return None
    if found := registry().parse_unit_name(name):
        return registry().Unit("".join(found[0][:2]))
    return _any_case(text, name)


def _any_case(text: str, name: str) -> pint.Unit | None:
    """Look a spelling up in other cases, and refuse to choose: "mpa" may be millipascal or megapascal."""
    if len(name) > 30:
        return None
    spellings = {name, name.lower(), name[:1].swapcase() + name[1:]}
    found = {
        "".join(parts[:2])
        for spelling in spellings
        for parts in registry().parse_unit_name(spelling, case_sensitive=False)
    }
    if len(found) > 1:
        raise UnitError(f"{text!r} has more than one meaning; write {' or '.join(map(repr, sorted(found)))}")
    return registry().Unit(found.pop()) if found else None


def _product(text: str) -> pint.Unit:
    unit = registry().Unit("")
    if all(_known_word(word) for word in text.split()):
        raise UnitError(f"{text!r} needs a sign between its units; write {'*'.join(text.split())!r}")
    at, factors = 0, 0
    flat = _without_brackets(text)
    while at < len(flat):
        match = _FACTOR.match(flat, at)
        factors += 1
        if match is None or match.end() == at or factors > MAX_FACTORS or (match.group("op") is None and at > 0):
            raise _unknown(text)
        factor = _factor(match.group("name"), match.group("power") or "", text)
        unit = unit / factor if match.group("op") in {"/", "per"} else unit * factor
        at = match.end()
    return unit


def _known_word(word: str) -> bool:
    try:
        return _named(word) is not None
    except UnitError:
        return False


def _without_brackets(text: str) -> str:
    """Write `kg/(m*s)` as `kg/m/s`; deeper nesting is not read."""
    return re.sub(r"/\s*\(([^()]*)\)", lambda m: "/" + m.group(1).replace("*", "/"), text)


def _factor(name: str, power: str, text: str) -> pint.Unit:
    words = name.split()
    exponent = {"²": 2, "³": 3, "": 1}.get(power) or int(power.lstrip("*^ "))
    if "per" in words:
        at = words.index("per")
        if at and at + 1 < len(words):
            first = _factor(" ".join(words[:at]), "", text)
            return registry().Unit(first / _factor(" ".join(words[at + 1 :]), power, text))
    if len(words) > 1 and words[0].lower() in _SQUARES:
        exponent *= _SQUARES[words[0].lower()]
        words = words[1:]
    elif len(words) > 1 and words[-1].lower() in _AFTER_SQUARES:
        exponent *= _AFTER_SQUARES[words[-1].lower()]
        words = words[:-1]
    unit = _named(" ".join(words))
    if unit is None and (digits := re.fullmatch(r"([^\W\d]+)(\d)", "".join(words))):
        unit, exponent = _named(digits.group(1)), exponent * int(digits.group(2))
    if unit is None:
        raise _unknown(name, text)
    if abs(exponent) > MAX_POWER:
        raise UnitError(f"the power {exponent} of {name!r} is out of range; at most {MAX_POWER}")
    return registry().Unit(unit**exponent)


def _unknown(name: str, text: str = "") -> UnitError:
    where = f" in {text!r}" if text and text != name else ""
    if _MONEY.fullmatch(name.strip()):
        return UnitError(f"{name!r} is a currency{where}; rates change, so this tool does not convert money")
    if re.search(r"\d", name):
        return UnitError(f"{name!r} is no unit{where}; put the number into 'value' and only the unit here")
    close = _close(name)
    hint = f"did you mean {close!r}?" if close else "write its English name or symbol, such as 'mile' or 'km'"
    return UnitError(f"{name!r} is no known unit{where}; {hint}")


def _close(name: str) -> str | None:
    known: Iterable[str] = (n for n in {*dir(registry()), *_ALIASES} if len(n) > 2 and not n.startswith("_"))
    return next(iter(difflib.get_close_matches(name.lower()[:30].replace(" ", "_"), known, n=1, cutoff=0.7)), None)
