"""Where the fenced blocks of a model's message stand, and what is only shown, quoted or thought aloud.

Follows CommonMark 0.31.2 (fences, block quotes, list items, HTML comments and `<pre>`), seen from the top of the
document: what stands inside a quote or a list item is passed over as a whole. Two things are not CommonMark's: the
tags in which models think aloud or give examples count as blocks, and other HTML does not hide a fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Fence", "Line", "Outline", "ThoughtsEnd", "after_thoughts", "find_thoughts_end"]

_LINE = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_FENCE = re.compile(r"( {0,3})(`{3,}+(?=[^`\r\n]*+(?:[\r\n]|\Z))|~{3,}+)[ \t]*+([^\r\n]*)")
_ITEM = re.compile(r"( *)([-+*]|\d{1,9}[.)])(?=([ \t]*+)(.?))")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_NO_PARAGRAPH = re.compile(rf" {{0,3}}#{{1,6}}(?:[ \t]|$)|{_RULE.pattern}")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_THINKING = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|examples?"
_HIDING = re.compile(
    rf" {{0,3}}<(?:(?P<comment>!--)|(?P<tag>pre|script|style|textarea|{_THINKING})(?=[\s>]|$))", re.IGNORECASE
)
_THINKING_ENDS = re.compile(rf" {{0,3}}</(?:{_THINKING})\s*>[ \t]*", re.IGNORECASE)
_LEADING = re.compile(rf"\s*<(?P<tag>{_THINKING})\s*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence that opens a block.

    Attributes:
        start: Where its line begins.
        body: Where the line after it begins.
        marker: Its run of backticks or tildes.
        info: Its info string, without the space around.
        listed: Whether it stands inside a list item, so that it is a part of that item's text.
        unclear: Whether that item may have ended before it: a line between them is indented less.
    """

    start: int
    body: int
    marker: str
    info: str
    listed: bool = False
    unclear: bool = False

    def line(self) -> re.Pattern[str]:
        """Return the pattern of a line that is a fence as long as this one or longer; group 1 is its info string."""
        char = re.escape(self.marker[0])
        return re.compile(rf"(?:(?<=[\r\n])|\A) {{0,3}}{char}{{{len(self.marker)},}}+[ \t]*+([^\r\n]*)")

    def end_of_line(self) -> re.Pattern[str]:
        """Return the pattern of such a fence that stands at the end of a line, behind what it closes."""
        return re.compile(rf"[ \t]*+{re.escape(self.marker[0])}{{{len(self.marker)},}}+[ \t]*+(?:\r\n|[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text at the top of the document."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtsEnd:
    """A closing tag of thoughts whose opening tag is not in the message, as some chat templates write that one."""

    end: int


def after_thoughts(text: str) -> int:
    """Return where a message goes on after thoughts in tags at its beginning; 0 if it has none."""
    opening = _LEADING.match(text)
    if opening is None:
        return 0
    closing = re.compile(rf"</{opening['tag']}\s*>", re.IGNORECASE).search(text, opening.end())
    return closing.end() if closing else 0


def find_thoughts_end(text: str, at: int) -> int | None:
    """Return the end of the next line that begins with the closing tag of thoughts, or None."""
    pattern = re.compile(rf"(?<=[\r\n]){_THINKING_ENDS.pattern}", re.IGNORECASE)
    match = pattern.search(text, at)
    return match.end() if match else None


class Outline:
    """Goes through a message once, from top to bottom.

    Args:
        text: The message.

    Attributes:
        hidden_from: Where a tag or comment begins that nothing closes, or None.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._item = 0  # column where the open list item's content begins; 0 if none is open
        self._item_empty = False
        self._lazy = False  # whether the item is open only if a line that is indented less belongs to it
        self._paragraph = False  # whether the line before is text of a paragraph outside of items
        self._blank = True
        self.hidden_from: int | None = None

    def go_to(self, at: int) -> None:
        """Go on from `at`, which is the end of a block."""
        self._at = at
        self._blank = True

    def closing(self, fence: Fence, at: int) -> tuple[int, int] | None:
        """Return where the fence line that closes a block begins and where the line after it does, or None."""
        for match in fence.line().finditer(self._text, at):
            if not match[1].strip():
                after = _LINE.match(self._text, match.end())
                return match.start(), after.end() if after else match.end()
        return None

    def pieces(self) -> Iterator[Fence | Line | ThoughtsEnd]:
        """Yield what stands at the top of the document; after a fence, the caller goes to its block's end."""
        while self._at < len(self._text):
            start = self._at
            match = _LINE.match(self._text, start)
            assert match is not None  # noqa: S101  # the pattern matches any text
            self._at = match.end()
            piece = self._piece(match[1], start)
            if piece is not None:
                yield piece

    def _piece(self, line: str, start: int) -> Fence | Line | ThoughtsEnd | None:
        content = line.lstrip(" \t")
        if not content:
            self._blank = True
            self._paragraph = False
            self._item = 0 if self._item_empty else self._item  # an item may begin with one blank line, its own
            return None
        blank_before, self._blank = self._blank, False
        self._item_empty = False
        indent = _columns(line, len(line) - len(content))
        listed = bool(self._item) and indent >= self._item
        if (fence := _FENCE.match(self._text, start)) is not None:
            self._item = self._item if listed else 0
            self._paragraph = False
            return Fence(start, self._at, fence[2], fence[3].strip(), listed, listed and self._lazy)
        if listed:
            return None
        return self._top_level(line, content, start, indent, blank_before=blank_before)

    def _top_level(
        self, line: str, content: str, start: int, indent: int, *, blank_before: bool
    ) -> Line | ThoughtsEnd | None:
        if indent >= 4:
            return None
        in_paragraph, self._paragraph = self._paragraph, False
        item = _Item.begun_by(line)
        if item is not None and not (in_paragraph and not item.may_interrupt):
            self._item, self._item_empty, self._lazy = item.column, item.empty, False
            return None
        if blank_before or content[0] in ">#<" or _RULE.match(line):
            self._item = 0
        if content[0] == ">":
            return None
        if content[0] == "<":
            if (ends := _THINKING_ENDS.match(line)) is not None:
                return ThoughtsEnd(start + ends.end())
            if (hiding := _HIDING.match(line)) is not None:
                self._hide(hiding, start)
                return None
        self._lazy = True  # if an item is open
        self._paragraph = not self._item and not (
            _NO_PARAGRAPH.match(line) or (in_paragraph and _UNDERLINE.match(line))
        )
        return Line(start, start + len(line), content)

    def _hide(self, opening: re.Match[str], start: int) -> None:
        """Go to the end of the line in which a comment or tag is closed."""
        tag = opening["tag"]
        pattern = re.compile(rf"</{tag}\s*>" if tag else "-->", re.IGNORECASE)
        closing = pattern.search(self._text, start + opening.end())
        if closing is None:
            self.hidden_from = opening.end() + start
            self.go_to(len(self._text))
            return
        match = _LINE.match(self._text, closing.end())
        self.go_to(match.end() if match else closing.end())


def _columns(line: str, length: int) -> int:
    """Return how far a line's first `length` characters, spaces and tabs, reach, with tab stops every 4 columns."""
    column = 0
    for char in line[:length]:
        column = column + 4 - column % 4 if char == "\t" else column + 1
    return column


@dataclass(frozen=True, slots=True)
class _Item:
    """The first line of a list item: where its content begins, whether it has none, and whether it ends a paragraph."""

    column: int
    empty: bool
    may_interrupt: bool

    @classmethod
    def begun_by(cls, line: str) -> _Item | None:
        match = _ITEM.match(line)
        if match is None or (match[4] and not match[3]) or _RULE.match(line):
            return None
        marker = match.end(2)
        space = _columns(line, match.end(3)) - marker
        empty = not match[4]
        first = not match[2][0].isdigit() or int(match[2][:-1]) == 1
        return cls(marker + (space if not empty and space <= 4 else 1), empty, first and not empty)
