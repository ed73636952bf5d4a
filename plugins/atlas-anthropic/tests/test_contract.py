"""What is sent and read has the forms of the vendor's own client, which only tests install."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from atlas_anthropic._request import Conversation, wire_map
from atlas_anthropic.options import AnthropicOptions
from pydantic import BaseModel, TypeAdapter

from atlas_core import ChatMessage, Data, File, Image, LLMDefaults, Opaque, Text, ToolCall, ToolSchema

pytest.importorskip("anthropic", reason="the vendor's client is not installed")

from anthropic.types import Message, MessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming

NOT_STREAMED: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)
STREAMED: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
EVENT: TypeAdapter[Any] = TypeAdapter(MessageStreamEvent)

CALL = ToolCall("toolu_1", "get.weather", '{"location": "Paris"}')
THINKING = Opaque("anthropic", '{"type": "thinking", "thinking": "hm", "signature": "s"}')
REDACTED = Opaque("anthropic", '{"type": "redacted_thinking", "data": "d"}')
CITED = Opaque(
    "anthropic",
    '{"type": "citations", "citations": [{"type": "char_location", "cited_text": "c", "document_index": 0, '
    '"document_title": null, "start_char_index": 0, "end_char_index": 1}]}',
)
WEATHER = ToolSchema(
    name="get.weather",
    description="Get the weather.",
    parameters={"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}

CONVERSATIONS: dict[str, tuple[ChatMessage, ...]] = {
    "a question": (ChatMessage.user("Hello"),),
    "files": (
        ChatMessage.user(
            [
                Text("Look"),
                Image(b"x"),
                Image(url="https://example.com/a.png"),
                File(b"%PDF", media_type="application/pdf", name="a.pdf"),
                File(b"text", media_type="text/plain"),
                File(url="https://example.com/a.pdf"),
                Data("[1]"),
            ]
        ),
    ),
    "calls and results": (
        ChatMessage.user("q"),
        ChatMessage.assistant("Let me see", [CALL, ToolCall("call:2", "other tool", "{broken")]),
        ChatMessage.tool(CALL, "sunny"),
        ChatMessage.tool(ToolCall("call:2", "other tool"), [Text("a"), Image(b"x")], is_error=True),
    ),
    "empty results": (
        ChatMessage.user("q"),
        ChatMessage.assistant("", [CALL]),
        ChatMessage.tool(CALL, ""),
        ChatMessage.user("and?"),
    ),
    "thoughts and citations": (
        ChatMessage.user("q"),
        ChatMessage.assistant([THINKING, REDACTED, Text("a"), CITED], [CALL]),
        ChatMessage.tool(CALL, "sunny"),
    ),
    "an answer first": (ChatMessage.assistant("Hi"), ChatMessage.system("Be nice."), ChatMessage.user("q")),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "a thinking budget": {"thinking": 2048, "prompt_caching": "1h"},
    "adaptive thinking": {"thinking": "adaptive", "effort": "xhigh", "prompt_caching": False},
    "further fields": {"extra_body": {"metadata": {"user_id": "u"}, "service_tier": "auto", "stop_sequences": ["x"]}},
    "a server tool": {"server_tools": [{"type": "web_search_20260209", "name": "web_search", "max_uses": 3}]},
}


def known(value: Any) -> Any:
    """Return a validated value with its lazy parts read, and so checked; keys that the type does not know are gone."""
    if isinstance(value, BaseModel):  # the client takes blocks of answers too
        return {
            key: item for key, item in value.model_dump(exclude_unset=True).items() if key in type(value).model_fields
        }
    if isinstance(value, Mapping):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [known(item) for item in value]


def bodies(messages: tuple[ChatMessage, ...], table: dict[str, Any], *, stream: bool) -> Iterator[dict[str, Any]]:
    """Yield the bodies of requests over a conversation, with and without all that a run may set."""
    options = AnthropicOptions.model_validate(table)
    everything = LLMDefaults(system="s", tools=(WEATHER,), max_output_tokens=5000, output_schema=SCHEMA)
    for defaults in (LLMDefaults(), everything):
        talk = Conversation("claude-test", defaults, options, wire_map(defaults.tools, options))
        for message in messages:
            talk.append(message)
        yield json.loads(b"".join(talk.body(stream=stream)))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_requests_have_the_vendors_form(
    messages: tuple[ChatMessage, ...], options: dict[str, Any], *, stream: bool
) -> None:
    """Every field is one that the vendor's client knows, with a value of its type."""
    for body in bodies(messages, options, stream=stream):
        adapter = STREAMED if stream else NOT_STREAMED
        assert known(adapter.validate_python(body)) == body


def test_the_check_would_find_a_wrong_request() -> None:
    """A field of another name vanishes, and a value of another type is refused, at any depth."""
    (body, _) = bodies(CONVERSATIONS["a question"], {}, stream=False)
    body["messages"][0]["content"][0]["txt"] = "x"
    assert known(NOT_STREAMED.validate_python(body)) != body
    body["messages"][0]["content"][0]["text"] = 5
    with pytest.raises(ValueError, match="text"):
        known(NOT_STREAMED.validate_python(body))


@pytest.mark.parametrize("name", ["tool_use", "thinking", "web_search"])
def test_written_down_streams_have_the_vendors_form(name: str, events_of: Callable[[str], list[Any]]) -> None:
    """The tests' own events are such as the vendor's client reads; it knows no pings."""
    for event in events_of(name):
        if event["type"] != "ping":
            EVENT.validate_python(event)


def test_written_down_messages_have_the_vendors_form(message_of: Callable[..., dict[str, Any]]) -> None:
    """The same for the whole message."""
    Message.model_validate(message_of("a", {"type": "tool_use", "id": "a", "name": "x", "input": {}}))
