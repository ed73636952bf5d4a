"""What both protocols share of the translation: JSON, arguments, parts, usage, and why a reply can't be read."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from atlas_core import ChatMessage, File, FinishReason, Image, LLMDelta, LLMResponse, Opaque, Part, ProviderError, Usage

__all__ = [
    "FILTERED",
    "PROVIDER",
    "BadReplyError",
    "Encoder",
    "Reader",
    "ServerSaidError",
    "arguments_read",
    "arguments_sent",
    "content_of",
    "count",
    "data_url",
    "decode",
    "encode",
    "is_whole",
    "items",
    "number",
    "obj",
    "refuse_part",
    "settle",
    "text",
    "usage_of",
]

PROVIDER = "openai"
"""The name under which `Opaque` parts are kept for either protocol."""

FILTERED = "The provider's content filter stopped this answer."


class BadReplyError(Exception):
    """A reply with a good status is not what the protocol says.

    Args:
        problem: What the server did, as the end of a sentence that begins with its name.
        retryable: Whether the same request may succeed.
        excerpt: What it sent, or "".
    """

    def __init__(self, problem: str, *, retryable: bool = False, excerpt: str = "") -> None:
        super().__init__(problem, retryable)
        self.problem = problem
        self.retryable = retryable
        self.excerpt = excerpt


class ServerSaidError(Exception):
    """The server put an error into a reply with a good status.

    Args:
        payload: The JSON value that holds it.
    """

    def __init__(self, payload: Mapping[str, object]) -> None:
        super().__init__(payload)
        self.payload = payload


class Encoder(Protocol):
    """Turns a run's conversation into request bodies; one per session."""

    path: str

    def message(self, message: ChatMessage) -> bytes:
        """Return a message as the items of a JSON array, without its brackets."""

    def body(self, messages: bytes, *, stream: bool) -> tuple[bytes, ...]:
        """Return a request's body in pieces around the messages."""


class Reader(Protocol):
    """Builds a response from the chunks of a stream; one per attempt.

    Attributes:
        ended: Whether the model's answer is complete; what may still come is usage.
        awaits_usage: Whether no usage came yet.
        text: What was read so far.
    """

    ended: bool

    @property
    def awaits_usage(self) -> bool:
        """Whether no usage came yet."""

    @property
    def text(self) -> str:
        """The text so far."""

    def feed(self, chunk: object) -> Sequence[LLMDelta]:
        """Take a chunk's JSON value and return what it adds.

        Raises:
            BadReplyError: It is no chunk.
            ServerSaidError: It holds an error.
        """

    def response(self, *, done: bool) -> LLMResponse:
        """Return the whole response.

        Args:
            done: Whether the server said that the stream is at its end, as opposed to just ending it.
        Raises:
            BadReplyError: The stream was interrupted, or it held no answer.
        """


# Writing -------------------------------------------------------------------------------------------------------


def encode(value: object) -> bytes:
    """Return a value as compact JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def arguments_sent(written: str) -> str:
    """Return a call's arguments as they are sent back in the history.

    Servers that fill a template decode them and fail with a status of 400 or 500 on anything but an object, which
    would end the run at a mistake that the model could correct. So text that is no object travels inside of one.
    """
    bare = written.strip()
    if bare in {"", "null"}:
        return "{}"
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        value = None
    return written if isinstance(value, dict) else encode({"invalid_arguments": written}).decode()


def data_url(part: Image | File) -> str:
    """Return a part's bytes as a `data:` address."""
    return f"data:{part.media_type};base64,{base64.b64encode(part.data or b'').decode('ascii')}"


def refuse_part(part: Part, where: str, remedy: str) -> ProviderError:
    """Return the error for a part that can't be sent."""
    kind = type(part).__name__
    shown = f" of type {part.media_type!r}" if isinstance(part, Image | File) else ""
    if isinstance(part, Opaque):
        payload = part.payload
        given = payload.get("type") if isinstance(payload, dict) else None
        kind, shown = "part", f" of unknown kind {given!r}"
    return ProviderError(f"a {kind.lower()}{shown} can't be sent in a {where}", remedy=remedy)


# Reading -------------------------------------------------------------------------------------------------------


_NUMBER = re.compile(r"[0-9]{1,9}")
_scan = json.JSONDecoder().raw_decode


def decode(text: str) -> object:
    """Return a JSON value; in a burst of small ones, `json.loads` takes half of its time to look for spaces.

    Raises:
        ValueError: The text is no JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        value, end = _scan(text)
    except ValueError:
        end = -1
    return value if end == len(text) else json.loads(text)


def obj(value: object) -> Mapping[str, object]:
    """Return a JSON object, an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return a JSON array, an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text, "" in place of anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """Return what numbers a choice, a call or an item, also where a server writes it as "0" or 0.0; else None."""
    if isinstance(value, str):
        return int(value) if _NUMBER.fullmatch(value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(*values: object) -> int:
    """Return the first of the values that is a number of tokens, else 0."""
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
            return int(value)
    return 0


def usage_of(data: object) -> Usage:
    """Read the usage of either protocol.

    Sources: the vendor's own package, openai 3.57.0 of November 2026, `types.completion_usage` and
    `types.responses.response_usage`; `prompt_cache_hit_tokens` is DeepSeek's (api-docs.deepseek.com, "Context
    caching").
    """
    usage = obj(data)
    read = obj(usage.get("prompt_tokens_details")) or obj(usage.get("input_tokens_details"))
    written = obj(usage.get("completion_tokens_details")) or obj(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("prompt_tokens"), usage.get("input_tokens")),
        cached_input_tokens=count(read.get("cached_tokens"), usage.get("prompt_cache_hit_tokens")),
        output_tokens=count(usage.get("completion_tokens"), usage.get("output_tokens")),
        reasoning_tokens=count(written.get("reasoning_tokens")),
        requests=1,
    )


def arguments_read(value: object) -> str:
    """Return a call's arguments as text: servers also send an object, or nothing for a tool without parameters."""
    if isinstance(value, str):
        return value
    return "{}" if value is None else encode(value).decode()


def is_whole(arguments: str) -> bool:
    """Tell whether arguments are a complete JSON value."""
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def content_of(parts: Sequence[Part], written: str) -> str | tuple[Part, ...]:
    """Return a message's content: plain text where there is nothing else."""
    return tuple(parts) if any(isinstance(part, Opaque) for part in parts) else written


_REASONS = {
    "content_filter": FinishReason.DECLINED,
    "end_turn": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "refusal": FinishReason.DECLINED,
    "safety": FinishReason.DECLINED,
    "stop": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
}
_FAILED = frozenset({"abort", "aborted", "cancelled", "error", "failed"})


def settle(reason: object, *, calls: bool, refused: bool) -> FinishReason:
    """Return why the model stopped, by what the message holds first and by the server's label second.

    Raises:
        BadReplyError: The label says that the server gave up.
    """
    label = text(reason).lower()
    if label in _FAILED:
        raise BadReplyError(f"ended the answer with the reason {label!r}", retryable=True)
    said = _REASONS.get(label, FinishReason.UNKNOWN)
    if refused or said is FinishReason.DECLINED:
        return FinishReason.DECLINED
    if said is FinishReason.LENGTH:
        return said
    if calls:
        return FinishReason.TOOL_CALLS
    return FinishReason.STOP if said is FinishReason.TOOL_CALLS else said
