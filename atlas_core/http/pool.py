"""Free lists of connections, one for each event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlas_core.http._backend import Connection

__all__ = ["LoopPool", "Pools"]

_MOST_IDLE = 256
_STOP_WAIT_S = 5.0
_closing: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks weakly


class LoopPool:
    """The connections of one event loop; used from that loop only.

    Args:
        make: Makes a connection.
        keep_s: How long an idle one is kept.
    """

    def __init__(self, make: Callable[[], Connection], keep_s: float) -> None:
        self._make = make
        self._keep_s = keep_s
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._guard: AsyncGenerator[None, None] | None = None
        self.closed = False

    async def open(self) -> None:
        """Have the connections closed at the end of the loop: `asyncio.run` closes asynchronous generators then."""
        self._guard = self._until_the_loop_ends()
        await anext(self._guard)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self._close_all()

    def take(self, *, fresh: bool = False) -> Connection:
        """Return the connection that was used last, or a new one."""
        if self._idle and not fresh:
            connection = self._idle.pop()
            if time.monotonic() - connection.idle_since > self._keep_s:
                # All others are older still.
                self._idle.append(connection)
                connection = self._make()
        else:
            connection = self._make()
        self._busy.add(connection)
        return connection

    async def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end, and close one that idled too long."""
        self._busy.discard(connection)
        if self.closed:
            await _close(connection)
            return
        connection.idle_since = now = time.monotonic()
        self._idle.append(connection)
        if len(self._idle) > _MOST_IDLE or now - self._idle[0].idle_since > self._keep_s:
            await _close(self._idle.popleft())

    async def discard(self, connection: Connection) -> None:
        """Close a connection that failed or was given up."""
        self._busy.discard(connection)
        await _close(connection)

    async def aclose(self) -> None:
        """Close all; what is under way fails."""
        if self._guard is not None:
            await self._guard.aclose()

    def abandon(self) -> None:
        """Close all, from a plain callback of the loop."""
        task = asyncio.ensure_future(self.aclose())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    async def _close_all(self) -> None:
        self.closed = True
        for connection in (*self._idle, *self._busy):
            await _close(connection)
        self._idle.clear()

    @property
    def idle(self) -> int:
        """How many connections wait to be used."""
        return len(self._idle)


async def _close(connection: Connection) -> None:
    with contextlib.suppress(Exception):  # whatever a broken connection says, it is gone
        await connection.aclose()


class Pools:
    """The free lists of a client: a connection works only in the event loop that opened it.

    Args:
        make: Makes a connection.
        keep_s: How long an idle one is kept.
    """

    def __init__(self, make: Callable[[], Connection], keep_s: float) -> None:
        self._make = make
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, LoopPool] = {}

    async def here(self) -> LoopPool:
        """Return the list of the running loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.closed:
            pool = LoopPool(self._make, self._keep_s)
            with self._lock:
                for ended in [known for known in self._pools if known.is_closed()]:
                    del self._pools[ended]
                self._pools[loop] = pool
            await pool.open()
        return pool

    async def aclose(self) -> None:
        """Close all connections, each in its own loop; of a loop that stands still, when that ends."""
        here = asyncio.get_running_loop()
        with self._lock:
            pools, self._pools = self._pools, {}
        for loop, pool in pools.items():
            if loop is here:
                await pool.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(pool.aclose(), loop)
                await asyncio.wait({asyncio.wrap_future(closing)}, timeout=_STOP_WAIT_S)
            else:
                self._pools[loop] = pool  # its guard must live on

    def abandon(self) -> None:
        """Have all connections closed soon; for a client that was forgotten without a stop."""
        for loop, pool in self._pools.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed, and with it the connections
                loop.call_soon_threadsafe(pool.abandon)

    @property
    def idle(self) -> int:
        """How many connections wait to be used, over all loops."""
        return sum(pool.idle for pool in tuple(self._pools.values()))
