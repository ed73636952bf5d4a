"""How names compare and what is suggested."""

from __future__ import annotations

import pytest

from atlas_core.names import did_you_mean, find_name, nearest, same_name


@pytest.mark.parametrize("name", ["my-plugin", "my_plugin", "My.Plugin", " MY--PLUGIN "])
def test_spellings_of_one_name(name: str) -> None:
    """Case 100: dashes, underscores, dots and case are one."""
    assert same_name(name) == "my_plugin"


def test_an_exact_key_wins_over_an_equal_one() -> None:
    """Two keys that compare equal are told apart by their spelling."""
    keys = {"a-b": 1, "a_b": 2}
    assert find_name("a_b", keys) == "a_b"
    assert find_name("A.B", keys) == "a-b"
    assert find_name("c", keys) is None


def test_suggestions() -> None:
    """The nearest first, or the list of what there is."""
    assert nearest("get_wether", ["get_time", "get_weather", "send"]) == ["get_weather", "get_time"]
    assert did_you_mean("opnai", ["openai", "x"]) == "did you mean 'openai'?"
    assert did_you_mean("zzz", ["b", "a"], what="installed") == "installed: a, b"
    assert did_you_mean("zzz", [], what="installed") == "none is installed"
    assert did_you_mean("zzz", ["b", "a"], many="profiles") == "profiles: a, b"
    assert did_you_mean("zzz", [], many="profiles") == "there are no profiles"
    assert did_you_mean("zzz", [f"n{i:02}" for i in range(30)]).endswith("n19, ...")
