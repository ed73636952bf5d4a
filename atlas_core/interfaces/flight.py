"""One piece of work that several may wait for, on whatever event loops and threads."""

from __future__ import annotations

import asyncio
import copy
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Flight"]


LOOK_AGAIN_S = 0.5
"""How often one who waits looks whether the loop that does the work is still there."""


class _Attempt:
    """The work while it goes on, or its end; changed only under the flight's lock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.task: asyncio.Task[None] | None = None
        self.waiters: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self.done = False
        self.given_up = False
        self.error: BaseException | None = None


class Flight:
    """Does a piece of work once for all who ask while it goes on, and again for whoever asks later.

    An `asyncio.Lock` or a shared task belongs to one event loop, but a kernel may be used from several: each `run_sync`
    of an agent brings a loop of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempt: _Attempt | None = None

    async def run(self, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, or wait for the one who does it.

        Where everybody who waits is cancelled, the work is too. Where it was cancelled under somebody who still waits,
        because its loop ended, it is begun again.

        Args:
            make: Makes the work's coroutine.
        Raises:
            BaseException: What the work raised, to everyone who waited for it.
        """
        loop = asyncio.get_running_loop()
        while True:
            waiter: asyncio.Future[None] = loop.create_future()
            self._bury_dead()
            with self._lock:
                attempt = self._attempt
                if attempt is None:
                    attempt = self._attempt = _Attempt(loop)
                    attempt.task = loop.create_task(_do(attempt, make))
                    # Not at the coroutine's own end: one that is cancelled before its first step has none.
                    attempt.task.add_done_callback(functools.partial(self._settle, attempt))
                attempt.waiters[waiter] = loop
            try:
                await self._wait(waiter)
            finally:
                self._leave(attempt, waiter)
            if not attempt.given_up:
                if attempt.error is not None:
                    raise _own(attempt.error)
                return

    async def _wait(self, waiter: asyncio.Future[None]) -> None:
        """Wait for an attempt's end; also for the end of its loop, which nobody tells of."""
        while not waiter.done():
            await asyncio.wait((waiter,), timeout=LOOK_AGAIN_S)
            if not waiter.done():
                self._bury_dead()

    def _bury_dead(self) -> None:
        """Give up an attempt whose loop was closed or stopped under it, as by an interrupt."""
        with self._lock:
            attempt = self._attempt
            dead = attempt is not None and (attempt.loop.is_closed() or not attempt.loop.is_running())
        if dead and attempt is not None:
            _cancel(attempt)
            self._end(attempt, given_up=True)

    def _leave(self, attempt: _Attempt, waiter: asyncio.Future[None]) -> None:
        with self._lock:
            attempt.waiters.pop(waiter, None)
            unwanted = not attempt.waiters and not attempt.done
        if unwanted:
            _cancel(attempt)

    def _settle(self, attempt: _Attempt, task: asyncio.Task[None]) -> None:
        self._end(attempt, given_up=task.cancelled())

    def _end(self, attempt: _Attempt, *, given_up: bool) -> None:
        with self._lock:
            if attempt.done:
                return
            attempt.done = True
            attempt.given_up = given_up
            if self._attempt is attempt:
                self._attempt = None
            waiters = list(attempt.waiters.items())
        for waiter, loop in waiters:
            try:
                loop.call_soon_threadsafe(_wake, waiter)
            except RuntimeError:  # that loop was closed while it waited
                continue

    async def cancel(self) -> None:
        """Cancel the work that goes on, if any, and wait until it has ended; those who wait for it ask again."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        with self._lock:
            attempt = self._attempt
            if attempt is None:
                return
            attempt.waiters[waiter] = loop
        _cancel(attempt)
        try:
            await self._wait(waiter)
        finally:
            with self._lock:
                attempt.waiters.pop(waiter, None)


async def _do(attempt: _Attempt, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await make()
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        attempt.error = exc
    except BaseException as exc:  # noqa: BLE001  # raised where it is waited for; in a task it would end the loop
        attempt.error = exc


def _cancel(attempt: _Attempt) -> None:
    assert attempt.task is not None  # noqa: S101  # set under the lock that made the attempt
    try:
        attempt.loop.call_soon_threadsafe(attempt.task.cancel)
    except RuntimeError:  # its loop was closed, and the task with it
        return


def _own(error: BaseException) -> BaseException:
    """Return an error of the waiter's own: one object raised in several tasks would gather all their tracebacks."""
    try:
        mine = copy.copy(error)
    except Exception:  # noqa: BLE001  # a foreign exception class that can't be copied
        return error
    if type(mine) is not type(error):
        return error
    mine.__cause__ = error.__cause__
    return mine.with_traceback(error.__traceback__)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
