"""The writing side of the text protocol: what a model without native calls is told, shown again and answered.

Everything that others wrote (a tool's description, its result, an error) stands inside JSON strings on one line, so it
can neither open nor close a block, whatever it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from atlas_core._runtime.loose_json import quoted
from atlas_core._runtime.text_calls import read_calls
from atlas_core.messages import ChatMessage, Data, File, Image, Text

if TYPE_CHECKING:
    from atlas_core.interfaces.tools import ToolSchema

__all__ = ["render_call_message", "render_results", "render_tools"]

_BACKTICKS = re.compile(r"`+")
_BREAK = re.compile(r"[ \t]*+[\r\n]\s*+")
_SECTION = """\
## Available Tools

One tool a line: its name, what it does, and the JSON Schema of its arguments.

{tools}

To call tools, end your message with one block of this form and nothing after it:

```json
{{"tool_calls": [{{"name": {name}, "arguments": {{}}}}]}}
```

- Put a tool's name for {name}, and into "arguments" what its schema asks for. Several calls go into the one list.
- Write strict JSON, line breaks in strings as \\n. The fence begins its line; a quoted or indented block is not run.
- Stop after the block. The next message brings the results in call order, {{"tool_results": [...]}}; never write them.
- To answer, write plain text without such a block."""


def render_tools(schemas: Sequence[ToolSchema]) -> str:
    """Return the system prompt's section on tools, in the order given; "" without tools.

    The example in it calls a tool that is not on offer, so that a model that repeats it runs nothing.
    """
    if not schemas:
        return ""
    example = "<tool name>"
    while any(schema.name == example for schema in schemas):
        example = f"<{example}>"
    return _SECTION.format(tools="\n".join(map(_tool_line, schemas)), name=quoted(example))


def _tool_line(schema: ToolSchema) -> str:
    tool: dict[str, object] = {"name": schema.name}
    if schema.description:
        tool["description"] = schema.description
    tool["parameters"] = schema.parameters
    if schema.returns is not None:
        tool["returns"] = schema.returns
    return _compact(tool)


def _compact(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":"), default=_plain)
    return text


def _plain(value: object) -> object:
    """Make a JSON value of a read-only mapping or a set-like collection, as schemas may hold them."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection):
        return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
    return str(value)


def render_call_message(message: ChatMessage) -> str:
    """Write an assistant message as the model would have: its thoughts, then its calls as one block.

    Thoughts that would change how the block is read, such as an open fence, are quoted. Arguments that are no JSON
    object are shown as the string that the model wrote.
    """
    if not message.tool_calls:
        return message.text
    calls = [
        f'{{"name": {quoted(call.name)}, "arguments": {_arguments(call.arguments_json)}}}'
        for call in message.tool_calls
    ]
    block = _block(f'{{"tool_calls": [{", ".join(calls)}]}}')
    thoughts = message.text.strip()
    if not thoughts:
        return block
    return f"{thoughts if _is_inert(thoughts) else _quote(thoughts)}\n\n{block}"


def _arguments(text: str) -> str:
    if not text.strip():
        return "{}"
    found = _json(text)
    return found if found is not None and found.startswith("{") else quoted(text)


def _is_inert(thoughts: str) -> bool:
    """Tell whether a block after these thoughts is read as the one call in the message."""
    probe = f'{thoughts}\n\n```json\n{{"tool_calls": [{{"name": "probe", "arguments": {{}}}}]}}\n```'
    turn = read_calls(probe, ["probe"], iteration=1)
    return [call.name for call in turn.calls] == ["probe"] and turn.thoughts == thoughts and not turn.dropped


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in re.split(r"\r\n|\r|\n", text))


def render_results(messages: Sequence[ChatMessage]) -> str:
    """Write tool messages as one block for the user message that answers the model's.

    A result that is JSON stands as JSON, any other as a string; an error is always a string.

    Args:
        messages: Tool messages, in call order.
    """
    lines = ",\n".join(map(_result, messages))
    return _block(f'{{"tool_results": [\n{lines}\n]}}')


def _result(message: ChatMessage) -> str:
    text = "".join(map(_part_text, message.content)) if not isinstance(message.content, str) else message.content
    found = None if message.is_error else _json(text)
    value = quoted(text) if found is None else found
    name = f', "name": {quoted(message.name)}' if message.name else ""
    return (
        f'{{"id": {quoted(message.tool_call_id or "")}{name}, "{"error" if message.is_error else "result"}": {value}}}'
    )


def _part_text(part: object) -> str:
    match part:
        case Text(text):
            return text
        case Data(value_json):
            return value_json
        case Image() | File():
            return f"[{part.media_type}, not shown]"
        case _:
            return "[content that is not text, not shown]"


def _json(text: str) -> str | None:
    """Return a text that is JSON on one line, to the letter but for space between tokens; None if it is none."""
    try:
        _DECODER.decode(text)
        text.encode()
    except (ValueError, RecursionError):
        return None
    return _BREAK.sub(" ", text.strip())  # a string holds no line break, so that each is between tokens


def _unique(pairs: list[tuple[str, object]]) -> object:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return None


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


# Only tells whether a text is JSON; digits are not computed, as there may be thousands.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_int=str, parse_float=str)


def _block(json_text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(json_text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}json\n{json_text}\n{fence}"
