"""What is written into requests, and which parts are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from atlas_openai._chat_requests import ChatEncoder
from atlas_openai._responses_requests import ResponsesEncoder, reasons
from atlas_openai._tools import ToolTable
from atlas_openai.options import OpenAIOptions
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import (
    ChatMessage,
    Data,
    File,
    Image,
    LLMDefaults,
    Opaque,
    Part,
    ProviderError,
    Text,
    ToolCall,
    ToolSchema,
)

KINDS = [pytest.param(ChatEncoder, id="chat"), pytest.param(ResponsesEncoder, id="responses")]


def encoder(
    kind: Any, *tools: ToolSchema, system: str | None = None, model: str = "m", most: int | None = None, **options: Any
) -> Any:
    """Return what writes requests of a session."""
    settings = OpenAIOptions(**options)
    table = ToolTable(tools, strict=settings.strict_tools)
    return kind(model, settings, LLMDefaults(system=system, tools=tools, max_output_tokens=most), table, None)


def sent(kind: Any, *messages: ChatMessage, **options: Any) -> Any:
    """Return messages as they are sent."""
    made = encoder(kind, **options)
    body = json.loads(b"".join(made.body(b",".join(map(made.message, messages)), stream=False)))
    return body["messages" if kind is ChatEncoder else "input"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("system", [None, "help"], ids=["no system prompt", "a system prompt"])
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_pieces_make_json(kind: Any, system: str | None, count: int, stream: bool) -> None:
    """Whatever there is of system prompt and messages, the pieces are one JSON object."""
    made = encoder(kind, system=system)
    messages = b",".join([made.message(ChatMessage.user("x"))] * count)
    body = json.loads(b"".join(made.body(messages, stream=stream)))
    assert body["model"] == "m"
    assert body.get("stream", False) is stream
    assert len(body["messages" if kind is ChatEncoder else "input"]) == count + bool(system and kind is ChatEncoder)


def test_an_empty_answer_is_sent_as_empty_text() -> None:
    """Case 58: without calls the content is never null."""
    history = ChatMessage.user("hi"), ChatMessage.assistant(""), ChatMessage.user("again")
    assert [m["content"] for m in sent(ChatEncoder, *history)] == ["hi", "", "again"]
    assert [m["content"] for m in sent(ResponsesEncoder, *history)] == ["hi", "", "again"]


def test_calls_without_text_have_no_content() -> None:
    """With calls the content is null, as the vendor writes it itself; with text it is the text."""
    call = ToolCall("a", "now", "{}")
    assert sent(ChatEncoder, ChatMessage.assistant("", [call]))[0]["content"] is None
    assert sent(ChatEncoder, ChatMessage.assistant("x", [call]))[0]["content"] == "x"
    assert [item["type"] for item in sent(ResponsesEncoder, ChatMessage.assistant("", [call]))] == ["function_call"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("written", "back"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        (" null ", "{}"),
        ('{"a": ', '{"invalid_arguments":"{\\"a\\": "}'),
        ("[1]", '{"invalid_arguments":"[1]"}'),
    ],
    ids=["an object", "nothing", "null", "broken", "no object"],
)
def test_arguments_in_the_history_are_objects(kind: Any, written: str, back: str) -> None:
    """A server that fills a template fails on any other, so the model's mistake travels inside of one."""
    (item,) = sent(kind, ChatMessage.assistant("", [ToolCall("a", "now", written)]))
    arguments = item["tool_calls"][0]["function"]["arguments"] if kind is ChatEncoder else item["arguments"]
    assert arguments == back


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_survives(kind: Any, text: str) -> None:
    """Every text, half surrogates included, is the same after the server has decoded it."""
    (item,) = sent(kind, ChatMessage.user(text))
    assert item["content"] == text


def test_a_speakers_name_is_made_acceptable() -> None:
    """The vendor refuses spaces and some signs in a name."""
    (item,) = sent(ChatEncoder, ChatMessage(role="user", content="hi", name="Ann <B>"))
    assert item["name"] == "Ann_B_"


AUDIO, PDF = File(b"x", media_type="audio/wav"), File(b"%PDF", media_type="application/pdf")


def test_parts_of_chat_requests() -> None:
    """Text, data, images, sound and files have a form each; what belongs to another provider is left out."""
    parts: list[Part] = [
        Text("a"),
        Data('{"b":1}'),
        Image(b"p"),
        Image(url="https://x.y/z.png"),
        AUDIO,
        PDF,
        Opaque("other", "{}"),
    ]
    (item,) = sent(ChatEncoder, ChatMessage.user(parts))
    assert item["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": '{"b":1}'},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cA=="}},
        {"type": "image_url", "image_url": {"url": "https://x.y/z.png"}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
        {"type": "file", "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ]


def test_parts_of_responses_requests() -> None:
    """The same for Responses, in tool results too."""
    parts: list[Part] = [Text("a"), Data("[1]"), Image(b"p"), File(url="https://x.y/z.pdf"), PDF, Opaque("other", "{}")]
    content = [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "[1]"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,cA=="},
        {"type": "input_file", "file_url": "https://x.y/z.pdf"},
        {"type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
    ]
    call = ToolCall("a", "now")
    first, second = sent(ResponsesEncoder, ChatMessage.user(parts), ChatMessage.tool(call, parts))
    assert first == {"role": "user", "content": content}
    assert second == {"type": "function_call_output", "call_id": "a", "output": content}


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (ChatEncoder, ChatMessage.user([File(url="https://x.y/a.pdf")]), "api = 'responses'"),
        (ChatEncoder, ChatMessage.user([Opaque("", '{"type":"video"}')]), "unknown kind 'video'"),
        (ChatEncoder, ChatMessage.tool(ToolCall("a", "now"), [Image(b"p")]), "in a tool result of a chat request"),
        (ChatEncoder, ChatMessage.assistant([Image(b"p")]), "in a assistant message of a chat request"),
        (ChatEncoder, ChatMessage(role="system", content=(Image(b"p"),)), "in a system message of a chat request"),
        (ResponsesEncoder, ChatMessage.user([Opaque("", "[]")]), "unknown kind None"),
        (ResponsesEncoder, ChatMessage.assistant([Image(b"p")]), "'image/png' can't be sent"),
    ],
)
def test_parts_that_cannot_be_sent_are_refused(kind: Any, message: ChatMessage, words: str) -> None:
    """The error names the part, where it stood, and what to do."""
    with pytest.raises(ProviderError, match=words.replace("(", r"\(")) as caught:
        sent(kind, message)
    assert caught.value.remedy


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_refused_where_the_model_reads_none(kind: Any) -> None:
    """The option says so before the server has to."""
    with pytest.raises(ProviderError, match="set images = true"):
        sent(kind, ChatMessage.user([Image(b"p")]), images=False)


@pytest.mark.parametrize("kind", KINDS)
def test_text_messages_take_parts_of_text(kind: Any) -> None:
    """System and assistant messages join their texts and data."""
    content = (Text("a"), Data("[1]"), Opaque("other", "{}"))
    system, answer = ChatMessage(role="system", content=content), ChatMessage.assistant(content)
    text = json.dumps(sent(kind, system, answer))
    assert "other" not in text
    assert text.count("[1]") == 2


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "max_completion_tokens"),
        ({"base_url": "https://eu.api.openai.com/v1"}, "max_completion_tokens"),
        ({"base_url": "https://x.openai.azure.com/openai/v1"}, "max_completion_tokens"),
        ({"base_url": "https://gateway.example/x", "path_style": "azure"}, "max_completion_tokens"),
        ({"base_url": "http://localhost:8000/v1"}, "max_tokens"),
        ({"base_url": "https://api.openai.com.evil.example/v1"}, "max_tokens"),
        ({"base_url": "http://localhost/v1", "max_tokens_field": "max_completion_tokens"}, "max_completion_tokens"),
    ],
)
def test_the_output_limit_is_sent_in_the_field_the_server_knows(options: Any, field: str) -> None:
    """OpenAI and Azure know one, other servers the other; an option settles it."""
    made = encoder(ChatEncoder, most=9, **options)
    body = json.loads(b"".join(made.body(b"", stream=False)))
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {field: 9}


def test_azure_paths() -> None:
    """A deployment's name is part of the path of chat requests."""
    assert encoder(ChatEncoder, model="my gpt", path_style="azure").path == "deployments/my%20gpt/chat/completions"
    assert encoder(ChatEncoder).path == "chat/completions"
    assert encoder(ResponsesEncoder, path_style="azure").path == "responses"


def test_nothing_is_said_about_tools_without_any() -> None:
    """`parallel_tool_calls` without tools is an error at the vendor's."""
    made = encoder(ChatEncoder, parallel_tool_calls=False)
    assert json.loads(b"".join(made.body(b"", stream=False))).keys() == {"model", "messages"}


def test_usage_of_streams_may_be_left_out() -> None:
    """Some servers refuse `stream_options`."""
    made = encoder(ChatEncoder, stream_usage=False)
    assert "stream_options" not in json.loads(b"".join(made.body(b"", stream=True)))


def test_extra_fields_win() -> None:
    """What a connection adds replaces what the provider would write."""
    made = encoder(ChatEncoder, temperature=0.5, extra_body={"temperature": 1, "top_k": 5})
    body = json.loads(b"".join(made.body(b"", stream=False)))
    assert (body["temperature"], body["top_k"]) == (1, 5)


@pytest.mark.parametrize(
    ("model", "options", "asked"),
    [
        ("gpt-4.1", {}, False),
        ("o4-mini", {}, True),
        ("gpt-5.2", {}, True),
        ("gpt-4.1", {"reasoning_effort": "low"}, True),
        ("gpt-5", {"encrypted_reasoning": False}, False),
        ("gpt-5", {"base_url": "http://localhost/v1"}, False),
        ("x", {"base_url": "http://localhost/v1", "encrypted_reasoning": True}, True),
    ],
)
def test_encrypted_reasoning_is_asked_of_models_that_reason(model: str, options: Any, asked: bool) -> None:
    """Others refuse a request that asks for it."""
    assert reasons(model, OpenAIOptions(**options)) is asked
