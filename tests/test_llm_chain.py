"""Which connections a profile may use, told from settings alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas_core.llm.chain import ConnectionChain, variables_of
from atlas_core.settings.loader import load_settings, settings_from_mapping


def chain(connections: dict[str, dict[str, Any]], profile: dict[str, Any]) -> ConnectionChain:
    """Follow the connection of a profile `one`."""
    ai = {
        "connections": {name: {"backend": "b", **table} for name, table in connections.items()},
        "agents": {"profiles": {"connections": {"one": profile}}},
    }
    loaded = settings_from_mapping({"ai": ai}, defaults=False)
    return ConnectionChain.of_profile(loaded, *loaded.profile("one"))


def test_fallbacks_are_followed_nearest_first_and_each_once() -> None:
    """As the kernel asks them: a circle ends, names compare loosely, the spelling is the settings'."""
    found = chain(
        {
            "main": {"fallback": ["Near", "near-2"], "requests_per_minute": 5},
            "near": {"fallback": ["far", "main"], "prices": {"input": 1, "output": 2}},
            "near_2": {"key_env": "ATLAS_TEST_NO_SUCH"},
            "far": {"requests_per_minute": 0.5},
            "idle": {},
        },
        {"connection_name": "MAIN"},
    )
    assert (found.name, list(found.tables)) == ("main", ["main", "near", "near_2", "far"])
    assert found.first is found.tables["main"]
    assert found.fallbacks == tuple(found.tables[name] for name in ("near", "near_2", "far"))
    assert found.requests_per_minute == {"main": 5, "far": 0.5}
    assert found.prices == {"near": {"input": 1, "output": 2}}
    assert found.variables == {"ATLAS_TEST_NO_SUCH": False}
    assert (found.problems, found.warnings) == ((), ())


def test_the_only_connection_needs_no_name() -> None:
    """With one there is no question; with several the key to set is told."""
    assert chain({"lone": {}}, {}).name == "lone"
    found = chain({"a": {}, "b": {}}, {})
    assert (found.name, found.first, found.fallbacks, found.variables) == ("", None, (), {})
    assert found.problems == (
        "the profile names no connection (key ai.agents.profiles.connections.one.connection_name)",
    )


def test_a_name_that_is_not_there_is_told_with_its_key(tmp_path: Path) -> None:
    """The profile's own, and each fallback's with the line that holds it; what there is stays."""
    found = chain({"main": {}}, {"connection_name": "mian", "max_cost": 1.0})
    assert (found.name, found.first, found.warnings) == ("mian", None, ())
    (problem,) = found.problems
    assert "there is no connection 'mian' (key ai.agents.profiles.connections.one.connection_name" in problem
    (tmp_path / "s.toml").write_text(
        '[default.ai.connections.main]\nbackend = "b"\nfallback = ["a", "other", "b", "a"]\n'
        '[default.ai.connections.other]\nbackend = "b"\n'
    )
    found = ConnectionChain.of(load_settings(tmp_path / "s.toml"), "main")
    assert list(found.tables) == ["main", "other"]
    assert [problem[:24] for problem in found.problems] == ["there is no connection '"] * 2
    assert "(key ai.connections.main.fallback, set in " in found.problems[0]
    assert "s.toml:3)" in found.problems[0]


@pytest.mark.parametrize(
    ("main", "other", "problem", "warning"),
    [
        pytest.param({"prices": {}}, {"prices": {}}, "", "", id="both have prices"),
        pytest.param({}, {"prices": {}}, "connection 'main' has no prices", "", id="the first has none"),
        pytest.param({"prices": {}}, {}, "", "counts nothing of fallback 'other'", id="the fallback has none"),
    ],
)
def test_a_bound_of_cost_needs_prices(main: dict[str, Any], other: dict[str, Any], problem: str, warning: str) -> None:
    """Without the first connection's no agent is made; without a fallback's its requests are not counted."""
    connections = {"main": {"fallback": ["other"], **main}, "other": other}
    found = chain(connections, {"connection_name": "main", "max_cost": 0.5})
    assert problem in "".join(found.problems)
    assert warning in "".join(found.warnings)
    assert (len(found.problems), len(found.warnings)) == (bool(problem), bool(warning))
    free = chain(connections, {"connection_name": "main"})
    assert (free.problems, free.warnings) == ((), ())


def test_variables_are_found_however_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names and whether they are set, never a value; a key in a variable's place is masked."""
    monkeypatch.setenv("ATLAS_TEST_KEY", "sk-TESTSECRET123")
    monkeypatch.setenv("ATLAS_TEST_EMPTY", "")
    found = variables_of(
        {
            "api_key_env": "ATLAS_TEST_KEY",
            "headers": {"X-Key-env": "ATLAS_TEST_EMPTY", "X-Plain": "text"},
            "token_ENV": "a key/with=signs",
            "other_env": "",
            "number_env": 3,
            "base_url": "http://127.0.0.1",
        }
    )
    assert found == {"ATLAS_TEST_KEY": True, "ATLAS_TEST_EMPTY": False, "***": False}
