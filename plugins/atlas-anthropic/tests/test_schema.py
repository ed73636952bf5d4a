from __future__ import annotations

from typing import Any

import pytest
from atlas_anthropic._schema import format_schema, input_schema


def test_a_tools_schema_is_sent_as_it_is() -> None:
    """Only its type is added where it lacks."""
    schema = {"properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    assert input_schema(schema) == {**schema, "type": "object"}
    assert "type" not in schema


def test_a_choice_at_the_root_is_told_in_words() -> None:
    """The API refuses it there, and the kernel checks the arguments by the tool's own schema."""
    schema = {"type": "object", "description": "d", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    sent = input_schema(schema)
    assert "anyOf" not in sent
    assert str(sent["description"]).startswith("d\nThe arguments must also meet this JSON Schema: {")
    assert '"required": ["b"]' in str(input_schema({"oneOf": schema["anyOf"]})["description"])


def test_objects_are_closed_and_bounds_are_told() -> None:
    """At any depth, behind references too."""
    schema = {
        "type": "object",
        "title": "Order",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "description": "How many"},
            "when": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^a$", "format": "isbn"},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "minItems": 2},
            "either": {"oneOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}], "default": None},
            "both": {"allOf": [{"$ref": "#/$defs/Item"}]},
        },
        "required": ["count"],
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"Item": {"type": "object", "properties": {"kind": {"const": "x"}, "size": {"enum": [1, 2]}}}},
    }
    item = {
        "type": "object",
        "properties": {"kind": {"const": "x"}, "size": {"enum": [1, 2]}},
        "additionalProperties": False,
    }
    assert format_schema(schema) == {
        "type": "object",
        "title": "Order",
        "properties": {
            "count": {"type": "integer", "description": "How many (minimum: 1)"},
            "when": {"type": "string", "format": "date"},
            "code": {"type": "string", "description": '(pattern: "^a$", format: "isbn")'},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "(maxItems: 5)"},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "description": "(minItems: 2)"},
            "either": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}], "description": "(default: null)"},
            "both": {"allOf": [{"$ref": "#/$defs/Item"}]},
        },
        "required": ["count"],
        "$defs": {"Item": item},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}},
        {
            "$ref": "#/$defs/A",
            "$defs": {
                "A": {"type": "object", "properties": {"b": {"anyOf": [{"$ref": "#/$defs/B"}]}}},
                "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
            },
        },
    ],
    ids=[
        "open keys with a type",
        "open keys",
        "keys left open on purpose",
        "anything",
        "the schema true",
        "a tuple",
        "a schema elsewhere",
        "a schema that holds itself",
        "two schemas that hold each other",
    ],
)
def test_what_the_server_can_not_compile_has_no_form(schema: dict[str, Any]) -> None:
    """The caller is told so, and not the server."""
    assert format_schema(schema) is None
