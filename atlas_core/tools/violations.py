"""What is wrong with a call's arguments, in few words that a model can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from atlas_core.errors import ToolArgumentsError
from atlas_core.names import nearest

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from pydantic import ValidationError as BuildError

__all__ = ["path_text", "unbuildable", "violated"]

MAX_CHARS = 1000
"""Longest text of an error, so that a bad call does not fill the next request."""
_MAX_LISTED = 5
_MANY = 100
"""As many are looked at; there may be more of them."""
_MAX_VALUE_CHARS = 60
_REMEDY = "call it again with corrected arguments"
_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "pattern": "text that matches {}",
}


def violated(tool: str, errors: Iterable[ValidationError]) -> ToolArgumentsError:
    """Make the error for arguments that don't fit the schema; at most five violations are listed."""
    lines: list[str] = []
    for error in errors:
        lines.extend(line for line in _lines(error) if line not in lines)
    return _error(tool, lines)


def unbuildable(tool: str, error: BuildError) -> ToolArgumentsError:
    """Make the error for arguments that fit the schema, yet not what the function's types demand."""
    lines: list[str] = []
    for item in error.errors(include_url=False, include_context=False):
        message = item["msg"][:1].lower() + item["msg"][1:]
        line = f"{path_text(item['loc'])}: {message}, got {got(item['input'])}"
        if line not in lines:
            lines.append(line)
    return _error(tool, lines)


def _error(tool: str, lines: list[str]) -> ToolArgumentsError:
    head = f"the arguments of tool {tool!r} don't fit: "
    listed = [_cut(line, 400) for line in lines[:_MAX_LISTED]]
    if more := len(lines) - len(listed):
        listed.append(f"and {'at least ' if len(lines) >= _MANY else ''}{more} more")
    room = MAX_CHARS - len(head) - len(_REMEDY) - 2
    return ToolArgumentsError(head + _cut("; ".join(listed), room), tool=tool, remedy=_REMEDY)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def path_text(path: Iterable[str | int]) -> str:
    """Write a path as `opts.tags[1]`; a key that is no plain word stands in brackets, as JSON."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif re.fullmatch(r"[\w-]{1,64}", step):
            out += f".{step}" if out else step
        else:
            out += f"[{_cut(json.dumps(step, ensure_ascii=False), _MAX_VALUE_CHARS)}]"
    return out


def got(value: object) -> str:
    """Name a value without repeating much of it."""
    if isinstance(value, str):
        return f"the string {_cut(repr(value[: _MAX_VALUE_CHARS + 1]), _MAX_VALUE_CHARS)}"
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    return _json(value)


def _json(value: object) -> str:
    try:
        return _cut(json.dumps(value, ensure_ascii=False), _MAX_VALUE_CHARS)
    except (TypeError, ValueError):
        return f"a {type(value).__name__}"


def _lines(error: ValidationError) -> list[str]:
    path = path_text(error.absolute_path)
    at = f"{path}: " if path else ""
    value: Any = error.validator_value
    match error.validator:
        case "type":
            return [f"{at}expected {_types(value)}, got {got(error.instance)}"]
        case "enum":
            return [f"{at}expected one of {_members(value)}{_meant(error.instance, value)}, got {got(error.instance)}"]
        case "const":
            return [f"{at}expected {_json(value)}, got {got(error.instance)}"]
        case "required":
            instance: Any = error.instance
            missing = [name for name in value if name not in instance]
            return [f"{path_text([*error.absolute_path, name])}: is missing{_wanted(error, name)}" for name in missing]
        case "additionalProperties" | "unevaluatedProperties" if value is False:
            return [f"{at}{line}" for line in _unknown_keys(error)]
        case "anyOf" | "oneOf" if error.context:
            return _alternatives(error, at)
        case None:
            return [f"{at}{got(error.instance)} is not allowed"]
        case "not" if value == {}:
            return [f"{at}is not allowed"]
        case name if name in _BOUNDS:
            return [f"{at}expected {_BOUNDS[name].format(_json(value))}, got {got(error.instance)}"]
    return [f"{at}{got(error.instance)} breaks the rule {error.validator}: {_json(value)}"]


def _types(value: str | Sequence[str]) -> str:
    names = [value] if isinstance(value, str) else value
    return _or([_NOUNS.get(name, name) for name in names])


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _members(members: Sequence[object]) -> str:
    shown = [_json(member) for member in members[:20]]
    return ", ".join(shown) + (f" (and {len(members) - 20} more)" if len(members) > 20 else "")


def _meant(instance: object, members: Iterable[object]) -> str:
    if not isinstance(instance, str):
        return ""
    close = nearest(instance[:100], [m for m in members if isinstance(m, str)], most=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _wanted(error: ValidationError, name: str) -> str:
    schema = error.schema
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    entry = properties.get(name) if isinstance(properties, dict) else None
    if isinstance(entry, dict) and isinstance(entry.get("type"), (str, list)) and entry["type"]:
        return f", expected {_types(entry['type'])}"
    return ""


def _unknown_keys(error: ValidationError) -> list[str]:
    schema = error.schema if isinstance(error.schema, dict) else {}
    known = list(schema.get("properties", ()))
    patterns = [re.compile(p) for p in schema.get("patternProperties", ())]
    instance: Any = error.instance
    keys = [str(k) for k in instance if k not in known and not any(p.search(str(k)) for p in patterns)]
    lines = []
    for key in keys[:_MAX_LISTED]:
        shown = repr(_cut(key, _MAX_VALUE_CHARS))
        if close := nearest(key[:100], known, most=1):
            lines.append(f"there is no {shown}, did you mean {close[0]!r}?")
        else:
            lines.append(f"there is no {shown}, known: {', '.join(known[:20]) or 'nothing'}")
    return lines


def _alternatives(error: ValidationError, at: str) -> list[str]:
    """Tell of the alternative that was meant, if the value's kind leaves only one; else of all that were possible."""
    branches: dict[Any, list[ValidationError]] = {}
    for child in error.context or ():
        branches.setdefault(child.relative_schema_path[0], []).append(child)
    near = [errors for errors in branches.values() if not any(_wrong_kind(child) for child in errors)]
    if len(near) == 1:
        return [line for child in near[0] for line in _lines(child)]
    kinds: list[str] = []
    for errors in near or branches.values():
        for child in errors:
            kinds.extend(word for word in _kinds(child) if word not in kinds)
    if near or not kinds:
        return [f"{at}{got(error.instance)} fits none of the {len(branches)} alternatives"]
    return [f"{at}expected {_or(kinds)}, got {got(error.instance)}"]


def _wrong_kind(child: ValidationError) -> bool:
    return not child.relative_path and child.validator in ("type", "const")


def _kinds(child: ValidationError) -> list[str]:
    value: Any = child.validator_value
    if child.relative_path:
        return []
    if child.validator == "type":
        return [_NOUNS.get(name, name) for name in ([value] if isinstance(value, str) else value)]
    return [_json(value)] if child.validator == "const" else []
