"""Tool calls in plain text: what a model without native calls wrote, read as a wish or as nothing but text.

A block is executed only if the message ended normally; its fence stands at column 0 to 3 outside of quotes, list items
and longer fences; its info string is empty, `json` or `tool_call`; it holds one object with the key `tool_calls`; and
every name in it was offered. Without a fence, only if the whole message is that object. `loose_json` says which repairs
of form are made. Everything else is text, or, where a call was surely meant, a problem to be told in one line.

Blocks with calls end the message: only white space and further such blocks may stand behind one. All of them are one
wish, and so is an object that stands openly in the text: if one can't be executed, none is. Only what directly follows
them and is not the model's to write (a block with `tool_results`, a line `Observation:`, a turn of the user) is dropped
unread; the calls before it stand. What a model thinks aloud in `<think>` and the like is never executed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from atlas_core._runtime.loose_json import LooseError, Node, parse, repair, skip_space
from atlas_core._runtime.text_attempts import FIRST_KEY, FORM, INFO, INFOS, SIGN, WISH, find_attempt
from atlas_core._runtime.text_outline import Fence, Line, Outline, ThoughtsEnd, after_thoughts
from atlas_core._runtime.text_wishes import KEY, ProblemError, Wish, read_wishes
from atlas_core.messages import ToolCall

__all__ = ["TextTurn", "read_calls"]

MAX_PROBLEM_CHARS = 300

_RESULT_INFO = re.compile(r"(?:tool|function)_(?:results?|responses?|outputs?)", re.IGNORECASE)
_INVENTED_INFO = re.compile(r"results?|responses?|outputs?|observations?", re.IGNORECASE)
_RESULT_KEY = re.compile(r"\{\s*[\"'“]?tool_results[\"'”]?\s*:")
_RESULT_LINE = re.compile(
    rf"<(?:tool|function)_(?:results?|outputs?|responses?)\b|\[TOOL_RESULTS?\]|{_RESULT_KEY.pattern}", re.IGNORECASE
)
_INVENTED_LINE = re.compile(
    r"[*_#\s]*(?:observations?|(?:tool|function)[ _](?:results?|outputs?|responses?)|user|human|system|instruction)"
    r"\b[ \d]*[*_]*:|<\|(?:im_start|im_end|user|start|end|eot_id|eom_id|endoftext|call)\b|</s>|<end_of_turn>|\[INST\]",
    re.IGNORECASE,
)
_END_MARKS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end|>", "<|call|>", "</s>", "<end_of_turn>")
_MAX_END_MARKS = 8  # a model that repeats them without end is stuck

_BEHIND = "text stands behind a block with calls; put all blocks last, or, to only show one, begin its lines with '> '"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTurn:
    """What a message in the text protocol says.

    Attributes:
        thoughts: The text outside the executed blocks, and what these hold besides calls; without calls, the answer.
        calls: What to execute, in order; ids are `t<iteration>-<n>`.
        problem: Why a wish can't be executed, one line for the model; nothing is executed then.
        dropped: What followed an invented result, as it was written.
        repaired: Whether a call's form had to be repaired.
    """

    thoughts: str
    calls: tuple[ToolCall, ...] = ()
    problem: str | None = None
    dropped: str = ""
    repaired: bool = False


def read_calls(text: str, offered: Collection[str], *, iteration: int, ended: bool = True) -> TextTurn:
    """Read a model's message; takes time in proportion to its length and raises on no text.

    Args:
        text: The message.
        offered: Names of the tools that were offered to the model, exactly as it saw them.
        iteration: The model request that it answers; part of the calls' ids.
        ended: Whether the model ended it; a message that was cut is never executed.
    """
    text = text.removeprefix("\ufeff")
    return _Reader(_without_end_marks(text) if WISH.search(text) else text, offered, iteration).turn(ended=ended)


class _Reader:
    def __init__(self, text: str, offered: Collection[str], iteration: int) -> None:
        self._text = text
        self._offered = frozenset(offered)
        self._iteration = iteration
        self._outline = Outline(text)
        self._thoughts: list[str] = []
        self._wishes: list[Wish] = []
        self._problem: str | None = None
        self._shown = 0  # up to here the text is in the thoughts or was executed
        self._blocks = 0
        self._calls_end: int | None = None  # where the last block with calls ends
        self._thoughts_end = 0  # where thoughts end that began before the message
        self._drop_from: int | None = None  # where an invented result begins
        self._muddled = False
        self._acted = False  # whether there was a block, or another sign of a call, that a result might follow
        self._repaired = False
        self._dropped = ""

    def turn(self, *, ended: bool) -> TextTurn:
        """Read the message."""
        text = self._text
        if WISH.search(text) is not None and not self._whole(after_thoughts(text)):
            self._walk()
        problem = self._problem
        if problem is None and not self._blocks:
            problem = find_attempt(text, self._offered)
        if not ended and (self._wishes or problem):
            problem = "the message was cut off; write it again, with less text"
        if problem is not None:
            return TextTurn(thoughts=text.strip(), problem=_one_line(f"no tool was run: {problem}"))
        if not self._blocks:
            return TextTurn(thoughts=text.strip())
        return TextTurn(
            thoughts="\n\n".join(filter(None, self._thoughts)).strip(),
            calls=tuple(
                ToolCall(f"t{self._iteration}-{n}", wish.name, wish.arguments_json)
                for n, wish in enumerate(self._wishes, 1)
            ),
            dropped=self._dropped,
            repaired=self._repaired,
        )

    # Finding blocks --------------------------------------------------------------------------------------------

    def _whole(self, begin: int) -> bool:
        """Read what is one object and nothing else from `begin` on; only thoughts stand before that."""
        text = self._text
        at = skip_space(text, begin, len(text))
        if not text.startswith("{", at) or not WISH.search(text, at):
            return False
        try:
            node, repaired = _parse(text, at, len(text))
            if skip_space(text, node.end, len(text)) < len(text) and not repaired:
                return False  # an object and more text: not executed, and told
            if KEY not in node.members:
                return False
            self._begin_anew(begin)
            self._show(at)
            self._accept(node, repaired=repaired)
        except LooseError as error:
            if not FIRST_KEY.match(text, at):
                return False
            self._problem = _broken(error)
        except ProblemError as error:
            self._problem = str(error)
        return True

    def _walk(self) -> None:
        for piece in self._outline.pieces():
            match piece:
                case Fence():
                    self._fence(piece)
                case ThoughtsEnd():
                    self._muddled |= bool(self._thoughts_end and (self._wishes or self._drop_from is not None))
                    self._begin_anew(piece.end)
                case _ if self._drop_from is None:
                    self._line(piece)
        if not (self._thoughts_end and not self._muddled and self._whole(self._thoughts_end)):
            self._finish()

    def _line(self, line: Line) -> None:
        if _RESULT_LINE.match(line.text) or (self._acted and _INVENTED_LINE.match(line.text)):
            self._drop_from = line.start
        elif SIGN.match(line.text):
            self._sign(line)

    def _finish(self) -> None:
        """Judge what stands behind the blocks with calls."""
        text = self._text
        end = len(text) if self._drop_from is None else self._drop_from
        self._check_gap(end)
        self._show(end)
        self._dropped = text[end:].strip()
        if self._problem is None and self._muddled:
            self._problem = f"it is unclear where your thoughts end; {FORM}"
        if self._problem is None and not self._blocks and WISH.search(self._dropped):
            self._problem = (
                "its calls follow a result that you wrote yourself; write one block and wait for its results"
            )

    def _check_gap(self, end: int) -> None:
        """Refuse text between a block with calls and `end`, which may make an example or a quotation of the block."""
        if self._problem is None and self._calls_end is not None and self._text[self._calls_end : end].strip():
            self._problem = _BEHIND

    def _sign(self, line: Line) -> None:
        """Note a call in another form; an object that stands openly in the text is a wish that can't be followed."""
        self._acted = True
        if self._problem is None and FIRST_KEY.match(self._text, line.end - len(line.text)):
            self._problem = f"a call outside of a block, with other text around it, is only shown; {FORM}"

    def _fence(self, fence: Fence) -> None:
        """Read a fenced block, and go to its end."""
        text = self._text
        if fence.listed:
            if fence.unclear and self._problem is None:
                # Whether this fence opens or closes a block decides what all that follow do.
                self._problem = f"it is unclear where a list in the message ends; {FORM}"
            return
        closing = self._outline.closing(fence, fence.body)
        end, after = closing or (len(text), len(text))
        begin = skip_space(text, fence.body, end)
        if self._drop_from is None:
            if self._is_invented(fence, begin):
                self._drop_from = fence.start
            else:
                if INFO.fullmatch(fence.info) and ("{" in fence.info or text.startswith(("{", "["), begin)):
                    self._acted = True
                if fence.info.lower() in INFOS and text.startswith("{", begin) and WISH.search(text, begin, end):
                    after = self._block(fence, begin, closing) or after
        self._outline.go_to(after)

    def _is_invented(self, fence: Fence, begin: int) -> bool:
        if _RESULT_INFO.fullmatch(fence.info) or _RESULT_KEY.search(fence.info):
            return True
        return bool(_RESULT_KEY.match(self._text, begin) or (self._acted and _INVENTED_INFO.fullmatch(fence.info)))

    def _block(self, fence: Fence, begin: int, closing: tuple[int, int] | None) -> int | None:
        """Read a block that seems to hold calls, and execute it if it does; returns where it ends if that is known."""
        if self._problem is not None:
            return None  # nothing will be executed, and a second problem says no more
        try:
            node, repaired, after = self._object(fence, begin, closing)
            if KEY not in node.members:
                return after
            self._check_gap(fence.start)
            self._show(fence.start)
            self._accept(node, repaired=repaired)
        except LooseError as error:
            self._problem = _broken(error)
            return None
        except ProblemError as error:
            self._problem = str(error)
            return None
        self._shown = after
        if self._wishes:
            self._calls_end = after
        return after

    def _object(self, fence: Fence, begin: int, closing: tuple[int, int] | None) -> tuple[Node, bool, int]:
        """Return a block's object, whether it was repaired, and where the block ends.

        A fence inside a string does not end the block, unless the string was merely left open.
        """
        text = self._text
        end = closing[0] if closing else len(text)
        node, repaired = _parse(text, begin, end)
        if repaired:
            return node, True, closing[1] if closing else end
        if node.end > end:
            # Fences in a string come in pairs; an odd one may be the block's own end.
            if sum(1 for _ in fence.line().finditer(text, fence.body, node.end)) % 2:
                raise ProblemError("a string in the block holds a lone fence; write line breaks in strings as \\n")
            closing = self._outline.closing(fence, node.end)
        if (same_line := fence.end_of_line().match(text, node.end)) is not None:
            return node, True, same_line.end()
        if closing is None:
            raise LooseError("the block's fence is not closed", len(text), cut=True)
        if skip_space(text, node.end, closing[0]) < closing[0]:
            raise ProblemError("the block holds more than one object; write one object per block")
        return node, False, closing[1]

    # What was found --------------------------------------------------------------------------------------------

    def _show(self, end: int) -> None:
        """Keep the text from where we were to `end` as thoughts."""
        if piece := self._text[self._shown : end].strip():
            self._thoughts.append(piece)
        self._shown = end

    def _begin_anew(self, end: int) -> None:
        """Take all that was read for thoughts; these end at `end`."""
        self._thoughts.clear()
        self._wishes.clear()
        self._problem = self._calls_end = self._drop_from = None
        self._repaired = self._acted = False
        self._blocks = self._shown = 0
        self._thoughts_end = end

    def _accept(self, node: Node, *, repaired: bool) -> None:
        """Take an object's calls as wished for, and keep what else it holds as thoughts."""
        wishes, remarks = read_wishes(node, self._offered)
        self._blocks += 1
        self._wishes += wishes
        self._thoughts += remarks
        self._repaired |= repaired or any(wish.repaired for wish in wishes)


def _parse(text: str, begin: int, end: int) -> tuple[Node, bool]:
    """Read an object that should end before `end`; the second value says whether it lacked commas."""
    try:
        return parse(text, begin), False
    except LooseError as error:
        if error.at >= end:
            raise LooseError("it ends before its brackets and strings are closed", end, cut=True) from None
        if not error.repairable:
            raise
        try:
            return repair(text[begin:end]), True
        except LooseError:
            raise error from None  # where reading stopped says more to the model than that no repair was found


def _broken(error: LooseError) -> str:
    if error.cut:
        return f"the {KEY} block is cut off ({error}); write it again in full, or in smaller parts"
    return f"the {KEY} block can't be read: {error}; write it again as one JSON object"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_PROBLEM_CHARS else line[: MAX_PROBLEM_CHARS - 3] + "..."


def _without_end_marks(text: str) -> str:
    """Leave out the marks with which chat formats end a turn."""
    for _ in range(_MAX_END_MARKS):
        shorter = text.rstrip()
        if not shorter.endswith(_END_MARKS):
            break
        text = shorter[: shorter.rindex("<")]
    return text
