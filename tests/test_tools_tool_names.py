from __future__ import annotations

import pytest

from atlas_core.errors import ToolDefinitionError
from atlas_core.names import tool_form
from atlas_core.tools.tool_names import check_name


@pytest.mark.parametrize(
    "name", ["a", "calendar.add", "files/read file", "x" * 128, "A-b_c:1", "_private", "9lives", "a b c", "a."]
)
def test_names_of_discovery_sources_are_usable(name: str) -> None:
    """Letters, digits and the signs that servers use, up to 128 characters."""
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " a",
        "a ",
        "a  b",
        "a\n",
        "a\tb",
        "größe",
        "ｃalculator",
        "саlc",
        "a*",
        "a?",
        "a[b]",
        "-a",
        ".a",
        "x" * 129,
        None,
        3,
    ],
    ids=repr,
)
def test_other_names_are_refused(name: object) -> None:
    """Look-alikes of other alphabets, patterns and stray blanks; the error says what is allowed."""
    with pytest.raises(ToolDefinitionError, match=r"tool name .* is not usable \(here\); use 1 to 128") as caught:
        check_name(name, owner="here")
    assert len(str(caught.value)) < 300


def test_case_and_dashes_make_no_difference() -> None:
    """These are the names that settings can't tell apart; a dot makes a difference."""
    assert tool_form("Read-File") == tool_form("read_file") == "read_file"
    assert tool_form("read.file") != tool_form("read_file")
