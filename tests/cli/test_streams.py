"""Standard output holds the answer alone where that is promised, and streams that are closed or full are told."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_core.cli import main, streams
from tests.cli.conftest import Done
from tests.cli.world import World

Atlas = Callable[..., Done]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs the device that is always full")


def shell(world: World, script: str) -> Done:
    """Run a script in which `atlas` is the real command."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'atlas() {{ {sys.executable} -m atlas_core "$@"; }}\n{script}'],
        cwd=world.work,
        env=world.environment(PYTHONUTF8="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "--json", "call chatters {}"], id="run"),
        pytest.param(["tools", "list", "--json"], id="tools list"),
        pytest.param(["tools", "show", "add", "--json"], id="tools show"),
        pytest.param(["plugins", "list", "--json"], id="plugins list"),
        pytest.param(["plugins", "info", "stubborn", "--json"], id="plugins info"),
        pytest.param(["connections", "list", "--json"], id="connections list"),
        pytest.param(["connections", "check", "main", "--json"], id="connections check"),
        pytest.param(["explain", "--json"], id="explain"),
        pytest.param(["config", "show", "--json"], id="config show"),
    ],
)
def test_json_is_alone_on_standard_output(world: World, words: list[str]) -> None:
    """Whatever plugins print at import, and tools and their child processes while they run."""
    world.add_stubborn()
    done = world.atlas(*words)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert "PRINTED" not in done.stdout


def test_what_others_print_is_not_lost(world: World) -> None:
    """It goes to standard error, by `print`, by descriptor, and from a child process."""
    world.add_stubborn()
    done = world.atlas("run", "-q", "call chatters {}")
    assert (done.returncode, done.stdout) == (0, "it is said it\n")
    texts = ("PRINTED at import", "WRITTEN at import", "PRINTED\n", "WRITTEN\n", "past sys.stdout", "ECHOED by a child")
    assert all(text in done.stderr for text in texts)
    assert world.atlas("tools", "call", "chatters").stdout == "said it\n"


def test_what_a_tool_prints_in_this_process(world: World, atlas: Atlas) -> None:
    """A program that calls the command gets its streams back as they were."""
    world.add_stubborn()
    before = sys.stdout, sys.stderr, os.fstat(1).st_ino
    done = atlas("run", "-q", "call chatters {}")
    assert done.out == "it is said it\n"
    assert "PRINTED\n" in done.err
    assert (sys.stdout, sys.stderr, os.fstat(1).st_ino) == before
    assert atlas("run", "hi").out.endswith("`atlas init openai`\n")


def test_descriptors_are_given_back(world: World) -> None:
    """What the program prints afterwards goes to standard output again, in its place."""
    world.add_stubborn()
    code = (
        "import os; from atlas_core.cli import main; print('before'); main(['run', '-q', 'call chatters {}']); "
        "print('after', flush=True); os.write(1, b'end')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=world.work,
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "before\nit is said it\nafter\nend"


def test_wrong_usage_with_json(world: World) -> None:
    """It is told on standard error in one line, standard output stays empty."""
    done = world.atlas("run", "--json", "x", "--trise", "t.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("atlas: error: no such option: --trise")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "status", "err"),
    [
        pytest.param("atlas run x >&-", 2, "standard output is closed; send it to /dev/null", id="no output"),
        pytest.param("atlas --version >&-", 2, "standard output is closed", id="no output for the version"),
        pytest.param("atlas run - <&-", 2, "invalid value for TEXT: standard input is closed", id="no input"),
        pytest.param("atlas tools call add - <&-", 2, "[JSON]: standard input is closed", id="no input for a tool"),
        pytest.param("atlas chat <&-", 2, "standard input is closed", id="no input for a talk"),
        pytest.param("printf '\\xff' | PYTHONIOENCODING=utf-8:strict atlas run -", 2, "no text in utf-8", id="no text"),
        pytest.param("printf '\\xff' | atlas run -", 2, "not valid in this system's encoding", id="bytes"),
        pytest.param("atlas run x >/dev/full", 1, "can't be written: No space left on device", id="full"),
        pytest.param("atlas run x --json >/dev/full", 1, "can't be written: No space left", id="full, JSON"),
        pytest.param("atlas run x -q >/dev/full", 1, "can't be written: No space left", id="full, quiet"),
        pytest.param("echo x | atlas chat >/dev/full", 1, "can't be written: No space left", id="full, a talk"),
        pytest.param("atlas config show >/dev/full", 1, "can't be written: No space left", id="full, a listing"),
        pytest.param("atlas --version >/dev/full", 1, "can't be written: No space left", id="full, the version"),
        pytest.param("atlas --help >/dev/full", 1, "can't be written: No space left", id="full, help"),
        pytest.param("mkfifo p; atlas run x --trace p", 2, "'p' is a pipe that nobody reads", id="a pipe for a trace"),
    ],
)
@needs_full
def test_streams_that_cannot_be_used(world: World, script: str, status: int, err: str) -> None:
    """One message without a traceback, and a documented status."""
    done = shell(world, script)
    assert (done.status, done.out) == (status, "")
    assert err in done.err
    assert "atlas: error: " in done.err
    assert "Traceback" not in done.err
    assert "Exception ignored" not in done.err


def test_a_full_output_in_the_middle_of_a_trace(world: World) -> None:
    """It is not taken for a trace file that can't be read."""
    assert world.atlas("run", "x", "--trace", "t.jsonl").returncode == 0
    done = shell(world, "atlas trace show t.jsonl >/dev/full")
    assert (done.status, done.err) == (1, "atlas: error: standard output can't be written: No space left on device\n")


def test_nothing_takes_the_place_of_a_closed_standard_error(world: World) -> None:
    """Else what a plugin prints would end up in the trace file."""
    world.add_stubborn()
    done = shell(world, "atlas run -q 'call chatters {}' --trace t.jsonl 2>&- <&-")
    assert (done.status, done.out) == (0, "it is said it\n")
    for line in (world.work / "t.jsonl").read_text().splitlines():
        json.loads(line)
    assert shell(world, "atlas run -q x -p nobody 2>&-") == (2, "", "")


def test_a_trace_through_a_pipe_that_is_read(world: World) -> None:
    """As with process substitution."""
    wait = "while ! [ -s lines ]; do sleep 0.1; done; cat lines"
    done = shell(world, f"atlas run -q x --trace >(wc -l >lines); {wait}")
    assert (done.status, done.out) == (0, "echo 1: x\n4\n")


def test_a_closed_stream_of_a_program(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a program closed the stream object itself, that is told."""
    closed = io.StringIO()
    closed.close()
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(sys, "stdout", closed)
    assert main(["run", "x"]) == 2
    assert "standard output is closed" in errors.getvalue()


def test_claiming_twice_is_claiming_once(capsys: pytest.CaptureFixture[str]) -> None:
    """And releasing without a claim does nothing."""
    streams.release()
    before = sys.stdout
    streams.claim()
    streams.claim()
    print("to standard error")
    streams.write("answer")
    streams.release()
    assert sys.stdout is before
    assert capsys.readouterr() == ("answer", "to standard error\n")
