"""An object with `tool_calls`, as models spell it: the calls that it asks for, or why it can't be followed.

Names and arguments go by several keys (`name`, `tool`, `function`; `arguments`, `parameters`, `args`), each once.
A key that might be an argument out of its place is refused: without it, something else would run than was asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from atlas_core._runtime.loose_json import LooseError, Node, parse, render, skip_space
from atlas_core.names import nearest

__all__ = ["ARGUMENT_KEYS", "KEY", "NAME_KEYS", "ProblemError", "Wish", "read_wishes"]

KEY = "tool_calls"
NAME_KEYS = frozenset({"name", "tool", "tool_name", "function_name", "function", "action"})
ARGUMENT_KEYS = frozenset(
    {"arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs"}
)

_MARKS = frozenset({"id", "call_id", "tool_call_id", "type", "index"})
_REMARKS = frozenset({"thought", "thoughts", "reason", "reasoning", "explanation", "comment", "description", "purpose"})
_FORM = '{"name": ..., "arguments": {...}}'
_KINDS = {
    "string": "a string",
    "number": "a number",
    "word": "true, false or null",
    "array": "a list",
    "object": "an object",
}
_MAX_NAME_CHARS = 200


class ProblemError(Exception):
    """A wish can't be followed; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One call, before it has an id. `repaired` tells that it was spelled in another form."""

    name: str
    arguments_json: str
    repaired: bool


def read_wishes(node: Node, offered: Collection[str]) -> tuple[list[Wish], list[str]]:
    """Return the calls of an object, and what it says besides.

    Raises:
        ProblemError: One of them is no call, or of no offered tool.
    """
    value = node.members[KEY]
    remarks: list[str] = []
    wishes = [_wish(n, item, offered, remarks) for n, item in enumerate(_items(value), 1)]
    remarks += [_remark(key, other) for key, other in node.members.items() if key != KEY and not other.is_null]
    return wishes, remarks


def _wish(n: int, node: Node, offered: Collection[str], remarks: list[str]) -> Wish:
    members = _members(n, node)
    name_key = _only(n, "name", [key for key, _ in members if key in NAME_KEYS])
    arguments_key = _only(n, "arguments", [key for key, _ in members if key in ARGUMENT_KEYS])
    if name_key is None:
        raise ProblemError(f'call {n} has no "name"; write {_FORM}')
    for key, value in members:
        if key not in {name_key, arguments_key} and not (arguments_key and key in _MARKS | _REMARKS):
            raise ProblemError(f'call {n} has the key {key[:60]!r}; put a tool\'s arguments into "arguments"')
        if key in _REMARKS and value.kind == "string":
            remarks.append(value.text)
    values = dict(members)
    name = _name(n, values[name_key], offered)
    given = values[arguments_key] if arguments_key else None
    arguments = _arguments(n, given) if given is not None else None
    usual = name_key == "name" and (given is None or (arguments_key == "arguments" and given is arguments))
    return Wish(name, render(arguments) if arguments is not None else "{}", not (usual and node.exact))


def _only(n: int, what: str, keys: list[str]) -> str | None:
    if len(keys) > 1:
        raise ProblemError(f"call {n} has {keys[0]!r} and {keys[1]!r}; give its {what} once")
    return keys[0] if keys else None


def _name(n: int, node: Node, offered: Collection[str]) -> str:
    if node.kind != "string":
        raise ProblemError(f"the name of call {n} is {_KINDS[node.kind]}, it must be a string")
    name = node.text
    if name in offered:
        return name
    if close := nearest(name, offered) if len(name) <= _MAX_NAME_CHARS else []:
        raise ProblemError(f"there is no tool {name[:60]!r}; the nearest are {', '.join(close)}")
    raise ProblemError(f"there is no tool {name[:60]!r}; there are {', '.join(sorted(offered)) or 'none'}")


def _items(node: Node) -> list[Node]:
    if node.kind == "object":
        return [node]
    if node.kind != "array" and not node.is_null:
        raise ProblemError(
            f'"{KEY}" is {_KINDS[node.kind]}, it must be a list of {{"name": ..., "arguments": {{...}}}}'
        )
    return node.items


def _members(n: int, node: Node) -> list[tuple[str, Node]]:
    """Return a call's keys and values, those of an object `function` in its place."""
    if node.kind != "object":
        raise ProblemError(f'call {n} is {_KINDS[node.kind]}, it must be {{"name": ..., "arguments": {{...}}}}')
    inner = node.members.get("function")
    if inner is None or inner.kind != "object":
        return list(node.members.items())
    outer = [(key, value) for key, value in node.members.items() if key != "function"]
    members = [*outer, *inner.members.items()]
    if twice := [key for key, _ in outer if key in inner.members]:
        raise ProblemError(f"call {n} has {twice[0][:60]!r} twice, inside and outside of 'function'; give it once")
    return members


def _arguments(n: int, node: Node) -> Node | None:
    """Return the arguments object, decoded once if it came as a string; None for none."""
    if node.kind == "string":
        if not node.text.strip():
            return None
        try:
            inner = parse(node.text)
        except LooseError as error:
            raise ProblemError(f"the arguments of call {n} are a string, and {error}; write an object") from None
        if skip_space(node.text, inner.end, len(node.text)) < len(node.text):
            raise ProblemError(f"the arguments of call {n} are a string with more than one value; write an object")
        node = inner
    if node.is_null:
        return None
    if node.kind != "object":
        raise ProblemError(f"the arguments of call {n} are {_KINDS[node.kind]}, they must be an object")
    return node


def _remark(key: str, node: Node) -> str:
    return node.text if node.kind == "string" else f"{key}: {render(node)}"
