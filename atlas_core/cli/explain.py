"""`atlas explain`: what a profile is put together from and what its agent may do."""

from typing import TYPE_CHECKING, Annotated

import typer

from atlas_core.cli.options import EnvOption, JsonOption, SettingsOption
from atlas_core.cli.output import say, say_json, say_table, warn
from atlas_core.cli.status import ExitStatus

if TYPE_CHECKING:
    from atlas_core.explain import ExplainedName, ExplainedTool, Explanation

__all__ = ["explain"]


def explain(
    profile: Annotated[
        str | None, typer.Argument(metavar="[PROFILE]", help="Agent profile; else the default profile.")
    ] = None,
    *,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Tell what an agent is made of and may do.

    Plugins, agent type, connection, executor, limits, and each tool with the rule that decides on it. No plugin is
    imported: what metadata does not declare is "known after import".

    Exit status: 0 if it can run as far as metadata tells, 2 if not.
    """
    from atlas_core.cli.sessions import make_kernel
    from atlas_core.explain import explain as explain_profile

    kernel = make_kernel(settings, env)
    found = explain_profile(kernel, profile)
    for text in (*kernel.discovery.problems, *kernel.warnings):
        warn(text)
    if as_json:
        say_json(found.to_dict())
    else:
        _draw(found)
    return ExitStatus.USAGE if found.problems else ExitStatus.OK


def _draw(found: "Explanation") -> None:
    say(f"profile {found.profile}" + (f": {found.description}" if found.description else ""))
    say(f"  environment  {found.environment}" + (f", from {', '.join(found.files)}" if found.files else ""))
    say(f"  agent type   {_named(found.agent_type)}")
    model = f", model {found.model}" if found.model else ""
    say(f"  connection   {found.connection or 'none'}: provider {_named(found.provider)}{model}")
    for name, is_set in found.variables.items():
        say(f"               variable {name} is {'set' if is_set else 'NOT set'}")
    if found.fallback:
        say(f"  fallback     {', '.join(found.fallback)}")
    for name, rate in found.requests_per_minute.items():
        say(f"  rate         {name}: {rate:g} requests a minute")
    for name, prices in found.prices.items():
        each = ", ".join(f"{key} {price:g}" for key, price in prices.items())
        say(f"  prices       {name}: {each}, per million tokens")
    if found.tool_calls != "auto":
        say(f"  tool calls   {found.tool_calls}")
    say(f"  executor     {_named(found.executor)}")
    limits = [f"{name} = {value:g}" for name, value in found.limits.items() if value is not None]
    say(f"  limits       {', '.join(limits) or 'none'}")
    say("plugins")
    rows = [(f"  {p.name}", f"{p.distribution} {p.version}", p.problem or _offers(p.offers)) for p in found.plugins]
    if rows:
        say_table(("  NAME", "DISTRIBUTION", "OFFERS"), rows)
    else:
        say("  none")
    if found.disabled:
        say(f"  switched off: {', '.join(found.disabled)}")
    say("tools")
    if found.tools:
        say_table(("  NAME", "DECISION", "BECAUSE", "FROM"), [_tool(tool) for tool in found.tools])
    else:
        say("  none")
    for label, texts in (("problem", found.problems), ("warning", found.warnings)):
        for text in texts:
            say(f"{label}: {text}")


def _named(entry: "ExplainedName") -> str:
    if entry.owner is not None:
        return f"{entry.name} ({entry.owner})"
    return f"{entry.name} ({'known after import' if entry.known == 'after import' else 'on offer from nobody'})"


def _offers(offers: tuple[str, ...]) -> str:
    return ", ".join(offers) or "known after import"


def _tool(tool: "ExplainedTool") -> tuple[str, str, str, str]:
    origin = str(tool.owner) if tool.owner is not None else "known after import"
    return f"  {tool.name}", tool.decision or "?", tool.because, origin if tool.known != "missing" else "nobody"
