"""What was granted and taken back: the last word about a tool counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.grants import Grants, check_pattern
from atlas_core.permissions import matches

TOOLS = ["a_read", "a_write", "b_read", "B-Write", "c.d", "c"]
PATTERNS = ["*", "a_*", "A-*", "*_read", "*-READ", "?", "[ab]*", "[AB]*", "c*", "zzz*", *TOOLS]
Word = tuple[str, bool]

words = st.lists(st.tuples(st.sampled_from(PATTERNS), st.booleans()), max_size=12)
patterns = st.sampled_from(PATTERNS)


def _after(words: list[Word], grants: Grants | None = None) -> Grants:
    grants = grants or Grants()
    for pattern, granted in words:
        grants = grants.after(pattern, granted=granted)
    return grants


def _allowed(grants: Grants) -> set[str]:
    return {tool for tool in TOOLS if grants.allow(tool)}


def _meaning(pattern: str) -> set[str]:
    return {tool for tool in TOOLS if matches(pattern, tool)}


@given(words)
def test_the_last_word_counts_and_silence_is_no(words: list[Word]) -> None:
    """Whatever was dropped on the way: each tool is allowed if the last word that means it grants, else not."""
    grants = _after(words)
    for tool in TOOLS:
        said = [granted for pattern, granted in words if matches(pattern, tool)]
        assert grants.allow(tool) is (said[-1] if said else False)


@given(words, patterns)
def test_a_grant_gives_what_it_means_and_takes_nothing(words: list[Word], pattern: str) -> None:
    """And a revocation takes what it means and gives nothing; the rest stays as it was."""
    before = _after(words)
    assert _allowed(before.after(pattern, granted=True)) == _allowed(before) | _meaning(pattern)
    assert _allowed(before.after(pattern, granted=False)) == _allowed(before) - _meaning(pattern)


@given(words, st.lists(patterns, max_size=5), st.booleans(), st.randoms(use_true_random=False))
def test_words_of_one_kind_may_come_in_any_order(
    words: list[Word], more: list[str], granted: bool, random: Any
) -> None:
    """Several grants in a row come to the same however they are ordered, and so do several revocations."""
    one = _after([(p, granted) for p in more], _after(words))
    other = _after([(p, granted) for p in random.sample(more, len(more))], _after(words))
    assert _allowed(one) == _allowed(other)


@given(words, patterns, patterns, st.booleans(), st.booleans())
def test_words_about_different_tools_may_come_in_any_order(
    words: list[Word], one: str, other: str, first: bool, second: bool
) -> None:
    """Only where two words mean one tool does it matter which was said last."""
    before = _after(words)
    there = _allowed(_after([(one, first), (other, second)], before))
    back = _allowed(_after([(other, second), (one, first)], before))
    contested = _meaning(one) & _meaning(other)
    assert there - contested == back - contested
    if not contested or first is second:
        assert there == back


@given(words)
def test_no_more_is_kept_than_there_are_patterns(words: list[Word]) -> None:
    """So that granting and revoking for ever takes no more room; and the first word kept is a grant."""
    grants = _after(words * 3)
    assert len(grants.words) <= len({p if "[" in p else p.lower().replace("-", "_") for p, _ in words})
    assert not grants.words or grants.words[0].granted
    assert _allowed(grants) == _allowed(_after(words))


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([("a_*", True), ("a_read", False)], ["grant a_*", "revoke a_read"]),
        ([("a_*", True), ("a_read", False), ("a_read", True)], ["grant a_*", "grant a_read"]),
        ([("a_*", True), ("a_read", False), ("A-*", True)], ["grant A-*"]),
        ([("c", True), ("a_*", True), ("*", True)], ["grant *"]),
        ([("c", True), ("*", False)], []),
        ([("c", False)], []),
        ([("*", True), ("a_*", False), ("*_read", True)], ["grant *", "revoke a_*", "grant *_read"]),
    ],
    ids=[
        "an exception is kept",
        "granting again lifts it",
        "so does the pattern",
        "all covers all",
        "nothing is left",
        "nothing was there",
        "patterns that overlap are kept",
    ],
)
def test_what_still_counts_can_be_listed(words: list[Word], kept: list[str]) -> None:
    """The oldest word first."""
    assert [str(word) for word in _after(words).words] == kept


@pytest.mark.parametrize(
    "pattern", ["*", "knowledge_*", "net.*", "a?", "[abc]*", "[!a]*", "[]a]b", "mcp:x/*", "two words*", "a-[0-9]"]
)
def test_a_pattern_that_can_match_is_taken(pattern: str) -> None:
    """Whether or not it matches a tool that is there."""
    check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("dеlete_*", r"pattern 'dеlete_\*' can match no tool: names have no 'е' \(U\+0435\)"),
        ("größe*", r"names have no 'ö' \(U\+00F6\)"),
        ("a,b*", r"names have no ',' \(U\+002C\)"),
        ("*\n", r"names have no '\\n' \(U\+000A\)"),
        ("é*", r"names have no 'é'"),
        ("a[bc", r"pattern 'a\[bc' can match no tool: a '\[' lacks its '\]'"),
        ("[", r"a '\[' lacks its '\]'"),
        ("[a]b[", r"a '\[' lacks its '\]'"),
    ],
    ids=[
        "a Cyrillic e",
        "an umlaut",
        "a list",
        "a new line",
        "first character",
        "open set",
        "only a bracket",
        "second",
    ],
)
def test_a_pattern_that_can_never_match_is_refused(pattern: str, problem: str) -> None:
    """A look-alike letter in a revocation would protect nothing, unseen."""
    with pytest.raises(ValueError, match=problem):
        check_pattern(pattern)
