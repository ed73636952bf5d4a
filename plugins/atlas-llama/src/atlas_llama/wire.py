"""What a model reads and writes: the conversation as chat messages, and a message back from its text. Pure functions.

Calls and results are text inside ordinary turns, since most chat templates know no tools, and llama.cpp leaves out
without a word what a template does not know. The tags are those that Hermes, Qwen and SmolLM models were trained on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atlas_core import Data, File, Image, ProviderError, Text

if TYPE_CHECKING:
    from atlas_core import ChatMessage, ToolSchema

__all__ = [
    "CLOSE",
    "OPEN",
    "RESULT_TAG",
    "Call",
    "Gate",
    "Neutralizer",
    "Written",
    "call_head",
    "plain",
    "read_answer",
    "render",
]

_TAG = "<tool_call>"
OPEN = f"{_TAG}\n"
CLOSE = "\n</tool_call>"
RESULT_TAG = "<tool_response>"

_ZERO_WIDTH_SPACE = "\u200b"


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def call_head(name: str) -> str:
    """Return how a call of the tool begins, up to where its arguments do."""
    return f'{{"name": {_dumps(name)}, "arguments": '


# Reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was written: the tool's name, and its arguments as JSON text."""

    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a model wrote.

    Attributes:
        text: What precedes the calls, or everything where there are none.
        calls: The complete calls, in order.
        rest: What follows `OPEN` and is no complete call; "" if there is nothing of that kind.
    """

    text: str
    calls: tuple[Call, ...] = ()
    rest: str = ""


def read_answer(raw: str, names: Iterable[str]) -> Written:
    """Part a model's text into words and calls.

    Args:
        raw: Everything the model wrote.
        names: The tools that were on offer. Where there were none, everything is words.
    """
    names = tuple(names)
    at = raw.find(_TAG) if names else -1
    if at < 0:
        return Written(text=raw.strip())
    calls: list[Call] = []
    text, left = raw[:at].strip(), raw[at:]
    while left:
        found = _one_call(left, names)
        if found is None:
            return Written(text=text, calls=tuple(calls), rest=left)
        call, left = found
        calls.append(call)
        left = left.lstrip()
    return Written(text=text, calls=tuple(calls))


def _one_call(text: str, names: Sequence[str]) -> tuple[Call, str] | None:
    for name in names:
        head = OPEN + call_head(name)
        if text.startswith(head):
            try:
                _, end = json.JSONDecoder().raw_decode(text, len(head))
            except (ValueError, RecursionError):
                return None
            after = "}" + CLOSE
            if not text.startswith(after, end):
                return None
            return Call(name, text[len(head) : end]), text[end + len(after) :]
    return None


class Gate:
    """Lets words through while they are written, and holds back calls, and what may become one.

    Args:
        tools: Whether tools are on offer; else everything passes.
    """

    def __init__(self, *, tools: bool) -> None:
        self._tools = tools
        self._held = ""
        self._shut = False

    def feed(self, piece: str) -> str:
        """Take a piece, and return what of it and of what was held back may be shown."""
        if not self._tools:
            return piece
        if self._shut:
            return ""
        text = self._held + piece
        at = text.find(_TAG)
        if at >= 0:
            self._shut = True
            self._held = ""
            return text[:at].rstrip()
        keep = next((n for n in range(min(len(_TAG), len(text)), 0, -1) if _TAG.startswith(text[-n:])), 0)
        # White space before a call is no part of the words, so it waits too.
        shown = text[: len(text) - keep].rstrip()
        self._held = text[len(shown) :]
        return shown

    def end(self) -> str:
        """Return what was held back and turned out to be words."""
        held, self._held = self._held, ""
        return "" if self._shut else held.rstrip()


# Rendering ---------------------------------------------------------------------------------------------------------


class Neutralizer:
    """Breaks up a model's control tokens in what people, tools and files say, so that nobody can forge a turn.

    llama.cpp reads control tokens wherever they stand in a rendered prompt. A zero-width space inside takes that
    meaning away and leaves the look.

    Args:
        tokens: The control tokens' texts.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        # Shorter ones would be words that people use.
        wanted = sorted((t for t in tokens if len(t) > 2), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, wanted))) if wanted else None

    def __call__(self, text: str) -> str:
        """Return the text without working control tokens."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda m: m[0][0] + _ZERO_WIDTH_SPACE + m[0][1:], text)


def render(
    system: str | None,
    tools: Sequence[ToolSchema],
    messages: Iterable[ChatMessage],
    neutral: Neutralizer,
    *,
    answer: object = None,
) -> list[dict[str, str]]:
    """Return the conversation as a chat template takes it: one system message first, then turns that alternate.

    Many templates refuse anything else, so neighbours of one role are joined and every system message moves to the top.

    Args:
        system: The system prompt.
        tools: The tools on offer.
        messages: The conversation.
        neutral: Applied to every text.
        answer: JSON Schema of the final answer, or None.
    Raises:
        ProviderError: A message holds an image or a file.
    """
    heads = [system] if system else []
    turns: list[tuple[str, str]] = []
    for message in messages:
        if message.role == "system":
            heads.append(_content(message))
            continue
        role = "assistant" if message.role == "assistant" else "user"
        text = neutral(_turn(message))
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{text}")
        else:
            turns.append((role, text))
    if tools:
        heads.append(_told(tools))
    if answer is not None:
        heads.append(f"# Answer\n\nThe final answer is one JSON object that meets this schema:\n{_dumps(answer)}")
    first = [("system", neutral("\n\n".join(heads)))] if heads else []
    return [{"role": role, "content": text} for role, text in first + turns]


def _told(tools: Sequence[ToolSchema]) -> str:
    lines = (_dumps({"name": t.name, "description": t.description, "parameters": plain(t.parameters)}) for t in tools)
    return (
        "# Tools\n\nYou can call these tools:\n<tools>\n" + "\n".join(lines) + "\n</tools>\n\n"
        "To call one, write its name and arguments as JSON inside these tags, one block for each call:\n"
        f'{OPEN}{{"name": "<tool>", "arguments": {{<arguments>}}}}{CLOSE}\n'
        f"Results come back inside {RESULT_TAG} tags. When you know the answer, give it in plain words."
    )


def plain(value: object) -> Any:
    """Return a schema as plain JSON values that nobody else holds; kernels hand out read-only mappings."""
    return json.loads(json.dumps(value, default=dict))


def _turn(message: ChatMessage) -> str:
    if message.role == "tool":
        key = "error" if message.is_error else "content"
        body = _dumps({"name": message.name or "", key: _content(message)})
        return f"{RESULT_TAG}\n{body}\n</tool_response>"
    calls = [f"{OPEN}{call_head(c.name)}{c.arguments_json or '{}'}}}{CLOSE}" for c in message.tool_calls]
    text = _content(message)
    return "\n".join([text, *calls] if text else calls)


def _content(message: ChatMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    pieces: list[str] = []
    for part in message.content:
        if isinstance(part, Text):
            pieces.append(part.text)
        elif isinstance(part, Data):
            pieces.append(part.value_json)
        elif isinstance(part, (Image, File)):
            kind = "an image" if isinstance(part, Image) else f"a file ({part.name or part.media_type})"
            raise ProviderError(
                f"a {message.role} message holds {kind}, and models run by llama read text only",
                remedy="put its text into the message, or use another connection",
            )
    return "".join(pieces)  # what another provider left for itself means nothing here
