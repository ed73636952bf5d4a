"""From tools and schemas to a grammar that holds a model's answer to them while it is written. Pure functions.

Grammars are in llguidance's dialect of Lark, whose `%json` takes a JSON Schema. What it can't take makes it drop the
*whole* grammar without a word in the reply, so schemas are cut down to what it is known to take, and `probe` grammars
find out whether it does. What was cut off is checked when the answer is there.

Source: llguidance's docs/syntax.md and docs/json_schema.md; the keywords and formats were tried one by one with
xllamacpp 2026.10.11549.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from atlas_llama.wire import CLOSE, OPEN, RESULT_TAG, call_head

if TYPE_CHECKING:
    from atlas_core import ToolSchema

__all__ = ["MAX_CALLS", "RUNGS", "SENTINEL", "Rung", "answer_grammar", "narrow", "probe_grammar"]

MAX_CALLS = 8
"""Calls in one message; a weak model repeats itself for as long as it may."""

SENTINEL = "~#~"
"""What a probe makes the model write, and what none writes by itself after an empty line."""

_SAFE_INTEGER = 2**53 - 1  # RFC 7493, section 2.2: what every JSON reader keeps exact
_FORMATS = frozenset(["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_VALUES = frozenset(
    [
        *("type", "enum", "const", "required"),
        *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
    ]
)
_FINE = frozenset(["pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
_ONE = frozenset(["items", "additionalProperties"])
_MANY = frozenset(["anyOf", "allOf", "prefixItems"])
_NAMED = frozenset(["properties", "$defs", "definitions"])
_BESIDES = frozenset(["anyOf", "allOf", "oneOf", "$ref", "patternProperties", "additionalProperties", "minProperties"])
"""What may speak of properties that are not among the named ones."""

Rung = Callable[[Mapping[str, object]], dict[str, Any]]
"""Makes the grammar's schema from a tool's."""


def narrow(schema: Mapping[str, object], *, fine: bool = True) -> dict[str, Any]:
    """Return what of a schema a grammar can hold; it accepts what the schema does, and may accept more.

    Two things it makes stricter, since weak models ramble: an object that names its properties and says nothing of
    others gets no others, and a whole number without bounds stays within what every JSON reader keeps exact.

    Args:
        schema: A JSON Schema.
        fine: Keep patterns, formats and bounds of numbers, which may be beyond the grammar.
    """
    result = _narrow(schema, fine=fine, close=True)
    if not isinstance(result, dict):
        return {}
    if not {"anyOf", "allOf", "$ref"} & result.keys():
        result["type"] = "object"
        if _may_close(schema):
            result["additionalProperties"] = False
    return result


def _may_close(schema: Mapping[str, object]) -> bool:
    """Whether an object loses nothing that it says it has when it gets no more than the properties it names."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    named = set(properties) if isinstance(properties, Mapping) else set()
    return not _BESIDES & schema.keys() and isinstance(required, (list, tuple)) and named.issuperset(required)


def _narrow(schema: object, *, fine: bool, close: bool) -> Any:
    if not isinstance(schema, Mapping):
        return schema is not False
    result: dict[str, Any] = {}
    for key, value in schema.items():
        # Whether others fit as well can't be told while writing, so `oneOf` is held to by one of them fitting.
        name = "anyOf" if key == "oneOf" and "anyOf" not in schema else key
        if name in _VALUES or (fine and name in _FINE) or (fine and name == "format" and value in _FORMATS):
            result[name] = value
        elif name in _ONE and not isinstance(value, list):
            result[name] = value if value is False else _narrow(value, fine=fine, close=close)
        elif name == "items":
            result["prefixItems"] = [_narrow(one, fine=fine, close=close) for one in value]  # drafts before 2020-12
        elif name in _MANY and isinstance(value, list):
            result[name] = [_narrow(one, fine=fine, close=close and name != "allOf") for one in value]
        elif name in _NAMED and isinstance(value, Mapping):
            result[name] = {k: _narrow(one, fine=fine, close=close) for k, one in value.items()}
        elif name == "$ref" and isinstance(value, str) and value.startswith("#"):
            result[name] = value
        elif fine and name == "patternProperties" and isinstance(value, Mapping):
            result[name] = {k: _narrow(one, fine=fine, close=close) for k, one in value.items()}
    if close and result.get("properties") and _may_close(schema):
        result["additionalProperties"] = False
    if fine and result.get("type") == "integer" and not {"enum", "const"} & result.keys():
        _bound(result)
    return result


def _bound(schema: dict[str, Any]) -> None:
    if not {"minimum", "exclusiveMinimum"} & schema.keys():
        highest = min(schema.get("maximum", 0), schema.get("exclusiveMaximum", 0))
        schema["minimum"] = min(-_SAFE_INTEGER, highest)
    if not {"maximum", "exclusiveMaximum"} & schema.keys():
        lowest = max(schema.get("minimum", 0), schema.get("exclusiveMinimum", 0))
        schema["maximum"] = max(_SAFE_INTEGER, lowest)


def _anything(_schema: Mapping[str, object]) -> dict[str, Any]:
    return {"type": "object"}


def _coarse(schema: Mapping[str, object]) -> dict[str, Any]:
    return narrow(schema, fine=False)


RUNGS: tuple[Rung, ...] = (narrow, _coarse, _anything)
"""From the closest to the loosest; the last one is JSON and no more."""


def _json_rule(schema: Mapping[str, object]) -> str:
    # Free white space is where weak models get lost; these separators are what `json.dumps` writes by default.
    spacing = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return f"%json {json.dumps({**schema, 'x-guidance': spacing}, ensure_ascii=False)}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def probe_grammar(schema: Mapping[str, object]) -> str:
    """Return a grammar that makes any model write `SENTINEL`, if the schema is one that a grammar can be made of."""
    return f"%llguidance {{}}\nstart: {_text(SENTINEL)} value\nvalue: {_json_rule(schema)}\n"


def answer_grammar(
    tools: Sequence[tuple[ToolSchema, Mapping[str, object]]],
    *,
    answer: Mapping[str, object] | None,
    end_ids: Sequence[int],
    probe: bool = False,
) -> str:
    """Return the grammar of one answer: calls of tools, else text or what the answer's schema says.

    Text may precede calls, and none contains what begins a call without being one.

    Args:
        tools: The tools on offer, each with its arguments' schema as the grammar takes it.
        answer: Schema of an answer that is no call, as the grammar takes it; None for text.
        end_ids: Tokens that end an answer. They are spelt out, since llguidance knows only one of them, and not always
            the one that the model's template uses.
        probe: Make it begin with `SENTINEL`.
    """
    head = "words" if answer is None else "answer"
    rules = [
        "%llguidance {}",
        "start: " + (f"{_text(SENTINEL)} " if probe else "") + "message" + (" end" if end_ids else ""),
        f"message: {head} | calls" if tools else f"message: {head}",
    ]
    if end_ids:
        rules.append(f"end: <[{','.join(map(str, end_ids))}]>")
    if answer is not None:
        rules.append(f"answer: {_json_rule(answer)}")
        opening = f"opening: {_text(OPEN)}"
    else:
        # Not blank, and no result that no tool gave: weak models go on with what should come next.
        rules.append(rf"FORGED: /(.|\n)*{RESULT_TAG[:-1]}(.|\n)*/")
        rules += [r"WORDS: /(.|\n)*[^ \t\r\n](.|\n)*/ & ~FORGED", "words: WORDS"]
        # The lazy one wins as soon as it fits, so that what begins a call is one.
        opening = rf"OPENING: /(.|\n)*{OPEN.strip()}\n/ & ~FORGED" + "\nopening[lazy]: OPENING"
    if tools:
        names = [f"call_{n}" for n in range(len(tools))]
        rules += [
            opening,
            f"calls: opening call closing (next call closing){{0,{MAX_CALLS - 1}}}",
            f"closing: {_text(CLOSE)}",
            f"next: {_text(chr(10) + OPEN)}",
            f"call: {' | '.join(names)}",
        ]
        for name, (tool, schema) in zip(names, tools, strict=True):
            rules.append(f'{name}: {_text(call_head(tool.name))} {name}_arguments "}}"')
            rules.append(f"{name}_arguments: {_json_rule(schema)}")
    return "\n".join(rules) + "\n"
