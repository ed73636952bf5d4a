"""Turns what `atlas_core.events.to_dict` wrote back into events."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from atlas_core import events as ev
from atlas_core.interfaces.executors import CallStatus
from atlas_core.messages import ChatMessage, RunOutcome, ToolCall, Usage
from atlas_core.names import did_you_mean

__all__ = ["event_from_dict"]

_CLASSES: Mapping[str, type[ev.Event]] = {
    cls.__name__: cls
    for cls in (
        ev.RunStarted,
        ev.HistoryRepaired,
        ev.ModelRequested,
        ev.TextDelta,
        ev.ModelResponded,
        ev.ToolCallStarted,
        ev.ToolCallEnded,
        ev.RunWarning,
        ev.RunEnded,
    )
}


def event_from_dict(data: object) -> ev.Event:
    """Read an event from its JSON form. Keys that this version does not know are passed over.

    Raises:
        ValueError: It is no event, or a value has the wrong type; the text names it.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"a {type(data).__name__}, expected an object")
    kind = data.get("event")
    cls = _CLASSES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"unknown event {kind!r}; {did_you_mean(str(kind), _CLASSES, what='known')}")
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name in data:
            values[field.name] = _read(field.name, str(field.type), data[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            # Empty fields are not written.
            values[field.name] = _empty(field.name, str(field.type))
    return cls(**values)


def _empty(name: str, annotation: str) -> object:
    if annotation == "str":
        return ""
    if annotation.startswith("tuple"):
        return ()
    raise ValueError(f"{name} is missing")


def _read(name: str, annotation: str, value: Any) -> object:
    try:
        return _READERS[annotation](value)
    except (TypeError, ValueError) as exc:
        raise ValueError(f"{name}: {exc}") from exc


def _exactly(kind: type) -> Callable[[object], object]:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"a {type(value).__name__}, expected {kind.__name__}")
        return value

    return read


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"a {type(value).__name__}, expected a number")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"a {type(value).__name__}, expected an object")
    return value


def _call(value: object) -> ToolCall:
    data = _object(value)
    text = _exactly(str)
    return ToolCall(
        id=str(text(data.get("id", ""))),
        name=str(text(data.get("name", ""))),
        arguments_json=str(text(data.get("arguments", "{}"))),
    )


def _usage(value: object) -> Usage:
    data = _object(value)
    readers: dict[str, Callable[[object], Any]] = {"int": _exactly(int), "float": _number}
    fields = [field for field in dataclasses.fields(Usage) if field.name in data]
    return Usage(**{field.name: readers[str(field.type)](data[field.name]) for field in fields})


def _items(read: Callable[[object], object]) -> Callable[[object], tuple[object, ...]]:
    def read_all(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise ValueError(f"a {type(value).__name__}, expected a list")
        return tuple(read(item) for item in value)

    return read_all


def _message(value: object) -> ChatMessage:
    return ChatMessage.from_dict(_object(value))


# By the fields' annotations; a test holds the table against the classes.
_READERS: Mapping[str, Callable[[object], object]] = {
    "str": _exactly(str),
    "str | None": _exactly(str),
    "int": _exactly(int),
    "float": _number,
    "bool": _exactly(bool),
    "tuple[str, ...]": _items(_exactly(str)),
    "tuple[ChatMessage, ...]": _items(_message),
    "ChatMessage": _message,
    "ToolCall": _call,
    "Usage": _usage,
    "CallStatus": lambda value: CallStatus(str(value)),
    "RunOutcome": lambda value: RunOutcome(str(value)),
}
