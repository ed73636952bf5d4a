from __future__ import annotations

import pytest
from atlas_offline.lookalikes import calculates, lookalike

from atlas_core import ToolSchema


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What is 12/05/2024?", "a date"),
        ("2024-05-12", "a date"),
        ("2024/05/12", "a date"),
        ("5.12.2024", "a date"),
        ("12/05/24", "a date"),
        ("3 March plus 2", "a date"),
        ("March 3, 2024", "a date"),
        ("call +49 30 1234567", "a phone number"),
        ("(555) 123-4567", "a phone number"),
        ("555-123-4567", "a phone number"),
        ("555-1234", "a phone number"),
        ("978-3-16-148410-0", "an ISBN"),
        ("192.168.0.1", "an IP address"),
        ("3.11.7", "a version number"),
        ("version 2.0 - 1.9", "a version number"),
        ("https://example.com/1+1", "a URL"),
        ("bob1+2@example.com", "an e-mail address"),
        ("123e4567-e89b-12d3-a456-426614174000", "an id"),
        ("123-45-6789", "an id"),
        ("4111 1111 1111 1111", "an id"),
        ("order 5-3", "an id"),
        ("issue #12 - 3", "an id"),
        ("route 66", "an id"),
        ("x + 2 = 5", "algebra"),
        ("3*x - 2", "algebra"),
        ("solve 3 - 2", "algebra"),
        ("2x", "algebra"),
        ("2 + 2 = 5", "algebra"),
        ("10:30 - 9:15", "a time of day"),
        ("16:9", "a ratio or score"),
        ("24/7", "a way of speaking"),
        ("1990-2000", "a range of years"),
        ("1990 - 2000", "a range of years"),
        ("1990 – 2000?", "a range of years"),
        ("90210-1234", "a ZIP code"),
    ],
)
def test_a_number_that_is_none_to_calculate_with_is_named(text: str, kind: str) -> None:
    """Dates, numbers that name something, versions, addresses and algebra are told by their form."""
    assert f"reads as {kind}" in (lookalike(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "What is 10-3?",
        "10 / 4",
        "2 + 2 = ?",
        "2 + 2 =",
        "2e3 + 1",
        "2 * pi",
        "round 3.14159 to 2 decimals",
        "5 marbles plus 3 marbles",
        "sqrt(144) * 5",
        "1,234.56 + 7",
        "calculate 555-1234",
        "compute 24/7",
        "what is 1990 - 2000",
        "2000 - 1990",
        "1000 - 1500",
        "(1 + 2) * 3",
    ],
)
def test_arithmetic_is_left_alone(text: str) -> None:
    """Plain arithmetic, and what is asked for by a word such as "calculate", is not refused."""
    assert lookalike(text) is None


def test_a_call_calculates_by_the_name_of_tool_or_argument() -> None:
    """A calculator, or an argument named `expression`, does arithmetic on text; a date tool does not."""
    assert calculates(ToolSchema(name="calculator_tool"), {"q": "1"})
    assert calculates(ToolSchema(name="solver"), {"expression": "1"})
    assert not calculates(ToolSchema(name="date_arithmetic"), {"date": "2024-01-01"})
