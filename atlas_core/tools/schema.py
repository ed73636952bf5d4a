"""From a signature and a docstring to the schema that a model sees, and to the builder of a call's Python values."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping

from atlas_core.errors import ToolArgumentsError, ToolDefinitionError
from atlas_core.tools.signature import MISSING, Parameter, Signature

if typing.TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

__all__ = [
    "ArgumentsModel",
    "Documentation",
    "model_arguments",
    "modern_typed_dicts",
    "read_docstring",
    "returns_schema",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring tells: the text about the tool, and one text per parameter."""

    description: str = ""
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_docstring(doc: str | None) -> Documentation:
    """Read a docstring in Google, NumPy or reST form.

    The description is the summary and the paragraphs before the first section: what else it says (results, errors,
    examples) is for people, and would be paid for with every request.
    """
    if not doc or not doc.strip():
        return Documentation()
    if "\n" not in doc.strip():
        return Documentation(doc.strip())
    import docstring_parser

    try:
        parsed = docstring_parser.parse(doc)
    except (docstring_parser.ParseError, LookupError, ValueError):
        # A text that follows none of the forms is still a description; version 0.18 raises IndexError on some.
        return Documentation(inspect.cleandoc(doc))
    texts = (parsed.short_description, parsed.long_description)
    return Documentation(
        "\n\n".join(t.strip() for t in texts if t),
        {p.arg_name.lstrip("*"): " ".join(p.description.split()) for p in parsed.params if p.description},
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsModel:
    """The arguments of a typed function.

    Attributes:
        schema: JSON Schema of the arguments object, Draft 2020-12.
        fills: Makes the value of a parameter that was left out, where the function's own default must not be used:
            mutable ones, which would be shared between calls, and pydantic's `Field(...)` in the default's place.
    """

    schema: dict[str, object]
    fills: Mapping[str, Callable[[], object]]
    _model: type[BaseModel]
    _names: Mapping[str, str]
    _tool: str

    def build(self, values: dict[str, typing.Any]) -> dict[str, typing.Any]:
        """Turn JSON values into what the annotations promise; parameters left out stay out.

        Raises:
            ToolArgumentsError: A value can't be built.
        """
        from pydantic import ValidationError

        try:
            built = self._model.model_validate(values)
        except ValidationError as exc:
            built = self._build_from_json(values, exc)
        except Exception as exc:
            # A validator of the tool's own types is foreign code.
            raise ToolArgumentsError(
                f"the arguments of tool {self._tool!r} can't be used: {type(exc).__name__}: {exc}"[:900],
                tool=self._tool,
                remedy="call it again with other arguments",
            ) from exc
        return {self._names[field]: getattr(built, field) for field in built.model_fields_set}

    def _build_from_json(self, values: dict[str, typing.Any], error: Exception) -> BaseModel:
        # A model that is strict takes a date from JSON text, though not from a Python str.
        from pydantic import ValidationError

        try:
            return self._model.model_validate_json(json.dumps(values))
        except (ValidationError, ValueError):
            from atlas_core.tools.violations import unbuildable

            raise unbuildable(self._tool, typing.cast("ValidationError", error)) from error


def model_arguments(signature: Signature, tool: str, texts: Mapping[str, str]) -> ArgumentsModel:
    """Build the schema and the builder of a function's arguments.

    Args:
        signature: The function's.
        tool: Its name as a tool.
        texts: Descriptions of parameters from the docstring; one in the annotation wins.
    Raises:
        ToolDefinitionError: No JSON value can be turned into what an annotation asks for.
    """
    fields = {f"p{i}": _Field.of(p, signature) for i, p in enumerate(signature.parameters)}
    try:
        model = _create(fields, signature.namespace)
        schema = model.model_json_schema(schema_generator=_generator())
    except Exception as exc:
        # pydantic runs the code of foreign types here; whatever it raises is about one of the annotations.
        raise _name_culprit(fields, signature, tool, exc) from exc
    return ArgumentsModel(
        schema=_finish(schema, fields, texts),
        fills={f.name: f.fill for f in fields.values() if f.fill is not None},
        _model=model,
        _names={key: field.name for key, field in fields.items()},
        _tool=tool,
    )


_GENERATORS = (abc.Iterator, abc.Generator, abc.AsyncIterator, abc.AsyncGenerator)


def returns_schema(signature: Signature) -> dict[str, object] | None:
    """Return the JSON Schema of a function's result, or None where its annotation has none.

    What a generator yields is collected, so its result is an array.
    """
    returns: typing.Any = signature.returns
    if returns is MISSING or returns is typing.Any:
        return None
    if typing.get_origin(returns) in _GENERATORS:
        returns = list[typing.get_args(returns)[0]]  # type: ignore[misc]  # known at run time only
    try:
        from pydantic import TypeAdapter

        adapter: TypeAdapter[object] = TypeAdapter(returns)
        schema = adapter.json_schema(mode="serialization", schema_generator=_generator())
    except Exception:  # noqa: BLE001  # the schema of a result is a courtesy; its type is foreign code
        return None
    _untitle(schema)
    return schema or None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One parameter as a pydantic field. Its name there is made up, since a model can't have a field `copy`."""

    name: str
    annotation: object
    required: bool
    default: object
    description: str | None
    fill: Callable[[], object] | None

    @classmethod
    def of(cls, parameter: Parameter, signature: Signature) -> _Field:
        from pydantic.fields import FieldInfo

        annotation, default, description = (
            parameter.annotation,
            parameter.default,
            _annotated_text(parameter.annotation),
        )
        fill: Callable[[], object] | None = None
        if isinstance(default, FieldInfo):
            info, default = default, MISSING
            description = info.description or description
            if info.metadata:
                annotation = typing.Annotated[(annotation, *info.metadata)]
            if not info.is_required():
                fill = functools.partial(info.get_default, call_default_factory=True)
                default = fill()
        elif _is_mutable(default):
            fill = _copier(default)
        if default is None:
            annotation = typing.Optional[annotation]  # noqa: UP045  # `|` fails on some special forms
        return cls(
            name=parameter.name,
            annotation=modern_typed_dicts(annotation, signature.namespace),
            required=default is MISSING,
            default=default,
            description=description,
            fill=fill,
        )

    @property
    def definition(self) -> tuple[typing.Any, typing.Any]:
        from pydantic import Field

        return self.annotation, Field(
            default=... if self.required else None, alias=self.name, validation_alias=self.name
        )


def _annotated_text(annotation: object) -> str | None:
    """Return the first plain text, or `Doc`, in `Annotated[...]`."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    for item in typing.get_args(annotation)[1:]:
        text = item if isinstance(item, str) else getattr(item, "documentation", None)
        if isinstance(text, str):
            return text
    return None


def _is_mutable(value: object) -> bool:
    import collections

    kinds = (list, dict, set, bytearray, collections.deque)
    return isinstance(value, kinds) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _copier(value: object) -> Callable[[], object] | None:
    import copy

    try:
        copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # what can't be copied is the function's own to share
        return None
    return functools.partial(copy.deepcopy, value)


def _create(fields: Mapping[str, _Field], namespace: Mapping[str, object]) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    definitions: dict[str, typing.Any] = {key: field.definition for key, field in fields.items()}
    config = ConfigDict(extra="forbid", protected_namespaces=())
    model: type[BaseModel] = create_model("Arguments", __config__=config, **definitions)
    model.model_rebuild(_types_namespace=dict(namespace) or None)
    return model


def _name_culprit(
    fields: Mapping[str, _Field], signature: Signature, tool: str, error: Exception
) -> ToolDefinitionError:
    what = f"tool {tool!r} has parameters of types"
    for field in fields.values():
        try:
            _create({"p0": field}, signature.namespace).model_json_schema()
        except Exception as exc:  # noqa: BLE001  # as above
            what, error = f"parameter {field.name!r} of tool {tool!r} has the type {_type_name(field.annotation)}", exc
            break
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ToolDefinitionError(
        f"{what}, which no JSON value describes: {reason}",
        tool=tool,
        owner=signature.place,
        remedy="use JSON types, enums, dataclasses, TypedDicts or pydantic models",
    )


def _type_name(annotation: object) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _finish(schema: dict[str, typing.Any], fields: Mapping[str, _Field], texts: Mapping[str, str]) -> dict[str, object]:
    """Take pydantic's schema of the made-up model and put the function's own facts into it."""
    _untitle(schema)
    properties = schema.get("properties", {})
    for field in fields.values():
        entry = properties[field.name]
        entry.pop("default", None)
        text = field.description or texts.get(field.name)
        if text and "description" not in entry:
            entry["description"] = text
        if not field.required and (default := _json_default(field.default)) is not MISSING:
            entry["default"] = default
    out: dict[str, object] = {"type": "object", "properties": properties}
    if required := [f.name for f in fields.values() if f.required]:
        out["required"] = required
    out["additionalProperties"] = False
    if "$defs" in schema:
        out["$defs"] = schema["$defs"]
    return out


def _json_default(value: object) -> object:
    """Return a default as a JSON value, or `MISSING` if it has no such form."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        plain = to_jsonable_python(value, inf_nan_mode="constants")
        return json.loads(json.dumps(plain, allow_nan=False))
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return MISSING


def _untitle(schema: object) -> None:
    """Remove the titles that pydantic derives from names; they repeat what the key says."""
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("title"), str):
        del schema["title"]
    for key, value in schema.items():
        if key in ("properties", "$defs", "patternProperties", "dependentSchemas"):
            for inner in value.values():
                _untitle(inner)
        elif key not in ("default", "const", "enum", "examples"):
            for inner in value if isinstance(value, list) else (value,):
                _untitle(inner)


@functools.cache
def _generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """pydantic's generator without its warnings: a default that has no JSON form is left out on purpose."""

        def emit_warning(self, kind: typing.Any, detail: str) -> None:
            """Say nothing."""

    return Generator


def modern_typed_dicts(annotation: typing.Any, namespace: Mapping[str, object]) -> typing.Any:
    """Replace each `typing.TypedDict` by its like from typing_extensions: pydantic demands it before Python 3.12."""
    if sys.version_info >= (3, 12):  # pragma: no cover  # depends on the Python that runs the tests
        return annotation
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _modern_typed_dict(annotation, namespace)
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if not arguments or origin is typing.Literal:
        return annotation
    replaced = tuple(modern_typed_dicts(a, namespace) for a in arguments)
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return annotation
    if origin in (typing.Union, types.UnionType):
        return typing.Union[replaced]  # noqa: UP007  # the members are known at run time only
    if origin is typing.Annotated:
        return typing.Annotated[replaced]
    return annotation.copy_with(replaced) if hasattr(annotation, "copy_with") else origin[replaced]


def _modern_typed_dict(old: typing.Any, namespace: Mapping[str, object]) -> typing.Any:
    import typing_extensions

    hints = typing.get_type_hints(old, localns=dict(namespace) or None, include_extras=True)
    fields = {}
    for key, hint in hints.items():
        kind = typing.get_origin(hint)
        if kind in (typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]  # noqa: PLW2901  # the same hint, unwrapped
        else:
            # Under postponed annotations these keys know of `total` alone; the marks are in the hints.
            kind = typing.Required if key in old.__required_keys__ else typing.NotRequired
        fields[key] = kind[modern_typed_dicts(hint, namespace)]
    new = typing_extensions.TypedDict(old.__name__, fields)  # type: ignore[misc]  # made at run time
    new.__module__, new.__doc__ = old.__module__, old.__doc__
    return new
