"""One timer for the many waits of a stream."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

__all__ = ["Alarm"]


class Alarm:
    """Ends the wait that is under way when a deadline passes, with a `TimeoutError`.

    `asyncio.timeout` would also end what the reader of a stream does between two pieces, or cost a timer for each.

    Args:
        deadline: On the clock of `time.monotonic()`; None for one that never rings.

    Example:
        >>> async def read(pieces, alarm):
        ...     with alarm:
        ...         return await anext(pieces)
    """

    __slots__ = ("_cancelling", "_handle", "_task", "rang")

    def __init__(self, deadline: float | None) -> None:
        self.rang = False
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._handle: asyncio.TimerHandle | None = None
        if deadline is not None:
            left = max(0.0, deadline - time.monotonic())
            self._handle = asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self.rang = True
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> None:
        if self.rang:
            raise TimeoutError
        self._task = task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self.rang or task is None:
            return
        # As in asyncio.timeout: if someone else cancelled the task too, that is what must go on.
        if task.uncancel() <= self._cancelling and isinstance(exc, asyncio.CancelledError):
            raise TimeoutError from None

    def stop(self) -> None:
        """Take the timer back."""
        if self._handle is not None:
            self._handle.cancel()
