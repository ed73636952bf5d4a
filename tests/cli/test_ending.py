"""The process ends with the right status whatever ignores its end: tasks, the loop's threads, a tool's own threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from atlas_core.cli import process, running
from atlas_core.cli.running import Interruptible
from tests.cli.test_process import STATUS
from tests.cli.world import World, lines_of, stop, wait_for

LIMIT_S = 30
"""Ten times what it takes, and half of what the tools would."""


@pytest.mark.parametrize("tool", ["clings", "holds"])
def test_a_tool_that_does_not_end_does_not_hold_up_the_end(world: World, tool: str) -> None:
    """At the run's limit the events are told, the trace is whole, and the process ends with the limit's status."""
    world.add_stubborn(max_seconds=1)
    began = time.monotonic()
    done = world.atlas("run", "--json", f"call {tool} {{}}", "--trace", "t.jsonl")
    assert time.monotonic() - began < LIMIT_S
    assert done.returncode == 4
    assert json.loads(done.stdout)["outcome"] == "limit"
    kind = "task" if tool == "clings" else "thread"
    assert f"atlas: warning: 1 {kind} did not end within 2 s, and will end with the process\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(lines_of(world.work / "t.jsonl"))[-1]["event"] == "RunEnded"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "told to end"])
def test_one_signal_ends_it_although_a_tool_ignores_its_cancellation(world: World, number: signal.Signals) -> None:
    """No second one is needed; output and trace are whole."""
    world.add_stubborn()
    process = world.start("run", "call clings {}", "--trace", "t.jsonl")
    wait_for((world.work / "clinging").exists)
    began = time.monotonic()
    status, out, err = stop(process, number)
    assert time.monotonic() - began < LIMIT_S
    assert status == STATUS[number]
    assert "observation (cancelled)" in out
    assert "atlas: warning: tool 'clings' ignores its cancellation and was left running\n" in err
    assert "Traceback" not in err
    assert list(lines_of(world.work / "t.jsonl"))[-1]["outcome"] == "cancelled"


def test_a_tool_called_by_hand_that_ends_while_another_task_does_not(world: World) -> None:
    """What the command prints after the loop has closed is not lost."""
    source = """
import asyncio

from atlas_core import hookimpl

tasks = []

async def clings():
    while True:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            pass

async def leaves() -> str:
    \"\"\"Leave a task behind.\"\"\"
    tasks.append(asyncio.ensure_future(clings()))
    await asyncio.sleep(0)
    return "left"

@hookimpl
def atlas_tool_providers():
    return [leaves]
"""
    world.add("atlas-kit", "kit", source)
    done = world.atlas("tools", "call", "leaves")
    assert (done.returncode, done.stdout) == (0, "left\n")
    assert "1 task did not end" in done.stderr


def started(world: World, code: str) -> subprocess.Popen[str]:
    """Start Python with some code, in which the event loop may be blocked for half a second."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys\nfrom atlas_core.cli import main, running\nrunning.FROZEN_S = 0.5\n{code}"],
        cwd=world.work,
        env=world.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "told to end"])
def test_one_signal_ends_it_although_a_tool_blocks_the_loop(world: World, number: signal.Signals) -> None:
    """Nothing can cancel the tool; what blocks is named, and no second signal is needed."""
    process = started(world, "sys.argv = ['atlas', 'run', 'call freeze {\"seconds\": 60}']\nsys.exit(main())")
    wait_for((world.work / "freezing").exists)
    began = time.monotonic()
    status, _, err = stop(process, number)
    assert time.monotonic() - began < LIMIT_S
    assert status == STATUS[number]
    assert "atlas: stopping; once more ends it at once\natlas: ended, since freeze (" in err
    assert "Traceback" not in err


def test_one_signal_ends_it_although_a_task_blocks_the_loop_as_it_closes(world: World) -> None:
    """A task's cleaning up may block it too, and another one may take its time as long as the loop turns."""
    source = """
import asyncio, time
from pathlib import Path

async def blocks():
    try:
        await asyncio.sleep(60)
    finally:
        time.sleep(60)

async def work():
    global task
    task = asyncio.ensure_future(blocks())
    await asyncio.sleep(0)
    Path("working").touch()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(1.5)
        Path("cleaned").touch()

with running.Interruptible() as loop:
    loop.run(work)
"""
    process = started(world, source)
    wait_for((world.work / "working").exists)
    began = time.monotonic()
    status, _, err = stop(process)
    assert time.monotonic() - began < LIMIT_S
    assert status == 130
    assert "atlas: ended, since blocks (" in err
    assert (world.work / "cleaned").exists()


def test_a_thread_of_a_tools_own_is_waited_for_in_bounded_time(world: World) -> None:
    """Python would wait for it for ever; it is named, and the status stays."""
    world.add_stubborn()
    code = (
        "import sys; from atlas_core.cli import main, process; process.EXIT_GRACE_S = 0.5; "
        "sys.argv = ['atlas', 'run', '-q', 'call starts {}']; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=world.work,
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "it is started\n")
    assert "atlas: warning: ended after 0.5 s with threads that still ran: left-by-a-tool\n" in done.stderr


def test_a_process_with_nothing_left_ends_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was registered to run at exit runs."""
    monkeypatch.setattr(process, "LEFT", [])
    monkeypatch.setattr(os, "_exit", lambda status: pytest.fail(f"ended with {status}"))
    assert [process.end(status) for status in (0, 4)] == [0, 4]


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would be left behind, and little patience for it."""
    left: list[object] = []
    monkeypatch.setattr(running, "LEFT", left)
    monkeypatch.setattr(running, "GRACE_S", 0.2)
    return left


def test_a_task_that_cleans_up_is_waited_for(left: list[object]) -> None:
    """Cancelled is not killed; generators that were left open are closed too."""
    ended = []

    async def numbers() -> object:
        try:
            yield 1
        finally:
            ended.append("generator")

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("task")

    async def work() -> object:
        opened = numbers()
        await anext(opened)  # type: ignore[call-overload]  # an async generator
        task = asyncio.ensure_future(cleans_up())
        await asyncio.sleep(0)
        return opened, task

    with Interruptible() as loop:
        _kept = loop.run(work)
    assert sorted(ended) == ["generator", "task"]
    assert left == []


def test_what_does_not_end_is_counted(left: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    """The loop stays open for it, so that nothing complains about a task that was destroyed."""
    release, done = threading.Event(), threading.Event()

    async def clings() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        done.set()

    async def work() -> object:
        thread = asyncio.get_running_loop().run_in_executor(None, release.wait, 60)
        tasks = [asyncio.ensure_future(clings()) for _ in range(2)]
        await asyncio.sleep(0)
        return thread, tasks

    with Interruptible() as loop:
        _kept = loop.run(work)
    assert left == [loop]
    assert "atlas: warning: 2 tasks and 1 thread did not end within 0.2 s" in capsys.readouterr().err
    release.set()
    with loop._runner as runner:  # for tidiness alone: the process would end here
        runner.run(asyncio.sleep(0.2))
    assert done.is_set()
