"""A door from plain code into the event loop: one loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from atlas_core._runtime.workers import CURRENT_CALL

__all__ = ["Portal"]

T = TypeVar("T")


class Portal:
    """Runs coroutines on one loop in one daemon thread, so that pooled connections live as long as their owner.

    `asyncio.run` for each call would close the loop between two of them, and can't be used where a loop runs
    already, as in a notebook.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine to its end and return its result; an interrupt cancels it and waits for it first."""
        if self.is_inside:
            raise RuntimeError("a sync door was used on the loop that it waits for; await the async one instead")
        future = asyncio.run_coroutine_threadsafe(make(), self._ensure())
        waits = CURRENT_CALL.get()
        if waits is not None:
            # Called in a tool's thread: a run that the tool started must not outlive its call.
            waits.when_set(future.cancel)
        try:
            return future.result()
        except (KeyboardInterrupt, SystemExit):
            future.cancel()
            done = threading.Event()
            future.add_done_callback(lambda _: done.set())
            done.wait(timeout=5.0)
            raise

    def _ensure(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="atlas-loop", daemon=True)
                self._thread.start()
            return self._loop

    def close(self, *, wait: bool = True) -> None:
        """End the loop and its thread, and wait for that; does nothing if there is none."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        if wait and thread is not threading.current_thread():
            thread.join(timeout=5.0)

    @property
    def is_inside(self) -> bool:
        """Whether the caller runs on the portal's own loop."""
        return threading.current_thread() is self._thread

    @property
    def is_open(self) -> bool:
        """Whether a loop runs."""
        return self._loop is not None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # A task raised it, and its caller gets it from there; asyncio lets it end the loop as well, which other
            # runs are on.
            continue
        return


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        _run(loop)
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=2.0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
