from __future__ import annotations

from typing import Any

import pytest
from atlas_llama.grammar import MAX_CALLS, RUNGS, SENTINEL, answer_grammar, narrow, probe_grammar
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from atlas_core import ToolSchema

SAFE = 2**53 - 1
INTEGER = {"type": "integer", "minimum": -SAFE, "maximum": SAFE}


def obj(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {"title": "T", "description": "d", "x-any": 1, "type": "object", "properties": {}},
            {"type": "object", "properties": {}, "additionalProperties": False},
            id="words for people go",
        ),
        pytest.param(
            obj(a={"type": "integer"}), {**obj(a=INTEGER), "additionalProperties": False}, id="whole numbers get bounds"
        ),
        pytest.param(
            obj(a={"type": "integer", "minimum": 10**17}),
            {**obj(a={"type": "integer", "minimum": 10**17, "maximum": 10**17}), "additionalProperties": False},
            id="bounds beyond the usual ones stay",
        ),
        pytest.param(
            obj(a={"type": "integer", "exclusiveMaximum": -(10**17)}),
            {
                **obj(a={"type": "integer", "exclusiveMaximum": -(10**17), "minimum": -(10**17)}),
                "additionalProperties": False,
            },
            id="the same below",
        ),
        pytest.param(
            obj(a={"oneOf": [{"type": "boolean"}, {"type": "null"}], "not": {"const": 1}}),
            {**obj(a={"anyOf": [{"type": "boolean"}, {"type": "null"}]}), "additionalProperties": False},
            id="one of several becomes any of them, and a denial goes",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string", "format": "uri"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
            id="named values stay open, and a format that is not known goes",
        ),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": obj(a={"const": 1}), "B": {"$ref": "https://example.org/x"}}},
            {"$ref": "#/$defs/A", "$defs": {"A": {**obj(a={"const": 1}), "additionalProperties": False}, "B": {}}},
            id="references stay inside",
        ),
        pytest.param(
            obj(a={"type": "array", "items": [{"const": 1}, True]}),
            {**obj(a={"type": "array", "prefixItems": [{"const": 1}, True]}), "additionalProperties": False},
            id="tuples of older drafts",
        ),
        pytest.param(
            {"allOf": [obj(a={"const": 1}), obj(b={"const": 2})]},
            {"allOf": [obj(a={"const": 1}), obj(b={"const": 2})]},
            id="parts of one object are not closed",
        ),
        pytest.param(
            {"type": "object", "minProperties": 1},
            {"type": "object", "minProperties": 1},
            id="an object that must have something is not closed",
        ),
        pytest.param(
            {"type": "object", "required": ["a"]},
            {"type": "object", "required": ["a"]},
            id="nor one that must have what it does not describe",
        ),
        pytest.param(
            {"type": "object", "patternProperties": {"^x": {"type": "integer", "enum": [1]}}},
            {"type": "object", "patternProperties": {"^x": {"type": "integer", "enum": [1]}}},
            id="nor one that describes names by a pattern",
        ),
        pytest.param({}, {"type": "object", "additionalProperties": False}, id="no arguments"),
    ],
)
def test_narrow(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """What a grammar can hold is kept, what it can't is left to the check afterwards."""
    assert narrow(schema) == expected


def test_rungs_get_looser() -> None:
    """The second gives up patterns, formats and bounds; the last one everything but that it is an object."""
    schema = obj(a={"type": "string", "pattern": "(?=a)b", "format": "date"}, n={"type": "integer", "minimum": 1})
    closest, coarse, anything = (
        rung(schema)["properties"] if rung is not RUNGS[-1] else rung(schema) for rung in RUNGS
    )
    assert closest["a"] == {"type": "string", "pattern": "(?=a)b", "format": "date"}
    assert coarse == {"a": {"type": "string"}, "n": {"type": "integer"}}
    assert anything == {"type": "object"}


_LEAVES = st.sampled_from(
    [{"type": "integer"}, {"type": "string", "maxLength": 3}, {"enum": ["a", 1]}, {"const": None}, {"type": "boolean"}]
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(lambda p: obj(**p)),
        inner.map(lambda one: {"type": "array", "items": one, "maxItems": 2}),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"oneOf": many}),
    ),
    max_leaves=6,
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["a", "b", "long"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)


@given(schema=_SCHEMAS, value=_VALUES)
def test_what_fits_stays_possible(schema: dict[str, Any], value: object) -> None:
    """A value that meets a schema without an unnamed property can still be written under the narrowed one."""
    whole = {**obj(v=schema), "additionalProperties": False}
    assume_valid = Draft202012Validator(_closed(whole)).is_valid({"v": value})
    if assume_valid:
        assert Draft202012Validator(narrow(whole)).is_valid({"v": value})


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


def test_the_grammar_spells_out_names_and_ends() -> None:
    """Names are JSON inside a quoted text, and every token that ends an answer is allowed to."""
    tool = ToolSchema(name='odd "name"/ü')
    grammar = answer_grammar([(tool, narrow({}))], answer=None, end_ids=(0, 2))
    assert grammar.startswith("%llguidance {}\nstart: message end\nmessage: words | calls\nend: <[0,2]>\n")
    assert r'call_0: "{\"name\": \"odd \\\"name\\\"/ü\", \"arguments\": " call_0_arguments "}"' in grammar
    assert f"(next call closing){{0,{MAX_CALLS - 1}}}" in grammar


def test_an_answer_may_be_held_to_a_schema() -> None:
    """Where the answer is data, words are no choice, with tools or without."""
    answer = narrow(obj(a={"const": 1}))
    alone = answer_grammar([], answer=answer, end_ids=())
    assert alone.startswith("%llguidance {}\nstart: message\nmessage: answer\nanswer: %json {")
    both = answer_grammar([(ToolSchema(name="t"), {})], answer=answer, end_ids=())
    assert "message: answer | calls" in both
    assert "words" not in both


def test_probes_begin_with_the_sentinel() -> None:
    """Both kinds of probe can't be answered otherwise."""
    assert f'start: "{SENTINEL}" value\n' in probe_grammar({"type": "object"})
    assert f'start: "{SENTINEL}" message end\n' in answer_grammar([], answer={}, end_ids=(1,), probe=True)
