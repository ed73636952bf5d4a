"""What is on offer: a read-only mapping from names to objects and who supplied them.

The plugin host writes one `PluginRecord` for each plugin; a profile's catalogue joins the records of the plugins
that the profile chose. What it holds does not depend on their order.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

from atlas_core.errors import PluginConflictError, PluginError, SettingsError
from atlas_core.names import did_you_mean, prefixed, same_name, tool_form

if TYPE_CHECKING:
    from atlas_core.discovery import Discovery
    from atlas_core.events import Observer
    from atlas_core.interfaces.agents import AgentTypeSpec
    from atlas_core.interfaces.executors import ExecutorSpec
    from atlas_core.interfaces.llm import LLMProviderSpec
    from atlas_core.interfaces.tools import Tool, ToolProvider
    from atlas_core.metadata import InstalledPlugin
    from atlas_core.owner import Owner

__all__ = ["Catalog", "Kind", "Offer", "Offers", "PluginRecord", "PluginStatus"]

T_co = TypeVar("T_co", covariant=True)

Kind: TypeAlias = Literal["tool", "llm", "executor", "agent"]
"""What a name can stand for; the first part of a declared offer such as `tool.word_count`."""

PluginStatus: TypeAlias = Literal["loaded", "failed", "not loaded"]

_WORDS: Mapping[Kind, str] = {
    "tool": "a tool",
    "llm": "a model provider",
    "executor": "an executor",
    "agent": "an agent type",
}
_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Generic[T_co]):
    """One thing that a plugin offers.

    Attributes:
        name: What settings and models call it, the prefix included.
        value: The object.
        owner: Who supplied it.
        prefix: What `plugins.prefix` puts before the tool's own name, or "".
    """

    name: str
    value: T_co
    owner: Owner
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """All that one plugin offers, checked."""

    tools: tuple[Offer[Tool], ...] = ()
    tool_providers: tuple[Offer[ToolProvider], ...] = ()
    llm_providers: tuple[Offer[LLMProviderSpec], ...] = ()
    executors: tuple[Offer[ExecutorSpec], ...] = ()
    agent_types: tuple[Offer[AgentTypeSpec], ...] = ()
    observers: tuple[Offer[Observer], ...] = ()

    def of(self, kind: Kind) -> tuple[Offer[Any], ...]:
        """Return the offers of a kind."""
        by_kind: Mapping[Kind, tuple[Offer[Any], ...]] = {
            "tool": self.tools,
            "llm": self.llm_providers,
            "executor": self.executors,
            "agent": self.agent_types,
        }
        return by_kind[kind]

    @property
    def names(self) -> tuple[str, ...]:
        """What group `atlas.offers` should declare, such as `tool.word_count`, sorted."""
        return tuple(sorted(f"{kind}.{offer.name}" for kind in _WORDS for offer in self.of(kind)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord:
    """What became of a plugin in one plugin host.

    Attributes:
        owner: The plugin, its distribution and version.
        plugin: What its metadata says; None for a plugin that the program or the kernel gave directly.
        status: Whether it was loaded, failed, or was not asked for.
        error: Why it failed: a `PluginError`, or a `SettingsError` where its table of options does not fit.
        offers: What it offers; None unless loaded. Nothing of a failed plugin is kept.
        import_time_s: Seconds that importing it took, 0.0 if nothing was imported.
    """

    owner: Owner
    plugin: InstalledPlugin | None = None
    status: PluginStatus = "not loaded"
    error: PluginError | SettingsError | None = None
    offers: Offers | None = None
    import_time_s: float = 0.0

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.owner.plugin

    @property
    def declared(self) -> tuple[str, ...]:
        """What the metadata declares that it offers; empty if it declares nothing."""
        return self.plugin.offers if self.plugin is not None else ()


class Catalog:
    """What the plugins of one profile offer together; read-only.

    A name that two of them offer is on offer from neither: asking for it is an error that names both, all other
    names work.

    Args:
        records: The records of the plugins that the profile chose, and of those that belong to every profile.
        prefixes: By plugin, what goes before the names of its tools (`plugins.prefix`).
        discovery: What is installed, so that a missing name's error can say which plugin to enable.

    Raises:
        SettingsError: A prefix can't be part of a tool's name.
    """

    def __init__(
        self,
        records: Iterable[PluginRecord],
        *,
        prefixes: Mapping[str, str] | None = None,
        discovery: Discovery | None = None,
    ) -> None:
        by_owner = {record.owner: record for record in records}
        self.records: tuple[PluginRecord, ...] = tuple(by_owner[owner] for owner in sorted(by_owner, key=_order))
        self._prefixes = _checked(prefixes or {})
        self._discovery = discovery
        self._conflicts: dict[tuple[Kind, str], PluginConflictError] = {}
        self._offers: dict[Kind, dict[str, Offer[Any]]] = {kind: self._collect(kind) for kind in _WORDS}

    def _collect(self, kind: Kind) -> dict[str, Offer[Any]]:
        found: dict[str, list[Offer[Any]]] = {}
        for record in self.records:
            for offer in record.offers.of(kind) if record.offers is not None else ():
                named = self._prefixed(offer) if kind == "tool" else offer
                found.setdefault(_form(kind, named.name), []).append(named)
        for key, offers in found.items():
            if len(offers) > 1:
                self._conflicts[kind, key] = _conflict(kind, offers)
        return {key: offers[0] for key, offers in sorted(found.items()) if len(offers) == 1}

    def _prefixed(self, offer: Offer[Any]) -> Offer[Any]:
        prefix = self._prefixes.get(same_name(offer.owner.plugin), "")
        return Offer(name=prefixed(prefix, offer.name), value=offer.value, owner=offer.owner, prefix=prefix)

    @property
    def tools(self) -> tuple[Offer[Tool], ...]:
        """The tools, in name order; `offer.prefix` is what their registration needs."""
        return tuple(self._offers["tool"].values())

    @property
    def tool_providers(self) -> tuple[Offer[ToolProvider], ...]:
        """The sources of tools that are known only after start, in the plugins' name order."""
        return tuple(
            Offer(name=o.name, value=o.value, owner=o.owner, prefix=self._prefixes.get(same_name(o.owner.plugin), ""))
            for offers in self._loaded()
            for o in offers.tool_providers
        )

    @property
    def observers(self) -> tuple[Offer[Observer], ...]:
        """Who is told of events, in the plugins' name order."""
        return tuple(o for offers in self._loaded() for o in offers.observers)

    @property
    def llm_providers(self) -> Mapping[str, Offer[LLMProviderSpec]]:
        """The model providers by name."""
        return self._by_name("llm")

    @property
    def executors(self) -> Mapping[str, Offer[ExecutorSpec]]:
        """The executors by name."""
        return self._by_name("executor")

    @property
    def agent_types(self) -> Mapping[str, Offer[AgentTypeSpec]]:
        """The agent types by name."""
        return self._by_name("agent")

    @property
    def failed(self) -> tuple[PluginRecord, ...]:
        """The plugins that failed, in name order."""
        return tuple(record for record in self.records if record.error is not None)

    def contested(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of a kind that several plugins offer and that therefore none may be found under."""
        return tuple(error.name for (of, _), error in sorted(self._conflicts.items()) if of == kind)

    def _loaded(self) -> list[Offers]:
        return [record.offers for record in self.records if record.offers is not None]

    def _by_name(self, kind: Kind) -> Mapping[str, Offer[Any]]:
        return MappingProxyType({offer.name: offer for offer in self._offers[kind].values()})

    @overload
    def find(self, kind: Literal["tool"], name: str) -> Offer[Tool]: ...
    @overload
    def find(self, kind: Literal["llm"], name: str) -> Offer[LLMProviderSpec]: ...
    @overload
    def find(self, kind: Literal["executor"], name: str) -> Offer[ExecutorSpec]: ...
    @overload
    def find(self, kind: Literal["agent"], name: str) -> Offer[AgentTypeSpec]: ...
    def find(self, kind: Kind, name: str) -> Offer[Any]:
        """Return what a name stands for; names compare loosely.

        Raises:
            PluginConflictError: Several plugins offer the name.
            PluginError: A plugin that failed declares the name; or nobody offers it, and a plugin failed that might.
            SettingsError: Nobody offers the name, or the failed plugin's options don't fit.
        """
        key = _form(kind, name)
        if (kind, key) in self._conflicts:
            raise copy.copy(self._conflicts[kind, key])
        if key in self._offers[kind]:
            return self._offers[kind][key]
        raise self._missing(kind, name)

    def _missing(self, kind: Kind, name: str) -> PluginError | SettingsError:
        for record in self.failed:
            if record.error is not None and self._declares(record, kind, name):
                return copy.copy(record.error)
        problem, remedy = f"no enabled plugin offers {_WORDS[kind]} named {name!r}", self._remedy(kind, name)
        errors = [record.error for record in self.records if record.error is not None]
        if not errors:
            return SettingsError(problem, remedy=remedy)
        # What a plugin that failed would have offered can't be known: it may be the one.
        error = copy.copy(errors[0])
        error.problem = f"{problem} ({remedy}), and one that might failed: {errors[0].problem}"
        return error

    def _declares(self, record: PluginRecord, kind: Kind, name: str) -> bool:
        prefix = self._prefixes.get(same_name(record.name), "") if kind == "tool" else ""
        declared = (offer.partition(".") for offer in record.declared)
        return any(of == kind and _form(kind, prefixed(prefix, own)) == _form(kind, name) for of, _, own in declared)

    def _remedy(self, kind: Kind, name: str) -> str:
        chosen = {record.owner for record in self.records}
        for plugin in self._discovery.plugins if self._discovery is not None else ():
            declared = (offer.partition(".") for offer in plugin.offers)
            offers = any(of == kind and _form(kind, own) == _form(kind, name) for of, _, own in declared)
            if offers and plugin.owner not in chosen:
                return f"plugin {plugin.name!r} of {plugin.distribution} offers it: add it to plugins.enabled"
        return did_you_mean(name, (offer.name for offer in self._offers[kind].values()), what="on offer")


def _form(kind: Kind, name: str) -> str:
    # Servers name tools with dots, which are not underscores; the other names are Atlas' own.
    return tool_form(name) if kind == "tool" else same_name(name)


def _order(owner: Owner) -> tuple[str, str, str, str]:
    return same_name(owner.plugin), owner.plugin, owner.distribution, owner.version


def _checked(prefixes: Mapping[str, str]) -> dict[str, str]:
    for plugin, prefix in prefixes.items():
        if not _PREFIX.fullmatch(prefix):
            raise SettingsError(
                f"prefix {prefix!r} can't begin a tool's name",
                key=f"plugins.prefix.{plugin}",
                remedy="use letters, digits and '_', '-', '.', ':', '/', a letter, digit or '_' first",
            )
    return {same_name(plugin): prefix for plugin, prefix in prefixes.items()}


def _conflict(kind: Kind, offers: list[Offer[Any]]) -> PluginConflictError:
    name = min(offer.name for offer in offers)
    owners = [str(offer.owner) for offer in offers]
    keys = " or ".join(f"plugins.prefix.{offer.owner.plugin}" for offer in offers)
    remedy = f"set {keys} to rename one" if kind == "tool" else "enable only one of them"
    return PluginConflictError(
        f"{_WORDS[kind].partition(' ')[2]} {name!r} is offered by {' and by '.join(owners)}",
        name=name,
        owners=owners,
        remedy=remedy,
    )
