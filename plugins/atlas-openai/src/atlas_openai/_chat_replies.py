"""Replies of Chat Completions, whole and streamed, read with defaults: compatible servers leave out and add freely.

Source: the vendor's own package, openai 3.57.0 of November 2026, `types.chat.chat_completion` and
`types.chat.chat_completion_chunk`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from atlas_core import ChatMessage, FinishReason, LLMDelta, LLMResponse, Opaque, Text, ToolCall, Usage
from atlas_openai._chat_requests import CALL_FIELDS, MESSAGE_FIELDS
from atlas_openai._fragments import Fragments
from atlas_openai._wire import (
    FILTERED,
    PROVIDER,
    BadReplyError,
    ServerSaidError,
    content_of,
    items,
    number,
    obj,
    settle,
    text,
    usage_of,
)

if TYPE_CHECKING:
    from atlas_core import Part
    from atlas_openai._tools import ToolTable

__all__ = ["ChatReader", "read_chat"]

_NOTHING: tuple[LLMDelta, ...] = ()


def read_chat(body: object, tools: ToolTable, *, keep_reasoning: bool = False) -> LLMResponse:
    """Read a whole reply.

    Args:
        body: The body's JSON value.
        tools: The run's tools.
        keep_reasoning: Keep the reasoning text in the message, to be sent back.
    Raises:
        BadReplyError: It holds no answer.
        ServerSaidError: It holds an error.
    """
    reader = ChatReader(tools, keep_reasoning=keep_reasoning)
    if not isinstance(body, dict):
        raise BadReplyError(f"answered with a JSON {type(body).__name__} in place of an object")
    reader.take_whole(body)
    return reader.response(done=True)


class ChatReader:
    """Builds a response from a stream's chunks, or from a whole reply.

    Args:
        tools: The run's tools.
        keep_reasoning: Keep the reasoning text in the message, to be sent back.
    """

    def __init__(self, tools: ToolTable, *, keep_reasoning: bool = False) -> None:
        self._tools = tools
        self._kept = MESSAGE_FIELDS if keep_reasoning else ("reasoning_details",)
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._fields: dict[str, list[object]] = {}
        self._calls = Fragments(tools.offers, CALL_FIELDS)
        self._reason: object = None
        self._usage: object = None
        self._model = ""
        self._id = ""
        self._chosen = False
        self._in_pieces = False
        self.ended = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def awaits_usage(self) -> bool:
        """Whether no usage came yet."""
        return self._usage is None

    # Reading ---------------------------------------------------------------------------------------------------

    def take_whole(self, body: Mapping[str, object]) -> None:
        """Take a reply that came at once."""
        self.feed(body)
        self.ended = True

    def feed(self, chunk: object) -> Sequence[LLMDelta]:
        """Take a chunk."""
        if not isinstance(chunk, dict):
            raise BadReplyError(f"sent a JSON {type(chunk).__name__} in place of a chunk")
        choices = chunk.get("choices")
        if not choices or "error" in chunk:
            self._refuse_errors(chunk)
        if chunk.get("usage"):
            self._usage = chunk["usage"]
        if not self._model:
            self._model, self._id = text(chunk.get("model")), text(chunk.get("id"))
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or (choice.get("index") not in (0, None) and number(choice["index"]) != 0):
            return _NOTHING
        self._chosen = True
        reason = choice.get("finish_reason")
        if reason:
            self._reason = reason
            self.ended = True
        return self._from_choice(choice)

    def _from_choice(self, choice: Mapping[str, object]) -> Sequence[LLMDelta]:
        delta = choice.get("delta")
        if delta and isinstance(delta, dict):
            self._in_pieces = True
            return self._take(delta)
        message = choice.get("message")
        if not message or not isinstance(message, dict):
            return _NOTHING
        if self._in_pieces and (self._pieces or self._calls.calls):
            return _NOTHING  # what came in pieces, once more as a whole
        return self._take(message, whole=True)

    def _refuse_errors(self, chunk: Mapping[str, object]) -> None:
        if chunk.get("error") or "error" in (chunk.get("type"), chunk.get("object")):
            raise ServerSaidError(chunk)
        if "choices" not in chunk and text(chunk.get("message") or chunk.get("detail")):
            raise ServerSaidError({"error": chunk})

    def _take(self, delta: Mapping[str, object], *, whole: bool = False) -> Sequence[LLMDelta]:
        content = delta.get("content")
        if type(content) is str and (len(delta) == 1 or (len(delta) == 2 and "role" in delta)):  # most chunks
            if not content:
                return _NOTHING
            self._pieces.append(content)
            return (LLMDelta(content),)
        thought: Sequence[LLMDelta] = self._rest(delta, whole=whole)
        if isinstance(content, list):
            spoken, reasoned = _from_parts(content)
            thought = [*thought, LLMDelta(reasoned, "reasoning")] if reasoned else thought
            self._refusal += [text(obj(part).get("refusal")) for part in content]
            content = spoken
        if isinstance(content, str) and content:
            self._pieces.append(content)
            return (*thought, LLMDelta(content))
        return thought

    def _rest(self, delta: Mapping[str, object], *, whole: bool) -> Sequence[LLMDelta]:
        """Take what is not content, and return the thoughts and refusals in it."""
        add = self._calls.add_whole if whole else self._calls.add
        if calls := items(delta.get("tool_calls")):
            add(calls)
        elif isinstance(delta.get("function_call"), dict):  # the protocol's first form of a call, still spoken
            add([{"index": 0, "function": delta["function_call"]}])
        for name in self._kept:
            if delta.get(name):
                self._fields.setdefault(name, []).append(delta[name])
        found: list[LLMDelta] = []
        reasoned = text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
        if reasoned:
            found.append(LLMDelta(reasoned, "reasoning"))
        refusal = text(delta.get("refusal"))
        if refusal:
            self._refusal.append(refusal)
            found.append(LLMDelta(refusal))
        return found

    # The whole -------------------------------------------------------------------------------------------------

    def response(self, *, done: bool) -> LLMResponse:
        """Return the whole response."""
        if not self._chosen:
            raise BadReplyError("answered without a choice", retryable=True)
        calls = self._calls.calls
        if not self.ended and (not done or calls or self._may_call):
            raise BadReplyError("ended the stream without a finish reason: interrupted stream", retryable=True)
        refusal = "".join(self._refusal)
        reason = settle(self._reason, calls=bool(calls), refused=bool(refusal))
        written = self.text or refusal
        if reason is FinishReason.DECLINED and not written:
            written = FILTERED
        return LLMResponse(
            message=ChatMessage.assistant(self._content(written), self._tool_calls()),
            finish_reason=reason,
            usage=usage_of(self._usage) if self._usage else Usage(requests=1),
            model=self._model,
            request_id=self._id or None,
        )

    @property
    def _may_call(self) -> bool:
        """Whether the text may hold calls, in the form of models without calls of their own."""
        return not self._tools.tools and "tool_calls" in self.text

    def _tool_calls(self) -> list[ToolCall]:
        return [
            ToolCall(call.id, self._tools.named(call.name), self._tools.restored(call.name, call.arguments or "{}"))
            for call in self._calls.calls
        ]

    def _content(self, written: str) -> str | tuple[Part, ...]:
        payload: dict[str, object] = {}
        if self._fields:
            payload["message"] = {name: _merged(values) for name, values in self._fields.items()}
        if any(call.extra for call in self._calls.calls):
            payload["calls"] = [call.extra for call in self._calls.calls]
        if not payload:
            return written
        kept = Opaque(PROVIDER, json.dumps({"type": "chat", **payload}, ensure_ascii=False))
        return content_of([kept, Text(written)] if written else [kept], written)


def _merged(values: Sequence[object]) -> object:
    """Join a field that came in pieces: texts to a text, lists to a list."""
    if all(isinstance(value, str) for value in values):
        return "".join(map(str, values))
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _from_parts(content: Sequence[object]) -> tuple[str, str]:
    """Return the text and the reasoning of a content that is a list, as Mistral and others send it."""
    spoken: list[str] = []
    reasoned: list[str] = []
    for item in content:
        part = obj(item)
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            reasoned.append(inner if isinstance(inner, str) else _from_parts(items(inner))[0])
        else:
            spoken.append(item if isinstance(item, str) else text(part.get("text")))
    return "".join(spoken), "".join(reasoned)
