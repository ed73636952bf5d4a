"""Blocking work off the event loop, in threads that keep nobody waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["in_thread"]

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T]) -> _T:
    """Run something that blocks in a thread of its own.

    Not the loop's own threads: whoever cancels must not wait for it, nor the interpreter at its end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if not done.done():
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(cast("_T", value))

    def run() -> None:
        value: _T | None = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as exc:  # noqa: BLE001  # raised again where it is awaited
            error = exc
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    thread = threading.Thread(target=run, name="atlas-llama-work", daemon=True)
    thread.start()
    try:
        return await done
    finally:
        if not done.cancelled():
            thread.join()  # it has nothing left to do
