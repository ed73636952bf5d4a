"""Threads of our own for tools that are plain functions.

A pool of the standard library waits for its threads at exit and can't replace one that hangs. These are daemon
threads: one that outlives its call's time is abandoned, which means reported, counted and bounded, and never
delays the end of the process. Python offers no way to kill a thread, so its effects may still happen.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["CURRENT_CALL", "Abandoned", "CallTimedOut", "TooManyAbandoned", "Workers"]

T = TypeVar("T")
log = logging.getLogger("atlas.tools")


class CallTimedOut(Exception):  # noqa: N818  # tells the caller's own clock apart from a tool's TimeoutError
    """The call did not return in time; its thread is abandoned."""


class TooManyAbandoned(Exception):  # noqa: N818  # private, turned into the call's result at once
    """So many threads hang already that no further call is started."""


class Abandoned:
    """What a call can look at, or be told by, to learn that nobody waits for it any more."""

    __slots__ = ("_callbacks", "_lock", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    def set(self) -> None:
        """Take note, and tell."""
        with self._lock:
            self.is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_set(self, callback: Callable[[], object]) -> None:
        """Have something called once nobody waits any more; at once if that is so."""
        with self._lock:
            if not self.is_set:
                self._callbacks.append(callback)
                return
        callback()


CURRENT_CALL: contextvars.ContextVar[Abandoned | None] = contextvars.ContextVar("atlas_call", default=None)
"""In a tool's thread: whether anybody still waits for the call. A run that the tool starts there ends with it."""


class _Job(Generic[T]):
    __slots__ = ("abandoned", "context", "finished", "function", "future", "is_abandoned", "label", "loop")

    def __init__(self, function: Callable[[Abandoned], T], label: str, loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self.label = label
        self.loop = loop
        self.future: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
        self.context = contextvars.copy_context()
        self.abandoned = Abandoned()
        self.finished = False
        self.is_abandoned = False


class Workers:
    """A bounded set of daemon threads.

    Args:
        max_threads: Calls that run at once; further ones wait, and their time runs.
        max_abandoned: Hanging threads after which no call is started any more.
        idle_s: Seconds after which a thread without work ends.
    """

    def __init__(self, *, max_threads: int = 32, max_abandoned: int = 64, idle_s: float = 10.0) -> None:
        self._max_threads = max_threads
        self._max_abandoned = max_abandoned
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False
        self._idle: list[queue.SimpleQueue[_Job[object] | None]] = []
        self._waiting: collections.deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = collections.deque()
        self._abandoned: set[_Job[object]] = set()
        self._threads: set[threading.Thread] = set()
        self.strays: dict[asyncio.Task[Any], str] = {}
        """Coroutines that ignored their cancellation, with what to call them."""

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Labels of the calls whose threads or coroutines go on though nobody waits for them, sorted."""
        with self._lock:
            return tuple(sorted([*(job.label for job in self._abandoned), *self.strays.values()]))

    def forget(self, task: asyncio.Task[Any]) -> None:
        """Take note that a coroutine which ignored its cancellation has ended after all."""
        self.strays.pop(task, None)
        if not task.cancelled():
            task.exception()  # seen, so that it is not reported as forgotten

    async def run(self, function: Callable[[Abandoned], T], *, label: str, timeout_s: float | None) -> T:
        """Run `function` in a thread, with the caller's context variables.

        Args:
            function: Called with a flag that is set once nobody waits any more.
            label: What to call it in reports.
            timeout_s: Seconds until it is abandoned, time in the queue included; None waits for ever.
        Raises:
            CallTimedOut: It took longer.
            TooManyAbandoned: It was not started.
            BaseException: Whatever `function` raised.
        """
        loop = asyncio.get_running_loop()
        ends = None if timeout_s is None else loop.time() + timeout_s
        await self._take_place(loop, ends)
        job: _Job[T] = _Job(function, label, loop)
        self._hand_out(job)  # type: ignore[arg-type]  # a job is only ever run and answered as a whole
        timer = None if ends is None else loop.call_at(ends, _expire, job.future)
        try:
            value, error = await job.future
        except (asyncio.CancelledError, CallTimedOut):
            self._abandon(job)  # type: ignore[arg-type]  # as above
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # without an error the value is the function's

    async def _take_place(self, loop: asyncio.AbstractEventLoop, ends: float | None) -> None:
        with self._lock:
            if self._closed:
                raise TooManyAbandoned("the executor has stopped")
            if len(self._abandoned) >= self._max_abandoned:
                raise TooManyAbandoned(
                    f"{len(self._abandoned)} earlier calls hang in their threads; no further one is started"
                )
            if self._running < self._max_threads:
                self._running += 1
                return
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
        timer = None if ends is None else loop.call_at(ends, _expire, turn)
        try:
            await turn
        except BaseException:
            with self._lock:
                if (loop, turn) in self._waiting:
                    self._waiting.remove((loop, turn))
                elif turn.done() and not turn.cancelled() and turn.exception() is None:
                    self._running -= 1
                    self._wake_next()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _wake_next(self) -> None:
        """Pass a free place on; the lock is held."""
        while self._waiting and self._running < self._max_threads and not self._closed:
            loop, turn = self._waiting.popleft()
            self._running += 1
            try:
                loop.call_soon_threadsafe(self._grant, turn)
            except RuntimeError:  # that loop was closed while its call waited
                self._running -= 1

    def _grant(self, turn: asyncio.Future[None]) -> None:
        if turn.done():
            with self._lock:
                self._running -= 1
                self._wake_next()
        else:
            turn.set_result(None)

    def _hand_out(self, job: _Job[object]) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
            if inbox is None:
                thread = threading.Thread(target=self._work, args=(job,), name="atlas-tool", daemon=True)
                self._threads.add(thread)
        if inbox is not None:
            inbox.put(job)
            return
        try:
            thread.start()
        except RuntimeError as exc:
            with self._lock:
                self._threads.discard(thread)
                self._running -= 1
                self._wake_next()
            raise TooManyAbandoned(f"the system gives no further thread: {exc}") from exc

    def _abandon(self, job: _Job[object]) -> None:
        with self._lock:
            if job.finished:
                return
            self._abandoned.add(job)
            self._running -= 1
            self._wake_next()
            count = len(self._abandoned)
            job.is_abandoned = True
        job.abandoned.set()
        log.warning("the thread of %s does not return and was abandoned (%d such now)", job.label, count)

    def _work(self, job: _Job[object]) -> None:
        inbox: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        current: _Job[object] | None = job
        try:
            while current is not None:
                if not self._do(current, inbox):
                    return
                del current
                current = self._await_job(inbox)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _do(self, job: _Job[object], inbox: queue.SimpleQueue[_Job[object] | None]) -> bool:
        """Run one job; return whether this thread may take another."""
        value: object = None
        error: BaseException | None = None
        try:
            value = job.context.run(_call, job)
        except BaseException as exc:  # noqa: BLE001  # a foreign tool: whatever it raises is its call's result
            error = exc
        with self._lock:
            job.finished = True
            if job.is_abandoned:
                self._abandoned.discard(job)
                return False
            self._running -= 1
            if not self._closed:
                self._idle.append(inbox)
            self._wake_next()
            stay = not self._closed
            try:
                job.loop.call_soon_threadsafe(_answer, job.future, value, error)
            except RuntimeError:  # the loop was closed while the call ran; nobody is left to tell
                log.warning("%s ended after its event loop was closed", job.label)
        return stay

    def _await_job(self, inbox: queue.SimpleQueue[_Job[object] | None]) -> _Job[object] | None:
        while True:
            try:
                return inbox.get(timeout=self._idle_s)
            except queue.Empty:
                with self._lock:
                    # Not in the list means that a job is on its way into the inbox.
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return None

    def stop(self) -> tuple[str, ...]:
        """End the idle threads; return the labels of calls that still run and can't be stopped."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            waiting, self._waiting = self._waiting, collections.deque()
            threads = set(self._threads)
            hanging = len(self._abandoned) + self._running
        for inbox in idle:
            inbox.put(None)
        for loop, turn in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_refuse, turn)
        if not hanging:
            for thread in threads - {threading.current_thread()}:
                thread.join(timeout=1.0)
        left = self.abandoned
        if left:
            log.warning("tool calls that still run after stop: %s", ", ".join(left))
        return left


def _call(job: _Job[object]) -> object:
    CURRENT_CALL.set(job.abandoned)
    return job.function(job.abandoned)


def _refuse(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(TooManyAbandoned("the executor has stopped"))


def _expire(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(CallTimedOut())


def _answer(
    future: asyncio.Future[tuple[object, BaseException | None]], value: object, error: BaseException | None
) -> None:
    if not future.done():
        # As a pair: a future refuses StopIteration as its exception.
        future.set_result((value, error))
