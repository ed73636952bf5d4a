"""What the rules say: answers that quote results, failures told as such, declines that say what would work."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from atlas_core import ToolSchema
from atlas_offline.lookalikes import calculates
from atlas_offline.matching import Match
from atlas_offline.planner import Done

__all__ = ["NOTICE", "abilities", "answer", "decline", "describe_call", "is_greeting", "welcome"]

NOTICE = "To use a language model instead of offline rules, run `atlas init` and set a connection."
"""How to use a real model, for a person who reads an answer of the rules."""

_GREETING = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings)(?: there| atlas| you)?[\s,.!]*)?"
    r"(?:help(?: me)?|what can you do(?: for me)?|what (?:do|are) you(?: do)?|who are you|how are you|"
    r"how (?:do|can) (?:i|you) (?:use this|help(?: me)?)|what tools (?:do you have|are there|can you use)|"
    r"(?:which|what) questions can (?:i|you) (?:ask|answer)|(?:can|could) you help(?: me)?)?(?: please)?[\s?.!]*",
    re.IGNORECASE,
)
_RESULT_KEYS = ("text", "answer", "result", "value", "output")
_SHOWN_ABILITIES = 12
_SHOWN_CHARACTERS = 400


def is_greeting(text: str) -> bool:
    """Tell whether a text only greets, or asks what can be asked."""
    return any(c.isalpha() for c in text) and _GREETING.fullmatch(text.strip()) is not None


def abilities(tools: Sequence[ToolSchema]) -> str:
    """List what can be asked with the tools on offer: their own examples, else their descriptions."""
    if not tools:
        return "No tools are on offer, so there is nothing that it can do."
    lines = [f"- {tool.name}: {_ability(tool)}" for tool in tools[:_SHOWN_ABILITIES]]
    if len(tools) > _SHOWN_ABILITIES:
        lines.append(f"- and {len(tools) - _SHOWN_ABILITIES} more tools")
    return "It plans calls of the tools on offer, for questions such as these:\n" + "\n".join(lines)


def welcome(tools: Sequence[ToolSchema]) -> str:
    """Return the answer to a greeting, or to the question what can be asked."""
    return f"This is Atlas with offline rules, no language model.\n{abilities(tools)}\n{NOTICE}"


def _ability(tool: ToolSchema) -> str:
    if tool.hints and tool.hints.examples:
        return "; ".join(f'"{example.question}"' for example in tool.hints.examples[:2])
    first = tool.description.strip().split("\n")[0]
    names = tool.parameters.get("properties")
    wanted = ", ".join(names) if isinstance(names, Mapping) else ""
    return f"{first or 'no description'}" + (f" (reads {wanted} from the question)" if wanted else "")


def decline(reason: str, tools: Sequence[ToolSchema]) -> str:
    """Return the text of a decline: why, what this mode can do, and how to use a real model."""
    return f"Declined by the offline rules (no language model): {reason}.\n{abilities(tools)}\n{NOTICE}"


def describe_call(found: Match) -> str:
    """Write a call with its arguments, long ones cut."""
    given = ", ".join(f"{name}={_short(value)}" for name, value in found.arguments.items())
    return f"{found.tool.name}({given})"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:70]}... ({len(text)} characters)"


def answer(done: Sequence[Done], problem: str = "") -> str:
    """Return the final text: each result quoted with the tool it is from, failures as failures."""
    lines = [_failure(d) if d.failed else _result(d) for d in done]
    if problem:
        lines.append(f"Declined by the offline rules (no language model): {problem}.\n{NOTICE}")
    return "\n".join(lines)


def _failure(done: Done) -> str:
    return f"{describe_call(done.found)} failed, so there is no answer: {done.result.strip() or 'it gave no reason'}"


def _result(done: Done) -> str:
    text = _readable(done.result)
    values = list(done.found.arguments.values())
    only = values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    by = f"({done.found.tool.name})"
    if "\n" in text or len(text) > _SHOWN_CHARACTERS:
        return f"{describe_call(done.found)} returned:\n{text}"
    if only and only in text:
        return f"{text} {by}"
    if only and calculates(done.found.tool, done.found.arguments) and re.fullmatch(r"[-+\d.,eE/ij ]+", text):
        return f"{only} = {text} {by}"
    return f"{describe_call(done.found)}: {text or '(an empty result)'}"


def _readable(result: str) -> str:
    """Return a result as a person reads it: a JSON text without its quotes, a small object by its telling key."""
    whole = result.strip()
    try:
        data = json.loads(whole) if len(whole) <= 10_000 else None
    except (ValueError, RecursionError):
        return whole
    if isinstance(data, str):
        return data.strip()
    if isinstance(data, Mapping):
        key = next((k for k in _RESULT_KEYS if isinstance(data.get(k), str)), None)
        if key and len(data) == 1:
            return str(data[key])
        if all(isinstance(v, (str, int, float, bool)) or v is None for v in data.values()):
            return ", ".join(f"{k}: {v}" for k, v in data.items())
    return whole
