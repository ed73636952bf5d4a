from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, Literal

import jsonschema
import pytest

from atlas_core.tools.arguments import ArgumentChecker
from atlas_core.tools.function import FunctionTool
from atlas_core.tools.strict import strict_parameters


class Level(enum.Enum):
    LOW = 1


@dataclasses.dataclass
class Opt:
    level: Level = Level.LOW
    tags: list[str] = dataclasses.field(default_factory=list)


def search(q: str, lang: str | None = None, limit: int = 10) -> object:
    """Search."""
    return q, lang, limit


def nested(
    opt: Opt,
    more: list[Opt] | None = None,
    level: Level = Level.LOW,
    mode: Literal["a", "b"] = "a",
    one: Opt | None = None,
) -> object:
    """Nest."""
    return opt, more, level, mode, one


def strict_objects(schema: Any) -> None:
    """Assert that each object in a schema lists all its properties as required, and no other is allowed."""
    if isinstance(schema, dict):
        if "properties" in schema:
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
        assert "default" not in schema
        for inner in schema.values():
            strict_objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            strict_objects(inner)


def run(function: Any, values: dict[str, Any]) -> object:
    """Run a call in strict mode: restore, check, build, execute."""
    tool = FunctionTool(function)
    strict = strict_parameters(tool.schema.parameters)
    assert strict is not None
    jsonschema.Draft202012Validator(strict.parameters).validate(values)
    checked = ArgumentChecker(tool.schema).check(json.dumps(strict.restore(values)))
    return tool.execute(**tool.build_arguments(checked.values))


def test_strict_mode_requires_all_and_null_means_left_out() -> None:
    """All parameters are required, optional ones take null, and null brings the default back (case 10)."""
    tool = FunctionTool(search)
    assert tool.schema.parameters["required"] == ["q"]
    strict = strict_parameters(tool.schema.parameters)
    assert strict is not None
    assert strict.parameters == {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "lang": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "limit": {"type": ["integer", "null"]},
        },
        "required": ["q", "lang", "limit"],
        "additionalProperties": False,
    }
    assert run(search, {"q": "a", "lang": None, "limit": None}) == ("a", None, 10)
    assert run(search, {"q": "a", "lang": "de", "limit": 3}) == ("a", "de", 3)


def test_nested_objects_are_strict_and_restored() -> None:
    """The same holds inside objects, lists, references and alternatives."""
    tool = FunctionTool(nested)
    strict = strict_parameters(tool.schema.parameters)
    assert strict is not None
    strict_objects(strict.parameters)
    jsonschema.Draft202012Validator.check_schema(strict.parameters)
    values = {
        "opt": {"level": None, "tags": None},
        "more": [{"level": 1, "tags": None}],
        "level": None,
        "mode": None,
        "one": {"level": None, "tags": ["x"]},
    }
    assert run(nested, values) == (Opt(), [Opt()], Level.LOW, "a", Opt(tags=["x"]))
    assert run(nested, {**values, "more": None, "one": None, "mode": "b"}) == (Opt(), None, Level.LOW, "b", None)
    assert values["opt"] == {"level": None, "tags": None}, "the caller's values are unchanged"


def test_a_null_that_is_required_stays() -> None:
    """Only what may be left out can be meant to be."""

    def f(x: int | None, y: Any = 1) -> None: ...

    strict = strict_parameters({"properties": {"x": {"type": ["integer", "null"]}}, "required": ["x"]})
    assert strict is not None
    assert strict.restore({"x": None, "odd": None}) == {"x": None, "odd": None}
    assert strict_parameters(FunctionTool(f).schema.parameters) is None, "anything at all has no strict form"


@pytest.mark.parametrize(
    "inner",
    [
        True,
        {},
        {"description": "anything"},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True},
        {"type": "array"},
        {"type": "array", "items": True},
        {"oneOf": [{"type": "integer"}]},
        {"anyOf": [{"type": "integer"}, {}]},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    ],
    ids=str,
)
def test_what_strict_mode_can_not_say_has_no_strict_form(inner: object) -> None:
    """Open keys, anything, and unsupported keywords: the tool is then sent as it is."""
    assert strict_parameters({"type": "object", "properties": {"x": inner}}) is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "description": "d"}, {"type": ["string", "null"], "description": "d"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "description": "d"}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}], "description": "d"}),
        ({"anyOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
    ],
    ids=["type", "nullable already", "choice", "alternative"],
)
def test_an_optional_parameter_takes_null(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each form of schema has its way to allow null; the description stays outside."""
    strict = strict_parameters({"properties": {"x": schema}})
    assert strict is not None
    assert strict.parameters["properties"]["x"] == expected
