"""`atlas run`: the chain as it happens, the answer, one JSON object, exit statuses."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_core.cli import main
from tests.cli.conftest import Done
from tests.cli.world import SETTINGS, World, lines_of

Atlas = Callable[..., Done]
ADD = 'call add {"a": 2, "b": 40}'


def test_the_chain_and_the_answer(atlas: Atlas) -> None:
    """The first line says which model answers, the last how to use a real one; standard error stays empty."""
    done = atlas("run", ADD)
    assert done == (
        0,
        (
            "model: a parrot, no language model\n"
            "  thought: I look it up\n"
            '  action: add {"a": 2, "b": 40}\n'
            "    observation: 42\n"
            "answer: it is 42\n"
            "used: 2 requests, 14 tokens in, 6 out\n"
            "note: to use a real model, run `atlas init openai`\n"
        ),
        "",
    )


def test_what_a_run_cost(world: World, atlas: Atlas) -> None:
    """With prices the closing line and the JSON tell the cost of all requests; --quiet tells nothing."""
    world.settings(SETTINGS.replace('"parrot"\n', '"parrot"\nprices = { input = 100.0, output = 1000.0 }\n', 1))
    assert "\nused: 2 requests, 14 tokens in, 6 out, cost 0.00740\n" in atlas("run", ADD).out
    usage = json.loads(atlas("run", "--json", ADD).out)["usage"]
    assert usage["requests"] == 2
    assert usage["cost"] == pytest.approx((14 * 100 + 6 * 1000) / 1e6)
    assert "used" not in "".join(map(str, atlas("run", "--quiet", ADD)))


def test_streamed_text(atlas: Atlas) -> None:
    """With a model that streams, text is drawn as it comes, once."""
    done = atlas("run", "hello there", "--env", "streaming")
    assert done.out.count("echo 1: hello there") == 1
    assert json.loads(atlas("run", "hi", "--json", "--env", "streaming").out)["output"] == "echo 1: hi"


def test_json_is_one_documented_object(atlas: Atlas) -> None:
    """Standard output holds the object alone; model and notice go to standard error."""
    done = atlas("run", "--json", 'call add {"a": 2, "b": 40}; call add {"a": "x"}')
    data = json.loads(done.out)
    assert done.status == 0
    assert done.err == "model: a parrot, no language model\nnote: to use a real model, run `atlas init openai`\n"
    assert list(data) == [
        "run_id",
        "outcome",
        "output",
        "profile",
        "model",
        "notice",
        "iterations",
        "duration_s",
        "usage",
        "tool_results",
        "warnings",
        "error",
    ]
    assert data["outcome"] == "answered"
    assert data["output"].startswith("it is Error")
    assert (data["profile"], data["iterations"], data["error"]) == ("helper", 2, None)
    assert data["usage"]["input_tokens"] == 14
    good, bad = data["tool_results"]
    assert (good["name"], good["arguments"], good["status"]) == ("add", {"a": 2, "b": 40}, "ok")
    assert (good["content"], good["plugin"], good["distribution"]) == ("42", "kit", "atlas-kit")
    assert (bad["status"], bad["duration_s"]) == ("invalid_arguments", 0.0)


def test_json_shows_arguments_that_are_no_json_as_they_came(atlas: Atlas) -> None:
    """A model's malformed text is a text in the report."""
    done = atlas("run", "--json", "call add {a: 1}")
    assert json.loads(done.out)["tool_results"][0]["arguments"] == "{a: 1}"


@pytest.mark.parametrize(
    ("words", "outcome", "error", "status"),
    [
        pytest.param(["decline"], "declined", None, 3, id="declined"),
        pytest.param(["fail"], "failed", "ProviderError", 1, id="provider failed"),
        pytest.param(["loop"], "limit", "AgentMaxIterationsError", 4, id="limit reached"),
        pytest.param(["x", "-p", "nobody"], "not_started", "SettingsError", 2, id="unknown profile"),
        pytest.param(["x", "--settings", "no.toml"], "not_started", "SettingsError", 2, id="missing settings file"),
    ],
)
def test_json_and_status_of_what_is_no_answer(
    atlas: Atlas, words: list[str], outcome: str, error: str | None, status: int
) -> None:
    """There is one object whatever happens, and the exit status tells the kinds apart; no key is in it (case 112)."""
    done = atlas("run", "--json", *words)
    data = json.loads(done.out)
    assert done.status == status
    assert data["outcome"] == outcome
    assert (data["error"] and data["error"]["type"]) == error
    assert "TESTSECRET" not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        pytest.param(["decline"], 3, "declined: that is not for a parrot\n", "", id="declined"),
        pytest.param(["fail"], 1, "note: to use", "atlas: error: the server is on fire, key ***", id="failed"),
        pytest.param(["loop"], 4, "(not run)", "after 3 model requests; raise max_iterations", id="limit"),
        pytest.param(["x", "-p", "helpr"], 2, "", "no profile 'helpr'; did you mean 'helper'?", id="profile"),
        pytest.param(["x", "--env", "prod"], 2, "", "environment 'prod'", id="environment"),
        pytest.param(["  "], 2, "", "the text is empty", id="empty text"),
        pytest.param(["x", "--json", "-q"], 2, "", "exclude each other", id="json and quiet"),
        pytest.param(["x", "--profle", "y"], 2, "", "atlas: error: no such option: --profle (", id="misspelt option"),
        pytest.param(
            [], 2, "", "atlas: error: missing argument 'TEXT'; `atlas run --help` tells the usage\n", id="no text"
        ),
    ],
)
def test_statuses_and_messages(atlas: Atlas, words: list[str], status: int, out: str, err: str) -> None:
    """Errors go to standard error, in one message without a traceback."""
    done = atlas("run", *words)
    assert done.status == status
    assert out in done.out
    assert err in done.err
    assert "Traceback" not in done.err


def test_quiet_prints_the_answer_alone(atlas: Atlas) -> None:
    """For `x=$(atlas run -q ...)`; a decline leaves standard output empty."""
    assert atlas("run", "-q", ADD).out == "it is 42\n"
    declined = atlas("run", "-q", "decline")
    assert (declined.status, declined.out) == (3, "")
    assert "declined: that is not for a parrot" in declined.err


def test_quiet_tells_warnings_of_the_run_on_standard_error(world: World, atlas: Atlas) -> None:
    """A permission rule that matches nothing is such a warning."""
    world.settings(SETTINGS.replace("max_iterations = 3", 'max_iterations = 3\npermissions = { deny = ["nothing"] }'))
    assert "warning: permissions.deny names 'nothing'" in atlas("run", "-q", "x").err
    assert json.loads(atlas("run", "--json", "x").out)["warnings"] == [
        "permissions.deny names 'nothing', which matches no tool"
    ]


def test_text_from_standard_input(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads it to its end."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe\n"))
    assert "echo 1: from a pipe" in atlas("run", "-").out


def test_a_trace_holds_every_event(world: World, atlas: Atlas) -> None:
    """From the run's start to its end, and a second run is added."""
    for _ in range(2):
        assert atlas("run", ADD, "--trace", "t.jsonl").status == 0
    kinds = [line["event"] for line in lines_of(world.work / "t.jsonl")]
    once = ["RunStarted", *["ModelRequested", "ModelResponded", "ToolCallStarted", "ToolCallEnded"]]
    assert kinds == [*once, "ModelRequested", "ModelResponded", "RunEnded"] * 2


def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(atlas: Atlas) -> None:
    """With the missing folder's name."""
    done = atlas("run", ADD, "--trace", "nowhere/t.jsonl")
    assert (done.status, done.out) == (2, "")
    assert "make the folder 'nowhere'" in done.err


@pytest.mark.parametrize("tool", ["fails", "quits"])
def test_a_failing_tool_ends_no_run(atlas: Atlas, tool: str) -> None:
    """Not even one that calls sys.exit (case 90)."""
    done = atlas("run", f'call {tool} {{"why": "x"}}' if tool == "fails" else f"call {tool} {{}}")
    assert done.status == 0
    assert "observation (failed): Error: " in done.out


def test_agents_that_are_disabled(world: World, atlas: Atlas) -> None:
    """It says which setting did it."""
    world.settings(SETTINGS.replace("[default.ai.agents]\n", "[default.ai.agents]\nenabled = false\n"))
    done = atlas("run", "x")
    assert done.status == 2
    assert "ai.agents.enabled is false" in done.err


BAD = {
    "RuntimeError": 'raise RuntimeError("broken at import")',
    "SystemExit": "raise SystemExit(3)",
    "SyntaxError": "def broken(:",
}
HALF = '''
from atlas_core import hookimpl

def halfway() -> int:
    """Never offered."""
    return 1

@hookimpl
def atlas_tool_providers():
    yield halfway
    raise RuntimeError("half")
'''


@pytest.mark.parametrize("source", BAD.values(), ids=BAD)
def test_broken_plugins_that_are_not_needed(world: World, atlas: Atlas, source: str) -> None:
    """A warning names each in one line, the run goes on, and nothing of a half registered one is kept (case 96)."""
    world.add("atlas-bad", "bad", source)
    world.add("atlas-half", "half", HALF)
    world.settings(SETTINGS.replace('"kit"]', '"kit", "bad", "half"]'))
    done = atlas("run", ADD)
    assert done.status == 0
    assert "answer: it is 42" in done.out
    first, second = done.err.splitlines()
    assert first.startswith("atlas: warning: plugin 'bad' is not used: ")
    assert second.startswith("atlas: warning: plugin 'half' is not used: ")
    assert "halfway" not in atlas("tools", "list").out


def test_a_broken_plugin_that_is_needed(world: World, atlas: Atlas) -> None:
    """The run fails before any model call, with the plugin, its distribution, the cause; `--debug` shows where."""
    world.add("atlas-parrot", "parrot", 'raise RuntimeError("broken at import")', offers=["llm.parrot"])
    done = atlas("run", "x")
    assert (done.status, done.out) == (2, "")
    assert "plugin 'parrot' did not import" in done.err
    assert "atlas-parrot 1.0" in done.err
    assert "Traceback" not in done.err.splitlines()[-1]
    debug = atlas("--debug", "run", "x")
    assert debug.status == 2
    assert 'raise RuntimeError("broken at import")' in debug.err


def test_an_agent_type_that_raises_anything(world: World, atlas: Atlas) -> None:
    """What a foreign agent raises is one line and status 1; `--debug` shows the traceback."""
    world.add(
        "atlas-odd",
        "odd",
        """
        from atlas_core import AgentTypeSpec, hookimpl

        class Odd:
            is_ready = True
            def __init__(self, parts): pass
            async def start(self): pass
            async def stop(self): pass
            async def run(self, message, history=None): return "x"
            def run_sync(self, message, history=None): return "x"
            async def stream(self, message, history=None):
                raise ZeroDivisionError("odd")
                yield

        @hookimpl
        def atlas_agent_types():
            return [AgentTypeSpec(name="odd", factory=Odd)]
        """,
    )
    world.settings(
        SETTINGS.replace('"kit"]', '"kit", "odd"]').replace("max_iterations = 3", 'max_iterations = 3\ntype = "odd"')
    )
    done = atlas("run", "x")
    assert done.status == 1
    assert done.err == "atlas: error: unexpected ZeroDivisionError: odd; `atlas --debug ...` shows where\n"
    assert "Traceback" in atlas("--debug", "run", "x").err


@pytest.mark.parametrize(
    "words",
    [["run", ADD], ["run", "--json", "x"], ["config", "show"], ["chat"], ["trace", "show", "t.jsonl"], ["--help"]],
)
def test_nobody_reads_the_output(world: World, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Nothing is complained about, and the status is what a shell would give."""
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    main(["run", "-q", "x", "--trace", "t.jsonl"])
    with os.fdopen(writer, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(words) == 141


def test_a_run_whose_output_nobody_reads_is_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs no further request, and the trace is whole."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        main(["run", 'call doze {"seconds": 60}', "--trace", "t.jsonl"])
    last = list(lines_of(Path("t.jsonl")))[-1]
    assert (last["event"], last["outcome"]) == ("RunEnded", "cancelled")


def test_a_plugin_whose_options_do_not_fit(world: World, atlas: Atlas) -> None:
    """Where the profile needs its tools, the error names the plugin's own key, file and line."""
    world.settings(SETTINGS + '\n[default.plugins.options.kit]\nlimit = "many"\n')
    done = atlas("run", "x")
    assert done.status == 2
    assert "limit is 'many', expected a whole number (key plugins.options.kit.limit, set in settings.toml:" in done.err


def test_a_provider_that_calls_sys_exit(world: World, atlas: Atlas) -> None:
    """It ends the command with a message, not the process with a status of its own."""
    world.add(
        "atlas-parrot",
        "parrot",
        """
        from atlas_core import LLMProviderSpec, hookimpl

        def leave(config):
            raise SystemExit(77)

        @hookimpl
        def atlas_llm_providers():
            return [LLMProviderSpec(name="parrot", factory=leave)]
        """,
    )
    done = atlas("run", "x")
    assert done.status in {1, 2}
    assert "SystemExit" in done.err


def test_a_stream_that_cannot_be_closed(world: World, atlas: Atlas) -> None:
    """An agent type may return any iterator of events; runs inside others are no part of the report."""
    world.add(
        "atlas-plain",
        "plain",
        """
        from atlas_core import AgentTypeSpec, ChatMessage, RunEnded, RunOutcome, RunStarted, ToolCall, hookimpl
        from atlas_core import ToolCallEnded, CallStatus, TextDelta

        class Events:
            def __init__(self, observers):
                message = ChatMessage.user("x")
                ended = RunEnded(run_id="a", outcome=RunOutcome.ANSWERED, output="outer")
                inner = RunEnded(run_id="b", parent_run_id="a", outcome=RunOutcome.DECLINED, output="inner")
                self.events = [RunStarted(run_id="a", message=message, model="none"), TextDelta(run_id="a", text="o"),
                               inner, ended]
                self.observers = observers

            def __aiter__(self):
                return self

            async def __anext__(self):
                if not self.events:
                    raise StopAsyncIteration
                event = self.events.pop(0)
                for observer, _ in self.observers:
                    observer.on_event(event)
                return event

        class Plain:
            is_ready = True
            def __init__(self, parts): self.parts = parts
            async def start(self): pass
            async def stop(self): pass
            async def run(self, message, history=None): return "x"
            def run_sync(self, message, history=None): return "x"
            def stream(self, message, history=None): return Events(self.parts.observers)

        @hookimpl
        def atlas_agent_types():
            return [AgentTypeSpec(name="plain", factory=Plain)]
        """,
    )
    world.settings(SETTINGS.replace('"kit"]', '"kit", "plain"]').replace("max_iterations = 3", 'type = "plain"'))
    done = atlas("run", "--json", "x")
    assert done.status == 0
    assert json.loads(done.out)["output"] == "outer"
    assert done.err == "model: none\n"


def test_version_wherever_it_stands(atlas: Atlas) -> None:
    """Alone it is answered at once, beside other words by the parser; both say the same."""
    from atlas_core import __version__

    assert atlas("--version").out == atlas("--debug", "--version").out == f"atlas {__version__}\n"
