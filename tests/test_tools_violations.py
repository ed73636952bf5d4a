from __future__ import annotations

import json
from typing import Any

import pytest

from atlas_core.errors import ToolArgumentsError
from atlas_core.interfaces.tools import ToolSchema
from atlas_core.tools.arguments import ArgumentChecker
from atlas_core.tools.violations import got, path_text


def said(schema: dict[str, Any], values: dict[str, Any]) -> str:
    """Return what a model is told about values that don't fit."""
    with pytest.raises(ToolArgumentsError) as caught:
        ArgumentChecker(ToolSchema(name="t", parameters=schema), lenient=False).check(json.dumps(values))
    text = str(caught.value)
    assert len(text) <= 1000
    assert text.startswith("the arguments of tool 't' don't fit: ")
    assert text.endswith("; call it again with corrected arguments")
    return text.removeprefix("the arguments of tool 't' don't fit: ").removesuffix(
        "; call it again with corrected arguments"
    )


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "integer"}, "a", "x: expected an integer, got the string 'a'"),
        ({"type": "string"}, 5, "x: expected a string, got 5"),
        ({"type": "boolean"}, None, "x: expected true or false, got null"),
        ({"type": "object"}, [1, 2], "x: expected an object, got an array of 2"),
        ({"type": "array"}, {"a": 1}, "x: expected an array, got an object"),
        ({"type": ["integer", "null"]}, True, "x: expected an integer or null, got true"),
        ({"type": ["integer", "string", "null"]}, [], "x: expected an integer, a string or null, got an array of 0"),
        (
            {"enum": ["red", "green"]},
            "gren",
            "x: expected one of \"red\", \"green\" (did you mean 'green'?), got the string 'gren'",
        ),
        ({"enum": [1, 2]}, 3, "x: expected one of 1, 2, got 3"),
        ({"const": "a"}, "b", "x: expected \"a\", got the string 'b'"),
        ({"minimum": 3}, 2, "x: expected at least 3, got 2"),
        ({"maximum": 3}, 4, "x: expected at most 3, got 4"),
        ({"exclusiveMinimum": 3}, 3, "x: expected more than 3, got 3"),
        ({"exclusiveMaximum": 3}, 3, "x: expected less than 3, got 3"),
        ({"multipleOf": 2}, 3, "x: expected a multiple of 2, got 3"),
        ({"minLength": 2}, "a", "x: expected at least 2 characters, got the string 'a'"),
        ({"maxLength": 2}, "abc", "x: expected at most 2 characters, got the string 'abc'"),
        ({"pattern": "^a+$"}, "b", "x: expected text that matches \"^a+$\", got the string 'b'"),
        ({"minItems": 1}, [], "x: expected at least 1 items, got an array of 0"),
        ({"maxItems": 1}, [1, 2], "x: expected at most 1 items, got an array of 2"),
        ({"minProperties": 1}, {}, "x: expected at least 1 keys, got an object"),
        ({"maxProperties": 0}, {"a": 1}, "x: expected at most 0 keys, got an object"),
        ({"uniqueItems": True}, [1, 1], "x: an array of 2 breaks the rule uniqueItems: true"),
        ({"not": {"type": "string"}}, "a", 'x: the string \'a\' breaks the rule not: {"type": "string"}'),
        ({"additionalProperties": {"type": "integer"}}, {"k": "a"}, "x.k: expected an integer, got the string 'a'"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_each_rule_has_its_words(schema: dict[str, Any], value: object, text: str) -> None:
    """The path, what was expected and what came."""
    assert said({"properties": {"x": schema}}, {"x": value}) == text


def test_missing_keys_are_named_with_what_they_take() -> None:
    """All of them, each once, at their path."""
    schema = {
        "properties": {
            "o": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": True},
                "required": ["a", "b", "c"],
            }
        }
    }
    text = "o.a: is missing, expected a string; o.b: is missing, expected an integer or null; o.c: is missing"
    assert said(schema, {"o": {}}) == text


def test_unknown_keys_are_named_with_the_nearest_known() -> None:
    """A misspelt key gets the one that was meant; a strange one the list."""
    schema = {
        "properties": {"name": {}, "limit": {}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
    }
    assert said(schema, {"nmae": 1, "x-a": 1}) == "there is no 'nmae', did you mean 'name'?"
    assert said(schema, {"zzzz": 1}) == "there is no 'zzzz', known: name, limit"
    assert said({"additionalProperties": False}, {"a": 1}) == "there is no 'a', known: nothing"
    inner = {"properties": {"o": {"properties": {"a": {}}, "unevaluatedProperties": False}}}
    assert said(inner, {"o": {"bb": 1}}) == "o: there is no 'bb', known: a"


def test_of_alternatives_the_one_that_was_meant_is_told() -> None:
    """The value's kind often leaves one alternative; its own fault is the useful one."""
    maybe_list = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}
    assert said({"properties": {"x": maybe_list}}, {"x": [1, "a"]}) == "x[1]: expected an integer, got the string 'a'"
    assert said({"properties": {"x": maybe_list}}, {"x": 3}) == "x: expected an array or null, got 3"
    tagged = {
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "v": {"type": "integer"}}, "required": ["v"]},
            {"type": "string"},
            {"const": 7},
        ]
    }
    assert said({"properties": {"x": tagged}}, {"x": {"kind": "a"}}) == "x.v: is missing, expected an integer"
    two = {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "number", "maximum": -5}]}
    assert said({"properties": {"x": two}}, {"x": 1}) == "x: 1 fits none of the 2 alternatives"
    both = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    assert said({"properties": {"x": both}}, {"x": 1}).startswith("x: 1 breaks the rule oneOf: ")
    none = {"anyOf": [{"not": {}}, {"type": "integer"}]}
    assert said({"properties": {"x": none}}, {"x": "a"}) == "x: is not allowed"
    inner = {"anyOf": [{"type": "null"}, {"type": "string"}, {"properties": {"a": {"type": "null"}}, "type": "array"}]}
    assert (
        said({"properties": {"x": inner}}, {"x": {"a": 1}}) == "x: expected null, a string or an array, got an object"
    )
    consts = {"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "integer"}]}
    assert said({"properties": {"x": consts}}, {"x": "c"}) == 'x: expected "a", "b" or an integer, got the string \'c\''


def test_at_most_five_violations_are_listed() -> None:
    """More are counted, so that the model knows of them."""
    schema = {"properties": {"x": {"type": "array", "items": {"type": "integer"}}}}
    text = said(schema, {"x": ["a"] * 8})
    assert text.count("expected an integer") == 5
    assert text.endswith("; and 3 more")
    assert said(schema, {"x": ["a"] * 5000}).endswith("; and 95 or more more") is False
    assert "and at least 95 more" in said(schema, {"x": ["a"] * 5000})


def test_neither_long_values_nor_long_schemas_make_a_long_text() -> None:
    """Keys, values, members and patterns are all cut."""
    long = "k" * 5000
    assert len(said({"additionalProperties": False}, {f"{i}{long}": 1 for i in range(9)})) < 900
    assert len(said({"properties": {"x": {"enum": [long + str(i) for i in range(50)]}}}, {"x": long})) < 900
    assert "(and 30 more)" in said({"properties": {"x": {"enum": list(range(50))}}}, {"x": "a"})
    assert len(said({"properties": {"x": {"pattern": long}}}, {"x": "a"})) < 900
    assert len(said({"required": [f"{i}{long}" for i in range(9)]}, {})) <= 900


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], ""),
        (["values", 1], "values[1]"),
        (["opts", "level"], "opts.level"),
        (["a-b", 0, "c_d"], "a-b[0].c_d"),
        (["a b", "ü.x"], '["a b"]["ü.x"]'),
        (["k" * 100], '["' + "k" * 56 + "..."[:2] + "."),
    ],
    ids=["root", "index", "key", "signs", "odd keys", "long key"],
)
def test_a_path_reads_like_code(path: list[str | int], text: str) -> None:
    """Odd keys stand in brackets."""
    assert path_text(path).startswith(text)
    assert len(path_text(path)) < 70


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (1.5, "1.5"), ((1,), "an array of 1"), (object(), "a object"), ("a" * 99, "the string 'aaa")],
    ids=["null", "number", "tuple", "object", "long text"],
)
def test_a_value_is_named_in_few_words(value: object, text: str) -> None:
    """Never more than its beginning."""
    assert got(value).startswith(text)
    assert len(got(value)) < 80
