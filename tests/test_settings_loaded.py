"""`atlas_core.settings.loaded`: values with their origins. Covers parts of cases 106 and 112."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from atlas_core.errors import SettingsError
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.loader import load_settings, settings_from_mapping

_FILE = """\
[default.plugins.options.acme]
github_token = "TESTSECRET"
[default.ai.connections."gpt-4.1"]
backend = "openai"
api_key_env = "OPENAI_API_KEY"
base_url = "https://user:TESTSECRET@example.org/v1"
[default.ai.agents]
default_profile = "math-agent"
[default.ai.agents.profiles.connections.math_agent]
connection_name = "GPT_4_1"
system_prompt_file = "prompt.md"
executor = { name = "process", workers = 2 }
permissions = { deny = ["shell"] }
tools = [
  "a",
  "b",
]
[default.ai.agents.profiles.connections.named]
name = "Other"
"""


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSettings:
    """Give the settings of a file and a variable."""
    (tmp_path / "settings.toml").write_text(_FILE)
    (tmp_path / "prompt.md").write_text("Help.")
    return load_settings(folder=tmp_path, environ={"ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__NAMED__MAX_TOKENS": "9"})


@pytest.mark.parametrize(
    ("name", "found", "called"),
    [
        (None, "math_agent", "math_agent"),
        ("math_agent", "math_agent", "math_agent"),
        ("Math-Agent", "math_agent", "math_agent"),
        ("NAMED", "named", "Other"),
        ("default_assistant", "default_assistant", "default_assistant"),
    ],
    ids=["the default", "by its key", "in another spelling", "with a name of its own", "the packaged one"],
)
def test_a_profile_is_found(loaded: LoadedSettings, name: str | None, found: str, called: str) -> None:
    """A profile is found in any spelling and is called by its key unless it has a name."""
    key, profile = loaded.profile(name)
    assert (key, profile.name) == (found, called)


def test_a_connection_is_found_in_any_spelling(loaded: LoadedSettings) -> None:
    """`-`, `_` and `.` are one in names."""
    assert loaded.connection(loaded.profile()[1].connection_name)[0] == "gpt-4.1"


def test_an_unknown_name_is_an_error_with_a_suggestion(loaded: LoadedSettings) -> None:
    """The error names the nearest, and where the name was written if the caller knows."""
    with pytest.raises(SettingsError, match=r"no profile 'math_agnt'; did you mean 'math_agent'"):
        loaded.profile("math_agnt")
    with pytest.raises(SettingsError, match=r"no connection 'zzz'; connections: gpt-4\.1, offline"):
        loaded.connection("zzz")
    key = "ai.agents.profiles.connections.math-agent.connection_name"
    with pytest.raises(
        SettingsError, match=r"no connection 'gpt'.*set in settings\.toml:10\); did you mean 'gpt-4\.1'"
    ):
        loaded.connection("gpt", key=key)
    key = "ai.agents.profiles.connections.named.connection_name"
    with pytest.raises(SettingsError, match=r"no connection ''") as caught:
        loaded.connection("", key=key)
    assert caught.value.source is None


def test_an_unknown_default_profile_is_an_error_with_its_place() -> None:
    """A default profile that does not exist is told with key and origin."""
    loaded = settings_from_mapping({"ai": {"agents": {"default_profile": "x"}}})
    with pytest.raises(SettingsError, match=r"no profile 'x' \(key ai\.agents\.default_profile, set in the program\)"):
        loaded.profile()


def test_a_system_prompt_is_read_from_its_file(loaded: LoadedSettings) -> None:
    """The file is relative to the settings file; a profile without prompt has none."""
    assert loaded.system_prompt("math-agent") == "Help."
    assert loaded.system_prompt("named") is None
    (loaded.base_dir / "prompt.md").unlink()
    with pytest.raises(SettingsError, match=r"system_prompt_file, set in settings\.toml:11"):
        loaded.system_prompt("math_agent")


def test_problems_lists_dangling_names_and_files(tmp_path: Path) -> None:
    """A check finds every profile, connection and prompt file that is pointed to and missing."""
    (tmp_path / "settings.toml").write_text(
        "[default.ai.agents]\ndefault_profile = 'nope'\n[default.ai.agents.profiles.connections.a]\n"
        "connection_name = 'gone'\nsystem_prompt_file = 'gone.md'\n"
    )
    problems = load_settings(folder=tmp_path, environ={}).problems()
    assert [(p.key, p.source) for p in problems] == [
        ("ai.agents.default_profile", "settings.toml:2"),
        ("ai.agents.profiles.connections.a.connection_name", "settings.toml:4"),
        ("ai.agents.profiles.connections.a.system_prompt_file", "settings.toml:5"),
    ]
    assert settings_from_mapping({}, defaults=False).problems() == ()
    unnamed: dict[str, Any] = {"ai": {"agents": {"profiles": {"connections": {"p": {}}}}}}
    assert settings_from_mapping(unnamed, defaults=False).problems() == ()


@pytest.mark.parametrize(
    ("key", "origin"),
    [
        ("ai.agents.default_profile", "settings.toml:8"),
        ("AI.Agents.default-profile", "settings.toml:8"),
        ('ai.connections."gpt-4.1".backend', "settings.toml:4"),
        ("ai.connections.gpt_4_1.model", "built-in default"),
        ("ai.connections.offline.backend", "built-in default"),
        ("ai.connections.gpt_4_1", "settings.toml:3"),
        ("ai.agents.profiles.connections.math_agent.tools", "settings.toml:14"),
        ("ai.agents.profiles.connections.math_agent.executor", "settings.toml:12"),
        ("ai.agents.profiles.connections.math_agent.executor.workers", "settings.toml:12"),
        ("ai.agents.profiles.connections.math_agent.permissions.deny", "settings.toml:13"),
        ("ai.agents.profiles.connections.math_agent.permissions.allow", "built-in default"),
        (
            "ai.agents.profiles.connections.named.max_tokens",
            "variable ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__NAMED__MAX_TOKENS",
        ),
        ("ai.agents.profiles.connections.default_assistant.tools", "built-in default"),
        ("plugins.enabled", "built-in default"),
        ("plugins.options.acme.github_token", "settings.toml:2"),
    ],
)
def test_each_value_tells_where_it_came_from(loaded: LoadedSettings, key: str, origin: str) -> None:
    """File and line, a variable, or the built-in default; for any known key in any spelling. (case 106)"""
    assert loaded.origin(key) == origin


def test_an_items_origin_is_its_own_line(loaded: LoadedSettings) -> None:
    """An item of a list that spans lines has its own; what is not there has the list's."""
    path = ("ai", "agents", "profiles", "connections", "math_agent", "tools")
    assert loaded.origin_of((*path, 1)) == "settings.toml:16"
    assert loaded.origin_of((*path, 7)) == "settings.toml:14"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("ai.agents.default_profil", "unknown 'default_profil'; did you mean 'default_profile'"),
        ("aj", "there is no key 'aj'.*did you mean 'ai'"),
        ("zzz", "keys at the top: ai, plugins"),
        ("ai.connections.nope.model", "unknown 'nope'.*gpt-4.1, offline"),
        ("plugins.options.acme.nope", "unknown 'nope'"),
        ("plugins.enabled.x", "unknown 'x'; there are no keys of plugins.enabled"),
        ("ai..x", "no dotted key"),
        ("", "no dotted key"),
    ],
)
def test_an_unknown_key_is_an_error(loaded: LoadedSettings, key: str, words: str) -> None:
    """Asking for a key that does not exist names the nearest."""
    with pytest.raises(SettingsError, match=words):
        loaded.origin(key)


def test_the_effective_settings_are_listed_with_origins(loaded: LoadedSettings) -> None:
    """Every value in force is listed once, defaults too, sorted, with its origin, secrets masked. (cases 106, 112)"""
    rows = loaded.effective()
    by_key = {key: (value, origin) for key, value, origin in rows}
    assert len(by_key) == len(rows)
    profile = "ai.agents.profiles.connections.math_agent"
    assert by_key[f"{profile}.tools"] == (["a", "b"], "settings.toml:14")
    assert by_key[f"{profile}.executor.workers"] == (2, "settings.toml:12")
    assert by_key[f"{profile}.executor.name"] == ("process", "settings.toml:12")
    assert by_key[f"{profile}.max_iterations"] == (10, "built-in default")
    assert by_key["ai.agents.profiles.connections.named.executor"] == ("parallel", "built-in default")
    assert by_key['ai.connections."gpt-4.1".api_key_env'] == ("OPENAI_API_KEY", "settings.toml:5")
    assert by_key['ai.connections."gpt-4.1".base_url'] == ("https://***@example.org/v1", "settings.toml:6")
    assert by_key["plugins.options.acme.github_token"] == ("***", "settings.toml:2")
    assert f"{profile}.system_prompt" not in by_key


def test_no_text_of_the_whole_shows_a_secret(loaded: LoadedSettings) -> None:
    """`repr` and `str` mask secrets, of copies too. (case 112)"""
    for value in (loaded, copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert "TESTSECRET" not in repr(value) + str(value)
        assert value == loaded


def test_loaded_settings_are_immutable(loaded: LoadedSettings) -> None:
    """Neither the settings nor their origins can be changed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.environment = "x"  # type: ignore[misc]  # what is tried
    with pytest.raises(TypeError):
        loaded.tree["ai"] = {}  # type: ignore[index]  # what is tried
    with pytest.raises(TypeError):
        loaded.tables[()] = ""  # type: ignore[index]  # what is tried
