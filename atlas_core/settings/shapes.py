"""What a model expects under a path of keys, and how the text of a variable becomes a value of that kind.

A variable's value is text; which kind of value it stands for is told by the model of the key, never by how the text
looks, so that a text field set to `1e5` or `true` keeps that text.
"""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel

from atlas_core.names import same_name
from atlas_core.settings.models import ExecutorChoice

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["FREE", "Shape", "flatten", "key_for", "model_keys", "parse_text", "shape_of", "split_merge"]

_WHOLE = re.compile(r"[+-]?\d+(?:_\d+)*")
_YES = frozenset({"true", "1", "yes", "on"})
_NO = frozenset({"false", "0", "no", "off"})
_MERGE = "@merge"


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands under a path.

    Attributes:
        annotation: The type, or Any where the kernel doesn't know it.
        model: The pydantic model of a table with known keys, or None.
        item: The type of each value in a table with free names, or None.
        open: Whether a table with known keys may hold others too.
    """

    annotation: object = Any
    model: type[BaseModel] | None = None
    item: object = None
    open: bool = False

    @property
    def is_table(self) -> bool:
        """Whether a table stands here, and nothing else can."""
        return (self.model is not None and self.model is not ExecutorChoice) or self.item is not None

    def known_keys(self) -> list[str]:
        """The known keys of a table, as settings spell them."""
        return list(model_keys(self.model)) if self.model is not None else []

    def child(self, key: str | int) -> Shape:
        """Return what stands under a key of this table, or at a place in this list; `FREE` if that is unknown."""
        if isinstance(key, int):
            members = [m for m in flatten(self.annotation) if get_origin(m) in {list, tuple, set, frozenset}]
            arguments = [a for m in members for a in get_args(m) if a is not Ellipsis]
            return shape_of(arguments[0]) if len(arguments) == 1 else FREE
        if self.model is not None:
            known = model_keys(self.model)
            return shape_of(known[key]) if key in known else FREE
        return shape_of(self.item) if self.item is not None else FREE


FREE = Shape()
"""Where the kernel does not know what is expected."""


def flatten(annotation: object) -> list[object]:
    """Return the members of a union without None and without `Annotated`, nested ones included."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if hasattr(annotation, "__value__"):  # a `type X = ...` statement of Python 3.12
        return flatten(annotation.__value__)
    if get_origin(annotation) in {Union, types.UnionType}:
        return [member for part in get_args(annotation) for member in flatten(part)]
    return [] if annotation is type(None) else [annotation]


def shape_of(annotation: object) -> Shape:
    """Return what an annotation expects."""
    members = flatten(annotation)
    models = [m for m in members if isinstance(m, type) and issubclass(m, BaseModel)]
    if len(models) == 1:
        model = models[0]
        is_open = model is ExecutorChoice or model.model_config.get("extra") == "allow"
        return Shape(annotation=annotation, model=model, open=is_open)
    origin = get_origin(members[0]) or members[0] if len(members) == 1 else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        arguments = get_args(members[0])
        return Shape(annotation=annotation, item=arguments[1] if len(arguments) == 2 else Any)
    return Shape(annotation=annotation)


def model_keys(model: type[BaseModel]) -> dict[str, object]:
    """Return the keys that a model takes, as settings spell them, each with its type."""
    if model is ExecutorChoice:
        return {"name": str}
    keys: dict[str, object] = {}
    for name, info in model.model_fields.items():
        for spelling in _spellings(name, info, by_name=bool(model.model_config.get("populate_by_name"))):
            keys.setdefault(spelling, info.annotation)
    return keys


def _spellings(name: str, info: FieldInfo, *, by_name: bool) -> list[str]:
    alias = info.validation_alias or info.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    found = [str(c.path[0]) if isinstance(c, AliasPath) else c for c in choices if c]
    return [*found, name] if by_name or not found else found


def key_for(part: str, known: Iterable[str]) -> list[str]:
    """Return which of the known keys a part of a variable's name can mean; an exact one alone, if there is one."""
    known = list(known)
    if part in known:
        return [part]
    wanted = same_name(part)
    return sorted({key for key in known if same_name(key) == wanted})


def split_merge(value: object) -> tuple[object, bool]:
    """Return a list without its `@merge` mark, and whether it had one."""
    if isinstance(value, list | tuple) and value and value[0] == _MERGE:
        return list(value[1:]), True
    return value, False


def parse_text(text: str, shape: Shape) -> object:
    """Turn a variable's text into a value of the kind that is expected.

    Text fields take it as it stands; numbers, true and false, lists (`a,b`, or a TOML array) and tables (an inline
    TOML table) are read. What can't be read, or where no kind is known, stays text, for the model to judge.

    Raises:
        ValueError: A table or an array is expected, and the text begins one that is no valid TOML.
    """
    members = flatten(shape.annotation)
    if shape.is_table or (text.lstrip().startswith("{") and shape.model is not None):
        return _parse_toml(text, "an inline table: {key = value}")
    if not members or Any in members or object in members or str in members or _takes_literal(text, members):
        return text
    if any(_is_list(member) for member in members):
        return _parse_list(text)
    return _parse_scalar(text.strip(), members)


def _takes_literal(text: str, members: Sequence[object]) -> bool:
    return any(get_origin(member) is Literal and text in get_args(member) for member in members)


def _is_list(member: object) -> bool:
    origin = get_origin(member) or member
    return (
        isinstance(origin, type) and issubclass(origin, Sequence | AbstractSet) and not issubclass(origin, str | bytes)
    )


def _parse_scalar(text: str, members: Sequence[object]) -> object:
    if int in members and _WHOLE.fullmatch(text):
        return int(text)
    if bool in members and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if float in members:
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _parse_list(text: str) -> object:
    body = text.strip()
    merge = body.startswith(_MERGE)
    body = body.removeprefix(_MERGE).strip()
    if body.startswith("["):
        items = _parse_toml(body, 'a list: ["a", "b"]')
    else:
        items = [item.strip() for item in body.split(",") if item.strip()]
    return [_MERGE, *items] if merge else items


def _parse_toml(text: str, expected: str) -> Any:
    opening = expected[expected.index(":") + 2]
    if not text.lstrip().startswith(opening):
        raise ValueError(f"expected {expected}")
    try:
        table = tomllib.loads(f"value = {text.strip()}")
    except tomllib.TOMLDecodeError:
        # Its text speaks of line and column of something the user never wrote.
        raise ValueError(f"expected {expected}, and it is no valid TOML") from None
    if set(table) != {"value"}:
        raise ValueError(f"expected {expected}, and nothing after it")
    return table["value"]
