"""Requests of Chat Completions.

Source: the vendor's own package, openai 3.57.0 of November 2026, `types.chat.completion_create_params`; the tests check
request bodies against these types.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from atlas_core import ChatMessage, Data, File, Image, LLMDefaults, Opaque, Part, Text
from atlas_openai._output import response_format
from atlas_openai._wire import PROVIDER, arguments_sent, data_url, encode, items, obj, refuse_part

if TYPE_CHECKING:
    from atlas_openai._output import OutputForm
    from atlas_openai._tools import ToolTable
    from atlas_openai.options import OpenAIOptions

__all__ = ["ChatEncoder"]

MESSAGE_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
CALL_FIELDS = ("extra_content",)
"""Fields beyond the protocol that servers want back as they wrote them: DeepSeek and vLLM, vLLM and OpenRouter,
OpenRouter; and Gemini's thought signatures on calls."""

_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NO_NAME = re.compile(r"[\s<|\\/>]+")


class ChatEncoder:
    """Turns a run's conversation into bodies of chat requests.

    Args:
        model: The model's name.
        options: The connection's.
        defaults: The run's.
        tools: The run's tools.
        output: The form that answers are held to, or None.
    """

    def __init__(
        self, model: str, options: OpenAIOptions, defaults: LLMDefaults, tools: ToolTable, output: OutputForm | None
    ) -> None:
        below = f"deployments/{quote(model, safe='')}/" if options.path_style == "azure" else ""
        self.path = f"{below}chat/completions"
        self._images = options.images
        self._tools = tools
        fields = {"model": model, **_fields(options, defaults, tools)}
        if output is not None:
            fields["response_format"] = response_format(output)
        head = encode({**fields, **options.extra_body})[:-1] + b',"messages":['
        if defaults.system:
            head += encode({"role": "system", "content": defaults.system})
        self._head = head
        self._has_system = bool(defaults.system)
        usage = b',"stream_options":{"include_usage":true}' if options.stream_usage else b""
        self._tails = (b"]}", b'],"stream":true' + usage + b"}")

    def body(self, messages: bytes, *, stream: bool) -> tuple[bytes, ...]:
        """Return a request's body in pieces around the messages."""
        between = b"," if self._has_system and messages else b""
        return self._head, between, messages, self._tails[stream]

    def message(self, message: ChatMessage) -> bytes:
        """Return a message as one item of `messages`."""
        if message.role == "assistant":
            return encode(self._assistant(message))
        if message.role == "tool":
            return encode({"role": "tool", "tool_call_id": message.tool_call_id, "content": _text_only(message)})
        sent: dict[str, object] = {"role": message.role, "content": self._content(message)}
        if message.name:
            # The vendor refuses a name with spaces or any of <|\/>.
            sent["name"] = _NO_NAME.sub("_", message.name)[:64]
        return encode(sent)

    def _content(self, message: ChatMessage) -> str | list[object]:
        if isinstance(message.content, str):
            return message.content
        if message.role != "user":
            return _text_only(message)
        return [sent for part in message.content if (sent := self._part(part)) is not None]

    def _part(self, part: Part) -> dict[str, object] | None:
        match part:
            case Text(text):
                return {"type": "text", "text": text}
            case Data(value_json):
                return {"type": "text", "text": value_json}
            case Image(url=str(url)) if self._images:
                return {"type": "image_url", "image_url": {"url": url}}
            case Image() if self._images:
                return {"type": "image_url", "image_url": {"url": data_url(part)}}
            case Image():
                raise refuse_part(part, "request to this model", "set images = true in the connection if it reads them")
            case File(data=bytes()):
                return _file(part)
            case Opaque(provider) if provider:
                return None  # another provider's, or another protocol's; nobody else can read it
        remedy = "give its bytes, or set api = 'responses'" if isinstance(part, File) else "write it as text"
        raise refuse_part(part, "chat request", remedy)

    def _assistant(self, message: ChatMessage) -> dict[str, object]:
        text = _text_only(message)
        # Without calls the content may not be null, and without text a call's content may not be "" everywhere.
        sent: dict[str, object] = {"role": "assistant", "content": text or (None if message.tool_calls else "")}
        kept = _kept(message)
        sent.update({key: value for key, value in obj(kept.get("message")).items() if key in MESSAGE_FIELDS})
        if message.tool_calls:
            extras = items(kept.get("calls"))
            if len(extras) != len(message.tool_calls):
                extras = [None] * len(message.tool_calls)
            sent["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": self._tools.sent(call.name), "arguments": arguments_sent(call.arguments_json)},
                    **{key: value for key, value in obj(extra).items() if key in CALL_FIELDS},
                }
                for call, extra in zip(message.tool_calls, extras, strict=True)
            ]
        return sent


def _fields(options: OpenAIOptions, defaults: LLMDefaults, tools: ToolTable) -> dict[str, object]:
    known = options.max_tokens_field
    limit = known or ("max_completion_tokens" if options.is_vendor or options.is_azure else "max_tokens")
    fields: dict[str, object] = {
        limit: defaults.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed,
        "reasoning_effort": options.reasoning_effort,
    }
    if tools.tools:
        fields["parallel_tool_calls"] = options.parallel_tool_calls
        fields["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    **({"description": tool.description} if tool.description else {}),
                    "parameters": tool.parameters,
                    **({"strict": True} if tool.strict else {}),
                },
            }
            for tool in tools.tools
        ]
    return {name: value for name, value in fields.items() if value is not None}


def _file(part: File) -> dict[str, object]:
    if part.media_type in _AUDIO:
        encoded = data_url(part).partition(",")[2]
        return {"type": "input_audio", "input_audio": {"data": encoded, "format": _AUDIO[part.media_type]}}
    name = part.name or f"file{mimetypes.guess_extension(part.media_type) or '.bin'}"
    return {"type": "file", "file": {"filename": name, "file_data": data_url(part)}}


def _text_only(message: ChatMessage) -> str:
    """Return the content of a message whose role takes text alone."""
    if isinstance(message.content, str):
        return message.content
    return "".join(_as_text(part, message.role) for part in message.content)


def _as_text(part: Part, role: str) -> str:
    match part:
        case Text(text):
            return text
        case Data(value_json):
            return value_json
        case Opaque(provider) if provider:
            return ""
    remedy = "send it in a user message, or as text"
    raise refuse_part(part, f"{'tool result' if role == 'tool' else f'{role} message'} of a chat request", remedy)


def _kept(message: ChatMessage) -> dict[str, object]:
    """Return what an earlier reply of this protocol left in the message for its server."""
    if isinstance(message.content, str):
        return {}
    parts: Sequence[Part] = message.content
    payloads = [part.payload for part in parts if isinstance(part, Opaque) and part.provider == PROVIDER]
    return next((dict(p) for p in payloads if isinstance(p, dict) and p.get("type") == "chat"), {})
