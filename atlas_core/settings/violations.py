"""What pydantic found wrong, in words that name key, value, place, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretBytes, SecretStr

from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean
from atlas_core.settings.layers import BUILT_IN
from atlas_core.settings.secrets import MASK, shown
from atlas_core.settings.shapes import Shape, flatten
from atlas_core.settings.toml_lines import dotted

if TYPE_CHECKING:
    from pydantic import ValidationError

    from atlas_core.settings.toml_lines import KeyPath

__all__ = ["Violation", "join_errors", "raise_all", "violations"]

_KINDS = {
    "bool": "true or false",
    "bytes": "a text",
    "date": "a date",
    "datetime": "a date and time",
    "dict": "a table",
    "float": "a number",
    "frozen_set": "a list",
    "int": "a whole number",
    "list": "a list",
    "mapping": "a table",
    "model": "a table",
    "model_attributes": "a table",
    "path": "a path",
    "set": "a list",
    "string": "a text",
    "time": "a time",
    "tuple": "a list",
    "url": "a URL",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    Attributes:
        problem: What, with the value in `repr` unless it looks like a secret.
        path: The key.
        remedy: What to do, or None.
        place: Where to look for the origin: the key, or, of a missing one, the table around it.
    """

    problem: str
    path: KeyPath
    remedy: str | None = None
    place: KeyPath | None = None


def violations(error: ValidationError, data: Mapping[str, Any], shape: Shape, prefix: KeyPath = ()) -> list[Violation]:
    """Translate pydantic's findings, one for each key.

    Args:
        error: What pydantic raised.
        data: What was validated.
        shape: What it was validated by.
        prefix: The path of `data` itself.
    """
    found: dict[KeyPath, list[Mapping[str, Any]]] = {}
    for item in error.errors(include_url=False):
        found.setdefault(_real_path(item["loc"], data, missing=item["type"] == "missing"), []).append(item)
    return [v for path, items in found.items() for v in _translate(items, path, data, shape, prefix)]


def _real_path(loc: KeyPath, data: object, *, missing: bool) -> KeyPath:
    """Cut from pydantic's location what is no key, such as the member of a union that was tried."""
    path: KeyPath = ()
    for part in loc:
        inside = isinstance(data, Mapping) and part in data
        inside = inside or (isinstance(data, list | tuple) and isinstance(part, int) and part < len(data))
        if not inside:
            return (*path, part) if missing and part == loc[-1] else path
        path = (*path, part)
        data = data[part]  # type: ignore[index]  # `inside` says so
    return path


def _translate(
    items: list[Mapping[str, Any]], path: KeyPath, data: Mapping[str, Any], shape: Shape, prefix: KeyPath
) -> list[Violation]:
    first, full = items[0], (*prefix, *path)
    parent = shape
    for part in path[:-1]:
        parent = parent.child(part)
    name = str(path[-1]) if path else dotted(prefix)
    if first["type"] == "literal_secret":
        return [_literal_secret((*full, *inner)) for inner in first["ctx"]["paths"]]
    if first["type"] == "extra_forbidden":
        return [Violation(f"unknown key {name!r}", full, did_you_mean(name, parent.known_keys(), many="known keys"))]
    if first["type"] == "missing":
        return [Violation(f"{name!r} is missing", full, f"set {dotted(full)}", place=full[:-1])]
    if first["type"] in {"value_error", "assertion_error"}:
        reason = str(first["msg"]).partition(", ")[2] or str(first["msg"])
        return [Violation(f"{_place(name, path)} is wrong: {reason}", full)]
    value = _at(data, path)
    expected = " or ".join(dict.fromkeys(_expected(item) for item in items))
    here = shape if not path else parent.child(path[-1])
    said = MASK if _is_secret_field(here) else _said(value, _last_key(full))
    return [Violation(f"{_place(name, path)} is {said}, expected {expected}", full, _remedy(items, value, said))]


def _literal_secret(path: KeyPath) -> Violation:
    name = str(path[-1])
    remedy = (
        "put it into an environment variable and name that variable through api_key_env, or through the key that "
        "the provider offers for it"
    )
    return Violation(f"{name!r} holds a secret in plain text", path, remedy)


def _place(name: str, path: KeyPath) -> str:
    return f"item {path[-1]} of {_last_key(path[:-1])}" if path and isinstance(path[-1], int) else name


def _last_key(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _said(value: object, key: str) -> str:
    return "a table" if isinstance(value, Mapping) else shown(value, key)


def _is_secret_field(shape: Shape) -> bool:
    members = flatten(shape.annotation)
    return any(isinstance(m, type) and issubclass(m, SecretStr | SecretBytes) for m in members)


def _expected(item: Mapping[str, Any]) -> str:
    kind, context = str(item["type"]), item.get("ctx", {})
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{words} {context[bound]:g}"
    if kind in {"literal_error", "enum"}:
        return str(context["expected"])
    if kind == "finite_number":
        return "a finite number"
    if kind == "string_too_short" and context["min_length"] == 1:
        return "a text that is not empty"
    stem = kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float")
    stem = stem.removesuffix("_from_datetime_inexact").removesuffix("_from_datetime")
    return _KINDS.get(stem) or str(item["msg"]).removeprefix("Input should be ").removeprefix("a valid ")


def _remedy(items: list[Mapping[str, Any]], value: object, said: str) -> str | None:
    kinds = {item["type"] for item in items}
    if isinstance(value, bool):
        return None
    if "string_type" in kinds and isinstance(value, int | float):
        return "write it in quotes" if MASK in said else f'write it in quotes: "{value}"'
    if isinstance(value, str) and kinds & {"int_type", "float_type", "bool_type"}:
        return "write it without quotes" if _is_bare(value) else None
    return None


def _is_bare(text: str) -> bool:
    return text in {"true", "false"} or text.replace(".", "", 1).lstrip("+-").isdigit()


def raise_all(found: Sequence[Violation], origin: Callable[[KeyPath], str], *, owner: str | None = None) -> None:
    """Raise one error that tells all violations, or return if there are none.

    Raises:
        SettingsError: There is a violation; `key` and `source` are those of the first.
    """
    errors = [
        SettingsError(
            v.problem,
            key=dotted(v.path),
            source=_source(origin(v.path if v.place is None else v.place)),
            owner=owner,
            remedy=v.remedy,
        )
        for v in found
    ]
    join_errors(errors)


def _source(origin: str) -> str | None:
    return None if origin == BUILT_IN else origin


def join_errors(errors: Sequence[SettingsError]) -> None:
    """Raise the error, or one that tells them all, or none.

    Raises:
        SettingsError: There is at least one; `key` and `source` are those of the first.
    """
    if not errors:
        return
    if len(errors) == 1:
        raise errors[0]
    lines = "\n".join(f"  - {error}" for error in errors)
    joined = SettingsError(f"{len(errors)} settings are wrong:\n{lines}")
    joined.key, joined.source = errors[0].key, errors[0].source
    raise joined
