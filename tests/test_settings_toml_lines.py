"""`atlas_core.settings.toml_lines`: which line holds which key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.settings.toml_lines import KeyPath, dotted, key_lines, split_key

_DOCUMENT = '''\
# a comment with [brackets] = and "quotes
top = 1 # [not.a.table]
[a.b]
c.d = "x = 1"
"quoted.key" = 2
'literal "key"' = 3
text = """
[looks.like.a.table]
key = "value"
\\"""
still text""""
literal = \'\'\'
[no.table]
it's\'\'\'\'
after = 1979-05-27 07:32:00 # a date with a space
list = [
  1, # one ]
  "]",
  { x = 1, y.z = [
    2 ] },
]
inline = { p = { q = "}" }, "r s" = [] }
[[a.items]]
name = "first"
[a.items.sub]
x = 1
[[a.items]]
name = "second"
[a]
late = true
["\\u00e4"]
k = 1\r
m = 2
'''
_LINES: dict[KeyPath, int] = {
    ("top",): 2,
    ("a", "b"): 3,
    ("a", "b", "c"): 4,
    ("a", "b", "c", "d"): 4,
    ("a", "b", "quoted.key"): 5,
    ("a", "b", 'literal "key"'): 6,
    ("a", "b", "text"): 7,
    ("a", "b", "literal"): 12,
    ("a", "b", "after"): 15,
    ("a", "b", "list"): 16,
    ("a", "b", "list", 0): 17,
    ("a", "b", "list", 1): 18,
    ("a", "b", "list", 2): 19,
    ("a", "b", "list", 2, "x"): 19,
    ("a", "b", "list", 2, "y"): 19,
    ("a", "b", "list", 2, "y", "z"): 19,
    ("a", "b", "list", 2, "y", "z", 0): 20,
    ("a", "b", "inline"): 22,
    ("a", "b", "inline", "p"): 22,
    ("a", "b", "inline", "p", "q"): 22,
    ("a", "b", "inline", "r s"): 22,
    ("a", "items"): 23,
    ("a", "items", 0): 23,
    ("a", "items", 0, "name"): 24,
    ("a", "items", 0, "sub"): 25,
    ("a", "items", 0, "sub", "x"): 26,
    ("a", "items", 1): 27,
    ("a", "items", 1, "name"): 28,
    ("a",): 29,
    ("a", "late"): 30,
    ("ä",): 31,
    ("ä", "k"): 32,
    ("ä", "m"): 33,
}


def test_every_key_has_its_line() -> None:
    """Tables, dotted and quoted keys, arrays of tables, inline tables and multi-line texts are told apart."""
    assert key_lines(_DOCUMENT) == _LINES


def test_the_lines_cover_exactly_what_the_parser_reads() -> None:
    """Every path of the parsed document has a line, and no other."""
    assert set(_paths(tomllib.loads(_DOCUMENT))) == set(_LINES)


def _paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


_KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6)
_TEXTS = st.text(st.sampled_from(list("ab='\"#[]{},.\n ")), max_size=12)
_TREES = st.dictionaries(_KEYS, _TEXTS | st.dictionaries(_KEYS, _TEXTS | st.lists(_TEXTS, max_size=3)), max_size=4)


def _basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _write(tree: dict[str, Any]) -> str:
    lines = [f"{_basic(key)} = {_basic(value)}" for key, value in tree.items() if isinstance(value, str)]
    for key, table in tree.items():
        if isinstance(table, dict):
            lines.append(f"[{_basic(key)}]")
            for inner, value in table.items():
                items = [value] if isinstance(value, str) else value
                body = ",\n".join(_basic(item) for item in items)
                lines.append(f"{_basic(inner)} = " + (_basic(value) if isinstance(value, str) else f"[\n{body}\n]"))
    return "\n".join(lines)


@given(_TREES)
def test_any_document_is_covered(tree: dict[str, Any]) -> None:
    """Whatever keys and texts hold, each path gets a line, and that line begins with the key."""
    text = _write(tree)
    lines = key_lines(text)
    assert set(lines) == set(_paths(tomllib.loads(text)))
    # Not splitlines(): it also ends lines where TOML does not.
    written = text.split("\n")
    for path, line in lines.items():
        last = path[-1]
        if isinstance(last, str):
            assert written[line - 1].lstrip("[").startswith(_basic(last))


@pytest.mark.parametrize("text", ["a", "a = [1", "= 1", "a = {b", 'a = "', "[a"], ids=repr)
def test_what_is_no_toml_is_refused(text: str) -> None:
    """Text that never passed the parser ends in an error, not in a loop."""
    with pytest.raises(ValueError, match="no valid TOML"):
        key_lines(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("ai", "agents"), "ai.agents"),
        (("ai", "gpt-4.1", "x y"), 'ai."gpt-4.1"."x y"'),
        (("a", 'q"\\', ""), 'a."q\\"\\\\".""'),
        (("-", "_"), "-._"),
    ],
    ids=["bare", "quoted", "escaped", "signs"],
)
def test_a_key_is_written_and_read_as_toml_does(path: tuple[str, ...], text: str) -> None:
    """Writing a path and splitting it again gives the same parts."""
    assert dotted(path) == text
    assert split_key(text) == path


def test_a_place_in_a_list_is_in_brackets() -> None:
    """Items of lists are counted from 0."""
    assert dotted(("tools", 3, "x")) == "tools[3].x"


@given(st.lists(_KEYS, min_size=1, max_size=4))
def test_splitting_undoes_writing(path: list[str]) -> None:
    """Any path survives being written as a dotted key."""
    assert list(split_key(dotted(path))) == path


@pytest.mark.parametrize("text", ["", "a.", ".a", "a b", "a[0]"], ids=repr)
def test_what_is_no_dotted_key_is_refused(text: str) -> None:
    """A key with an empty part or something after it is an error."""
    with pytest.raises(ValueError, match="no"):
        split_key(text)
