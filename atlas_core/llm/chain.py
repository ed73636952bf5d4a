"""A connection and those that it may fall back on, as the settings tell; nothing is loaded or asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from atlas_core.errors import SettingsError
from atlas_core.settings.secrets import MASK

if TYPE_CHECKING:
    from atlas_core.settings.loaded import LoadedSettings
    from atlas_core.settings.models import AgentProfileSettings, ConnectionSettings

__all__ = ["ConnectionChain", "variables_of"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables_of(options: Mapping[str, object]) -> dict[str, bool]:
    """Tell which environment variables a connection's own keys name, and whether each is set.

    Their values are nobody's business. A text under `..._env` that can't be a variable's name may be a key that
    someone wrote there by mistake, and is masked.
    """
    found: dict[str, bool] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            found.update(variables_of(value))
        elif key.lower().endswith(("_env", "-env")) and isinstance(value, str) and value:
            found[value if _VARIABLE.fullmatch(value) else MASK] = bool(os.environ.get(value))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionChain:
    """A connection and those that it may fall back on.

    Attributes:
        name: The connection that is asked first, as the settings spell it if they have it.
        tables: The tables by name, in the order in which they are asked.
        problems: Why there is none, or why a limit can't be kept.
        warnings: What counts less than it seems.
    """

    name: str
    tables: Mapping[str, ConnectionSettings] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, loaded: LoadedSettings, name: str, *, key: str | None = None) -> ConnectionChain:
        """Follow a connection's fallbacks, nearest first.

        Args:
            loaded: The settings that hold the connections.
            name: The connection that is asked first; names compare loosely.
            key: The dotted key that holds the name, for errors.
        """
        tables: dict[str, ConnectionSettings] = {}
        problems = []
        waiting = [(name, key)]
        for wanted, place in waiting:  # grows on the way
            try:
                found, table = loaded.connection(wanted, key=place)
            except SettingsError as exc:
                problems.append(str(exc))
                continue
            if found not in tables:
                tables[found] = table
                waiting += [(other, f"ai.connections.{found}.fallback") for other in table.fallback]
        return cls(name=next(iter(tables), name), tables=tables, problems=tuple(dict.fromkeys(problems)))

    @classmethod
    def of_profile(cls, loaded: LoadedSettings, key: str, profile: AgentProfileSettings) -> ConnectionChain:
        """Follow a profile's connection, and tell whether its limit of cost can be kept with it.

        Args:
            loaded: The settings.
            key: The profile's name.
            profile: The profile.
        """
        where = f"ai.agents.profiles.connections.{key}"
        names = list(loaded.settings.ai.connections)
        name = profile.connection_name or (names[0] if len(names) == 1 else "")
        if not name:
            return cls(name="", problems=(f"the profile names no connection (key {where}.connection_name)",))
        chain = cls.of(loaded, name, key=f"{where}.connection_name")
        if profile.max_cost is None:
            return chain
        unpriced = [other for other in chain.tables if other not in chain.prices]
        text = f"max_cost can't be kept: connection {chain.name!r} has no prices (key {where}.max_cost)"
        return cls(
            name=chain.name,
            tables=chain.tables,
            problems=(*chain.problems, *([text] if chain.name in unpriced else [])),
            warnings=tuple(
                f"max_cost counts nothing of fallback {other!r}, which has no prices"
                for other in unpriced
                if other != chain.name
            ),
        )

    @property
    def first(self) -> ConnectionSettings | None:
        """The table of the connection that is asked first, or None."""
        return self.tables.get(self.name)

    @property
    def fallbacks(self) -> tuple[ConnectionSettings, ...]:
        """The tables of the others."""
        return tuple(self.tables.values())[1:]

    @property
    def requests_per_minute(self) -> dict[str, float]:
        """How often each may be asked; those without a limit are left out."""
        return {n: t.requests_per_minute for n, t in self.tables.items() if t.requests_per_minute is not None}

    @property
    def prices(self) -> dict[str, dict[str, float]]:
        """What tokens cost, each per million, by connection and key; connections without prices are left out."""
        return {n: t.prices.model_dump(exclude_none=True) for n, t in self.tables.items() if t.prices is not None}

    @property
    def variables(self) -> dict[str, bool]:
        """The environment variables that any of them names, and whether each is set."""
        return {name: known for table in self.tables.values() for name, known in variables_of(table.options).items()}
