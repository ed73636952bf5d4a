"""The list of cases is true."""

from __future__ import annotations

import pytest

from tests.cases import index


def test_the_list_is_up_to_date() -> None:
    """`python -m tests.cases.index` would change nothing."""
    assert index.PAGE.read_text(encoding="utf-8") == index.page()


@pytest.mark.parametrize(
    ("area", "number"), [(area, number) for area, numbers in index.AREAS.items() for number in numbers]
)
def test_each_case_of_a_finished_area_has_a_test(area: str, number: int) -> None:
    """A case without a test would be forgotten."""
    assert index.covered().get(number), f"no test names case {number} of {area}"


def test_mentions_are_read() -> None:
    """One, several, and with a letter for a part of one."""
    assert index.mentioned("Case 80: x. (cases 34, 36 and 68a)") == {34, 36, 68, 80}
    assert index.mentioned("in case it matters, 3 cases") == set()
