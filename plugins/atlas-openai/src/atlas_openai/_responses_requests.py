"""Requests of Responses.

Source: the vendor's own package, openai 3.57.0 of November 2026, `types.responses.response_create_params`; the tests
check request bodies against these types.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from atlas_core import ChatMessage, Data, File, Image, LLMDefaults, Opaque, Part, Text, ToolCall
from atlas_openai._output import text_format
from atlas_openai._wire import PROVIDER, arguments_sent, data_url, encode, obj, refuse_part

if TYPE_CHECKING:
    from atlas_openai._output import OutputForm
    from atlas_openai._tools import ToolTable
    from atlas_openai.options import OpenAIOptions

__all__ = ["CALLS", "PHASE", "ResponsesEncoder", "reasons"]

CALLS, PHASE = "atlas.calls", "atlas.phase"
"""Types of marks that a reply leaves among its parts: how many calls came before, and a text's phase."""

_REASONING_MODEL = re.compile(r"(.*[/:])?(o\d|gpt-([5-9]|\d\d)|codex)")


def reasons(model: str, options: OpenAIOptions) -> bool:
    """Tell whether encrypted reasoning is asked for; models that do not reason refuse a request that asks for it."""
    if options.encrypted_reasoning is not None:
        return options.encrypted_reasoning
    if not (options.is_vendor or options.is_azure):
        return False
    return options.reasoning_effort not in {None, "none"} or bool(_REASONING_MODEL.match(model))


class ResponsesEncoder:
    """Turns a run's conversation into bodies of requests for a response.

    Args:
        model: The model's name.
        options: The connection's.
        defaults: The run's.
        tools: The run's tools.
        output: The form that answers are held to, or None.
    """

    path = "responses"

    def __init__(
        self, model: str, options: OpenAIOptions, defaults: LLMDefaults, tools: ToolTable, output: OutputForm | None
    ) -> None:
        self._images = options.images
        self._stored = options.store
        self._tools = tools
        fields = {"model": model, **_fields(model, options, defaults, tools)}
        if output is not None:
            fields["text"] = text_format(output)
        self._head = encode({**fields, **options.extra_body})[:-1] + b',"input":['
        self._tails = (b"]}", b'],"stream":true}')

    def body(self, messages: bytes, *, stream: bool) -> tuple[bytes, ...]:
        """Return a request's body in pieces around the messages."""
        return self._head, messages, self._tails[stream]

    def message(self, message: ChatMessage) -> bytes:
        """Return a message as items of `input`; an assistant's may be several."""
        match message.role:
            case "assistant":
                return b",".join(encode(item) for item in self._assistant(message))
            case "tool":
                output = self._content(message, "tool result")
                return encode({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
        return encode({"role": message.role, "content": self._content(message, f"{message.role} message")})

    def _content(self, message: ChatMessage, where: str) -> str | list[object]:
        if isinstance(message.content, str):
            return message.content
        return [sent for part in message.content if (sent := self._part(part, where)) is not None]

    def _part(self, part: Part, where: str) -> dict[str, object] | None:
        match part:
            case Text(text):
                return {"type": "input_text", "text": text}
            case Data(value_json):
                return {"type": "input_text", "text": value_json}
            case Image() if self._images:
                return {"type": "input_image", "detail": "auto", "image_url": part.url or data_url(part)}
            case Image():
                raise refuse_part(part, "request to this model", "set images = true in the connection if it reads them")
            case File(url=str(url)):
                return {"type": "input_file", "file_url": url}
            case File():
                name = part.name or f"file{mimetypes.guess_extension(part.media_type) or '.bin'}"
                return {"type": "input_file", "filename": name, "file_data": data_url(part)}
            case Opaque(provider) if provider:
                return None  # another provider's, or another protocol's; nobody else can read it
        raise refuse_part(part, f"{where} of a Responses request", "write it as text")

    # What the model wrote --------------------------------------------------------------------------------------

    def _assistant(self, message: ChatMessage) -> list[Mapping[str, object]]:
        """Return an assistant's message as the items that it came in, in their order."""
        found: list[Mapping[str, object]] = []
        calls = iter(message.tool_calls)
        sent = 0
        phase: object = None
        for part in (Text(message.content),) if isinstance(message.content, str) else message.content:
            payload = _own(part)
            kind = payload.get("type")
            if kind == CALLS:
                before = payload.get("before")
                wanted = before if isinstance(before, int) else 0
                found += [self._call(call) for call in islice(calls, max(0, wanted - sent))]
                sent = max(sent, wanted)
            elif kind == PHASE:
                phase = payload.get("phase")
            elif payload:
                found += self._returned(payload)
            elif text := _spoken(part):
                found.append({"role": "assistant", "content": text, **({"phase": phase} if phase else {})})
                phase = None
        found += [self._call(call) for call in calls]
        return found or [{"role": "assistant", "content": ""}]

    def _call(self, call: ToolCall) -> dict[str, object]:
        return {
            "type": "function_call",
            "call_id": call.id,
            "name": self._tools.sent(call.name),
            "arguments": arguments_sent(call.arguments_json),
        }

    def _returned(self, payload: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
        """Yield an item that goes back unchanged, but none that stands for something the server did not keep."""
        if payload.get("type") == "chat":
            return
        readable = payload.get("encrypted_content") or payload.get("content")
        if payload.get("type") == "reasoning" and not self._stored and not readable:
            return  # by its id alone the server answers 404: it keeps no items when `store` is false
        yield payload


def _own(part: Part) -> Mapping[str, object]:
    if isinstance(part, Opaque) and part.provider == PROVIDER:
        return obj(part.payload)
    return {}


def _spoken(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Data(value_json):
            return value_json
        case Opaque(provider) if provider:
            return ""
    raise refuse_part(part, "assistant message of a Responses request", "send it in a user message, or as text")


def _fields(model: str, options: OpenAIOptions, defaults: LLMDefaults, tools: ToolTable) -> dict[str, object]:
    fields: dict[str, object] = {
        "instructions": defaults.system or None,
        "max_output_tokens": defaults.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "reasoning": {"effort": options.reasoning_effort} if options.reasoning_effort else None,
        "store": options.store,
        "include": ["reasoning.encrypted_content"] if reasons(model, options) else None,
    }
    if tools.tools:
        fields["parallel_tool_calls"] = options.parallel_tool_calls
        fields["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "parameters": tool.parameters,
                "strict": tool.strict,  # always said: left out, the server takes every schema for a strict one
            }
            for tool in tools.tools
        ]
    return {name: value for name, value in fields.items() if value is not None}
