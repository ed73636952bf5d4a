"""JSON Schemas as the Messages API takes them: for a tool's input and for an answer's format. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["format_schema", "input_schema"]

_ROOT_CHOICES = ("allOf", "anyOf", "oneOf")
_FORMATS = frozenset({
    "date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid",
})  # fmt: skip
_NAMES = frozenset({"$defs", "properties"})
_PLAIN = frozenset({"$ref", "const", "description", "enum", "required", "title", "type"})
_DESCRIBED = frozenset({
    "default", "examples", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength", "maxProperties", "maximum",
    "minLength", "minProperties", "minimum", "multipleOf", "pattern", "uniqueItems",
})  # fmt: skip
_IGNORED = frozenset({"$comment", "$id", "$schema", "deprecated", "discriminator", "readOnly", "writeOnly"})


def input_schema(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return a tool's schema for `input_schema`: an object's, without a choice at its root.

    The API refuses `anyOf`, `oneOf` and `allOf` there. They are told in the description instead; the kernel checks
    the arguments by the tool's own schema whatever the model was told.
    """
    schema = {**parameters, "type": "object"}
    choices = {key: schema.pop(key) for key in _ROOT_CHOICES if key in schema}
    if choices:
        told = f"The arguments must also meet this JSON Schema: {json.dumps(choices, ensure_ascii=False)}"
        before = schema.get("description")
        schema["description"] = f"{before}\n{told}" if isinstance(before, str) and before else told
    return schema


class _NoFormError(Exception):
    """The schema says what a format can't."""


def format_schema(schema: Mapping[str, object]) -> dict[str, object] | None:
    """Return the form of a schema that `output_config.format` takes; None if it has none.

    Objects are closed, and bounds are told in descriptions, since the server compiles neither. A schema that needs
    open keys, or that refers to itself, has no form. What comes back is to be checked by the schema itself.

    Source: platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations", and the
    transformation of the vendor's own client (anthropic 2.14.0, `lib/_parse/_transform.py`), read November 2026.
    """
    definitions = schema.get("$defs")
    try:
        if isinstance(definitions, Mapping):
            for name in definitions:
                _refuse_cycles(name, definitions, ())
        return _formed(schema)
    except _NoFormError:
        return None


def _refuse_cycles(name: str, definitions: Mapping[str, Any], path: tuple[str, ...]) -> None:
    if name in path:
        raise _NoFormError
    for target in _references(definitions.get(name)):
        _refuse_cycles(target, definitions, (*path, name))


def _references(value: object) -> set[str]:
    if isinstance(value, Mapping):
        own = {ref.removeprefix("#/$defs/")} if isinstance(ref := value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    if isinstance(value, list):
        return set().union(*map(_references, value))
    return set()


def _formed(schema: object) -> dict[str, object]:
    if not isinstance(schema, Mapping):
        raise _NoFormError
    out: dict[str, object] = {}
    told: dict[str, object] = {}
    for key, value in schema.items():
        _take(key, value, out, told)
    if out.get("type") == "object" or "properties" in out:
        if schema.get("additionalProperties", False) not in (False, None) or "properties" not in out:
            raise _NoFormError
        out["additionalProperties"] = False
    elif "additionalProperties" in schema or not out.keys() & {"type", "enum", "const", "anyOf", "allOf", "$ref"}:
        raise _NoFormError
    if told:
        text = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items())
        before = out.get("description")
        out["description"] = f"{before} ({text})" if before else f"({text})"
    return out


def _take(key: str, value: Any, out: dict[str, object], told: dict[str, object]) -> None:
    """Sort one keyword into what is sent and what is told."""
    if key in _PLAIN:
        if key == "$ref" and not (isinstance(value, str) and value.startswith("#/$defs/")):
            raise _NoFormError
        out[key] = value
    elif key in _NAMES:
        out[key] = {name: _formed(inner) for name, inner in value.items()}
    elif key in {"anyOf", "oneOf"}:
        out["anyOf"] = [_formed(inner) for inner in value]
    elif key == "allOf":
        out[key] = [_formed(inner) for inner in value]
    elif key == "items":
        out[key] = _formed(value)
    elif (key == "format" and value in _FORMATS) or (key == "minItems" and value in {0, 1}):
        out[key] = value
    elif key in _DESCRIBED or key in {"format", "minItems"}:
        told[key] = value
    elif key not in _IGNORED and key != "additionalProperties":
        raise _NoFormError
