from __future__ import annotations

from typing import Any

import pytest
from atlas_offline.schemas import Parameter, parameters

from atlas_core import ToolSchema


def kinds(properties: Any, **more: Any) -> dict[str, str]:
    """Return the kind of each parameter."""
    return {p.name: p.kind for p in parameters(ToolSchema(name="t", parameters={"properties": properties, **more}))}


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"type": "string"}, "text"),
        ({}, "text"),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "integer"}, "integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "object"),
        ({"type": "string", "format": "uri"}, "url"),
        ({"type": "string", "format": "date-time"}, "datetime"),
        ({"type": "string", "format": "idn-email"}, "email"),
        ({"type": "string", "pattern": "^a"}, "pattern"),
        ({"type": "string", "enum": ["a", "b"]}, "text"),
        ({"type": "object"}, "object"),
        ({"type": "null"}, "object"),
        ({"$ref": "#/$defs/n"}, "number"),
        ({"$ref": "#/$defs/loop"}, "text"),
        ({"$ref": "https://example.com/x"}, "text"),
        ({"$ref": "#/nowhere/at/all"}, "text"),
        (True, "text"),
    ],
)
def test_a_schema_s_kind_is_read_through_unions_and_references(spec: Any, kind: str) -> None:
    """Optional, referenced and oddly written schemas have one kind; loops and remote references end."""
    defs = {"n": {"type": "number"}, "loop": {"$ref": "#/$defs/loop"}}
    assert kinds({"p": spec}, **{"$defs": defs}) == {"p": kind}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("email", "email"), ("sourceUrl", "url"), ("file_path", "path"), ("start_date", "date"), ("update", "text")],
)
def test_a_text_s_form_is_told_by_its_name(name: str, kind: str) -> None:
    """Without a format, the name of the parameter says what form its text has."""
    assert kinds({name: {"type": "string"}}) == {name: kind}


def test_a_schema_without_properties_has_no_parameters() -> None:
    """Anything but a mapping of properties is read as none."""
    assert parameters(ToolSchema(name="t", parameters={"properties": []})) == ()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "1,000", 1000),
        ("integer", "2.0", 2),
        ("integer", "2.5", None),
        ("integer", "9" * 401, None),
        ("number", "1e999", None),
        ("number", "-.5", -0.5),
        ("boolean", "YES", True),
        ("boolean", "off", False),
        ("boolean", "maybe", None),
        ("email", "a@b.example", "a@b.example"),
        ("email", "a@b", None),
        ("url", "ftp://x", "ftp://x"),
        ("url", "x.example", None),
        ("object", "{}", None),
        ("text", "", None),
    ],
)
def test_a_text_is_converted_only_if_it_is_of_the_kind(kind: str, text: str, value: object) -> None:
    """A value that would be of another type, or infinite, is none."""
    assert Parameter(name="p", kind=kind).convert(text) == value


def test_members_are_found_in_any_case_and_a_faulty_pattern_matches_nothing() -> None:
    """A member is returned as the schema spells it; a pattern that Python can't read takes no text."""
    assert Parameter(name="p", kind="text", enum=("Fast", 3)).convert("fast") == "Fast"
    assert Parameter(name="p", kind="text", enum=("Fast", 3)).convert("3") == 3
    assert Parameter(name="p", kind="pattern", pattern="(").convert("x") is None
    assert Parameter(name="p", kind="array", item_kind="integer").convert("3") is None
