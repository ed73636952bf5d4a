"""Runs one tool call in this process and turns whatever happens into its outcome."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from atlas_core._runtime.workers import Abandoned, CallTimedOut, TooManyAbandoned, Workers
from atlas_core.errors import AtlasError, ToolArgumentsError
from atlas_core.interfaces.executors import Outcome
from atlas_core.interfaces.flight import Flight
from atlas_core.messages import CallStatus

if TYPE_CHECKING:
    from atlas_core.interfaces.tools import Tool

__all__ = ["MAX_ITEMS", "Lifecycle", "error_text", "invoke"]

log = logging.getLogger("atlas.tools")

MAX_ITEMS = 10_000
"""Items taken from a generator; one without end is closed there."""

GRACE_S = 1.0
"""How long a coroutine that was cancelled may clean up before it is left behind."""

MAX_ERROR_CHARS = 1_000


def error_text(error: BaseException) -> str:
    """Return an exception as bounded text, even where its own `str` fails."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # a foreign exception class
        text = "(its text can't be read)"
    if not isinstance(error, AtlasError):  # whose texts are sentences of their own
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= MAX_ERROR_CHARS else text[:MAX_ERROR_CHARS] + " ..."


def _failed(error: BaseException) -> Outcome:
    if isinstance(error, ToolArgumentsError):
        return Outcome(CallStatus.INVALID_ARGUMENTS, error=str(error)[:MAX_ERROR_CHARS], exception=error)
    return Outcome(CallStatus.FAILED, error=error_text(error), exception=error)


class Lifecycle:
    """Starts tools before their first use and stops them in reverse order; one per kernel."""

    def __init__(self) -> None:
        self._started: list[Tool] = []
        self._ready: set[int] = set()
        self._flights: dict[int, Flight] = {}

    def is_ready(self, tool: Tool) -> bool:
        """Whether the tool may be used as it is."""
        return id(tool) in self._ready

    async def ensure(self, tool: Tool, workers: Workers) -> None:
        """Start the tool if it was not; what its `start` raises goes to the caller, and the next call tries again."""
        if id(tool) not in self._ready:
            await self._flights.setdefault(id(tool), Flight()).run(lambda: self._start(tool, workers))

    async def _start(self, tool: Tool, workers: Workers) -> None:
        if id(tool) in self._ready:
            return
        plain = tool.plain_start
        if plain is not None:
            # A plain function may block, which must not hold the event loop.
            value = await workers.run(lambda _: plain(), label=f"the start of tool {tool.name!r}", timeout_s=None)
            if inspect.isawaitable(value):
                await value
        else:
            await tool.start()
        self._started.append(tool)
        self._ready.add(id(tool))

    async def stop(self) -> None:
        """Stop what was started, the last first; a failing stop is logged and the rest go on."""
        self._ready.clear()
        while self._started:
            tool = self._started.pop()
            try:
                ended: Any = tool.stop()
                if inspect.isawaitable(ended):
                    await ended
            except Exception:
                log.exception("tool %r did not stop", tool.name)


async def invoke(
    tool: Tool,
    keywords: dict[str, Any],
    *,
    workers: Workers,
    lifecycle: Lifecycle | None,
    deadline: float | None,
    label: str,
) -> Outcome:
    """Run a tool with built arguments.

    Only the caller's own cancellation is raised. It is told by the task's cancel state and not by the exception's
    class, since a tool may raise `CancelledError` of its own.
    """
    timeout_s = _shorter(tool.timeout_s, deadline)
    if timeout_s is not None and timeout_s <= 0:
        return Outcome(CallStatus.TIMED_OUT, error="no time was left; it was not started")
    ends = None if timeout_s is None else time.monotonic() + timeout_s
    if timeout_s is not None and timeout_s == tool.timeout_s:
        late = f"timed out after {timeout_s:g} s"
    else:
        late = "timed out: the time of its run, or of one call, was over"
    if lifecycle is not None and not lifecycle.is_ready(tool):
        outcome = await _bounded(lambda: lifecycle.ensure(tool, workers), tool, timeout_s, workers, late)
        if not outcome.ok:
            return _not_started(outcome)
        timeout_s = None if ends is None else ends - time.monotonic()
    if tool.is_async:
        return await _bounded(lambda: _await(tool.execute(**keywords)), tool, timeout_s, workers, late)
    return await _in_thread(tool, keywords, workers, timeout_s, label=label, late=late)


def _shorter(timeout_s: float | None, deadline: float | None) -> float | None:
    if deadline is None:
        return timeout_s
    left = deadline - time.monotonic()
    return left if timeout_s is None else min(left, timeout_s)


def _not_started(outcome: Outcome) -> Outcome:
    return Outcome(outcome.status, error=f"the tool could not start: {outcome.error}", exception=outcome.exception)


async def _await(value: Any) -> object:
    """Resolve what an async tool returned: an awaitable, an async generator, or a plain value."""
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value) or isinstance(value, AsyncIterator):
        return await _collect_async(value)
    return value


async def _collect_async(items: AsyncIterator[object]) -> list[object]:
    taken: list[object] = []
    try:
        async for item in items:
            taken.append(item)
            if len(taken) >= MAX_ITEMS:
                taken.append(_CUT_NOTE)
                break
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
    return taken


_CUT_NOTE = f"[only the first {MAX_ITEMS} items were taken]"


def _collect(items: Iterator[object], abandoned: Abandoned) -> list[object]:
    taken: list[object] = []
    try:
        for item in items:
            taken.append(item)
            if len(taken) >= MAX_ITEMS:
                taken.append(_CUT_NOTE)
                break
            if abandoned.is_set:
                break
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    return taken


async def _bounded(
    make: Callable[[], Any], tool: Tool, timeout_s: float | None, workers: Workers, late: str
) -> Outcome:
    """Await a foreign coroutine in a task of its own, so that one which ignores its cancellation can be left."""
    task = asyncio.ensure_future(_guarded(make))
    try:
        await asyncio.wait((task,), timeout=timeout_s)
    except asyncio.CancelledError:
        await _end(task, tool, workers)
        raise
    if task.done():
        return task.result()
    await _end(task, tool, workers)
    after = "" if tool.effects == "read" else "; it was cancelled and may have taken effect in part"
    return Outcome(CallStatus.TIMED_OUT, error=f"{late}{after}")


async def _guarded(make: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(CallStatus.OK, await make())
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Outcome(CallStatus.FAILED, error="the tool cancelled itself", exception=exc)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # noqa: BLE001  # a foreign tool; a SystemExit of its must not end the host
        return _failed(exc)


async def _end(task: asyncio.Task[Outcome], tool: Tool, workers: Workers) -> None:
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=GRACE_S)
    finally:
        if not task.done():
            workers.strays[task] = f"tool {tool.name!r}"
            task.add_done_callback(workers.forget)
            log.warning("tool %r ignores its cancellation and was left running", tool.name)
        elif not task.cancelled():
            task.exception()  # seen, so that it is not reported as forgotten


async def _in_thread(
    tool: Tool, keywords: dict[str, Any], workers: Workers, timeout_s: float | None, *, label: str, late: str
) -> Outcome:
    def work(abandoned: Abandoned) -> object:
        value = tool.execute(**keywords)
        if inspect.isgenerator(value):
            return _collect(value, abandoned)
        return value

    started = time.monotonic()
    try:
        value = await workers.run(work, label=label, timeout_s=timeout_s)
    except CallTimedOut:
        after = "" if tool.effects == "read" else "; it can't be stopped and may still take effect"
        return Outcome(CallStatus.TIMED_OUT, error=f"{late}{after}")
    except TooManyAbandoned as exc:
        return Outcome(CallStatus.FAILED, error=f"not started: {exc}", exception=exc)
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Outcome(CallStatus.FAILED, error="the tool cancelled itself", exception=exc)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # noqa: BLE001  # a foreign tool; a SystemExit of its must not end the host
        return _failed(exc)
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        # A plain function that hands back a coroutine, such as a lambda around an async one.
        left = None if timeout_s is None else max(0.0, timeout_s - (time.monotonic() - started))
        return await _bounded(lambda: _await(value), tool, left, workers, late)
    return Outcome(CallStatus.OK, value)
