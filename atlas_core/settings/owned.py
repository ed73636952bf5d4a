"""Validating a table that belongs to a plugin, a provider, an executor or an agent type, by its owner's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean
from atlas_core.settings.frozen import thaw
from atlas_core.settings.layers import BUILT_IN
from atlas_core.settings.shapes import Shape, flatten, key_for, parse_text, shape_of
from atlas_core.settings.toml_lines import split_key
from atlas_core.settings.violations import Violation, raise_all, violations

if TYPE_CHECKING:
    from atlas_core.owner import Owner
    from atlas_core.settings.loaded import LoadedSettings
    from atlas_core.settings.toml_lines import KeyPath

__all__ = ["NoOptions", "validate_owned"]

_M = TypeVar("_M", bound=BaseModel)


class NoOptions(BaseModel):
    """The table of an owner that takes no options: any key in it is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def validate_owned(
    model: type[_M], table: Mapping[str, Any], *, key: str, loaded: LoadedSettings | None, owner: Owner | str
) -> _M:
    """Validate a table by its owner's model, with the error texts that the kernel's own settings have.

    An unknown key is an error even if the model would ignore it; only a model that says `extra="allow"` takes any.
    Text that came from a variable is read as the kind its field is. True and false are no numbers.

    Args:
        model: The owner's pydantic model.
        table: The table; it is not changed.
        key: The table's dotted key, such as `plugins.options.acme`.
        loaded: The settings that the table came from, which know the origins; None for a table of a program's own.
        owner: Whom errors name.

    Raises:
        SettingsError: A value does not fit, a key is unknown or missing, or the model's own code failed.
    """
    prefix = _path(key, loaded)
    origin = loaded.origin_of if loaded is not None else _no_origin
    shape = shape_of(model)
    try:
        data = _from_variables(thaw(table), shape, prefix, loaded)
    except ValueError as exc:
        raise SettingsError(str(exc), key=key, owner=str(owner), remedy="correct the variable") from None
    found = [*_unknown_keys(data, shape, prefix), *_bools(data, shape, prefix)]
    checked = {v.path for v in found}
    try:
        result = model.model_validate(data)
    except ValidationError as exc:
        found += [v for v in violations(exc, data, shape, prefix) if v.path not in checked]
    except Exception as exc:
        # The validators are foreign code.
        raise SettingsError(
            f"the model {model.__qualname__!r} failed with {type(exc).__name__}",
            key=key,
            owner=str(owner),
            remedy="report it to the owner",
        ) from exc
    # Not chained: pydantic's error holds the values themselves.
    raise_all(found, origin, owner=str(owner))
    return result


def _path(key: str, loaded: LoadedSettings | None) -> KeyPath:
    if loaded is None:
        return (key,)
    try:
        return loaded.path_of(key)
    except SettingsError:  # nobody wrote that table, so that the owner's defaults hold
        return split_key(key)


def _no_origin(_path: KeyPath) -> str:
    return BUILT_IN


def _from_variables(data: dict[str, Any], shape: Shape, path: KeyPath, loaded: LoadedSettings | None) -> dict[str, Any]:
    """Read texts of variables as the kinds the model asks for, under the names it knows."""
    if loaded is None:
        return data
    result: dict[str, Any] = {}
    for key, value in data.items():
        setting = loaded.setting_at((*path, key))
        from_variable = loaded.origin_of((*path, key)).startswith("variable ")
        matches = key_for(key, shape.known_keys()) if from_variable else [key]
        name = matches[0] if len(matches) == 1 and matches[0] not in data else key
        child = shape.child(name)
        if isinstance(value, dict):
            result[name] = _from_variables(value, child, (*path, key), loaded)
        elif setting is not None and setting.text is not None and setting.text == value:
            result[name] = _read(value, child, setting.origin)
        else:
            result[name] = value
    return result


def _read(text: str, shape: Shape, origin: str) -> object:
    try:
        return parse_text(text, shape)
    except ValueError as exc:
        raise ValueError(f"{origin} can't be read: {exc}") from None


def _unknown_keys(data: object, shape: Shape, path: KeyPath) -> Iterator[Violation]:
    for key, value, child in _children(data, shape):
        if isinstance(key, str) and shape.model is not None and not shape.open and key not in shape.known_keys():
            known = shape.known_keys()
            remedy = (
                did_you_mean(key, known, many="known keys") if known else "remove it, for its owner takes no options"
            )
            yield Violation(f"unknown key {key!r}", (*path, key), remedy)
        else:
            yield from _unknown_keys(value, child, (*path, key))


def _bools(data: object, shape: Shape, path: KeyPath) -> Iterator[Violation]:
    for key, value, child in _children(data, shape):
        members = flatten(child.annotation)
        if isinstance(value, bool) and members and all(member in {int, float} for member in members):
            kind = "a number" if float in members else "a whole number"
            yield Violation(f"{key} is {value!r}, expected {kind}", (*path, key))
        else:
            yield from _bools(value, child, (*path, key))


def _children(data: object, shape: Shape) -> Iterator[tuple[str | int, object, Shape]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield key, value, shape.child(key)
    elif isinstance(data, list):
        for n, value in enumerate(data):
            yield n, value, shape.child(n)
