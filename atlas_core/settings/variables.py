"""Variables named `ATLAS_` and a path: `ATLAS_AI__AGENTS__DEFAULT_PROFILE`."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from atlas_core.errors import SettingsError
from atlas_core.names import same_name
from atlas_core.settings.frozen import freeze
from atlas_core.settings.layers import BUILT_IN, ROOT, Setting
from atlas_core.settings.models import AgentProfileSettings, ExecutorChoice
from atlas_core.settings.shapes import FREE, Shape, key_for, parse_text
from atlas_core.settings.suggestions import nearest_variable
from atlas_core.settings.toml_lines import dotted

__all__ = ["PREFIX", "RESERVED", "Assignment", "Variable", "read_variables", "resolve"]

PREFIX = "ATLAS_"
"""What the names of all variables begin with, in capitals."""
RESERVED = frozenset({"ENV", "IGNORE"})
"""Names after the prefix that are no settings: the environment, and other programs' variables to leave alone."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that sets a value.

    Attributes:
        name: Its full name.
        parts: Its path, as spelled.
        text: Its value.
    """

    name: str
    parts: tuple[str, ...]
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a variable sets.

    Attributes:
        path: The path, as the settings spell it.
        table: The value within its tables, ready to be laid over the rest.
    """

    path: tuple[str, ...]
    table: Mapping[str, Any] = field(repr=False)


def read_variables(environ: Mapping[str, str]) -> list[Variable]:
    """Return the variables that are meant for Atlas, outer tables first, then by name.

    Raises:
        SettingsError: A part of a name is empty.
    """
    patterns = [p.strip().upper().removeprefix(PREFIX) for p in environ.get(f"{PREFIX}IGNORE", "").split(",")]
    found = []
    for name in sorted(environ):
        rest = name.removeprefix(PREFIX)
        if rest in {name, ""} or rest.upper() in RESERVED:
            continue
        if any(fnmatch.fnmatchcase(rest.upper(), pattern) for pattern in patterns):
            continue
        parts = tuple(rest.split("__"))
        if not all(parts):
            raise _error(Variable(name, parts, ""), "has an empty part", remedy="put '__' between two keys only")
        found.append(Variable(name, parts, environ[name]))
    return sorted(found, key=lambda variable: (len(variable.parts), variable.name))


def resolve(variable: Variable, tree: Mapping[str, Any], variables: Sequence[Variable]) -> Assignment:
    """Find which key a variable means, in any case and with `-` as `_`, and read its value as that key's kind.

    Args:
        variable: The variable.
        tree: The settings below it.
        variables: All variables; together they may make a new entry that one alone may not.

    Raises:
        SettingsError: No such key exists, or two do; or a table's text is no valid TOML.
    """
    shape: Shape = ROOT
    node: Any = tree
    path: tuple[str, ...] = ()
    filled: dict[tuple[str, ...], object] = {}
    for n in range(len(variable.parts)):
        if not _holds_keys(shape):
            raise _unknown(variable, tree, n - 1, f"{dotted(path)} is no table")
        if shape.model is ExecutorChoice and not isinstance(node, Mapping):
            # `executor = "process"` becomes a table that has this name.
            filled[*path, "name"] = node or _default_executor()
            node = {"name": filled[*path, "name"]}
        if isinstance(node, Setting) and node.text is not None:
            # A shorter variable's text, which this one shows to be a table.
            node = filled[path] = _with_origin(_value(variable, path, {}, FREE, text=node.text), node.origin)
        table = node if isinstance(node, Mapping) else {}
        key = _known_key(variable, n, table, shape) or _new_key(variable, n, tree, (table, shape), variables)
        path, node, shape = (*path, key), table.get(key), shape.child(key)
    return Assignment(path, _nested({**filled, path: _value(variable, path, node, shape)}))


def _holds_keys(shape: Shape) -> bool:
    return shape == FREE or shape.model is not None or shape.item is not None


def _default_executor() -> Setting:
    return Setting(AgentProfileSettings.model_fields["executor"].default.name, BUILT_IN)


def _known_key(variable: Variable, n: int, table: Mapping[str, Any], shape: Shape) -> str | None:
    matches = key_for(variable.parts[n], [*shape.known_keys(), *table])
    if len(matches) > 1:
        meant = ", ".join(map(repr, matches))
        raise _error(variable, f"may mean any of {meant}", remedy="spell it exactly, or keep one of these keys")
    return matches[0] if matches else None


def _new_key(
    variable: Variable,
    n: int,
    tree: Mapping[str, Any],
    here: tuple[Mapping[str, Any], Shape],
    variables: Sequence[Variable],
) -> str:
    key = variable.parts[n].lower()
    table, shape = here
    if shape.model is not None and not shape.open:
        raise _unknown(variable, tree, n, f"there is no key {key!r}")
    if not _may_be_new(variable, n, shape, variables):
        known = [same_name(name) for name in table]
        is_close = bool(difflib.get_close_matches(same_name(key), known, n=1))
        remedy = "" if is_close else _new_entry(variable, n, shape.child(""))
        raise _unknown(variable, tree, n, f"there is no {key!r}", remedy=remedy)
    return key


def _may_be_new(variable: Variable, n: int, shape: Shape, variables: Sequence[Variable]) -> bool:
    """Tell whether variables may make an entry: by its whole table, or by all keys that it must have."""
    entry = shape.child("")
    if shape.item is None or entry.model is None or n == len(variable.parts) - 1:
        return True
    required = {name for name, info in entry.model.model_fields.items() if info.is_required()}
    start = [same_name(part) for part in variable.parts[: n + 1]]
    given = {
        same_name(other.parts[n + 1])
        for other in variables
        if len(other.parts) == n + 2 and [same_name(part) for part in other.parts[: n + 1]] == start
    }
    return bool(required) and required <= given


def _value(variable: Variable, path: tuple[str, ...], node: object, shape: Shape, *, text: str | None = None) -> object:
    text = variable.text if text is None else text
    try:
        if shape == FREE and isinstance(node, Mapping):
            shape = Shape(item=Any)
        value = parse_text(text, shape)
    except ValueError as exc:
        raise _error(variable, f"can't be read: {exc}", key=dotted(path)) from exc
    if isinstance(value, Mapping):
        return value
    return Setting(
        freeze(value),
        f"variable {variable.name}",
        text=text if shape == FREE else None,
    )


def _with_origin(value: object, origin: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_origin(item, origin) for key, item in value.items()}
    return Setting(freeze(value), origin)


def _nested(assigned: Mapping[tuple[str, ...], object]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for path, value in assigned.items():
        inner = table
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return table


def _error(variable: Variable, problem: str, *, key: str | None = None, remedy: str | None = None) -> SettingsError:
    # The problem names the variable already, so the text need not say "set in".
    error = SettingsError(f"variable {variable.name!r} {problem}", key=key, remedy=remedy)
    error.source = f"variable {variable.name}"
    return error


def _unknown(variable: Variable, tree: Mapping[str, Any], n: int, why: str, *, remedy: str = "") -> SettingsError:
    close = None if remedy else nearest_variable(variable.parts, ROOT, tree)
    hint = f"did you mean {PREFIX}{close}?" if close else f"settings begin with {PREFIX}AI__ or {PREFIX}PLUGINS__"
    return _error(
        variable,
        f"names no setting: {why}",
        remedy=remedy or f"{hint} (another program's variable is left alone if {PREFIX}IGNORE lists it)",
    )


def _new_entry(variable: Variable, n: int, entry: Shape) -> str:
    """Return how variables make an entry of a table with free names."""
    name = PREFIX + "__".join(variable.parts[: n + 1])
    required = [key for key, info in entry.model.model_fields.items() if info.is_required()] if entry.model else []
    if required:
        return f"a new entry needs {' and '.join(f'{name}__{key.upper()}' for key in required)} too"
    return f"a new entry is one table, {name}={{...}}"
