"""From the settings through the kernel to a loopback server and back: the math example."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from atlas_openai import plugin

from atlas_core import (
    AgentService,
    AtlasError,
    Kernel,
    ModelResponded,
    ProviderError,
    RunEnded,
    RunOutcome,
    RunStream,
    SettingsError,
    TextDelta,
    hookimpl,
    tool,
)
from atlas_core.testing import LoopbackServer, ReceivedRequest, RecordingObserver, ServerReply

QUESTION = "What is the square root of 144 multiplied by 5?"


@tool(effects="read")
def calculator_tool(expression: str, precision: int = 6) -> float:
    """Evaluate an expression."""
    return {"sqrt(144) * 5": 60.0}[expression] if precision else 0


class Maths:
    """A plugin that offers the calculator."""

    @hookimpl
    def atlas_tool_providers(self) -> list[Any]:
        return [calculator_tool]


def settings(server: LoopbackServer, **options: Any) -> dict[str, Any]:
    """Return the settings of the math example with a connection to the server."""
    connection = {"backend": "openai", "model": "gpt-4.1", "base_url": f"{server.url}/v1", **options}
    profile = {
        "system_prompt": "You are a helpful assistant. Use tools for math.",
        "connection_name": "main",
        "tools": ["calculator_tool"],
    }
    return {
        "ai": {
            "connections": {"main": connection},
            "agents": {"default_profile": "math_agent", "profiles": {"connections": {"math_agent": profile}}},
        }
    }


def kernel(server: LoopbackServer, observer: RecordingObserver, **options: Any) -> Kernel:
    """Return a kernel with the provider and the calculator."""
    return Kernel(settings(server, **options), plugins=[("openai", plugin), ("maths", Maths())], observers=[observer])


def chat_model(request: ReceivedRequest) -> ServerReply:
    """Answer as a model would: ask for the calculator first, then quote its result."""
    body = request.json()
    result = next((m["content"] for m in body["messages"] if m["role"] == "tool"), None)
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    if result is None:
        arguments = json.dumps({"expression": "sqrt(144) * 5"})
        call = {"index": 0, "id": "call_1", "type": "function"}
        parts = [
            {"name": body["tools"][0]["function"]["name"], "arguments": arguments[:9]},
            {"arguments": arguments[9:]},
        ]
        deltas: list[Any] = [{"tool_calls": [{**call, "function": part}]} for part in parts]
        message: dict[str, Any] = {
            "tool_calls": [{**call, "function": {**parts[0], "arguments": arguments}}],
            "content": None,
        }
        reason = "tool_calls"
    else:
        text = f"The answer is {result}."
        deltas, message, reason = [{"content": word + " "} for word in text.split()], {"content": text}, "stop"
    if not body.get("stream"):
        choice = {"message": message, "finish_reason": reason}
        return ServerReply.of_json({"model": "gpt-4.1-x", "choices": [choice], "usage": usage})
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    return ServerReply.of_events(*chunks, last, {"choices": [], "usage": usage})


def responses_model(request: ReceivedRequest) -> ServerReply:
    """The same in the other protocol, with reasoning that must come back."""
    body = request.json()
    result = next((item["output"] for item in body["input"] if item.get("type") == "function_call_output"), None)
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
    if result is None:
        arguments = json.dumps({"expression": "sqrt(144) * 5"})
        name = body["tools"][0]["name"]
        output = [reasoning, {"type": "function_call", "call_id": "call_1", "name": name, "arguments": arguments}]
    elif reasoning not in body["input"]:
        return ServerReply.of_json({"error": {"message": "a call came without its reasoning"}}, status=400)
    else:
        output = [{"type": "message", "content": [{"type": "output_text", "text": f"The answer is {result}."}]}]
    usage = {"input_tokens": 10, "output_tokens": 5}
    answer = {"id": "resp", "model": "gpt-4.1-x", "status": "completed", "output": output, "usage": usage}
    if not body.get("stream"):
        return ServerReply.of_json(answer)
    delta = {"type": "response.output_text.delta", "delta": "The answer is "}
    return ServerReply.of_events(
        *([delta] if result else []), {"type": "response.completed", "response": answer}, done=False
    )


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_math_example_answers(api: str, streamed: bool) -> None:
    """A question, a call, its result, the answer; tokens are counted, and the events say who answered."""
    observer = RecordingObserver()
    model = chat_model if api == "chat" else responses_model
    with LoopbackServer(always=model) as server:
        async with kernel(server, observer, api=api) as running:
            agent = running.agent("math_agent")
            if streamed:
                stream = agent.stream(QUESTION)
                seen = [event async for event in stream]
                assert isinstance(stream, RunStream)
                result = stream.result
                assert result is not None
                assert any(isinstance(event, TextDelta) for event in seen)
            else:
                result = (await agent.run(QUESTION)).result
    assert result.outcome is RunOutcome.ANSWERED
    assert result.output.split() == ["The", "answer", "is", "60."] or "60" in result.output
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.requests) == (20, 10, 2)
    assert [r.content for r in result.tool_results] == ["60.0"]
    assert result.model.startswith("gpt-4.1 at 127.0.0.1:")
    assert [event.plugin for event in observer.of(ModelResponded)] == ["openai", "openai"]
    assert [bool(request.json().get("stream")) for request in server.requests] == [streamed] * 2


async def test_an_error_names_the_plugin() -> None:
    """A failure of the server's ends the run with a typed error that says who supplied the provider."""
    with LoopbackServer([ServerReply.of_json({"error": {"message": "no such model"}}, status=404)]) as server:
        async with kernel(server, RecordingObserver()) as running:
            with pytest.raises(ProviderError, match=r"no such model.*openai") as caught:
                await running.agent().run(QUESTION)
    assert caught.value.status == 404
    assert caught.value.result is not None


async def test_a_wrong_proxy_of_the_environment_is_an_error_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found when the model starts, and no failure of the provider."""
    monkeypatch.setenv("HTTP_PROXY", "gopher://me:TESTSECRET@h:1")
    with LoopbackServer() as server:
        async with kernel(server, RecordingObserver()) as k:
            with pytest.raises(AtlasError, match="the proxy that the environment names is 'gopher://h:1'") as caught:
                await k.agent().run(QUESTION)
    assert "the provider failed" not in str(caught.value)
    assert isinstance(caught.value.__cause__ or caught.value, SettingsError)


async def test_a_wrong_option_names_its_key() -> None:
    """The connection's own table is checked, with the kernel's texts, before anything is sent."""
    from atlas_core import SettingsError

    with LoopbackServer() as server:
        async with kernel(server, RecordingObserver(), temprature=1) as running:
            with pytest.raises(SettingsError, match="temprature"):
                running.agent()
    assert server.requests == []


# Without native calls, and answers of a type -------------------------------------------------------------------------


def plain_model(request: ReceivedRequest) -> ServerReply:
    """The same for a model that can only write: it knows the tools from the system prompt alone."""
    body = request.json()
    assert "tools" not in body
    assert "calculator_tool" in body["messages"][0]["content"]
    last = body["messages"][-1]["content"]
    wish = {"tool_calls": [{"name": "calculator_tool", "arguments": {"expression": "sqrt(144) * 5"}}]}
    text = "The answer is 60." if "tool_results" in last else f"I calculate.\n```json\n{json.dumps(wish)}\n```"
    if body.get("stream"):
        pieces = [{"choices": [{"delta": {"content": text[i : i + 7]}}]} for i in range(0, len(text), 7)]
        return ServerReply.of_events(*pieces, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return ServerReply.of_json({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_math_example_answers_without_native_calls(streamed: bool) -> None:
    """A connection with native_tools off goes through text by itself."""
    with LoopbackServer(always=plain_model) as server:
        async with kernel(server, RecordingObserver(), native_tools=False) as running:
            agent = running.agent()
            if streamed:
                events = [event async for event in agent.stream(QUESTION)]
                ended = events[-1]
                assert isinstance(ended, RunEnded)
                assert ended.output == "The answer is 60."
            else:
                assert await agent.run(QUESTION) == "The answer is 60."
    assert len(server.requests) == 2


@dataclass
class Sum:
    """What is asked for."""

    value: float
    unit: str = "none"


def typed_model(request: ReceivedRequest) -> ServerReply:
    """Answer with an object by whatever way it is asked for; a strict schema forces a null upon it."""
    body = request.json()
    value: dict[str, Any] = {"value": 60}
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    message: dict[str, Any] = {"content": json.dumps(value)}
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        message = {"content": json.dumps({**value, "unit": None} if "unit" in schema["required"] else value)}
    elif "final_answer" in names:
        function = {"name": "final_answer", "arguments": json.dumps(value)}
        message = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    return ServerReply.of_json({"choices": [{"message": message, "finish_reason": "stop"}]})


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({"schema_output": True}, "response_format"),
        ({"schema_output": False}, "final_answer"),
        ({"schema_output": False, "native_tools": False}, "```"),
    ],
    ids=["by the server's schema mode", "by a tool", "by text"],
)
async def test_an_answer_of_a_type(options: dict[str, Any], way: str) -> None:
    """Each way gives the same validated object, and defaults hold where the model said nothing."""
    with LoopbackServer(always=typed_model) as server:
        async with kernel(server, RecordingObserver(), **options) as running:
            agent = running.agent()
            assert isinstance(agent, AgentService)
            assert await agent.run(QUESTION, output_type=Sum) == Sum(60.0)
    assert way in server.requests[0].body.decode()
    assert len(server.requests) == 1
