"""Holds an answer to a type: how the model is told, how its answer is read, what it hears when it does not fit."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from atlas_core.interfaces.tools import ToolSchema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from atlas_core.interfaces.llm import LLMDefaults
    from atlas_core.messages import ToolCall

__all__ = ["MISSING", "OutputMismatchError", "OutputType", "OutputWatch"]

MISSING: Any = object()
"""Stands for "no value yet", since None may be one."""

MAX_TRIES = 3
"""Answers that may miss the type before the run ends: the first, and two that were told why."""

MAX_MISMATCH_CHARS = 1_000

_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\r?\n(?P<body>.*?)^(?P=fence)[ \t\r]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class OutputMismatchError(Exception):
    """An answer does not meet the type; the text is meant for the model. Private, never leaves the loop."""


class OutputType:
    """A type that an answer must meet: anything pydantic can validate.

    Providers take only schemas of objects, so that any other type travels as the one key `value` of an object.

    Args:
        kind: The type.
    Raises:
        TypeError: There is no JSON Schema for it.
    """

    def __init__(self, kind: object) -> None:
        from pydantic import PydanticUserError, TypeAdapter  # only for runs that ask for a type
        from pydantic.errors import PydanticInvalidForJsonSchema
        from pydantic_core import SchemaError

        from atlas_core.tools.schema import modern_typed_dicts  # loads pydantic too

        if inspect.isroutine(kind):
            raise TypeError(f"output_type {kind!r} can't be described to a model: it is a function")
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(modern_typed_dicts(kind, {}))
            schema = self._adapter.json_schema()
        except (PydanticUserError, PydanticInvalidForJsonSchema, SchemaError, TypeError) as exc:
            raise TypeError(f"output_type {kind!r} can't be described to a model: {exc}") from exc
        self.wrapped = not _is_object(schema)
        if self.wrapped:
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
            schema |= {"additionalProperties": False}
            if definitions is not None:
                schema["$defs"] = definitions
        self.schema: Mapping[str, object] = schema
        self.name = re.sub(r"[^a-zA-Z0-9_-]", "_", getattr(kind, "__name__", "output"))[:48] or "output"

    def read(self, text: str) -> object:
        """Return the value that JSON text means.

        Raises:
            OutputMismatchError: It is no JSON, or does not meet the type.
        """
        from pydantic import ValidationError

        try:
            data = _json_in(text)
        except (ValueError, RecursionError) as exc:
            raise OutputMismatchError(f"it is not JSON: {exc}") from exc
        if self.wrapped:
            if not isinstance(data, dict) or set(data) != {"value"}:
                raise OutputMismatchError('it must be a JSON object with the one key "value"')
            data = data["value"]
        try:
            # As JSON, so that dates and enums are read from their texts and a float is no int.
            return self._adapter.validate_json(json.dumps(data))
        except ValidationError as exc:
            found = [f"{_path(e['loc'])}: {e['msg']}" for e in exc.errors(include_url=False, include_input=False)]
            text = "; ".join(found[:5])
            raise OutputMismatchError(text[:MAX_MISMATCH_CHARS]) from exc
        except ValueError as exc:
            raise OutputMismatchError(str(exc)[:MAX_MISMATCH_CHARS]) from exc


def _json_in(text: str) -> Any:
    """Return the JSON value of an answer: the whole text, or its one fenced block, behind what a model thought aloud.

    Nothing is executed by it and the value is validated, so that habits of form need no further request.
    """
    text = _THOUGHTS.sub("", text)
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        blocks = [match["body"] for match in _FENCED.finditer(text)]
        if len(blocks) != 1:
            raise
    return json.loads(blocks[0], parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and "$ref" not in schema


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc)) or "the answer"


class OutputWatch:
    """One run's side of an output type.

    It uses the provider's own schema mode where there is one; else a tool that the model must call to answer; else
    words in the prompt.

    Args:
        kind: The type.
        schema_mode: Whether the provider can hold an answer to a schema.
        native_tools: Whether it can call tools.
        tool_names: The agent's tools, whose names the answering tool must not take.
    """

    def __init__(self, kind: OutputType, *, schema_mode: bool, native_tools: bool, tool_names: Collection[str]) -> None:
        self._kind = kind
        self._by_schema = schema_mode
        self._tool = ""
        if not schema_mode and native_tools:
            self._tool = "final_answer"
            while self._tool in tool_names:
                self._tool += "_"
        self._misses = 0
        self.value: Any = MISSING

    def adjust(self, defaults: LLMDefaults) -> LLMDefaults:
        """Return a run's defaults with the type in them."""
        kind = self._kind
        if self._by_schema:
            return replace(defaults, output_schema=kind.schema, output_name=kind.name)
        if self._tool:
            description = "Give the final answer. Call this once, alone, when you know the answer."
            answer = ToolSchema(name=self._tool, description=description, parameters=kind.schema)
            return replace(defaults, tools=(*defaults.tools, answer))
        schema = json.dumps(kind.schema, ensure_ascii=False)
        told = (
            f"## Answer\nGive the final answer as one JSON object, and nothing else, that meets this schema:\n{schema}"
        )
        return replace(defaults, system=f"{defaults.system}\n\n{told}" if defaults.system else told)

    def answering(self, calls: tuple[ToolCall, ...]) -> ToolCall | None:
        """Return the call that gives the final answer, if there is one."""
        return next((call for call in calls if self._tool and call.name == self._tool), None)

    def take(self, text: str) -> str | None:
        """Read an answer; return None if it meets the type, else what to tell the model."""
        try:
            self.value = self._kind.read(text)
        except OutputMismatchError as exc:
            self._misses += 1
            how = f", by calling {self._tool!r}" if self._tool else ""
            return f"The answer does not meet the schema: {exc}. Give the whole answer again, corrected{how}."
        return None

    @property
    def gave_up(self) -> bool:
        """Whether too many answers missed the type."""
        return self._misses >= MAX_TRIES
