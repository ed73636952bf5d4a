"""Answers of the Messages API, whole or as events, turned into Atlas' values. No I/O.

Sources: platform.claude.com/docs/en/api/messages/create and /docs/en/build-with-claude/streaming, API version
2026-10-21, read November 2026. The API adds kinds of events, blocks and deltas without notice: what is not known
here is carried as an opaque part, and goes back to the server as it came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atlas_anthropic._blocks import PROVIDER
from atlas_core import (
    ChatMessage,
    FinishReason,
    LLMDelta,
    LLMResponse,
    Opaque,
    Part,
    ProviderResponseError,
    Text,
    ToolCall,
    Usage,
)

__all__ = ["AnswerReader", "UnreadableError", "is_error", "read_models"]

_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.STOP,  # the calls decide; the label alone calls nothing
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.DECLINED,
}
_CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class UnreadableError(Exception):
    """What the server sent is no message; the text says how. Private, made a typed error where the server is known."""


def read_models(page: object) -> tuple[set[str], str | None]:
    """Return the models on one page of the server's list, and the id after which the next one begins.

    Raises:
        ProviderResponseError: It is no such page.
    """
    data = page.get("data") if isinstance(page, Mapping) else None
    if not isinstance(page, Mapping) or not isinstance(data, list):
        raise ProviderResponseError("the server's list of models has no `data`", remedy="check base_url")
    names = {item["id"] for item in data if isinstance(item, Mapping) and isinstance(item.get("id"), str)}
    last = _text(page.get("last_id"))
    return names, last if names and page.get("has_more") is True else None


def is_error(event: Mapping[str, Any]) -> bool:
    """Tell whether an event stands for a failure; some servers leave out its type."""
    return event.get("type") == "error" or ("type" not in event and "error" in event)


class _Block:
    """One block of an answer while it is being written."""

    __slots__ = ("citations", "deltas", "kind", "pieces", "start")

    def __init__(self, start: Mapping[str, Any]) -> None:
        kind, citations = start.get("type"), start.get("citations")
        if not isinstance(kind, str):
            raise UnreadableError(f"a block of the answer has no type: {start!r}")
        self.start = dict(start)
        self.kind = kind
        self.pieces: list[str] = []
        self.citations: list[object] = list(citations) if isinstance(citations, list) else []
        self.deltas: dict[str, object] = {}


class AnswerReader:
    """Builds one answer, from a whole message or from events.

    An answer that the server paused (`pause_turn`) is gone on with by `begin_next`: blocks and usage add up.

    Args:
        own_names: Each tool's own name by its name on the wire.

    Attributes:
        ended: Whether the message came to its end.
        shown: Whether anything of it was handed out.
    """

    def __init__(self, own_names: Mapping[str, str]) -> None:
        self._own_names = own_names
        self._done: list[_Block] = []
        self._usage = Usage()
        self._model = ""
        self.restart()

    def restart(self) -> None:
        """Drop what came since the request was sent."""
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._reason: str | None = None
        self._details: Mapping[str, Any] = {}
        self.ended = False
        self.shown = False

    def may_restart(self) -> bool:
        """Drop what came, for another attempt, unless something of it was handed out or it is complete."""
        if self.shown or self.ended:
            return False
        self.restart()
        return True

    @property
    def text(self) -> str:
        """The text that came so far."""
        return "".join(_joined(block, "text") for block in self._done + self._blocks if block.kind == "text")

    @property
    def paused(self) -> bool:
        """Whether the server waits to be asked to go on: a paused turn without a call that is ours to make."""
        return self._reason == "pause_turn" and not any(block.kind == "tool_use" for block in self._blocks)

    def begin_next(self) -> None:
        """Keep what came, for the request that goes on with it."""
        self._done += self._blocks
        self._usage += self._read_usage()
        self.restart()

    # A whole message -------------------------------------------------------------------------------------------

    def read(self, payload: object) -> None:
        """Read a whole message.

        Raises:
            UnreadableError: It is none.
        """
        if not isinstance(payload, Mapping):
            raise UnreadableError(f"the answer is a JSON {type(payload).__name__} and no message")
        content = payload.get("content")
        if isinstance(content, str):  # as servers of other makers have it
            content = [{"type": "text", "text": content}]
        if content is None and payload.get("stop_reason") is not None:
            content = []
        if not isinstance(content, list):
            raise UnreadableError("the answer is no message: it has no `content`")
        for block in content:
            if not isinstance(block, Mapping):
                raise UnreadableError(f"the answer's `content` holds a {type(block).__name__}, expected blocks")
            self._blocks.append(_Block(block))
        self._note_message(payload)
        self.ended = True

    def _note_message(self, message: Mapping[str, Any]) -> None:
        self._model = _text(message.get("model")) or self._model
        self._note_end(message)
        self._note_usage(message.get("usage"))

    def _note_end(self, facts: Mapping[str, Any]) -> None:
        self._reason = _text(facts.get("stop_reason")) or self._reason
        if isinstance(details := facts.get("stop_details"), Mapping):
            self._details = details

    def _note_usage(self, usage: object) -> None:
        if not isinstance(usage, Mapping):
            return
        # Counts are totals so far, and a later event leaves out those that did not change.
        details = usage.get("output_tokens_details")
        found = {name: usage.get(name) for name in _COUNTS}
        found["thinking_tokens"] = details.get("thinking_tokens") if isinstance(details, Mapping) else None
        self._counts |= {k: v for k, v in found.items() if isinstance(v, int) and not isinstance(v, bool) and v >= 0}

    # Events ----------------------------------------------------------------------------------------------------

    def feed(self, event: Mapping[str, Any]) -> LLMDelta | None:
        """Take one event; return what of it may be shown.

        Raises:
            UnreadableError: It is of a known kind and lacks what that kind has.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            delta = event.get("delta")
            if not isinstance(delta, Mapping):
                raise UnreadableError("an event content_block_delta has no `delta`")
            return self._take(delta, _index(event))
        if kind == "content_block_start":
            return self._start_block(event)
        if kind == "content_block_stop":
            self._open.pop(_index(event), None)
        elif kind == "message_start":
            message = event.get("message")
            if isinstance(message, Mapping):
                self._note_message(message)
        elif kind == "message_delta":
            delta = event.get("delta")
            self._note_end(delta if isinstance(delta, Mapping) else {})
            self._note_usage(event.get("usage"))
        elif kind == "message_stop":
            self.ended = True
            return self._show(self._decline_text(), "text")
        elif kind == "message":  # a server that can't stream answers as a whole
            return self.take_whole(event)
        return None  # a ping, or a kind that came later than this code

    def take_whole(self, payload: object) -> LLMDelta | None:
        """Take a whole message that came in place of events; return its text.

        Raises:
            UnreadableError: It is no message.
        """
        self.read(payload)
        texts = [_joined(block, "text") for block in self._blocks if block.kind == "text"]
        return self._show("".join([*texts, self._decline_text()]), "text")

    def _start_block(self, event: Mapping[str, Any]) -> LLMDelta | None:
        start = event.get("content_block")
        if not isinstance(start, Mapping):
            raise UnreadableError("an event content_block_start has no `content_block`")
        # A start on an index that is taken is a new block: some servers give all of them the same one.
        block = self._open[_index(event)] = _Block(start)
        self._blocks.append(block)
        field = {"text": "text", "thinking": "thinking"}.get(block.kind, "")
        return self._show(_text(start.get(field)) or "", "reasoning" if block.kind == "thinking" else "text")

    def _take(self, delta: Mapping[str, Any], index: int) -> LLMDelta | None:
        kind = delta.get("type")
        block = self._open.get(index)
        if block is None:
            block = self._infer(kind, index)
        if kind == "text_delta":
            return self._grow(block, delta.get("text"), "text")
        if kind == "thinking_delta":
            return self._grow(block, delta.get("thinking"), "reasoning")
        if kind == "input_json_delta":
            self._grow(block, delta.get("partial_json"), "")
        elif kind == "citations_delta":
            block.citations.append(delta.get("citation"))
        else:
            _merge(block, delta)
        return None

    def _infer(self, kind: object, index: int) -> _Block:
        """Begin the block of a delta whose start did not come."""
        if kind == "text_delta":
            block = _Block({"type": "text", "text": ""})
        elif kind == "thinking_delta":
            block = _Block({"type": "thinking", "thinking": ""})
        else:
            raise UnreadableError(f"an event content_block_delta ({kind!r}) belongs to no block")
        self._open[index] = block
        self._blocks.append(block)
        return block

    def _grow(self, block: _Block, piece: object, kind: str) -> LLMDelta | None:
        if not isinstance(piece, str) or not piece:
            return None
        block.pieces.append(piece)
        return self._show(piece, kind) if kind else None

    def _show(self, text: str, kind: str) -> LLMDelta | None:
        if not text:
            return None
        self.shown = True
        return LLMDelta(text, kind)

    # The answer ------------------------------------------------------------------------------------------------

    def _decline_text(self) -> str:
        """Return what a refused answer ends with: why, in words for a person; "" if it was not refused."""
        if self._reason != "refusal":
            return ""
        told = _text(self._details.get("explanation"))
        category = _text(self._details.get("category"))
        text = told or "The model declined" + (f": {category}." if category else ", without a reason.")
        written = any(block.kind == "text" and _joined(block, "text") for block in self._done + self._blocks)
        return f"\n\n{text}" if written else text

    def finish(self, request_id: str | None = None) -> LLMResponse:
        """Return the answer.

        Raises:
            UnreadableError: A call in it has no name.
        """
        parts, calls = self._parts_and_calls()
        if declined := self._decline_text():
            parts.append(Text(declined))
        reason = _REASONS.get(self._reason or "", FinishReason.UNKNOWN)
        if calls and reason in {FinishReason.STOP, FinishReason.UNKNOWN}:
            reason = FinishReason.TOOL_CALLS
        content: str | tuple[Part, ...] = tuple(parts)
        if len(parts) == 1 and isinstance(parts[0], Text):
            content = parts[0].text
        return LLMResponse(
            message=ChatMessage.assistant(content or "", calls),
            finish_reason=reason,
            usage=self._usage + self._read_usage(),
            model=self._model,
            request_id=request_id,
        )

    def continuation(self) -> ChatMessage:
        """Return what came so far, to be sent back so that the server goes on."""
        parts, calls = self._parts_and_calls()
        return ChatMessage.assistant(parts, calls)

    def _read_usage(self) -> Usage:
        count = self._counts.get
        cached = count("cache_read_input_tokens", 0)
        return Usage(
            # `input_tokens` of the API leaves out what was read from and written to the cache.
            input_tokens=count("input_tokens", 0) + count("cache_creation_input_tokens", 0) + cached,
            cached_input_tokens=cached,
            output_tokens=count("output_tokens", 0),
            reasoning_tokens=count("thinking_tokens", 0),
            requests=1,
        )

    def _parts_and_calls(self) -> tuple[list[Part], list[ToolCall]]:
        blocks = self._done + self._blocks
        parts: list[Part] = []
        calls: list[ToolCall] = []
        last = max((n for n, block in enumerate(blocks) if block.kind != "tool_use"), default=-1)
        for n, block in enumerate(blocks):
            if block.kind == "tool_use":
                extras = _extras(block)
                if extras or n < last:
                    parts.append(_opaque({"type": "tool_use", "index": len(calls), **extras}))
                calls.append(self._call(block))
            else:
                parts += self._parts_of(block)
        return parts, calls

    def _call(self, block: _Block) -> ToolCall:
        name = _text(block.start.get("name"))
        if not name:
            raise UnreadableError("a call in the answer has no name")
        call_id = _text(block.start.get("id")) or ""
        return ToolCall(call_id, self._own_names.get(name, name), _arguments(block))

    def _parts_of(self, block: _Block) -> list[Part]:
        if block.kind == "text":
            text = _joined(block, "text")
            if not text:
                return []
            cited = [_opaque({"type": "citations", "citations": block.citations})] if block.citations else []
            return [Text(text), *cited]
        payload = {**block.start, **block.deltas}
        if block.kind == "thinking":
            payload["thinking"] = _joined(block, "thinking")
            if self._reason in _CUT and not payload.get("signature"):
                return []  # cut before it was signed: the API refuses it when it comes back
        elif block.pieces:
            payload["input"] = _decoded("".join(block.pieces))
        return [_opaque(payload)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _joined(block: _Block, field: str) -> str:
    return (_text(block.start.get(field)) or "") + "".join(block.pieces)


def _opaque(payload: Mapping[str, object]) -> Opaque:
    return Opaque(PROVIDER, json.dumps(payload, ensure_ascii=False))


def _arguments(block: _Block) -> str:
    """Return a call's arguments as text: the pieces as the model wrote them, or the object that came at once."""
    written = "".join(block.pieces)
    if written:
        return written
    value = block.start.get("input")
    if isinstance(value, str):  # as servers of other makers have it
        return value or "{}"
    return "{}" if value is None else json.dumps(value, ensure_ascii=False)


def _extras(block: _Block) -> dict[str, object]:
    """Return what a call's block holds besides the call, and must be carried back."""
    known = {"type", "id", "name", "input", "index"}
    found = {k: v for k, v in {**block.start, **block.deltas}.items() if k not in known and v is not None}
    if found.get("caller") == {"type": "direct"}:
        del found["caller"]  # what the API takes where it is left out
    return found


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _merge(block: _Block, delta: Mapping[str, Any]) -> None:
    """Lay a delta over a block: a signature comes whole, texts of kinds that are newer than this code in pieces."""
    for key, value in delta.items():
        if key == "type":
            continue
        before = block.deltas.get(key, block.start.get(key))
        in_pieces = delta.get("type") != "signature_delta" and isinstance(value, str) and isinstance(before, str)
        block.deltas[key] = f"{before}{value}" if in_pieces else value
