"""Whole runs: the real kernel, loop and tools, over a server that speaks the Messages API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from atlas_core import (
    AgentService,
    CallStatus,
    Kernel,
    ModelResponded,
    OutputLimitError,
    RunOutcome,
    TextDelta,
    Usage,
    hookimpl,
)
from atlas_core.testing import LoopbackServer, RecordingObserver, ServerReply

MessageOf = Callable[..., dict[str, Any]]

QUESTION = "What is the square root of 144 multiplied by 5?"


def calculator_tool(expression: str) -> float:
    """Evaluate an arithmetic expression."""
    if expression != "sqrt(144) * 5":
        raise ValueError(f"can't read {expression!r}")
    return 60.0


class Tools:
    """A plugin with one tool."""

    @hookimpl
    def atlas_tool_providers(self) -> list[Any]:
        return [calculator_tool]


def settings(server: LoopbackServer, *, tools: list[str] | None = None, **connection: Any) -> dict[str, Any]:
    """Return settings with one agent over the loopback server."""
    agent = {
        "connection_name": "main",
        "system_prompt": "You are a helpful assistant. Use tools for math.",
        "tools": tools if tools is not None else ["calculator_tool"],
    }
    return {
        "ai": {
            "connections": {
                "main": {"backend": "anthropic", "model": "claude-test", "base_url": server.url, **connection}
            },
            "agents": {"default_profile": "math_agent", "profiles": {"connections": {"math_agent": agent}}},
        }
    }


def kernel(server: LoopbackServer, *, observer: RecordingObserver | None = None, **more: Any) -> Kernel:
    """Make a kernel with this plugin and the tool."""
    from atlas_anthropic import plugin

    plugins = [("anthropic", plugin), ("maths", Tools())]
    return Kernel(settings(server, **more), plugins=plugins, observers=[observer] if observer else [])


def claude(message_of: MessageOf, expression: str = "sqrt(144) * 5") -> Callable[[Any], ServerReply]:
    """Return a server's side that calls the tool on offer, and then says what it returned, streamed if asked for."""

    def answer(request: Any) -> ServerReply:
        body = request.json()
        last = body["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            message = message_of(f"The result is {last['content']}.")
        else:
            use = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"]}
            message = message_of("Let me see.", {**use, "input": {"expression": expression}}, stop_reason="tool_use")
        return as_stream(message) if body.get("stream") else ServerReply.of_json(message)

    return answer


def as_stream(message: dict[str, Any]) -> ServerReply:
    """Return the events that the vendor sends for a message."""
    import json

    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for n, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        start = {**block, "text": ""} if is_text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": n, "content_block": start})
        whole = block["text"] if is_text else json.dumps(block["input"])
        for piece in (whole[:5], whole[5:]):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            events.append({"type": "content_block_delta", "index": n, "delta": delta})
        events.append({"type": "content_block_stop", "index": n})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    )
    events.append({"type": "message_stop"})
    return ServerReply.of_events(*[f"event: {e['type']}\ndata: {json.dumps(e)}" for e in events], done=False)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_math_example_is_answered(message_of: MessageOf, *, stream: bool) -> None:
    """Two requests, one call of the real tool, the answer; streamed and not."""
    observer = RecordingObserver()
    with LoopbackServer(always=claude(message_of)) as server:
        async with kernel(server, observer=observer) as running:
            agent = running.agent("math_agent")
            assert isinstance(agent, AgentService)
            if stream:
                run = agent.stream(QUESTION)
                events = [event async for event in run]
                result = run.result
                assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Let me see.The result is 60.0."
            else:
                result = (await agent.run(QUESTION)).result
        requests = [request.json() for request in server.requests]
    assert result is not None
    assert (result.outcome, result.output) == (RunOutcome.ANSWERED, "The result is 60.0.")
    (call,) = result.tool_results
    assert (call.name, call.status, call.value) == ("calculator_tool", CallStatus.OK, 60.0)
    assert result.usage == Usage(input_tokens=4190, output_tokens=1006, requests=2)
    assert result.iterations == 2
    assert len(observer.of(ModelResponded)) == 2
    assert [request.get("stream") for request in requests] == ([True, True] if stream else [None, None])
    assert requests[0]["system"][0]["text"] == "You are a helpful assistant. Use tools for math."
    assert requests[1]["messages"][2]["content"][0]["tool_use_id"] == "toolu_1"


async def test_the_math_example_with_the_real_calculator(message_of: MessageOf) -> None:
    """The tool of the standard tools, chosen by name."""
    pytest.importorskip("atlas_standard_tools")
    with LoopbackServer(always=claude(message_of)) as server:
        table = settings(server) | {"plugins": {"enabled": ["anthropic", "standard-tools"]}}
        async with Kernel(table) as running:
            assert await running.agent().run(QUESTION) == "The result is 60."


async def test_a_tool_that_fails_is_told_as_failed(message_of: MessageOf) -> None:
    """The result has the mark of an error, and the run goes on."""
    with LoopbackServer(always=claude(message_of, "1 / 0")) as server:
        async with kernel(server) as running:
            answer = await running.agent().run(QUESTION)
        block = server.requests[1].json()["messages"][-1]["content"][0]
    assert block["is_error"] is True
    assert "can't read '1 / 0'" in answer


class Total(BaseModel):
    """What the answer must be."""

    total: int


@pytest.mark.parametrize("by_schema", [True, False], ids=["by the server's schema", "by a tool"])
async def test_an_answer_of_a_type(message_of: MessageOf, *, by_schema: bool) -> None:
    """A model's object comes back; an answer that misses the type is asked for again."""

    def answer(request: Any) -> ServerReply:
        body = request.json()
        total = 60 if len(server.requests) > 1 else "many"
        if "output_config" in body:
            return ServerReply.of_json(message_of(f'{{"total": "{total}"}}'))
        (tool,) = body["tools"]
        use = {"type": "tool_use", "id": "t", "name": tool["name"], "input": {"total": total}}
        return ServerReply.of_json(message_of(use, stop_reason="tool_use"))

    with LoopbackServer(always=answer) as server:
        async with kernel(server, tools=[], schema_output=by_schema) as running:
            agent = running.agent()
            assert isinstance(agent, AgentService)
            found = await agent.run("Add it up", output_type=Total)
        assert len(server.requests) == 2
    assert found == Total(total=60)


async def test_a_refusal_declines_the_run(message_of: MessageOf) -> None:
    """With the server's reason as the output."""
    details = {"type": "refusal", "category": "bio", "explanation": "This could do harm."}
    reply = ServerReply.of_json(message_of(stop_reason="refusal", stop_details=details))
    with LoopbackServer([reply]) as server:
        async with kernel(server) as running:
            result = (await running.agent().run("...?")).result
    assert (result.outcome, result.output) == (RunOutcome.DECLINED, "This could do harm.")


async def test_a_cut_answer_is_an_output_limit(message_of: MessageOf) -> None:
    """Nothing of a cut message is executed."""
    use = {"type": "tool_use", "id": "t", "name": "calculator_tool", "input": {"expression": "sqrt(1"}}
    replies = [message_of(use, stop_reason="max_tokens"), message_of("It is", stop_reason="max_tokens")]
    with LoopbackServer(map(ServerReply.of_json, replies)) as server:
        async with kernel(server, max_output_tokens=9) as running:
            with pytest.raises(OutputLimitError) as caught:
                await running.agent().run(QUESTION)
        assert [request.json()["max_tokens"] for request in server.requests] == [9, 9]
    assert caught.value.result is not None
    assert [result.status for result in caught.value.result.tool_results] == [CallStatus.REFUSED]


async def test_a_conversation_goes_on_over_runs(message_of: MessageOf) -> None:
    """A run's messages are the next run's history, and what was said before is sent as it was."""
    replies = [message_of("One."), message_of("Two.")]
    with LoopbackServer(map(ServerReply.of_json, replies)) as server:
        async with kernel(server, tools=[], prompt_caching=False) as running:
            agent = running.agent()
            first = await agent.run("1?")
            await agent.run("2?", first.result.messages)
        bodies = [request.body for request in server.requests]
    assert bodies[1].startswith(bodies[0].removesuffix(b"]}"))
