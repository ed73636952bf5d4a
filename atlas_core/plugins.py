"""The plugin host: imports the plugins that were chosen, checks them, and collects what they offer.

Each plugin is imported, checked and asked alone. Whatever goes wrong with one is kept as a typed error in its
record, nothing of it is, and the others are not touched. This is the only module that talks to pluggy, whose own
entry-point loader would let one broken import end the rest and hide the second plugin of a name.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import pluggy

from atlas_core import hookspecs
from atlas_core.catalog import Offer, Offers, PluginRecord
from atlas_core.discovery import Discovery, conflict
from atlas_core.errors import PluginError, PluginHookError, SettingsError
from atlas_core.interfaces.agents import AgentTypeSpec
from atlas_core.interfaces.executors import ExecutorSpec
from atlas_core.interfaces.llm import LLMProviderSpec
from atlas_core.interfaces.tools import ToolProvider
from atlas_core.markers import PROJECT
from atlas_core.metadata import InstalledPlugin
from atlas_core.names import same_name
from atlas_core.plugin_checks import (
    Blame,
    Hook,
    answers_of,
    check_observer,
    check_options_model,
    check_spec,
    find_hooks,
    unique,
)
from atlas_core.plugin_sources import default_options, import_target, named

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atlas_core.interfaces.tools import Tool
    from atlas_core.owner import Owner
    from atlas_core.plugin_sources import GivenPlugin, OptionsFor
    from atlas_core.selection import Selection

__all__ = ["PluginHost"]

_Key: TypeAlias = tuple[str, str]


class PluginHost:
    """The plugins of one kernel. Two hosts share nothing but imported modules.

    Args:
        discovery: What is installed; None for nothing.
        plugins: Plugins given directly, the kernel's own among them.
        options_for: Validates a plugin's own table of the settings.
        coerce: Makes a tool of what a plugin offers as one; raises ToolDefinitionError.
        refuse_before_import: May refuse an installed plugin on the strength of its metadata.

    Raises:
        ValueError: Two plugins are given under one name.
    """

    def __init__(
        self,
        discovery: Discovery | None = None,
        *,
        plugins: Iterable[GivenPlugin] = (),
        options_for: OptionsFor | None = None,
        coerce: Callable[[object], Tool] | None = None,
        refuse_before_import: Callable[[InstalledPlugin], PluginError | None] | None = None,
    ) -> None:
        self._discovery = discovery or Discovery()
        self._given = named(plugins)
        self._options_for = options_for or default_options
        self._coerce = coerce or _as_tool
        self._refuse = refuse_before_import
        self._records: dict[_Key, PluginRecord] = {}
        self._refused: dict[_Key, PluginRecord] = {}
        self._holders: list[_Holder] = []
        self._lock = threading.RLock()
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the plugins that were given directly, in name order."""
        return tuple(owner.plugin for owner, _ in self._given.values())

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """One record for each plugin given or installed, in name order, whether it was loaded or not."""
        idle = {_key(owner): PluginRecord(owner=owner) for owner, _ in self._given.values()}
        idle.update((_key(p.owner), PluginRecord(owner=p.owner, plugin=p)) for p in self._discovery.plugins)
        known = {**idle, **self._refused, **self._records}
        return tuple(known[key] for key in sorted(known))

    def load(self, *names: str | InstalledPlugin) -> tuple[PluginRecord, ...]:
        """Load plugins, each once however often it is asked for, and return their records in name order.

        Args:
            names: `name`, `name@distribution`, or what the discovery found. A name that several distributions offer
                is loaded from none; the records say so.

        Raises:
            SettingsError: A plugin of that name was neither given nor found.
        """
        found: dict[_Key, PluginRecord] = {}
        with self._lock:
            importlib.invalidate_caches()  # it may have been installed since the process began
            asked = [self._asked(name) for name in names]
            for owner, plugin, error in sorted((entry for entries in asked for entry in entries), key=_by_owner):
                key = _key(owner)
                if error is not None:
                    self._refused[key] = PluginRecord(owner=owner, plugin=plugin, status="failed", error=error)
                    found[key] = self._refused[key]
                else:
                    found[key] = self._load_once(owner, plugin)
        return tuple(found[key] for key in sorted(found))

    def load_selection(self, selection: Selection) -> tuple[PluginRecord, ...]:
        """Load what a profile chose, and return the records that make its catalogue, those of refused ones included."""
        with self._lock:
            for record in selection.problems:
                self._refused[_key(record.owner)] = record
            records = self.load(*selection.given, *selection.chosen)
        return tuple(sorted((*records, *selection.problems), key=lambda record: _key(record.owner)))

    def load_given(self) -> tuple[PluginRecord, ...]:
        """Load the plugins that were given directly, and return their records in name order."""
        return self.load(*self.given)

    def _asked(self, name: str | InstalledPlugin) -> list[tuple[Owner, InstalledPlugin | None, PluginError | None]]:
        if isinstance(name, InstalledPlugin):
            return [(name.owner, name, None)]
        if same_name(name) in self._given:
            return [(self._given[same_name(name)][0], None, None)]
        found = self._discovery.named(name)
        if len(found) > 1:
            return [(plugin.owner, plugin, conflict(found)) for plugin in found]
        plugin = self._discovery.resolve(name)
        return [(plugin.owner, plugin, None)]

    def _load_once(self, owner: Owner, plugin: InstalledPlugin | None) -> PluginRecord:
        key = _key(owner)
        if key not in self._records:
            self._records[key] = self._load(owner, plugin)
        return self._records[key]

    def _load(self, owner: Owner, plugin: InstalledPlugin | None) -> PluginRecord:
        blame = Blame(owner, plugin)
        began, took = time.perf_counter(), 0.0
        try:
            if plugin is not None:
                target = self._import(plugin, blame)
                took = time.perf_counter() - began
            else:
                target = self._given[same_name(owner.plugin)][1]
            offers = self._admit(target, blame)
        except (PluginError, SettingsError) as exc:
            return PluginRecord(owner=owner, plugin=plugin, status="failed", error=exc, import_time_s=took)
        return PluginRecord(owner=owner, plugin=plugin, status="loaded", offers=offers, import_time_s=took)

    def _import(self, plugin: InstalledPlugin, blame: Blame) -> object:
        refusal = self._refuse(plugin) if self._refuse is not None else None
        if refusal is not None:
            raise refusal
        return import_target(plugin, blame)

    def _admit(self, target: object, blame: Blame) -> Offers:
        """Check a plugin, register it and collect its offers; on any failure it is as if it had never been there."""
        holder = _Holder(blame.guard(lambda: self._hooks(target, blame), "its hooks can't be read"))
        try:
            self._register(holder, blame)
            return self._collect(holder, self._options(holder, blame), blame)
        except BaseException:
            if holder in self._holders:
                self._manager.unregister(holder)
                self._holders.remove(holder)
            raise

    def _hooks(self, target: object, blame: Blame) -> list[Hook]:
        plugin = target() if isinstance(target, type) else target
        return find_hooks(plugin, self._manager.parse_hookimpl_opts, blame)

    def _register(self, holder: _Holder, blame: Blame) -> None:
        try:
            self._manager.register(holder, name="@".join(_key(blame.owner)))
            self._holders.append(holder)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as exc:  # what the checks before it did not foresee
            raise blame.error(PluginHookError, "pluggy refused its hooks", cause=exc) from exc

    def _call(self, holder: _Holder, hook: str, blame: Blame, **arguments: object) -> Any:
        """Call one plugin's implementations of a hook, and return pluggy's answer."""
        caller = self._manager.subset_hook_caller(hook, [other for other in self._holders if other is not holder])
        return blame.guard(lambda: caller(**arguments), f"hook {hook} raised")

    def _options(self, holder: _Holder, blame: Blame) -> BaseModel:
        model = self._call(holder, "atlas_options", blame)
        if model is not None:
            check_options_model(model, "what hook atlas_options returned", blame)
        return blame.guard(
            lambda: self._options_for(blame.owner.plugin, model, blame.owner),
            "its options model raised",
            passing=SettingsError,
        )

    def _collect(self, holder: _Holder, options: BaseModel, blame: Blame) -> Offers:
        """Ask for each kind in a fixed order: tools, providers, executors, agent types, observers."""

        def ask(hook: str, make: Callable[[str, object, Blame], Offer[Any]]) -> list[Offer[Any]]:
            answers = self._call(holder, hook, blame, options=options)
            # pluggy leaves out None, which is what a function without `return` answers with.
            answers += [None] * (holder.count(hook) - len(answers))
            values = blame.guard(lambda: answers_of(hook, answers, blame), f"hook {hook} raised")
            return blame.guard(
                lambda: [make(hook, value, blame) for value in values], f"what hook {hook} offers is faulty"
            )

        tools = ask("atlas_tool_providers", self._tool_offer)
        return Offers(
            tools=unique("atlas_tool_providers", (o for o in tools if not isinstance(o.value, ToolProvider)), blame),
            tool_providers=tuple(o for o in tools if isinstance(o.value, ToolProvider)),
            llm_providers=unique(
                "atlas_llm_providers", ask("atlas_llm_providers", _spec_offer(LLMProviderSpec)), blame
            ),
            executors=unique("atlas_executors", ask("atlas_executors", _spec_offer(ExecutorSpec)), blame),
            agent_types=unique("atlas_agent_types", ask("atlas_agent_types", _spec_offer(AgentTypeSpec)), blame),
            observers=tuple(ask("atlas_observers", _observer_offer)),
        )

    def _tool_offer(self, hook: str, value: object, blame: Blame) -> Offer[Any]:
        if isinstance(value, ToolProvider):
            return Offer(name=type(value).__name__, value=value, owner=blame.owner)
        tool = self._coerce(value)
        return Offer(name=tool.name, value=tool, owner=blame.owner)


class _Holder:
    """What pluggy gets to see of a plugin: its hooks, and nothing that would run code of the plugin when looked at."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._names: list[str] = []
        for number, hook in enumerate(hooks):
            setattr(self, f"hook_{number}", self._marked(hook))
            self._names.append(hook.name)

    @staticmethod
    def _marked(hook: Hook) -> Callable[..., object]:
        # The mark may sit on a staticmethod or be shared by instances: it is set anew, on a function of our own.
        @functools.wraps(hook.function)
        def call(*args: object, **kwargs: object) -> object:
            return hook.function(*args, **kwargs)

        first, last = hook.marks.get("tryfirst", False), hook.marks.get("trylast", False)
        return pluggy.HookimplMarker(PROJECT)(call, specname=hook.name, tryfirst=first, trylast=last)

    def count(self, name: str) -> int:
        return self._names.count(name)


def _spec_offer(expected: type[Any]) -> Callable[[str, object, Blame], Offer[Any]]:
    def make(hook: str, value: object, blame: Blame) -> Offer[Any]:
        spec = check_spec(hook, value, expected, blame)
        return Offer(name=spec.name, value=spec, owner=blame.owner)

    return make


def _observer_offer(hook: str, value: object, blame: Blame) -> Offer[Any]:
    check_observer(hook, value, blame)
    return Offer(name=type(value).__name__, value=value, owner=blame.owner)


def _as_tool(value: object) -> Tool:
    from atlas_core.tools.registry import ToolRegistry  # dear, and only plugins with tools need it

    scratch = ToolRegistry()  # checks name and schema as well, so that a faulty tool is its plugin's failure
    return scratch.get(scratch.register(value))  # type: ignore[arg-type]  # what it is comes out here


def _key(owner: Owner) -> _Key:
    return same_name(owner.plugin), same_name(owner.distribution)


def _by_owner(entry: tuple[Owner, InstalledPlugin | None, PluginError | None]) -> _Key:
    return _key(entry[0])
