from __future__ import annotations

import contextlib
import re
import time

import pytest
from atlas_standard_tools._spoken_units import read_conversion
from atlas_standard_tools._unit_names import UnitError, read_unit
from atlas_standard_tools.units import convert, unit_converter
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_core import ToolError

CONVERTED = [
    (20, "degC", "degF", "68 °F"),
    (20, "celsius", "fahrenheit", "68 °F"),
    (20, "°C", "°F", "68 °F"),
    (20, "C", "F", "68 °F"),
    (20, "c", "kelvin", "293.15 K"),
    (32, "Fahrenheit", "Celsius", "0 °C"),
    (98.6, "degrees fahrenheit", "degrees celsius", "37 °C"),
    (-40, "F", "C", "-40 °C"),
    (0, "K", "C", "-273.15 °C"),
    (5, "delta_degC", "delta_degF", "9 Δ°F"),
    (5, "miles", "km", "8.04672 km"),
    (5, "MILES", "KM", "8.04672 km"),
    (8.04672, "Km", "mi", "5 mi"),
    (3, "meters", "feet", "9.84251968504 ft"),
    (1, "foot", "in", "12 in"),
    (0.1, "m", "cm", "10 cm"),
    (1, "nautical miles", "m", "1852 m"),
    (1, "light year", "km", "9460730472580 km"),
    (100, "km/h", "mph", "62.1371192237 mi/h"),
    (60, "miles per hour", "kilometers per hour", "96.56064 km/h"),
    (1, "feet per second squared", "m/s^2", "0.3048 m/s²"),
    (1, "kg", "lbs", "2.20462262185 lb"),
    (1, "stone", "pounds", "14 lb"),
    (1, "KG", "g", "1000 g"),
    (16, "oz", "lb", "1 lb"),
    (1, "kWh", "J", "3600000 J"),
    (1, "kwh", "MJ", "3.6 MJ"),
    (1, "kilowatt hour", "kilowatt-hours", "1 kWh"),
    (1, "Cal", "kJ", "4.184 kJ"),
    (1, "MiB", "bytes", "1048576 B"),
    (1, "GB", "MB", "1000 MB"),
    (1, "KB", "bytes", "1000 B"),
    (8, "Mb", "MB", "1 MB"),
    (100, "Mbps", "MB/s", "12.5 MB/s"),
    (1, "square feet", "m²", "0.09290304 m²"),
    (1, "sq ft", "m2", "0.09290304 m²"),
    (1, "m^2", "square centimeters", "10000 cm²"),
    (1, "cubic meters", "L", "1000 L"),
    (1, "kg*m^2/s^2", "joule", "1 J"),
    (1, "N/m^2", "Pa", "1 Pa"),
    (1, "J/(kg*K)", "J/kg/K", "1 J/kg/K"),
    (1, "m**2", "m²", "1 m²"),
    (1, "per second", "Hz", "1 Hz"),
    (180, "degrees", "radians", "3.14159265359 rad"),
    (60, "rpm", "turn/second", "1 turn/s"),
    (14.5, "PSI", "bar", "0.999739807509 bar"),
    (12, "months", "years", "1 years"),
    (90, "min", "hours", "1.5 h"),
    (1, "µm", "nm", "1000 nm"),
    (5, '"', "cm", "12.7 cm"),
    (1, "GPA", "MPa", "1000 MPa"),
    (1, "khz", "HZ", "1000 Hz"),
    (1, "KPA", "pa", "1000 Pa"),
    (1, "KILOMETERS", "Metres", "1000 m"),
    (3, "FT", "YD", "1 yd"),
    (1, "MIN", "SEC", "60 s"),
    (1, "MMHG", "pa", "133.322387415 Pa"),
    (1, "ac", "HA", "0.404687260987 ha"),
    (1, "mAh", "C", "3.6 C"),
    (1000, "mWh", "Wh", "1 Wh"),
    (1, "MWh", "KWH", "1000 kWh"),
    (1, "mah", "mAh", "1 mAh"),
    (1e300, "km", "m", "1e+303 m"),
    (1e308, "light year", "nm", "9.46073047258e+332 nm"),
    (1e-320, "m", "km", "1e-323 km"),
    (0, "m", "km", "0 km"),
    (-5, "m", "cm", "-500 cm"),
]


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    CONVERTED,
    ids=[f"{v} {s} in {t}" for v, s, t, _ in CONVERTED],
)
def test_values_are_converted_exactly(value: float, source: str, target: str, result: str) -> None:
    """The factor is exact, the spelling free, the result short."""
    assert unit_converter(value, source, target) == result


@pytest.mark.parametrize(
    ("source", "target", "note"),
    [
        ("gallon", "L", "3.785411784 L (gallon = US gallon)"),
        ("cups", "ml", "236.5882365 mL (cup = US cup)"),
        ("ton", "kg", "907.18474 kg (ton = US short ton of 2000 lb)"),
        ("month", "days", "30.4375 days (month = average month of 30.4375 days)"),
        ("imperial gallon", "L", "4.54609 L"),
        ("metric ton", "kg", "1000 kg"),
    ],
)
def test_a_size_that_differs_by_country_is_said(source: str, target: str, note: str) -> None:
    """The result tells which gallon, cup, ton or month was taken."""
    assert convert(1, source, target) == note


REFUSED = [
    (5, "kg", "miles", "'kg' measures mass and 'miles' measures length"),
    (5, "m/s", "kg*m", "measures length * time^-1"),
    (1, "radian", "m", "a plain number or angle"),
    (5, "metter", "km", "did you mean 'meter'?"),
    (5, "zorkmids", "km", "no known unit"),
    (5, "m", "dollars", "is a currency"),
    (5, "$", "m", "is no unit"),
    (5, "USD", "EUR", "is a currency"),
    (5, "10 km", "m", "put the number into 'value'"),
    (5, "ampere second", "coulomb", "write 'ampere*second'"),
    (5, "mb", "MB", "'MB' (megabyte) or 'Mb' (megabit)"),
    (5, "kb", "MB", "'kB' (kilobyte)"),
    (5, "gb", "MB", "gigabyte"),
    (5, "B", "b", "'byte' or 'bit'"),
    (5, "MM", "m", "'mm' (millimetre) or 'Mm' (megametre)"),
    (5, "Ml", "l", "millilitre"),
    (5, "MPA", "bar", "write 'megapascal' or 'millipascal'"),
    (5, "mhz", "Hz", "write 'megahertz' or 'millihertz'"),
    (5, "mw", "W", "write 'megawatt' or 'milliwatt'"),
    (5, "NM", "m", "'nmi' (nautical mile)"),
    (5, "KN", "m/s", "'kN' (kilonewton)"),
    (5, "degC/min", "degF/min", "write delta_degC"),
    (5, "degC", "m*degC", "measures"),
    (60, "rpm", "Hz", "1 Hz is 60 rpm"),
    (-500, "C", "F", "below absolute zero"),
    (-1, "kelvin", "C", "below absolute zero"),
    (float("inf"), "m", "km", "no finite number"),
    (float("nan"), "m", "km", "no finite number"),
    (1, "", "m", "is empty"),
    (1, "m", "  ", "is empty"),
    (1, "m/", "m", "no known unit"),
    (1, "m//s", "m", "no known unit"),
    (1, "*", "m", "no known unit"),
    (1, "m^2.5", "m", "is no unit"),
    (1, "__class__", "m", "no known unit"),
    (1, "m;import os", "m", "is no unit"),
    (1, "lambda: 1", "m", "is no unit"),
]


@pytest.mark.parametrize(
    ("value", "source", "target", "text"), REFUSED, ids=[f"{v} {s} in {t}" for v, s, t, _ in REFUSED]
)
def test_what_can_t_be_converted_is_explained(value: float, source: str, target: str, text: str) -> None:
    """The refusal names the spelling and what to write instead."""
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        unit_converter(value, source, target)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "unit",
    [
        "m**9999999",
        "m^999",
        "m" * 60,
        "m" * 10**6,
        "*".join("m" * 9),
        "m^" * 25,
        "((((m))))",
        "m " * 25,
        "e" * 55,
        "9" * 50,
    ],
    ids=lambda u: f"{u[:12]}...{len(u)}",
)
def test_hostile_units_are_refused_at_once(unit: str) -> None:
    """Length, factors and powers are bounded before the library sees them."""
    read_unit("m")
    began = time.perf_counter()
    with pytest.raises(UnitError):
        convert(1, unit, "m")
    assert time.perf_counter() - began < 1


_KINDS = [
    ["m", "km", "mile", "foot", "inch", "nautical_mile"],
    ["kg", "g", "pound", "ounce", "stone"],
    ["degC", "degF", "kelvin"],
    ["L", "gallon", "cup", "m^3"],
    ["J", "kWh", "calorie"],
    ["byte", "MiB", "Mb", "GB"],
    ["km/h", "mph", "m/s", "knot"],
]


@given(st.data(), st.integers(1, 10**6).map(lambda n: n / 100))
@settings(max_examples=200, deadline=None)
def test_there_and_back_again_is_the_same(data: st.DataObject, value: float) -> None:
    """A value converted and converted back is itself, to the digits that are shown."""
    kind = data.draw(st.sampled_from(_KINDS))
    a, b = data.draw(st.sampled_from(kind)), data.draw(st.sampled_from(kind))
    there = float(convert(value, a, b).split()[0])
    back = float(convert(there, b, a).split()[0])
    assert back == pytest.approx(value, rel=1e-9, abs=1e-7)


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_as_a_unit_is_a_result_or_a_refusal(a: str, b: str) -> None:
    """No other error escapes."""
    with contextlib.suppress(UnitError):
        assert convert(1, a, b)


@given(st.text("kmsgJ/*^()2 -°²per", max_size=20), st.text("kmsgJ/*^()2 -°²per", max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_jumble_of_units_is_a_result_or_a_refusal(a: str, b: str) -> None:
    """The same for text that looks like units."""
    with contextlib.suppress(UnitError):
        assert convert(1, a, b)


READ = [
    ("Convert 5 miles to km", 5, "miles", "km"),
    ("convert 5km into miles please", 5, "km", "miles"),
    ("How many feet are in 3 meters?", 3, "meters", "feet"),
    ("how many feet are there in a mile", 1, "mile", "feet"),
    ("how many inches in a foot?", 1, "foot", "inches"),
    ("how many seconds in an hour", 1, "hour", "seconds"),
    ("how many cups in half a gallon", 0.5, "gallon", "cups"),
    ("how many minutes are 2.5 hours", 2.5, "hours", "minutes"),
    ("20 celsius in fahrenheit", 20, "celsius", "fahrenheit"),
    ("what is 72°F in °C", 72, "°F", "°C"),
    ("what's 98.6 degrees fahrenheit in celsius?", 98.6, "degrees fahrenheit", "celsius"),
    ("convert 20 C to F", 20, "C", "F"),
    ("-40 C to F", -40, "C", "F"),
    ("minus 40 fahrenheit to celsius", -40, "fahrenheit", "celsius"),
    ("twenty degrees celsius in fahrenheit", 20, "degrees celsius", "fahrenheit"),
    ("what is two hundred and five pounds in kg", 205, "pounds", "kg"),
    ("100 km/h in mph", 100, "km/h", "mph"),
    ("65 miles per hour in kilometers per hour", 65, "miles per hour", "kilometers per hour"),
    ("1,500 m in km", 1500, "m", "km"),
    ("how far is 26.2 miles in kilometers?", 26.2, "miles", "kilometers"),
    ("5 in in cm", 5, "in", "cm"),
    ("what's 12 square feet in square meters", 12, "square feet", "square meters"),
    ("3 m2 to ft2", 3, "m2", "ft2"),
    ("1 TB in GB", 1, "TB", "GB"),
    ("convert 90 degrees to radians", 90, "degrees", "radians"),
    ("2 weeks in days", 2, "weeks", "days"),
    ("how many months in a year", 1, "year", "months"),
    ("5 km = ? miles", 5, "km", "miles"),
    ("5 pounds is how many kilograms", 5, "pounds", "kilograms"),
    ("5 gallons in miles", 5, "gallons", "miles"),
]


@pytest.mark.parametrize(("question", "value", "source", "target"), READ, ids=[q for q, *_ in READ])
def test_questions_of_conversion_are_read(question: str, value: float, source: str, target: str) -> None:
    """Both units and the number come out as they were written."""
    assert read_conversion(question) == {"value": value, "from_unit": source, "to_unit": target}


LEFT = [
    "how many days in a year",
    "how many days are in a month",
    "how many weeks in a year",
    "convert 20 degrees to fahrenheit",
    "what is 5 in binary",
    "5 people in rooms",
    "5 cats in days",
    "3 to 5",
    "10 dollars in euros",
    "100 USD in EUR",
    "2024-02-29 to 2024-03-01",
    "5 feet 10 inches in cm",
    "5 mb to kb",
    "convert 5 to km",
    "convert miles to km",
    "translate 5 miles to french",
    "I ran 5 miles in 40 minutes",
    "what is 5 minutes to midnight",
    "what time is it in Tokyo",
    "how many people are in 3 meters",
    "what is 007 m in km",
    "what is 1.2.3 m in km",
    "how many days between 2024-01-01 and 2024-03-01",
    "what is 2 + 2",
    "",
    "x" * 1000,
    "twenty twenty m in km",
]


@pytest.mark.parametrize("question", LEFT, ids=[repr(q[:40]) for q in LEFT])
def test_other_questions_are_left_alone(question: str) -> None:
    """No conversion, an unclear unit, or a length of time that depends on the calendar."""
    assert read_conversion(question) is None
