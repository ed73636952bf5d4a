from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.errors import ToolArgumentsError, ToolDefinitionError
from atlas_core.interfaces.tools import ToolSchema
from atlas_core.tools.arguments import MAX_DEPTH, ArgumentChecker, Checked, parse
from atlas_core.tools.function import FunctionTool


def total(values: list[int], opts: dict[str, Any] | None = None) -> int:
    """Sum up."""
    return sum(values)


def wipe(folder: str = "all") -> str:
    """Wipe."""
    return folder


def checker(parameters: dict[str, Any], **options: Any) -> ArgumentChecker:
    """Make a checker for a schema."""
    return ArgumentChecker(ToolSchema(name="t", parameters=parameters), "plugin 'p'", **options)


def one(schema: object, **options: Any) -> ArgumentChecker:
    """Make a checker for one required argument `x`."""
    return checker({"type": "object", "properties": {"x": schema}, "required": ["x"]}, **options)


def refusal(check: ArgumentChecker, text: str) -> str:
    """Return the text of the refusal, whose length is bounded whatever was sent."""
    with pytest.raises(ToolArgumentsError) as caught:
        check.check(text)
    assert caught.value.tool
    assert len(str(caught.value)) <= 1000
    return str(caught.value)


# --- decoding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n", "null", " null ", "{}"], ids=repr)
def test_nothing_counts_as_an_empty_object(text: str) -> None:
    """Providers send "" and "null" for a call without arguments (case 20)."""
    check = ArgumentChecker(FunctionTool(wipe).schema)
    assert check.check(text) == Checked({})
    assert "values: is missing, expected an array" in refusal(ArgumentChecker(FunctionTool(total).schema), text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[]", "are an array"),
        ("3", "are a number"),
        ("2.5", "are a number"),
        ("true", "are true or false"),
        ('"x"', "are a string"),
        ('"null"', "are a string"),
        ('"[1]"', "are a string"),
    ],
)
def test_json_that_is_no_object_is_refused_by_its_kind(text: str, kind: str) -> None:
    """Each other kind of JSON has its own words, and the call is to be issued again (case 20)."""
    said = refusal(ArgumentChecker(FunctionTool(wipe).schema), text)
    assert kind in said
    assert "expected a JSON object" in said
    assert "issue the call again" in said


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"folder": "tmp', "line 1 column 12 (character 11)"),
        ("{folder: tmp}", "line 1 column 2 (character 1)"),
        ("{bad", "line 1 column 2 (character 1)"),
        ('{"folder":\n "a"} x', "line 2 column 7 (character 17)"),
        ('\ufeff{"folder": "a"}', "line 1 column 1 (character 0)"),
        ('{"folder": "a",}', "line 1 column"),
        ("\x00" * 100, "line 1 column 1"),
        ("garbage " * 40_000, "line 1 column 1 (character 0)"),
    ],
    ids=["cut", "bare words", "short", "more behind it", "byte order mark", "comma", "zeros", "300 KB of garbage"],
)
def test_text_that_is_no_json_is_refused_with_the_position(text: str, where: str) -> None:
    """The tool is not run on a guess; the model learns where its JSON broke (cases 20 and 22)."""
    said = refusal(ArgumentChecker(FunctionTool(wipe).schema), text)
    assert "not valid JSON" in said
    assert where in said
    assert "the tool was not run; issue the call again" in said
    assert text not in said or len(text) < 80


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"x": NaN}', "NaN is no JSON number"),
        ('{"x": -Infinity}', "-Infinity is no JSON number"),
        ('{"x": 1e999}', "the number 1e999 is out of range"),
        ('{"x": ' + "9" * 5000 + "}", "a number has too many digits"),
        ('{"x": 1, "x": 2}', "the key 'x' stands twice"),
        ('{"x": {"a": 1, "b": 2, "a": 3}}', "the key 'a' stands twice"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"x": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested too deeply"),
        ('{"x":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "nested too deeply"),
    ],
    ids=["nan", "infinity", "1e999", "digits", "twice", "twice inside", "far too deep", "too deep", "objects too deep"],
)
def test_what_json_does_not_have_is_refused(text: str, said: str) -> None:
    """NaN, a key twice, endless numbers and nesting are errors, not guesses (case 30)."""
    assert said in refusal(one({}), text)


def test_many_brackets_are_not_deep_ones() -> None:
    """Breadth is no depth, and the allowed depth is allowed."""
    assert one({}).check('{"x": [' + "[], " * 500 + "{}]}").values["x"][-1] == {}
    deep = '{"x": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    assert one({}).check(deep).values == json.loads(deep)


def test_each_check_gives_values_of_its_own() -> None:
    """What a tool does to its arguments is seen by no other call."""
    check = ArgumentChecker(FunctionTool(total).schema)
    check.check('{"values": [1]}').values["values"].append(2)
    assert check.check('{"values": [1]}').values == {"values": [1]}


@given(st.text(max_size=200))
def test_any_text_is_checked_or_refused(text: str) -> None:
    """No text makes the checker raise anything but its own error."""
    try:
        ArgumentChecker(FunctionTool(wipe).schema).check(text)
    except ToolArgumentsError as exc:
        assert len(str(exc)) <= 1000  # noqa: PT017  # only some texts are refused


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4))
def test_an_open_schema_returns_what_was_sent(values: dict[str, Any]) -> None:
    """Decoding and checking lose and change nothing."""
    assert checker({}).check(json.dumps(values)) == Checked(values)
    assert parse(json.dumps(values, ensure_ascii=False)) == values


# --- the one leniency ------------------------------------------------------------------------------------------------


def test_json_text_where_only_a_list_or_object_fits_is_decoded_once() -> None:
    """The intent is plain, the decoded value is checked in full, and the call says what was done (case 16)."""
    tool = FunctionTool(total)
    check = ArgumentChecker(tool.schema)
    assert check.check('{"values": "[1, 2, 3]"}') == Checked({"values": [1, 2, 3]}, ("values",))
    assert tool.execute(**check.check('{"values": "[1, 2, 3]"}').values) == 6
    assert "values[1]: expected an integer, got the string 'x'" in refusal(check, '{"values": "[1, \\"x\\"]"}')
    assert "values: expected an array, got the string '1,2'" in refusal(check, '{"values": "1,2"}')
    assert check.check('{"values": [1,2], "opts": "{}"}') == Checked({"values": [1, 2], "opts": {}}, ("opts",))
    assert tool.schema.parameters["properties"]["values"]["type"] == "array"  # type: ignore[index]  # as built


def test_the_leniency_can_be_turned_off() -> None:
    """With `lenient=False` a text is a text (case 16)."""
    strict = ArgumentChecker(FunctionTool(total).schema, lenient=False)
    assert "values: expected an array, got the string '[1]'" in refusal(strict, '{"values": "[1]"}')
    assert "are a string" in refusal(strict, json.dumps('{"values": [1]}'))
    assert strict.check('{"values": [1]}').decoded == ()


@pytest.mark.parametrize(
    ("schema", "sent", "values"),
    [
        ({"type": "integer"}, "12", 12),
        ({"type": "number"}, " 1.5 ", 1.5),
        ({"type": "boolean"}, "true", True),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"oneOf": [{"type": "object"}, {"type": "array"}]}, '{"a": 1}', {"a": 1}),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": 3}, "3", 3),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "1", 1),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_every_kind_that_is_no_text_is_decoded(schema: object, sent: str, values: object) -> None:
    """Numbers, bools, arrays, objects and their unions, nullable ones too."""
    assert one(schema).check(json.dumps({"x": sent})) == Checked({"x": values}, ("x",))


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "integer"}, "twelve"),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, '"1"'),
        ({"type": "integer"}, "null"),
        ({"type": "integer"}, "NaN"),
        ({"type": "boolean"}, "True"),
        ({"type": "boolean"}, "1"),
        ({"enum": ["a", 1]}, "1"),
        ({"const": "a"}, "1"),
        ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 0}]}, "1"),
        ({"type": "string", "maxLength": 0}, "1"),
        ({"not": {"type": "string"}}, "1"),
        ({"type": "array"}, '"[1]"'),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_no_other_text_is_decoded(schema: object, sent: str) -> None:
    """Where a text is allowed it is meant, and what does not decode to a fitting value stays an error."""
    refusal(one(schema), json.dumps({"x": sent}))


def test_texts_inside_are_decoded_but_none_twice() -> None:
    """The leniency holds at any depth, and what came out of a text is taken as it is."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "integer"}}},
    }
    check = one({"type": "array", "items": schema})
    sent = {"x": [{"a": "1", "b": ["2", 3]}]}
    assert check.check(json.dumps(sent)) == Checked({"x": [{"a": 1, "b": [2, 3]}]}, ("x[0].a", "x[0].b[0]"))
    assert "x[0].a: expected an integer" in refusal(check, json.dumps({"x": json.dumps([{"a": "1"}])}))


def test_a_text_with_several_faults_is_decoded_once() -> None:
    """Two violated rules at one place are one text."""
    check = one({"allOf": [{"type": "integer"}, {"type": "number"}]})
    assert check.check('{"x": "1"}') == Checked({"x": 1}, ("x",))


def test_the_whole_object_as_a_text_is_decoded() -> None:
    """Some models encode their arguments twice."""
    check = ArgumentChecker(FunctionTool(total).schema)
    assert check.check(json.dumps('{"values": [1]}')) == Checked({"values": [1]}, ("arguments",))
    assert "values[0]: expected an integer" in refusal(check, json.dumps('{"values": [null]}'))


# --- checking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_bool_is_no_number(kind: str) -> None:
    """`true` is refused where a number is due, in plain schemas and in others."""
    for schema in ({"type": kind}, {"type": kind, "minimum": 0}, {"enum": [0, 1]}):
        assert "got true" in refusal(one(schema), '{"x": true}')


def test_a_whole_float_is_an_integer() -> None:
    """1.0 is an integer to JSON Schema."""
    for schema in ({"type": "integer"}, {"type": "integer", "minimum": 0}, {"enum": [1]}):
        assert one(schema).check('{"x": 1.0}').values == {"x": 1}


def test_the_draft_is_the_one_the_schema_names() -> None:
    """In draft 7 `items` may be a list of schemas, which 2020-12 calls `prefixItems`."""
    schema = {"properties": {"x": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}}}
    draft7 = checker({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    assert "x[1]: expected a string" in refusal(draft7, '{"x": [1, 2]}')
    with pytest.raises(ToolDefinitionError, match="is not valid at"):
        checker(schema)


def test_formats_are_told_and_not_asserted() -> None:
    """A `format` is for the model; whoever needs it checks when building values (case 146)."""
    assert one({"type": "string", "format": "date"}).check('{"x": "x"}').values == {"x": "x"}


def test_a_recursive_schema_works() -> None:
    """A type may contain itself, and the path of a fault is told (case 146)."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}
    check = checker({"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert check.check('{"x": {"next": {"next": {"v": 1}}}}').values["x"]["next"]["next"]["v"] == 1
    assert "x.next.v: expected an integer" in refusal(check, '{"x": {"next": {"v": []}}}')


def test_boolean_schemas_and_missing_types_work() -> None:
    """`true`, `false` and a schema that says nothing mean what JSON Schema says (case 146)."""
    check = checker({"properties": {"a": True, "b": False, "c": {}}})
    assert check.check('{"a": [1], "c": {"d": 1}, "e": 1}').values == {"a": [1], "c": {"d": 1}, "e": 1}
    assert "b: is not allowed" in refusal(check, '{"b": 1}')
    assert "an object is not allowed" in refusal(checker({"allOf": [False]}), "{}")
    anything: Any = True
    assert ArgumentChecker(ToolSchema(name="t", parameters=anything)).check('{"a": 1}').values == {"a": 1}


def test_values_that_only_the_full_check_can_judge_are_judged() -> None:
    """A no of the quick check is a question to the validator, whose yes counts."""
    check = checker({"properties": {"x": {"enum": [1]}}})
    assert check.check('{"x": 1.0}').values == {"x": 1.0}


def test_a_value_too_deep_for_the_schema_is_an_argument_error() -> None:
    """Only argument errors come out of a check, even where Python's recursion ends (case 146)."""
    nested: dict[str, Any] = {"$ref": "#/$defs/a0"}
    names = [f"a{i}" for i in range(400)]
    defs: dict[str, Any] = {
        name: {"allOf": [{"allOf": [{"$ref": f"#/$defs/a{i + 1}"}]}]} for i, name in enumerate(names[:-1])
    }
    defs[names[-1]] = {"type": "integer"}
    check = checker({"properties": {"x": nested}, "$defs": defs})
    assert "nested too deeply" in refusal(check, '{"x": 1}')


def test_python_values_are_checked_as_json() -> None:
    """A program's own values pass the same check; what is no JSON is refused."""
    check = ArgumentChecker(FunctionTool(total).schema)
    assert check.check_values({"values": (1, 2)}).values == {"values": [1, 2]}
    for value in ({1}, math.nan, object()):
        with pytest.raises(ToolArgumentsError, match="are no JSON values"):
            check.check_values({"values": [value]})
    with pytest.raises(ToolArgumentsError, match=r"values\[0\]: expected an integer"):
        check.check_values({"values": ["a"]})
