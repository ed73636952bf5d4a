from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.http.retry_after import MOST_SECONDS, demanded_wait

NOW = "Mon, 01 Dec 2025 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "86400"}, 86400),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9" * 5000}, MOST_SECONDS),
        ({"retry-after": "3, 8"}, 8),
        ({"retry-after": "Mon, 01 Dec 2025 10:00:30 GMT", "date": NOW}, 30),
        ({"retry-after": "Mon, 01 Dec 2025 10:00:30 GMT, 40", "date": NOW}, 40),
        ({"retry-after": "Mon, 01 Dec 2025 09:00:00 GMT", "date": NOW}, 0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MOST_SECONDS),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, MOST_SECONDS),
        ({"retry-after": "Fri, 99 Dec 2025 23:59:59 GMT"}, None),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "9", "retry-after-ms": "x"}, 9),
    ],
)
def test_a_demanded_wait_is_read_or_ignored(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, dates, several values, and absurd ones (case 62)."""
    assert demanded_wait(headers) == seconds


def test_a_date_without_the_servers_clock_counts_from_ours() -> None:
    """Without a `date` header the local clock serves."""
    wait = demanded_wait({"retry-after": formatdate(usegmt=True, timeval=4_000_000_000)})
    assert wait is not None
    assert wait > 1_000_000


@given(st.text(), st.text())
def test_no_value_makes_the_reading_fail(value: str, date: str) -> None:
    """Whatever the headers hold, the answer is a number in bounds or None."""
    wait = demanded_wait({"retry-after": value, "date": date, "retry-after-ms": date})
    assert wait is None or 0 <= wait <= MOST_SECONDS
