"""Threads for plain functions: bounded, context-carrying, abandoned when they hang."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time

import pytest

from atlas_core._runtime.workers import Abandoned, CallTimedOut, TooManyAbandoned, Workers

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


@pytest.fixture
def workers() -> Workers:
    """Make a few threads that give up early."""
    return Workers(max_threads=3, max_abandoned=2, idle_s=0.2)


async def test_a_function_returns_its_value_and_sees_the_callers_context(workers: Workers) -> None:
    """Case 72: context variables are carried into the thread."""
    VARIABLE.set("mine")
    assert await workers.run(lambda _: VARIABLE.get(), label="x", timeout_s=None) == "mine"
    workers.stop()


@pytest.mark.parametrize("error", [ValueError("v"), StopIteration(3), SystemExit(2), GeneratorExit()])
async def test_whatever_a_function_raises_is_raised(workers: Workers, error: BaseException) -> None:
    """Even what a future would refuse to carry."""

    def fail(_: Abandoned) -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)):
        await workers.run(fail, label="x", timeout_s=5)
    workers.stop()


async def test_a_hanging_call_is_abandoned_counted_and_bounded(workers: Workers) -> None:
    """Case 66: the caller goes on, the flag is set, and after too many no further call is started."""
    release = threading.Event()
    flags: list[Abandoned] = []

    def hang(flag: Abandoned) -> None:
        flags.append(flag)
        release.wait(30)

    for n in range(2):
        with pytest.raises(CallTimedOut):
            await workers.run(hang, label=f"hang {n}", timeout_s=0.02)
    assert workers.abandoned == ("hang 0", "hang 1")
    assert all(flag.is_set for flag in flags)
    with pytest.raises(TooManyAbandoned, match="2 earlier calls hang"):
        await workers.run(lambda _: 1, label="quick", timeout_s=5)
    release.set()
    for _ in range(100):
        if not workers.abandoned:
            break
        await asyncio.sleep(0.02)
    assert await workers.run(lambda _: 1, label="quick", timeout_s=5) == 1
    assert workers.stop() == ()


async def test_stop_lists_what_still_hangs() -> None:
    """Whoever stops learns which calls could not be stopped."""
    workers, release = Workers(), threading.Event()
    with pytest.raises(CallTimedOut):
        await workers.run(lambda _: release.wait(30), label="stuck", timeout_s=0.02)
    assert workers.stop() == ("stuck",)
    release.set()


async def test_more_calls_than_threads_wait_their_turn(workers: Workers) -> None:
    """No more than `max_threads` run at once, and all get done."""
    running, most, lock = 0, 0, threading.Lock()

    def work(_: Abandoned) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    await asyncio.gather(*(workers.run(work, label="w", timeout_s=30) for _ in range(12)))
    assert most <= 3
    workers.stop()


async def test_time_in_the_queue_counts(workers: Workers) -> None:
    """A call that never got a thread times out without being run."""
    release, ran = threading.Event(), []
    busy = [asyncio.create_task(workers.run(lambda _: release.wait(30), label="b", timeout_s=None)) for _ in range(3)]
    await asyncio.sleep(0.05)
    with pytest.raises(CallTimedOut):
        await workers.run(lambda _: ran.append(1), label="late", timeout_s=0.02)
    release.set()
    await asyncio.gather(*busy)
    assert await workers.run(lambda _: 2, label="next", timeout_s=5) == 2
    assert not ran
    workers.stop()


async def test_a_cancelled_wait_for_a_thread_gives_its_turn_back(workers: Workers) -> None:
    """Cancelling waiters leaks no place."""
    release = threading.Event()
    busy = [asyncio.create_task(workers.run(lambda _: release.wait(30), label="b", timeout_s=None)) for _ in range(3)]
    await asyncio.sleep(0.05)
    waiting = [asyncio.create_task(workers.run(lambda _: 1, label="w", timeout_s=None)) for _ in range(3)]
    await asyncio.sleep(0.02)
    for task in waiting[:2]:
        task.cancel()
    release.set()
    assert await asyncio.wait_for(waiting[2], 5) == 1
    await asyncio.gather(*busy)
    assert [await workers.run(lambda _: 1, label="x", timeout_s=5) for _ in range(4)] == [1, 1, 1, 1]
    workers.stop()


async def test_cancelling_the_caller_abandons_the_thread() -> None:
    """A cancelled call does not hold the caller back."""
    workers, release = Workers(), threading.Event()
    task = asyncio.create_task(workers.run(lambda _: release.wait(30), label="c", timeout_s=None))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert workers.abandoned == ("c",)
    release.set()
    workers.stop()


async def test_idle_threads_end_by_themselves_and_at_stop() -> None:
    """No idle thread outlives its time, nor `stop`."""
    before = set(threading.enumerate())
    short = Workers(idle_s=0.05)
    await short.run(lambda _: None, label="x", timeout_s=5)
    for _ in range(100):
        if set(threading.enumerate()) <= before:
            break
        await asyncio.sleep(0.02)
    assert set(threading.enumerate()) <= before
    long = Workers(idle_s=60)
    await asyncio.gather(*(long.run(lambda _: time.sleep(0.01), label="x", timeout_s=5) for _ in range(4)))
    long.stop()
    assert set(threading.enumerate()) <= before


async def test_nothing_is_started_after_stop(workers: Workers) -> None:
    """A stopped set of workers says so."""
    workers.stop()
    with pytest.raises(TooManyAbandoned, match="stopped"):
        await workers.run(lambda _: 1, label="x", timeout_s=None)


async def test_stop_releases_those_who_wait_for_a_thread(workers: Workers) -> None:
    """A waiting call is refused instead of waiting for ever."""
    release = threading.Event()
    busy = [asyncio.create_task(workers.run(lambda _: release.wait(30), label="b", timeout_s=None)) for _ in range(3)]
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(workers.run(lambda _: 1, label="w", timeout_s=None))
    await asyncio.sleep(0.02)
    workers.stop()
    release.set()
    with pytest.raises(TooManyAbandoned, match="stopped"):
        await waiting
    await asyncio.gather(*busy)


def test_a_loop_that_closed_meanwhile_is_survived() -> None:
    """A late return to a closed loop is dropped."""
    workers, release, done = Workers(), threading.Event(), threading.Event()

    def late(_: Abandoned) -> None:
        release.wait(30)
        done.set()

    async def leave() -> None:
        left.append(asyncio.ensure_future(workers.run(late, label="l", timeout_s=None)))
        await asyncio.sleep(0.05)

    left: list[asyncio.Future[None]] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    release.set()
    assert done.wait(5)
    workers.stop()
