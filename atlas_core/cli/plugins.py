"""`atlas plugins`: what is installed, what is enabled, and what is broken."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from atlas_core.cli.options import EnvOption, JsonOption, ProfileOption, SettingsOption
from atlas_core.cli.output import say, say_json, say_table, warn
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import PluginError, SettingsError
from atlas_core.names import same_name

if TYPE_CHECKING:
    from pathlib import Path

    from atlas_core.catalog import PluginRecord

__all__ = ["app"]

app = typer.Typer(help="List plugins and look at one.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_plugins(
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """List the installed plugins; those that are enabled are loaded, each by itself, the others are not imported.

    A broken one is listed with the reason and changes nothing else. Without settings that can be read the plugins
    are listed from metadata alone.
    """
    rows = [_facts(record) for record in _records(profile, settings, env)]
    if as_json:
        say_json(rows)
        return ExitStatus.OK
    if not rows:
        say("no plugin is installed")
        return ExitStatus.OK
    say_table(
        ("NAME", "STATUS", "DISTRIBUTION", "OFFERS"),
        [
            (row["name"], row["status"], f"{row['distribution']} {row['version']}".strip(), ", ".join(row["offers"]))
            for row in rows
        ],
    )
    for row in rows:
        if row["error"]:
            say(f"{row['name']}: {row['error']}")
    return ExitStatus.OK


@app.command("info")
def info(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name, or name@distribution.")],
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Tell all about one plugin; it is imported only if it is enabled."""
    records = _records(profile, settings, env)
    wanted, _, distribution = name.partition("@")
    found = [
        _facts(record)
        for record in records
        if same_name(record.name) == same_name(wanted)
        and (not distribution or same_name(record.owner.distribution) == same_name(distribution))
    ]
    if not found:
        from atlas_core.names import did_you_mean

        remedy = did_you_mean(wanted, (record.name for record in records), what="installed")
        raise SettingsError(f"plugin {name!r} is not installed", remedy=remedy)
    if as_json:
        say_json(found)
        return ExitStatus.OK
    for number, facts in enumerate(found):
        if number:
            say()
        _draw(facts)
    return ExitStatus.OK


def _draw(facts: dict[str, Any]) -> None:
    for key, value in facts.items():
        if key == "cause":
            continue
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        if shown:
            say(f"{key.replace('_', ' '):13} {shown}")
    if facts["cause"]:
        say("cause")
        say(facts["cause"].rstrip())


def _records(profile: str | None, settings: "Path | None", env: str | None) -> "list[PluginRecord]":
    """Return a record for each plugin, the kernel's own left out; loads those that are enabled."""
    from atlas_core.catalog import PluginRecord
    from atlas_core.cli.sessions import make_kernel
    from atlas_core.discovery import scan

    try:
        kernel = make_kernel(settings, env)
        discovery = kernel.discovery
        kernel.catalog(profile)
        for text in kernel.loaded.warnings:
            warn(text)
        records = [record for record in kernel.records if record.plugin is not None]
    except SettingsError as exc:
        if profile is not None and "profile" in exc.problem:
            raise
        # What is installed must be seen to repair a settings file that names something else.
        warn(f"listed from metadata alone, since the settings can't be used: {exc}")
        discovery = scan()
        records = [PluginRecord(owner=plugin.owner, plugin=plugin) for plugin in discovery.plugins]
    for text in discovery.problems:
        warn(text)
    return records


_STATUS = {"loaded": "enabled", "failed": "broken", "not loaded": "not enabled"}


def _facts(record: "PluginRecord") -> dict[str, Any]:
    plugin, error = record.plugin, record.error
    offered = list(record.offers.names) if record.offers is not None else []
    return {
        "name": record.name,
        "status": _STATUS[record.status],
        "distribution": record.owner.distribution,
        "version": record.owner.version,
        "entry_point": plugin.entry_point if plugin is not None else "",
        "location": plugin.location if plugin is not None else "",
        "editable": plugin is not None and plugin.editable,
        "declared": list(record.declared),
        "offers": offered or list(record.declared),
        "import_time_s": round(record.import_time_s, 4),
        "error": str(error) if error is not None else "",
        "cause": error.cause if isinstance(error, PluginError) else "",
    }
