"""The real command in a process of its own: signals, pipes, encodings, help whatever is broken."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.cli.world import SETTINGS, World, lines_of, stop, wait_for

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize(
    ("tool", "mark", "number"),
    [
        pytest.param("nap", "napping", signal.SIGINT, id="Ctrl-C in a thread that nothing can stop"),
        pytest.param("doze", "dozing", signal.SIGINT, id="Ctrl-C in a coroutine"),
        pytest.param("snore", "snoring", signal.SIGINT, id="Ctrl-C in one of the loop's threads"),
        pytest.param("doze", "dozing", signal.SIGTERM, id="told to end"),
    ],
)
def test_a_signal_stops_the_tool_too(world: World, tool: str, mark: str, number: int) -> None:
    """Long before the tool's minute is over the process has ended, the trace is whole, and says cancelled."""
    process = world.start("run", f'call {tool} {{"seconds": 60}}', "--trace", "t.jsonl")
    wait_for((world.work / mark).exists)
    status, out, err = stop(process, number)
    assert status == STATUS[signal.Signals(number)]
    assert "observation (cancelled)" in out
    assert "Traceback" not in err
    events = list(lines_of(world.work / "t.jsonl"))
    assert [e["event"] for e in events][-2:] == ["ToolCallEnded", "RunEnded"]
    assert events[-1]["outcome"] == "cancelled"
    if tool == "doze":
        assert (world.work / "doze-ended").exists()  # its own cleaning up ran


def test_ctrl_c_while_the_model_thinks(world: World) -> None:
    """The one JSON object comes all the same."""
    process = world.start("run", "hang", "--json", "--trace", "t.jsonl")
    wait_for(lambda: (world.work / "t.jsonl").exists() and "ModelRequested" in (world.work / "t.jsonl").read_text())
    status, out, err = stop(process)
    assert status == 130
    assert '"outcome": "cancelled"' in out
    assert '"message": "interrupted by SIGINT"' in out
    assert "Traceback" not in err


def test_a_second_ctrl_c_ends_it_at_once(world: World) -> None:
    """Even where a tool blocks the loop, so that the first can't work."""
    process = world.start("run", 'call freeze {"seconds": 60}')
    wait_for((world.work / "freezing").exists)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "\n"
    assert process.stderr.readline() == "atlas: stopping; once more ends it at once\n"
    assert stop(process)[0] == 130


def test_a_reader_that_has_enough(world: World) -> None:
    """`atlas run ... | head -1` prints its line and complains about nothing."""
    done = subprocess.run(
        f"{sys.executable} -m atlas_core run 'call doze {{\"seconds\": 1}}' | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        cwd=world.work,
        env=world.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "model: a parrot, no language model\n141\n"
    assert done.stderr == ""


def test_an_output_that_lacks_characters(world: World) -> None:
    """What ASCII can't show is spelt out; JSON stays JSON."""
    done = world.atlas("run", "grün €", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "echo 1: gr\\xfcn \\u20ac" in done.stdout
    assert (
        '"output": "echo 1: gr\\u00fcn \\u20ac"'
        in world.atlas("run", "--json", "grün €", PYTHONIOENCODING="ascii").stdout
    )


def test_help_whatever_is_broken(world: World) -> None:
    """Neither broken settings nor a plugin that ends the process at import touch it (case 96)."""
    world.add("atlas-bad", "bad", "raise SystemExit(3)")
    world.settings("[default.plugins]\nenabled = [")
    done = world.atlas("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("run", "chat", "init", "explain", "plugins", "tools", "config", "trace"):
        assert f"\n  {command} " in done.stdout
    assert "3 declined" in done.stdout
    assert "\x1b" not in done.stdout


def modules_after(world: World, *words: str) -> set[str]:
    """Return the names of all modules that a command loaded in a process of its own."""
    code = f"import sys; from atlas_core.cli import main; main({list(words)}); print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=world.work,
        env=world.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_dear(world: World) -> None:
    """The parser alone is loaded: no settings, no kernel, no event loop, no rich."""
    loaded = modules_after(world, "--help")
    assert "typer" in loaded
    dear = {"rich", "pydantic", "dynaconf", "jsonschema", "httpx", "asyncio", "atlas_core.kernel"}
    assert loaded.isdisjoint(dear)


def test_explain_imports_no_plugin(world: World) -> None:
    """Not one module of an installed plugin is loaded, as `sys.modules` shows."""
    loaded = modules_after(world, "explain")
    assert "atlas_core.explain" in loaded
    assert loaded.isdisjoint({"atlas_kit_plugin", "atlas_parrot_plugin", "atlas_offline", "atlas_standard_tools"})


def test_a_conversation_through_a_pipe(world: World) -> None:
    """Each line is answered, with the lines before it in mind; there is no prompt."""
    done = world.atlas("chat", text="one\ntwo\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "model: a parrot, no language model",
        "answer: echo 1: one",
        "used: 1 request, 7 tokens in, 3 out",
        "note: to use a real model, run `atlas init openai`",
        "answer: echo 2: two",
        "used: 1 request, 7 tokens in, 3 out",
    ]


def test_ctrl_c_ends_an_answer_and_not_the_conversation(world: World) -> None:
    """The next line is answered; SIGTERM ends it all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "atlas_core", "chat", "--trace", "t.jsonl"],
        cwd=world.work,
        env=world.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    trace = world.work / "t.jsonl"
    process.stdin.write('call doze {"seconds": 60}\n')
    process.stdin.flush()
    wait_for((world.work / "dozing").exists)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "RunEnded" in trace.read_text())
    process.stdin.write("and now\nhang\n")
    process.stdin.flush()
    wait_for(lambda: trace.read_text().count('"ModelRequested"') == 3)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "(stopped)\n" in out
    # What the tool began stays known: two questions were asked.
    assert "answer: echo 2: and now" in out
    assert "Traceback" not in err


def test_without_a_settings_file(world: World) -> None:
    """What is installed by default answers, or says what to install."""
    (world.work / "settings.toml").unlink()
    done = world.atlas("config", "show")
    assert done.returncode == 0
    assert 'plugins.enabled = ["offline", "standard-tools"]  # built-in default' in done.stdout


def test_settings_of_another_folder(world: World) -> None:
    """`--settings` names any file."""
    other = world.work / "other.toml"
    other.write_text(SETTINGS.replace("helper", "mate"), encoding="utf-8")
    done = world.atlas("run", "--json", "hi", "--settings", str(other))
    assert '"profile": "mate"' in done.stdout
