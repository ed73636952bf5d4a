from __future__ import annotations

import http.server
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from atlas_core.errors import ToolArgumentsError, ToolDefinitionError
from atlas_core.interfaces.tools import ToolSchema
from atlas_core.tools.arguments import ArgumentChecker
from atlas_core.tools.registry import ToolRegistry


def checker(parameters: Any) -> ArgumentChecker:
    """Make a checker for a schema that a server sent."""
    return ArgumentChecker(ToolSchema(name="t", parameters=parameters), "plugin 'mcp'")


class Requests(list[str]):
    """Paths that were asked for."""

    url: str


@pytest.fixture
def server() -> Iterator[Requests]:
    """Run a server that would answer any request for a schema."""
    seen = Requests()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "integer"}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        seen.url = f"http://127.0.0.1:{running.server_port}/x.json"
        yield seen
        running.shutdown()
        thread.join()


def test_a_remote_reference_is_refused_and_never_fetched(server: Requests) -> None:
    """No schema makes Atlas open a connection (case 146)."""
    with pytest.raises(ToolDefinitionError, match=r"has a \$ref to 'http://127.0.0.1:\d+/x.json', outside itself"):
        checker({"properties": {"a": {"$ref": server.url}}})
    with pytest.raises(ToolDefinitionError, match=r"none of the drafts"):
        checker({"$schema": server.url})
    assert server == []


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/Nope"}}}, r"has a \$ref to '#/\$defs/Nope', which is not in it"),
        ({"properties": {"a": {"$ref": "#nope"}}}, r"has a \$ref to '#nope', which is not in it"),
        ({"properties": {"a": {"$ref": "other.json"}}}, r"has a \$ref to 'other.json', which is not in it"),
        ({"properties": {"a": {"$dynamicRef": "#nope"}}}, r"has a \$dynamicRef to '#nope'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}}}, r"'#/\$defs/b', which is not in it"),
        ({"$ref": "#/x/a", "x": {"a": {"items": {"$ref": "#/x/b"}}}}, r"'#/x/b', which is not in it"),
        ({"$ref": "#/required/0/x", "required": ["a"]}, r"has a \$ref to '#/required/0/x'"),
        ({"properties": {"a": {"$ref": "#/required"}}, "required": ["a"]}, r"'#/required', which is no schema"),
        ({"properties": {"a": {"type": "strin"}}}, r"is not valid at \$.properties.a.type: 'strin'"),
        ({"type": "strin"}, r"has the type 'strin', but arguments are always an object"),
        ({"type": "array"}, r"has the type 'array', but arguments are always an object"),
        ({"properties": 3}, r"is not valid at \$.properties"),
        ({"properties": {"a": 3}}, r"is not valid at \$.properties.a"),
        ({"required": "a"}, r"is not valid at \$.required"),
        ({"$schema": 3}, r"has the \$schema 3, which is none of the drafts"),
        ({"$ref": "#"}, r"refers to itself without end"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "refers to itself without end"),
        ({"patternProperties": {"(": {}}}, r"has the pattern '\(', which Python can't read"),
        ({"x": {1, 2}}, r"is no JSON: a set is no JSON value"),
        ({"x": float("nan")}, r"is no JSON"),
        (False, r"is false, expected a JSON object"),
        ([], r"is \[\], expected a JSON object"),
        (None, r"is null, expected a JSON object"),
    ],
    ids=lambda value: str(value)[:60] if not isinstance(value, str) else "",
)
def test_a_faulty_schema_is_found_when_the_tool_is_registered(schema: Any, text: str) -> None:
    """The error names tool, owner and fault, and says what follows (case 146)."""
    with pytest.raises(ToolDefinitionError, match=text) as caught:
        checker(schema)
    assert caught.value.tool == "t"
    assert "tool 't'" in str(caught.value)
    assert "plugin 'mcp'" in str(caught.value)
    assert "can't be used" in str(caught.value)


def test_endless_schemas_are_refused() -> None:
    """A schema that holds itself, or is nested beyond reason, is an error like any other."""
    loop: dict[str, Any] = {"type": "object"}
    loop["properties"] = {"a": loop}
    with pytest.raises(ToolDefinitionError, match="is no JSON: Circular"):
        checker(loop)
    deep: dict[str, Any] = {"minimum": 0}
    for _ in range(240):
        deep = {"not": {"allOf": [deep]}}
    with pytest.raises(ToolDefinitionError, match=r"nested too deeply|no JSON"):
        checker(deep)


def test_a_faulty_tool_disables_only_itself() -> None:
    """Registering fails for the one, before any call, and the registry goes on (case 146)."""

    class Remote:
        name = "remote"
        description = ""
        schema: Any = {"properties": {"a": {"$ref": "#/$defs/Nope"}}}

        def execute(self, **kwargs: Any) -> None: ...

    registry = ToolRegistry()
    with pytest.raises(ToolDefinitionError, match=r"schema of tool 'remote' has a \$ref"):
        registry.register(Remote())
    assert registry.names == []
    good = Remote()
    good.schema = {}
    assert registry.register(good) == "remote"


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$id": "http://example.com/a",
            "properties": {"a": {"$ref": "b"}},
            "$defs": {"b": {"$id": "b", "type": "integer"}},
        },
        {"properties": {"a": {"$ref": "#here"}}, "$defs": {"b": {"$anchor": "here", "type": "integer"}}},
        {"properties": {"a": {"$ref": "#/definitions/b~1c"}}, "definitions": {"b/c": {"type": "integer"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"type": "integer"}}},
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "properties": {"a": {"type": "integer", "minimum": 0}},
        },
        {"properties": {"a": {"type": "integer", "enum": [1, {"$ref": "#/no/reference"}]}}},
        {"properties": {"a": {"type": "integer"}, "$ref": {"type": "string"}}},
        {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}},
    ],
    ids=["ids", "anchors", "escapes", "draft 4", "draft 2019-09", "refs in an enum", "a property $ref", "nullable"],
)
def test_sound_schemas_of_all_kinds_work(schema: dict[str, Any]) -> None:
    """References inside the schema resolve as their draft says, and what only looks like one is none."""
    check = checker(schema)
    assert check.check('{"a": 1}').values == {"a": 1}
    with pytest.raises(ToolArgumentsError, match="a: expected"):
        check.check('{"a": [1]}')


def test_a_reference_to_a_drafts_own_schema_needs_no_network() -> None:
    """The drafts' schemas are at hand, so a tool may take a schema as its argument."""
    check = checker({"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}})
    assert check.check('{"a": {"type": "string"}}').values == {"a": {"type": "string"}}
    with pytest.raises(ToolArgumentsError, match=r"a\.type"):
        check.check('{"a": {"type": "strin"}}')


def test_a_pattern_of_another_dialect_is_left_unchecked_and_said() -> None:
    """JavaScript's patterns are valid JSON Schema; one that Python can't read does not disable the tool."""
    schema = {"properties": {"a": {"type": "string", "pattern": r"^\p{L}+$"}}}
    check = checker(schema)
    assert check.unchecked == (r"pattern '^\\p{L}+$'",)
    assert check.check('{"a": "1"}').values == {"a": "1"}
    assert schema["properties"]["a"]["pattern"], "the schema that the model sees is unchanged"


def test_any_mapping_serves_as_a_schema() -> None:
    """A read-only view is JSON as well."""
    inner = types.MappingProxyType({"type": "integer"})
    check = checker(types.MappingProxyType({"properties": {"a": inner}, "type": "object"}))
    assert check.check('{"a": 1}').values == {"a": 1}
    with pytest.raises(ToolArgumentsError):
        check.check('{"a": "x"}')


def test_changing_a_schema_later_changes_no_check() -> None:
    """The checker holds a copy."""
    schema: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
    check = checker(schema)
    schema["properties"]["a"]["type"] = "string"
    assert check.check('{"a": 1}').values == {"a": 1}
