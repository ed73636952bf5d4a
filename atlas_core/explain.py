"""What a profile is put together from and what its agent may do, told without importing a plugin.

Everything here comes from settings and from the metadata of what is installed. What a distribution does not declare
in group `atlas.offers` can only be known once its plugin is imported, and is said to be so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from atlas_core import builtin
from atlas_core.errors import SettingsError
from atlas_core.kernel import BUILTIN
from atlas_core.llm.chain import ConnectionChain
from atlas_core.names import did_you_mean, prefixed, same_name
from atlas_core.permissions import decide, is_pattern, matches, unmatched_rules
from atlas_core.plugins import PluginHost
from atlas_core.settings.layers import BUILT_IN
from atlas_core.settings.secrets import masked
from atlas_core.settings.toml_lines import dotted

if TYPE_CHECKING:
    from atlas_core.catalog import Kind
    from atlas_core.kernel import Kernel
    from atlas_core.metadata import InstalledPlugin
    from atlas_core.owner import Owner
    from atlas_core.selection import Selection
    from atlas_core.settings.models import AgentProfileSettings

__all__ = ["ExplainedName", "ExplainedPlugin", "ExplainedTool", "Explanation", "explain"]

Known: TypeAlias = Literal["declared", "after import", "missing"]
"""Whether metadata declares a name, only an import can tell, or there is no plugin that could have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPlugin:
    """A plugin that the profile would load, or can't.

    Attributes:
        name, distribution, version: The plugin.
        status: "enabled", or "refused" where it is enabled and can't be loaded.
        offers: What its metadata declares, such as `tool.word_count`; empty means known after import.
        problem: Why it is refused, or "".
    """

    name: str
    distribution: str
    version: str
    status: Literal["enabled", "refused"] = "enabled"
    offers: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedName:
    """A name that the profile uses: its agent type, provider or executor.

    Attributes:
        name: The name.
        known: How much of it is known.
        owner: Who declares it; None unless declared.
        options: The table that goes with it, secrets masked.
        hint: What to do where it is missing, or "".
    """

    name: str
    known: Known
    owner: Owner | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTool:
    """A tool, or a pattern for tools, and what the agent may do with it.

    Attributes:
        name: The tool's name, or the pattern as the profile writes it.
        decision: "allow", "ask" or "deny"; "" for a pattern, whose tools are known after import.
        because: The setting that decides it.
        known: How much is known; a tool's own wish for approval is known after import in any case.
        owner: Who declares it; None unless declared.
        hint: What to do where it is missing, or "".
    """

    name: str
    decision: str
    because: str
    known: Known
    owner: Owner | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a profile comes to.

    Attributes:
        profile: The profile's name as the settings spell it.
        description: Its description.
        environment: The environment that was chosen.
        files: The settings files that were read.
        plugins: The plugins that are loaded for it, in name order.
        disabled: Installed plugins that it switches off by name.
        agent_type, provider, executor: What it names, resolved.
        connection: The connection's name.
        model: The model's name, as the provider knows it.
        variables: Environment variables that the connection names, and whether each is set.
        tools: What it may use, in name order; then patterns that plugins without declarations may match.
        limits: The limits of a run, by key; None for no limit.
        problems: Why it can't run.
        warnings: What has no effect, or less than it seems.
        tool_calls: How the model is offered tools: "auto", "native" or "text".
        fallback: The connections that are asked where the first one's server fails, nearest first.
        requests_per_minute: How often each connection in use may be asked, by name; those without a limit left out.
        prices: What tokens cost, each per million, by connection and then by key; those without prices left out.
    """

    profile: str
    description: str
    environment: str
    files: tuple[str, ...]
    plugins: tuple[ExplainedPlugin, ...]
    disabled: tuple[str, ...]
    agent_type: ExplainedName
    provider: ExplainedName
    executor: ExplainedName
    connection: str
    model: str
    variables: Mapping[str, bool]
    tools: tuple[ExplainedTool, ...]
    limits: Mapping[str, float | None]
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tool_calls: str = "auto"
    fallback: tuple[str, ...] = ()
    requests_per_minute: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists and texts, ready for JSON."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def explain(kernel: Kernel, profile: str | None = None) -> Explanation:
    """Tell what a profile comes to; no plugin is imported.

    Args:
        kernel: The kernel whose settings and installed plugins count.
        profile: The profile's name; None for the default one.

    Raises:
        SettingsError: There is no such profile, or an enabled plugin is not installed.
    """
    key, settings = kernel.loaded.profile(profile)
    selection = kernel.select(settings, key)
    offers = _Offers(kernel, selection)
    chain = ConnectionChain.of_profile(kernel.loaded, key, settings)
    table = chain.first
    agent_type = offers.find("agent", settings.type, settings.options)
    provider = offers.find("llm", table.backend, table.options) if table else ExplainedName(name="", known="missing")
    executor = offers.find("executor", settings.executor.name, settings.executor.options)
    tools = tuple(offers.tools(settings))
    where = ("ai", "agents", "profiles", "connections", key)
    used = [
        _Used("agent type", agent_type, (*where, "type")),
        _Used("model provider", provider, ("ai", "connections", chain.name, "backend")),
        *(
            _Used(
                "model provider",
                offers.find("llm", other.backend, other.options),
                ("ai", "connections", name, "backend"),
            )
            for name, other in tuple(chain.tables.items())[1:]
        ),
        _Used("executor", executor, (*where, "executor")),
        *(_Used("tool", tool, (*where, "tools")) for tool in tools),
    ]
    return Explanation(
        profile=key,
        description=settings.description,
        environment=kernel.loaded.environment,
        files=tuple(map(str, kernel.loaded.files)),
        plugins=tuple(_plugins(selection)),
        disabled=tuple(str(plugin) for plugin in selection.disabled),
        agent_type=agent_type,
        provider=provider,
        executor=executor,
        connection=chain.name,
        model=table.model if table else "",
        variables=chain.variables,
        tools=tools,
        limits={name: getattr(settings, name) for name in _LIMITS},
        problems=(
            *_disabled(kernel),
            *chain.problems,
            *dict.fromkeys(_missing(kernel, used)),
            *dict.fromkeys(offers.conflicts(used)),
        ),
        warnings=(
            *selection.warnings,
            *dict.fromkeys(_undeclared(kernel, used)),
            *offers.warnings(settings),
            *chain.warnings,
        ),
        tool_calls=settings.tool_calls,
        fallback=tuple(chain.tables)[1:],
        requests_per_minute=chain.requests_per_minute,
        prices=chain.prices,
    )


_LIMITS = (
    "max_iterations",
    "max_execution_time_seconds",
    "max_tool_calls",
    "max_tokens",
    "max_cost",
    "tool_timeout_seconds",
)


def _plugins(selection: Selection) -> Iterable[ExplainedPlugin]:
    for plugin in selection.chosen:
        yield ExplainedPlugin(
            name=plugin.name, distribution=plugin.distribution, version=plugin.version, offers=plugin.offers
        )
    for record in selection.problems:
        yield ExplainedPlugin(
            name=record.name,
            distribution=record.owner.distribution,
            version=record.owner.version,
            status="refused",
            offers=record.declared,
            problem=str(record.error),
        )


def _disabled(kernel: Kernel) -> Iterable[str]:
    if not kernel.settings.ai.agents.enabled:
        yield f"agents are disabled: ai.agents.enabled is false, set in {kernel.loaded.origin('ai.agents.enabled')}"


@dataclass(frozen=True, slots=True)
class _Used:
    """A name in use, what kind of thing it stands for, and the key that holds it."""

    what: str
    entry: ExplainedName | ExplainedTool
    path: tuple[str, ...]

    def told(self, kernel: Kernel, problem: str, remedy: str) -> str:
        """Return a text that names the key, and where it was set, as errors do."""
        origin = kernel.loaded.origin_of(self.path)
        source = None if origin == BUILT_IN else origin
        return str(SettingsError(problem, key=dotted(self.path), source=source, remedy=remedy))


def _missing(kernel: Kernel, used: Iterable[_Used]) -> Iterable[str]:
    for one in used:
        if one.entry.known == "missing" and one.entry.name:
            yield one.told(kernel, f"no enabled plugin offers {one.what} {one.entry.name!r}", one.entry.hint)


def _undeclared(kernel: Kernel, used: Iterable[_Used]) -> Iterable[str]:
    for one in used:
        if one.entry.known == "after import" and one.entry.hint:
            yield one.told(kernel, f"no enabled plugin declares {one.what} {one.entry.name!r}", one.entry.hint)


class _Offers:
    """What the chosen plugins declare, by kind."""

    def __init__(self, kernel: Kernel, selection: Selection) -> None:
        self._kernel = kernel
        self._silent = any(not plugin.offers for plugin in selection.chosen) or bool(selection.given)
        self._any = bool(selection.chosen or selection.given)
        self._chosen = selection.chosen
        self._refused = selection.problems
        self._declared: dict[str, list[tuple[str, Owner]]] = {}
        (own,) = PluginHost(plugins=[(BUILTIN, builtin)]).load_given()
        for offer in own.offers.names if own.offers is not None else ():
            self._add(offer, BUILTIN, "")
        prefixes = {same_name(name): prefix for name, prefix in kernel.settings.plugins.prefix.items()}
        for plugin in selection.chosen:
            for offer in plugin.offers:
                self._add(offer, plugin.owner, prefixes.get(same_name(plugin.name), ""))

    def _add(self, offer: str, owner: Owner, prefix: str) -> None:
        kind, _, name = offer.partition(".")
        shown = prefixed(prefix, name) if kind == "tool" else name
        self._declared.setdefault(kind, []).append((shown, owner))

    def find(self, kind: Kind, name: str, options: Mapping[str, object]) -> ExplainedName:
        """Resolve a name that a profile uses."""
        shown: Any = masked(dict(options))
        for declared, owner in self._declared.get(kind, ()):
            if same_name(declared) == same_name(name):
                return ExplainedName(name=declared, known="declared", owner=owner, options=shown)
        known, hint = self._undeclared(kind, name)
        return ExplainedName(name=name, known=known, options=shown, hint=hint)

    def _undeclared(self, kind: Kind, name: str) -> tuple[Known, str]:
        hint = self._elsewhere(kind, name)
        if not hint and not self._silent:
            hint = did_you_mean(name, (declared for declared, _ in self._declared.get(kind, ())), what="declared")
        return ("after import" if self._any else "missing"), hint

    def _elsewhere(self, kind: Kind, name: str) -> str:
        for record in self._refused:
            if record.plugin is not None and _declares(record.plugin, kind, name):
                return str(record.error)
        for plugin in self._kernel.discovery.plugins:
            if plugin not in self._chosen and _declares(plugin, kind, name):
                return f"plugin {plugin.name!r} of {plugin.distribution} declares it: add it to plugins.enabled"
        return ""

    def tools(self, settings: AgentProfileSettings) -> Iterable[ExplainedTool]:
        """Decide each declared tool that the profile chooses, then what no declaration answers."""
        rules = _rules(settings)
        declared = sorted(self._declared.get("tool", ()), key=lambda entry: entry[0])
        for name, owner in declared:
            rule = decide(name, tools=settings.tools, **rules)
            if rule is not None:
                yield ExplainedTool(
                    name=name, decision=str(rule.decision), because=rule.because, known="declared", owner=owner
                )
        for wanted in settings.tools:
            if is_pattern(wanted):
                if self._silent:
                    yield ExplainedTool(name=wanted, decision="", because="a pattern", known="after import")
            elif not any(matches(wanted, name) for name, _ in declared):
                yield self._undeclared_tool(wanted, decide(wanted, tools=[wanted], **rules))

    def _undeclared_tool(self, name: str, rule: Any) -> ExplainedTool:
        known, hint = self._undeclared("tool", name)
        decision = "" if known == "missing" else str(rule.decision)
        return ExplainedTool(name=name, decision=decision, because=rule.because, known=known, hint=hint)

    def conflicts(self, used: Iterable[_Used]) -> Iterable[str]:
        """Tell which of the names in use several plugins declare; an agent with such a name can't be made."""
        for one in used:
            kind = {"agent type": "agent", "model provider": "llm"}.get(one.what, one.what)
            owners = [owner for name, owner in self._declared.get(kind, ()) if matches(name, one.entry.name)]
            if len(owners) > 1 and one.entry.owner == owners[0]:
                keys = " or ".join(f"plugins.prefix.{owner.plugin}" for owner in owners)
                remedy = f"set {keys} to rename one" if kind == "tool" else "enable only one of them"
                problem = f"{one.what} {one.entry.name!r} is declared by {' and by '.join(map(str, owners))}"
                yield one.told(self._kernel, problem, remedy)

    def warnings(self, settings: AgentProfileSettings) -> tuple[str, ...]:
        """Tell the rules and patterns that match nothing, where every plugin declares what it offers."""
        if self._silent:
            return ()
        names = [name for name, _ in self._declared.get("tool", ())]
        idle = [p for p in settings.tools if is_pattern(p) and not any(matches(p, name) for name in names)]
        return (
            *(f"tools names {pattern!r}, which matches no tool" for pattern in idle),
            *unmatched_rules(names, **_rules(settings)),
        )


def _rules(settings: AgentProfileSettings) -> dict[str, Any]:
    rules = settings.permissions
    if rules is None:
        return {}
    return {"allow": rules.allow, "ask": rules.ask, "deny": rules.deny}


def _declares(plugin: InstalledPlugin, kind: Kind, name: str) -> bool:
    return any(same_name(offer) == same_name(f"{kind}.{name}") for offer in plugin.offers)
