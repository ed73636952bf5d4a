"""Which of the installed plugins a profile gets: chosen by name, in settings; nothing is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atlas_core.catalog import PluginRecord
from atlas_core.discovery import Discovery, conflict
from atlas_core.errors import PluginLoadError, SettingsError
from atlas_core.names import did_you_mean, same_name

if TYPE_CHECKING:
    from atlas_core.metadata import InstalledPlugin

__all__ = ["Selection", "select_enabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a choice of plugins comes to.

    Attributes:
        chosen: The plugins to load, in name order.
        disabled: The installed plugins that are switched off by name; none of them may be imported.
        given: Names of the plugins that the program gave directly and nobody disabled.
        problems: Records of the plugins that were asked for and can't be loaded, for the profile's catalogue.
        warnings: One sentence for each setting that has no effect.
    """

    chosen: tuple[InstalledPlugin, ...] = ()
    disabled: tuple[InstalledPlugin, ...] = ()
    given: tuple[str, ...] = ()
    problems: tuple[PluginRecord, ...] = ()
    warnings: tuple[str, ...] = ()


def select_enabled(
    discovery: Discovery,
    enabled: str | Iterable[str] = (),
    enable: str | Iterable[str] = (),
    disable: str | Iterable[str] = (),
    *,
    given: Iterable[str] = (),
    enabled_key: str = "plugins.enabled",
    profile_key: str = "plugins",
    source_of: Callable[[str], str | None] | None = None,
) -> Selection:
    """Choose plugins: those enabled, and those that the profile enables, without those it disables.

    Names compare with `-`, `_` and `.` equal and in any case; `name@distribution` settles which of two is meant. A
    single text is one name. Disabling beats enabling. A plugin whose distribution requires that of a disabled one
    is refused as well, since importing it would import the other.

    Args:
        discovery: What is installed.
        enabled: The environment's `plugins.enabled`.
        enable: The profile's `plugins.enable`.
        disable: The profile's `plugins.disable`.
        given: Names of the plugins that the program gave directly; they count as enabled.
        enabled_key: Key of `enabled`, for errors.
        profile_key: Key of the table that holds `enable` and `disable`, for errors.
        source_of: Tells where a key was set: `settings.toml:3`, or a variable's name; None if unknown.

    Raises:
        SettingsError: An enabled plugin is not installed.
    """
    where = source_of or _unknown_source
    given, off = list(given), _names(disable)
    known = {same_name(name) for name in [*given, *off]}
    wanted: list[InstalledPlugin] = []
    asked = [(n, enabled_key) for n in _names(enabled)] + [(n, f"{profile_key}.enable") for n in _names(enable)]
    for name, key in asked:
        found = discovery.named(name)
        if not found and same_name(name) not in known:
            remedy = discovery.suggestion(name)
            raise SettingsError(f"plugin {name!r} is not installed", key=key, source=where(key), remedy=remedy)
        settled = [p for p in found if any(p in discovery.named(n) for n, _ in asked if "@" in n)]
        wanted.extend(p for p in settled or found if p not in wanted)
    disabled = {plugin for name in off for plugin in discovery.named(name)}
    chosen, problems = _settle([p for p in wanted if p not in disabled], discovery, disabled)
    return Selection(
        chosen=tuple(p for p in discovery.plugins if p in chosen),
        disabled=tuple(p for p in discovery.plugins if p in disabled),
        given=tuple(name for name in given if same_name(name) not in {same_name(n) for n in off}),
        problems=tuple(sorted(problems, key=lambda record: (same_name(record.name), record.owner.distribution))),
        warnings=tuple(_warnings(discovery, off, given, f"{profile_key}.disable", where)),
    )


def _names(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _unknown_source(key: str) -> str | None:
    return None


def _warnings(
    discovery: Discovery, names: list[str], given: list[str], key: str, where: Callable[[str], str | None]
) -> Iterable[str]:
    known = [*given, *(p.name for p in discovery.plugins)]
    for name in names:
        if not discovery.named(name) and same_name(name) not in map(same_name, given):
            source = where(key)
            place = f"key {key}, set in {source}" if source else f"key {key}"
            hint = did_you_mean(name.partition("@")[0], known, what="installed")
            yield f"plugin {name!r} is disabled and not installed ({place}); {hint}"


def _settle(
    wanted: list[InstalledPlugin], discovery: Discovery, disabled: set[InstalledPlugin]
) -> tuple[set[InstalledPlugin], list[PluginRecord]]:
    chosen: set[InstalledPlugin] = set()
    problems: list[PluginRecord] = []
    for plugin in wanted:
        rivals = [other for other in wanted if same_name(other.name) == same_name(plugin.name)]
        error = conflict(rivals) if len(rivals) > 1 else _needs_disabled(plugin, discovery, disabled)
        if error is None:
            chosen.add(plugin)
        else:
            problems.append(PluginRecord(owner=plugin.owner, plugin=plugin, status="failed", error=error))
    return chosen, problems


def _needs_disabled(
    plugin: InstalledPlugin, discovery: Discovery, disabled: set[InstalledPlugin]
) -> PluginLoadError | None:
    for other in sorted(disabled, key=str):
        siblings = [p for p in discovery.plugins if same_name(p.distribution) == same_name(other.distribution)]
        wholly = all(p in disabled for p in siblings) and same_name(other.distribution) != same_name(
            plugin.distribution
        )
        if wholly and same_name(other.distribution) in plugin.requires:
            return PluginLoadError(
                f"plugin {plugin.name!r} requires {other.distribution!r}, whose plugin {other.name!r} is disabled",
                plugin=plugin.name,
                distribution=plugin.distribution,
                version=plugin.version,
                entry_point=plugin.entry_point,
                owner=str(plugin.owner),
                remedy=f"disable {plugin.name!r} too, or don't disable {other.name!r}",
            )
    return None
