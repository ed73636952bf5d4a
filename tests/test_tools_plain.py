from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.tools.plain import plain_predicate

TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(
    st.just({}),
    st.sampled_from(TYPES).map(lambda name: {"type": name}),
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(lambda names: {"type": names}),
    st.lists(st.sampled_from(["x", "y", ""]), min_size=1, unique=True).map(lambda members: {"enum": members}),
    st.lists(st.sampled_from([0, 1, 2]), min_size=1, unique=True).map(lambda members: {"enum": members}),
    st.sampled_from(["one", "two"]).map(lambda name: {"$ref": f"#/$defs/{name}"}),
)


def _nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": st.booleans(),
        },
    )
    return st.one_of(
        objects,
        inner.map(lambda item: {"type": "array", "items": item}),
        inner.map(lambda item: {"items": item, "description": "d", "default": 1}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
    )


SCHEMAS = st.recursive(LEAVES, _nested, max_leaves=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 2, 3, 1.0, 0.5, "x", "y", "", "z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_what_is_plainly_valid_is_valid(schema: dict[str, Any], values: list[Any]) -> None:
    """The quick yes never contradicts the validator, whatever schema and value."""
    schema = {**schema, "$defs": {"one": {"type": "integer"}, "two": {"items": {"$ref": "#/$defs/one"}}}}
    predicate = plain_predicate(schema)
    assert predicate is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for value in values:
        assert not predicate(value) or validator.is_valid(value)


@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_usual_arguments_get_a_quick_yes(values: dict[str, Any]) -> None:
    """For objects of scalars the quick answer is the whole answer, so that it is worth asking."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string"},
            "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    predicate = plain_predicate(schema)
    assert predicate is not None
    assert predicate(values) == jsonschema.Draft202012Validator(schema).is_valid(values)


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": 3},
        {"pattern": "a"},
        {"oneOf": [{}]},
        {"const": 1},
        {"enum": [1, "a"]},
        {"enum": []},
        {"enum": [True]},
        {"enum": "a"},
        {"type": "strin"},
        {"type": []},
        {"type": ["string", "string"]},
        {"type": 3},
        {"description": 3},
        {"title": None},
        {"anyOf": []},
        {"anyOf": {}},
        {"anyOf": [True]},
        {"items": [{"type": "integer"}]},
        {"items": True},
        {"properties": []},
        {"properties": {"a": True}},
        {"required": "a"},
        {"required": ["a", "a"]},
        {"required": [1]},
        {"additionalProperties": {"type": "integer"}},
        {"additionalProperties": {}},
        {"$ref": "#"},
        {"$ref": "#/$defs/nope"},
        {"$ref": 3},
        {"$ref": "http://127.0.0.1/x"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        {"$defs": {"a": {"type": "strin"}}},
        {"$defs": []},
        {"$defs": {"a b": {}}, "$ref": "#/$defs/a b"},
        {"$id": "x"},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"$schema": 3},
        {"properties": {"a": {"$defs": {}}}},
        {"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}},
    ],
    ids=str,
)
def test_what_is_not_plain_is_left_to_the_validator(schema: dict[str, Any]) -> None:
    """A keyword, form or draft that this module does not read, or a fault, gets no quick answer."""
    assert plain_predicate(schema) is None


def test_unknown_keys_are_fine_where_the_schema_is_open() -> None:
    """A key without a schema of its own is allowed unless keys are closed."""
    open_ended, closed = (
        plain_predicate({"properties": {"a": {"type": "integer"}}, "additionalProperties": x}) for x in (True, False)
    )
    assert open_ended is not None
    assert closed is not None
    assert (open_ended({"z": 1, "a": 1}), open_ended({"z": 1, "a": "x"}), closed({"z": 1})) == (True, False, False)


def test_all_rules_of_a_schema_count() -> None:
    """One rule that fails is a no."""
    predicate = plain_predicate(
        {"type": ["array", "string"], "enum": ["a", "b"], "items": {}, "anyOf": [{"enum": ["a"]}]}
    )
    assert predicate is not None
    values: list[object] = ["a", "b", "c", []]
    assert [predicate(value) for value in values] == [True, False, False, False]


def test_drafts_that_agree_are_plain() -> None:
    """From draft 6 on, the plain keywords mean the same."""
    predicate = plain_predicate({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
    assert predicate is not None
    assert predicate({})
