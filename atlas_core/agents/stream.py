"""The events of one run, for one who iterates over them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Self

from atlas_core.errors import ServiceNotReadyError

if TYPE_CHECKING:
    from types import TracebackType

    from atlas_core.events import Event
    from atlas_core.messages import RunResult

__all__ = ["RunStream"]


class RunStream(AsyncIterator["Event"]):
    """The events of one run, in order; made by `AgentService.stream`.

    The run goes on in a task of its own. Iterate to see it; leaving the iteration, closing, or dropping the object
    cancels the run, after which no further tool is started.
    """

    def __init__(self, execute: Callable[[Callable[[Event], None]], Awaitable[RunResult]]) -> None:
        self._execute = execute
        self._inbox = _Inbox()
        self._task: asyncio.Task[RunResult] | None = None
        self._ended = False

    @property
    def result(self) -> RunResult:
        """What the run did, once it has ended with an answer or a decline.

        Raises:
            ServiceNotReadyError: It has not ended yet.
        """
        if self._task is None or not self._task.done():
            raise ServiceNotReadyError("the run has not ended", remedy="iterate to the end first")
        return self._task.result()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._ended:
            raise StopAsyncIteration
        if self._task is None:
            self._task = asyncio.ensure_future(_drive(self._execute, self._inbox))
        try:
            event = await self._inbox.get()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if event is not None:
            return event
        self._ended = True
        await self._task  # raises what the run raised
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel the run if it goes on, and wait until it has cleaned up."""
        self._ended = True
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait((task,))
        if task is not None and task.done() and not task.cancelled():
            task.exception()  # seen: whoever closes early does not ask for it

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        task = self._task
        if task is None:
            return
        if not task.done():
            with contextlib.suppress(RuntimeError):  # its loop may be closed already
                task.get_loop().call_soon_threadsafe(task.cancel)
        elif not task.cancelled():
            task.exception()  # seen, as in aclose


class _Inbox:
    """Events on their way from a run to the one who iterates; None ends them."""

    def __init__(self) -> None:
        self._events: deque[Event | None] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: Event | None) -> None:
        self._events.append(event)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Event | None:
        while not self._events:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._events.popleft()


async def _drive(execute: Callable[[Callable[[Event], None]], Awaitable[RunResult]], inbox: _Inbox) -> RunResult:
    # A function and no method: a task that held its stream would keep it from being dropped.
    try:
        return await execute(inbox.put)
    finally:
        inbox.put(None)
