"""The life cycle that agents, executors, providers and servers share."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import TYPE_CHECKING, Self

from atlas_core.errors import AtlasError, ServiceNotReadyError
from atlas_core.interfaces.flight import Flight

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["BaseService"]

_MAKING = threading.Lock()


class BaseService:
    """Something that starts, is ready, and stops.

    `start` and `stop` may be called any number of times and from several tasks at once. A subclass overrides
    `_start` and `_stop`, which run once each. A stopped service can't be started again.
    """

    _state: str = "new"
    _failure: BaseException | None = None
    _flight: Flight | None = None

    @property
    def is_ready(self) -> bool:
        """Whether `start` has finished and `stop` was not called."""
        return self._state == "ready"

    async def start(self) -> None:
        """Make the service ready; does nothing if it is.

        Raises:
            ServiceNotReadyError: It was stopped, or an earlier start failed.
        """
        if self._state == "ready":
            return
        self._refuse_if_ended()
        await self._start_flight().run(self._start_once)

    def _start_flight(self) -> Flight:
        # Made here, since subclasses need not call an `__init__` of ours.
        with _MAKING:
            if self._flight is None:
                self._flight = Flight()
            return self._flight

    async def _start_once(self) -> None:
        if self._state == "ready":
            return
        self._refuse_if_ended()
        self._state = "starting"
        task = asyncio.current_task()
        try:
            await self._start()
        except asyncio.CancelledError as exc:
            if task is None or not task.cancelling():
                self._fail(exc)
                self._refuse_if_ended()
            self._state = "new" if self._state == "starting" else self._state
            raise
        except BaseException as exc:
            self._fail(exc)
            raise
        if self._state == "starting":
            self._state = "ready"
        self._refuse_if_ended()  # it was stopped meanwhile, and its start would not be cancelled

    def _fail(self, exc: BaseException) -> None:
        self._state = "failed" if self._state == "starting" else self._state
        self._failure = exc

    def _refuse_if_ended(self) -> None:
        if self._state == "stopped":
            raise ServiceNotReadyError(f"{type(self).__name__} was stopped", remedy="make a new one")
        if self._state == "failed":
            if isinstance(self._failure, AtlasError):
                raise copy.copy(self._failure)  # each with a traceback of its own
            raise ServiceNotReadyError(
                f"{type(self).__name__} did not start: {self._failure!r}", remedy="make a new one"
            ) from self._failure

    async def wait_ready(self, timeout_s: float | None = None) -> None:
        """Start if needed and wait until ready.

        Raises:
            TimeoutError: It was not ready within `timeout_s` seconds.
            ServiceNotReadyError: It was stopped, or its start failed.
        """
        async with asyncio.timeout(timeout_s):
            await self.start()

    async def stop(self) -> None:
        """End the service and free what it holds; does nothing if it has ended."""
        if self._state == "stopped":
            return
        before, self._state = self._state, "stopped"
        if before == "starting":
            await self._start_flight().cancel()
        if before != "new":
            await self._stop()

    async def _start(self) -> None:
        """Acquire what the service needs; override."""

    async def _stop(self) -> None:
        """Free it; override. Runs also after a failed start."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
