"""Schemas for providers whose strict mode demands every property, and the way back to what was left out."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["StrictParameters", "strict_parameters"]

# Not supported, or not by every provider's strict mode: a tool whose schema needs one is sent without that mode.
_UNSUPPORTED = frozenset({
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "prefixItems", "contains", "unevaluatedProperties", "propertyNames", "uniqueItems",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class StrictParameters:
    """A strict form of a schema.

    Attributes:
        parameters: Every property is required, none other is allowed; what was optional takes null as well.
    """

    parameters: dict[str, Any]
    _original: Mapping[str, Any]

    def restore(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with each null that stands for "left out" removed, at any depth.

        The result is then checked against the original schema; a default takes the place of what was removed.
        """
        restored: dict[str, Any] = _restore(copy.deepcopy(values), self._original, self._original.get("$defs", {}))
        return restored


def strict_parameters(parameters: Mapping[str, Any]) -> StrictParameters | None:
    """Return the strict form of a tool's schema; None if it has none, as where an object's keys are open.

    Strict function calling demands that `required` lists every property, so null is a model's only way to leave one
    out. A parameter whose default is not null can therefore not be set to null in this mode.
    """
    original = copy.deepcopy(dict(parameters))
    try:
        return StrictParameters(_strict({"additionalProperties": False, **original}), original)
    except _OpenError:
        return None


class _OpenError(Exception):
    """The schema allows what strict mode can't say."""


def _strict(schema: object) -> dict[str, Any]:
    if not isinstance(schema, dict) or not schema or _UNSUPPORTED & schema.keys():
        raise _OpenError
    out = {key: value for key, value in schema.items() if key != "default"}
    if not out.keys() & {"type", "enum", "const", "anyOf", "$ref", "properties"}:
        raise _OpenError
    if "$defs" in out:
        out["$defs"] = {name: _strict(inner) for name, inner in out["$defs"].items()}
    if "anyOf" in out:
        out["anyOf"] = [_strict(inner) for inner in out["anyOf"]]
    kinds = out["type"] if isinstance(out.get("type"), list) else [out.get("type")]
    if "array" in kinds:
        out["items"] = _strict(out.get("items"))
    if "object" in kinds or "properties" in out:
        _close(out)
    return out


def _close(out: dict[str, Any]) -> None:
    """Make an object's properties all required and its keys closed, in place."""
    if out.get("additionalProperties", "properties" not in out) is not False:
        raise _OpenError
    required = out.get("required", ())
    properties = {name: _strict(inner) for name, inner in out.get("properties", {}).items()}
    out["properties"] = {n: inner if n in required else _nullable(inner) for n, inner in properties.items()}
    out["required"] = list(properties)
    out["additionalProperties"] = False


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.keys().isdisjoint({"enum", "const", "$ref"}) and isinstance(schema.get("type"), (str, list)):
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    branches = schema["anyOf"] if "anyOf" in schema else [{k: v for k, v in schema.items() if k != "description"}]
    if {"type": "null"} not in branches:
        branches = [*branches, {"type": "null"}]
    kept = {key: schema[key] for key in ("description",) if key in schema}
    return {"anyOf": branches, **kept}


def _restore(value: Any, schema: object, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(schema, Mapping):
        return value
    if isinstance(reference := schema.get("$ref"), str):
        return _restore(value, definitions.get(reference.removeprefix("#/$defs/")), definitions)
    if isinstance(value, list):
        items = schema.get("items", _branch(value, schema, definitions).get("items"))
        return [_restore(item, items, definitions) for item in value]
    if isinstance(value, dict):
        schema = _branch(value, schema, definitions)
        required, properties = schema.get("required", ()), schema.get("properties", {})
        return {
            name: _restore(inner, properties.get(name), definitions)
            for name, inner in value.items()
            if inner is not None or name in required or name not in properties
        }
    return value


def _branch(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the alternative that a value was written for: in strict form an object has exactly its keys."""
    for branch in schema.get("anyOf", ()):
        target = definitions.get(str(branch.get("$ref", "")).removeprefix("#/$defs/"), branch)
        if isinstance(value, dict) and target.get("properties", {}).keys() == value.keys():
            found: Mapping[str, Any] = target
            return found
        if isinstance(value, list) and "items" in target:
            return dict(target)
    return schema
