"""What an agent may do: from a profile's `tools` and `permissions` to one decision for each tool.

`tools` chooses what is offered. `permissions`, where present, only narrows: effective = tools and allow, minus deny.
`ask`, or a tool's own `requires_approval`, turns allow into ask. Deny beats ask beats allow.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from atlas_core.names import tool_form

__all__ = ["Decision", "Rule", "decide", "is_pattern", "matches", "unmatched_rules"]


class Decision(enum.StrEnum):
    """Whether an agent may use a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """A decision and the setting it comes from, such as `permissions.deny: 'net.*'`."""

    decision: Decision
    because: str


def is_pattern(name: str) -> bool:
    """Whether a name in a list stands for more than itself."""
    return any(c in name for c in "*?[")


def matches(pattern: str, name: str) -> bool:
    """Whether a name or pattern means the tool `name`; `-` and `_` are equal, in any case."""
    if not is_pattern(pattern):
        return tool_form(pattern) == tool_form(name)
    if "[" in pattern:
        # Inside brackets a `-` is a range, so that only there the name's own spelling decides.
        return fnmatchcase(name.lower(), pattern.lower())
    return fnmatchcase(tool_form(name), tool_form(pattern))


def _first(patterns: Iterable[str], name: str) -> str | None:
    return next((p for p in patterns if matches(p, name)), None)


def decide(
    name: str,
    *,
    tools: Sequence[str],
    allow: Sequence[str] | None = None,
    ask: Sequence[str] = (),
    deny: Sequence[str] = (),
    requires_approval: bool = False,
) -> Rule | None:
    """Return the rule for one tool; None if `tools` does not choose it at all."""
    if _first(tools, name) is None:
        return None
    if (hit := _first(deny, name)) is not None:
        return Rule(Decision.DENY, f"permissions.deny: {hit!r}")
    if allow is not None and _first(allow, name) is None:
        return Rule(Decision.DENY, "permissions.allow does not name it")
    if (hit := _first(ask, name)) is not None:
        return Rule(Decision.ASK, f"permissions.ask: {hit!r}")
    if requires_approval:
        return Rule(Decision.ASK, "the tool requires approval")
    return Rule(Decision.ALLOW, f"tools: {_first(tools, name)!r}")


def unmatched_rules(
    names: Iterable[str],
    *,
    allow: Sequence[str] | None = None,
    ask: Sequence[str] = (),
    deny: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return a warning for each rule that means no tool there is; such a rule protects nothing."""
    known = tuple(names)
    return tuple(
        f"permissions.{key} names {pattern!r}, which matches no tool"
        for key, patterns in (("allow", allow or ()), ("ask", ask), ("deny", deny))
        for pattern in patterns
        if not any(matches(pattern, name) for name in known)
    )
