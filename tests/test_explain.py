"""`explain` tells what a profile comes to from settings and metadata, and imports no plugin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atlas_core import Kernel, SettingsError
from atlas_core.explain import Explanation, explain
from atlas_core.settings.loader import load_settings
from tests.plugin_factory import importable, lay_out

NEVER = "raise RuntimeError('imported')"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder of distributions, none of which may be imported."""
    site = tmp_path / "site"
    site.mkdir()
    for name, offers in {
        "words": ["tool.count_words", "tool.send_mail", "agent.poet"],
        "models": ["llm.parrot", "executor.farm"],
        "silent": [],
        "idle": ["tool.idle", "llm.idle"],
        "needs-idle": ["tool.needs_idle", "llm.needy"],
        "rival": ["tool.count_words", "llm.parrot"],
    }.items():
        module = f"never_{name.replace('-', '_')}"
        lay_out(
            site,
            f"atlas-{name}",
            "2.0",
            plugins={name: module},
            modules={module: NEVER},
            offers=dict.fromkeys(offers, module),
            requires=["atlas-idle"] if name == "needs-idle" else [],
        )
    with importable(site):
        yield site
        assert not [name for name in sys.modules if name.startswith("never_")]


def told(folder: Path, enabled: list[str], profile: str = "", more: str = "", name: str | None = None) -> Explanation:
    """Explain a profile over settings with some plugins enabled."""
    path = folder / "settings.toml"
    path.write_text(
        f"""
[default.plugins]
enabled = {json.dumps(enabled)}

[default.ai.connections.main]
backend = "parrot"
model = "small"
api_key_env = "PARROT_KEY"

[default.ai.agents]
default_profile = "one"

[default.ai.agents.profiles.connections.one]
connection_name = "main"
{profile}

{more}
""",
        encoding="utf-8",
    )
    return explain(Kernel(load_settings(path)), name)


def tools_of(found: Explanation) -> dict[str, tuple[str, str, str]]:
    """Return decision, reason and knowledge by tool."""
    return {tool.name: (tool.decision, tool.because, tool.known) for tool in found.tools}


def test_everything_is_resolved_from_metadata(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, owners, options, limits, and whether the connection's variables are set."""
    monkeypatch.setenv("PARROT_KEY", "sk-TESTSECRET123")
    found = told(
        tmp_path,
        ["words", "models"],
        'description = "Counts."\ntype = "poet"\nexecutor = { name = "farm", workers = 2, api_key = "x" }\n'
        'tools = ["count-words"]\nmax_tokens = 100\nplugins = { disable = ["idle"] }',
    )
    assert (found.profile, found.description, found.environment) == ("one", "Counts.", "default")
    assert found.files == (str(tmp_path / "settings.toml"),)
    assert [(p.name, p.distribution, p.version, p.status) for p in found.plugins] == [
        ("models", "atlas-models", "2.0", "enabled"),
        ("words", "atlas-words", "2.0", "enabled"),
    ]
    assert found.disabled == ("idle@atlas-idle",)
    assert str(found.agent_type.owner) == "plugin 'words' of atlas-words 2.0"
    assert str(found.executor.owner) == "plugin 'models' of atlas-models 2.0"
    assert found.executor.options == {"workers": 2, "api_key": "***"}
    assert (found.connection, found.model, found.provider.name) == ("main", "small", "parrot")
    assert found.variables == {"PARROT_KEY": True}
    assert found.limits["max_tokens"] == 100
    assert found.limits["max_tool_calls"] is None
    assert tools_of(found) == {"count_words": ("allow", "tools: 'count-words'", "declared")}
    assert (found.problems, found.warnings) == ((), ())
    assert "TESTSECRET" not in repr(found)


def test_the_machine_form_is_json(site: Path, tmp_path: Path) -> None:
    """Everything is in it, as plain values."""
    found = told(tmp_path, ["words", "models"], 'tools = ["*"]')
    data: dict[str, Any] = json.loads(json.dumps(found.to_dict()))
    assert data["provider"]["owner"] == {"plugin": "models", "distribution": "atlas-models", "version": "2.0"}
    assert [tool["name"] for tool in data["tools"]] == ["count_words", "send_mail"]
    assert data["plugins"][1]["offers"] == ["agent.poet", "tool.count_words", "tool.send_mail"]


def test_each_tool_has_the_rule_that_decides(site: Path, tmp_path: Path) -> None:
    """Deny beats ask beats allow, and each names its setting; what `tools` does not choose is left out."""
    rules = 'tools = ["*_words", "send_mail"]\npermissions = { ask = ["send_*"], deny = ["count_*"] }'
    assert tools_of(told(tmp_path, ["words", "models"], rules)) == {
        "count_words": ("deny", "permissions.deny: 'count_*'", "declared"),
        "send_mail": ("ask", "permissions.ask: 'send_*'", "declared"),
    }
    narrowed = 'tools = ["*"]\npermissions = { allow = ["count_words"] }'
    assert tools_of(told(tmp_path, ["words", "models"], narrowed))["send_mail"][:2] == (
        "deny",
        "permissions.allow does not name it",
    )


def test_a_prefix_is_part_of_the_name(site: Path, tmp_path: Path) -> None:
    """As it will be once the plugin is loaded."""
    more = '[default.plugins.prefix]\nwords = "w"'
    found = told(tmp_path, ["words", "models"], 'tools = ["w_count_words"]', more)
    assert list(tools_of(found)) == ["w_count_words"]


def test_what_a_silent_plugin_offers_is_known_after_import(site: Path, tmp_path: Path) -> None:
    """It is no problem and no guess: decision where a literal name allows one, none for a pattern."""
    found = told(
        tmp_path,
        ["models", "silent"],
        'type = "quiet"\ntools = ["mystery", "m*"]\npermissions = { deny = ["mystery"], ask = ["nothing"] }',
    )
    assert tools_of(found) == {
        "mystery": ("deny", "permissions.deny: 'mystery'", "after import"),
        "m*": ("", "a pattern", "after import"),
    }
    assert (found.agent_type.known, found.agent_type.owner) == ("after import", None)
    assert (found.problems, found.warnings) == ((), ())


def test_an_undeclared_name_where_all_plugins_declare_is_a_warning(site: Path, tmp_path: Path) -> None:
    """It may still be there, but most likely is misspelt; rules and patterns without effect are told too."""
    found = told(
        tmp_path,
        ["words", "models"],
        'tools = ["count_word", "idle", "x*"]\npermissions = { deny = ["nothing"] }',
    )
    assert found.problems == ()
    place = f"key ai.agents.profiles.connections.one.tools, set in {tmp_path / 'settings.toml'}:15"
    assert found.warnings == (
        f"no enabled plugin declares tool 'count_word' ({place}); did you mean 'count_words'?",
        (
            f"no enabled plugin declares tool 'idle' ({place}); plugin 'idle' of atlas-idle declares it: "
            "add it to plugins.enabled"
        ),
        "tools names 'x*', which matches no tool",
        "permissions.deny names 'nothing', which matches no tool",
    )


def test_without_any_plugin_what_is_not_built_in_is_missing(site: Path, tmp_path: Path) -> None:
    """Then nothing can offer it, and each such name is a problem with its remedy."""
    found = told(tmp_path, [], 'tools = ["count_words", "zzz"]')
    assert found.provider.known == "missing"
    assert found.agent_type.known == found.executor.known == "declared"
    assert tools_of(found)["count_words"] == ("", "tools: 'count_words'", "missing")
    assert found.problems[0].startswith("no enabled plugin offers model provider 'parrot' (key ai.connections.")
    assert "settings.toml:6); plugin 'models' of atlas-" in found.problems[0]
    assert found.problems[1].startswith("no enabled plugin offers tool 'count_words' (key ai.agents.profiles.")
    assert found.problems[2].startswith("no enabled plugin offers tool 'zzz' (key ")
    assert found.problems[2].endswith("; none is declared")


def test_a_refused_plugin_says_why(site: Path, tmp_path: Path) -> None:
    """One whose distribution requires a disabled one would import it, and is refused."""
    found = told(
        tmp_path,
        ["models", "needs-idle", "idle"],
        'tools = ["needs_idle"]\nplugins = { disable = ["idle", "ghost"] }',
    )
    refused = next(p for p in found.plugins if p.status == "refused")
    assert (refused.name, refused.offers) == ("needs-idle", ("llm.needy", "tool.needs_idle"))
    assert "requires 'atlas-idle'" in refused.problem
    assert found.warnings[0].startswith("plugin 'ghost' is disabled and not installed")
    assert "requires 'atlas-idle'" in found.warnings[1]


def test_a_name_that_two_plugins_declare_is_a_problem(site: Path, tmp_path: Path) -> None:
    """Both owners are named, once."""
    found = told(tmp_path, ["words", "models", "rival"], 'tools = ["count_words"]')
    models, rival, words = (f"plugin {name!r} of atlas-{name} 2.0" for name in ("models", "rival", "words"))
    file = tmp_path / "settings.toml"
    assert found.problems == (
        (
            f"model provider 'parrot' is declared by {models} and by {rival} "
            f"(key ai.connections.main.backend, set in {file}:6); enable only one of them"
        ),
        (
            f"tool 'count_words' is declared by {rival} and by {words} "
            f"(key ai.agents.profiles.connections.one.tools, set in {file}:15); "
            "set plugins.prefix.rival or plugins.prefix.words to rename one"
        ),
    )


def test_a_missing_connection_is_a_problem_and_hides_nothing(site: Path, tmp_path: Path) -> None:
    """The rest is told all the same."""
    found = told(
        tmp_path,
        ["words", "models"],
        more='[default.ai.agents.profiles.connections.two]\nconnection_name = "mian"\ntools = ["send_mail"]\n'
        "[default.ai.agents.profiles.connections.three]",
        name="two",
    )
    assert (found.connection, found.provider.known, found.variables) == ("mian", "missing", {})
    (problem,) = found.problems
    assert problem.startswith("there is no connection 'mian' (key ai.agents.profiles.connections.two.connection_name")
    assert list(tools_of(found)) == ["send_mail"]
    unnamed = explain(Kernel(load_settings(tmp_path / "settings.toml")), "three")
    assert unnamed.problems == (
        "the profile names no connection (key ai.agents.profiles.connections.three.connection_name)",
    )


def test_the_one_connection_there_is_needs_no_name(site: Path) -> None:
    """As it is for an agent."""
    settings = {
        "ai": {
            "connections": {"only": {"backend": "x"}},
            "agents": {"enabled": False, "profiles": {"connections": {"one": {}}}},
        }
    }
    found = explain(Kernel(settings, plugins=[]), "one")
    assert found.connection == "only"
    assert found.problems[0] == "agents are disabled: ai.agents.enabled is false, set in the program"


def test_an_unknown_profile_is_an_error(site: Path, tmp_path: Path) -> None:
    """With the nearest name."""
    with pytest.raises(SettingsError, match="no profile 'onw'; did you mean 'one'"):
        told(tmp_path, ["words"], name="onw")


MORE = """
[default.ai.connections.spare]
backend = "idle"
requests_per_minute = 2
key_env = "SPARE_KEY"
"""


def test_limits_costs_and_fallbacks_are_told(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fallback's own provider, variables and rate; what can't be kept is told."""
    monkeypatch.setenv("SPARE_KEY", "x")
    limits = 'max_cost = 0.25\ntool_calls = "text"\n\n[default.ai.connections.main.prices]\ninput = 2.5\noutput = 10\n'
    path = tmp_path / "settings.toml"
    told(tmp_path, ["models", "idle"], limits, MORE)
    path.write_text(
        path.read_text().replace('"small"\n', '"small"\nfallback = ["spare"]\nrequests_per_minute = 30\n', 1)
    )
    found = explain(Kernel(load_settings(path)))
    assert (found.fallback, found.tool_calls) == (("spare",), "text")
    assert found.requests_per_minute == {"main": 30, "spare": 2}
    assert found.prices == {"main": {"input": 2.5, "output": 10}}
    assert found.limits["max_cost"] == 0.25
    assert found.variables == {"PARROT_KEY": False, "SPARE_KEY": True}
    assert found.problems == ()
    assert found.warnings == ("max_cost counts nothing of fallback 'spare', which has no prices",)
    path.write_text(path.read_text().replace('"models", "idle"', '"models"'))
    (warning, _) = explain(Kernel(load_settings(path))).warnings
    assert warning.startswith("no enabled plugin declares model provider 'idle' (key ai.connections.spare.backend, ")
    assert "plugin 'idle' of atlas-idle declares it" in warning


def test_nothing_of_limits_and_costs_is_set(site: Path, tmp_path: Path) -> None:
    """Then there is nothing to tell."""
    found = told(tmp_path, ["models"])
    assert (found.fallback, found.tool_calls, found.requests_per_minute, found.prices) == ((), "auto", {}, {})
    assert found.limits["max_cost"] is None


def test_a_bound_of_cost_without_prices_is_a_problem(site: Path, tmp_path: Path) -> None:
    """The agent could not be made, and explain says so before anybody tries."""
    (problem,) = told(tmp_path, ["models"], "max_cost = 1").problems
    assert "max_cost can't be kept: connection 'main' has no prices" in problem
