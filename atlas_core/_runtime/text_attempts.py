"""Calls that a model surely meant but wrote outside the frame: never executed, only told, so that it can do better.

These are the habits of models trained on other formats. Only a message without any call in the frame is looked at, and
an example, a quotation or a mention is no attempt.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from atlas_core._runtime.loose_json import LooseError, Node, parse, skip_space
from atlas_core._runtime.text_outline import Fence, Line, Outline, after_thoughts
from atlas_core._runtime.text_wishes import ARGUMENT_KEYS, KEY, NAME_KEYS

__all__ = ["FIRST_KEY", "FORM", "INFO", "INFOS", "SIGN", "WISH", "find_attempt"]

INFOS = frozenset({"", "json", "tool_call"})
"""Info strings of a block that is executed."""

WISH = re.compile(r"tool_calls[\"'“”‘’]?\s*+:")
"""What every block with calls holds somewhere."""

FIRST_KEY = re.compile(r"\{\s*+[\"'“‘]?tool_calls[\"'”’]?\s*+:")

FORM = (
    'write a ```json block with {"tool_calls": [{"name": ..., "arguments": {...}}]}, its fence at the start of a line'
)

INFO = re.compile(r"(?:json|tool_calls?)?(?:[ \t{].*)?", re.IGNORECASE)
"""Info strings of blocks that may be meant as calls, in the frame or not."""

_SHOWING = frozenset({"text", "txt", "plain", "plaintext", "markdown", "md", "example", "quote"})
"""Info strings that say that a block is only shown."""

_FIRST_KEY_IN_WORDS = re.compile(rf"{FIRST_KEY.pattern}|tool_calls[ \t]*+:[ \t]*+[\r\n]")  # as JSON, or as YAML
_ONE_LINE = re.compile(r"(?:```+|~~~+)[ \t]*(?:json|tool_calls?)?[ \t]*\{")
_FOREIGN = re.compile(
    r"<tool_?(?:calls?|use)>|<tool_code>|<\|tool_calls?|<\uff5ctool\u2581calls?|\[TOOL_CALLS?\]|<function=|<function_?calls?>"
    r"|<invoke\b|<\|python_tag\|>|<\|channel\|>commentary to=",
    re.IGNORECASE,
)
_FOREIGN_CALL = re.compile(rf"(?:{_FOREIGN.pattern})\s*+[\[{{<]|<function=|<invoke\s", re.IGNORECASE)
_BARE = re.compile(
    r"\{\s*+(?:[\"']type[\"']\s*+:\s*+[\"']function[\"']\s*+,\s*+)?(?:[\"']function[\"']\s*+:\s*+\{\s*+)?"
    rf"[\"'](?:{'|'.join(sorted(NAME_KEYS))})[\"']\s*+:\s*+[\"']([^\"'\r\n]{{1,128}})[\"']\s*+,\s*+"
    rf"[\"'](?:{'|'.join(sorted(ARGUMENT_KEYS))})[\"']\s*+:"
)
_ACTION = re.compile(
    r"[*_]{0,3}action[*_]{0,3}:[*_]{0,3}[ \t]{0,4}+[`'\"]?([^\s`'\"][^\r\n`'\"]{0,127}?)[`'\"]?[ \t]{0,4}(?:\r\n?|\n)"
    r"\s*+[*_]{0,3}action[ _]input[*_]{0,3}:",
    re.IGNORECASE,
)
SIGN = re.compile(rf"[*_]{{0,3}}action[*_]{{0,3}}:|{FIRST_KEY.pattern}|{_FOREIGN.pattern}|```", re.IGNORECASE)
"""How a line begins that is some call, in whatever form."""

_WRAPPERS = ("tool_call", "toolCalls", "toolcalls", "calls", "function_call", "function_calls", "actions")
_NEXT_CHARS = 80
_NEAR_CHARS = 2_000
"""How far from such a sign a call is looked for, so that many signs take no more time than one."""


def find_attempt(text: str, offered: Collection[str]) -> str | None:
    """Return what is wrong with a call outside the frame, and what would be right; None if there is none."""
    if WISH.search(text) is None and not any(name in text for name in offered):
        return None  # nearly every answer
    if _is_call(text, after_thoughts(text), len(text), offered):
        return f"a call without the key {KEY!r}; {FORM}"
    outline = Outline(text)
    found: str | None = None
    for piece in outline.pieces():
        match piece:
            case Fence():
                found = _in_fence(text, piece, outline, offered) or found
            case Line():
                found = found or _in_line(text, piece, offered)
            case _:
                found = None  # those were thoughts
    if found is not None:
        return f"{found}; {FORM}"
    if outline.hidden_from is not None and WISH.search(text, outline.hidden_from):
        return f"a call stands inside a tag or comment that is not closed; {FORM}"
    return None


def _in_fence(text: str, fence: Fence, outline: Outline, offered: Collection[str]) -> str | None:
    if fence.listed:
        end = fence.body + _NEAR_CHARS
        following = fence.line().search(text, fence.body, end)
        end = following.start() if following else end
        return "a call in a list item is only shown" if _wished(text, fence, fence.body, end) else None
    closing = outline.closing(fence, fence.body)
    end, after = closing or (len(text), len(text))
    outline.go_to(after)
    if fence.info.lower() not in INFOS:
        return f"a block marked {fence.info[:40]!r} is only shown" if _marked(text, fence, end, offered) else None
    body = text[fence.body : end]
    return f"a call without the key {KEY!r}" if _is_call(body, 0, len(body), offered) else None


def _marked(text: str, fence: Fence, end: int, offered: Collection[str]) -> bool:
    """Tell whether a block that is marked as something else is a call and not an example of one."""
    info = fence.info.lower()
    if info in _SHOWING:
        return False
    if info == "tool_code" and any(f"{name}(" in text[fence.body : end] for name in offered):
        return True
    body = text[skip_space(text, fence.body, end) : end]
    if _FIRST_KEY_IN_WORDS.match(body) or _wished(text, fence, fence.start, end):
        return True
    try:
        return body.startswith("{") and WISH.search(body) is not None and KEY in parse(body).members
    except LooseError:
        return False


def _wished(text: str, fence: Fence, begin: int, end: int) -> bool:
    return INFO.fullmatch(fence.info) is not None and WISH.search(text, begin, end) is not None


def _in_line(text: str, line: Line, offered: Collection[str]) -> str | None:
    begin = line.end - len(line.text)
    if _ONE_LINE.match(line.text) and WISH.search(line.text):
        return "a block on one line is only shown"
    action = _ACTION.match(text, begin)
    if action is not None and action[1] in offered:
        return "a call in the form 'Action:' is only shown"
    bare = _BARE.match(text, begin)
    if bare is not None and bare[1] in offered:
        return f"a call without the key {KEY!r}"
    if _call_in_words(text, line, offered):
        return "a call outside of a block is only shown"
    foreign = _FOREIGN.match(line.text) or _foreign_call(text, line)
    if foreign is not None and _names_one(text, begin, offered):
        return f"a call in the form {foreign[0]!r} is only shown"
    return None


def _call_in_words(text: str, line: Line, offered: Collection[str]) -> bool:
    """Tell whether a line goes over from words into an object with calls, which it does not go beyond."""
    match = FIRST_KEY.search(line.text)
    if match is None or line.text[0] in "{[\"'" or line.text.rstrip()[-1] not in "{}[],":
        return False
    begin = line.end - len(line.text) + match.start()
    return not _in_code(text, line, begin) and _names_one(text, begin, offered)


def _foreign_call(text: str, line: Line) -> re.Match[str] | None:
    """Return the mark of a call in another form in mid-line, if a call seems to follow it."""
    match = _FOREIGN_CALL.search(text, line.start, line.end + _NEXT_CHARS)
    if match is None or match.start() >= line.end or _in_code(text, line, match.start()):
        return None
    return _FOREIGN.match(match[0])


def _in_code(text: str, line: Line, at: int) -> bool:
    """Tell whether a place in a line is inside backticks."""
    return text.count("`", line.start, at) % 2 == 1


def _names_one(text: str, begin: int, offered: Collection[str]) -> bool:
    return any(text.find(name, begin, begin + _NEAR_CHARS) >= 0 for name in offered)


def _is_call(text: str, begin: int, end: int, offered: Collection[str]) -> bool:
    """Tell whether a piece of text is a call of an offered tool, or a list of such, and nothing else."""
    at = skip_space(text, begin, end)
    if not text.startswith(("{", "["), at):
        return False
    try:
        node = parse(text, at)
    except LooseError:
        return False
    if skip_space(text, node.end, end) != end:
        return False
    node = next((node.members[key] for key in _WRAPPERS if key in node.members), node)
    items = node.items or [node]
    return all(_names_a_tool(item, offered) for item in items)


def _names_a_tool(node: Node, offered: Collection[str]) -> bool:
    function = node.members.get("function")
    members = function.members if function is not None and function.kind == "object" else node.members
    return not ARGUMENT_KEYS.isdisjoint(members) and any(
        key in NAME_KEYS and value.text in offered for key, value in members.items()
    )
