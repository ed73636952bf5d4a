"""JSON as models write it is read where its meaning is certain, and refused where it is not."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core._runtime.loose_json import MAX_DEPTH, MAX_REPAIR_CHARS, LooseError, parse, render, repair, skip_space

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


def value(text: str) -> Any:
    """Return what a text is read as."""
    return json.loads(render(parse(text)))


@given(_VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_json_is_read_as_json(wanted: Any, indent: int | None, ascii_only: bool) -> None:
    """Nothing about it needs repair, and it ends where it ends."""
    text = json.dumps(wanted, indent=indent, ensure_ascii=ascii_only)
    node = parse(f"{text} rest", 0)
    assert json.loads(render(node)) == wanted
    assert node.exact
    assert text[node.start : node.end] == text


@given(_VALUES)
def test_python_literals_are_read_as_python_reads_them(wanted: Any) -> None:
    """`repr` of a value is what many models write; only escapes that JSON lacks are refused."""
    try:
        found = value(repr(wanted))
    except LooseError as refusal:
        found = None
        refused = str(refusal)
    else:
        refused = ""
    assert found == wanted or ("escape" in refused and "\\" in repr(wanted))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": 1 // b\n}', {"a": 1}),
        ("{'a': \"it's\"}", {"a": "it's"}),
        ('{‘a’: “it\'s "b"”}', {"a": 'it\'s "b"'}),
        ("[„a“, ”b”]", ["a", "b"]),
        ('{"a": "x\r\n\ty"}', {"a": "x\r\n\ty"}),
        ('["\\\'", "\\“", "\\u00e9", "\\/"]', ["'", "“", "é", "/"]),
        ("{a-b: True, _c1: None}", {"a-b": True, "_c1": None}),
        ("\ufeff{\u00a0}", {}),
        ("[+1, .5, -.5, 5., 5.e2, .5e-1]", [1, 0.5, -0.5, 5.0, 500.0, 0.05]),
        ("/* a * b **/ [ # c\n]", []),
        ('"a"', "a"),
        ("null", None),
    ],
)
def test_repairs_of_form_are_made(text: str, wanted: Any) -> None:
    """Each leaves no doubt about what was meant."""
    assert value(text) == wanted


@pytest.mark.parametrize(
    ("text", "problem", "cut"),
    [
        ("", "ends before", True),
        ("[1", "ends before", True),
        ('{"a"', "ends before", True),
        ('{"a": "b', "not closed", True),
        ("['a]", "not closed", True),
        ("[“a]", "not closed", True),
        ("[1 /* a", "comment in it is not closed", True),
        ("[1}", "don't match", False),
        ('{"a": 1]', "don't match", False),
        ('{"a": 1, "a": 2}', "'a' stands twice", False),
        ("[NaN]", "NaN is no JSON number", False),
        ("[nan]", "nan is no JSON number", False),
        ("[+Infinity]", "+Infinity is no JSON number", False),
        ("[-inf]", "-inf is no JSON number", False),
        ("[01]", "'01' is no JSON number", False),
        ("[1_000]", "not JSON at '1_000]'", False),
        ("[0x1F]", "not JSON at '0x1F]'", False),
        ("[1.2.3]", "not JSON at '1.2.3]'", False),
        ("[undefined]", "'undefined' is not in quotes", False),
        ("[TRUE]", "'TRUE' is not in quotes", False),
        ("[b'x']", "'b' is not in quotes", False),
        ("[`a`]", "not JSON at '`a`]'", False),
        ('["\\d"]', "each backslash twice", False),
        ("['\\x41']", "each backslash twice", False),
        ('["""a"""]', "',' or ']' belongs", False),
        ("{1: 2}", "a key or '}' belongs", False),
        ("{+a: 2}", "a key or '}' belongs", False),
        ("{True: 2}", "a key or '}' belongs", False),
        ("{,}", "a key or '}' belongs", False),
        ("[,]", "a value belongs", False),
        ("[1,,2]", "a value belongs", False),
        ('{"a" 1}', "':' belongs", False),
        ('{"a": 1 "b": 2}', "',' or '}' belongs", False),
        ("[(1, 2)]", "not JSON at '(1, 2)]'", False),
        ("[" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} deep", False),
    ],
)
def test_doubtful_text_is_refused_with_what_is_wrong(text: str, problem: str, *, cut: bool) -> None:
    """And it is known whether text is missing at the end."""
    with pytest.raises(LooseError) as raised:
        parse(text)
    assert problem in str(raised.value)
    assert raised.value.cut is cut


def test_brackets_may_be_nested_to_the_limit() -> None:
    """The bound is inclusive."""
    assert render(parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)) == "[" * MAX_DEPTH + "]" * MAX_DEPTH


@given(_VALUES, st.data())
def test_no_prefix_of_a_value_is_read_as_another(wanted: Any, data: st.DataObject) -> None:
    """What is cut is never closed by guess; only digits can end early, as nothing marks their end."""
    text = json.dumps([wanted])
    with pytest.raises(LooseError):
        parse(text[: data.draw(st.integers(0, len(text) - 1))])


@given(st.text(alphabet="[]{}:,\"'“”‘’\\/*#\n 01.-eEab_truefalsnNITF\ufeff") | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is raised, and what is read can be written and read again."""
    for reader in (parse, repair):
        try:
            node = reader(text)
        except LooseError as refusal:
            refused = str(refusal)
            assert refused
        else:
            assert render(parse(render(node))) == render(node)


# The last step -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[1 2 -3]", "[1, 2, -3]"),
        ('{"a": 1 "b": [] "c": {}}', '{"a": 1, "b": [], "c": {}}'),
        ('[{"a": 1} {"a": 2},]', '[{"a": 1}, {"a": 2}]'),
        ('{"a": 1.10\n"b": 1e5}', '{"a": 1.10, "b": 1e5}'),
        ("['a' \"b\"]", '["a", "b"]'),
        ('{"a": True "b": None}', '{"a": true, "b": null}'),
    ],
)
def test_missing_commas_are_added(text: str, wanted: str) -> None:
    """Everything else stays as it was written, to the digit."""
    assert render(repair(text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "[1,,2]",
        "[1 2",
        "[1 2}",
        '{"a" 1}',
        '{"a": 1 "a": 2}',
        '{"a": "1" "2"}',
        '{"a": "he said "hi" to"}',
        '{"a": b "c": 1}',
        '{"a": "b\\d" "c": 1}',
        "[1 2] 3",
        "[1 1e99999999999999999999]",
        "[1 2] [3]",
        "",
        "words",
        f"[{'1 ' * MAX_REPAIR_CHARS}]",
    ],
)
def test_a_repair_that_does_more_than_add_commas_is_refused(text: str) -> None:
    """No token is added, dropped, joined or split."""
    with pytest.raises(LooseError):
        repair(text)


@given(st.lists(_VALUES, min_size=2, max_size=5))
def test_a_repair_never_changes_a_value(values: list[Any]) -> None:
    """With its commas gone, a list is read as it was or refused."""
    text = "[" + " ".join(json.dumps(v) for v in values) + "]"
    try:
        node = repair(text)
    except LooseError:
        return
    assert json.loads(render(node)) == values


@pytest.mark.parametrize("unit", ["'a\"' \"b'\" ", "'a'b' ", '{"a" "b" ', '"a":', "1 ", "[", '\\" ', "{} [] ", "\"a' "])
def test_the_longest_repair_takes_seconds_at_most(unit: str) -> None:
    """json-repair is quadratic on some inputs, so that only short ones reach it."""
    text = "[" + unit * ((MAX_REPAIR_CHARS - 2) // len(unit)) + "]"
    began = time.perf_counter()
    with contextlib.suppress(LooseError):
        repair(text)
    assert time.perf_counter() - began < 10


def test_spaces_and_comments_are_skipped_within_bounds() -> None:
    """The place found is never beyond the end that was given."""
    text = " /* a */ # b\n // c"
    assert skip_space(text, 0, len(text)) == len(text)
    assert skip_space(text, 0, 1) == 1
    assert skip_space(text, 1, 4) == 1
    assert skip_space("a", 0, 1) == 0
