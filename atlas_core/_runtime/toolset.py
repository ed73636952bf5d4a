"""What one agent may call, worked out once, before its first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atlas_core.errors import UnknownToolError
from atlas_core.names import did_you_mean
from atlas_core.permissions import Decision, decide, is_pattern, matches, unmatched_rules

if TYPE_CHECKING:
    from atlas_core.interfaces.tools import Tool, ToolSchema
    from atlas_core.owner import Owner
    from atlas_core.settings.models import AgentProfileSettings
    from atlas_core.tools.arguments import Checked
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["OfferedTool", "Toolset", "build_toolset"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool an agent may call, with all that the hot path needs."""

    tool: Tool
    owner: Owner
    check: Callable[[str], Checked]
    build: Callable[[dict[str, Any]], dict[str, Any]]
    ask: str | None
    """Why a person must agree, or None."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """What an agent may call.

    Attributes:
        offered: By name, in name order; `ask` tools included.
        denied: Tools that a rule withholds, with the rule; their names are never shown to the model.
        schemas: What the model is told.
        warnings: Rules that mean no tool.
    """

    offered: Mapping[str, OfferedTool]
    denied: Mapping[str, str]
    schemas: tuple[ToolSchema, ...]
    warnings: tuple[str, ...] = ()


def build_toolset(registry: ToolRegistry, settings: AgentProfileSettings, *, granted: bool = False) -> Toolset:
    """Apply a profile's `tools` and `permissions` to what there is.

    Args:
        registry: What there is.
        settings: The profile.
        granted: The registry holds what an agent was granted, so that a profile without `tools` means all of it, and a
            name that is not in it is one that was not granted.
    Raises:
        UnknownToolError: `tools` names a tool, not a pattern, that is not there.
        ToolDefinitionError: A chosen tool's schema is broken.
    """
    names = tuple(registry.names)
    chosen = settings.tools or (("*",) if granted else ())
    for wanted in () if granted else chosen:
        if not is_pattern(wanted) and not any(matches(wanted, name) for name in names):
            raise UnknownToolError(
                f"the profile's tools name {wanted!r}, which no enabled plugin offers",
                tool=wanted,
                remedy=did_you_mean(wanted, names, what="on offer"),
            )
    rules = settings.permissions
    allow = rules.allow if rules is not None else None
    ask, deny = (rules.ask, rules.deny) if rules is not None else ((), ())
    warnings = [
        f"the profile's tools name {wanted!r}, which matches no tool"
        for wanted in settings.tools
        if not granted and is_pattern(wanted) and not any(matches(wanted, name) for name in names)
    ]
    warnings += list(unmatched_rules(names, allow=allow, ask=ask, deny=deny))
    offered: dict[str, OfferedTool] = {}
    denied: dict[str, str] = {}
    for name in names:
        tool = registry.get(name)
        rule = decide(name, tools=chosen, allow=allow, ask=ask, deny=deny, requires_approval=tool.requires_approval)
        if rule is None:
            continue
        if rule.decision is Decision.DENY:
            denied[name] = rule.because
            continue
        checker = registry.checker(name)
        warnings += [f"tool {name!r} of {registry.owner(name)}: {note}" for note in checker.unchecked]
        offered[name] = OfferedTool(
            tool,
            registry.owner(name),
            checker.check,
            tool.build_arguments,
            rule.because if rule.decision is Decision.ASK else None,
        )
    return Toolset(
        offered,
        denied,
        tuple(o.tool.schema for o in offered.values()),
        tuple(warnings),
    )
