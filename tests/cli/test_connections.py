"""`atlas connections`: which there are, and whether one answers."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.cli.conftest import Done
from tests.cli.world import SETTINGS, World, stop, wait_for

Atlas = Callable[..., Done]

GUIDE = r'''
"""A provider whose `check` comes to what the model's name says."""

import asyncio
from pathlib import Path

from pydantic import BaseModel

from atlas_core import (
    BaseLLM, ConnectionReport, LLMProviderSpec, ProviderAuthError, ServiceNotReadyError, hookimpl,
)


class Options(BaseModel):
    api_key_env: str = ""
    size: int = 1


class Guide(BaseLLM):
    def __init__(self, config):
        self.model = config.model

    async def complete(self, request):
        raise AssertionError("a look asks no model by itself")

    async def _start(self):
        Path("started").touch()

    async def _stop(self):
        Path("stopped").touch()

    async def check(self):
        await self.start()
        match self.model:
            case "silent":
                return ConnectionReport(answers=False)
            case "unknown":
                return ConnectionReport(answers=False, detail="404, key sk-TESTSECRET123", models=("known", "other"))
            case "many":
                return ConnectionReport(answers=True, models=tuple(f"m{n:02}" for n in range(23)), tools=False)
            case "locked":
                raise ProviderAuthError("the server answered 401", remedy="check the key")
            case "broken":
                raise KeyError("usage")
            case "late":
                raise TimeoutError("a library's own")
            case "odd":
                return "fine"
            case "bare":
                raise ServiceNotReadyError("HTTP needs more", remedy="pip install it")
            case "hang":
                Path("hanging").touch()
                await asyncio.sleep(60)
        return ConnectionReport(answers=True, detail="hello\x1b[31m", models=("small",), tools=True, streaming=False)


@hookimpl
def atlas_llm_providers():
    return [LLMProviderSpec(name="guide", factory=Guide, options=Options)]
'''


@pytest.fixture
def guided(world: World) -> Callable[..., World]:
    """Makes a world with a connection `far` of the provider `guide`."""
    world.add("atlas-guide", "guide", GUIDE, offers=["llm.guide"])

    def make(model: str = "small", more: str = "") -> World:
        enabled = SETTINGS.replace('"kit"]', '"kit", "guide"]')
        world.settings(f'{enabled}\n[default.ai.connections.far]\nbackend = "guide"\nmodel = "{model}"\n{more}\n')
        return world

    return make


# list ------------------------------------------------------------------------------------------------------------


def test_list_tells_all_from_settings(
    world: World, guided: Callable[..., World], atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, fallbacks, who uses them and whether keys are set, with no plugin imported and no key shown."""
    monkeypatch.setenv("GUIDE_KEY", "sk-TESTSECRET123")
    guided(more='api_key_env = "GUIDE_KEY"\nfallback = ["main"]\nrequests_per_minute = 9\nprices = { input = 1.5 }')
    for plugin in ("guide", "parrot", "kit"):
        world.add(f"atlas-{plugin}", plugin, "raise RuntimeError('imported')", offers=[f"llm.{plugin}"])
    done = atlas("connections", "list")
    assert (done.status, done.err) == (0, "")
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert list(rows) == ["NAME", "offline", "main", "far"]
    assert rows["main"].split(None, 3) == ["main", "parrot", "-", "none named     -         helper"]
    assert rows["far"].split(None, 3) == ["far", "guide", "small", "GUIDE_KEY set  main      no profile"]
    facts = {row["name"]: row for row in json.loads(atlas("connections", "list", "--json").out)}
    assert facts["far"] == {
        "name": "far",
        "backend": "guide",
        "model": "small",
        "fallback": ["main"],
        "requests_per_minute": 9,
        "prices": {"input": 1.5, "cached_input": None, "output": 0.0},
        "variables": {"GUIDE_KEY": True},
        "profiles": [],
        "origin": "settings.toml:21",
    }
    assert (facts["main"]["profiles"], facts["main"]["prices"]) == (["helper"], None)
    assert facts["offline"]["origin"] == "built-in default"
    assert "TESTSECRET" not in done.out
    assert not [name for name in sys.modules if name.startswith("atlas_guide")]


def test_list_warns_of_names_that_lead_nowhere(world: World, atlas: Atlas) -> None:
    """A fallback counts as used, and one that is not there is told; the listing is there all the same."""
    world.settings(
        SETTINGS.replace('"parrot"\n', '"parrot"\nfallback = ["spare", "spaer"]\n', 1)
        + '\n[default.ai.connections.spare]\nbackend = "parrot"\nkey_env = "NO_SUCH_KEY"\n'
    )
    done = atlas("connections", "list")
    assert done.status == 0
    assert "atlas: warning: profile 'helper': there is no connection 'spaer' (key ai.connections.main.fallback" in (
        done.err
    )
    assert "spare    parrot   -      NO_SUCH_KEY NOT set  -             helper" in done.out


def test_list_passes_on_what_the_settings_warn_of(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard error, such as two spellings of a variable."""
    monkeypatch.setenv("ATLAS_PLUGINS__ENABLED", "kit")
    monkeypatch.setenv("ATLAS_plugins__enabled", "parrot")
    done = atlas("connections", "list")
    assert done.status == 0
    assert done.err.startswith("atlas: warning: ")
    assert "ATLAS_plugins__enabled" in done.err


# check -----------------------------------------------------------------------------------------------------------


def test_check_of_one_that_answers(guided: Callable[..., World], atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found, harmless to a screen; the model is stopped afterwards; fallbacks are not asked."""
    monkeypatch.delenv("GUIDE_KEY", raising=False)
    world = guided(more='api_key_env = "GUIDE_KEY"\nfallback = ["main"]')
    done = atlas("connections", "check", "FAR")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "connection far answers (0.0 s)",
        "  provider   guide (plugin 'guide' of atlas-guide 1.0)",
        "  model      small",
        "  variable   GUIDE_KEY is NOT set",
        "  found      hello\\x1b[31m",
        "  models     small",
        "  tools      yes",
        "  streaming  no",
        "  fallback   main (not asked)",
    ]
    assert (world.work / "stopped").exists()


def test_check_as_json(guided: Callable[..., World], atlas: Atlas) -> None:
    """One object; a failure is told in it and, like any other, on standard error."""
    guided("many")
    facts = json.loads(atlas("connections", "check", "far", "--json").out)
    assert len(facts["models"]) == 23
    assert (facts["answers"], facts["tools"], facts["streaming"]) == (True, False, None)
    assert (facts["backend"], facts["distribution"], facts["fallback"]) == ("guide", "atlas-guide", [])
    assert facts["duration_s"] > 0
    guided("unknown")
    done = atlas("connections", "check", "far", "--json")
    assert done.status == 1
    facts = json.loads(done.out)
    assert (facts["answers"], facts["detail"], facts["models"]) == (False, "404, key ***", ["known", "other"])


def test_a_long_list_of_models_is_cut(guided: Callable[..., World], atlas: Atlas) -> None:
    """After twenty."""
    guided("many")
    out = atlas("connections", "check", "far").out
    assert ", m19, and 3 more\n" in out
    assert "  tools      no\n  streaming  not tried\n" in out
    assert "found" not in out


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        pytest.param("silent", "its provider gives no reason", id="no reason"),
        pytest.param(
            "unknown",
            "404, key ***; the server names no model 'unknown', did you mean 'known'?",
            id="a model that is not there",
        ),
        pytest.param("locked", "the server answered 401; check the key", id="a provider's error"),
        pytest.param(
            "broken", "guide (plugin 'guide' of atlas-guide 1.0) failed: KeyError: 'usage'", id="a fault of the plugin"
        ),
        pytest.param(
            "late",
            "guide (plugin 'guide' of atlas-guide 1.0) failed: TimeoutError: a library's own",
            id="a time-out that is not the look's",
        ),
        pytest.param(
            "odd",
            "guide (plugin 'guide' of atlas-guide 1.0) reported a str, expected a ConnectionReport",
            id="an answer that is none",
        ),
    ],
)
def test_check_of_one_that_does_not_answer(guided: Callable[..., World], atlas: Atlas, model: str, reason: str) -> None:
    """Status 1, and why in plain words; the model is stopped, too."""
    world = guided(model)
    done = atlas("connections", "check", "far")
    assert done.status == 1
    assert done.err == f"atlas: error: connection 'far' does not answer: {reason}\n"
    assert done.out.startswith("connection far does not answer (")
    assert (world.work / "stopped").exists()


def test_check_ends_in_time(guided: Callable[..., World], atlas: Atlas) -> None:
    """What hangs is given up, and stopped."""
    world = guided("hang")
    began = time.monotonic()
    done = atlas("connections", "check", "far", "--timeout", "0.2")
    assert time.monotonic() - began < 20
    assert (done.status, done.err) == (
        1,
        "atlas: error: connection 'far' does not answer: nothing came within 0.2 s\n",
    )
    assert (world.work / "stopped").exists()


def test_ctrl_c_ends_a_check(guided: Callable[..., World]) -> None:
    """With the status of an interruption, and the model is stopped."""
    world = guided("hang")
    process = world.start("connections", "check", "far")
    wait_for((world.work / "hanging").exists)
    status, out, err = stop(process, signal.SIGINT)
    assert (status, out) == (130, "")
    assert "Traceback" not in err
    assert (world.work / "stopped").exists()


@pytest.mark.parametrize(
    ("words", "more", "told"),
    [
        pytest.param(["fra"], "", "there is no connection 'fra'; did you mean 'far'?", id="no such connection"),
        pytest.param(["far"], 'size = "big"', "ai.connections.far.size", id="a table that does not fit"),
        pytest.param(["far"], 'fallback = ["near"]', "there is no connection 'near'", id="no such fallback"),
        pytest.param(["far", "--timeout", "0"], "", "more than 0", id="no time"),
        pytest.param(["far", "--timeout", "nan"], "", "more than 0", id="no number"),
    ],
)
def test_what_is_wrong_before_anything_is_sent(
    guided: Callable[..., World], atlas: Atlas, words: list[str], more: str, told: str
) -> None:
    """Status 2, and nothing was started."""
    world = guided(more=more)
    done = atlas("connections", "check", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert not (world.work / "started").exists()


def test_a_missing_library_is_no_fault_of_the_model(guided: Callable[..., World], atlas: Atlas) -> None:
    """Status 2, and what to install."""
    guided("bare")
    done = atlas("connections", "check", "far")
    assert (done.status, done.out) == (2, "")
    assert done.err == "atlas: error: HTTP needs more; pip install it\n"


def test_a_provider_that_only_a_profile_enables(world: World, guided: Callable[..., World], atlas: Atlas) -> None:
    """It is found through the profile that uses the connection; without one, what to enable is told."""
    guided()
    disabled = (world.work / "settings.toml").read_text().replace(', "guide"]', "]")
    world.settings(disabled)
    done = atlas("connections", "check", "far")
    assert done.status == 2
    assert "plugin 'guide' of atlas-guide offers it: add it to plugins.enabled" in done.err
    world.settings(
        f"{disabled}\n[default.ai.agents.profiles.connections.traveller]\nconnection_name = 'far'\n"
        "plugins = { enable = ['guide'] }\n"
    )
    assert atlas("connections", "check", "far").status == 0


# explain ---------------------------------------------------------------------------------------------------------


def test_explain_shows_limits_and_costs(world: World, guided: Callable[..., World], atlas: Atlas) -> None:
    """Fallback, rates, prices, cost and the way of calling tools, where they are set."""
    assert not re.search(r"fallback|rate|prices|tool calls|max_cost", atlas("explain").out)
    guided(more="requests_per_minute = 7.5\nprices = { input = 1, cached_input = 0.1, output = 2 }")
    path = world.work / "settings.toml"
    text = path.read_text().replace('"parrot"\n', '"parrot"\nfallback = ["far"]\nprices = { input = 2 }\n', 1)
    path.write_text(text.replace("max_iterations = 3", 'max_iterations = 3\nmax_cost = 0.5\ntool_calls = "native"'))
    done = atlas("explain")
    assert done.status == 0
    for line in (
        "  fallback     far\n",
        "  rate         far: 7.5 requests a minute\n",
        "  prices       main: input 2, output 0, per million tokens\n",
        "  prices       far: input 1, cached_input 0.1, output 2, per million tokens\n",
        "  tool calls   native\n",
        "max_cost = 0.5",
    ):
        assert line in done.out
    assert json.loads(atlas("explain", "--json").out)["fallback"] == ["far"]
