"""Foreign text is made harmless before it reaches a screen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import Usage
from atlas_core.observers.text import amount_text, printable, shortened, usage_text


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


def test_usage_is_one_line() -> None:
    """Thousands are told apart, cached tokens and cost stand only where there are any."""
    usage = Usage(input_tokens=1234, output_tokens=56, cost=0.0123)
    assert usage_text(usage, requests=2) == "2 requests, 1,234 tokens in, 56 out, cost 0.0123"
    cached = Usage(input_tokens=1234, cached_input_tokens=1000)
    assert usage_text(cached, requests=1) == "1 request, 1,234 tokens in (1,000 cached), 0 out"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0.0, "0.00"),
        (1234.5, "1234.50"),
        (12.345, "12.35"),
        (0.5, "0.500"),
        (0.0123456, "0.0123"),
        (0.00000123, "0.00000123"),
        (float("inf"), "inf"),
    ],
)
def test_amounts_keep_three_digits(amount: float, shown: str) -> None:
    """However small, and never in powers of ten."""
    assert amount_text(amount) == shown


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_an_amount_reads_back_as_nearly_the_same(amount: float) -> None:
    """To half a unit of its third digit, or half a cent."""
    assert float(amount_text(amount)) == pytest.approx(amount, rel=0.0051, abs=0)
