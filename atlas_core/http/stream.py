"""The events of an answer as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from atlas_core.errors import ProviderError, ProviderResponseError
from atlas_core.http._bare import bare
from atlas_core.http.alarm import Alarm
from atlas_core.http.body import BodyReader, NoEventsError
from atlas_core.http.exchange import FROM_WITHIN
from atlas_core.http.sse import EventTooLongError, TruncatedEventError
from atlas_core.http.texts import json_of

if TYPE_CHECKING:
    from atlas_core.http.exchange import Exchange, OpenReply
    from atlas_core.http.failures import Server
    from atlas_core.http.values import ServerEvent

__all__ = ["EventStream"]

# Servers that send events under another name are many; what these bodies are is told by how they begin.
_EVENT_KINDS = ("text/event-stream", "text/plain", "application/octet-stream", "application/x-ndjson")


class EventStream:
    """The events of one answer; made by `HttpClient.stream_sse`.

    Entering it sends the request. A server that answers with one JSON value instead of events, whatever it calls it,
    gives one event named "json" with that value, unless it is an error; lines of JSON give one event each.

    Attributes:
        status: The HTTP status, 0 before the stream is entered.
        headers: The answer's headers, names in lower case.
        request_id: The server's id of the request, where it gave one.
        streamed: Whether an event was handed over since the request was last sent.
    """

    def __init__(self, exchange: Exchange, may_restart: Callable[[], bool] | None = None) -> None:
        self._exchange = exchange
        self._may_restart = may_restart
        self._alarm: Alarm | None = None
        self._reply: OpenReply | None = None
        self._pieces: AsyncGenerator[bytes, None] | None = None
        self._parser: BodyReader | None = None
        self._ready: deque[ServerEvent] = deque()
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.request_id: str | None = None
        self.streamed = False

    async def __aenter__(self) -> Self:
        try:
            await self._begin(None)
        except FROM_WITHIN as exc:
            raise bare(exc) from exc.__cause__
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerEvent:
        try:
            while not self._ready:
                if self._pieces is None or self._parser is None:
                    raise StopAsyncIteration
                try:
                    found = self._parser.feed(await anext(self._pieces))
                except StopAsyncIteration:
                    await self._finish()
                except ProviderError as exc:
                    await self._again(exc)
                except TimeoutError:
                    raise self._exchange.late() from None
                except EventTooLongError:
                    raise self._too_long() from None
                except NoEventsError as exc:
                    await self._again(self._no_events(exc.body))
                else:
                    if len(found) == 1:
                        self.streamed = True
                        return found[0]
                    self._ready.extend(found)
        except FROM_WITHIN as exc:
            raise bare(exc) from exc.__cause__
        self.streamed = True
        return self._ready.popleft()

    async def _finish(self) -> None:
        """Take what the end of the body completes."""
        assert self._parser is not None  # noqa: S101  # it was fed
        self._pieces = None
        error: ProviderError | None = None
        found: list[ServerEvent] = []
        try:
            found = self._parser.end()
        except TruncatedEventError:
            error = self._truncated()
        except NoEventsError as exc:
            error = self._no_events(exc.body)
        if found and found[0].event == "json":
            error = self._server.payload_error(json_of(found[0].data), status=self.status, headers=self.headers)
        if error is not None:
            await self._again(error)
            return
        self._ready.extend(found)
        await self._end()

    async def restart(self, error: ProviderError) -> None:
        """Send the request again after a failure, if that is allowed; the iteration then goes on with the new answer.

        Failures of the connection come here by themselves. The reader of the stream calls it for an error that
        arrived as an event.

        Args:
            error: What ended the stream.
        Raises:
            ProviderError: `error`, if it is not retryable, something was handed over that can't be taken back, or
                there is no attempt or time left.
        """
        try:
            await self._again(error)
        except FROM_WITHIN as exc:
            raise bare(exc) from exc.__cause__

    async def _again(self, error: ProviderError) -> None:
        await self._end()
        if self.streamed and error.retryable and not (self._may_restart is not None and self._may_restart()):
            raise error
        await self._begin(error)

    async def _begin(self, error: ProviderError | None) -> None:
        self.streamed = False
        self._ready.clear()
        exchange = self._exchange
        async with exchange.in_time():
            while True:
                try:
                    if error is not None:
                        await exchange.attempts.after(error)
                    await self._open()
                except ProviderError as exc:
                    if exc is error:
                        raise
                    error = exc
                else:
                    return

    async def _open(self) -> None:
        self._reply = reply = await self._exchange.open()
        self.status, self.headers = reply.status, reply.headers
        self.request_id = self._server.request_id(reply.headers)
        try:
            kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
            is_json = kind == "application/json" or kind.endswith("+json")
            if kind and kind not in _EVENT_KINDS and not is_json:
                raise self._no_events(await reply.beginning(64 * 1024))
            setup = self._exchange.setup
            self._alarm = Alarm(self._exchange.deadline)
            self._pieces = reply.pieces(self._alarm, idle_s=setup.timeouts.idle_s)
            self._parser = BodyReader(setup.most_bytes, is_json=is_json)
        except BaseException:
            await self._end()
            raise

    async def _end(self) -> None:
        pieces, reply, alarm = self._pieces, self._reply, self._alarm
        self._pieces = self._reply = self._alarm = self._parser = None
        if alarm is not None:
            alarm.stop()
        try:
            if pieces is not None:
                await pieces.aclose()
        finally:
            if reply is not None:
                await reply.aclose()

    # Errors ----------------------------------------------------------------------------------------------------

    @property
    def _server(self) -> Server:
        return self._exchange.setup.target.server

    def _no_events(self, body: bytes) -> ProviderError:
        return self._server.unreadable("which is no event stream", status=self.status, headers=self.headers, body=body)

    def _too_long(self) -> ProviderError:
        assert self._reply is not None  # noqa: S101  # it was being read
        return self._reply.too_long("with an event")

    def _truncated(self) -> ProviderError:
        server = self._server
        return ProviderResponseError(
            f"interrupted stream: the answer of {server.name} ended inside of an event",
            owner=server.owner,
            retryable=True,
            status=self.status,
            request_id=self.request_id,
        )
