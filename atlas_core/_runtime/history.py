"""Makes any history a valid conversation: every tool call followed by exactly one result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from atlas_core.messages import ChatMessage, ToolCall

__all__ = ["INTERRUPTED", "Ids", "read_history", "repair"]

INTERRUPTED = "interrupted: the run ended before this call had a result; it may have taken effect"


class Ids:
    """Hands out call ids that are unique in a conversation.

    Some servers send one constant id for every call, or none; providers refuse a request where an id repeats.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str, fallback: str) -> str:
        """Return `wanted` if it is new, else a variant of it; `fallback` stands in for an empty one."""
        base = wanted or fallback
        new = base
        while new in self._seen:
            # Counted on, since some servers give every call of a long conversation one id.
            n = self._next[base] = self._next.get(base, 1) + 1
            new = f"{base}-{n}"
        self._seen.add(new)
        return new


def read_history(history: Iterable[ChatMessage | Mapping[str, object]] | None) -> list[ChatMessage]:
    """Return a list of our own; the caller's is never touched again.

    Raises:
        TypeError: An item is neither a message nor a mapping; the text has its index.
        ValueError: A mapping is no message.
    """
    messages: list[ChatMessage] = []
    for index, item in enumerate(history or ()):
        if isinstance(item, ChatMessage):
            messages.append(item)
        elif isinstance(item, Mapping):
            try:
                messages.append(ChatMessage.from_dict(item))
            except ValueError as exc:
                raise ValueError(f"history[{index}]: {exc}") from exc
        else:
            raise TypeError(f"history[{index}] is a {type(item).__name__}, expected a ChatMessage or a mapping")
    return messages


def repair(messages: Iterable[ChatMessage], ids: Ids) -> tuple[list[ChatMessage], list[str]]:
    """Return a valid conversation and what had to be changed for it.

    A call without result gets one that says "interrupted"; a result that answers no open call is dropped; a
    repeated id is rewritten on both sides. Results are matched to open calls in order, since ids are unique
    within one message at best.
    """
    out: list[ChatMessage] = []
    repairs: list[str] = []
    open_calls: list[tuple[str, ToolCall]] = []  # the id as it was given, and the call under its final id
    for message in messages:
        if message.role == "tool":
            _match(message, open_calls, out, repairs)
            continue
        _close(open_calls, out, repairs)
        if message.tool_calls:
            message = _with_unique_ids(message, ids, open_calls, repairs)  # noqa: PLW2901  # one message, repaired
        elif message.role == "assistant" and not message.content:
            repairs.append("left out an empty assistant message")
            continue
        out.append(message)
    _close(open_calls, out, repairs)
    return out, repairs


def _with_unique_ids(
    message: ChatMessage, ids: Ids, open_calls: list[tuple[str, ToolCall]], repairs: list[str]
) -> ChatMessage:
    calls = []
    for call in message.tool_calls:
        new = ids.unique(call.id, "call")
        if new != call.id:
            repairs.append(f"renamed call {call.id!r} to {new!r}")
        final = call if new == call.id else dataclasses.replace(call, id=new)
        open_calls.append((call.id, final))
        calls.append(final)
    return dataclasses.replace(message, tool_calls=tuple(calls))


def _match(
    message: ChatMessage, open_calls: list[tuple[str, ToolCall]], out: list[ChatMessage], repairs: list[str]
) -> None:
    for index, (given, call) in enumerate(open_calls):
        if given == message.tool_call_id:
            del open_calls[index]
            out.append(message if call.id == given else dataclasses.replace(message, tool_call_id=call.id))
            return
    repairs.append(f"dropped a result for {message.tool_call_id!r}, which no open call has")


def _close(open_calls: list[tuple[str, ToolCall]], out: list[ChatMessage], repairs: list[str]) -> None:
    for _, call in open_calls:
        out.append(ChatMessage.tool(call, INTERRUPTED, is_error=True))
        repairs.append(f"answered call {call.id!r} to {call.name!r} as interrupted")
    open_calls.clear()
