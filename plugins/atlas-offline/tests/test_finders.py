from __future__ import annotations

import pytest
from atlas_offline.finders import FINDERS, find_dates, find_numbers


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("email", "write to bob.x+y@example.co.uk.", ["bob.x+y@example.co.uk"]),
        ("email", "no address @ here", []),
        ("url", "see https://example.com/a?b=1, please", ["https://example.com/a?b=1"]),
        ("path", "read notes.txt and docs/a.md.", ["notes.txt", "docs/a.md"]),
        ("path", "list ./src", ["./src"]),
        ("path", "open /etc/hosts", ["/etc/hosts"]),
        ("path", "version 3.11", []),
        ("path", "https://example.com/a", []),
    ],
)
def test_values_are_found_by_their_form(kind: str, text: str, expected: list[str]) -> None:
    """Each value is found whole, without the full stop after it, and where it stands."""
    found = FINDERS[kind](text)
    assert [value for value, _ in found] == expected
    assert all(text[start:end] == value for value, (start, end) in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2024-02-29", ["2024-02-29"]),
        ("on 2023-02-29", []),
        ("on 5 March 2024", ["2024-03-05"]),
        ("on March 5th, 2024", ["2024-03-05"]),
        ("on the 1st of Sept 2024", ["2024-09-01"]),
        ("on 12/05/2024", []),
        ("at 2024-01-15T10:00:00Z", ["2024-01-15T10:00:00Z"]),
    ],
)
def test_only_dates_with_one_reading_are_found(text: str, expected: list[str]) -> None:
    """ISO dates and dates with a month's name are read; day or month first is not guessed."""
    assert [value for value, _ in find_dates(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port 8080, limit 1,000 and -2.5", ["8080", "1,000", "-2.5"]),
        ("five of them", ["5"]),
        ("f(5,100) of 5,100", ["5", "100", "5,100"]),
        ("f(5,000)", []),
        ("3.11.7 and 10:30 and 12/05 and 5km and 10-3", []),
    ],
)
def test_only_numbers_that_stand_alone_are_found(text: str, expected: list[str]) -> None:
    """Parts of versions, times, dates and ranges are no numbers of their own."""
    assert [value for value, _ in find_numbers(text)] == expected
