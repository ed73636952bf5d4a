"""Settings as loaded: the values, and where each came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean, find_name
from atlas_core.settings.frozen import FrozenDict
from atlas_core.settings.layers import BUILT_IN, ROOT, Setting, node_at
from atlas_core.settings.models import AgentProfileSettings, AtlasSettings, ConnectionSettings, ExecutorChoice
from atlas_core.settings.prompts import read_system_prompt
from atlas_core.settings.secrets import masked_leaf
from atlas_core.settings.shapes import key_for
from atlas_core.settings.toml_lines import KeyPath, dotted, split_key

__all__ = ["LoadedSettings"]

_T = TypeVar("_T")
_PROFILES = ("ai", "agents", "profiles", "connections")
_CONNECTIONS = ("ai", "connections")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings of one environment, unchangeable.

    Attributes:
        settings: The values.
        environment: The chosen environment's name, `default` if none was chosen.
        environments: All environments that the files define, in the order of their names.
        files: The files that were read, in the order of reading.
        base_dir: The folder that paths in the settings are relative to.
        warnings: What a person should know, a sentence each.
        tree: The values as layered, each a `Setting` with its origin.
        tables: Where each table was last written, by path.
    """

    settings: AtlasSettings
    environment: str = "default"
    environments: tuple[str, ...] = ("default",)
    files: tuple[Path, ...] = ()
    base_dir: Path = field(default_factory=Path)
    warnings: tuple[str, ...] = ()
    tree: Mapping[str, Any] = field(default_factory=FrozenDict, repr=False, compare=False)
    tables: Mapping[KeyPath, str] = field(default_factory=FrozenDict, repr=False, compare=False)

    def profile(self, name: str | None = None) -> tuple[str, AgentProfileSettings]:
        """Return a profile and its name as the settings spell it; without a name, the default one.

        Raises:
            SettingsError: There is no such profile, or no name is given and there is no default.
        """
        profiles = self.settings.ai.agents.profiles.connections
        key = None
        if name is None:
            name, key = self.settings.ai.agents.default_profile, ("ai", "agents", "default_profile")
        if not name:
            raise SettingsError(
                "no profile is named, and the settings have no default",
                key="ai.agents.default_profile",
                remedy=f"name one; {did_you_mean('', profiles, many='profiles')}",
            )
        found, profile = self._named("profile", name, profiles, key)
        return found, profile if profile.name else profile.model_copy(update={"name": found})

    def connection(self, name: str, *, key: str | None = None) -> tuple[str, ConnectionSettings]:
        """Return a connection and its name as the settings spell it.

        Args:
            name: The name.
            key: The dotted key that holds the name, for the error's text.

        Raises:
            SettingsError: There is no such connection.
        """
        return self._named("connection", name, self.settings.ai.connections, self.path_of(key) if key else None)

    def system_prompt(self, profile_name: str) -> str | None:
        """Return the text of a profile's system prompt, or None if it has none.

        Raises:
            SettingsError: There is no such profile, it sets both kinds of prompt, or the file can't be read.
        """
        name, profile = self.profile(profile_name)
        path = (*_PROFILES, name)
        source = self._known_source((*path, "system_prompt_file"))
        return read_system_prompt(profile, self.base_dir, key=dotted(path), source=source)

    def problems(self) -> tuple[SettingsError, ...]:
        """Return what is wrong with names and files that the settings point to, without raising; for checks.

        Whether plugins, providers, executors, agent types and tools exist is for the kernel to tell.
        """
        return tuple(self._problems())

    def origin(self, key: str) -> str:
        """Tell where a value was set: `settings.toml:12`, `variable ATLAS_...` or `built-in default`.

        Args:
            key: A dotted key, in any case, with parts in quotes where TOML needs them.

        Raises:
            SettingsError: There is no such key.
        """
        return self.origin_of(self.path_of(key))

    def origin_of(self, path: KeyPath) -> str:
        """Tell where the value at a path was set, or the value around it (a list, for an item of it); see `origin`."""
        for n in range(len(path)):
            node = node_at(self.tree, path[:n])
            if isinstance(node, Setting):
                return node.items.get(path[n:], node.origin)
        node = node_at(self.tree, path)
        return node.origin if isinstance(node, Setting) else self.tables.get(path, BUILT_IN)

    def setting_at(self, path: KeyPath) -> Setting | None:
        """Return the value that a file or variable sets at a path, with its origin; None for a table or nothing."""
        node = node_at(self.tree, path)
        return node if isinstance(node, Setting) else None

    def effective(self) -> list[tuple[str, object, str]]:
        """Return key, value and origin of everything that is in force, in the order of the keys, secrets masked."""
        rows = dict(_flat(self.settings, ()))
        return [(dotted(path), masked_leaf(rows[path], path), self.origin_of(path)) for path in sorted(rows)]

    def _problems(self) -> Iterator[SettingsError]:
        agents = self.settings.ai.agents
        if agents.default_profile:
            yield from _raised(self.profile)
        for name in agents.profiles.connections:
            profile = agents.profiles.connections[name]
            key = dotted((*_PROFILES, name, "connection_name"))
            if profile.connection_name:
                yield from _raised(partial(self.connection, profile.connection_name, key=key))
            yield from _raised(partial(self.system_prompt, name))

    def _named(self, what: str, name: str, table: Mapping[str, _T], path: KeyPath | None) -> tuple[str, _T]:
        found = find_name(name, table)
        if found is not None:
            return found, table[found]
        raise SettingsError(
            f"there is no {what} {name!r}",
            key=dotted(path) if path else None,
            source=self._known_source(path) if path else None,
            remedy=did_you_mean(name, table, many=f"{what}s"),
        )

    def _known_source(self, path: KeyPath) -> str | None:
        origin = self.origin_of(path)
        return None if origin == BUILT_IN else origin

    def path_of(self, key: str) -> KeyPath:
        """Return the path of a dotted key, each part as the settings spell it; see `origin`."""
        try:
            parts = split_key(key)
        except ValueError as exc:
            raise SettingsError(f"{key!r} is no dotted key", remedy="write it like ai.agents.default_profile") from exc
        path: KeyPath = ()
        shape, node = ROOT, self.tree  # type: Any, Any
        for part in parts:
            table = node if isinstance(node, Mapping) else {}
            matches = key_for(part, [*shape.known_keys(), *table])
            if not matches:
                known = {*shape.known_keys(), *table}
                raise SettingsError(
                    f"there is no key {key!r}: unknown {part!r}",
                    remedy=did_you_mean(part, known, many=f"keys of {dotted(path)}" if path else "keys at the top"),
                )
            path, node, shape = (*path, matches[0]), table.get(matches[0]), shape.child(matches[0])
        return path


def _raised(call: Callable[[], object]) -> Iterator[SettingsError]:
    try:
        call()
    except SettingsError as exc:
        yield exc


def _flat(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield path and value of every leaf of a model; what is None or an empty table is left out."""
    if isinstance(value, ExecutorChoice):
        if not value.options:
            yield path, value.name
            return
        value = {"name": value.name, **value.options}
    if isinstance(value, BaseModel):
        value = {**{name: getattr(value, name) for name in type(value).model_fields}, **(value.model_extra or {})}
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, (*path, str(key)))
    elif value is not None:
        yield path, list(value) if isinstance(value, tuple) else value
