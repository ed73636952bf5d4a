"""A quick yes for plain schemas: what they accept is valid for certain, without a validator and without its import.

Most tools take a handful of numbers, texts, choices and lists. For their schemas this module makes a predicate that
is only ever true where Draft 2020-12 says valid too; a no is not an answer but a reason to ask the validator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["plain_predicate"]

Predicate: TypeAlias = Callable[[object], bool]

# Drafts in which the keywords below mean the same.
_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
)
_TEXT_ANNOTATIONS = frozenset({"title", "description", "$comment", "format"})
_ANNOTATIONS = _TEXT_ANNOTATIONS | {"default"}


class _NotPlainError(Exception):
    """The schema says something that this module does not read."""


def plain_predicate(schema: Mapping[str, object]) -> Predicate | None:
    """Return a predicate for a plain schema; None if any part of it is not plain, and so must be checked in full.

    Plain are `type`, `enum` of texts or of integers, `properties`, `required`, `additionalProperties` as a bool,
    `items`, `anyOf`, and `$ref` to an entry of the root's `$defs` that does not come back to itself.
    """
    if schema.get("$schema", _DIALECTS[0]) not in _DIALECTS:
        return None
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, Mapping):
        return None
    root = {key: value for key, value in schema.items() if key not in ("$schema", "$defs")}
    try:
        for definition in definitions.values():
            _compile(definition, definitions, ())
        return _compile(root, definitions, ())
    except _NotPlainError:
        return None


def _compile(schema: object, definitions: Mapping[str, object], path: tuple[str, ...]) -> Predicate:
    if not isinstance(schema, Mapping):
        raise _NotPlainError
    parts: list[Predicate] = []
    for key, value in schema.items():
        if key in _ANNOTATIONS:
            if key in _TEXT_ANNOTATIONS and not isinstance(value, str):
                raise _NotPlainError
        elif key == "$ref":
            parts.append(_reference(value, definitions, path))
        elif key == "anyOf":
            parts.append(_any_of(value, definitions, path))
        elif key in _KEYWORDS:
            parts.append(_KEYWORDS[key](value))
        elif key not in ("properties", "required", "additionalProperties", "items"):
            raise _NotPlainError
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        parts.append(_object(schema, definitions, path))
    if "items" in schema:
        parts.append(_items(schema["items"], definitions, path))
    return _all(parts)


def _all(parts: list[Predicate]) -> Predicate:
    match parts:
        case []:
            return lambda _: True
        case [only]:
            return only
        case [first, second]:
            return lambda value: first(value) and second(value)
    return lambda value: all(part(value) for part in parts)


_TYPES: dict[str, Predicate] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}


def _type(value: object) -> Predicate:
    names: list[Any] = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        raise _NotPlainError
    if len(set(names)) != len(names):
        raise _NotPlainError
    if len(names) == 1:
        return _TYPES[names[0]]
    tests = [_TYPES[name] for name in names]
    return lambda candidate: any(test(candidate) for test in tests)


def _enum(value: object) -> Predicate:
    if isinstance(value, list) and value:
        if all(type(member) is str for member in value):
            texts = frozenset(value)
            return lambda candidate: type(candidate) is str and candidate in texts
        if all(type(member) is int for member in value):
            numbers = frozenset(value)
            return lambda candidate: type(candidate) is int and candidate in numbers
    raise _NotPlainError


_KEYWORDS: dict[str, Callable[[object], Predicate]] = {"type": _type, "enum": _enum}


def _any_of(value: object, definitions: Mapping[str, object], path: tuple[str, ...]) -> Predicate:
    if not isinstance(value, list) or not value:
        raise _NotPlainError
    branches = [_compile(branch, definitions, path) for branch in value]
    return lambda candidate: any(branch(candidate) for branch in branches)


def _reference(value: object, definitions: Mapping[str, object], path: tuple[str, ...]) -> Predicate:
    name = value.removeprefix("#/$defs/") if isinstance(value, str) else ""
    if value != f"#/$defs/{name}" or name not in definitions or name in path or not name.isidentifier():
        raise _NotPlainError
    return _compile(definitions[name], definitions, (*path, name))


def _items(value: object, definitions: Mapping[str, object], path: tuple[str, ...]) -> Predicate:
    test = _compile(value, definitions, path)
    return lambda candidate: type(candidate) is not list or all(test(item) for item in candidate)


def _object(schema: Mapping[str, object], definitions: Mapping[str, object], path: tuple[str, ...]) -> Predicate:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    open_ended = schema.get("additionalProperties", True)
    if not isinstance(properties, Mapping) or not isinstance(open_ended, bool) or not isinstance(required, list):
        raise _NotPlainError
    if not all(isinstance(name, str) for name in required) or len(set(required)) != len(required):
        raise _NotPlainError
    tests = {name: _compile(inner, definitions, path) for name, inner in properties.items()}

    def test(candidate: object) -> bool:
        if type(candidate) is not dict:
            return True
        for name in required:
            if name not in candidate:
                return False
        for name, value in candidate.items():
            part = tests.get(name)
            if part is None:
                if not open_ended:
                    return False
            elif not part(value):
                return False
        return True

    return test
