from __future__ import annotations

import json
from typing import Any

import pytest
from atlas_openai._output import output_form
from atlas_openai._tools import ToolTable

from atlas_core import LLMDefaults, ToolSchema

SEARCH = ToolSchema(
    name="search",
    parameters={
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "lang": {"type": ["string", "null"], "default": None},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["q"],
    },
)
OPEN = ToolSchema(name="store", parameters={"type": "object", "additionalProperties": True})


def test_strict_schemas_leave_out_formats_that_strict_mode_refuses() -> None:
    """At any depth, in tools and answers, and not a property that has the name `format`."""
    schema: dict[str, Any] = {
        "type": "object",
        "$defs": {"Blob": {"type": "string", "format": "binary"}},
        "properties": {
            "format": {"type": "string"},
            "data": {"type": "string", "format": "binary"},
            "blob": {"$ref": "#/$defs/Blob"},
            "when": {"type": "string", "format": "date-time"},
            "many": {"type": "array", "items": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}},
        },
        "required": ["format", "data", "blob", "when", "many"],
    }
    (tool,) = ToolTable([ToolSchema(name="put", parameters=schema)], strict=True).tools
    form = output_form(LLMDefaults(output_schema=schema))
    assert form is not None
    assert tool.parameters == form.schema
    found: Any = tool.parameters
    assert found["$defs"] == {"Blob": {"type": "string"}}
    assert found["properties"] == {
        "format": {"type": "string"},
        "data": {"type": "string"},
        "blob": {"$ref": "#/$defs/Blob"},
        "when": {"type": "string", "format": "date-time"},
        "many": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    }
    (plain,) = ToolTable([ToolSchema(name="put", parameters=schema)], strict=False).tools
    assert plain.parameters == schema


def test_names_are_mapped_both_ways() -> None:
    """A name that the protocol does not allow is sent in another form and comes back as it was."""
    table = ToolTable([ToolSchema(name="files.read/text"), ToolSchema(name="add")], strict=False)
    sent = [tool.name for tool in table.tools]
    assert sent[1] == "add"
    assert "." not in sent[0]
    assert [table.named(name) for name in sent] == ["files.read/text", "add"]
    assert [table.sent(table.named(name)) for name in sent] == sent
    assert table.offers("add")
    assert not table.offers("files.read/text")


def test_names_that_are_not_offered_stay_and_can_be_sent() -> None:
    """What a model made up is kept, and a tool of an earlier run still has a name that the server accepts."""
    table = ToolTable([], strict=False)
    assert table.named("functions.search") == "functions.search"
    assert table.sent("functions.search") == table.sent("functions.search")
    assert "." not in table.sent("functions.search")


def test_schemas_are_sent_as_they_are_unless_strict() -> None:
    """Case 10: with strict off only what has no default is required."""
    (tool,) = ToolTable([SEARCH], strict=False).tools
    assert (tool.strict, tool.parameters) == (False, SEARCH.parameters)


def test_strict_schemas_require_all_and_take_null() -> None:
    """Case 10: with strict on all are required, none is added, and what was optional accepts null."""
    (tool,) = ToolTable([SEARCH], strict=True).tools
    parameters: Any = tool.parameters
    assert tool.strict
    assert parameters["required"] == ["q", "lang", "limit"]
    assert parameters["additionalProperties"] is False
    assert "null" in parameters["properties"]["lang"]["type"]
    assert "null" in parameters["properties"]["limit"]["type"]


def test_a_schema_without_a_strict_form_is_sent_without_it() -> None:
    """A tool with open keys does not keep the others from being strict."""
    tools = ToolTable([SEARCH, OPEN], strict=True).tools
    assert [tool.strict for tool in tools] == [True, False]


def test_an_object_always_has_properties() -> None:
    """The vendor refuses an object's schema without them."""
    (tool,) = ToolTable([ToolSchema(name="now", parameters={"type": "object"})], strict=False).tools
    assert tool.parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("written", "restored"),
    [
        ('{"q":"a","lang":null,"limit":null}', '{"q":"a"}'),
        ('{"q": "a", "limit": 3}', '{"q": "a", "limit": 3}'),
        ('{"q": ', '{"q": '),
        ("[1]", "[1]"),
    ],
    ids=["nulls that stand for left out are dropped", "the rest stays", "broken text stays", "no object stays"],
)
def test_nulls_of_strict_mode_are_taken_out(written: str, restored: str) -> None:
    """Case 10: null means that the default holds, so it does not reach the tool."""
    assert ToolTable([SEARCH], strict=True).restored("search", written) == restored


def test_nulls_stay_without_strict_mode() -> None:
    """A null that nobody forced upon the model is its own."""
    assert ToolTable([SEARCH], strict=False).restored("search", '{"lang":null}') == '{"lang":null}'


def test_parameters_are_json() -> None:
    """What is sent can be encoded."""
    for tool in ToolTable([SEARCH, OPEN], strict=True).tools:
        json.dumps(dict(tool.parameters))
