"""`atlas_core.settings.variables`: variables named `ATLAS_` and a path. Covers cases 106, 108 and 114."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas_core.errors import SettingsError
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.loader import load_settings
from atlas_core.settings.models import AgentProfileSettings
from atlas_core.settings.variables import Variable, read_variables

_FILE = """\
[default.plugins]
enabled = ["openai", "standard-tools"]
[default.plugins.options.Acme]
apiUrl = "u"
retry = { max = 1 }
[default.ai.connections.openai_gpt4]
backend = "openai"
model = "gpt-4.1"
[default.ai.connections."local.Model"]
backend = "llama"
[default.ai.agents.profiles.connections.math-agent]
executor = "process"
permissions = { allow = ["read", "write"], deny = ["shell"] }
"""
_PROFILE = "ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__MATH_AGENT"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a settings file."""
    (tmp_path / "settings.toml").write_text(_FILE)
    return tmp_path


def _load(folder: Path, environ: dict[str, str]) -> LoadedSettings:
    return load_settings(folder=folder, environ=environ)


def _profile(folder: Path, environ: dict[str, str]) -> AgentProfileSettings:
    return _load(folder, environ).profile("math_agent")[1]


def test_only_variables_meant_for_atlas_are_read() -> None:
    """Other prefixes, the bare prefix, reserved names and what `ATLAS_IGNORE` lists are left alone. (case 108)"""
    environ = {
        "ATLAS_": "x",
        "ATLAS_ENV": "dev",
        "ATLAS_IGNORE": "uri, ATLAS_CLUSTER_*",
        "ATLAS_URI": "mongodb://u:p@h",
        "ATLAS_CLUSTER_NAME": "x",
        "atlas_ai__agents": "x",
        "PATH": "x",
        "ATLAS_AI__AGENTS__ENABLED": "true",
        "ATLAS_AI": "{}",
    }
    assert read_variables(environ) == [
        Variable("ATLAS_AI", ("AI",), "{}"),
        Variable("ATLAS_AI__AGENTS__ENABLED", ("AI", "AGENTS", "ENABLED"), "true"),
    ]


def test_a_variable_hides_its_value() -> None:
    """A variable's `repr` shows its name alone."""
    assert "secret" not in repr(Variable("ATLAS_X", ("X",), "secret"))


def test_an_override_narrows_a_list(folder: Path) -> None:
    """A list from a variable replaces the file's and leaves the table around it. (case 106)"""
    permissions = _profile(folder, {f"{_PROFILE}__PERMISSIONS__ALLOW": "['read']"}).permissions
    assert permissions is not None
    assert (permissions.allow, permissions.deny) == (("read",), ("shell",))


def test_a_whole_table_merges(folder: Path) -> None:
    """A table from a variable merges into the file's: `deny` does not vanish. (case 106)"""
    permissions = _profile(folder, {f"{_PROFILE}__PERMISSIONS": "{allow=['read']}"}).permissions
    assert permissions is not None
    assert (permissions.allow, permissions.deny) == (("read",), ("shell",))


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ('["a"]', ("a",)),
        ("a, b", ("a", "b")),
        ("a", ("a",)),
        ("", ()),
        ("@merge a, openai", ("openai", "standard-tools", "a")),
        ("@merge ['a']", ("openai", "standard-tools", "a")),
    ],
    ids=["a TOML list", "with commas", "one name", "none", "adding", "adding a TOML list"],
)
def test_a_list_has_two_spellings(folder: Path, text: str, enabled: tuple[str, ...]) -> None:
    """A list is written as TOML or with commas; it replaces, or with `@merge` adds."""
    assert _load(folder, {"ATLAS_PLUGINS__ENABLED": text}).settings.plugins.enabled == enabled


@pytest.mark.parametrize("text", ["1e5", "true", "[4]", "{x = 1}", "@format {env[HOME]}", "", "  x "])
def test_text_stays_text(folder: Path, text: str) -> None:
    """A text field takes what the variable holds, whatever it looks like."""
    assert _profile(folder, {f"{_PROFILE}__DESCRIPTION": text}).description == text


def test_other_kinds_are_read_as_the_key_expects(folder: Path) -> None:
    """Numbers, infinity, and true or false become what their keys are."""
    profile = _profile(
        folder,
        {
            f"{_PROFILE}__MAX_ITERATIONS": "3",
            f"{_PROFILE}__MAX_EXECUTION_TIME_SECONDS": "inf",
            f"{_PROFILE}__TOOL_TIMEOUT_SECONDS": "2.5",
        },
    )
    assert (profile.max_iterations, profile.max_execution_time_seconds, profile.tool_timeout_seconds) == (3, None, 2.5)
    assert _load(folder, {"ATLAS_AI__AGENTS__ENABLED": "off"}).settings.ai.agents.enabled is False


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ATLAS_PLUGINS__OPTIONS__ACME__APIURL", ("Acme", "apiUrl")),
        ("ATLAS_plugins__options__acme__apiurl", ("Acme", "apiUrl")),
        ("ATLAS_PLUGINS__OPTIONS__ACME__RETRY__MAX", ("Acme", "retry", "max")),
        ("ATLAS_plugins__Options__ACME__retry__max", ("Acme", "retry", "max")),
    ],
)
def test_case_does_not_make_a_second_key(folder: Path, name: str, path: tuple[str, ...]) -> None:
    """Keys of any case are overridden at any depth, never doubled. (case 114)"""
    options: Any = _load(folder, {name: "v"}).settings.plugins.options
    before: Any = _load(folder, {}).settings.plugins.options
    assert _keys(options) == _keys(before)
    for key in path:
        options = options[key]
    assert options == "v"


def _keys(table: Any) -> Any:
    return {key: _keys(value) for key, value in table.items()} if isinstance(table, dict) else None


@pytest.mark.parametrize(
    "name",
    [
        "ATLAS_AI__CONNECTIONS__LOCAL_MODEL__MODEL",
        "ATLAS_AI__CONNECTIONS__Local.Model__MODEL",
        "ATLAS_AI__CONNECTIONS__local-model__model",
    ],
)
def test_names_with_signs_are_reached(folder: Path, name: str) -> None:
    """`-`, `_` and `.` are one in names, since shells allow only `_` in variables."""
    loaded = _load(folder, {name: "m"})
    assert loaded.settings.ai.connections["local.Model"].model == "m"
    assert set(loaded.settings.ai.connections) == {"local.Model", "offline", "openai_gpt4"}


def test_two_spellings_at_once_have_a_winner_and_a_warning(folder: Path) -> None:
    """Capitals win, and a warning names both variables. (case 114)"""
    upper, lower = "ATLAS_AI__AGENTS__DEFAULT_PROFILE", "ATLAS_ai__agents__default_profile"
    loaded = _load(folder, {lower: "b", upper: "a"})
    assert loaded.settings.ai.agents.default_profile == "a"
    assert loaded.origin("ai.agents.default_profile") == f"variable {upper}"
    (warning,) = loaded.warnings
    assert upper in warning
    assert lower in warning


def test_the_deeper_variable_wins(folder: Path) -> None:
    """A variable for a key goes over one for the table around it, whatever their order."""
    environ = {f"{_PROFILE}__PERMISSIONS__DENY": "x", f"{_PROFILE}__PERMISSIONS": "{ask=['y'], deny=['z']}"}
    permissions = _profile(folder, environ).permissions
    assert permissions is not None
    assert (permissions.allow, permissions.ask, permissions.deny) == (("read", "write"), ("y",), ("x",))


def test_an_executors_own_key_keeps_its_name(folder: Path) -> None:
    """A variable for an executor's key turns `executor = "process"` into a table of that name."""
    assert _profile(folder, {f"{_PROFILE}__EXECUTOR__WORKERS": "4"}).executor.model_dump() == {
        "name": "process",
        "options": {"workers": "4"},
    }
    loaded = _load(folder, {"ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__X": "{name='x'}"})
    assert loaded.profile("x")[1].executor.name == "parallel"
    environ = {f"{_PROFILE}__EXECUTOR": "{name = 'x', a = 1}", f"{_PROFILE}__EXECUTOR__B": "2"}
    assert _profile(folder, environ).executor.options == {"a": 1, "b": "2"}


def test_an_executors_default_name_is_kept(tmp_path: Path) -> None:
    """Where a profile names no executor, a variable for an executor's key means the default one."""
    (tmp_path / "settings.toml").write_text("[default.ai.agents.profiles.connections.math_agent]\n")
    executor = _profile(tmp_path, {f"{_PROFILE}__EXECUTOR__LIMIT": "2"}).executor
    assert (executor.name, executor.options) == ("parallel", {"limit": "2"})


def test_variables_alone_make_a_connection(folder: Path) -> None:
    """A connection may come from variables if its backend does too."""
    environ = {"ATLAS_AI__CONNECTIONS__NEW__BACKEND": "b", "ATLAS_AI__CONNECTIONS__NEW__API_KEY_ENV": "X"}
    name, connection = _load(folder, environ).connection("new")
    assert (name, connection.backend, connection.options) == ("new", "b", {"api_key_env": "X"})


def test_a_text_that_turns_out_to_be_a_table_is_one(folder: Path) -> None:
    """Where the kernel knows no kinds, a deeper variable shows the shorter one to be a table; origins stay apart."""
    whole, key = "ATLAS_PLUGINS__OPTIONS__ACME__CACHE", "ATLAS_PLUGINS__OPTIONS__ACME__CACHE__SIZE"
    loaded = _load(folder, {whole: "{size = 1, sub = {x = [1]}}", key: "2"})
    assert loaded.settings.plugins.options["Acme"]["cache"] == {"size": "2", "sub": {"x": (1,)}}
    assert loaded.origin("plugins.options.acme.cache.size") == f"variable {key}"
    assert loaded.origin("plugins.options.acme.cache.sub.x") == f"variable {whole}"
    with pytest.raises(SettingsError, match="expected an inline table"):
        _load(folder, {whole: "text", key: "2"})


def test_a_table_from_a_file_takes_a_table(folder: Path) -> None:
    """Where the file has a table of an owner, a variable for the whole of it is read as one and merges."""
    loaded = _load(folder, {"ATLAS_PLUGINS__OPTIONS__ACME__RETRY": "{min = 2}"})
    assert loaded.settings.plugins.options["Acme"]["retry"] == {"max": 1, "min": 2}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ATLAS_PERMISION__DEFAULT", "did you mean ATLAS_AI__AGENTS__PROFILES__.*__PERMISSIONS"),
        ("ATLAS_LIMIT__TIMEOUT", "did you mean .*TOOL_TIMEOUT_SECONDS"),
        ("ATLAS_AI_AGENTS_DEFAULT_PROFILE", r"did you mean ATLAS_AI__AGENTS__DEFAULT_PROFILE\?"),
        ("ATLAS_AI__AGENTS__DEFAULT_PROFIL", r"did you mean ATLAS_AI__AGENTS__DEFAULT_PROFILE\?"),
        ("ATLAS_AI__CONNECTIONS__OPENAI_GTP4__MODEL", "did you mean ATLAS_AI__CONNECTIONS__OPENAI_GPT4__MODEL"),
        ("ATLAS_AI__CONNECTIONS__XYZ__MODEL", "no 'xyz'; a new entry needs ATLAS_AI__CONNECTIONS__XYZ__BACKEND too"),
        (
            _PROFILE.replace("MATH_AGENT", "OTHER__TOOLS"),
            r"new entry is one table, ATLAS_.*__OTHER=\{\.\.\.\}",
        ),
        ("ATLAS_PLUGINS__ACME__KEY", r"did you mean ATLAS_PLUGINS__OPTIONS__ACME__KEY\?"),
        ("ATLAS_PLUGIN__ACME__KEY", r"did you mean ATLAS_PLUGINS__OPTIONS__ACME__KEY\?"),
        ("ATLAS_OPTIONS__ACME__KEY", r"did you mean ATLAS_PLUGINS__OPTIONS__ACME__KEY\?"),
        ("ATLAS_PLUGINS__ENABLE", r"did you mean ATLAS_PLUGINS__ENABLED\?"),
        ("ATLAS_PLUGINS__ENABLED__0", r"no table; did you mean ATLAS_PLUGINS__ENABLED\?"),
        ("ATLAS_CONNECTIONS__NEW__BACKEND", r"did you mean ATLAS_AI__CONNECTIONS__NEW__BACKEND\?"),
        ("ATLAS_AI__LOCAL_MODEL__MODEL", r"did you mean ATLAS_AI__CONNECTIONS__LOCAL_MODEL__MODEL\?"),
        ("ATLAS_DEFAULT_PROFILE", r"did you mean ATLAS_AI__AGENTS__DEFAULT_PROFILE\?"),
        ("ATLAS_AI__PROFILES__MATH_AGENT__TOOLS", rf"did you mean {_PROFILE}__TOOLS\?"),
        ("ATLAS_MATH_AGENT__MAX_ITERATIONS", rf"did you mean {_PROFILE}__MAX_ITERATIONS\?"),
        (f"{_PROFILE}__DENY", rf"did you mean {_PROFILE}__PERMISSIONS__DENY\?"),
        (f"{_PROFILE}__TIMEOUT", rf"did you mean {_PROFILE}__TOOL_TIMEOUT_SECONDS\?"),
        ("ATLAS_LIMITS__MAX_TOKENS", "did you mean ATLAS_AI__AGENTS__PROFILES__.*__MAX_TOKENS"),
        (f"{_PROFILE}S__MAX_ITERATIONS", f"did you mean {_PROFILE}__MAX_ITERATIONS"),
        ("ATLAS_AI__AGENTS__ENABLED__X", r"ai\.agents\.enabled is no table; did you mean ATLAS_AI__AGENTS__ENABLED\?"),
        ("ATLAS_URI", "settings begin with ATLAS_AI__ or ATLAS_PLUGINS__ .*ATLAS_IGNORE"),
        ("ATLAS_QQQ__WWW", "settings begin with"),
        ("ATLAS_API_KEY", "settings begin with"),
        ("ATLAS_DB__URL", "settings begin with"),
        ("ATLAS_AI____AGENTS", "empty part"),
        ("ATLAS_AI__", "empty part"),
        ("ATLAS___AI", "empty part"),
    ],
    ids=lambda value: value if value.startswith("ATLAS") else "",
)
def test_a_misspelt_variable_is_an_error(folder: Path, name: str, words: str) -> None:
    """A variable that names nothing is an error with the nearest one that does; its value is not shown. (case 108)"""
    with pytest.raises(SettingsError, match=words) as caught:
        _load(folder, {name: "TESTSECRET"})
    assert repr(name) in str(caught.value)
    assert caught.value.source == f"variable {name}"
    assert "TESTSECRET" not in str(caught.value)


def test_all_misspelt_variables_are_told_at_once(folder: Path) -> None:
    """Two misspelt variables make one error that names both."""
    with pytest.raises(SettingsError, match=r"2 settings are wrong:\n.*ATLAS_A'.*\n.*ATLAS_B'"):
        _load(folder, {"ATLAS_A": "", "ATLAS_B": ""})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ATLAS_AI", "3", "expected an inline table"),
        ("ATLAS_PLUGINS__ENABLED", "['a'", "expected a list"),
        (f"{_PROFILE}__PERMISSIONS", "{allow=", "expected an inline table"),
        ("ATLAS_AI__AGENTS__ENABLED", "maybe", "enabled is 'maybe', expected true or false"),
        (f"{_PROFILE}__MAX_ITERATIONS", "1e5", "max_iterations is '1e5', expected a whole number"),
        (f"{_PROFILE}__MAX_ITERATIONS", "0", "max_iterations is 0, expected at least 1"),
        ("ATLAS_AI", "{connections = {a-b = {backend='x'}, A_b = {backend='y'}}}", "stands twice"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error(folder: Path, name: str, text: str, words: str) -> None:
    """A value that can't be read, or does not fit, is an error that names the variable."""
    with pytest.raises(SettingsError, match=words) as caught:
        _load(folder, {name: text})
    assert caught.value.source == f"variable {name}"
    assert name in str(caught.value)


def test_a_variable_that_may_mean_two_keys_is_an_error(tmp_path: Path) -> None:
    """Where the keys differ only in `-` and `_`, the variable must spell one exactly."""
    (tmp_path / "settings.toml").write_text('[default.ai.connections.c]\nbackend="b"\nx-y = 1\nX_y = 2\n')
    with pytest.raises(SettingsError, match="may mean any of 'X_y', 'x-y'"):
        _load(tmp_path, {"ATLAS_AI__CONNECTIONS__C__X_Y": "3"})
    loaded = _load(tmp_path, {"ATLAS_AI__CONNECTIONS__C__X_y": "3"})
    assert loaded.connection("c")[1].options == {"x-y": 1, "X_y": "3"}


def test_a_literal_secret_in_a_variable_is_refused(folder: Path) -> None:
    """A variable can't put a secret into a connection, and the error does not show it. (case 112)"""
    name = "ATLAS_AI__CONNECTIONS__OPENAI_GPT4__API_KEY"
    with pytest.raises(SettingsError, match="name that variable through api_key_env") as caught:
        _load(folder, {name: "sk-TESTSECRET123"})
    assert caught.value.source == f"variable {name}"
    assert "TESTSECRET" not in str(caught.value)
