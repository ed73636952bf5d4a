"""Typed functions as tools: the `tool` marker, the wrapper, and the door through which anything becomes a `Tool`."""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from atlas_core.errors import ToolArgumentsError, ToolDefinitionError
from atlas_core.interfaces.tools import Effects, Tool, ToolHints, ToolSchema
from atlas_core.tools.signature import place, read_signature
from atlas_core.tools.tool_names import check_name

if TYPE_CHECKING:
    from atlas_core.tools.schema import ArgumentsModel

__all__ = ["FunctionTool", "ToolMarks", "as_tool", "tool"]

_MARK = "__atlas_tool__"
_EFFECTS = ("read", "idempotent", "write")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMarks:
    """What `@tool` leaves on a function; None means not stated."""

    name: str | None = None
    description: str | None = None
    timeout_s: float | None = None
    effects: Effects = "write"
    requires_approval: bool = False
    hints: ToolHints | None = None
    strict_arguments: bool = False

    def __post_init__(self) -> None:
        if self.effects not in _EFFECTS:
            raise ValueError(f"effects is {self.effects!r}, expected one of {', '.join(map(repr, _EFFECTS))}")
        timeout = self.timeout_s
        if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
            raise ValueError(f"timeout_s is {timeout!r}, expected a positive number of seconds, or None for no limit")
        if self.name is not None:
            check_name(self.name)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    effects: Effects = "write",
    requires_approval: bool = False,
    hints: ToolHints | None = None,
    strict_arguments: bool = False,
) -> Callable[[F], F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    effects: Effects = "write",
    requires_approval: bool = False,
    hints: ToolHints | None = None,
    strict_arguments: bool = False,
) -> Any:
    """Say how a function shall serve as a tool. It stays as it is: callable, and a method if it is one.

    Nothing else happens here; a function becomes a tool where a plugin offers it, or where it is registered. One
    without this marker can be offered just as well.

    Args:
        function: The function, when used without parentheses.
        name: What a model calls it; the function's own name if left out.
        description: Replaces the docstring's text; the texts on the parameters stay.
        timeout_s: Seconds one call may take; None for the run's own limit.
        effects: What running it changes: "read" nothing, "idempotent" the same however often, "write" more each time.
        requires_approval: Whether a person must agree to each call.
        hints: How a provider without a language model can tell that a question is for this tool.
        strict_arguments: Refuse a JSON string where a number, bool, array or object is due, instead of decoding it.
    Raises:
        ValueError: A value is outside what is stated here.
    """
    marks = ToolMarks(
        name=name,
        description=description,
        timeout_s=timeout_s,
        effects=effects,
        requires_approval=requires_approval,
        hints=hints,
        strict_arguments=strict_arguments,
    )

    def mark(target: F) -> F:
        inner = target.__func__ if isinstance(target, (staticmethod, classmethod)) else target
        if not inspect.isroutine(inner):
            raise TypeError(f"@tool marks a function, not {inner!r}; give an object to FunctionTool(...) instead")
        setattr(inner, _MARK, marks)
        return target

    return mark if function is None else mark(function)


def _marks_of(target: object) -> ToolMarks:
    while isinstance(target, functools.partial):
        target = target.func
    marks = getattr(target, _MARK, None)
    return marks if isinstance(marks, ToolMarks) else ToolMarks()


class FunctionTool(Tool):
    """A typed function as a tool.

    Takes functions, bound methods, partials, callable objects; plain, `async def`, and generators of both kinds. What
    a generator yields is collected into a list by whoever runs it. Each keyword argument replaces what `@tool` says.

    Args:
        function: What is called. A keyword that a `functools.partial` has fixed is no part of the schema.
        name: What a model calls it; needed for a lambda or a callable object.
        description: Replaces the docstring's text.
        timeout_s: Seconds one call may take.
        effects: What running it changes.
        requires_approval: Whether a person must agree to each call.
        hints: For a provider without a language model.
        strict_arguments: Refuse JSON strings where something else is due, instead of decoding them.
    Raises:
        ToolDefinitionError: The function can't be a tool as it stands; the text names function, file and parameter.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout_s: float | None = None,
        effects: Effects | None = None,
        requires_approval: bool | None = None,
        hints: ToolHints | None = None,
        strict_arguments: bool | None = None,
    ) -> None:
        marks = _marks_of(function)
        stated = ToolMarks(
            timeout_s=timeout_s if timeout_s is not None else marks.timeout_s,
            effects=effects or marks.effects,
            requires_approval=marks.requires_approval if requires_approval is None else requires_approval,
            strict_arguments=marks.strict_arguments if strict_arguments is None else strict_arguments,
        )
        self.timeout_s = stated.timeout_s
        self.effects = stated.effects
        self.requires_approval = stated.requires_approval
        self.strict_arguments = stated.strict_arguments
        self._function = function
        self._name = name or marks.name or _own_name(function)
        check_name(self._name, owner=place(function))
        self._read(description if description is not None else marks.description, hints or marks.hints)
        self._is_async = _is_async(function)

    def _read(self, description: str | None, hints: ToolHints | None) -> None:
        from atlas_core.tools.schema import model_arguments, read_docstring, returns_schema

        signature = read_signature(self._function, self._name)
        doc = read_docstring(_docstring(self._function, signature.function))
        self._arguments: ArgumentsModel = model_arguments(signature, self._name, doc.parameters)
        self._bound = signature.bound
        self._place = signature.place
        self.context_parameter = signature.context
        self._schema = ToolSchema(
            name=self._name,
            description=doc.description if description is None else description,
            parameters=self._arguments.schema,
            returns=returns_schema(signature),
            hints=hints,
        )

    def __repr__(self) -> str:
        return f"FunctionTool({self._name!r}, {self._place})"

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
        """Whether `execute` belongs on the event loop: the function is an `async def`, generators included."""
        return self._is_async

    @property
    def function(self) -> Callable[..., Any]:
        """The function as it was given."""
        return self._function

    def execute(self, /, **kwargs: Any) -> Any:
        """Call the function with built arguments, and with the `ToolContext` under `context_parameter`.

        Raises:
            ToolArgumentsError: A keyword is one that a partial has fixed.
        """
        if self._bound and (fixed := sorted(self._bound.intersection(kwargs))):
            raise ToolArgumentsError(f"argument {fixed[0]!r} of tool {self._name!r} is fixed", tool=self._name)
        for name, fill in self._arguments.fills.items():
            if name not in kwargs:
                kwargs[name] = fill()
        return self._function(**kwargs)

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Turn arguments that passed the schema into what the annotations promise: members, instances, dates.

        Raises:
            ToolArgumentsError: A value can't be built, for a reason the schema does not state.
        """
        return self._arguments.build(arguments)


def _own_name(function: object) -> str:
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    name = getattr(target, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise ToolDefinitionError(
            f"{function!r} has no name that a model could call",
            owner=place(target),
            remedy="give one: FunctionTool(..., name='...')",
        )
    return name


def _docstring(target: Any, function: Callable[..., object]) -> str | None:
    # The class of a callable object says what it is for, its `__call__` what a call does: the latter is the tool.
    if inspect.isroutine(target) or isinstance(target, functools.partial) or function.__doc__:
        return function.__doc__
    return type(target).__doc__


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def as_tool(candidate: object) -> Tool:
    """Make a `Tool` of whatever may be offered as one.

    Args:
        candidate: A `Tool`, an object with `name`, `description`, `schema` and `execute`, or anything callable.
    Raises:
        ToolDefinitionError: It is none of these, or lacks something; the text says what.
    """
    from atlas_core.tools.foreign import ObjectTool, looks_like_tool

    if isinstance(candidate, Tool):
        return candidate
    if isinstance(candidate, (staticmethod, classmethod)):
        raise ToolDefinitionError(
            f"{candidate!r} is not bound to its class",
            owner=place(candidate.__func__),
            remedy="register it through the class or an instance",
        )
    if isinstance(candidate, type):
        raise ToolDefinitionError(
            f"{candidate.__qualname__} is a class", owner=place(candidate), remedy="register an instance or a function"
        )
    if not isinstance(candidate, (types.FunctionType, types.MethodType)) and looks_like_tool(candidate):
        return ObjectTool(candidate)
    if callable(candidate):
        return FunctionTool(candidate)
    raise ToolDefinitionError(
        f"an object of type {type(candidate).__name__} is no tool: {_short(candidate)}",
        owner=place(candidate),
        remedy="offer a typed function, a Tool, or an object with name, description, schema and execute",
    )


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return f"a mapping with {len(value)} keys"
    try:
        text = repr(value)
    except Exception as exc:  # noqa: BLE001  # a stranger's repr
        return f"its repr raises {type(exc).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
