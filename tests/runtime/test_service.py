"""An agent's life: start, stop, doors for plain code, and many runs at once."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from typing import Any

import pytest

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    AgentTimeoutError,
    AgentToolkit,
    CallStatus,
    FunctionTool,
    RunEnded,
    RunOutcome,
    RunStarted,
    RunWarning,
    ServiceNotReadyError,
    SyncToolExecutor,
    TokenBudgetError,
    ToolCall,
    ToolContext,
    ToolRegistry,
    UnknownToolError,
    tool,
)
from atlas_core._runtime import dispatch, invoke
from atlas_core._runtime.portal import Portal
from atlas_core.testing import FakeLLM
from tests.runtime.rig import BOTH, Rig

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


class Resource(FunctionTool):
    """A tool that notes when it is started and stopped."""

    log: list[str]
    fails = 0

    async def start(self) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("no database")
        self.log.append(f"start {self.name}")

    async def stop(self) -> None:
        self.log.append(f"stop {self.name}")


def resource(name: str, log: list[str], fails: int = 0) -> Resource:
    """Make such a tool."""

    def work() -> str:
        return "done"

    made = Resource(work, name=name)
    made.log, made.fails = log, fails
    return made


# Life cycle ------------------------------------------------------------------------------------------------------


async def test_an_agent_starts_on_first_use_and_refuses_after_stop() -> None:
    """`stop` is final and may be called twice."""
    rig = Rig(["a", "b"])
    assert not rig.agent.is_ready
    assert await rig.agent.run("x") == "a"
    assert rig.agent.is_ready
    await rig.agent.stop()
    await rig.agent.stop()
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await rig.agent.run("x")


async def test_runs_at_once_start_an_agent_once_and_share_nothing() -> None:
    """Hundreds of runs of one agent object keep their own messages."""

    async def echo(text: str) -> str:
        await asyncio.sleep(0)
        return text

    def turn(request: Any) -> Any:
        first, last = request.messages[0].text, request.messages[-1]
        return f"{first}: {last.text}" if last.role == "tool" else ToolCall.of("echo", text=first)

    async with Rig([turn] * 400, [echo]) as rig:
        answers = await asyncio.gather(*(rig.agent.run(str(n)) for n in range(200)))
    assert answers == [f"{n}: {n}" for n in range(200)]
    assert len({a.result.run_id for a in answers}) == 200


async def test_a_wrong_tool_name_fails_the_start_with_a_suggestion() -> None:
    """A profile that names what is not there does not run."""

    def add() -> None:
        """Add."""

    async with Rig([], [add], offer=["ad"]) as rig:
        with pytest.raises(UnknownToolError, match="did you mean 'add'"):
            await rig.agent.run("x")
        with pytest.raises(UnknownToolError):
            await rig.agent.run("x")


async def test_stop_ends_the_runs_that_go_on_without_cancelling_their_callers() -> None:
    """Whoever awaits the run gets an error that says why; the tool is cancelled."""
    stopped = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(1)
            raise

    rig = Rig([ToolCall("", "slow")] * 2, [slow])
    stream = rig.agent.stream("y")

    async def caller() -> str:
        try:
            await rig.agent.run("x")
        except ServiceNotReadyError as exc:
            return str(exc)
        return "no error"

    task = asyncio.create_task(caller())
    assert isinstance(await anext(stream), RunStarted)
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await rig.agent.stop()
    assert time.monotonic() - began < 4
    assert await task == "the agent was stopped during the run"
    with pytest.raises(ServiceNotReadyError):
        _ = [e async for e in stream]
    assert stopped == [1, 1]
    await rig.executor.stop()


async def test_a_tool_is_started_before_first_use_and_stopped_in_reverse_order() -> None:
    """Only what was used is started, once."""
    log: list[str] = []
    tools = [resource(n, log) for n in ("a", "b", "c")]
    async with Rig([ToolCall("", "b"), ToolCall("", "a"), ToolCall("", "b"), "x"], tools) as rig:
        await rig.agent.run("x")
        assert log == ["start b", "start a"]
    assert log == ["start b", "start a", "stop a", "stop b"]


async def test_a_tool_that_fails_to_start_is_that_calls_result() -> None:
    """The run goes on, and the next call tries again."""
    log: list[str] = []
    tools = [resource("bad", log, fails=1), resource("good", log)]
    async with Rig([[ToolCall("", "bad"), ToolCall("", "good")], ToolCall("", "bad"), "x"], tools) as rig:
        answer = await rig.agent.run("x")
    assert [r.status for r in answer.result.tool_results] == [CallStatus.FAILED, CallStatus.OK, CallStatus.OK]
    assert answer.result.tool_results[0].error == "the tool could not start: OSError: no database"


async def test_a_tool_that_fails_to_stop_keeps_no_other_from_being_stopped(caplog: Any) -> None:
    """Each failure is logged with the tool's name."""
    log: list[str] = []
    bad, good = resource("bad", log), resource("good", log)

    async def fail() -> None:
        raise OSError("stuck")

    bad.stop = fail  # type: ignore[method-assign]  # a tool that is wrong on purpose
    async with Rig([[ToolCall("", "good"), ToolCall("", "bad")], "x"], [good, bad]) as rig:
        await rig.agent.run("x")
    assert "stop good" in log
    assert "tool 'bad' did not stop" in caplog.text


# Where tools run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", BOTH)
async def test_tools_see_the_callers_context_variables(executor: Any) -> None:
    """Case 72: with and without a time limit, in a thread and on the loop."""

    @tool(timeout_s=5)
    def timed() -> str:
        return VARIABLE.get()

    def plain() -> str:
        return VARIABLE.get()

    async def awaited() -> str:
        return VARIABLE.get()

    VARIABLE.set("mine")
    calls = [ToolCall("", n) for n in ("timed", "plain", "awaited")]
    async with Rig([calls, "x"], [timed, plain, awaited], executor=executor) as rig:
        await rig.agent.run("x")
    assert rig.tool_messages == ["mine"] * 3


@pytest.mark.parametrize("executor", BOTH)
async def test_plain_functions_never_block_the_loop(executor: Any) -> None:
    """A sleeping tool leaves the loop free."""

    def nap() -> int:
        time.sleep(0.2)
        return threading.get_ident()

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticker = asyncio.create_task(tick())
    async with Rig([ToolCall("", "nap"), "x"], [nap], executor=executor) as rig:
        answer = await rig.agent.run("x")
    ticker.cancel()
    assert ticks >= 4
    assert answer.result.tool_results[0].value != threading.get_ident()


async def test_forty_time_outs_in_a_row_starve_nothing() -> None:
    """Case 66: a late result is never recorded, and a quick tool still runs."""
    late: list[int] = []

    @tool(timeout_s=0.02)
    def slow() -> str:
        time.sleep(0.3)
        late.append(1)
        return "late"

    def quick() -> str:
        return "quick"

    async with Rig([*[ToolCall("", "slow")] * 40, ToolCall("", "quick"), "x"], [slow, quick], max_iterations=50) as rig:
        answer = await rig.agent.run("x")
        assert rig.tool_messages[-1] == "quick"
        statuses = [r.status for r in answer.result.tool_results]
        assert statuses == [CallStatus.TIMED_OUT] * 40 + [CallStatus.OK]
        assert not any("late" in text for text in rig.tool_messages)


async def test_generators_of_both_kinds_are_collected_and_closed() -> None:
    """Case 32: in both run modes, within the tool's time and a bound of items."""
    closed: list[str] = []

    async def feed(n: int) -> Any:
        try:
            for letter in "abc"[:n]:
                yield letter
        finally:
            closed.append("feed")

    def count(n: int) -> Any:
        try:
            yield from range(n)
            return "done"
        finally:
            closed.append("count")

    def endless() -> Any:
        try:
            n = 0
            while True:
                yield n
                n += 1
        finally:
            closed.append("endless")

    @tool(timeout_s=0.05)
    async def stuck() -> Any:
        try:
            yield 1
            await asyncio.sleep(30)
        finally:
            closed.append("stuck")

    calls = [ToolCall.of("feed", n=3), ToolCall.of("count", n=3), ToolCall("", "endless"), ToolCall("", "stuck")]
    async with Rig([calls, "x", calls, "x"], [feed, count, endless, stuck]) as rig:
        answer = await rig.agent.run("x")
        events = [e async for e in rig.agent.stream("x")]
    feed_result, count_result, endless_result, stuck_result = answer.result.tool_results
    assert feed_result.value == ["a", "b", "c"]
    assert count_result.value == [0, 1, 2]
    assert isinstance(endless_result.value, list)
    assert len(endless_result.value) == invoke.MAX_ITEMS + 1
    assert stuck_result.status is CallStatus.TIMED_OUT
    assert sorted(closed) == sorted(["feed", "count", "endless", "stuck"] * 2)
    assert not any("at 0x" in str(e) for e in events)


async def test_a_plain_function_may_return_something_to_await() -> None:
    """A lambda around a coroutine function is awaited."""

    async def work() -> str:
        return "awaited"

    def wrapped() -> Any:
        return work()

    async with Rig([ToolCall("", "wrapped"), "x"], [wrapped]) as rig:
        await rig.agent.run("x")
    assert rig.tool_messages == ["awaited"]


async def test_a_coroutine_that_ignores_its_cancellation_is_left_and_reported(monkeypatch: Any, caplog: Any) -> None:
    """A tool can't hold the run by swallowing cancellations."""
    monkeypatch.setattr(invoke, "GRACE_S", 0.05)
    release = asyncio.Event()

    @tool(timeout_s=0.02)
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with Rig([ToolCall("", "stubborn"), "x"], [stubborn]) as rig:
        assert await rig.agent.run("x") == "x"
        assert rig.executor.workers.strays
        release.set()
    assert "ignores its cancellation" in caplog.text


async def test_an_error_without_readable_text_is_a_result_all_the_same() -> None:
    """Even an exception whose `str` fails; long texts are cut."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise MuteError

    def loud() -> None:
        raise ValueError("x" * 50_000)

    async with Rig([[ToolCall("", "mute"), ToolCall("", "loud")], "x"], [mute, loud]) as rig:
        await rig.agent.run("x")
    assert rig.tool_messages[0] == "Error: MuteError: (its text can't be read)"
    assert len(rig.tool_messages[1]) < 1100


async def test_tools_get_the_callers_object_and_the_runs_facts() -> None:
    """`context` reaches tools as it is and the model never sees it."""
    seen: list[ToolContext[Any]] = []

    def look(context: ToolContext[Any], n: int) -> int:
        """Look."""
        seen.append(context)
        return n

    mine = object()
    async with Rig([ToolCall.of("look", id="c", n=1), ToolCall.of("look", n=1, context=2), "x"], [look]) as rig:
        answer = await rig.agent.run("x", context=mine)
    (context,) = seen
    assert context.context is mine
    assert (context.run_id, context.agent_id, context.call_id) == (answer.result.run_id, "tester", "c")
    assert context.idempotency_key == f"{answer.result.run_id}/c"
    assert context.remaining_s is not None
    assert 0 < context.remaining_s <= 60
    assert answer.result.tool_results[1].status is CallStatus.INVALID_ARGUMENTS


# Doors for plain code --------------------------------------------------------------------------------------------


def test_run_sync_works_from_plain_code_twice_and_from_another_thread() -> None:
    """Case 70: all runs use one loop, so nothing is bound to a closed one."""
    loops: list[Any] = []

    async def where() -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    rig = Rig([ToolCall("", "where"), "1", ToolCall("", "where"), "2", ToolCall("", "where"), "3"], [where])
    assert rig.agent.run_sync("a") == "1"
    assert rig.agent.run_sync("b") == "2"
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(rig.agent.run_sync("c")))
    thread.start()
    thread.join()
    assert answers == ["3"]
    assert len(set(map(id, loops))) == 1
    rig.agent.stop_sync()
    assert not [t for t in threading.enumerate() if t.name == "atlas-loop"]
    asyncio.run(rig.executor.stop())


async def test_run_sync_works_inside_a_running_loop_and_its_agent_is_stopped_from_there() -> None:
    """As in a notebook."""
    rig = Rig(["hi"])
    assert rig.agent.run_sync("x") == "hi"
    await rig.agent.stop()
    assert not [t for t in threading.enumerate() if t.name == "atlas-loop"]


def test_stop_sync_without_a_run() -> None:
    """Stopping what never started is fine."""
    rig = Rig([])
    rig.agent.stop_sync()
    with pytest.raises(ServiceNotReadyError):
        rig.agent.run_sync("x")
    rig.agent._portal.close()


def test_a_sync_door_on_its_own_loop_is_refused_instead_of_waiting_for_ever() -> None:
    """A tool that calls its own agent's sync door gets an error."""
    rig: Rig

    async def nested() -> str:
        return str(rig.agent.run_sync("again"))

    rig = Rig([ToolCall("", "nested"), "end"], [nested])
    answer = rig.agent.run_sync("x")
    assert "await the async one" in str(answer.result.tool_results[0].error)
    rig.agent.stop_sync()


def test_an_interrupt_of_a_sync_run_cancels_it_first(monkeypatch: Any) -> None:
    """Ctrl-C in plain code stops the run, then is raised."""
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    portal = Portal()
    import concurrent.futures

    def interrupt(self: Any, timeout: Any = None) -> Any:
        time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent.futures.Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        portal.call(work)
    assert ended.wait(5)
    monkeypatch.undo()
    portal.close()
    portal.close()


# Constructing ----------------------------------------------------------------------------------------------------


async def test_an_agent_from_its_parts_alone() -> None:
    """Settings, a model and an executor are all it takes; `async with` starts and stops it."""
    registry = ToolRegistry()

    @registry.register
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    executor = SyncToolExecutor(registry)
    settings = AgentProfileSettings(name="mini", tools=["double"])
    async with AgentService(settings, FakeLLM([ToolCall.of("double", n=4), "8"]), executor) as agent:
        assert agent.is_ready
        assert agent.settings.name == "mini"
        assert "mini" in repr(agent)
        answer = await agent.run("4 twice?")
    assert answer.result.outcome is RunOutcome.ANSWERED
    assert answer.result.tool_results[0].value == 8
    await executor.stop()


async def test_an_executor_without_registry_or_threads_serves_too() -> None:
    """Any object with the three methods is an executor."""

    class Bare:
        async def execute_batch(self, calls: Any) -> Any:
            return [await c.invoke() for c in calls]

        async def start(self) -> None:
            pass

        async def stop(self) -> None:
            pass

    async with AgentService(AgentProfileSettings(name="bare"), FakeLLM(["hi"]), Bare()) as agent:
        assert await agent.run("x") == "hi"
        assert agent._workers() is agent._workers()


async def test_a_failed_start_is_told_again() -> None:
    """The reason of the first failure is kept."""

    class Broken(FakeLLM):
        async def _start(self) -> None:
            raise OSError("no such file")

    async with Rig([], llm=Broken([])) as rig:
        with pytest.raises(ServiceNotReadyError, match="a scripted model did not start: OSError: no such file"):
            await rig.agent.run("x")
        with pytest.raises(ServiceNotReadyError, match="no such file"):
            await rig.agent.run("x")


async def test_a_stream_is_an_async_context_manager() -> None:
    """Leaving it closes the run; its result is refused before the end."""
    async with Rig([ToolCall("", "nap"), "x"], [lambda_tool := _nap()]) as rig:
        async with rig.agent.stream("x") as events:
            await anext(events)
            with pytest.raises(ServiceNotReadyError, match="iterate to the end"):
                _ = events.result
        assert lambda_tool is not None


def _nap() -> Any:
    async def nap() -> None:
        await asyncio.sleep(30)

    return nap


async def test_cancelling_the_one_who_iterates_cancels_the_run() -> None:
    """A server that drops a client stops the tools."""
    async with Rig([ToolCall("", "nap"), "x"], [_nap()]) as rig:
        stream = rig.agent.stream("x")

        async def consume() -> None:
            async for _ in stream:
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}


def test_no_log_handler_is_installed() -> None:
    """Atlas logs under `atlas` and configures nothing."""
    assert not logging.getLogger("atlas").handlers


# What foreign code does at the borders --------------------------------------------------------------------------------


async def test_the_start_is_within_the_runs_time() -> None:
    """A model that never gets ready does not hold the caller."""

    class Never(FakeLLM):
        async def _start(self) -> None:
            await asyncio.sleep(30)

    async with Rig([], llm=Never([]), max_execution_time_seconds=0.05) as rig:
        with pytest.raises(AgentTimeoutError, match="did not start within"):
            await rig.agent.run("x")


async def test_an_executor_that_ignores_the_deadline_ends_as_the_runs_time_out(monkeypatch: Any) -> None:
    """Not as a failure of its own."""
    monkeypatch.setattr(dispatch, "OVERDUE_S", 0.1)

    class Late(SyncToolExecutor):
        async def execute_batch(self, calls: Any) -> Any:
            await asyncio.sleep(30)

    def act() -> None:
        """Act."""

    async with Rig([ToolCall("", "act")], [act], executor=Late, max_execution_time_seconds=0.05) as rig:
        with pytest.raises(AgentTimeoutError, match="executor 'Late' did not stop") as caught:
            await rig.agent.run("x")
    assert [m.role for m in caught.value.messages] == ["user", "assistant", "tool"]


async def test_a_run_that_a_plain_tool_started_ends_with_its_call() -> None:
    """Cancelling the parent reaches a sub-agent behind the sync door."""
    effects: list[str] = []

    async def effect() -> None:
        effects.append("begun")
        await asyncio.sleep(30)
        effects.append("late")

    inner = Rig([ToolCall("", "effect")] * 3, [effect])

    def delegate() -> str:
        return str(inner.agent.run_sync("sub"))

    async with Rig([ToolCall("", "delegate")], [delegate]) as rig:
        task = asyncio.create_task(rig.agent.run("x"))
        for _ in range(200):
            if effects:
                break
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(200):
            if inner.observer.of(RunEnded):
                break
            await asyncio.sleep(0.02)
    assert inner.observer.of(RunEnded)[0].outcome is RunOutcome.CANCELLED
    assert effects == ["begun"]
    await inner.agent.stop()
    await inner.executor.stop()


def test_an_interrupt_that_a_tool_raises_leaves_the_agent_usable() -> None:
    """It reaches the caller, and the sync door's loop lives on."""

    async def interrupt() -> None:
        raise KeyboardInterrupt

    rig = Rig([ToolCall("", "interrupt"), "again"], [interrupt])
    with pytest.raises(KeyboardInterrupt):
        rig.agent.run_sync("x")
    assert rig.agent.run_sync("y") == "again"
    rig.agent.stop_sync()


async def test_a_plain_start_of_a_tool_blocks_nobody() -> None:
    """It runs in a thread and within the call's time."""

    class Blocking:
        name = "blocking"
        description = ""
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        timeout_s = 0.1

        def start(self) -> None:
            time.sleep(0.6)

        def execute(self) -> str:
            return "done"

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticker = asyncio.create_task(tick())
    async with Rig([ToolCall("", "blocking"), "x"], [Blocking()]) as rig:
        answer = await rig.agent.run("x")
    ticker.cancel()
    assert answer.result.tool_results[0].status is CallStatus.TIMED_OUT
    assert ticks >= 3


async def test_what_stop_could_not_end_is_still_named_after_it(monkeypatch: Any) -> None:
    """Threads and coroutines alike."""
    monkeypatch.setattr(invoke, "GRACE_S", 0.05)
    release = asyncio.Event()
    free = threading.Event()

    @tool(timeout_s=0.02)
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @tool(timeout_s=0.02)
    def hanging() -> None:
        free.wait(30)

    async with Rig([[ToolCall("a", "stubborn"), ToolCall("b", "hanging")], "x"], [stubborn, hanging]) as rig:
        await rig.agent.run("x")
        await rig.executor.stop()
        assert rig.executor.abandoned_calls == ("tool 'hanging', call 'b'", "tool 'stubborn'")
        release.set()
        free.set()
        await asyncio.sleep(0.05)


async def test_stop_sync_works_in_a_running_loop() -> None:
    """Whether or not the agent was ever run."""
    Rig([]).agent.stop_sync()


def test_agents_that_are_dropped_leave_no_thread_behind() -> None:
    """Even without a stop."""
    import gc

    for _ in range(5):
        assert Rig(["hi"]).agent.run_sync("x") == "hi"
    for _ in range(200):
        gc.collect()
        if not [t for t in threading.enumerate() if t.name == "atlas-loop"]:
            return
        time.sleep(0.02)
    pytest.fail("the loops' threads are still there")


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"max_iterations": True}, TypeError),
        ({"max_iterations": 2.5}, TypeError),
        ({"max_iterations": "3"}, TypeError),
        ({"max_iterations": None}, TypeError),
        ({"max_execution_time_seconds": float("nan")}, TypeError),
        ({"max_execution_time_seconds": "1"}, TypeError),
        ({"max_tokens": 1.5}, TypeError),
        ({"max_cost": -1}, ValueError),
    ],
)
async def test_limits_of_a_wrong_type_are_refused(limits: dict[str, Any], error: type[Exception]) -> None:
    """With the name and the value."""
    async with Rig([]) as rig:
        with pytest.raises(error, match=next(iter(limits))):
            await rig.agent.run("x", **limits)


async def test_a_long_system_prompt_counts_against_the_budget() -> None:
    """It is part of what is sent."""
    async with Rig([], max_tokens=50, system_prompt="x" * 4_000) as rig:
        with pytest.raises(TokenBudgetError, match="1"):
            await rig.agent.run("x")
    assert not rig.llm.requests


async def test_a_result_whose_own_methods_exit_is_a_failure_of_its_call() -> None:
    """And so is an exception whose text exits."""

    class Evil:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(1)

    class EvilError(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    def result() -> Any:
        return Evil()

    def error() -> None:
        raise EvilError

    async with Rig([[ToolCall("", "result"), ToolCall("", "error")], "x"], [result, error]) as rig:
        assert await rig.agent.run("x") == "x"
    assert "EvilError: (its text can't be read)" in rig.tool_messages[1]


async def test_a_thousand_calls_to_unknown_tools_cost_little() -> None:
    """Only some are explained; long names are cut before they are compared."""

    def real() -> None:
        """Be there."""

    calls = [ToolCall("", "x" * 30_000)] * 1_000
    began = time.process_time()
    async with Rig([calls, "x"], [real]) as rig:
        answer = await rig.agent.run("x")
    assert time.process_time() - began < 5
    assert all(len(r.content) < 400 for r in answer.result.tool_results)


async def test_a_pattern_that_matches_nothing_is_told() -> None:
    """An agent without the tools it should have is hard to debug."""
    async with Rig(["x"], offer=["nosuch*"]) as rig:
        await rig.agent.run("x")
    assert "'nosuch*', which matches no tool" in rig.observer.of(RunWarning)[0].text


# Grants that change -------------------------------------------------------------------------------------------------


async def test_an_agent_with_a_toolkit_is_offered_exactly_what_it_was_granted() -> None:
    """As the grants stand when a run begins; what was revoked since is refused."""

    def read() -> str:
        """Read."""
        return "r"

    def write() -> str:
        """Write."""
        toolkit.revoke_permission("Clerk", "read")
        return "w"

    toolkit = AgentToolkit([read, write])
    turns: list[Any] = ["none", ToolCall("", "write"), [ToolCall("", "read"), ToolCall("", "write")], "end", "last"]
    llm = FakeLLM(turns)
    executor = SyncToolExecutor()
    settings = AgentProfileSettings(name="clerk", permissions={"deny": ["drop"]})
    async with AgentService(settings, llm, executor, toolkit=toolkit) as agent:
        await agent.run("x")
        toolkit.grant_all_permissions("clerk")
        answer = await agent.run("x")
        await agent.run("x")
    assert [[t.name for t in r.tools] for r in llm.requests] == [
        [],
        ["read", "write"],
        ["read", "write"],
        ["read", "write"],
        ["write"],
    ]
    assert [r.status for r in answer.result.tool_results] == [CallStatus.OK, CallStatus.REFUSED, CallStatus.OK]
    await executor.stop()
    await toolkit.stop()


async def test_a_profile_narrows_what_a_toolkit_grants() -> None:
    """`tools` and `permissions` both; what is named and not granted is simply not there."""

    def read() -> None:
        """Read."""

    def write() -> None:
        """Write."""

    toolkit = AgentToolkit([read, write])
    toolkit.grant_permission("clerk", "*")
    for narrowed in ({"tools": ["read", "gone"]}, {"permissions": {"deny": ["wr*"]}}):
        llm = FakeLLM(["x"])
        async with AgentService(
            AgentProfileSettings(name="clerk", **narrowed), llm, SyncToolExecutor(), toolkit=toolkit
        ) as agent:
            await agent.run("x")
        assert [t.name for t in llm.requests[0].tools] == ["read"]
    await toolkit.stop()


async def test_an_answer_after_the_end_of_the_runs_time_counts_no_more() -> None:
    """Even if the model swallows its cancellation."""

    async def late(_: Any) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
        return "late"

    async with Rig([late], max_execution_time_seconds=0.05) as rig:
        with pytest.raises(AgentTimeoutError, match="waiting for the model"):
            await rig.agent.run("x")


async def test_agents_on_one_executor_share_its_tools() -> None:
    """A tool is started once and lives as long as the executor, whichever agent stops first."""
    log: list[str] = []
    registry = ToolRegistry()
    registry.register(resource("a", log))
    executor = SyncToolExecutor(registry)
    settings = AgentProfileSettings(name="one", tools=["a"])
    first, second = (AgentService(settings, FakeLLM([ToolCall("", "a"), "x"] * 2), executor) for _ in range(2))
    await first.run("x")
    await second.run("x")
    await first.stop()
    await second.run("x")
    assert log == ["start a"]
    await second.stop()
    await executor.stop()
    assert log == ["start a", "stop a"]


async def test_a_tool_class_with_a_plain_start_and_stop() -> None:
    """They are called, off the loop and without being awaited."""
    log: list[str] = []

    class Plain(FunctionTool):
        def start(self) -> None:  # type: ignore[override]  # as people write it
            log.append(f"start {threading.current_thread().name}")

        def stop(self) -> None:  # type: ignore[override]  # as above
            log.append("stop")

    def work() -> str:
        """Work."""
        return "done"

    async with Rig([ToolCall("", "work"), "x"], [Plain(work)]) as rig:
        await rig.agent.run("x")
        assert rig.tool_messages == ["done"]
    assert log == ["start atlas-tool", "stop"]
    log.clear()
    registry = ToolRegistry()
    registry.register(Plain(work), prefix="my")
    executor = SyncToolExecutor(registry)
    settings = AgentProfileSettings(name="prefixed", tools=["*"])
    async with AgentService(settings, FakeLLM([ToolCall("", "my_work"), "x"]), executor) as agent:
        assert (await agent.run("x")).result.tool_results[0].value == "done"
    await executor.stop()
    assert log == ["start atlas-tool", "stop"]
