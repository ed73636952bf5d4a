"""The tools of one kernel, by name, with their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from atlas_core.errors import PluginConflictError, ToolDefinitionError, UnknownToolError
from atlas_core.interfaces.tools import AIToolProtocol, Tool, ToolSchema
from atlas_core.names import did_you_mean, nearest, prefixed, tool_form
from atlas_core.owner import Owner
from atlas_core.permissions import is_pattern, matches
from atlas_core.tools.arguments import ArgumentChecker
from atlas_core.tools.foreign import RenamedTool
from atlas_core.tools.function import as_tool
from atlas_core.tools.signature import place
from atlas_core.tools.tool_names import check_name

__all__ = ["ToolRegistry"]


@dataclass(frozen=True, slots=True)
class _Entry:
    tool: Tool
    owner: Owner
    checker: ArgumentChecker


class ToolRegistry:
    """Tools by name, each with who supplied it. One per kernel; iteration is in name order.

    Two names that differ only in case, or in `-` and `_`, are one name: settings could not tell them apart.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._forms: dict[str, str] = {}

    def register(
        self,
        tool: Tool | AIToolProtocol | Callable[..., Any],
        *,
        prefix: str | None = None,
        owner: Owner | None = None,
    ) -> str:
        """Add a tool.

        Args:
            tool: A tool, an object with a tool's four parts, or a typed function.
            prefix: Put before the name, with `_` between unless it ends in one of `_ - . : /`.
            owner: Who supplies it; the program itself if left out.
        Returns:
            The name it has here.
        Raises:
            ToolDefinitionError: It can't be a tool as it stands, or its schema is faulty.
            PluginConflictError: The name is taken.
        """
        owner = owner or Owner()
        made = as_tool(tool)
        name = _checked_name(made)
        if prefix:
            name = prefixed(prefix, name)
            made = RenamedTool(made, name)
        self._refuse_taken(name, owner)
        lenient = not getattr(made, "strict_arguments", False)
        checker = ArgumentChecker(made.schema, f"tool {name!r} of {owner}", lenient=lenient)
        self._entries[name] = _Entry(made, owner, checker)
        self._forms[tool_form(name)] = name
        return name

    def _refuse_taken(self, name: str, owner: Owner) -> None:
        other = self._forms.get(tool_form(name))
        if other is None:
            return
        first = self._entries[other].owner
        alike = "" if other == name else f", as {other!r} and {name!r}"
        if first == owner:
            problem, remedy = f"tool {name!r} is offered twice by {owner}{alike}", "rename one"
        else:
            problem = f"tool {name!r} is offered by both {first} and {owner}{alike}"
            remedy = "give one a prefix: register(..., prefix='...'), or plugins.prefix in the settings"
        raise PluginConflictError(
            problem, name=name, owners=(str(first), str(owner)), plugin=owner.plugin or None, remedy=remedy
        )

    def unregister(self, name: str) -> Tool:
        """Remove a tool and return it.

        Raises:
            UnknownToolError: There is none of that name.
        """
        entry = self._entry(name)
        del self._entries[name]
        del self._forms[tool_form(name)]
        return entry.tool

    def get(self, name: str) -> Tool:
        """Return the tool of exactly that name.

        Raises:
            UnknownToolError: There is none; `.suggestions` has the nearest names.
        """
        return self._entry(name).tool

    def owner(self, name: str) -> Owner:
        """Return who supplied a tool.

        Raises:
            UnknownToolError: There is none of that name.
        """
        return self._entry(name).owner

    def checker(self, name: str) -> ArgumentChecker:
        """Return the checker of a tool's arguments, built when it was registered.

        Raises:
            UnknownToolError: There is none of that name.
        """
        return self._entry(name).checker

    def find(self, name: str) -> str | None:
        """Return the name under which a tool is registered; case, and `-` or `_`, make no difference."""
        return name if name in self._entries else self._forms.get(tool_form(name))

    def subset(self, names: Iterable[str]) -> ToolRegistry:
        """Return a registry of its own with the tools of exactly these names, their owners and checkers.

        Raises:
            UnknownToolError: There is none of such a name.
        """
        part = ToolRegistry()
        part._entries = {name: self._entry(name) for name in names}
        part._forms = {tool_form(name): name for name in part._entries}
        return part

    def select(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools that names or patterns (`*`, `?`, `[abc]`) choose, each once, in name order.

        Names compare with `-` equal to `_` and in any case; a pattern may match nothing.

        Raises:
            UnknownToolError: A name without wildcard is not registered.
        """
        chosen: set[str] = set()
        for name in names:
            found = [known for known in self._entries if matches(name, known)]
            if not found and not is_pattern(name):
                raise self._unknown(name)
            chosen.update([name] if name in found else found)
        return [self._entries[name].tool for name in sorted(chosen)]

    def _entry(self, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise self._unknown(name)
        return entry

    def _unknown(self, name: str) -> UnknownToolError:
        shown = name if len(name) <= 100 else name[:97] + "..."
        return UnknownToolError(
            f"there is no tool {shown!r}",
            tool=shown,
            suggestions=nearest(shown, self._entries),
            remedy=did_you_mean(shown, self._entries, what="registered"),
        )

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def __iter__(self) -> Iterator[Tool]:
        return iter([self._entries[name].tool for name in sorted(self._entries)])

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"ToolRegistry({self.names})"


def _checked_name(tool: Tool) -> str:
    """Return a tool's name after looking at what its author may have got wrong."""
    where = place(type(tool))
    name = check_name(tool.name, owner=where)
    schema: object = tool.schema
    if not isinstance(schema, ToolSchema):
        raise ToolDefinitionError(
            f"tool {name!r} has an object of type {type(schema).__name__} as its schema",
            tool=name,
            owner=where,
            remedy="return a ToolSchema",
        )
    if schema.name != name:
        raise ToolDefinitionError(
            f"tool {name!r} calls itself {schema.name!r} in its schema", tool=name, owner=where, remedy="use one name"
        )
    return name
