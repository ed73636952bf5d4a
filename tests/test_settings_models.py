"""`atlas_core.settings.models`: the kernel's own keys."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from atlas_core.settings.models import (
    AgentProfileSettings,
    AtlasSettings,
    ConnectionSettings,
    ExecutorChoice,
    PermissionsSettings,
    PluginsSettings,
    ProfilePlugins,
)


def test_a_profile_is_made_directly() -> None:
    """A program makes a profile from keyword arguments, with the documented defaults for the rest."""
    profile = AgentProfileSettings(name="x", tools=["a"])
    assert profile.tools == ("a",)
    assert profile.connection_name == ""
    assert profile.type == "react"
    assert profile.executor == ExecutorChoice(name="parallel")
    assert (profile.max_iterations, profile.max_execution_time_seconds) == (10, 60)
    assert profile.permissions is None
    assert profile.plugins == ProfilePlugins()


def test_models_import_without_dynaconf() -> None:
    """Importing the models loads pydantic and no settings engine."""
    code = "import sys, atlas_core.settings.models; print('dynaconf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("process", ExecutorChoice(name="process")),
        ({"name": "process", "workers": 2}, ExecutorChoice(name="process", options={"workers": 2})),
        (ExecutorChoice(name="process"), ExecutorChoice(name="process")),
    ],
    ids=["a name", "a table", "a choice"],
)
def test_an_executor_is_a_name_or_a_table(given: Any, expected: ExecutorChoice) -> None:
    """Both forms become one; the table's other keys are the executor's own."""
    assert AgentProfileSettings(executor=given).executor == expected


def test_a_single_text_is_one_name() -> None:
    """A text where a list of names stands is one name, not its letters. (case 100)"""
    assert AgentProfileSettings(tools="calculator_tool").tools == ("calculator_tool",)
    assert ProfilePlugins.model_validate({"disable": "my-plugin"}).disable == ("my-plugin",)
    assert PluginsSettings.model_validate({"enabled": "my-plugin"}).enabled == ("my-plugin",)


def test_infinity_takes_a_limit_away() -> None:
    """TOML has no null: `inf` seconds mean no limit."""
    profile = AgentProfileSettings(max_execution_time_seconds=float("inf"), tool_timeout_seconds=float("inf"))
    assert profile.max_execution_time_seconds is None
    assert profile.tool_timeout_seconds is None


def test_absent_permissions_differ_from_empty_ones() -> None:
    """`allow = []` allows nothing; without `allow` all that is offered is allowed."""
    assert PermissionsSettings.model_validate({"allow": []}).allow == ()
    assert PermissionsSettings.model_validate({}).allow is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 3},
        {"tools": [1]},
        {"tools": [""]},
        {"tools": "a, b"},
        {"tools": 3},
        {"type": ""},
        {"max_iterations": 0},
        {"max_iterations": True},
        {"max_iterations": "3"},
        {"max_iterations": 2.0},
        {"max_execution_time_seconds": 0},
        {"max_execution_time_seconds": True},
        {"max_execution_time_seconds": float("nan")},
        {"max_execution_time_seconds": float("-inf")},
        {"max_tool_calls": -1},
        {"max_tokens": 0},
        {"executor": {}},
        {"executor": {"name": 3}},
        {"executor": {"name": ""}},
        {"executor": 3},
        {"permissions": {"alow": []}},
        {"plugins": {"enable": ["My-Plugin"], "disable": ["my_plugin"]}},
        {"options": 3},
        {"tool_calls": "auto", "unknown": 1},
    ],
    ids=repr,
)
def test_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    """Wrong kinds, values out of range, unknown keys and contradictions are errors."""
    with pytest.raises(ValidationError):
        AgentProfileSettings(**wrong)


def test_settings_are_immutable_to_the_bottom() -> None:
    """Neither fields nor tables nor the lists in them can be changed."""
    given = {"a": [1, {"b": 2}]}
    profile = AgentProfileSettings(options=given)
    settings = AtlasSettings.model_validate({"ai": {"connections": {"c": {"backend": "b", "x": {"y": 1}}}}})
    with pytest.raises(ValidationError):
        profile.name = "x"
    with pytest.raises(TypeError):
        profile.options["a"] = 1  # type: ignore[index]  # what is tried
    with pytest.raises(TypeError):
        settings.ai.connections["d"] = settings.ai.connections["c"]  # type: ignore[index]  # what is tried
    with pytest.raises(TypeError):
        (settings.ai.connections["c"].model_extra or {})["x"] = 2
    given["a"].append(3)
    assert profile.options == {"a": (1, {"b": 2})}
    assert isinstance(hash(settings), int)


def test_models_pass_through_validation() -> None:
    """A connection that is a model already is taken as it is."""
    connection = ConnectionSettings(backend="b")
    assert AtlasSettings.model_validate({"ai": {"connections": {"c": connection}}}).ai.connections["c"] == connection
    assert ConnectionSettings.model_validate(connection) is connection
    with pytest.raises(ValidationError):
        ConnectionSettings.model_validate(3)


def test_settings_survive_pickling_and_copying() -> None:
    """Frozen tables don't get in the way of pickle, copy and JSON."""
    settings = AtlasSettings.model_validate(
        {
            "plugins": {"options": {"p": {"a": [1]}}},
            "ai": {
                "connections": {"c": {"backend": "b", "x": {"y": [1]}}},
                "agents": {"profiles": {"connections": {"p": {"executor": {"name": "e", "n": 1}}}}},
            },
        }
    )
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert copy.deepcopy(settings) == settings
    assert AtlasSettings.model_validate(settings.model_dump()).plugins == settings.plugins
    assert '"y":[1]' in settings.model_dump_json()


def test_a_providers_own_keys_are_kept() -> None:
    """What the kernel does not know of a connection is the provider's, in a fresh plain dict each time."""
    connection = ConnectionSettings.model_validate({"backend": "b", "api_key_env": "X", "options": {"z": [1]}})
    assert connection.options == {"api_key_env": "X", "options": {"z": [1]}}
    connection.options["options"]["z"].append(2)
    assert connection.options["options"]["z"] == [1]
    assert ConnectionSettings(backend="b").options == {}


@pytest.mark.parametrize(
    "table",
    [
        {"api_key": "sk-TESTSECRET123"},
        {"token": "TESTSECRET"},
        {"password": "TESTSECRET"},
        {"headers": {"Authorization": "Bearer TESTSECRET"}},
        {"proxies": [{"password": "TESTSECRET"}]},
    ],
    ids=["key", "token", "password", "header", "proxy"],
)
def test_a_connection_refuses_a_literal_secret(table: dict[str, Any]) -> None:
    """A secret's value in a connection is an error that tells what to do and does not show it. (case 112)"""
    with pytest.raises(ValidationError) as caught:
        ConnectionSettings(backend="b", **table)
    assert "api_key_env" in str(caught.value)
    assert "TESTSECRET" not in str(caught.value) + repr(caught.value)


def _settings_with_secrets() -> AtlasSettings:
    return AtlasSettings.model_validate(
        {
            "plugins": {"options": {"p": {"github_token": "TESTSECRET", "env": {"API_KEY": "TESTSECRET"}}}},
            "ai": {
                "connections": {"c": {"backend": "b", "base_url": "https://u:TESTSECRET@h/?token=TESTSECRET"}},
                "agents": {
                    "profiles": {
                        "connections": {
                            "p": {
                                "options": {"password": "TESTSECRET"},
                                "executor": {"name": "e", "secret": "TESTSECRET"},
                            }
                        }
                    }
                },
            },
        }
    )


@pytest.mark.parametrize(
    "part",
    [
        lambda s: s,
        lambda s: s.plugins,
        lambda s: s.ai,
        lambda s: s.ai.connections["c"],
        lambda s: s.ai.agents.profiles,
        lambda s: s.ai.agents.profiles.connections["p"],
        lambda s: s.ai.agents.profiles.connections["p"].executor,
        copy.deepcopy,
        lambda s: pickle.loads(pickle.dumps(s)),
    ],
    ids=["all", "plugins", "ai", "connection", "profiles", "profile", "executor", "a copy", "an unpickled one"],
)
def test_no_repr_shows_a_secret(part: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Neither `repr` nor `str` nor a log line of any part shows a secret; a mask stands there. (case 112)"""
    value: BaseModel = part(_settings_with_secrets())
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").debug("settings: %s %r", value, value)
    for text in (repr(value), str(value), f"{value}", caplog.text):
        assert "***" in text
        assert "TESTSECRET" not in text
