"""`atlas_core.settings.loader`: packaged defaults, files, environments. Covers cases 106 and 110."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from atlas_core.errors import SettingsError
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.loader import load_settings, settings_from_mapping

_CONNECTION = "[{env}.ai.connections.c]\nbackend = 'b'\nmodel = '{model}'\n"


def _load(folder: Path, main: str | None = None, local: str | None = None, env: str | None = None) -> LoadedSettings:
    for name, text in (("settings.toml", main), ("settings.local.toml", local)):
        if text is not None:
            (folder / name).write_text(text)
    return load_settings(folder=folder, environ={}, env=env)


def _model(loaded: LoadedSettings) -> str:
    return loaded.connection("c")[1].model


def test_without_a_file_the_packaged_defaults_hold(tmp_path: Path) -> None:
    """With no settings file, agents run offline with the reading tools."""
    loaded = _load(tmp_path)
    assert loaded.settings.plugins.enabled == ("offline", "standard-tools")
    name, profile = loaded.profile()
    assert (name, profile.name, profile.type, profile.executor.name) == (
        "default_assistant",
        "default_assistant",
        "react",
        "parallel",
    )
    assert loaded.connection(profile.connection_name)[1].backend == "offline"
    assert profile.tools == (
        "calculator_tool",
        "unit_converter",
        "current_time",
        "date_arithmetic",
        "read_file",
        "list_directory",
    )
    assert (loaded.environment, loaded.environments, loaded.files) == ("default", ("default",), ())
    assert loaded.base_dir == tmp_path
    assert loaded.problems() == ()


def test_a_file_replaces_the_defaults_key_by_key(tmp_path: Path) -> None:
    """What the file does not say stays as packaged."""
    loaded = _load(
        tmp_path,
        "[default.plugins]\nenabled = ['x']\n"
        "[default.ai.agents.profiles.connections.default_assistant]\ntools = ['t']\n",
    )
    assert loaded.settings.plugins.enabled == ("x",)
    profile = loaded.profile()[1]
    assert profile.tools == ("t",)
    assert profile.connection_name == "offline"


def test_the_current_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments, the current folder's file and the process's variables count."""
    (tmp_path / "settings.toml").write_text(_CONNECTION.format(env="default", model="m"))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ATLAS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ATLAS_AI__CONNECTIONS__C__MAX_OUTPUT_TOKENS", "7")
    loaded = load_settings()
    assert _model(loaded) == "m"
    assert loaded.connection("c")[1].max_output_tokens == 7
    assert loaded.base_dir == tmp_path


def test_the_local_file_goes_over_the_main_one(tmp_path: Path) -> None:
    """`settings.local.toml` overrides `settings.toml`, file by file as dynaconf does, and both are listed."""
    main = _CONNECTION.format(env="default", model="a") + _CONNECTION.format(env="prod", model="b")
    loaded = _load(tmp_path, main, _CONNECTION.format(env="default", model="c"), env="prod")
    assert _model(loaded) == "c"
    assert loaded.files == (tmp_path / "settings.toml", tmp_path / "settings.local.toml")
    assert loaded.origin("ai.connections.c.model") == "settings.local.toml:3"


def test_a_local_file_alone_is_enough(tmp_path: Path) -> None:
    """Without `settings.toml`, the local file still counts."""
    assert _model(_load(tmp_path, local=_CONNECTION.format(env="default", model="c"))) == "c"


def test_a_named_file_has_its_local_file_too(tmp_path: Path) -> None:
    """`x.toml` is overridden by `x.local.toml` beside it; paths in it are relative to its folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.toml").write_text(_CONNECTION.format(env="default", model="a"))
    (tmp_path / "sub" / "x.local.toml").write_text(_CONNECTION.format(env="default", model="b"))
    (tmp_path / "settings.toml").write_text(_CONNECTION.format(env="default", model="not read"))
    for path in ("sub/x.toml", tmp_path / "sub" / "x.toml"):
        loaded = load_settings(path, folder=tmp_path, environ={})
        assert _model(loaded) == "b"
        assert loaded.base_dir == tmp_path / "sub"
    assert load_settings("sub/x.toml", folder=tmp_path, environ={}).origin("ai.connections.c.model") == (
        f"{Path('sub', 'x.local.toml')}:3"
    )


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    """A file that was named and is missing is an error. (case 110)"""
    with pytest.raises(SettingsError, match=r"'gone\.toml' does not exist"):
        load_settings("gone.toml", folder=tmp_path, environ={})


@pytest.mark.parametrize("name", ["settings.toml", "settings.local.toml"])
def test_damage_is_an_error_in_the_default_place_too(tmp_path: Path, name: str) -> None:
    """A folder, or a broken file, where a settings file is looked for is not passed over. (case 110)"""
    (tmp_path / name).write_text("[default]\n\nx = = sk-TESTSECRET123\n")
    with pytest.raises(SettingsError, match=f"{name}:3") as caught:
        _load(tmp_path)
    assert "TESTSECRET" not in str(caught.value)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(SettingsError, match=f"'{name}' is a folder"):
        _load(tmp_path)


_ENVIRONMENTS = (
    _CONNECTION.format(env="default", model="d")
    + "[default.plugins]\nenabled = ['a', 'b']\n"
    + "[Production.ai.connections.c]\nmodel = 'p'\n[Production.plugins]\nenabled = ['a']\n"
    + "[extra.ai.connections.c]\nmax_output_tokens = 5\n"
)


@pytest.mark.parametrize(
    ("env", "variable", "expected"),
    [
        (None, None, ("d", None, "default")),
        ("production", None, ("p", None, "Production")),
        (None, "PRODUCTION", ("p", None, "Production")),
        ("extra", "production", ("d", 5, "extra")),
        ("", "production", ("d", None, "default")),
        (None, "", ("d", None, "default")),
        ("default", None, ("d", None, "default")),
        ("production, extra", None, ("p", 5, "Production, extra")),
    ],
    ids=[
        "none",
        "by argument",
        "by variable",
        "the argument wins",
        "the argument says none",
        "an empty variable",
        "default by name",
        "two",
    ],
)
def test_an_environment_lies_over_default(
    tmp_path: Path, env: str | None, variable: str | None, expected: tuple[str, int | None, str]
) -> None:
    """The chosen environment's tables merge over `[default]`, its lists replace."""
    (tmp_path / "settings.toml").write_text(_ENVIRONMENTS)
    environ = {} if variable is None else {"ATLAS_ENV": variable}
    loaded = load_settings(folder=tmp_path, environ=environ, env=env)
    connection = loaded.connection("c")[1]
    assert (connection.model, connection.max_output_tokens, loaded.environment) == expected
    assert connection.backend == "b"
    assert loaded.settings.plugins.enabled == (("a",) if connection.model == "p" else ("a", "b"))
    assert loaded.environments == ("Production", "default", "extra")


def test_global_goes_over_every_environment(tmp_path: Path) -> None:
    """`[global]`, dynaconf's last word, overrides the chosen environment."""
    text = _ENVIRONMENTS + "[global.ai.connections.c]\nmodel = 'g'\n"
    assert _model(_load(tmp_path, text, env="production")) == "g"
    assert _load(tmp_path, text).environments == ("Production", "default", "extra")


@pytest.mark.parametrize(
    ("text", "env", "words"),
    [
        (_ENVIRONMENTS, "prodution", r"'prodution' is not defined in settings\.toml; did you mean 'Production'"),
        (_ENVIRONMENTS, "extra,nope", "'nope' is not defined"),
        (None, "production", "'production' is not defined: no settings file exists"),
        ("", "production", r"not defined in settings\.toml"),
    ],
    ids=["misspelt", "one of two", "no file", "an empty file"],
)
def test_an_unknown_environment_is_an_error(tmp_path: Path, text: str | None, env: str, words: str) -> None:
    """An environment that no file defines is an error with the nearest one; the variable is named if it chose."""
    with pytest.raises(SettingsError, match=words) as caught:
        _load(tmp_path, text, env=env)
    assert caught.value.source is None
    with pytest.raises(SettingsError, match="variable ATLAS_ENV"):
        load_settings(folder=tmp_path, environ={"ATLAS_ENV": env})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[ai.agents]\n", r"'ai' stands at the top.*settings\.toml:1.*such as \[default\.ai\]"),
        ("[plugins]\n", r"such as \[default\.plugins\]"),
        ("x = 1\n", r"'x' stands at the top.*such as \[default\]"),
        ("default = 3\n", "'default' stands at the top"),
        ("[defualt.ai]\n", "looks like a misspelt 'default'"),
        ("[Prod]\n[prod]\n", "environment 'prod' is also spelled 'Prod'"),
        ("[default]\n[default.agent]\n", r"unknown section 'agent' \(key default\.agent, set in settings\.toml:2\)"),
        ("[default.plugin]\n", "did you mean 'plugins'"),
        ("[prod.plugin]\n", r"key prod\.plugin"),
        ("[default]\nai = 3\n", r"section 'ai' is no table.*settings\.toml:2"),
        ("a = 1\nb = 1\n", r"2 settings are wrong:\n.*'a'.*\n.*'b'"),
    ],
    ids=[
        "a section without environment",
        "the other section",
        "a value at the top",
        "an environment that is no table",
        "default misspelt",
        "an environment in two spellings",
        "an unknown section",
        "a misspelt section",
        "a misspelt section in another environment",
        "a section that is no table",
        "two at once",
    ],
)
def test_wrong_top_levels_are_told(tmp_path: Path, text: str, words: str) -> None:
    """What stands in the wrong place at the top of a file is not passed over in silence."""
    with pytest.raises(SettingsError, match=words):
        _load(tmp_path, text)


_TOLD = """\
'backend' is missing (key ai.connections.x.backend, set in settings.toml:1); set ai.connections.x.backend
model is 4.1, expected a text (key ai.connections.x.model, set in settings.toml:2); write it in quotes: "4.1"
'api_key' holds a secret in plain text (key ai.connections."y.z".api_key, set in settings.toml:5); put it into
'Authorization' holds a secret in plain text (key ai.connections."y.z".headers.Authorization, set in settings.toml:6)
unknown key 'default_profil' (key ai.agents.default_profil, set in settings.toml:8); did you mean 'default_profile'?
max_iterations is True, expected a whole number (key ai.agents.profiles.connections.b.max_iterations, set in settings
max_tokens is '10', expected a whole number (key ai.agents.profiles.connections.b.max_tokens, set in settings.toml:11)
max_execution_time_seconds is 0, expected more than 0 (
item 1 of tools is 1, expected a text (key ai.agents.profiles.connections.b.tools[1], set in settings.toml:15); write
unknown key 'alow' (key ai.agents.profiles.connections.b.permissions.alow, set in settings.toml:17); did you mean
executor is wrong: an executor's table needs a name: { name = "process", ... } (
plugins is wrong: 'a' is both in `enable` and in `disable` (
type is '', expected a text that is not empty (
options is 3, expected a table (
"""


def test_all_wrong_values_are_told_at_once(tmp_path: Path) -> None:
    """Each violation has a line of its own with key, place, what was expected and what to do."""
    text = """\
[default.ai.connections.x]
model = 4.1
[default.ai.connections."y.z"]
backend = "o"
api_key = "sk-TESTSECRET123"
headers = { Authorization = "Bearer TESTSECRET" }
[default.ai.agents]
default_profil = "x"
[default.ai.agents.profiles.connections.b]
max_iterations = true
max_tokens = "10"
max_execution_time_seconds = 0
tools = [
  "a",
  1,
]
permissions = { alow = [] }
executor = {}
plugins = { enable = ["a"], disable = ["A"] }
type = ""
options = 3
"""
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, text)
    told = str(caught.value)
    assert "TESTSECRET" not in told
    assert told.startswith("14 settings are wrong:\n")
    for line in _TOLD.splitlines():
        assert line in told
    assert caught.value.__cause__ is None
    assert (caught.value.key, caught.value.source) == ("ai.connections.x.backend", "settings.toml:1")


def test_what_dynaconf_would_do_on_its_own_is_not_done(tmp_path: Path) -> None:
    """A hooks file, a dotenv file and a secrets file beside the settings are left alone."""
    (tmp_path / "dynaconf_hooks.py").write_text("raise SystemExit('ran')")
    (tmp_path / ".env").write_text("ATLAS_ENV=nope\n")
    (tmp_path / ".secrets.toml").write_text("= broken")
    text = _CONNECTION.format(env="default", model="@format {env[HOME]}")
    assert _model(_load(tmp_path, text)) == "@format {env[HOME]}"


def test_dynaconf_loads_only_with_files_or_variables(tmp_path: Path) -> None:
    """Defaults alone, and a program's mapping, don't pay for the engine."""
    code = (
        "import sys; from pathlib import Path; from atlas_core.settings.loader import *\n"
        "load_settings(environ={}, folder=Path(sys.argv[1])); settings_from_mapping({'plugins': {'enabled': []}})\n"
        "assert 'dynaconf' not in sys.modules\n"
        "load_settings(environ={'ATLAS_PLUGINS__ENABLED': 'a'}, folder=Path(sys.argv[1]))\n"
        "assert 'dynaconf' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_two_loads_share_nothing(tmp_path: Path) -> None:
    """Loading again gives equal settings; another folder's settings don't leak in."""
    first = _load(tmp_path, _CONNECTION.format(env="default", model="a"))
    other = tmp_path / "other"
    other.mkdir()
    assert set(_load(other, "[default]\n").settings.ai.connections) == {"offline"}
    again = _load(tmp_path)
    assert again == first
    assert again.effective() == first.effective()


def test_loading_in_many_threads_is_safe(tmp_path: Path) -> None:
    """Loads at the same time give each its own settings."""
    found: dict[int, str] = {}

    def load(n: int) -> None:
        folder = tmp_path / str(n)
        folder.mkdir()
        found[n] = _model(_load(folder, _CONNECTION.format(env="default", model=f"m{n}"), "[default]\n"))

    threads = [threading.Thread(target=load, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: f"m{n}" for n in range(16)}


def test_a_mapping_lies_over_the_defaults() -> None:
    """A program's tables need no environment; they merge over the packaged defaults and are not changed."""
    given = {"ai": {"connections": {"c": {"backend": "b", "model": "m"}}}}
    loaded = settings_from_mapping(given)
    assert _model(loaded) == "m"
    assert loaded.profile()[0] == "default_assistant"
    assert loaded.origin("ai.connections.c.model") == "the program"
    assert given == {"ai": {"connections": {"c": {"backend": "b", "model": "m"}}}}
    merged = settings_from_mapping({"plugins": {"enabled": ["@merge", "x"]}})
    assert merged.settings.plugins.enabled == ("offline", "standard-tools", "x")


def test_a_mapping_may_stand_alone() -> None:
    """Without the defaults there is nothing but what the program says."""
    loaded = settings_from_mapping({}, defaults=False)
    assert loaded.settings.plugins.enabled == ()
    assert loaded.settings.ai.connections == {}
    with pytest.raises(SettingsError, match=r"no profile is named.*name one; there are no profiles"):
        loaded.profile()


def test_a_wrong_mapping_is_an_error() -> None:
    """Unknown sections and values in a program's tables are told like those of a file."""
    with pytest.raises(SettingsError, match=r"unknown key 'plugin' \(key plugin, set in the program\); did you mean"):
        settings_from_mapping({"plugin": {}})
    with pytest.raises(SettingsError, match="ai is 3, expected a table"):
        settings_from_mapping({"ai": 3})
