"""Single calls outside of a run: refused by their gate, ended by a stop, on whatever loop they are."""

from __future__ import annotations

import asyncio
import threading

import pytest

from atlas_core import ServiceNotReadyError, Tool
from atlas_core._runtime.direct import DirectCalls
from atlas_core.tools.function import FunctionTool


def _open() -> None:
    """Let every call pass."""


async def test_a_gate_is_asked_when_the_tools_turn_has_come() -> None:
    """What it raises is raised as it is, and the tool does not run."""

    def never() -> None:
        raise AssertionError

    class ClosedError(Exception):
        pass

    def closed() -> None:
        raise ClosedError

    calls = DirectCalls("the test")
    with pytest.raises(ClosedError):
        await calls.run(FunctionTool(never), {}, label="never", deadline=None, gate=closed)
    await calls.stop()


@pytest.mark.parametrize("stop_from", ["another loop", "the same loop"])
def test_a_stop_reaches_calls_on_every_loop(stop_from: str) -> None:
    """The caller on the other loop is told that the owner was stopped, and its tool has cleaned up."""
    calls = DirectCalls("the test")
    running = threading.Event()
    cleaned: list[str] = []
    told: list[BaseException] = []

    async def wait() -> None:
        running.set()
        try:
            await asyncio.sleep(30)
        finally:
            cleaned.append("wait")

    async def use() -> None:
        try:
            await calls.run(FunctionTool(wait), {}, label="wait", deadline=None, gate=_open)
        except ServiceNotReadyError as exc:
            told.append(exc)
            await calls.stop()

    async def use_and_stop() -> None:
        task = asyncio.create_task(use())
        while not running.is_set():
            await asyncio.sleep(0.001)
        await calls.stop()
        await task

    if stop_from == "the same loop":
        asyncio.run(use_and_stop())
    else:
        thread = threading.Thread(target=lambda: asyncio.run(use()))
        thread.start()
        assert running.wait(5)
        calls.stop_sync()
        thread.join(5)
    assert [str(error) for error in told] == ["the test was stopped during the call"]
    assert cleaned == ["wait"]


@pytest.mark.parametrize("door", ["async", "sync"])
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_a_tool_may_stop_what_runs_it(door: str, kind: str) -> None:
    """The stop goes through although it cancels the call that asked for it; the caller is told; no thread is left."""
    calls = DirectCalls("the test")
    log: list[str] = []

    class Started(FunctionTool):
        async def stop(self) -> None:
            log.append("stopped")

    async def stop() -> None:
        await calls.stop()

    async def use() -> None:
        tool = Started(stop if kind == "coroutine" else calls.stop_sync)
        await calls.run(tool, {}, label="stop", deadline=None, gate=_open)

    async def use_sync() -> None:
        calls.run_sync(use)

    with pytest.raises(ServiceNotReadyError, match="stopped during the call"):
        await (use if door == "async" else use_sync)()
    await calls.stop()
    assert log == ["stopped"]
    for _ in range(200):
        left = [t.name for t in threading.enumerate() if t.name.startswith("atlas-")]
        if not left:
            break
        await asyncio.sleep(0.01)
    assert left == []


async def test_a_sync_stop_on_the_loop_that_it_waits_for_is_refused() -> None:
    """And leaves everything as it was."""
    calls = DirectCalls("the test")

    async def wrong() -> None:
        calls.stop_sync()

    with pytest.raises(RuntimeError, match="await the async one instead"):
        calls.run_sync(wrong)
    assert not calls.is_stopped
    await calls.stop()


async def test_whoever_stops_second_waits_for_the_first() -> None:
    """Through any door: when a stop returns, the tools have stopped."""
    calls = DirectCalls("the test")
    log: list[str] = []

    class Slow(FunctionTool):
        async def stop(self) -> None:
            await asyncio.sleep(0.02)
            log.append("stopped")

    def nothing() -> None: ...

    async def stop_and_look() -> int:
        await calls.stop()
        return len(log)

    def stop_sync_and_look() -> int:
        calls.stop_sync()
        return len(log)

    calls.run_sync(lambda: calls.run(Slow(nothing), {}, label="n", deadline=None, gate=_open))
    stops = [stop_and_look(), stop_and_look(), asyncio.to_thread(stop_sync_and_look)]
    assert await asyncio.gather(*stops) == [1, 1, 1]


async def test_a_coroutine_that_ignores_its_cancellation_is_told_of_and_cancelled_once_more() -> None:
    """It is listed while it goes on, and a stop ends it."""
    calls = DirectCalls("the test")
    ended = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            try:
                await asyncio.sleep(30)
            finally:
                ended.append("stubborn")

    tool: Tool = FunctionTool(stubborn)
    tool.timeout_s = 0.01
    outcome = await calls.run(tool, {}, label="call 1", deadline=None, gate=_open)
    assert outcome.status == "timed_out"
    assert len(calls.abandoned) == 1
    await calls.stop()
    assert ended == ["stubborn"]
    assert not calls.abandoned


async def test_a_call_whose_loop_has_ended_keeps_no_stop_waiting() -> None:
    """A loop that was closed under its call can't be told any more."""
    calls = DirectCalls("the test")
    started = threading.Event()

    async def wait() -> None:
        started.set()
        await asyncio.sleep(30)

    loop = asyncio.new_event_loop()
    task = loop.create_task(calls.run(FunctionTool(wait), {}, label="wait", deadline=None, gate=_open))
    await asyncio.to_thread(loop.run_until_complete, _until(started))
    task.cancel()
    await asyncio.to_thread(loop.run_until_complete, asyncio.wait([task]))
    loop.close()
    await calls.stop()
    with pytest.raises(ServiceNotReadyError, match="the test was stopped; make a new one"):
        await calls.run(FunctionTool(wait), {}, label="wait", deadline=None, gate=_open)


async def _until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)
