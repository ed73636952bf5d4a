"""A call's arguments: from the model's text to values that fit the tool's schema, or to an error it can act on."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atlas_core.errors import ToolArgumentsError
from atlas_core.tools.plain import plain_predicate
from atlas_core.tools.schema_check import build_validator, plain_copy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from atlas_core.interfaces.tools import ToolSchema

__all__ = ["ArgumentChecker", "Checked"]

MAX_DEPTH = 100
"""Arrays and objects inside one another; far below what makes Python's own recursion end."""

_QUOTE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Checked:
    """Arguments that passed.

    Attributes:
        values: They, freshly decoded; the caller's own to change.
        decoded: Paths of the values that came as JSON text where only something else fits, and were decoded.
    """

    values: dict[str, Any]
    decoded: tuple[str, ...] = ()


class ArgumentChecker:
    """Checks a tool's arguments against its schema as the model saw it. Built once per tool, used for each call.

    The draft is the one `$schema` names, else 2020-12. A bool is no number. `format` is not asserted here: a typed
    function checks it when its values are built.

    Args:
        schema: The tool's.
        owner: Who supplies the tool, for errors about the schema.
        lenient: Decode a JSON string where only a number, bool, array or object fits, once, and check again.
    Raises:
        ToolDefinitionError: The schema is faulty, or refers to what is not in it; nothing is ever fetched.
    """

    def __init__(self, schema: ToolSchema, owner: str = "", *, lenient: bool = True) -> None:
        self._tool = schema.name
        self._owner = owner
        self._lenient = lenient
        self._schema = plain_copy(schema.parameters, schema.name, owner)
        self._accepts = plain_predicate(self._schema)
        self._validator: Validator | None = None
        self.unchecked: tuple[str, ...] = ()
        if self._accepts is None:
            # What is not plain may be faulty, and that must come out now.
            self._full()

    def _full(self) -> Validator:
        if self._validator is None:
            self._validator, self.unchecked = build_validator(self._schema, self._tool, self._owner)
        return self._validator

    def check(self, arguments_json: str) -> Checked:
        """Decode and check the arguments of one call.

        Args:
            arguments_json: The model's text; "" and "null" count as `{}`.
        Raises:
            ToolArgumentsError: The text is no JSON object, or does not fit; the text is for the model.
        """
        values, decoded = self._decode(arguments_json)
        if self._accepts is not None and self._accepts(values):
            return Checked(values, decoded)
        try:
            return Checked(values, decoded + self._check(values))
        except RecursionError as exc:
            raise ToolArgumentsError(
                f"the arguments of tool {self._tool!r} are nested too deeply",
                tool=self._tool,
                remedy="call it again with simpler ones",
            ) from exc

    def check_values(self, values: dict[str, Any]) -> Checked:
        """Check arguments that are Python values already, as a program gives them.

        Raises:
            ToolArgumentsError: They are no JSON values, or don't fit.
        """
        try:
            text = json.dumps(values, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ToolArgumentsError(
                f"the arguments of tool {self._tool!r} are no JSON values: {exc}"[:900], tool=self._tool
            ) from exc
        return self.check(text)

    def _check(self, values: dict[str, Any]) -> tuple[str, ...]:
        """Check in full; returns the paths that were decoded, in `values` itself."""
        from atlas_core.tools.violations import path_text, violated

        validator = self._full()
        errors = _some(validator.iter_errors(values))
        if not errors:
            return ()
        paths = _decode_texts(values, errors) if self._lenient else []
        if paths:
            errors = _some(validator.iter_errors(values))
        if errors:
            raise violated(self._tool, errors)
        return tuple(path_text(path) for path in paths)

    def _decode(self, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        if not text.strip():
            return {}, ()
        value = self._parse(text)
        if self._lenient and isinstance(value, str):
            # The whole object as a JSON string: the same leniency, one level up.
            inner = _parse_or_none(value)
            if isinstance(inner, dict):
                return inner, ("arguments",)
        if value is None:
            return {}, ()
        if not isinstance(value, dict):
            raise ToolArgumentsError(
                f"the arguments of tool {self._tool!r} are {_kind(value)}, expected a JSON object: {_quote(text)}",
                tool=self._tool,
                remedy='issue the call again with an object such as {"name": value}',
            )
        return value, ()

    def _parse(self, text: str) -> object:
        try:
            return parse(text)
        except (ValueError, RecursionError) as exc:
            problem = "nested too deeply" if isinstance(exc, RecursionError) else str(exc)
            raise ToolArgumentsError(
                f"the arguments of tool {self._tool!r} are not valid JSON: {problem[:200]}; they begin {_quote(text)}",
                tool=self._tool,
                remedy="the tool was not run; issue the call again with complete, valid JSON",
            ) from exc


def _quote(text: str) -> str:
    return repr(text if len(text) <= _QUOTE_CHARS else text[:_QUOTE_CHARS] + "...")


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "true or false" if isinstance(value, bool) else "a number"


def parse(text: str) -> object:
    """Decode strict JSON: no NaN or Infinity, no key twice, no absurd depth.

    Raises:
        ValueError: The text is something else; the message has the position where the decoder knows it.
        RecursionError: It is nested more than `MAX_DEPTH` deep.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as exc:
        raise ValueError(f"{exc.msg} at line {exc.lineno} column {exc.colno} (character {exc.pos})") from None
    except ValueError as exc:
        # int() on thousands of digits speaks of sys.set_int_max_str_digits(), which is no model's business.
        raise ValueError("a number has too many digits" if "integer string" in str(exc) else str(exc)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise RecursionError
    return value


def _depth(value: object) -> int:
    level: list[object] = [value]
    depth = 0
    while level := [item for item in level if isinstance(item, (list, dict))]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _some(errors: Iterator[ValidationError]) -> list[ValidationError]:
    """Take enough errors to tell of; a list of a million wrong items would have a million."""
    return [error for error, _ in zip(errors, range(100), strict=False)]


def _decode_texts(values: dict[str, Any], errors: list[ValidationError]) -> list[list[str | int]]:
    """Replace, in `values`, each text that stands where only something else fits and that is JSON of it."""
    decoded: list[list[str | int]] = []
    for error in errors:
        path = list(error.absolute_path)
        if not path or path in decoded or not isinstance(error.instance, str) or not _refuses_texts(error):
            continue
        inner = _parse_or_none(error.instance)
        if inner is None and error.instance.strip() != "null":
            continue
        if not isinstance(inner, str):
            holder: Any = values
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = inner
            decoded.append(path)
    return decoded


def _parse_or_none(text: str) -> object:
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


def _refuses_texts(error: ValidationError) -> bool:
    """Whether the failed keyword can't be satisfied by any text."""
    value: Any = error.validator_value
    match error.validator:
        case "type":
            return "string" not in ([value] if isinstance(value, str) else value)
        case "enum":
            return not any(isinstance(member, str) for member in value)
        case "const":
            return not isinstance(value, str)
        case "anyOf" | "oneOf":
            refusing = {
                child.relative_schema_path[0]
                for child in error.context or ()
                if not child.relative_path and _refuses_texts(child)
            }
            return len(refusing) == len(value)
    return False
