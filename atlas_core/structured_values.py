"""Checks of what goes into a message: each takes a value and the key it stands under, and returns a copy in plain JSON.

Whatever is wrong is a `ValueError` whose text begins with the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from atlas_core.messages import CallStatus
from atlas_core.names import did_you_mean

__all__ = [
    "check_call",
    "check_items",
    "check_json",
    "check_name",
    "check_object",
    "check_optional_name",
    "check_result",
    "check_text",
    "check_timestamp",
    "wrong",
]

MAX_DEPTH = 90
"""Arrays and objects inside one another in one value; with those around it, the reader's own limit of 100 holds."""

MAX_INT_BITS = 13_000
"""A longer integer can have more decimal digits, 4,300, than Python reads."""


def wrong(where: str, problem: str) -> ValueError:
    """Return the error for a value; a key from afar may be long and is cut."""
    return ValueError(f"{where if len(where) <= 120 else where[:117] + '...'} {problem}")


def check_json(value: object, where: str, depth: int = 0) -> Any:
    """A JSON value: finite numbers, whole Unicode, keys that are text; tuples count as lists."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value, where)
    if isinstance(value, int):
        if value.bit_length() > MAX_INT_BITS:
            raise wrong(where, f"is an integer of {value.bit_length()} bits, expected at most {MAX_INT_BITS}")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise wrong(where, f"is {value!r}, which JSON does not have; use None or a text")
        return float(value)
    if depth >= MAX_DEPTH:
        raise wrong(where, f"is nested too deeply, expected at most {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {_key(key, where): check_json(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [check_json(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise wrong(where, f"is a {type(value).__name__}, expected a JSON value")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise wrong(where, f"has the key {str(key)[:60]!r}, a {type(key).__name__}, expected text")
    return check_text(key, f"a key of {where}")


def check_text(value: object, where: str) -> str:
    """Text that can be sent as UTF-8; a subclass, such as an agent's `Answer`, becomes plain text."""
    if not isinstance(value, str):
        raise wrong(where, f"is a {type(value).__name__}, expected text")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        # RFC 8259, 8.2 (2017): what readers make of half a pair is unpredictable.
        raise wrong(
            where,
            f"has half a surrogate pair at character {exc.start}; "
            "clean it with text.encode('utf-8', 'replace').decode()",
        ) from None
    return str.__str__(value)


def check_name(value: object, where: str) -> str:
    """Text that is not blank."""
    if not check_text(value, where).strip():
        raise wrong(where, "is blank")
    return check_text(value, where)


def check_optional_name(value: object, where: str) -> str | None:
    """Text that is not blank, or None."""
    return None if value is None else check_name(value, where)


def check_timestamp(value: object, where: str) -> datetime:
    """A time with a zone, as a datetime or in ISO 8601; returned in UTC."""
    if isinstance(value, str):
        text = value[:60]
        try:
            value = datetime.fromisoformat(value)
        except ValueError as exc:
            raise wrong(where, f"{text!r} is no time in ISO 8601") from exc
    if not isinstance(value, datetime):
        raise wrong(where, f"is a {type(value).__name__}, expected a datetime, or text in ISO 8601")
    if value.utcoffset() is None:
        raise wrong(where, f"{value.isoformat()!r} has no time zone; use datetime.now(UTC)")
    try:
        return value.astimezone(UTC)
    except OverflowError as exc:
        raise wrong(where, f"{value.isoformat()!r} is out of range in UTC") from exc


def check_items(value: object, where: str, check: Callable[[object, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Any iterable of objects, each with its own check; returned as a list."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise wrong(where, f"is a {type(value).__name__}, expected a list of objects")
    return [check(item, f"{where}[{index}]") for index, item in enumerate(value)]


def check_object(value: object, where: str, known: Iterable[str]) -> dict[str, Any]:
    """An object with none but the known keys."""
    if not isinstance(value, Mapping):
        raise wrong(where, f"is a {type(value).__name__}, expected an object")
    for key in value:
        if key not in known:
            shown = str(key)[:60]
            raise wrong(where, f"has no key {shown!r}; {did_you_mean(shown, known, what='it has')}")
    return dict(value)


def check_call(value: object, where: str) -> dict[str, Any]:
    """An item of `tool_calls`; missing keys but `name` are filled in."""
    item = check_object(value, where, ("name", "arguments", "call_id"))
    arguments = item.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise wrong(f"{where}.arguments", f"is a {type(arguments).__name__}, expected an object")
    return {
        "name": check_name(item.get("name"), f"{where}.name"),
        "arguments": check_json(arguments or {}, f"{where}.arguments"),
        "call_id": check_optional_name(item.get("call_id"), f"{where}.call_id"),
    }


def check_result(value: object, where: str) -> dict[str, Any]:
    """An item of `tool_results`; missing keys but `name` are filled in."""
    item = check_object(value, where, ("name", "arguments", "status", "result", "error", "call_id"))
    call = check_call({key: item[key] for key in ("name", "arguments", "call_id") if key in item}, where)
    error = None if item.get("error") is None else check_text(item["error"], f"{where}.error")
    return {
        "name": call["name"],
        "arguments": call["arguments"],
        "status": _status(item.get("status"), f"{where}.status", failed=error is not None),
        "result": check_json(item.get("result"), f"{where}.result"),
        "error": error,
        "call_id": call["call_id"],
    }


def _status(value: object, where: str, *, failed: bool) -> str:
    if value is None:
        return "failed" if failed else "ok"
    known = [str(status) for status in CallStatus]
    if check_text(value, where) not in known:
        raise wrong(where, f"{str(value)[:60]!r} is no status; {did_you_mean(str(value)[:60], known)}")
    return check_text(value, where)
