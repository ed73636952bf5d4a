"""Where the fenced blocks of a model's message stand, and what is only shown, quoted or thought aloud.

Follows CommonMark 0.31.2 (fences, block quotes, list items), seen from the top of the document: what stands inside a
quote or a list item is passed over as a whole. Beyond CommonMark, whatever is open around a fence hides it: comments,
tags of any name that begin or end a line, LaTeX environments, triple quotes, and the marks between which models think.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Fence", "Line", "Outline", "ThoughtsEnd", "after_thoughts"]

_LINE = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_FENCE = re.compile(r"( {0,3})(`{3,}+(?=[^`\r\n]*+(?:[\r\n]|\Z))|~{3,}+)[ \t]*+([^\r\n]*)")
_ITEM = re.compile(r"( *)([-+*]|\d{1,9}[.)])(?=([ \t]*+)(.?))")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_NO_PARAGRAPH = re.compile(rf" {{0,3}}#{{1,6}}(?:[ \t]|$)|{_RULE.pattern}")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")

# Thoughts: DeepSeek, Qwen and others use tags of such names; Mistral [THINK]; Cohere START_THINKING; gpt-oss (harmony)
# and Gemma channels, older Gemma unused94; Kimi triangles; OpenThinker begin_of_thought.
_THOUGHTS = r"[\w:-]{0,16}?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
_CHANNEL = r"(?:<\|start\|>assistant)?<\|channel\|>analysis\b"
_BEGINS = (
    rf"<{_THOUGHTS}(?=[\s>]|$)|\[THINK\]|<\|(?:START_THINKING|begin_of_thought|think)\|>|<\|channel>thought"
    rf"|<unused94>|◁think▷|{_CHANNEL}"
)
_ENDS = (
    rf"</{_THOUGHTS}\s*>|\[/THINK\]|<\|(?:END_THINKING|end_of_thought|/think)\|>|<channel\|>|<unused95>|◁/think▷"
    r"|<\|channel\|>final\b[^<\r\n]{0,40}<\|message\|>"
)
_THOUGHTS_BEGIN = re.compile(_BEGINS, re.IGNORECASE)
_THOUGHTS_END = re.compile(_ENDS, re.IGNORECASE)
_CHANNEL_END = re.compile(rf"<\|end\|>|(?=<\|channel\|>)|{_ENDS}", re.IGNORECASE)
_LEADING = re.compile(rf"\s*+(?:{_BEGINS})", re.IGNORECASE)

# Tags that hold nothing, and those of calls and results, which are looked at by others.
_NO_COVER = (
    r"(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b"
    r"|(?:tool|function)[_-]?(?:calls?|use|code|results?|responses?|outputs?)?\b|invoke\b)"
)
_OPENING = (
    rf"(?P<channel>{_CHANNEL})|(?P<thoughts>{_BEGINS})|(?P<comment><!--)|\\begin\{{(?P<env>[^{{}}\r\n]{{1,40}})\}}"
    rf"|\[(?P<bb>quote|code|example|spoiler)\](?![(:\[])|<{_NO_COVER}(?P<tag>[a-z][\w:.-]{{0,60}})(?=[\s>]|$)(?![^<>\r\n]*/>)"
)
_COVER = re.compile(rf" {{0,3}}(?:{_OPENING})", re.IGNORECASE)
_COVER_AT_END = re.compile(rf"(?<![\w`<])(?:{_OPENING})(?:(?<=\w)(?:[ \t][^<>]{{0,200}})?>)?[ \t]*$", re.IGNORECASE)
_UNCOVER = re.compile(
    r"</(?P<tag>[a-z][\w:.-]{0,60})\s*>|(?P<comment>-->)|\\end\{(?P<env>[^{}\r\n]{1,40})\}"
    r"|\[/(?P<bb>quote|code|example|spoiler)\]",
    re.IGNORECASE,
)
_TRIPLE = re.compile(r"(?P<triple>\"{3}|'{3})")


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
    """The end of thoughts whose beginning is not in the message, as some chat templates write that one."""

    end: int


def after_thoughts(text: str) -> int:
    """Return where a message goes on after thoughts in tags at its beginning; 0 if it has none."""
    opening = _LEADING.match(text)
    closing = _THOUGHTS_END.search(text, opening.end()) if opening else None
    return closing.end() if closing else 0


class Outline:
    """Goes through a message once, from top to bottom.

    Args:
        text: The message.

    Attributes:
        hidden_from: Where something begins that hides all that follows, as nothing closes it; else None.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._item = 0  # column where the open list item's content begins; 0 if none is open
        self._item_empty = False
        self._lazy = False  # whether the item is open only if a line that is indented less belongs to it
        self._paragraph = False  # whether the line before is text of a paragraph outside of items
        self._blank = True
        self._closers: dict[str, list[int]] | None = None
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
        if (ends := self._unmatched_end(line, start)) is not None:
            self._item = 0
            self._paragraph = False
            self.go_to(ends.end)
            return ends
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
        if (opening := _opening(line)) is not None:
            self._item = 0
            return self._hide(opening, Line(start, start + len(line), content))
        self._lazy = True  # if an item is open
        self._paragraph = not self._item and not (
            _NO_PARAGRAPH.match(line) or (in_paragraph and _UNDERLINE.match(line))
        )
        return Line(start, start + len(line), content)

    def _unmatched_end(self, line: str, start: int) -> ThoughtsEnd | None:
        """Return the end of thoughts in a line that neither quotes nor begins them."""
        if line.lstrip().startswith(">"):
            return None
        begin = _THOUGHTS_BEGIN.search(line)
        for match in _THOUGHTS_END.finditer(line, 0, begin.start() if begin else len(line)):
            if not (line[match.start() - 1 : match.start()] == line[match.end() : match.end() + 1] == "`"):
                return ThoughtsEnd(self._last_end(_THOUGHTS_END, start + match.end()))
        return None

    def _last_end(self, pattern: re.Pattern[str], at: int) -> int:
        """Return where the last end of thoughts in a line ends, so that many in one take no more time than one."""
        line = _LINE.match(self._text, at)
        assert line is not None  # noqa: S101  # the pattern matches any text
        return max([at, *(match.end() for match in pattern.finditer(self._text, at, line.end(1)))])

    def _hide(self, opening: re.Match[str], line: Line) -> Line | ThoughtsEnd | None:
        """Go to where what opens in a line is closed: behind thoughts, or after the line that closes another thing."""
        start = line.start
        while True:
            begin = start + opening.end()
            end = self._closed_at(opening, begin)
            if end is None:
                return self._hide_all(begin)
            if opening.lastgroup in {"channel", "thoughts"}:
                self.go_to(end)
                return None
            match = _LINE.match(self._text, end)
            assert match is not None  # noqa: S101  # the pattern matches any text
            following = _opening_at_end(match[1])
            if following is None:
                if end <= line.end:
                    return line  # nothing but a part of it was hidden
                self.go_to(match.end())
                return None
            opening, start = following, end

    def _closed_at(self, opening: re.Match[str], begin: int) -> int | None:
        kind = str(opening.lastgroup)
        if kind == "triple":
            at = self._text.find(opening[0], begin)
            return at + 3 if at >= 0 else None
        if kind in {"channel", "thoughts"}:
            pattern = _CHANNEL_END if kind == "channel" else _THOUGHTS_END
            match = pattern.search(self._text, begin)
            return self._last_end(pattern, match.end()) if match else None
        if self._closers is None:
            self._closers = {}  # found once for all, so that many that open take no more time than one
            for match in _UNCOVER.finditer(self._text):
                self._closers.setdefault(_key(match), []).append(match.end())
        ends = self._closers.get(_key(opening), [])
        at = bisect_right(ends, begin)
        return ends[at] if at < len(ends) else None

    def _hide_all(self, begin: int) -> ThoughtsEnd | None:
        """Pass over the rest, or, if that ends thoughts, over the rest of these."""
        if (match := _THOUGHTS_END.search(self._text, begin)) is not None:
            self.go_to(match.end())
            return ThoughtsEnd(match.end())
        self.hidden_from = begin
        self.go_to(len(self._text))
        return None


def _opening(line: str) -> re.Match[str] | None:
    """Return what begins in a line and hides what follows: at the line's begin or end, or an odd triple quote."""
    return _COVER.match(line) or _opening_at_end(line)


def _opening_at_end(line: str) -> re.Match[str] | None:
    match = _COVER_AT_END.search(line)
    if match is None and len(quotes := list(_TRIPLE.finditer(line))) % 2:
        match = quotes[-1]
    return match


def _key(match: re.Match[str]) -> str:
    """Return what an opening and its closing have in common."""
    kind = str(match.lastgroup)
    return f"{kind} {match[kind].lower() if kind != 'comment' else ''}"


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
