"""Writes `tests/cases/README.md`: which reported fault is covered by which tests.

A test says so in its docstring ("Case 80: ..." or "cases 34, 36"). `python -m tests.cases.index` writes the list anew,
and `test_index.py` fails when it is out of date or a case of a finished area has no test.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("README.md")

AREAS = {
    "tool schema": (2, 4, 6, 8, 10, 12, 14),
    "argument validation": (16, 18, 20, 22, 24),
    "tool results": (26, 28, 30, 32),
    "parallel execution": (34, 36, 38, 40),
    "limits": (76, 78),
    "history": (80, 82),
    "plugins": (96, 98, 100, 102, 104),
    "configuration": (106, 108, 110, 112, 114),
}
"""The areas that are worked through: each of these cases needs a test."""

OTHERS = {
    "streaming": (42, 44, 46, 48, 50, 52, 54),
    "provider": (56, 58, 60, 62, 64),
    "cancellation and time-outs": (66, 68, 70, 72, 74),
    "permissions and hooks": (84, 86, 88, 90, 92, 94),
    "knowledge": (116, 118, 120, 122, 124),
    "tracing": (126, 128, 130),
    "security": (132, 134, 136, 138, 140),
    "MCP": (142, 144, 146, 148),
}

_MENTION = re.compile(r"\b[Cc]ases? (\d+[a-z]?(?:(?:, | and )\d+[a-z]?)*)")

INTRO = """# Cases

Real faults of systems like this one, by number, and the tests that hold the right outcome. Written by
`python -m tests.cases.index` from the tests' docstrings; do not edit.
"""


def mentioned(text: str) -> set[int]:
    """Return the numbers of the cases that a docstring names."""
    return {
        int(re.sub(r"\D", "", number))
        for match in _MENTION.finditer(text)
        for number in re.split(r", | and ", match.group(1))
    }


def _tests() -> Iterator[tuple[str, str]]:
    """Yield each test's name and docstring, those of its class and file included."""
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/**/test_*.py")]
    for path in sorted(files):
        if path.parent == PAGE.parent:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                yield f"{path.relative_to(ROOT)}::{node.name}", ast.get_docstring(node) or ""


@functools.cache
def covered() -> dict[int, list[str]]:
    """Return the tests of each case, by number."""
    found: dict[int, list[str]] = {}
    for name, text in _tests():
        for number in mentioned(text):
            found.setdefault(number, []).append(name)
    return found


def page() -> str:
    """Return the list as it should stand."""
    tests = covered()
    parts = [INTRO]
    for area, numbers in {**AREAS, **OTHERS}.items():
        known = [number for number in numbers if number in tests]
        if known:
            parts.append(f"\n## {area[0].upper()}{area[1:]}\n\n| case | tests |\n|---|---|\n")
            parts += [f"| {number} | {'<br>'.join(f'`{name}`' for name in tests[number])} |\n" for number in known]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
