"""What an agent on an OpenAI-compatible server costs, against a hand-written loop over httpx that sends the same.

The server runs in another process; what is compared is this process' CPU time, in turns within one run. The agent
checks arguments, permissions and deadlines and tells events; the hand-written loop does none of it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

import httpx
from _report import Goal, ms, report
from atlas_openai.options import OpenAIOptions
from atlas_openai.provider import OpenAILLM

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    ConnectionConfig,
    ParallelToolExecutor,
    TextDelta,
    ToolRegistry,
)

SHORT, LONG = 50, 200
AGENTS, STEPS = 200, 10
DELTAS = 2000
SYSTEM = "You are a helpful assistant. Use tools for math. " * 4
QUESTION = "Add one to the number until it is large enough."
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# The server -----------------------------------------------------------------------------------------------------


def _reply(head: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def _answer(message: dict[str, object], reason: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": reason}
    usage = {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
    value = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    return _reply(b"application/json", json.dumps(value).encode())


def _call(number: int) -> bytes:
    function = {"name": "add", "arguments": json.dumps({"a": number, "b": 1})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return _answer({"content": f"Step {number}: I add one. " * 3, "tool_calls": [call]}, "tool_calls")


def _chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    event = b"data: %b\n\n" % json.dumps(value).encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


_DONE = _answer({"content": "done"}, "stop")
_CALLS = [_call(number) for number in range(LONG)]
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + _chunk({"role": "assistant", "content": ""})
    + _chunk({"content": "token"}) * DELTAS
    + _chunk({}, "stop")
    + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
)
_TOOL = re.compile(rb'"role": ?"tool"')
_MODEL = re.compile(rb'"model": ?"m-(\d+)"')


class _Answering(asyncio.Protocol):
    """Asks for a call for as many steps as the model's name says; then it answers, in one piece or in a burst."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = int(re.search(rb"(?i)content-length: *(\d+)", self._data[:end])[1])  # type: ignore[index]  # ours
            if len(self._data) < end + 4 + length:
                return
            body, self._data = self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :]
            self._transport.write(self._next(body))

    def _next(self, body: bytes) -> bytes:
        made = len(_TOOL.findall(body))
        model = _MODEL.search(body)
        if model is None or made >= int(model[1]):
            return _STREAM if re.search(rb'"stream": ?true', body) else _DONE
        return _CALLS[made]


def _serve(out: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=AGENTS)
        out.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


# Ours -----------------------------------------------------------------------------------------------------------


def _agent(url: str, steps: int) -> AgentService:
    options = OpenAIOptions(base_url=url, proxy="")
    llm = OpenAILLM(ConnectionConfig(name="bench", model=f"m-{steps}", options=options))
    registry = ToolRegistry()
    registry.register(add)
    settings = AgentProfileSettings(name="bench", system_prompt=SYSTEM, tools=("add",), max_iterations=steps + 1)
    return AgentService(settings, llm, ParallelToolExecutor(registry))


async def _our_run(agent: AgentService) -> None:
    answer = await agent.run(QUESTION)
    if answer != "done":
        raise AssertionError(f"the run ended with {answer!r}")


async def _our_burst(agent: AgentService) -> None:
    pieces = [event.text async for event in agent.stream(QUESTION) if isinstance(event, TextDelta)]
    if len(pieces) != DELTAS:
        raise AssertionError(f"{len(pieces)} of {DELTAS} pieces came")


# By hand --------------------------------------------------------------------------------------------------------


def _start(steps: int) -> dict[str, Any]:
    function = {"name": "add", "description": "Add two numbers.", "parameters": PARAMETERS}
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    return {"model": f"m-{steps}", "messages": messages, "tools": [{"type": "function", "function": function}]}


async def _their_run(client: httpx.AsyncClient, url: str, steps: int) -> None:
    body = _start(steps)
    while True:
        response = await client.post(f"{url}/chat/completions", json=body)
        response.raise_for_status()
        message = response.json()["choices"][0]["message"]
        body["messages"].append(message)
        if not message.get("tool_calls"):
            break
        for call in message["tool_calls"]:
            result = await add(**json.loads(call["function"]["arguments"]))
            body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    if message["content"] != "done":
        raise AssertionError(f"the run ended with {message['content']!r}")


async def _their_burst(client: httpx.AsyncClient, url: str) -> None:
    pieces = []
    body = {**_start(0), "stream": True, "stream_options": {"include_usage": True}}
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    pieces.append(choices[0]["delta"]["content"])
    if len(pieces) != DELTAS:
        raise AssertionError(f"{len(pieces)} of {DELTAS} pieces came")


# Measuring ------------------------------------------------------------------------------------------------------


async def _cpu(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    began = time.process_time()
    await work()
    return time.process_time() - began


Work = Callable[[], Awaitable[object]]


async def _in_turns(*works: Work, rounds: int = 7) -> list[float]:
    """Return the least CPU time of each, in seconds: what disturbs a busy machine only ever adds."""
    for work in works:
        await work()
    taken = [[await _cpu(work) for work in works] for _ in range(rounds)]
    return [min(side) for side in zip(*taken, strict=True)]


async def _at_once(work: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(AGENTS):
            group.create_task(work())  # type: ignore[arg-type]  # a coroutine


async def _measure(url: str) -> list[Goal]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    goals = []
    async with (
        httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client,
        _agent(url, SHORT) as short,
        _agent(url, LONG) as long,
        _agent(url, STEPS) as many,
        _agent(url, 0) as burst,
    ):
        a, b, c, d = await _in_turns(
            lambda: _our_run(short),
            lambda: _their_run(client, url, SHORT),
            lambda: _our_run(long),
            lambda: _their_run(client, url, LONG),
        )
        a, b, c, d = a / (SHORT + 1), b / (SHORT + 1), c / (LONG + 1), d / (LONG + 1)
        goals += [
            _goal(f"CPU of a request at {SHORT} steps", a, b, 1.1),
            _goal(f"CPU of a request at {LONG} steps", c, d, 0.9),
            _goal(f"growth from {SHORT} to {LONG} steps", c, a, 1.1),
        ]
        a, b = await _in_turns(lambda: _our_burst(burst), lambda: _their_burst(client, url))
        goals.append(_goal(f"CPU of {DELTAS:,} deltas", a, b, 1.4))
        a, b = await _in_turns(
            lambda: _at_once(lambda: _our_run(many)), lambda: _at_once(lambda: _their_run(client, url, STEPS)), rounds=3
        )
        count = AGENTS * (STEPS + 1)
        what = f"CPU of a request, {AGENTS} agents of {STEPS} steps at once"
        goals.append(_goal(what, a / count, b / count, 0.4))
    return goals


def _goal(what: str, ours: float, other: float, at_most: float) -> Goal:
    return Goal(what=what, ratio=ours / other, at_most=at_most, detail=f"{ms(ours)} / {ms(other)}")


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
