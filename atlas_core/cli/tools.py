"""`atlas tools`: what the tools of a profile's plugins are, and calling one by hand."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_core.cli.options import EnvOption, JsonOption, ProfileOption, SettingsOption, claim_output, read_input
from atlas_core.cli.output import fail, say, say_json, say_table, say_value, warn
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import UnknownToolError
from atlas_core.names import did_you_mean, find_name

if TYPE_CHECKING:
    from atlas_core.catalog import Catalog
    from atlas_core.interfaces.executors import Outcome
    from atlas_core.interfaces.tools import Tool
    from atlas_core.kernel import Kernel
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["app"]

app = typer.Typer(help="List tools, look at one, call one.", no_args_is_help=True, rich_markup_mode=None)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]


@app.command("list")
def list_tools(
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """List all tools that the enabled plugins offer, and whether the profile's agent may use them."""
    from atlas_core.cli.running import Interruptible

    async def collect() -> list[dict[str, object]]:
        async with _opened(profile, settings, env) as (kernel, registry):
            _, rules = kernel.loaded.profile(profile)
            return [_facts(registry, name, _decision(rules, registry.get(name))) for name in registry.names]

    with Interruptible() as loop:
        found = loop.run(collect)
    if as_json:
        say_json(found)
    elif found:
        rows = [[str(tool[key]) for key in ("name", "decision", "effects", "plugin", "summary")] for tool in found]
        say_table(("NAME", "DECISION", "EFFECTS", "PLUGIN", "WHAT IT DOES"), rows)
    else:
        say("no enabled plugin offers a tool")
    return ExitStatus.OK


@app.command("show")
def show(
    name: _Name,
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Show a tool as a model sees it: description and JSON Schema."""
    from atlas_core.cli.running import Interruptible

    async def look() -> dict[str, object]:
        async with _opened(profile, settings, env) as (kernel, registry):
            _, rules = kernel.loaded.profile(profile)
            tool = _find(registry, name)
            facts = _facts(registry, tool.name, _decision(rules, tool))
            schema = tool.schema
            return {
                **facts,
                "description": schema.description,
                "parameters": _plain(schema.parameters),
                "returns": _plain(schema.returns),
                "examples": [example.question for example in schema.hints.examples] if schema.hints else [],
            }

    with Interruptible() as loop:
        found = loop.run(look)
    if as_json:
        say_json(found)
        return ExitStatus.OK
    say(f"{found['name']} (plugin {found['plugin']} of {found['distribution']})")
    say(str(found["description"]))
    for key in ("decision", "effects", "timeout_s", "requires_approval", "examples"):
        if found[key] not in (None, []):
            say(f"{key.replace('_', ' ')}: {found[key]}")
    for key in ("parameters", "returns"):
        if found[key] is not None:
            say(f"{key}: {json.dumps(found[key], indent=2, ensure_ascii=False)}")
    return ExitStatus.OK


@app.command("call")
def call(
    name: _Name,
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="The arguments, a JSON object; - reads standard input.")
    ] = "{}",
    *,
    profile: ProfileOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Call a tool of the enabled plugins and print its result, as a model would see it.

    What the tool prints by itself goes to standard error.

    The arguments are checked as a model's are. Agents' permissions don't apply: you call it, not an agent.

    Exit status: 0 it returned, 1 it failed, 2 there is no such tool or the arguments don't fit.
    """
    from atlas_core.cli.running import Interruptible
    from atlas_core.tools.results import encode_result

    claim_output(True)
    text = read_input("[JSON]") if arguments == "-" else arguments
    with Interruptible() as loop:
        outcome = loop.run(lambda: _call(name, text, profile, settings, env))
    if not outcome.ok:
        fail(f"tool {name!r}: {str(outcome.status).replace('_', ' ')}: {outcome.error}")
        return ExitStatus.USAGE if outcome.status == "invalid_arguments" else ExitStatus.FAILED
    encoded = encode_result(outcome.value, max_chars=sys.maxsize).text
    say_value(encoded)
    return ExitStatus.OK


async def _call(name: str, text: str, profile: str | None, settings: Path | None, env: str | None) -> "Outcome":
    from atlas_core.executors.sync import SyncToolExecutor
    from atlas_core.messages import ToolCall

    async with _opened(profile, settings, env) as (_, registry):
        tool = _find(registry, name)
        executor = SyncToolExecutor(registry)
        try:
            prepared = executor.prepare([ToolCall(id="call_1", name=tool.name, arguments_json=text)])
            (outcome,) = await executor.execute_batch(prepared)
        finally:
            await executor.stop()
            await tool.stop()
        return outcome


@asynccontextmanager
async def _opened(
    profile: str | None, settings: Path | None, env: str | None
) -> "AsyncIterator[tuple[Kernel, ToolRegistry]]":
    """Open a kernel and give all tools of a profile's plugins, those of tool providers included."""
    from atlas_core.cli.sessions import make_kernel, running_kernel, tell_warnings
    from atlas_core.tools.registry import ToolRegistry

    async with running_kernel(make_kernel(settings, env)) as kernel:
        key, _ = kernel.loaded.profile(profile)
        catalog = kernel.catalog(key)
        tell_warnings(kernel)
        registry = ToolRegistry()
        for offer in catalog.tools:
            registry.register(offer.value, prefix=offer.prefix or None, owner=offer.owner)
        for contested in catalog.contested("tool"):
            warn(f"tool {contested!r} is offered by several plugins and can't be used; see plugins.prefix")
        async with _provided(catalog, registry):
            yield kernel, registry


@asynccontextmanager
async def _provided(catalog: "Catalog", registry: "ToolRegistry") -> AsyncIterator[None]:
    """Start the tool providers and register what they offer; one that fails is a warning."""
    started = []
    try:
        for offer in catalog.tool_providers:
            started.append(offer.value)
            try:
                await offer.value.start()
                for tool in await offer.value.tools():
                    registry.register(tool, prefix=offer.prefix or None, owner=offer.owner)
            except Exception as exc:  # noqa: BLE001  # a foreign source, and the other tools work without it
                warn(f"tool provider {offer.name!r} of {offer.owner} failed: {type(exc).__name__}: {exc}")
        yield
    finally:
        for provider in reversed(started):
            try:
                await provider.stop()
            except Exception as exc:  # noqa: BLE001  # as above
                warn(f"tool provider {type(provider).__name__!r} did not stop: {type(exc).__name__}: {exc}")


def _find(registry: "ToolRegistry", name: str) -> "Tool":
    known = {known: known for known in registry.names}
    found = find_name(name, known)
    if found is None:
        remedy = did_you_mean(name, known, what="on offer")
        raise UnknownToolError(f"no enabled plugin offers a tool {name!r}", tool=name, remedy=remedy)
    return registry.get(found)


def _decision(profile: object, tool: "Tool") -> str:
    from atlas_core.permissions import decide
    from atlas_core.settings.models import AgentProfileSettings

    assert isinstance(profile, AgentProfileSettings)  # noqa: S101  # what the settings hold
    rules = profile.permissions
    rule = decide(
        tool.name,
        tools=profile.tools,
        allow=rules.allow if rules is not None else None,
        ask=rules.ask if rules is not None else (),
        deny=rules.deny if rules is not None else (),
        requires_approval=tool.requires_approval,
    )
    return str(rule.decision) if rule is not None else "not chosen"


def _facts(registry: "ToolRegistry", name: str, decision: str) -> dict[str, object]:
    tool, owner = registry.get(name), registry.owner(name)
    return {
        "name": name,
        "summary": tool.description.strip().partition("\n")[0],
        "decision": decision,
        "effects": tool.effects,
        "timeout_s": tool.timeout_s,
        "requires_approval": tool.requires_approval,
        "plugin": owner.plugin,
        "distribution": owner.distribution,
    }


def _plain(schema: object) -> object:
    """Return a schema as plain JSON values, whatever mappings it is made of."""
    return json.loads(json.dumps(schema, default=lambda value: dict(value) if hasattr(value, "keys") else list(value)))
