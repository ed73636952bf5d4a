"""Request bodies fit the types of the vendor's own package, key by key."""

from __future__ import annotations

import collections.abc
import json
import runpy
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import typing_extensions
from atlas_openai._chat_requests import ChatEncoder
from atlas_openai._output import output_form
from atlas_openai._responses_requests import ResponsesEncoder
from atlas_openai._tools import ToolTable
from atlas_openai.options import OpenAIOptions

from atlas_core import ChatMessage, Data, File, Image, LLMDefaults, Opaque, Text, ToolCall, ToolSchema

pytest.importorskip("openai", reason="the vendor's package is not installed")

PNG, PDF = b"\x89PNG", b"%PDF"
CALLS = [ToolCall("c1", "files.read/text", '{"path": "a"}'), ToolCall("c2", "now", "{broken")]
CONVERSATION = [
    ChatMessage.system("be kind"),
    ChatMessage(role="user", content="hi", name="Ann B"),
    ChatMessage.user([Text("look"), Image(PNG), Image(url="https://example.com/a.png"), Data('{"a":1}')]),
    ChatMessage.user([File(PDF, media_type="application/pdf", name="a.pdf"), Opaque("other", "{}")]),
    ChatMessage.assistant("", CALLS),
    ChatMessage.tool(CALLS[0], "text"),
    ChatMessage.tool(CALLS[1], [Text("no "), Data("[1]")], is_error=True),
    ChatMessage.assistant([Opaque("other", '{"type":"thinking"}'), Text("done")]),
    ChatMessage.assistant(""),
    ChatMessage.user("again"),
]
TOOLS = (
    ToolSchema(
        name="files.read/text",
        description="Read.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    ),
    ToolSchema(name="now"),
)
DEFAULTS = LLMDefaults(
    system="help",
    tools=TOOLS,
    max_output_tokens=100,
    output_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    output_name="thing",
)
OPTIONS = {
    "temperature": 0.5,
    "top_p": 0.9,
    "reasoning_effort": "low",
    "parallel_tool_calls": True,
    "strict_tools": True,
    "extra_body": {"metadata": {"team": "a"}},
}


def misfits(value: Any, kind: Any, where: str = "body") -> list[str]:
    """Return why a JSON value does not fit a type made of TypedDicts; unlike pydantic it takes no unknown key."""
    if kind is Any or kind is object:
        return []
    origin, args = get_origin(kind), get_args(kind)
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, Annotated):
        return misfits(value, args[0], where)
    if origin in (Union, types.UnionType):
        tries = [misfits(value, arg, where) for arg in args]
        return min(tries, key=lambda found: (len(found), str(found))) if all(tries) else []
    if origin is Literal:
        return [] if value in args else [f"{where}: {value!r} is none of {args}"]
    if typing_extensions.is_typeddict(kind):
        return _misfits_of_object(value, kind, where)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no object"]
        return [found for key, item in value.items() for found in misfits(item, args[1], f"{where}.{key}")]
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return [found for n, item in enumerate(value) for found in misfits(item, args[0], f"{where}[{n}]")]
    expected = (int, float) if kind is float else (type(None) if kind is None else kind)
    fits = isinstance(value, expected) and not (isinstance(value, bool) and kind in (int, float))
    return [] if fits else [f"{where}: {value!r} is no {kind}"]


def _is_required(origin: Any) -> bool:
    return origin is typing_extensions.Required


def _misfits_of_object(value: Any, kind: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no {kind.__name__}"]
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    found = [f"{where}: unknown key {key!r} for {kind.__name__}" for key in value.keys() - hints.keys()]
    # Not `__required_keys__`: the vendor's annotations are texts, in which Python does not look for Required.
    required = {key for key, hint in hints.items() if _is_required(get_origin(hint))}
    found += [f"{where}: {key!r} is missing for {kind.__name__}" for key in required - value.keys()]
    return found + [
        bad for key, item in value.items() if key in hints for bad in misfits(item, hints[key], f"{where}.{key}")
    ]


def body_of(kind: Any, *, stream: bool, messages: list[ChatMessage] = CONVERSATION, **options: Any) -> Any:
    """Return the decoded body of a request with the conversation."""
    settings = OpenAIOptions(**{**OPTIONS, **options})
    table = ToolTable(DEFAULTS.tools, strict=settings.strict_tools)
    encoder = kind("gpt-4.1", settings, DEFAULTS, table, output_form(DEFAULTS))
    return json.loads(b"".join(encoder.body(b",".join(encoder.message(m) for m in messages), stream=stream)))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient tools", "strict tools"])
def test_chat_requests_fit_the_vendors_types(stream: bool, strict: bool) -> None:
    """Every key is one that the vendor knows, where it knows it, and of its type."""
    from openai.types.chat import completion_create_params as params

    kind = params.CompletionCreateParamsStreaming if stream else params.CompletionCreateParamsNonStreaming
    body = body_of(ChatEncoder, stream=stream, seed=7, strict_tools=strict)
    assert misfits(body, kind) == []
    assert body.keys() >= {"temperature", "top_p", "seed", "reasoning_effort", "tools", "response_format", "metadata"}
    assert body["max_completion_tokens"] == 100


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient tools", "strict tools"])
def test_responses_requests_fit_the_vendors_types(stream: bool, strict: bool) -> None:
    """The same for Responses, with files and images by address and in tool results, and reasoning sent back."""
    from openai.types.responses import response_create_params as params

    kind = params.ResponseCreateParamsStreaming if stream else params.ResponseCreateParamsNonStreaming
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
    more = [
        ChatMessage.user([File(url="https://example.com/a.pdf")]),
        ChatMessage.assistant([Opaque("openai", json.dumps(reasoning))], CALLS),
        ChatMessage.tool(CALLS[0], [Image(PNG), File(PDF, media_type="application/pdf")]),
        ChatMessage.tool(CALLS[1], "x"),
    ]
    body = body_of(ResponsesEncoder, stream=stream, messages=CONVERSATION + more, strict_tools=strict)
    assert misfits(body, kind) == []
    assert reasoning in body["input"]
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["store"] is False


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_samples_fit_the_vendors_types(api: str) -> None:
    """What the tests take for the vendor's own answers is read by the vendor's own package, too."""
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    sample = runpy.run_path(str(Path(__file__).with_name(f"test_{api}.py")))["VENDOR_CALL"]
    if api == "chat":
        message = ChatCompletion.model_validate(sample).choices[0].message
        assert message.tool_calls
    else:
        left_out = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        usage = {**sample["usage"], "input_tokens_details": {"cached_tokens": 128, "cache_write_tokens": 0}}
        assert Response.model_validate({**sample, **left_out, "usage": usage}).output


def test_the_check_finds_what_does_not_fit() -> None:
    """A wrong key, a missing one and a wrong type are found, also deep inside: the check is none that always passes."""
    from openai.types.chat import completion_create_params as params

    body = body_of(ChatEncoder, stream=False)
    kind = params.CompletionCreateParamsNonStreaming
    assert misfits({**body, "tool": []}, kind)
    assert misfits({k: v for k, v in body.items() if k != "model"}, kind)
    assert misfits({**body, "temperature": "warm"}, kind)
    assert misfits({**body, "messages": [{"role": "user", "content": [{"type": "text", "txt": "x"}]}]}, kind)
    assert misfits({**body, "messages": [{"role": "tool", "content": "x"}]}, kind)
