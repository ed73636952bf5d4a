"""Tools that other people's objects make: adapted to `Tool`, or given another name."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from atlas_core.errors import ToolDefinitionError
from atlas_core.interfaces.tools import Tool, ToolSchema
from atlas_core.tools.signature import place
from atlas_core.tools.tool_names import check_name

__all__ = ["ObjectTool", "RenamedTool", "looks_like_tool"]

_PARTS = ("name", "description", "schema", "execute")


def looks_like_tool(candidate: object) -> bool:
    """Whether an object seems meant as a tool: it has `execute`, or both `name` and `schema`."""
    return hasattr(candidate, "execute") or (hasattr(candidate, "name") and hasattr(candidate, "schema"))


class ObjectTool(Tool):
    """An object with `name`, `description`, `schema` and `execute` as a `Tool`.

    Also taken from it, where it has them: `effects`, `timeout_s`, `requires_approval`, `context_parameter`,
    `strict_arguments`, and `start` and `stop`, plain or `async def`.

    Raises:
        ToolDefinitionError: A part is missing or of a wrong kind; the text names object and part.
    """

    def __init__(self, inner: Any) -> None:
        self._place = place(type(inner))
        if missing := [part for part in _PARTS if not hasattr(inner, part)]:
            raise self._error(f"has no {', '.join(missing)}", f"give it {', '.join(_PARTS)}")
        self.inner = inner
        self._name = check_name(self._text(inner.name, "name"), owner=self._place)
        description = self._text(inner.description, "description") if inner.description is not None else ""
        self._schema = self._read_schema(inner.schema, description)
        if not callable(inner.execute):
            raise self._error(f"has an execute that can't be called: {inner.execute!r}", "make it a method")
        self._is_async = _is_async(inner.execute)
        self._read_options()

    def _read_options(self) -> None:
        inner = self.inner
        self.effects = getattr(inner, "effects", "write")
        if self.effects not in ("read", "idempotent", "write"):
            raise self._error(f"has effects {self.effects!r}", "use 'read', 'idempotent' or 'write'")
        self.timeout_s = getattr(inner, "timeout_s", None)
        if self.timeout_s is not None and not (
            isinstance(self.timeout_s, (int, float)) and 0 < self.timeout_s < math.inf
        ):
            raise self._error(f"has timeout_s {self.timeout_s!r}", "use a positive number of seconds, or None")
        # Anything but a plain False asks for approval: a doubt must not open a door.
        self.requires_approval = getattr(inner, "requires_approval", False) is not False
        self.strict_arguments = bool(getattr(inner, "strict_arguments", False))
        self.context_parameter = getattr(inner, "context_parameter", None)
        if not isinstance(self.context_parameter, (str, type(None))):
            raise self._error(f"has context_parameter {self.context_parameter!r}", "use a parameter's name, or None")

    def _error(self, problem: str, remedy: str) -> ToolDefinitionError:
        return ToolDefinitionError(f"the tool object {problem}", owner=self._place, remedy=remedy)

    def _text(self, value: object, part: str) -> str:
        if isinstance(value, str):
            return value
        raise self._error(f"has {_kind(value)} as its {part}", f"make {part} a text, as attribute or property")

    def _read_schema(self, schema: object, description: str) -> ToolSchema:
        if isinstance(schema, ToolSchema):
            return dataclasses.replace(schema, name=self._name, description=description or schema.description)
        if schema is True:  # JSON Schema's own way to say "anything"
            schema = {}
        if not isinstance(schema, Mapping):
            raise self._error(
                f"has {_kind(schema)} as its schema", "make it a ToolSchema, or a JSON Schema as a mapping"
            )
        if "properties" not in schema and isinstance(schema.get("parameters", schema.get("function")), Mapping):
            raise self._error(
                "has a schema that describes a whole function, not its arguments",
                "return the inner JSON Schema, the one with 'properties'",
            )
        return ToolSchema(name=self._name, description=description, parameters=dict(schema))

    def __repr__(self) -> str:
        return f"ObjectTool({self._name!r}, {self._place})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._schema.description

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    @property
    def is_async(self) -> bool:
        return self._is_async

    def execute(self, /, **kwargs: Any) -> Any:
        return self.inner.execute(**kwargs)

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        build = getattr(self.inner, "build_arguments", None)
        return build(arguments) if callable(build) else arguments

    @property
    def plain_start(self) -> Callable[[], Any] | None:
        """The object's `start` where that is a plain function, which may block and so belongs in a thread, or None."""
        start = getattr(self.inner, "start", None)
        return None if start is None or inspect.iscoroutinefunction(start) else start

    async def start(self) -> None:
        await _call(getattr(self.inner, "start", None))

    async def stop(self) -> None:
        await _call(getattr(self.inner, "stop", None))


def _kind(value: object) -> str:
    return "a method" if callable(value) else f"an object of type {type(value).__name__}"


async def _call(method: Any) -> None:
    if callable(method):
        result = method()
        if inspect.isawaitable(result):
            await result


def _is_async(function: Any) -> bool:
    if not inspect.isroutine(function):
        function = getattr(function, "func", None) or type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


class RenamedTool(Tool):
    """A tool under another name; all else is the inner tool's."""

    def __init__(self, inner: Tool, name: str) -> None:
        self.inner = inner
        self._name = check_name(name)
        self._schema = dataclasses.replace(inner.schema, name=name)
        self._is_async = inner.is_async
        self.effects = inner.effects
        self.timeout_s = inner.timeout_s
        self.requires_approval = inner.requires_approval
        self.context_parameter = inner.context_parameter
        self.strict_arguments = bool(getattr(inner, "strict_arguments", False))

    def __repr__(self) -> str:
        return f"RenamedTool({self._name!r}, {self.inner!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self.inner.description

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    @property
    def is_async(self) -> bool:
        return self._is_async

    def execute(self, /, **kwargs: Any) -> Any:
        return self.inner.execute(**kwargs)

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.inner.build_arguments(arguments)

    @property
    def plain_start(self) -> Callable[[], Any] | None:
        """What the inner tool has under that name."""
        return self.inner.plain_start

    async def start(self) -> None:
        await _call(self.inner.start)

    async def stop(self) -> None:
        await _call(self.inner.stop)
