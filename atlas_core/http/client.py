"""The client that providers talk to a server with."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from atlas_core.errors import ProviderError, ServiceNotReadyError
from atlas_core.http._bare import bare
from atlas_core.http.exchange import FROM_WITHIN, Exchange, Setup
from atlas_core.http.pool import Pools
from atlas_core.http.response import Response
from atlas_core.http.stream import EventStream
from atlas_core.http.target import Call, Target
from atlas_core.http.values import RetryPolicy, Timeouts
from atlas_core.interfaces.service import BaseService

if TYPE_CHECKING:
    from atlas_core.http.secret import Secret
    from atlas_core.owner import Owner

__all__ = ["Body", "HttpClient"]

Body: TypeAlias = bytes | Iterable[bytes]
"""A request's body, encoded: as a whole, or in pieces that are joined (so each message can be encoded once)."""


class HttpClient(BaseService):
    """Sends requests to one server and turns whatever goes wrong into a `ProviderError`.

    It keeps a free list of connections for each event loop that uses it, so it may be used from several loops, one
    after another or in several threads. `stop` closes them all. Nothing is opened before the first request.

    Args:
        base_url: Where paths begin, such as `https://api.example.com/v1`. A query is sent with every request; a
            login becomes basic authorization. As `Secret` (a gateway's, with a token in its path), errors show its
            host alone.
        headers: Sent with every request; a key as `Secret`. All values but those of well-known harmless names are
            kept out of errors.
        proxy: The proxy's address; None for what the environment says (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY,
            NO_PROXY), "" for none.
        timeouts: How long each wait may take.
        retry: When to try again.
        owner: Who owns the connection, for errors.
        max_response_bytes: The longest body, and the longest event of a stream, after decoding.
        keep_alive_s: How long an unused connection is kept, in seconds.
    Raises:
        SettingsError: `base_url` or `proxy` is no address, or a header can't be sent.

    Example:
        >>> from atlas_core.http import HttpClient, Secret
        >>> HttpClient("https://api.example.com/v1?key=1", headers={"authorization": Secret("Bearer sk-1")})
        HttpClient('https://api.example.com/v1')
    """

    def __init__(
        self,
        base_url: str | Secret,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        proxy: str | Secret | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        owner: str | Owner | None = None,
        max_response_bytes: int = 64 * 1024 * 1024,
        keep_alive_s: float = 60.0,
    ) -> None:
        if max_response_bytes < 1:
            raise ValueError(f"max_response_bytes is {max_response_bytes!r}, expected at least 1")
        self._target = Target(base_url, headers or {}, proxy, str(owner) if owner is not None else None)
        self._setup = Setup(
            target=self._target,
            pools=Pools(self._target.connect, keep_alive_s),
            timeouts=timeouts or Timeouts(),
            retry=retry or RetryPolicy(),
            most_bytes=max_response_bytes,
            check_open=self._check_open,
        )
        weakref.finalize(self, self._setup.pools.abandon).atexit = False

    def __repr__(self) -> str:
        # It may be half-made: a debugger or report shows the client whose address was refused.
        target = getattr(self, "_target", None)
        return f"HttpClient({target.shown!r})" if target is not None else "HttpClient(not made)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an HttpClient holds connections and keys, and is not pickled; make one where it is used")

    async def _start(self) -> None:
        self._target.prepare()

    async def _stop(self) -> None:
        await self._setup.pools.aclose()

    async def stop(self) -> None:
        """Close all connections; requests under way fail with `ServiceNotReadyError`."""
        # Requests need no `start`, so a client that was never started may hold connections too.
        if self._state == "new":
            self._state = "ready"
        await super().stop()

    def _check_open(self) -> None:
        if self._state == "stopped":
            raise ServiceNotReadyError(f"{self!r} was stopped", remedy="make a new one")

    async def post_json(
        self,
        path: str,
        body: Body,
        *,
        deadline: float | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        check: Callable[[Response], object] | None = None,
    ) -> Response:
        """Send JSON and return the whole answer.

        Args:
            path: Below `base_url`, such as `chat/completions`; may have a query.
            body: The encoded JSON.
            deadline: When the answer must be there, on the clock of `time.monotonic()`; retries included.
            params: Added to the query.
            headers: Added to the client's, or in place of those of the same name. Keys belong to the client's: only
                those are looked for in what a server repeats.
            check: Called with each answer. A `ProviderError` that it raises is treated like a failure of the
                server: tried again if it is retryable.
        Raises:
            ProviderAuthError: The server answered 401 or 403.
            ProviderRateLimitError: It asks for a pause (429), for longer than there is time or too often.
            ProviderTimeoutError: The deadline or a time-out passed, or the server answered 408, 504 or 524.
            ProviderResponseError: The body is too long or can't be decoded, or the connection broke within it.
            ProviderError: Any other status outside of 200 to 299; no connection.
            ServiceNotReadyError: The client was stopped, or the extra `http` is not installed.
        """
        call = Call(method="POST", path=path, body=_joined(body), params=params, headers=headers)
        try:
            return await self._whole(Exchange(self._setup, call, deadline), check)
        except FROM_WITHIN as exc:
            raise bare(exc) from exc.__cause__

    async def get_json(
        self,
        path: str,
        *,
        deadline: float | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        check: Callable[[Response], object] | None = None,
    ) -> Response:
        """Ask for JSON and return the whole answer; arguments and errors are those of `post_json`."""
        call = Call(method="GET", path=path, params=params, headers=headers)
        try:
            return await self._whole(Exchange(self._setup, call, deadline), check)
        except FROM_WITHIN as exc:
            raise bare(exc) from exc.__cause__

    def stream_sse(
        self,
        path: str,
        body: Body,
        *,
        deadline: float | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        may_restart: Callable[[], bool] | None = None,
    ) -> EventStream:
        """Send JSON and return the answer's events as they come.

        Args:
            path: As for `post_json`, like `body`, `params` and `headers`.
            body: The encoded JSON, with what makes the server stream.
            deadline: When the last event must be there, on the clock of `time.monotonic()`.
            params: Added to the query.
            headers: Added to the client's.
            may_restart: Called when the stream fails after events were handed over. It returns True after it
                dropped what was built from them, and the request is sent again; False if something of it was shown
                or acted on. Left out, a stream is tried again only as long as no event was handed over.
        Returns:
            To be used with `async with`, and within it `async for`. Both raise what `post_json` raises.
        """
        call = Call(
            method="POST", path=path, body=_joined(body), params=params, headers=headers, accept="text/event-stream"
        )
        return EventStream(Exchange(self._setup, call, deadline), may_restart)

    def error_in(self, payload: object, response: Response | EventStream | None = None) -> ProviderError | None:
        """Return the error that a server put into a good answer or a stream, or None if there is none.

        Args:
            payload: The decoded JSON value of the body or of an event's data.
            response: Where it came in; gives status and request id.
        """
        if response is None:
            return self._target.server.payload_error(payload)
        return self._target.server.payload_error(payload, status=response.status, headers=response.headers)

    def redacted(self, text: str) -> str:
        """Return a text that a server wrote without the client's keys, and without what has the form of one.

        For errors that quote what came; those of `error_in` and of the client itself are redacted already.

        Args:
            text: Any text. Cut it after, not before: half a key is not found.
        """
        return self._target.server.redact(text)

    async def _whole(self, exchange: Exchange, check: Callable[[Response], object] | None) -> Response:
        async with exchange.in_time():
            while True:
                try:
                    response = await self._answer(exchange)
                    if check is not None:
                        check(response)
                except ProviderError as exc:
                    error = exc
                else:
                    return response
                await exchange.attempts.after(error)

    async def _answer(self, exchange: Exchange) -> Response:
        reply = await exchange.open()
        try:
            body = await reply.read()
        finally:
            await reply.aclose()
        return Response(
            status=reply.status,
            headers=reply.headers,
            body=body,
            request_id=self._target.server.request_id(reply.headers),
            server=self._target.server,
        )


def _joined(body: Body) -> bytes:
    return body if isinstance(body, bytes) else b"".join(body)
