"""The strict form of a schema, with nothing in it that the vendor's strict mode refuses."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["known_formats"]

_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
"""Source: platform.openai.com/docs/guides/structured-outputs, "Supported properties", read in 2025."""

_OF_SCHEMAS = ("$defs", "definitions", "properties")


def known_formats(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a strict schema without formats that strict mode does not know, such as `binary`.

    What the model writes is checked against the original schema, so nothing is lost but a hint.
    """
    found: dict[str, object] = {}
    for key, value in schema.items():
        if key == "format" and value not in _FORMATS:
            continue
        if key in _OF_SCHEMAS and isinstance(value, Mapping):
            found[key] = {name: _inner(inner) for name, inner in value.items()}
        elif key in {"items", "anyOf"}:
            found[key] = [_inner(inner) for inner in value] if isinstance(value, list) else _inner(value)
        else:
            found[key] = value
    return found


def _inner(schema: object) -> object:
    return known_formats(schema) if isinstance(schema, Mapping) else schema
