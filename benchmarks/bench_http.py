"""What a request through `atlas_core.http` costs, against a hand-written loop over one shared `httpx.AsyncClient`.

The server runs in another process; what is compared is this process' CPU time, in turns within one run.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

import httpx
from _report import Goal, ms, report

from atlas_core.http import HttpClient, Secret

REQUESTS = 300
WORKERS, EACH = 200, 10
EVENTS = 2000
ROUNDS = 5
KEY = "sk-0123456789"
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "What is the square root of 144? " * 4}] * 8}
).encode()
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "12 " * 40}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 40},
    }
).encode()
DELTA = json.dumps({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": "token"}}]}).encode()


# The server -----------------------------------------------------------------------------------------------------


class _Answering(asyncio.Protocol):
    """Answers every request at once; one whose path ends in `stream` with a burst of events, a chunk each."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            start = head.index(b"content-length:") + 15
            length = int(head[start:].split(b"\r\n", 1)[0])
            if len(self._data) < end + 4 + length:
                return
            self._data = self._data[end + 4 + length :]
            self._transport.write(_STREAM if head.split(b" ", 2)[1].endswith(b"stream") else _PLAIN)


_PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
_EVENT = b"data: %b\n\n" % DELTA
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT) * EVENTS
    + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
)


def _serve(out: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=WORKERS)
        out.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


# Both sides -----------------------------------------------------------------------------------------------------

Ask = Callable[[], Awaitable[object]]


def _ours(client: HttpClient) -> Ask:
    async def ask() -> object:
        return (await client.post_json("chat/completions", BODY, deadline=time.monotonic() + 60)).json()

    return ask


def _theirs(client: httpx.AsyncClient, url: str) -> Ask:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}

    async def ask() -> object:
        response = await client.post(f"{url}/chat/completions", content=BODY, headers=headers)
        response.raise_for_status()
        return response.json()

    return ask


async def _our_stream(client: HttpClient) -> int:
    count = 0
    async with client.stream_sse("stream", BODY, deadline=time.monotonic() + 60) as events:
        async for event in events:
            if event.data != "[DONE]":
                json.loads(event.data)
                count += 1
    return count


async def _their_stream(client: httpx.AsyncClient, url: str) -> int:
    count, rest = 0, b""
    async with client.stream("POST", f"{url}/stream", content=BODY) as response:
        async for piece in response.aiter_raw():
            *blocks, rest = (rest + piece).split(b"\n\n")
            for block in blocks:
                for line in block.split(b"\n"):
                    if line.startswith(b"data: ") and line != b"data: [DONE]":
                        json.loads(line[6:])
                        count += 1
    return count


async def _sequential(ask: Ask) -> None:
    for _ in range(REQUESTS):
        await ask()


async def _concurrent(ask: Ask) -> None:
    async def worker() -> None:
        for _ in range(EACH):
            await ask()

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(worker())


async def _cpu(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    began = time.process_time()
    await work()
    return time.process_time() - began


async def _measure(url: str) -> list[Goal]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with (
        HttpClient(url, headers={"authorization": Secret(f"Bearer {KEY}")}, proxy="") as ours,
        httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as theirs,
    ):
        one, other = _ours(ours), _theirs(theirs, url)
        if await _our_stream(ours) != EVENTS or await _their_stream(theirs, url) != EVENTS:
            raise AssertionError("an event is missing")
        pairs: list[tuple[str, float, int, Ask, Ask]] = [
            (
                f"CPU of a request, {REQUESTS} one after another",
                1.1,  # no dearer than by hand, but for what two runs differ by
                REQUESTS,
                lambda: _sequential(one),
                lambda: _sequential(other),
            ),
            (
                f"CPU of a request, {WORKERS} at a time, {EACH} each",
                0.4,
                WORKERS * EACH,
                lambda: _concurrent(one),
                lambda: _concurrent(other),
            ),
            (
                f"CPU of a stream of {EVENTS:,} events",
                1.25,
                1,
                lambda: _our_stream(ours),
                lambda: _their_stream(theirs, url),
            ),
        ]
        goals = []
        for what, most, count, mine, hand in pairs:
            await mine()
            await hand()
            taken = [(await _cpu(mine), await _cpu(hand)) for _ in range(ROUNDS)]
            a, b = (statistics.median(side) / count for side in zip(*taken, strict=True))
            goals.append(Goal(what=what, ratio=a / b, at_most=most, detail=f"{ms(a)} / {ms(b)}"))
        return goals


def main() -> int:
    """Start the server, measure and report."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(there,), daemon=True)
    server.start()
    try:
        if not here.poll(30):
            raise TimeoutError("the server did not start")
        return report(asyncio.run(_measure(f"http://127.0.0.1:{here.recv()}")))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    sys.exit(main())
