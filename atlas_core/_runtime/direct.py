"""Runs single tool calls for a program, outside of any run, with time limits, threads and an end of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from atlas_core._runtime.invoke import Lifecycle, invoke
from atlas_core._runtime.portal import Portal
from atlas_core._runtime.workers import Workers
from atlas_core.errors import ServiceNotReadyError
from atlas_core.interfaces.tools import Tool

if TYPE_CHECKING:
    from atlas_core.interfaces.executors import Outcome
    from atlas_core.interfaces.tools import ToolSchema

__all__ = ["DirectCalls"]

T = TypeVar("T")

STOP_WAIT_S = 5.0
"""How long `stop` waits for cancelled calls to clean up."""


class DirectCalls:
    """Calls from any number of threads and event loops, and the tools that were started for them.

    Args:
        name: What errors call the owner.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._lifecycle = Lifecycle()
        self._workers = Workers()
        self._portal = Portal()
        self._running: set[asyncio.Task[object]] = set()
        self._cancelled: set[asyncio.Task[object]] = set()
        self._ended = threading.Event()
        self.is_stopped = False

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Labels of the calls whose threads hang, sorted."""
        return self._workers.abandoned

    async def run(
        self,
        tool: Tool,
        keywords: dict[str, Any],
        *,
        label: str,
        deadline: float | None,
        gate: Callable[[], None],
    ) -> Outcome:
        """Run a tool with built arguments.

        Args:
            tool: The tool; started before its first use.
            keywords: What its `execute` takes.
            label: What to call the call in reports.
            deadline: On the clock of `time.monotonic()`, or None.
            gate: Called right before the tool is, which may be long after this was; raises where it must not run.
        Raises:
            ServiceNotReadyError: Stopped, before the call or during it.
            BaseException: What the gate raised.
        """
        gated = _Gated(tool, gate)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine on asyncio runs in a task
        with self._lock:
            self._refuse_if_stopped()
            self._running.add(task)
        try:
            outcome = await invoke(
                gated,
                keywords,
                workers=self._workers,
                lifecycle=_StartsInner(self._lifecycle),
                deadline=deadline,
                label=label,
            )
        except asyncio.CancelledError:
            # Whoever awaits a call of something that is stopped was not cancelled itself.
            if task in self._cancelled and task.uncancel() == 0:
                raise ServiceNotReadyError(f"{self._name} was stopped during the call") from None
            raise
        finally:
            with self._lock:
                self._running.discard(task)
                self._cancelled.discard(task)
        if gated.refusal is not None:
            raise gated.refusal
        return outcome

    def run_sync(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine from plain code; works where an event loop runs already."""
        self._refuse_if_stopped()
        return self._portal.call(make)

    def _refuse_if_stopped(self) -> None:
        if self.is_stopped:
            raise ServiceNotReadyError(f"{self._name} was stopped", remedy="make a new one")

    async def stop(self) -> None:
        """Cancel the calls that go on, then stop what was started for them; waits for a stop that goes on already."""
        if self._portal.is_inside or not (self._portal.is_open or self.is_stopped):
            if self._claim_stop():
                await self._stop_for_sure(self._ended)
        else:
            # What was started through the sync door lives on its loop and must be stopped there.
            await asyncio.to_thread(self.stop_sync)

    def stop_sync(self) -> None:
        """Stop from plain code."""
        if self._portal.is_inside:
            raise RuntimeError("a sync door was used on the loop that it waits for; await the async one instead")
        if self._claim_stop():
            stopped = threading.Event()
            try:
                self._portal.call(lambda: self._stop_for_sure(stopped))
            except CancelledError:  # a tool asked for the end in its thread, and its call was ended by it
                stopped.wait()
                raise
            finally:
                self._portal.close()
                self._ended.set()
        else:
            self._ended.wait()
            self._portal.close()  # open still if a tool on its loop has stopped this

    def _claim_stop(self) -> bool:
        """Return whether the caller is the first who stops this, and has to."""
        with self._lock:
            first, self.is_stopped = not self.is_stopped, True
        return first

    async def _stop_for_sure(self, ended: threading.Event) -> None:
        # Shielded, as it cancels calls, and one of them may be waiting for it.
        await asyncio.shield(asyncio.ensure_future(self._stop_everything(ended)))

    async def _stop_everything(self, ended: threading.Event) -> None:
        try:
            with self._lock:
                running = self._running - {asyncio.current_task()}
                self._cancelled |= running
            for task in running:
                _cancel(task)
            await _until(lambda: not running & self._running, STOP_WAIT_S)
            await self._lifecycle.stop()
            strays = tuple(self._workers.strays)
            for stray in strays:
                _cancel(stray)
            await _until(lambda: all(stray.done() for stray in strays), 1.0)
            self._workers.stop()
        finally:
            ended.set()


def _cancel(task: asyncio.Task[object]) -> None:
    with contextlib.suppress(RuntimeError):  # its loop may be closed already
        task.get_loop().call_soon_threadsafe(task.cancel)


async def _until(reached: Callable[[], bool], patience_s: float) -> None:
    """Wait for something that may happen on other loops, which no wait of this one covers."""
    ends = time.monotonic() + patience_s
    while not reached() and time.monotonic() < ends:  # noqa: ASYNC110  # an Event belongs to one loop
        await asyncio.sleep(0.005)


class _Gated(Tool):
    """A tool for one call, which asks its gate once more when its turn has come."""

    def __init__(self, inner: Tool, gate: Callable[[], None]) -> None:
        self.inner = inner
        self.effects = inner.effects
        self.timeout_s = inner.timeout_s
        self.refusal: Exception | None = None
        self._gate = gate

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def description(self) -> str:
        return self.inner.description

    @property
    def schema(self) -> ToolSchema:
        return self.inner.schema

    @property
    def is_async(self) -> bool:
        return self.inner.is_async

    def execute(self, /, **kwargs: Any) -> Any:
        try:
            self._gate()
        except Exception as exc:
            self.refusal = exc
            raise
        return self.inner.execute(**kwargs)


class _StartsInner(Lifecycle):
    """Starts the tool behind the gate, which is the same for every call."""

    def __init__(self, shared: Lifecycle) -> None:
        self._shared = shared

    def is_ready(self, tool: Tool) -> bool:
        return self._shared.is_ready(_inner(tool))

    async def ensure(self, tool: Tool, workers: Workers) -> None:
        await self._shared.ensure(_inner(tool), workers)


def _inner(tool: Tool) -> Tool:
    return tool.inner if isinstance(tool, _Gated) else tool
