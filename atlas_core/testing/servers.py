"""Real servers on the loopback interface that answer by script and misbehave on purpose.

    from atlas_core.testing import LoopbackServer, ServerReply

    busy = ServerReply.of_json({"error": "busy"}, status=503)
    with LoopbackServer([busy, ServerReply.of_json({"ok": True})]) as server:
        ...                                  # talk to server.url
    assert [r.path for r in server.requests] == ["/v1/chat", "/v1/chat"]

Each runs in a thread with an event loop of its own, so that plain tests, asynchronous tests and other processes can
talk to it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import enum
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import responses
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

__all__ = ["LoopbackProxy", "LoopbackServer", "Pause", "ReceivedRequest", "ServerReply", "Step", "Then"]


@dataclass(frozen=True, slots=True)
class Pause:
    """The server sends nothing for so long."""

    seconds: float


class Then(enum.Enum):
    """How a reply ends before its time."""

    CUT = "cut"
    """The connection is reset."""
    CLOSE = "close"
    """The server closes the connection as if all had been sent."""
    STALL = "stall"
    """The server sends nothing more and keeps the connection open until the client leaves."""


Step: TypeAlias = bytes | Pause | Then
"""What a server does next: bytes are one write of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """What a client sent.

    Attributes:
        method: As sent.
        target: The request line's middle: path and query, or a whole address if the server is asked as a proxy.
        headers: Names in lower case; of repeated ones the last.
        body: The whole body.
        connection: The number of the connection that it came through, from 1.
        at: When it was complete, on the clock of `time.monotonic()`.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    at: float

    @property
    def path(self) -> str:
        """The path without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        """The query's values by name."""
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    def json(self) -> Any:
        """Return the body's JSON value."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReply:
    """What a server sends, and how.

    Attributes:
        status: The HTTP status.
        headers: Sent besides those of the framing, which they replace if they have the same name.
        steps: The body: pieces, pauses, and how it breaks off.
        chunked: Each piece is a chunk; False for a `content-length` over all pieces, sent or not.
        wire: Sent as it is in place of status line, headers and framing; the steps follow it bare.
    """

    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    steps: Sequence[Step] = ()
    chunked: bool = False
    wire: bytes | None = None

    @classmethod
    def of_json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> ServerReply:
        """Return a reply with a JSON value."""
        return cls.of_bytes(json.dumps(value).encode(), "application/json", status=status, headers=headers)

    @classmethod
    def of_bytes(
        cls, body: bytes, content_type: str = "", *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ServerReply:
        """Return a reply with a body of any kind; without a content type, none is sent."""
        kind = (("content-type", content_type),) if content_type else ()
        return cls(status=status, headers=(*kind, *(headers or {}).items()), steps=(body,) if body else ())

    @classmethod
    def of_events(
        cls,
        *events: object,
        headers: Mapping[str, str] | None = None,
        done: bool = True,
        newline: str = "\n",
        between: Sequence[Step] = (),
    ) -> ServerReply:
        """Return a reply with a stream of server-sent events, each a chunk.

        Args:
            *events: Text is sent as it is with a blank line after it; `Step`s are taken as they are; any other
                value becomes the JSON of one `data:` line.
            headers: Sent too.
            done: Send `data: [DONE]` at the end.
            newline: Ends each line.
            between: Done after each event.
        """
        steps: list[Step] = []
        for event in (*events, *(("data: [DONE]",) if done else ())):
            if isinstance(event, bytes | Pause | Then):
                steps.append(event)
                continue
            text = event if isinstance(event, str) else f"data: {json.dumps(event, ensure_ascii=False)}"
            lines = text.split("\n")  # `splitlines` would cut at U+2028, which is a part of the text
            steps += [f"{newline.join(lines)}{newline * 2}".encode(), *between]
        kind = ("content-type", "text/event-stream")
        return cls(headers=(kind, *(headers or {}).items()), steps=tuple(steps), chunked=True)

    def cut_into(self, size: int) -> ServerReply:
        """Return the same reply with its bytes in pieces of `size`, wherever that cuts them."""
        whole = b"".join(step for step in self.steps if isinstance(step, bytes))
        return replace(self, steps=tuple(whole[i : i + size] for i in range(0, len(whole), size)))

    def head(self) -> bytes:
        """Return status line and headers."""
        if self.wire is not None:
            return self.wire
        own = {name.lower() for name, _ in self.headers}
        length = sum(len(step) for step in self.steps if isinstance(step, bytes))
        framing = ("transfer-encoding", "chunked") if self.chunked else ("content-length", str(length))
        lines = [f"{name}: {value}" for name, value in self.headers]
        lines += [f"{framing[0]}: {framing[1]}"] if framing[0] not in own and self.status >= 200 else []
        return "\r\n".join([f"HTTP/1.1 {self.status} {responses.get(self.status, 'Unknown')}", *lines, "", ""]).encode(
            "latin-1"
        )


_Turn: TypeAlias = ServerReply | Callable[[ReceivedRequest], ServerReply]

_ENDED = ServerReply.of_json(
    {"error": {"message": "the loopback server's script has ended"}}, status=500, headers={"x-should-retry": "false"}
)


class _ThreadedServer:
    """A listener in a thread with a loop of its own."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Listen; the port is free from then on."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback-server", daemon=True)
        self._thread.start()
        self._call(self._listen())
        return self

    def stop(self) -> None:
        """Close all connections, and the thread; does nothing if it is not running."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._call(self._unlisten())
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _unlisten(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=5)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the client left, or the server stops
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class LoopbackServer(_ThreadedServer):
    """An HTTP/1.1 server that gives each request the next reply of a script, and keeps the request.

    Args:
        script: Replies, or functions from the request to one; in order of arrival over all connections.
        always: The reply when the script has ended; left out, that is an error 500 which is not to be retried.
        tls: Speak TLS with this context.

    Attributes:
        requests: What came, in order.
        connections: How many connections were opened.
        port: The port; 0 before the start. A server that is stopped and started again keeps it.
    """

    def __init__(
        self, script: Iterable[_Turn] = (), *, always: _Turn | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(tls)
        self._script = list(script)
        self._always = always if always is not None else _ENDED
        self.requests: list[ReceivedRequest] = []

    def then(self, *turns: _Turn) -> None:
        """Add to the script."""
        self._script.extend(turns)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            request = await _receive(reader, number)
            self.requests.append(request)
            turn = self._script.pop(0) if self._script else self._always
            reply = turn(request) if callable(turn) else turn
            if not await _send(reply, reader, writer):
                return


async def _receive(reader: asyncio.StreamReader, number: int) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(
        method=method, target=target, headers=headers, body=body, connection=number, at=time.monotonic()
    )


async def _send(reply: ServerReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a reply and tell whether the connection stays open."""
    writer.write(reply.head())
    for step in reply.steps:
        if isinstance(step, Pause):
            await writer.drain()
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Then):
            await writer.drain()
            if step is Then.STALL:
                await reader.read()  # until the client leaves
            elif step is Then.CUT:
                writer.transport.abort()
            return False
        elif step:
            chunk = b"%x\r\n%b\r\n" % (len(step), step) if reply.chunked and reply.wire is None else step
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0)
    if reply.chunked and reply.wire is None:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    closing = any(name.lower() == "connection" and value.lower() == "close" for name, value in reply.headers)
    return not closing and reply.wire is None


class LoopbackProxy(_ThreadedServer):
    """A proxy that forwards plain requests and opens tunnels for others.

    Args:
        login: `user:password` that it demands, or "" for none.
        tls: Speak TLS with this context.

    Attributes:
        asked: The request lines that it got, such as "CONNECT 127.0.0.1:443".
        connections: How many connections were opened.
    """

    def __init__(self, *, login: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self._login = login
        self.asked: list[str] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, target, _ = head.split("\r\n", 1)[0].split(" ", 2)
        self.asked.append(f"{method} {target}")
        if self._login and not self._knows(head):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        there, back = await asyncio.open_connection(parts.hostname, parts.port or 80)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
                back.write(head.replace(target, path, 1).encode("latin-1"))
            await asyncio.wait(
                [asyncio.ensure_future(_pump(reader, back)), asyncio.ensure_future(_pump(there, writer))]
            )
        finally:
            back.close()

    def _knows(self, head: str) -> bool:
        expected = base64.b64encode(self._login.encode()).decode()
        lines = (line.partition(":") for line in head.split("\r\n"))
        return any(
            name.lower() == "proxy-authorization" and value.strip() == f"Basic {expected}" for name, _, value in lines
        )


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, NotImplementedError):
        if writer.can_write_eof():
            writer.write_eof()
