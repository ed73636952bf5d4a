"""Fences are found where CommonMark sees them at the top of the document."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from atlas_core._runtime.text_outline import Fence, Line, Outline, ThoughtsEnd, after_thoughts

_MARKDOWN = MarkdownIt("commonmark")


def top_fences(text: str) -> list[tuple[int, str]]:
    """Return line number and info string of the fences that would be executed."""
    outline = Outline(text)
    found = []
    for piece in outline.pieces():
        if isinstance(piece, Fence) and piece.unclear:
            break  # nothing in such a message is executed
        if isinstance(piece, Fence) and not piece.listed:
            found.append((text.count("\n", 0, piece.start), piece.info))
            closing = outline.closing(piece, piece.body)
            outline.go_to(closing[1] if closing else len(text))
    return found


def expected_fences(text: str) -> list[tuple[int, str]]:
    """Return the same from a full parser of CommonMark."""
    return [
        (token.map[0], token.info.strip())
        for token in _MARKDOWN.parse(text)
        if token.type == "fence" and not token.level and token.map
    ]


_STARTS = [
    "",
    " ",
    "   ",
    "    ",
    "> ",
    ">",
    "> > ",
    "- ",
    "-",
    "  ",
    "1. ",
    "10) ",
    "* ",
    "+   ",
    "-      ",
    "> - ",
    "- > ",
    "\t",
]
_CONTENTS = [
    "",
    "text",
    "```",
    "```json",
    "~~~",
    "~~~ json",
    "````",
    "# head",
    "---",
    "***",
    "<!-- a -->",
    "``` a`b",
    "``",
    "{",
]
_LINES = st.tuples(st.sampled_from(_STARTS), st.sampled_from(_CONTENTS)).map("".join)


@given(st.lists(_LINES, max_size=12).map("\n".join))
@example("- a\n\n  ```json\nb\n```")
@example("- ```json\n  a\n  ```\n```json\n```")
@example("> ```\na\n```json\n```")
@example("1. a\n```json\n```")
@example("- \n\n   ```\n```")
@example("text\n- \n  ```\n```")
@example("```\n```\n- \ntext\n   ```\n```")
@example("- - a\n\n    ```\n  ```json\n```")
def test_every_fence_found_is_one_of_commonmarks(text: str) -> None:
    """So that nothing in a quotation, list item, longer fence or code is taken for a call."""
    assert set(top_fences(text)) <= set(expected_fences(text))


@given(
    st.lists(st.tuples(st.sampled_from(["", "> ", ">"]), st.sampled_from(_CONTENTS)).map("".join), max_size=12).map(
        "\n".join
    )
)
def test_without_lists_the_fences_found_are_commonmarks(text: str) -> None:
    """No call is overlooked."""
    assert top_fences(text) == expected_fences(text)


def pieces(text: str) -> list[object]:
    """Return what an outline yields."""
    return list(Outline(text).pieces())


def test_lines_at_the_top_are_found_and_others_are_not() -> None:
    """Quotes, items, indented code and hidden text are no lines of the message itself."""
    text = "a\n> b\n- c\n  d\n\n e\n    f\n<!-- g\nh -->\n<pre>\ni</pre>\nj"
    assert [piece.text for piece in pieces(text) if isinstance(piece, Line)] == ["a", "e", "j"]


def test_a_rule_is_no_list_item() -> None:
    """`* * *` and `- - -` open nothing."""
    assert pieces("* * *\n  ```json")[-1] == Fence(6, 15, "```", "json")


def test_the_end_of_thoughts_is_found() -> None:
    """A closing tag without an opening one ends thoughts that a template began."""
    assert pieces("a\n</think>\nb")[1] == ThoughtsEnd(10)
    assert [type(piece) for piece in pieces("<think>\na\n</think>\nb")] == [Line]
    assert pieces("no</THINKING > b") == [ThoughtsEnd(14), Line(14, 16, "b")]
    assert [type(piece) for piece in pieces("- a\n  b</think>\n  c")] == [ThoughtsEnd, Line]
    assert [type(piece) for piece in pieces("> a</think>\n`</think>`\na <think>b</think>")] == [Line, Line]


def test_what_is_never_closed_hides_the_rest() -> None:
    """And it is known where that began."""
    for opening in ("<!--", "<think>", "<pre>", '"""', "\\begin{a}", "[THINK]", "b <c d=e>"):
        outline = Outline(f"a\n{opening}\n```json\n```")
        assert [type(piece) for piece in outline.pieces()] == [Line]
        assert outline.hidden_from is not None
    outline = Outline("a\n<p>\nb</think>\nc")
    assert [type(piece) for piece in outline.pieces()] == [Line, ThoughtsEnd, Line]
    assert outline.hidden_from is None


def test_thoughts_at_the_beginning_are_passed() -> None:
    """For a message that is one object behind them."""
    assert after_thoughts("  <think>a</think> b") == 18
    assert after_thoughts("<think>a") == 0
    assert after_thoughts("a") == 0
