"""Which names a tool may have, and which of them are too alike to live in one registry."""

from __future__ import annotations

import re

from atlas_core.errors import ToolDefinitionError

__all__ = ["check_name"]

# ASCII only: Unicode has letters that look alike, and a rule about `delete` must mean the tool that people see.
# The signs are those of the Model Context Protocol (2025-11-25: letters, digits, `_`, `-`, `.`), and `/`, `:` and
# single spaces, which servers use as well. `*`, `?` and `[` stay out, as they make a pattern of a name.
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.:/-]| (?! |$)){0,127}", re.ASCII)


def check_name(name: object, *, owner: str | None = None) -> str:
    """Return a tool's name, if it is one.

    Args:
        name: The name.
        owner: Where it comes from, for the error.
    Raises:
        ToolDefinitionError: It is no text, empty, longer than 128 characters, or has a character outside
            `A-Z a-z 0-9 _ - . : /` and single inner spaces.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    shown = repr(name) if len(repr(name)) <= 80 else repr(name)[:77] + "..."
    raise ToolDefinitionError(
        f"tool name {shown} is not usable",
        tool=name if isinstance(name, str) else None,
        owner=owner,
        remedy="use 1 to 128 of A-Z a-z 0-9 _ - . : / (and single inner spaces), a letter, digit or _ first",
    )
