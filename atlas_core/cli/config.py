"""`atlas config`: what is in force, why, and whether it is right."""

import copy
import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_core.cli.options import EnvOption, JsonOption, SettingsOption
from atlas_core.cli.output import fail, say, say_json, warn
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import AtlasError, PluginConflictError, SettingsError
from atlas_core.names import did_you_mean, find_name, same_name

if TYPE_CHECKING:
    from atlas_core.catalog import Catalog
    from atlas_core.kernel import Kernel
    from atlas_core.settings.loaded import LoadedSettings

__all__ = ["app"]

app = typer.Typer(help="Look at the settings and check them.", no_args_is_help=True, rich_markup_mode=None)


def _load(settings: SettingsOption, env: EnvOption) -> "LoadedSettings":
    from atlas_core.settings.loader import load_settings

    loaded = load_settings(settings, env=env)
    for text in loaded.warnings:
        warn(text)
    return loaded


@app.command("show")
def show(*, as_json: JsonOption = False, settings: SettingsOption = None, env: EnvOption = None) -> int:
    """Show everything that is in force, and where each value was set. Secrets are masked."""
    loaded = _load(settings, env)
    if as_json:
        rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in loaded.effective()]
        say_json({"environment": loaded.environment, "files": [str(f) for f in loaded.files], "settings": rows})
        return ExitStatus.OK
    say(f"# environment {loaded.environment}; files: {', '.join(map(str, loaded.files)) or 'none'}")
    for key, value, origin in loaded.effective():
        say(f"{key} = {_shown(value)}  # {origin}")
    return ExitStatus.OK


@app.command("explain")
def explain(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A dotted key, such as ai.agents.default_profile.")],
    *,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Tell the value of a key, or of all keys of a table, and which file and line or variable set it."""
    loaded = _load(settings, env)
    path = loaded.path_of(key)
    from atlas_core.settings.toml_lines import dotted, split_key

    rows = [row for row in loaded.effective() if tuple(split_key(row[0]))[: len(path)] == path]
    if not rows:
        say(f"{dotted(path)} is not set: {loaded.origin(key)}")
    for name, value, origin in rows:
        say(f"{name} = {_shown(value)}")
        say(f"  set in {origin}" if origin != "built-in default" else "  built-in default")
    return ExitStatus.OK


def _shown(value: object) -> str:
    """Return a value as TOML writes it."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


@app.command("check")
def check(*, settings: SettingsOption = None, env: EnvOption = None) -> int:
    """Check everything: values, names, the tables of plugins, every profile. All enabled plugins are imported.

    Exit status: 0 if all is right, 2 if not; each problem is told on standard error.
    """
    from atlas_core.cli.sessions import make_kernel

    kernel = make_kernel(settings, env)
    problems = list(dict.fromkeys(str(error) for error in _problems(kernel)))
    for text in (*kernel.discovery.problems, *kernel.loaded.warnings, *dict.fromkeys(_warnings(kernel))):
        if text not in problems:
            warn(text)
    for text in problems:
        fail(text)
    if problems:
        return ExitStatus.USAGE
    profiles = ", ".join(sorted(_own_profiles(kernel)))
    say(f"the settings are right: environment {kernel.loaded.environment}, profiles: {profiles}")
    return ExitStatus.OK


def _problems(kernel: "Kernel") -> Iterator[AtlasError]:
    """Yield what is wrong, one profile after another; one problem hides no other."""
    yield from kernel.loaded.problems()
    yield from _owners_without_plugin(kernel)
    kernel = _without_orphans(kernel)
    catalogs = []
    for profile in (None, *_own_profiles(kernel)):
        try:
            catalogs.append(kernel.catalog(profile))
            if profile is not None:
                kernel.agent(profile)
        except AtlasError as exc:
            yield _placed(kernel, profile, exc)
    for catalog in catalogs:
        yield from (record.error for record in catalog.failed if record.error is not None)
    yield from _unused_connections(kernel, catalogs)


def _placed(kernel: "Kernel", profile: str | None, error: AtlasError) -> AtlasError:
    """Return an error with the key that holds the name which several plugins offer, and where that was set."""
    if not isinstance(error, PluginConflictError) or error.owner or profile is None:
        return error
    from atlas_core.permissions import matches
    from atlas_core.settings.toml_lines import dotted

    _, settings = kernel.loaded.profile(profile)
    where = ("ai", "agents", "profiles", "connections", profile)
    backends = [
        (("ai", "connections", name, "backend"), [connection.backend])
        for name, connection in kernel.settings.ai.connections.items()
        if same_name(name) == same_name(settings.connection_name)
    ]
    named = [
        ((*where, "tools"), settings.tools),
        ((*where, "type"), [settings.type]),
        ((*where, "executor"), [settings.executor.name]),
        *backends,
    ]
    placed = copy.copy(error)
    for path, names in named:
        if any(matches(name, error.name) for name in names):
            placed.owner = f"key {dotted(path)}, set in {kernel.loaded.origin_of(path)}"
            break
    return placed


def _own_profiles(kernel: "Kernel") -> list[str]:
    """Return the profiles that the user wrote, or that are the default; a built-in one that nobody uses may rest."""
    agents = kernel.settings.ai.agents
    default = find_name(agents.default_profile, agents.profiles.connections)
    return [
        name
        for name in agents.profiles.connections
        if name == default or _is_set(kernel, ("ai", "agents", "profiles", "connections", name))
    ]


def _is_set(kernel: "Kernel", path: tuple[str, ...]) -> bool:
    from atlas_core.settings.toml_lines import split_key

    return any(
        origin != "built-in default" and tuple(split_key(key))[: len(path)] == path
        for key, _, origin in kernel.loaded.effective()
    )


def _orphans(kernel: "Kernel", table: str) -> list[str]:
    """Return the names in a table of `plugins` that are no installed plugin's."""
    known = {same_name(plugin.name) for plugin in kernel.discovery.plugins}
    return [name for name in getattr(kernel.settings.plugins, table) if same_name(name) not in known]


def _owners_without_plugin(kernel: "Kernel") -> Iterator[SettingsError]:
    for table in ("options", "prefix"):
        for name in _orphans(kernel, table):
            key = f"plugins.{table}.{name}"
            yield SettingsError(
                f"plugin {name!r} is not installed",
                key=key,
                source=kernel.loaded.origin(key),
                remedy=did_you_mean(name, (plugin.name for plugin in kernel.discovery.plugins), what="installed"),
            )


def _without_orphans(kernel: "Kernel") -> "Kernel":
    """Return a kernel without the tables that would keep every agent from being made."""
    from atlas_core.kernel import Kernel

    plugins = kernel.settings.plugins
    kept = {
        table: {key: value for key, value in getattr(plugins, table).items() if key not in _orphans(kernel, table)}
        for table in ("options", "prefix")
    }
    settings = kernel.settings.model_copy(update={"plugins": plugins.model_copy(update=kept)})
    return Kernel(dataclasses.replace(kernel.loaded, settings=settings))


def _unused_connections(kernel: "Kernel", catalogs: "list[Catalog]") -> Iterator[AtlasError]:
    """Yield what is wrong with connections that no profile uses, as far as their provider is enabled anywhere."""
    profiles = kernel.settings.ai.agents.profiles.connections.values()
    used = {same_name(profile.connection_name) for profile in profiles}
    for name, connection in kernel.settings.ai.connections.items():
        if same_name(name) in used or not _is_set(kernel, ("ai", "connections", name)):
            continue
        offering = (c for c in catalogs if any(same_name(p) == same_name(connection.backend) for p in c.llm_providers))
        catalog = next(offering, None)
        if catalog is None:
            continue
        try:
            kernel.llms.get(name, catalog=catalog)
        except AtlasError as exc:
            yield exc


def _warnings(kernel: "Kernel") -> Iterator[str]:
    from atlas_core.permissions import unmatched_rules

    for name in _own_profiles(kernel):
        profile = kernel.loaded.profile(name)[1]
        try:
            catalog = kernel.catalog(name)
        except AtlasError:
            continue
        if catalog.tool_providers:
            continue  # what they offer is known after start
        names = [offer.name for offer in catalog.tools]
        texts = [f"tools names {pattern!r}, which matches no tool" for pattern in _idle(profile.tools, names)]
        if rules := profile.permissions:
            texts += unmatched_rules(names, allow=rules.allow, ask=rules.ask, deny=rules.deny)
        for text in texts:
            yield f"profile {name!r}: {text}"


def _idle(wanted: Iterable[str], names: list[str]) -> list[str]:
    """Return the patterns that match nothing; a name that is no pattern is an error already."""
    from atlas_core.permissions import is_pattern, matches

    return [pattern for pattern in wanted if is_pattern(pattern) and not any(matches(pattern, n) for n in names)]
