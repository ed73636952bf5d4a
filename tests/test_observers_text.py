"""Foreign text is made harmless before it reaches a screen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.observers.text import printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain ü 日本 🙂", "plain ü 日本 🙂", id="ordinary text stays"),
        pytest.param("a\tb\nc", "a\tb\nc", id="tab and newline stay"),
        pytest.param("a\r\nb\r", "a\nb", id="line ends of Windows become newlines"),
        pytest.param("50%\r100%", "50%\\x0d100%", id="a carriage return inside a line is spelt out"),
        pytest.param("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", id="colours are spelt out"),
        pytest.param("\x1b]0;title\x07", "\\x1b]0;title\\x07", id="a window title is spelt out"),
        pytest.param("\x9b2J\x85", "\\x9b2J\\x85", id="one-byte controls are spelt out"),
        pytest.param("a\u202eb\u2066c", "a\\u202eb\\u2066c", id="marks that turn the direction are spelt out"),
        pytest.param("half \ud83d", "half \\ud83d", id="half a surrogate pair is spelt out"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    """Only characters that act on a terminal are spelt out."""
    assert printable(text) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_printable_leaves_no_control_character(text: str) -> None:
    """Whatever comes in, what goes out has no control but tab and newline, and can be encoded."""
    shown = printable(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cs"} or c in "\t\n" for c in shown)
    assert printable(shown) == shown
    shown.encode()


@given(st.text(alphabet="ab\n", max_size=50), st.integers(1, 20), st.integers(1, 5))
def test_shortened_keeps_the_beginning_and_counts_the_rest(text: str, chars: int, lines: int) -> None:
    """What is kept and what is said to be left out make up the whole."""
    short = shortened(text, max_chars=chars, max_lines=lines)
    if short == text:
        return
    kept, _, note = short.rpartition("\n")
    assert text.startswith(kept)
    assert note == f"[{len(text) - len(kept)} more characters]"
    assert len(kept) <= chars
    assert kept.count("\n") < lines
