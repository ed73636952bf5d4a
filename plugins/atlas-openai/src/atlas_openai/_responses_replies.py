"""Replies of Responses, whole and streamed.

Source: the vendor's own package, openai 3.57.0 of November 2026, `types.responses`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from atlas_core import ChatMessage, FinishReason, LLMDelta, LLMResponse, Opaque, Text, ToolCall, Usage
from atlas_openai._responses_requests import CALLS, PHASE
from atlas_openai._wire import (
    FILTERED,
    PROVIDER,
    BadReplyError,
    ServerSaidError,
    arguments_read,
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

__all__ = ["ResponsesReader", "read_response"]

_NOTHING: tuple[LLMDelta, ...] = ()
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONED = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


def read_response(body: object, tools: ToolTable) -> LLMResponse:
    """Read a whole response.

    Args:
        body: The body's JSON value.
        tools: The run's tools.
    Raises:
        BadReplyError: It holds no answer.
        ServerSaidError: It holds an error.
    """
    if not isinstance(body, dict):
        raise BadReplyError(f"answered with a JSON {type(body).__name__} in place of an object")
    _refuse_errors(body)
    if "output" not in body and text(body.get("message") or body.get("detail")):
        raise ServerSaidError({"error": body})
    status = body.get("status")
    if not isinstance(body.get("output"), list):
        raise BadReplyError("answered without an output", retryable=True)
    if status in ("queued", "in_progress"):
        raise BadReplyError(f"answered with a response that is {status!r}: leave out background in extra_body")
    return _Output(tools).read(body)


def _refuse_errors(body: Mapping[str, object]) -> None:
    if body.get("error") or "error" in (body.get("type"), body.get("object")):
        raise ServerSaidError(body)
    if body.get("status") in ("failed", "cancelled"):
        raise ServerSaidError({"error": {"message": f"the response is {body['status']}", "type": "server_error"}})


class _Output:
    """Collects the parts of a message from the items of a response, in their order."""

    def __init__(self, tools: ToolTable) -> None:
        self._tools = tools
        self._parts: list[Part] = []
        self._calls: list[ToolCall] = []
        self._marked = 0
        self._refusal: list[str] = []

    def read(self, body: Mapping[str, object]) -> LLMResponse:
        """Read a response that is at its end."""
        for item in items(body.get("output")):
            self._take(obj(item))
        reason = settle(self._reason(body), calls=bool(self._calls), refused=bool(self._refusal))
        written = "".join(part.text for part in self._parts if isinstance(part, Text))
        if reason is FinishReason.DECLINED and not written:
            written = "".join(self._refusal) or FILTERED
            self._parts.append(Text(written))
        usage = body.get("usage")
        return LLMResponse(
            message=ChatMessage.assistant(content_of(self._parts, written), self._calls),
            finish_reason=reason,
            usage=usage_of(usage) if usage else Usage(requests=1),
            model=text(body.get("model")),
            request_id=text(body.get("id")) or None,
        )

    def _reason(self, body: Mapping[str, object]) -> object:
        if body.get("status") != "incomplete":
            return "stop"
        return text(obj(body.get("incomplete_details")).get("reason")) or "incomplete"

    def _take(self, item: Mapping[str, object]) -> None:
        match item.get("type"):
            case "message":
                self._mark()
                self._take_message(item)
            case "function_call":
                self._take_call(item)
            case str():
                # Reasoning, and whatever the server's own tools did: it alone can read them.
                self._mark()
                self._parts.append(Opaque(PROVIDER, json.dumps(item, ensure_ascii=False)))

    def _mark(self) -> None:
        """Note that calls came before what follows: the server wants its items back in their order."""
        if len(self._calls) > self._marked:
            self._marked = len(self._calls)
            self._parts.append(Opaque(PROVIDER, json.dumps({"type": CALLS, "before": self._marked})))

    def _take_message(self, item: Mapping[str, object]) -> None:
        written = item.get("content")
        parts = items(written)
        spoken = written if isinstance(written, str) else "".join(text(obj(part).get("text")) for part in parts)
        self._refusal += [said for part in parts if (said := text(obj(part).get("refusal")))]
        if spoken:
            if phase := text(item.get("phase")):
                self._parts.append(Opaque(PROVIDER, json.dumps({"type": PHASE, "phase": phase})))
            self._parts.append(Text(spoken))

    def _take_call(self, item: Mapping[str, object]) -> None:
        name = text(item.get("name"))
        arguments = arguments_read(item.get("arguments")) or "{}"
        given = text(item.get("call_id")) or text(item.get("id"))
        self._calls.append(ToolCall(given, self._tools.named(name), self._tools.restored(name, arguments)))


class ResponsesReader:
    """Builds a response from a stream's events.

    Args:
        tools: The run's tools.
    """

    def __init__(self, tools: ToolTable) -> None:
        self._tools = tools
        self._pieces: list[str] = []
        self._items: list[tuple[int, Mapping[str, object]]] = []
        self._last: Mapping[str, object] | None = None
        self.ended = False

    @property
    def awaits_usage(self) -> bool:
        """Never: the closing event has it."""
        return False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def feed(self, chunk: object) -> Sequence[LLMDelta]:
        """Take an event."""
        if not isinstance(chunk, dict):
            raise BadReplyError(f"sent a JSON {type(chunk).__name__} in place of an event")
        kind = chunk.get("type")
        if kind in _SPOKEN:
            piece = text(chunk.get("delta"))
            self._pieces.append(piece)
            return (LLMDelta(piece),) if piece else _NOTHING
        if kind in _REASONED:
            piece = text(chunk.get("delta"))
            return (LLMDelta(piece, "reasoning"),) if piece else _NOTHING
        if kind == "response.output_item.done":
            index, item = number(chunk.get("output_index")), obj(chunk.get("item"))
            entry = (len(self._items) if index is None else index, item)
            # Servers give several items one number or one id; only what is the same to the letter is sent again.
            if not (item.get("id") and entry in self._items):
                self._items.append(entry)
        elif kind in _ENDS:
            self._end(obj(chunk.get("response")), str(kind))
        elif kind == "error" or chunk.get("error") or not kind:
            _refuse_errors(chunk)
        return _NOTHING

    def _end(self, response: Mapping[str, object], kind: str) -> None:
        status = response.get("status") or kind.removeprefix("response.")
        _refuse_errors({**response, "status": status})
        self.ended = True
        output: object = response.get("output") or [item for _, item in sorted(self._items, key=itemgetter(0))]
        if not output and self._pieces:  # a server that sends deltas and nothing else
            output = [{"type": "message", "content": self.text}]
        self._last = {**response, "status": status, "output": output}

    def response(self, *, done: bool) -> LLMResponse:
        """Return the whole response."""
        if self._last is None:
            raise BadReplyError("ended the stream without a closing event: interrupted stream", retryable=True)
        return read_response(self._last, self._tools)
