"""Joins settings, plugins and the runtime: the one obvious entry."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from atlas_core import builtin
from atlas_core._runtime.invoke import Lifecycle
from atlas_core._version import __version__
from atlas_core.catalog import Catalog, Offer, PluginRecord
from atlas_core.discovery import Discovery, scan
from atlas_core.errors import AtlasError, SettingsError
from atlas_core.interfaces.agents import Agent, AgentParts
from atlas_core.interfaces.executors import ToolExecutorProtocol
from atlas_core.interfaces.llm import BaseLLM
from atlas_core.interfaces.runs import MemoryRunStore
from atlas_core.interfaces.service import BaseService
from atlas_core.llm.chain import ConnectionChain
from atlas_core.llm.manager import LLMManager
from atlas_core.making import make
from atlas_core.names import did_you_mean, same_name
from atlas_core.owner import Owner
from atlas_core.permissions import is_pattern, matches
from atlas_core.plugins import PluginHost
from atlas_core.selection import Selection, select_enabled
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.loader import load_settings, settings_from_mapping
from atlas_core.settings.owned import NoOptions, validate_owned
from atlas_core.settings.prompts import read_system_prompt
from atlas_core.shared_parts import SharedParts, quietly
from atlas_core.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atlas_core.events import Observer
    from atlas_core.interfaces.runs import RunStore
    from atlas_core.interfaces.tools import ToolProvider
    from atlas_core.settings.models import AgentProfileSettings, AtlasSettings, ExecutorChoice, Prices

__all__ = ["Kernel"]

T = TypeVar("T")

log = logging.getLogger("atlas.kernel")

BUILTIN = Owner("builtin", "atlas-kernel", __version__)


class Kernel(BaseService):
    """Owns the plugins, models, executors and tools of one program; two kernels share nothing.

    Plugins are imported when a profile that enables them is first asked for, and what they offer is started when
    an agent that uses it is. `stop` ends everything in reverse order.

    Args:
        settings: Loaded settings, or a mapping with the tables `plugins` and `ai`; None for the built-in defaults.
        plugins: Modules or objects with hook implementations. Where given, nothing is discovered: these are the
            plugins, and all of them are enabled.
        observers: Who is told of every event of every run.
        store: Where runs are written down; memory if left out.
    """

    def __init__(
        self,
        settings: LoadedSettings | Mapping[str, object] | None = None,
        *,
        plugins: Iterable[object] | None = None,
        observers: Iterable[Observer] = (),
        store: RunStore | None = None,
    ) -> None:
        if isinstance(settings, LoadedSettings):
            self.loaded = settings
        else:
            self.loaded = settings_from_mapping(settings or {}, defaults=plugins is None)
        self._given = None if plugins is None else tuple(plugins)
        self._discovery: Discovery | None = Discovery() if plugins is not None else None
        self._host_made: PluginHost | None = None
        self._catalogs: dict[tuple[str, ...], Catalog] = {}
        self._llms: LLMManager | None = None
        self._executors: dict[tuple[Owner, str, str], ToolExecutorProtocol] = {}
        self._agents: weakref.WeakSet[Agent] = weakref.WeakSet()
        self._observers = tuple((observer, Owner()) for observer in observers)
        self._store = store if store is not None else MemoryRunStore()
        self._lifecycle = Lifecycle()
        self._shared = SharedParts(self._warn)
        self._warnings: dict[str, None] = dict.fromkeys(self.loaded.warnings)

    @classmethod
    def from_settings(
        cls,
        path: str | Path | None = None,
        *,
        env: str | None = None,
        folder: str | Path | None = None,
        observers: Iterable[Observer] = (),
        store: RunStore | None = None,
    ) -> Kernel:
        """Make a kernel from a settings file.

        Args:
            path: The file; None for `settings.toml` in the folder, which may be missing.
            env: The environment; None for what `ATLAS_ENV` names.
            folder: Where to look; the current folder if left out.
            observers: As for the class.
            store: As for the class.
        Raises:
            SettingsError: The file or a variable is wrong.
        """
        loaded = load_settings(path, env=env, folder=Path(folder) if folder is not None else None)
        return cls(loaded, observers=observers, store=store)

    def __repr__(self) -> str:
        return f"<Kernel, environment {self.loaded.environment!r}, {self._state}>"

    # What there is ---------------------------------------------------------------------------------------------

    @property
    def settings(self) -> AtlasSettings:
        """The settings of the chosen environment."""
        return self.loaded.settings

    @property
    def discovery(self) -> Discovery:
        """What is installed, read once, from metadata."""
        if self._discovery is None:
            self._discovery = scan()
        return self._discovery

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """What became of every plugin, the kernel's own included."""
        return self._host.records

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator should know that stops nothing: settings without effect, plugins that failed unneeded."""
        return tuple(self._warnings)

    @property
    def llms(self) -> LLMManager:
        """The models by connection."""
        if self._llms is None:
            self._llms = LLMManager(self.loaded, self.catalog)
        return self._llms

    @property
    def _host(self) -> PluginHost:
        if self._host_made is None:
            self._host_made = PluginHost(
                self.discovery, plugins=[(BUILTIN, builtin), *(self._given or ())], options_for=self._options_for
            )
        return self._host_made

    def _options_for(self, plugin: str, model: type[BaseModel] | None, owner: Owner) -> BaseModel:
        tables = self.settings.plugins.options
        name = next((key for key in tables if same_name(key) == same_name(plugin)), None)
        table = tables[name] if name is not None else {}
        return self._validated(model, table, f"plugins.options.{name or plugin}", owner)

    def _validated(self, model: type[BaseModel] | None, table: Mapping[str, Any], key: str, owner: Owner) -> BaseModel:
        return validate_owned(model or NoOptions, table, key=key, loaded=self.loaded, owner=owner)

    def select(self, profile: AgentProfileSettings | None = None, key: str = "") -> Selection:
        """Return the plugins that a profile enables, or the environment's; nothing is imported.

        Raises:
            SettingsError: An enabled plugin is not installed.
        """
        own = profile.plugins if profile is not None else None
        return select_enabled(
            self.discovery,
            self.settings.plugins.enabled,
            own.enable if own is not None else (),
            own.disable if own is not None else (),
            given=[name for name in self._host.given if name != BUILTIN.plugin],
            profile_key=f"ai.agents.profiles.connections.{key}.plugins",
            source_of=self._source,
        )

    def _source(self, key: str) -> str | None:
        try:
            return self.loaded.origin(key)
        except SettingsError:
            return None

    def catalog(self, profile: str | None = None) -> Catalog:
        """Return what the plugins of a profile offer, loading them; None for those of the environment.

        A plugin that fails to load is in the catalogue's `failed` and raises nothing here.

        Raises:
            SettingsError: No such profile, or an enabled plugin is not installed.
        """
        if profile is None:
            return self._catalog(self.select())
        key, settings = self.loaded.profile(profile)
        return self._catalog(self.select(settings, key))

    def _catalog(self, selection: Selection) -> Catalog:
        self._warnings.update(dict.fromkeys(selection.warnings))
        chosen = (*selection.given, "", *map(str, selection.chosen), "", *(r.name for r in selection.problems))
        known = self._catalogs.get(chosen)
        if known is None:
            records = [*self._host.load(BUILTIN.plugin), *self._host.load_selection(selection)]
            known = Catalog(records, prefixes=self.settings.plugins.prefix, discovery=self.discovery)
            self._catalogs[chosen] = known
            self._warnings.update(dict.fromkeys(f"plugin {r.name!r} is not used: {r.error}" for r in known.failed))
        return known

    # Agents ----------------------------------------------------------------------------------------------------

    def agent(self, profile: str | None = None) -> Agent:
        """Make the agent that a profile describes; it starts on first use and is stopped with the kernel.

        Args:
            profile: The profile's name; None for `ai.agents.default_profile`.
        Raises:
            SettingsError: Something the profile names is not there, or a table of it does not fit.
            PluginError: A plugin that the profile needs failed.
        """
        key, settings = self.loaded.profile(profile)
        self._check_plugin_names()
        where = f"ai.agents.profiles.connections.{key}"
        catalog = self.catalog(key)
        kind = self._keyed(f"{where}.type", lambda: catalog.find("agent", settings.type))
        wanted = self._connection_of(settings, where)
        llm, llm_owner, connection = self._keyed(
            f"ai.connections.{wanted}.backend",
            lambda: self.llms.resolve(wanted, catalog=catalog, key=f"{where}.connection_name"),
        )
        prices = self._prices(connection)
        if settings.max_cost is not None and connection not in prices:
            raise SettingsError(
                f"max_cost can't be kept: connection {connection!r} has no prices",
                key=f"{where}.max_cost",
                source=self._source(f"{where}.max_cost"),
                remedy=f"set ai.connections.{connection}.prices = {{ input = ..., output = ... }}, per million tokens",
            )
        executor, executor_name = self._executor(catalog, settings.executor, where)
        tools, later = self._tools(catalog, settings, where)
        parts = AgentParts(
            agent_id=key,
            settings=settings,
            options=self._validated(kind.value.options, settings.options, f"{where}.options", kind.owner),
            llm=llm,
            llm_owner=llm_owner,
            connection=connection,
            executor=executor,
            executor_name=executor_name,
            tools=tools,
            owner=kind.owner,
            system_prompt=self.loaded.system_prompt(key),
            max_output_tokens=self.settings.ai.connections[connection].max_output_tokens,
            prices=prices,
            observers=(*self._observers, *((o.value, o.owner) for o in catalog.observers)),
            store=self._store,
            lifecycle=self._lifecycle,
            before_start=self._starter(catalog, tools, settings, later),
            disabled=self._disabled(),
        )
        agent = make(
            kind,
            parts,
            what=f"agent {key!r} of type {kind.name!r}",
            kind=Agent,
            base="atlas_core.AgentService",
        )
        self.adopt(agent)
        return agent

    def adopt(self, agent: Agent) -> None:
        """Stop an agent with the kernel, if not before."""
        with contextlib.suppress(TypeError):  # a foreign class may allow no weak references; its maker stops it
            self._agents.add(agent)

    def parts_for(self, settings: AgentProfileSettings, llm: BaseLLM | str | None = None) -> AgentParts:
        """Return the parts of an agent that no profile of the settings describes; it has no tools.

        Args:
            settings: The agent, whose name is its id.
            llm: The model, or a connection's name; None for the connection of the default profile.
        Raises:
            SettingsError: There is no such connection, or the prompt's file can't be read.
            PluginError: The plugin that offers the connection's backend failed.
        """
        catalog, owner, connection, most = self.catalog(), Owner(), "", None
        if not isinstance(llm, BaseLLM):
            if llm is None and self.settings.ai.agents.default_profile:
                name, profile = self.loaded.profile()
                catalog = self.catalog(name)
                llm = self._connection_of(profile, f"ai.agents.profiles.connections.{name}")
            llm, owner, connection = self.llms.resolve(
                llm if llm is not None else self._connection_of(settings, settings.name), catalog=catalog
            )
            most = self.settings.ai.connections[connection].max_output_tokens
        executor, executor_name = self._executor(catalog, settings.executor, settings.name)
        tools = ToolRegistry()
        return AgentParts(
            agent_id=settings.name,
            settings=settings,
            options=None,
            llm=llm,
            llm_owner=owner,
            connection=connection,
            executor=executor,
            executor_name=executor_name,
            tools=tools,
            owner=BUILTIN,
            system_prompt=read_system_prompt(settings, self.loaded.base_dir),
            max_output_tokens=most,
            prices=self._prices(connection) if connection else {},
            observers=(*self._observers, *((o.value, o.owner) for o in catalog.observers)),
            store=self._store,
            lifecycle=self._lifecycle,
            before_start=self._starter(catalog, tools, settings, []),
            disabled=self._disabled(),
        )

    def _prices(self, connection: str) -> dict[str, Prices]:
        chain = ConnectionChain.of(self.loaded, connection).tables
        return {name: table.prices for name, table in chain.items() if table.prices is not None}

    def _keyed(self, key: str, find: Callable[[], T]) -> T:
        """Look a name up; where nobody offers it, say which key named it and where that was set."""
        try:
            return find()
        except SettingsError as exc:
            if exc.key is not None:
                raise
            raise SettingsError(exc.problem, key=key, source=self._source(key), remedy=exc.remedy) from exc

    def _check_plugin_names(self) -> None:
        """Refuse tables for plugins that are not there: a misspelt one would leave the real one at its defaults."""
        known = [*(plugin.name for plugin in self.discovery.plugins), *self._host.given]
        plugins = self.settings.plugins
        for table, names in (("options", plugins.options), ("prefix", plugins.prefix)):
            for name in names:
                if same_name(name) not in map(same_name, known):
                    key = f"plugins.{table}.{name}"
                    raise SettingsError(
                        f"plugin {name!r} is not installed",
                        key=key,
                        source=self._source(key),
                        remedy=did_you_mean(name, known, what="installed"),
                    )

    def _disabled(self) -> str | None:
        if self.settings.ai.agents.enabled:
            return None
        return f"agents are disabled: ai.agents.enabled is false, set in {self.loaded.origin('ai.agents.enabled')}"

    def _connection_of(self, settings: AgentProfileSettings, where: str) -> str:
        if settings.connection_name:
            return settings.connection_name
        connections = list(self.settings.ai.connections)
        if len(connections) == 1:
            return connections[0]
        raise SettingsError(
            "the profile names no connection",
            key=f"{where}.connection_name",
            remedy=f"set it to one of: {', '.join(sorted(connections))}" if connections else "write one",
        )

    def _executor(self, catalog: Catalog, choice: ExecutorChoice, where: str) -> tuple[ToolExecutorProtocol, str]:
        offer = self._keyed(f"{where}.executor", lambda: catalog.find("executor", choice.name))
        options = self._validated(offer.value.options, choice.options, f"{where}.executor", offer.owner)
        same = (offer.owner, offer.name, json.dumps(options.model_dump(mode="json"), sort_keys=True, default=repr))
        executor = self._executors.get(same)
        if executor is None:
            executor = self._executors[same] = make(
                offer,
                options,
                what=f"executor {offer.name!r}",
                kind=ToolExecutorProtocol,
                base="atlas_core.BaseToolExecutor",
            )
        return executor, offer.name

    def _tools(
        self, catalog: Catalog, settings: AgentProfileSettings, where: str
    ) -> tuple[ToolRegistry, list[Offer[ToolProvider]]]:
        """Register what the profile's `tools` choose; names may also be offered later, by tool providers."""
        later = list(catalog.tool_providers)
        known = [offer.name for offer in catalog.tools]
        for wanted in settings.tools:
            contested = [name for name in catalog.contested("tool") if matches(wanted, name)]
            found = any(matches(wanted, name) for name in known)
            if contested:
                catalog.find("tool", contested[0])
            elif not found and not is_pattern(wanted) and not later:
                self._keyed(f"{where}.tools", functools.partial(catalog.find, "tool", wanted))
        registry = ToolRegistry()
        for offer in catalog.tools:
            if any(matches(wanted, offer.name) for wanted in settings.tools):
                registry.register(offer.value, prefix=offer.prefix or None, owner=offer.owner)
        return registry, later

    # Starting and stopping -------------------------------------------------------------------------------------

    def _starter(
        self, catalog: Catalog, registry: ToolRegistry, settings: AgentProfileSettings, later: list[Offer[ToolProvider]]
    ) -> Callable[[], Awaitable[None]]:
        async def start_what_is_needed() -> None:
            await self.start()
            for observer, owner in (*self._observers, *((o.value, o.owner) for o in catalog.observers)):
                await self._shared.start_observer(observer, owner)
            added = [await self._shared.add_provided(offer, registry, settings.tools) for offer in later]
            failed = [error for error in added if error is not None]
            unmet = [n for n in settings.tools if not is_pattern(n) and not any(matches(n, k) for k in registry.names)]
            if failed and unmet:
                raise failed[0]

        return start_what_is_needed

    def _warn(self, error: AtlasError) -> None:
        self._warnings[str(error)] = None
        log.warning("%s", error)

    async def _stop(self) -> None:
        for agent in tuple(self._agents):
            await quietly("agent", agent.stop)
        for executor in reversed(self._executors.values()):
            await quietly("executor", executor.stop)
        await self._lifecycle.stop()
        await self._shared.stop_providers()
        for model in reversed(tuple(self._llms.models.values()) if self._llms is not None else ()):
            await quietly("model", model.stop)
        await self._shared.stop_observers()
