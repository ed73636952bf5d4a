"""Writes api.md, the list of public names, from the docstrings: `python docs/reference/api.py` (`--print` to look)."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from itertools import pairwise
from pathlib import Path

import atlas_core

HEAD = """# Public names

Everything here is imported as `from atlas_core import NAME`; a name loads when it is first used. The docstrings hold
the details: `help(atlas_core.NAME)`. This page is made from them by `python docs/reference/api.py`.

`__version__` is the version of the distribution `atlas-kernel`.
"""
TITLES = {
    "agents": "Agents",
    "directory": "Directories",
    "errors": "Errors",
    "events": "Events",
    "executors": "Executors",
    "interfaces": "Interfaces",
    "kernel": "The kernel",
    "limits": "Limits",
    "llm": "Models",
    "markers": "For plugins",
    "messages": "Messages",
    "observers": "Observers",
    "owner": "Owners",
    "settings": "Settings",
    "structured": "Messages between agents",
    "toolkit": "Toolkits",
    "tools": "Tools",
}


def _summary(name: str) -> str:
    """Return the first sentence about a name: of its docstring, or of the string below its assignment."""
    value = getattr(atlas_core, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        text = inspect.getdoc(value) or ""
    else:
        text = _attribute_docstring(atlas_core._HOME_OF[name], name)
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _attribute_docstring(home: str, name: str) -> str:
    body = ast.parse(inspect.getsource(importlib.import_module(f"atlas_core.{home}"))).body
    for node, after in pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(after, ast.Expr) and any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return str(ast.literal_eval(after.value))
    return ""


def page() -> str:
    """Return the page's text."""
    sections: dict[str, list[str]] = {}
    for home, names in atlas_core._HOMES.items():
        rows = sections.setdefault(TITLES.get(home.split(".")[0], home), [])
        rows += [f"| `{name}` | {_summary(name)} | `atlas_core.{home}` |\n" for name in names]
    table = "\n## {}\n\n| name | what it is | defined in |\n|---|---|---|\n{}"
    return HEAD + "".join(table.format(title, "".join(rows)) for title, rows in sorted(sections.items()))


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        sys.stdout.write(page())
    else:
        Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
