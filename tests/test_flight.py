"""One piece of work for all who wait, whatever loop and thread they are on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from atlas_core import (
    AgentService,
    BaseService,
    Kernel,
    LLMProviderSpec,
    ServiceNotReadyError,
    ToolCall,
    ToolProvider,
    hookimpl,
)
from atlas_core.interfaces.flight import Flight
from atlas_core.testing import FakeLLM
from tests.runtime.rig import Rig


def in_threads(*work: Callable[[], Any]) -> list[Any]:
    """Run functions at once, each in a thread; fail if one does not end."""
    results: list[Any] = [None] * len(work)

    def run(index: int) -> None:
        try:
            results[index] = work[index]()
        except BaseException as exc:
            results[index] = exc

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive(), "it hangs"
    return results


class Slow(BaseService):
    """A service whose start takes a while."""

    def __init__(self) -> None:
        self.starts = 0

    async def _start(self) -> None:
        self.starts += 1
        await asyncio.sleep(0.1)


def test_a_service_starts_once_for_callers_on_two_loops() -> None:
    """The second caller is woken on its own loop."""
    service = Slow()
    assert in_threads(*[lambda: asyncio.run(service.start())] * 3) == [None] * 3
    assert service.starts == 1
    assert service.is_ready


def test_a_start_whose_loop_ends_is_begun_again_by_who_still_waits() -> None:
    """The loop that began it may be gone first."""
    service = Slow()

    def leave() -> None:
        async def begin() -> None:
            asyncio.ensure_future(service.start()).add_done_callback(lambda t: t.cancelled() or t.exception())
            await asyncio.sleep(0.02)

        asyncio.run(begin())

    def wait() -> None:
        asyncio.run(asyncio.sleep(0.01))
        asyncio.run(service.start())

    assert in_threads(leave, wait) == [None, None]
    assert service.is_ready


def test_an_error_reaches_everyone_who_waits() -> None:
    """On whatever loop."""
    flight = Flight()

    async def fail() -> None:
        await asyncio.sleep(0.05)
        raise SystemExit(3)

    first, second = in_threads(*[lambda: asyncio.run(flight.run(fail))] * 2)
    assert isinstance(first, SystemExit)
    assert isinstance(second, SystemExit)


async def test_work_that_cancels_itself_has_failed() -> None:
    """It is not begun again for ever."""

    async def odd() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await Flight().run(odd)


async def test_cancelling_nothing_is_fine() -> None:
    """There may be no work under way."""
    await Flight().cancel()


async def test_one_who_begins_and_is_cancelled_at_once_blocks_nobody() -> None:
    """A task that never took its first step is given up too."""
    flight, done = Flight(), []

    async def work() -> None:
        done.append(1)

    task = asyncio.create_task(flight.run(work))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(flight.run(work), 5)
    assert done == [1]


def test_what_a_kernel_shares_is_used_from_two_loops_at_once() -> None:
    """A tool provider that starts slowly, and two agents with sync doors of their own."""
    starts = []

    class Server(ToolProvider):
        async def start(self) -> None:
            starts.append(1)
            await asyncio.sleep(0.1)

        async def tools(self) -> list[Any]:
            return []

    class Plugin:
        @hookimpl
        def atlas_llm_providers(self) -> list[LLMProviderSpec]:
            return [LLMProviderSpec(name="p", factory=lambda config: FakeLLM(["a"] * 4))]

        @hookimpl
        def atlas_tool_providers(self) -> list[Any]:
            return [Server()]

    agents = {"profiles": {"connections": {"one": {"tools": ["*"]}}}, "default_profile": "one"}
    kernel = Kernel({"ai": {"connections": {"c": {"backend": "p"}}, "agents": agents}}, plugins=[("p", Plugin())])
    first, second = kernel.agent(), kernel.agent()
    assert in_threads(lambda: first.run_sync("x"), lambda: second.run_sync("x")) == ["a", "a"]
    assert starts == [1]
    for agent in (first, second):
        assert isinstance(agent, AgentService)
        agent.stop_sync()
    asyncio.run(kernel.stop())


def test_a_tool_that_starts_slowly_is_shared_by_two_loops() -> None:
    """It is started once."""
    log: list[str] = []

    class Slowly:
        name = "slowly"
        description = ""
        schema: dict[str, Any] = {"type": "object", "properties": {}}

        async def start(self) -> None:
            log.append("start")
            await asyncio.sleep(0.1)

        def execute(self) -> str:
            return "done"

    rig = Rig([ToolCall("", "slowly"), "a"] * 2, [Slowly()])
    other = AgentService.from_parts(rig.agent.parts)
    other._lifecycle = rig.agent._lifecycle
    other._parts.llm.requests.clear()  # type: ignore[attr-defined]  # a scripted model

    def turn(agent: AgentService) -> Any:
        return lambda: agent.run_sync("x")

    results = in_threads(turn(rig.agent), turn(other))
    assert all(isinstance(result, str) for result in results)
    assert log == ["start"]
    rig.agent.stop_sync()
    other.stop_sync()
    asyncio.run(rig.executor.stop())


def test_an_attempt_whose_loop_was_interrupted_and_closed_is_given_up() -> None:
    """Neither the next start nor a stop waits for it."""
    service = Slow()
    loop = asyncio.new_event_loop()

    def interrupt() -> None:
        raise KeyboardInterrupt

    loop.call_later(0.02, interrupt)
    task = loop.create_task(service.start())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(task)
    for left in asyncio.all_tasks(loop):
        left._log_destroy_pending = False  # type: ignore[attr-defined]  # the test leaves them behind on purpose
    loop.close()
    (ended,) = in_threads(lambda: asyncio.run(service.start()))
    assert ended is None
    assert service.is_ready


def test_one_who_waits_notices_that_the_working_loop_stood_still() -> None:
    """It begins the work itself."""
    service = Slow()
    loop = asyncio.new_event_loop()
    began, over = threading.Event(), threading.Event()

    def begin() -> None:
        async def briefly() -> None:
            task = asyncio.ensure_future(service.start())
            await asyncio.sleep(0.02)
            began.set()
            await asyncio.sleep(0.02)
            task.add_done_callback(lambda t: t.cancelled() or t.exception())

        loop.run_until_complete(briefly())
        over.wait(20)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()

    def wait() -> None:
        began.wait(20)
        try:
            asyncio.run(service.start())
        finally:
            over.set()

    assert in_threads(begin, wait) == [None, None]
    assert service.is_ready


async def test_a_stop_during_a_start_that_will_not_be_cancelled() -> None:
    """The start does not end as if all were well."""

    class Stubborn(BaseService):
        async def _start(self) -> None:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)

    service = Stubborn()
    start = asyncio.create_task(service.start())
    await asyncio.sleep(0.02)
    await service.stop()
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await start
