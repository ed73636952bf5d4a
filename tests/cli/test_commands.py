"""`atlas plugins`, `tools`, `explain`, `config`, `trace`, `init` and `chat`, in this process."""

from __future__ import annotations

import io
import json
import os
import runpy
import signal
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atlas_core import __version__
from atlas_core.cli import main
from atlas_core.cli.init import templates
from atlas_core.settings.loader import load_settings
from tests.cli.conftest import Done
from tests.cli.world import KIT_TOOLS, PARROT, SETTINGS, World

Atlas = Callable[..., Done]

# plugins ---------------------------------------------------------------------------------------------------------


def test_plugins_list_tells_enabled_from_installed(world: World, atlas: Atlas) -> None:
    """What is not enabled is listed from metadata and not imported."""
    world.add("atlas-idle", "idle", "raise RuntimeError('imported')", offers=["tool.idle"])
    done = atlas("plugins", "list")
    assert (done.status, done.err) == (0, "")
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert rows["idle"].split() == ["idle", "not", "enabled", "atlas-idle", "1.0", "tool.idle"]
    assert rows["kit"].split()[1] == "enabled"
    assert "atlas_idle_plugin" not in sys.modules


def test_plugins_list_shows_a_broken_one_with_its_reason(world: World, atlas: Atlas) -> None:
    """The others are listed as ever, and the status is 0 (case 96)."""
    world.add("atlas-bad", "bad", "raise SystemExit(3)")
    world.settings(SETTINGS.replace('"kit"]', '"kit", "bad"]'))
    done = atlas("plugins", "list")
    assert done.status == 0
    assert "bad             broken " in done.out
    assert "bad: plugin 'bad' did not import" in done.out
    assert "SystemExit" in done.out
    facts = {plugin["name"]: plugin for plugin in json.loads(atlas("plugins", "list", "--json").out)}
    assert (facts["bad"]["status"], facts["kit"]["status"]) == ("broken", "enabled")
    assert facts["kit"]["offers"] == sorted(f"tool.{name}" for name in KIT_TOOLS)


def test_plugins_list_with_settings_that_name_what_is_not_installed(world: World, atlas: Atlas) -> None:
    """To repair the settings one must see what there is."""
    world.settings(SETTINGS.replace('"kit"]', '"kitt"]'))
    done = atlas("plugins", "list")
    assert done.status == 0
    assert "listed from metadata alone" in done.err
    assert "did you mean 'kit'?" in done.err
    assert "kit             not enabled" in done.out


def test_plugins_list_of_a_profile(world: World, atlas: Atlas) -> None:
    """A profile narrows the choice; one that is not there is an error."""
    world.settings(
        SETTINGS.replace("max_iterations = 3", 'max_iterations = 3\ntype = "react"\nplugins = { disable = ["kit"] }')
    )
    assert "kit             not enabled" in atlas("plugins", "list", "--profile", "helper").out
    done = atlas("plugins", "list", "-p", "nobody")
    assert (done.status, done.out) == (2, "")


def test_plugins_list_where_nothing_is_installed(world: World, atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [])
        done = atlas("plugins", "list")
    assert (done.status, done.out) == (0, "no plugin is installed\n")


def test_metadata_that_cannot_be_read_is_a_warning(world: World, atlas: Atlas) -> None:
    """It hides no other plugin."""
    place = world.site / "atlas_odd-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Name: atlas-odd\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("[atlas]\nodd\n")
    done = atlas("plugins", "list")
    assert done.status == 0
    assert "atlas: warning: " in done.err
    assert "kit             enabled" in done.out
    assert "'odd' in [atlas]" in atlas("run", "-q", "x").err


def test_plugins_info(world: World, atlas: Atlas) -> None:
    """All facts of one plugin; a broken one with the traceback of its cause; names compare loosely."""
    world.add("atlas-bad", "bad-one", "raise RuntimeError('broken at import')")
    world.settings(SETTINGS.replace('"kit"]', '"kit", "bad-one"]'))
    good = atlas("plugins", "info", "KIT")
    assert good.status == 0
    assert "entry point   kit = atlas_kit_plugin\n" in good.out
    bad = atlas("plugins", "info", "bad_one@atlas-bad")
    assert bad.status == 0
    assert "status        broken\n" in bad.out
    assert "raise RuntimeError('broken at import')" in bad.out
    (facts,) = json.loads(atlas("plugins", "info", "bad-one", "--json").out)
    assert "RuntimeError: broken at import" in facts["cause"]


def test_plugins_info_of_two_with_one_name(world: World, atlas: Atlas) -> None:
    """Both are told, since only their distributions tell them apart."""
    world.add("other-kit", "kit", "")
    done = atlas("plugins", "info", "kit")
    assert "distribution  atlas-kit\n" in done.out
    assert "\n\nname          kit\n" in done.out
    assert "distribution  other-kit\n" in done.out


def test_plugins_info_of_an_unknown_one(atlas: Atlas) -> None:
    """The nearest name is offered."""
    done = atlas("plugins", "info", "kitt")
    assert done.status == 2
    assert done.err == "atlas: error: plugin 'kitt' is not installed; did you mean 'kit'?\n"


# tools -----------------------------------------------------------------------------------------------------------

PROVIDER = '''
from pathlib import Path
from atlas_core import ToolProvider, hookimpl

def ping() -> str:
    """Answer."""
    return "pong"

class Remote(ToolProvider):
    async def start(self):
        if Path("down").exists():
            raise ConnectionError("no server")
    async def tools(self):
        return [ping]
    async def stop(self):
        Path("stopped").touch()
        if Path("down").exists():
            raise ConnectionError("still no server")

@hookimpl
def atlas_tool_providers():
    return [Remote()]
'''


def test_tools_list(atlas: Atlas) -> None:
    """Every tool with its first line, and whether the profile's agent may use it."""
    done = atlas("tools", "list")
    assert done.status == 0
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert set(rows) == {"NAME", *KIT_TOOLS}
    assert rows["add"].split(None, 4) == ["add", "allow", "read", "kit", "Add two numbers."]
    assert "not chosen" in rows["boom"]


def test_tools_list_as_json_with_permissions(world: World, atlas: Atlas) -> None:
    """Deny, ask, and a tool's own wish for approval show."""
    rules = 'max_iterations = 3\npermissions = { deny = ["nap"], ask = ["doze"] }'
    world.settings(SETTINGS.replace("max_iterations = 3", rules).replace('"add", ', '"add", "boom", '))
    found = {tool["name"]: tool["decision"] for tool in json.loads(atlas("tools", "list", "--json").out)}
    assert (found["nap"], found["doze"], found["boom"], found["add"]) == ("deny", "ask", "ask", "allow")


def test_tools_list_without_tools(world: World, atlas: Atlas) -> None:
    """It says so."""
    world.settings(SETTINGS.replace('"parrot", "kit"', '"parrot"'))
    assert atlas("tools", "list").out == "no enabled plugin offers a tool\n"


def test_tools_of_a_provider_are_listed_and_called(world: World, atlas: Atlas) -> None:
    """What is known only once the source runs is asked for, and the source is stopped."""
    world.add("atlas-remote", "remote", PROVIDER)
    world.settings(SETTINGS.replace('"kit"]', '"kit", "remote"]') + '\n[default.plugins.prefix]\nremote = "far"\n')
    assert "far_ping" in atlas("tools", "list").out
    assert atlas("tools", "call", "far-ping").out == "pong\n"
    assert (world.work / "stopped").exists()
    (world.work / "down").touch()
    done = atlas("tools", "list")
    assert done.status == 0
    assert (
        "tool provider 'Remote' of plugin 'remote' of atlas-remote 1.0 failed: ConnectionError: no server" in done.err
    )
    assert "tool provider 'Remote' did not stop: ConnectionError: still no server" in done.err


def test_a_contested_tool_is_a_warning(world: World, atlas: Atlas) -> None:
    """A name that two plugins offer is usable from neither, and the list says so."""
    world.add("atlas-more", "more", "from atlas_kit_plugin import add, atlas_tool_providers")
    world.settings(SETTINGS.replace('"kit"]', '"kit", "more"]'))
    done = atlas("tools", "list")
    assert "tool 'add' is offered by several plugins" in done.err


def test_tools_show(atlas: Atlas) -> None:
    """What a model is told: description and schemas."""
    done = atlas("tools", "show", "ADD")
    assert "Add two numbers.\n\nBoth are whole.\n" in done.out
    assert "effects: read\n" in done.out
    facts = json.loads(atlas("tools", "show", "add", "--json").out)
    assert facts["parameters"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert facts["returns"] == {"type": "integer"}
    assert "timeout" not in done.out
    assert "returns: {" in done.out
    assert "returns: " not in atlas("tools", "show", "boom").out


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        pytest.param(["add", '{"a": 1, "b": 2}'], 0, "3\n", "", id="it returns"),
        pytest.param(["add", '{"a": "x", "b": 2}'], 2, "", "a: expected an integer", id="arguments don't fit"),
        pytest.param(["add", "{a"], 2, "", "tool 'add'", id="no JSON"),
        pytest.param(["add"], 2, "", "is missing", id="no arguments"),
        pytest.param(["fails", '{"why": "x"}'], 1, "", "tool 'fails': failed: RuntimeError: x", id="it fails"),
        pytest.param(["quits"], 1, "", "SystemExit", id="it calls sys.exit"),
        pytest.param(["boom"], 1, "", "no luck", id="an agent would have to ask"),
        pytest.param(["ad"], 2, "", "no enabled plugin offers a tool 'ad'; did you mean 'add'?", id="unknown"),
    ],
)
def test_tools_call(atlas: Atlas, words: list[str], status: int, out: str, err: str) -> None:
    """The result on standard output; what went wrong on standard error, with a status of its own."""
    done = atlas("tools", "call", *words)
    assert (done.status, done.out) == (status, out)
    assert err in done.err
    assert "Traceback" not in done.err


def test_tools_call_with_arguments_from_standard_input(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads them."""
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": 2, "b": 3}'))
    assert atlas("tools", "call", "add", "-").out == "5\n"


def test_a_result_reaches_a_pipe_as_it_is_and_a_terminal_made_harmless(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes that a tool returns are data to a program and an attack on a screen."""
    assert "\x1b[31m" in atlas("tools", "call", "paint").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b" not in atlas("tools", "call", "paint").out


# explain ---------------------------------------------------------------------------------------------------------


def test_explain(atlas: Atlas) -> None:
    """Type, connection, executor, limits, plugins, and each tool with what decides."""
    done = atlas("explain")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("profile helper: Helps with tests.\n")
    assert "  connection   main: provider parrot (plugin 'parrot' of atlas-parrot 1.0)\n" in done.out
    assert "  limits       max_iterations = 3, max_execution_time_seconds = 60\n" in done.out
    assert "  add     allow     tools: 'add'     plugin 'kit' of atlas-kit 1.0\n" in done.out


def test_explain_as_json(atlas: Atlas) -> None:
    """The same facts for a program."""
    data = json.loads(atlas("explain", "HELPER", "--json").out)
    assert data["profile"] == "helper"
    assert data["provider"]["owner"] == {"plugin": "parrot", "distribution": "atlas-parrot", "version": "1.0"}


def test_explain_what_cannot_run(world: World, atlas: Atlas) -> None:
    """Problems are listed, and the status is 2; nothing is left blank."""
    world.settings(
        """
[default.plugins]
enabled = []

[default.ai.connections.main]
backend = "parrot"
api_key_env = "PARROT_KEY"

[default.ai.agents]
default_profile = "helper"

[default.ai.agents.profiles.connections.helper]
connection_name = "main"
max_execution_time_seconds = inf
"""
    )
    done = atlas("explain")
    assert done.status == 2
    assert "plugins\n  none\ntools\n  none\n" in done.out
    assert "variable PARROT_KEY is NOT set" in done.out
    assert (
        "problem: no enabled plugin offers model provider 'parrot' (key ai.connections.main.backend, set in "
        "settings.toml:6); plugin 'parrot' of atlas-parrot" in done.out
    )


def test_explain_shows_what_is_switched_off_and_what_warns(world: World, atlas: Atlas) -> None:
    """Disabled plugins, names that only an import can tell, and warnings of discovery."""
    world.add("atlas-mute", "mute", "raise RuntimeError('imported')")
    place = world.site / "atlas_odd-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Name: atlas-odd\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("[atlas]\nodd\n")
    world.settings(
        SETTINGS.replace('"kit"]', '"kit", "mute"]')
        .replace("max_iterations = 3", 'type = "quiet"\nplugins = { disable = ["kit", "ghost"] }')
        .replace("max_iterations", "max_tool_calls")
    )
    done = atlas("explain")
    assert "  agent type   quiet (known after import)\n" in done.out
    assert "  switched off: kit@atlas-kit\n" in done.out
    assert "  mute    atlas-mute 1.0    known after import\n" in done.out
    assert "  add     allow     tools: 'add'     known after import\n" in done.out
    assert "warning: plugin 'ghost' is disabled and not installed" in done.out
    assert "'odd' in [atlas]" in done.err


# config ----------------------------------------------------------------------------------------------------------


def test_config_show_with_origins(world: World, atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value with file and line, or variable; secrets are masked (case 112)."""
    monkeypatch.setenv("ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__HELPER__MAX_ITERATIONS", "5")
    world.settings(SETTINGS + '\n[default.plugins.options.kit]\napi_key = "sk-TESTSECRET123"\n')
    done = atlas("config", "show")
    assert 'plugins.enabled = ["parrot", "kit"]  # settings.toml:3\n' in done.out
    assert "helper.max_iterations = 5  # variable ATLAS_AI__AGENTS" in done.out
    assert "TESTSECRET" not in done.out
    data = json.loads(atlas("config", "show", "--json", "--env", "streaming").out)
    assert data["environment"] == "streaming"
    assert {"key": "ai.connections.main.model", "value": "streaming", "origin": "settings.toml:18"} in data["settings"]


def test_config_explain(atlas: Atlas) -> None:
    """One key, or all keys of a table; a key that nobody set; one that there is not."""
    assert atlas("config", "explain", "ai.agents.default-profile").out == (
        'ai.agents.default_profile = "helper"\n  set in settings.toml:9\n'
    )
    table = atlas("config", "explain", "ai.connections.main").out
    assert table.splitlines()[:2] == ['ai.connections.main.backend = "parrot"', "  set in settings.toml:6"]
    assert 'ai.connections.main.model = ""\n  built-in default\n' in table
    unset = atlas("config", "explain", "ai.agents.profiles.connections.helper.max_tokens")
    assert "max_tokens is not set: " in unset.out
    wrong = atlas("config", "explain", "ai.agent")
    assert wrong.status == 2
    assert "did you mean 'agents'?" in wrong.err


def test_a_misspelt_variable_is_told(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nearest known key, on standard error (case 108)."""
    monkeypatch.setenv("ATLAS_AI__AGENTS__DEFAULT_PROFIL", "helper")
    done = atlas("config", "show")
    assert done.status == 2
    assert "'ATLAS_AI__AGENTS__DEFAULT_PROFIL' names no setting" in done.err
    assert "did you mean ATLAS_AI__AGENTS__DEFAULT_PROFILE?" in done.err


def test_config_check_of_right_settings(atlas: Atlas) -> None:
    """One line says for what."""
    assert atlas("config", "check") == (0, "the settings are right: environment default, profiles: helper\n", "")


def test_config_check_tells_all_problems(world: World, atlas: Atlas) -> None:
    """Names, plugin tables, tools, connections of several profiles: one hides no other."""
    world.add("atlas-bad", "bad", "raise RuntimeError('broken at import')")
    world.settings(
        SETTINGS.replace('"kit"]', '"kit", "bad"]')
        + """
[default.plugins.options.kit]
limit = "many"

[default.plugins.options.kitt]
x = 1

[default.plugins.prefix]
ghost = "g"

[default.ai.connections.spare]
backend = "parrot"
colour = "red"

[default.ai.agents.profiles.connections.second]
connection_name = "mian"
permissions = { deny = ["nothing"] }

[default.ai.agents.profiles.connections.third]
connection_name = "main"
executor = "sink"
"""
    )
    done = atlas("config", "check")
    assert (done.status, done.out) == (2, "")
    for text in (
        "limit is 'many', expected a whole number",
        "plugin 'kitt' is not installed (key plugins.options.kitt, set in settings.toml:",
        "plugin 'ghost' is not installed (key plugins.prefix.ghost, set in settings.toml:",
        "unknown key 'colour'",
        "there is no connection 'mian'",
        "plugin 'bad' did not import",
        "an executor named 'sink'",
    ):
        assert text in done.err
    assert "settings.toml:" in done.err


def test_config_check_warns_of_rules_without_effect(world: World, atlas: Atlas) -> None:
    """A rule that matches no tool protects nothing; where tools come later, nobody can tell."""
    rules = 'max_iterations = 3\npermissions = { deny = ["nothing"] }'
    world.settings(SETTINGS.replace("max_iterations = 3", rules))
    done = atlas("config", "check")
    assert done.status == 0
    assert done.err == "atlas: warning: profile 'helper': permissions.deny names 'nothing', which matches no tool\n"
    world.add("atlas-remote", "remote", PROVIDER)
    world.settings(SETTINGS.replace("max_iterations = 3", rules).replace('"kit"]', '"kit", "remote"]'))
    assert atlas("config", "check").err == ""


def test_a_pattern_that_matches_no_tool_is_told(world: World, atlas: Atlas) -> None:
    """By the check, by `explain`, and by the run itself; where nobody declares its tools, only by those that import."""
    world.settings(SETTINGS.replace('"paint"]', '"paint", "nosuch*"]'))
    text = "tools name" + "s 'nosuch*', which matches no tool"
    check = atlas("config", "check")
    assert (check.status, check.err) == (0, f"atlas: warning: profile 'helper': {text}\n")
    assert f"warning: {text}\n" in atlas("explain").out
    assert "name 'nosuch*', which matches no tool" in json.loads(atlas("run", "--json", "x").out)["warnings"][0]


WRONG_NAMES = {
    "type": ("max_iter", 'type = "reactt"\nmax_iter', "agent type named 'reactt'", "type"),
    "executor": ("max_iter", 'executor = "paralel"\nmax_iter', "executor named 'paralel'", "executor"),
    "executor's table": ("max_iter", 'executor = { name = "x" }\nmax_iter', "executor named 'x'", "executor"),
    "tool": ('"paint"]', '"piant"]', "tool named 'piant'", "tools"),
    "contested tool": ('"kit"]', '"kit", "rival"]', "tool 'add' is offered by", "tools"),
    "backend": ('"parrot"\n', '"parot"\n', "model provider named 'parot'", "backend"),
}


@pytest.mark.parametrize("change", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_config_check_names_key_and_line(world: World, atlas: Atlas, change: tuple[str, str, str, str]) -> None:
    """Of each name that a profile uses and nobody, or more than one, offers; `explain` names the same place."""
    old, new, problem, key = change
    source = """
        from atlas_core import hookimpl

        def add() -> int:
            \"\"\"Add.\"\"\"
            return 1

        @hookimpl
        def atlas_tool_providers():
            return [add]
        """
    world.add("atlas-rival", "rival", source, offers=["tool.add"])
    text = SETTINGS.replace(old, new, 1)
    world.settings(text)
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(f"{key} = "))
    table = "ai.connections.main" if key == "backend" else "ai.agents.profiles.connections.helper"
    place = f"(key {table}.{key}, set in settings.toml:{number}"
    done = atlas("config", "check")
    assert done.status == 2
    (error,) = [line for line in done.err.splitlines() if problem in line]
    assert error.startswith("atlas: error: ")
    assert place in error
    assert place in atlas("explain").out


def test_config_check_of_a_profile_whose_plugins_are_not_there(world: World, atlas: Atlas) -> None:
    """The profile is named by its key, and its rules are passed over."""
    rules = 'max_iterations = 3\npermissions = { deny = ["add"] }\nplugins = { enable = ["nowhere"] }'
    world.settings(SETTINGS.replace("max_iterations = 3", rules))
    done = atlas("config", "check")
    assert done.status == 2
    assert "plugin 'nowhere' is not installed" in done.err
    assert "ai.agents.profiles.connections.helper.plugins.enable" in done.err


def test_a_provider_that_two_plugins_offer_is_told_with_its_key(world: World, atlas: Atlas) -> None:
    """The connection's backend is what names it."""
    world.add("atlas-macaw", "macaw", PARROT, offers=["llm.parrot"])
    world.settings(SETTINGS.replace('"kit"]', '"kit", "macaw"]'))
    done = atlas("config", "check")
    assert done.status == 2
    assert "model provider 'parrot' is offered by" in done.err
    assert "(key ai.connections.main.backend, set in settings.toml:6); enable only one of them" in done.err


def test_config_check_of_a_connection_whose_provider_nobody_enables(world: World, atlas: Atlas) -> None:
    """An unused one is no problem: its plugin may be enabled elsewhere."""
    world.settings(SETTINGS + '\n[default.ai.connections.other]\nbackend = "elsewhere"\n')
    assert atlas("config", "check").status == 0


def test_warnings_of_the_settings_are_told(world: World, atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard error, by every command that reads them."""
    for name in ("ATLAS_AI__AGENTS__DEFAULT_PROFILE", "ATLAS_AI__AGENTS__default_profile"):
        monkeypatch.setenv(name, "helper")
    for words in (["config", "show"], ["config", "check"], ["plugins", "list"], ["explain"], ["run", "x"]):
        done = atlas(*words)
        assert done.status == 0
        assert "set the same key" in done.err


# trace -----------------------------------------------------------------------------------------------------------


def test_trace_show_draws_what_the_run_drew(atlas: Atlas) -> None:
    """With the question, which its reader did not ask."""
    ran = atlas("run", 'call add {"a": 2, "b": 40}', "--trace", "t.jsonl").out.splitlines()
    shown = atlas("trace", "show", "t.jsonl")
    assert shown.status == 0
    assert shown.out.splitlines() == [ran[0], 'question: call add {"a": 2, "b": 40}', *ran[1:]]


def test_trace_show_reports_broken_lines_and_goes_on(world: World, atlas: Atlas) -> None:
    """With file and line number; the status says that something was missing."""
    atlas("run", "hello", "--trace", "t.jsonl")
    path = world.work / "t.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    done = atlas("trace", "show", "t.jsonl")
    assert done.status == 1
    assert "answer: echo 1: hello" in done.out
    assert done.err.startswith("atlas: warning: t.jsonl:2: is not JSON")


def test_trace_show_of_a_killed_run(world: World, atlas: Atlas) -> None:
    """A cut last line is told and is no failure; failed runs show their error."""
    atlas("run", "fail", "--trace", "t.jsonl")
    path = world.work / "t.jsonl"
    path.write_text(path.read_text() + '{"event": "RunSta')
    done = atlas("trace", "show", "t.jsonl")
    assert done.status == 0
    assert "\nfailed: " in done.out
    assert "the server is on fire, key ***" in done.out
    assert "the last line is cut" in done.err


def test_trace_show_of_no_file(atlas: Atlas) -> None:
    """Status 2 and the reason."""
    done = atlas("trace", "show", "no.jsonl")
    assert (done.status, done.out) == (2, "")
    assert done.err == "atlas: error: trace file 'no.jsonl' can't be read: No such file or directory\n"


# init ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(templates()))
def test_every_template_loads(world: World, atlas: Atlas, name: str) -> None:
    """It is valid, chooses its own connection, names no secret, and its facts are complete."""
    (world.work / "settings.toml").unlink()
    done = atlas("init", name)
    assert done.status == 0
    text = (world.work / "settings.toml").read_text()
    assert "#:" not in text
    assert tomllib.loads(text)
    loaded = load_settings()
    key, profile = loaded.profile()
    assert key == "assistant"
    assert loaded.problems() == ()
    template = templates()[name]
    assert loaded.connection(profile.connection_name)[1].backend == template.plugin
    assert template.summary
    assert template.distribution
    assert done.out.startswith(f"wrote settings.toml: {template.summary}\n")


def test_init_says_what_is_missing(world: World, atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution to install, and the variable for the key; what is installed is not mentioned."""
    atlas("init", "--help")  # loads what the command needs, before what is installed around the test goes out of sight
    bare = [place for place in sys.path if not list(Path(place).glob("atlas*.dist-info"))]
    # Undone before the world ends, which takes its folder out of the real path.
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(world.site), *bare])
        done = atlas("init", "OpenAI", "--file", "new.toml")
        assert "install the distribution atlas-openai, whose plugin 'openai' is not installed here" in done.out
        assert "put your key into the variable OPENAI_API_KEY" in done.out
        world.add("atlas-llama", "llama", "")
        assert "install" not in atlas("init", "llama", "--file", "other.toml").out


def test_init_never_overwrites(world: World, atlas: Atlas) -> None:
    """Neither a file nor what a link points to."""
    done = atlas("init")
    assert (done.status, done.out) == (2, "")
    assert "'settings.toml' exists and is left as it is" in done.err
    assert (world.work / "settings.toml").read_text() == SETTINGS
    (world.work / "link.toml").symlink_to("target.toml")
    assert atlas("init", "--file", "link.toml").status == 2
    assert not (world.work / "target.toml").exists()


def test_init_of_what_there_is_no_template_for(atlas: Atlas) -> None:
    """The nearest one is offered; a folder that is not there is told."""
    assert "did you mean 'openai'?" in atlas("init", "opanai", "--file", "x.toml").err
    done = atlas("init", "--file", "nowhere/x.toml")
    assert done.status == 2
    assert "No such file or directory" in done.err


# chat ------------------------------------------------------------------------------------------------------------


def test_a_conversation(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """It remembers, forgets when told, survives errors, and ends at /exit."""
    lines = ["one", "", "/help", "fail", "two", "/reset", "three", "/nope", "/etc/hosts is a file", "/exit", "never"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    done = atlas("chat", "--trace", "t.jsonl")
    assert done.status == 0
    said = done.out.splitlines()
    assert [line for line in said if line.startswith("answer")] == [
        "answer: echo 1: one",
        "answer: echo 2: two",
        "answer: echo 1: three",
        "answer: echo 2: /etc/hosts is a file",
    ]
    assert said.count("model: a parrot, no language model") == 1
    assert "/reset  forget the conversation" in said
    assert "there is no /nope; /help lists what there is" in said
    assert done.err.startswith("atlas: error: the server is on fire, key ***")
    assert Path("t.jsonl").exists()


class Keyboard:
    """A terminal's keyboard: what `input` returns or raises."""

    def __init__(self, *typed: str | type[BaseException]) -> None:
        self.typed = list(typed)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        typed = self.typed.pop(0)
        if isinstance(typed, str):
            return typed
        raise typed


def test_a_conversation_on_a_terminal(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a prompt; Ctrl-C at it leaves the conversation be, Ctrl-D ends it."""
    keyboard = Keyboard("one", KeyboardInterrupt, "two", EOFError)
    stdin = io.StringIO()
    stdin.isatty = lambda: True  # type: ignore[method-assign]  # a stand-in for a terminal
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr("builtins.input", keyboard)
    done = atlas("chat")
    assert done.status == 0
    assert keyboard.prompts == ["you> "] * 4
    assert "answer: echo 2: two\n" in done.out
    assert "(Ctrl-D or /exit leaves)" in done.out


def test_a_foreign_error_does_not_end_a_conversation(
    world: World, atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an agent type raises, the next line is answered."""
    world.add(
        "atlas-odd",
        "odd",
        """
        from atlas_core import AgentService, AgentTypeSpec, hookimpl

        class Odd(AgentService):
            def stream(self, message, history=None):
                if message == "odd":
                    raise ZeroDivisionError("odd")
                return super().stream(message, history)

        @hookimpl
        def atlas_agent_types():
            return [AgentTypeSpec(name="odd", factory=Odd.from_parts)]
        """,
    )
    world.settings(
        SETTINGS.replace('"kit"]', '"kit", "odd"]').replace("max_iterations = 3", 'max_iterations = 3\ntype = "odd"')
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("odd\neven\n"))
    done = atlas("chat")
    assert done.status == 0
    assert done.err == "atlas: error: odd\n"
    assert "answer: echo 1: even" in done.out


class Interruption:
    """Standard input that sends a signal while an answer is awaited, or at the prompt."""

    def __init__(self, *lines: str, number: int) -> None:
        self.lines, self.number = lines, number

    def isatty(self) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            if line == "signal":
                os.kill(os.getpid(), self.number)
            elif line == "hang":
                threading.Timer(0.5, lambda: os.kill(os.getpid(), self.number)).start()
                yield line
            else:
                yield line


@pytest.mark.parametrize(
    ("lines", "number", "status", "answers"),
    [
        pytest.param(["hang", "on"], signal.SIGINT, 0, 1, id="Ctrl-C ends the answer"),
        pytest.param(["hang", "on"], signal.SIGTERM, 143, 0, id="being told to end ends all"),
        pytest.param(["one", "signal", "two"], signal.SIGINT, 130, 1, id="Ctrl-C while a pipe is read ends all"),
    ],
)
def test_signals_in_a_conversation(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch, lines: list[str], *, number: int, status: int, answers: int
) -> None:
    """What they end depends on what goes on."""
    monkeypatch.setattr(sys, "stdin", Interruption(*lines, number=number))
    done = atlas("chat")
    assert done.status == status
    assert done.out.count("answer: echo 1") == answers


def test_the_process_ends_without_waiting_for_abandoned_threads(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a program of its own an interrupted command leaves at once, with what it said written."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["atlas", "chat"])
    monkeypatch.setattr(sys, "stdin", Interruption("one", "signal", number=signal.SIGTERM))
    main()
    assert ended == [143]
    assert "answer: echo 1: one" in capsys.readouterr().out


def test_an_interrupt_before_any_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the command line itself still loads."""

    def interrupted(words: object, *, goes_on: bool) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("atlas_core.cli.app.run", interrupted)
    assert main(["config", "show"]) == 130


def test_the_package_is_a_command_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m atlas_core` is `atlas`."""
    monkeypatch.setattr(sys, "argv", ["atlas", "--version"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("atlas_core", run_name="__main__")
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"atlas {__version__}\n"
    runpy.run_module("atlas_core.__main__", run_name="looked_at")
    assert capsys.readouterr().out == ""
