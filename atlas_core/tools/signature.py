"""What a callable's signature says: its parameters with resolved types, and which of them the model must not see."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atlas_core.errors import ToolDefinitionError
from atlas_core.interfaces.tools import ToolContext

__all__ = ["MISSING", "Parameter", "Signature", "place", "read_signature"]

MISSING: typing.Any = inspect.Parameter.empty
"""Stands for "no default" and "no annotation"."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a model may set; `annotation` is resolved, `default` is `MISSING` if there is none."""

    name: str
    annotation: object
    default: object = MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a callable takes, as far as a model is concerned.

    Attributes:
        function: The innermost Python function, the one with docstring and source.
        place: Where it is defined, for errors.
        parameters: What a model may set, in the order of the definition.
        context: The parameter that takes the `ToolContext`, or None.
        bound: Keywords that a `functools.partial` has fixed.
        returns: The resolved return annotation, or `MISSING` if there is none or it can't be resolved.
        namespace: Local names that the annotations could see; empty for a function of a module.
    """

    function: Callable[..., object]
    place: str
    parameters: tuple[Parameter, ...]
    context: str | None
    bound: frozenset[str]
    returns: object
    namespace: Mapping[str, object]


def read_signature(target: Callable[..., object], tool: str) -> Signature:
    """Read the signature of a function, bound method, partial or callable object.

    Args:
        target: The callable as it will be called.
        tool: The tool's name, for errors.
    Raises:
        ToolDefinitionError: A parameter can't be set by name, has no annotation, or one that can't be resolved.
    """
    function, bound = _innermost(target)
    where = place(function)
    try:
        raw = _signature(target)
    except (ValueError, TypeError) as exc:
        raise ToolDefinitionError(
            f"tool {tool!r} has no signature that Python can read: {exc}",
            tool=tool,
            owner=where,
            remedy="wrap it in a typed function",
        ) from exc
    _refuse_unbound(function, raw, tool, where)
    local = _enclosing_names(function)
    scope = (getattr(function, "__globals__", {}), local)
    parameters: list[Parameter] = []
    context: str | None = None
    for parameter in raw.parameters.values():
        if parameter.name in bound:
            continue
        _refuse_unnamed(parameter, tool, where)
        annotation = _resolve(parameter.annotation, scope)
        if _takes_context(annotation, parameter.name, tool, where):
            if context is not None:
                raise ToolDefinitionError(
                    f"parameters {context!r} and {parameter.name!r} of tool {tool!r} both take the ToolContext",
                    tool=tool,
                    owner=where,
                    remedy="keep one",
                )
            context = parameter.name
            continue
        _refuse_unresolved(annotation, parameter, tool, where)
        parameters.append(Parameter(parameter.name, annotation, parameter.default))
    returns = _resolve(raw.return_annotation, scope)
    return Signature(
        function=function,
        place=where,
        parameters=tuple(parameters),
        context=context,
        bound=bound,
        returns=MISSING if isinstance(returns, _Unresolved) else returns,
        namespace=local,
    )


def place(function: object) -> str:
    """Say where a callable is defined: dotted name, file and line as far as they are known."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    code = getattr(function, "__code__", None)
    where = f", {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{module}.{name}{where}"


def _signature(target: Callable[..., object]) -> inspect.Signature:
    if sys.version_info >= (3, 14):  # pragma: no cover  # depends on the Python that runs the tests
        # Annotations are evaluated on access there; this format keeps a name that exists for type checkers only.
        from annotationlib import Format

        return inspect.signature(target, annotation_format=Format.FORWARDREF)
    return inspect.signature(target)


def _innermost(target: object) -> tuple[Callable[..., object], frozenset[str]]:
    """Return the function behind partials, methods, wrappers and callable objects, and the keywords bound."""
    bound: set[str] = set()
    while True:
        if isinstance(target, functools.partial):
            bound.update(target.keywords)
            target = target.func
        elif isinstance(target, types.MethodType):
            target = target.__func__
        elif hasattr(target, "__wrapped__"):
            target = target.__wrapped__
        elif not inspect.isroutine(target) and inspect.isroutine(
            inspect.getattr_static(type(target), "__call__", None)
        ):
            target = type(target).__call__
        else:
            return typing.cast("Callable[..., object]", target), frozenset(bound)


def _enclosing_names(function: object) -> dict[str, object]:
    """Return the local names of the functions around this one that are still running.

    A tool defined inside a function may name local classes in its annotations; postponed annotations keep only their
    text. Most such tools are registered while the function that defines them runs, so its frame has the names.
    """
    name = getattr(function, "__qualname__", "")
    scopes = [name[: i - 1] for i in range(len(name)) if name.startswith("<locals>", i)]
    if not scopes:
        return {}
    frames: dict[str, Mapping[str, object]] = {}
    frame = inspect.currentframe()
    while frame is not None:
        code = frame.f_code
        if code.co_qualname in scopes and frame.f_globals is getattr(function, "__globals__", None):
            frames.setdefault(code.co_qualname, frame.f_locals)
        frame = frame.f_back
    names: dict[str, object] = {}
    for scope in scopes:  # outer before inner, so that the inner name wins
        names.update(frames.get(scope, {}))
    return names


@dataclass(frozen=True, slots=True)
class _Unresolved:
    """An annotation that could not be resolved, with the reason."""

    text: str
    reason: Exception


def _resolve(annotation: object, scope: tuple[dict[str, object], dict[str, object]]) -> object:
    if annotation is MISSING:
        return MISSING

    def holder() -> None:
        """Carry one annotation, so that one that fails does not take the others along."""

    holder.__annotations__ = {"it": annotation}
    try:
        return typing.get_type_hints(holder, *scope, include_extras=True)["it"]
    except Exception as exc:  # noqa: BLE001  # an annotation is foreign code, evaluated here
        return _Unresolved(_text(annotation), exc)


def _text(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    return str(annotation)


def _takes_context(annotation: object, name: str, tool: str, where: str) -> bool:
    if isinstance(annotation, _Unresolved):
        # The class is often imported for type checkers only; its name is then all there is.
        return _names_context(annotation.text)
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        options = [a for a in typing.get_args(annotation) if a is not types.NoneType]
    else:
        options = [annotation]
    kinds = [typing.get_origin(option) or option for option in options]
    if len(kinds) == 1 and kinds[0] is ToolContext:
        return True
    if any(isinstance(kind, type) and issubclass(kind, ToolContext) for kind in kinds):
        raise ToolDefinitionError(
            f"parameter {name!r} of tool {tool!r} mixes the ToolContext with something else: {_text(annotation)}",
            tool=tool,
            owner=where,
            remedy="annotate it ToolContext, ToolContext[X] or ToolContext | None",
        )
    return False


def _names_context(text: str) -> bool:
    try:
        node: ast.AST = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    while True:
        match node:
            case ast.Constant(value=str(inner)):
                return _names_context(inner)
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                node = left
            case ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=right):
                node = right
            case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner_node):
                node = inner_node
            case ast.Subscript(value=value):
                node = value
            case ast.Name(id="ToolContext") | ast.Attribute(attr="ToolContext"):
                return True
            case _:
                return False


def _refuse_unbound(function: object, raw: inspect.Signature, tool: str, where: str) -> None:
    owner, dot, _ = getattr(function, "__qualname__", "").rpartition(".")
    first = next(iter(raw.parameters.values()), None)
    if not dot or owner.endswith("<locals>") or first is None or first.annotation is not MISSING:
        return
    if first.name in ("self", "cls"):
        raise ToolDefinitionError(
            f"tool {tool!r} is a method without its instance: {first.name!r} is not bound",
            tool=tool,
            owner=where,
            remedy=f"register the method of an instance, as in {owner.rpartition('.')[2]}(...).{tool}",
        )


def _refuse_unnamed(parameter: inspect.Parameter, tool: str, where: str) -> None:
    match parameter.kind:
        case inspect.Parameter.POSITIONAL_ONLY:
            problem, remedy = "is positional-only", "remove the '/' after it"
        case inspect.Parameter.VAR_POSITIONAL:
            problem, remedy = "takes any number of positions", "take a list instead"
        case inspect.Parameter.VAR_KEYWORD:
            problem, remedy = "takes any keyword", "name the parameters, or take a dict"
        case _:
            return
    star = str(parameter)[: 2 - len(str(parameter)[:2].lstrip("*"))]
    raise ToolDefinitionError(
        f"parameter '{star}{parameter.name}' of tool {tool!r} {problem}, but a model sets arguments by name",
        tool=tool,
        owner=where,
        remedy=remedy,
    )


def _refuse_unresolved(annotation: object, parameter: inspect.Parameter, tool: str, where: str) -> None:
    if annotation is MISSING:
        raise ToolDefinitionError(
            f"parameter {parameter.name!r} of tool {tool!r} has no type",
            tool=tool,
            owner=where,
            remedy="annotate it (typing.Any takes any JSON value; ToolContext receives the run's context)",
        )
    if isinstance(annotation, _Unresolved):
        raise ToolDefinitionError(
            f"the annotation {annotation.text!r} of parameter {parameter.name!r} of tool {tool!r} can't be resolved: "
            f"{type(annotation.reason).__name__}: {annotation.reason}",
            tool=tool,
            owner=where,
            remedy="import what it names at run time, not under TYPE_CHECKING only",
        ) from annotation.reason
