"""One request and what comes back, with its attempts and its deadline."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from atlas_core.errors import AtlasError, ProviderError, ProviderTimeoutError
from atlas_core.http import _backend
from atlas_core.http._bare import bare
from atlas_core.http.failures import Fault
from atlas_core.http.retry import Attempts
from atlas_core.http.retry_after import demanded_wait

if TYPE_CHECKING:
    from atlas_core.http.alarm import Alarm
    from atlas_core.http.pool import LoopPool, Pools
    from atlas_core.http.target import Call, Target
    from atlas_core.http.values import RetryPolicy, Timeouts

__all__ = ["FROM_WITHIN", "Exchange", "OpenReply", "Setup"]

FROM_WITHIN = (AtlasError, asyncio.CancelledError)
"""What leaves the package without its frames, whose variables hold addresses, headers and bodies. A report that
shows variables would show keys; the error's own text says what happened."""

_ERROR_BODY_BYTES = 256 * 1024
"""How much of an error's body is read: what a page says stands at its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the requests of a client share."""

    target: Target
    pools: Pools
    timeouts: Timeouts
    retry: RetryPolicy
    most_bytes: int
    check_open: Callable[[], None]


class Exchange:
    """One request.

    Args:
        setup: The client's parts.
        call: What is asked.
        deadline: When it must be done, on the clock of `time.monotonic()`, or None.
    """

    def __init__(self, setup: Setup, call: Call, deadline: float | None) -> None:
        self.setup = setup
        self.call = call
        self.deadline = deadline
        self.attempts = Attempts(setup.retry, deadline)
        self._began = time.monotonic()

    @contextlib.asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Bound what is done within.

        Raises:
            ProviderTimeoutError: The deadline passed.
        """
        if self.deadline is None:
            yield
            return
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.late()
        try:
            async with asyncio.timeout(left) as timer:
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            raise self.late() from None

    def late(self) -> ProviderTimeoutError:
        """Return the error for a deadline that passed."""
        server = self.setup.target.server
        given = (self.deadline or 0) - self._began
        text = f"{server.name} was not asked: the deadline had passed"
        if given > 0:
            text = f"the answer of {server.name} was not complete within the {given:.1f} s that were left for it"
        return ProviderTimeoutError(text, owner=server.owner)

    async def open(self) -> OpenReply:
        """Send the request and return its answer once the headers are there: one attempt.

        Raises:
            ProviderError: There is no answer, or its status is none of 200 to 299.
        """
        self.setup.check_open()
        self.setup.target.prepare()
        reply = await self._send(await self.setup.pools.here())
        if 200 <= reply.status < 300:
            return reply
        try:
            self.attempts.demanded_s = demanded_wait(reply.headers)
            body = await reply.beginning(_ERROR_BODY_BYTES)
        finally:
            await reply.aclose()
        raise self.setup.target.server.status_error(reply.status, reply.headers, body)

    async def _send(self, pool: LoopPool) -> OpenReply:
        target, call, timeouts = self.setup.target, self.call, self.setup.timeouts
        url, headers = target.url(call), target.headers(call)
        fresh = False
        while True:
            connection = pool.take(fresh=fresh)
            reused = connection.used
            try:
                reply = await connection.send(call.method, url, headers, call.body, timeouts)
                return OpenReply(self.setup, pool, connection, reply)
            except Exception as exc:  # noqa: BLE001  # foreign code: httpx, and what it lets through of others
                failed = exc
            except BaseException:
                await pool.discard(connection)
                raise
            await pool.discard(connection)
            self.setup.check_open()
            if not (reused and _backend.fault_of(failed) is Fault.BROKEN):
                _raise_fault(self.setup, failed)
            # The server may close a kept connection at the moment when it is used. That says nothing about the
            # server, so it counts as no attempt.
            fresh = True


class OpenReply:
    """An answer that is being read.

    Attributes:
        status: The HTTP status.
        headers: Names in lower case; repeated ones joined by ", ".
    """

    def __init__(self, setup: Setup, pool: LoopPool, connection: _backend.Connection, reply: _backend.Reply) -> None:
        self._setup = setup
        self._pool = pool
        self._connection: _backend.Connection | None = connection
        self._reply = reply
        self._complete = False
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            ProviderError: It is too long, can't be decoded, or the connection broke.
        """
        found: list[bytes] = []
        size, most = 0, self._setup.most_bytes
        async with contextlib.aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                found.append(piece)
                size += len(piece)
                if size > most:
                    raise self.too_long()
        return found[0] if len(found) == 1 else b"".join(found)

    def too_long(self, what: str = "an answer") -> ProviderError:
        """Return the error for a body or event that is longer than allowed."""
        return self._setup.target.server.unreadable(
            f"{what} of more than {self._setup.most_bytes:,} bytes", status=self.status, headers=self.headers
        )

    async def beginning(self, most: int) -> bytes:
        """Return the body's beginning, or what came of it; never raises a `ProviderError`."""
        found = bytearray()
        with contextlib.suppress(ProviderError):
            async with contextlib.aclosing(self.pieces()) as pieces:
                async for piece in pieces:
                    found += piece
                    if len(found) > most:
                        break
        return bytes(found[:most])

    async def pieces(self, alarm: Alarm | None = None, *, idle_s: float | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the decoded body.

        Args:
            alarm: Ends a wait when the deadline passes, with a `TimeoutError`.
            idle_s: The longest wait for each piece; left out, the read time-out.
        Raises:
            ProviderError: It can't be decoded, or the connection broke or stalled.
            TimeoutError: The alarm rang.
        """
        unknown = self._reply.unknown_encoding
        if unknown:
            server = self._setup.target.server
            raise server.fault_error(Fault.ENCODING, f"content-encoding {unknown!r}", headers=self.headers)
        body = self._reply.pieces(idle_s=idle_s)
        waits = alarm if alarm is not None else contextlib.nullcontext()
        while True:
            try:
                with waits:
                    piece = await anext(body)
            except StopAsyncIteration:
                self._complete = True
                return
            except TimeoutError:
                raise
            except Exception as exc:  # noqa: BLE001  # as in `_send`
                failed = exc
                break
            yield piece
        self._setup.check_open()
        _raise_fault(self._setup, failed, idle_s=idle_s, headers=self.headers)

    async def aclose(self) -> None:
        """End the answer; its connection is kept if the body was read to its end."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            with contextlib.suppress(Exception):  # whatever a broken connection says, it is gone
                await self._reply.aclose()
        finally:
            if self._complete:
                await self._pool.give_back(connection)
            else:
                await self._pool.discard(connection)


def _raise_fault(
    setup: Setup, exc: Exception, *, idle_s: float | None = None, headers: Mapping[str, str] | None = None
) -> NoReturn:
    """Raise the error that an exception of the transport stands for."""
    server, timeouts = setup.target.server, setup.timeouts
    fault = _backend.fault_of(exc)
    seconds = {
        Fault.CONNECT_TIMEOUT: timeouts.connect_s,
        Fault.READ_TIMEOUT: timeouts.read_s if idle_s is None else idle_s,
        Fault.WRITE_TIMEOUT: timeouts.write_s,
    }.get(fault)
    words = str(exc) or type(exc).__name__
    error = server.fault_error(fault, words, seconds=seconds, headers=headers)
    if any(server.redact(shown) != shown for shown in _shown(exc)):
        raise error
    raise error from bare(exc)


def _shown(exc: BaseException | None) -> Iterator[str]:
    """Yield what reports show of an exception and of what caused it."""
    while exc is not None:
        yield f"{exc!r} {exc.args!r} {vars(exc)!r}"
        exc = exc.__cause__
