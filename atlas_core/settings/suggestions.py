"""Which variable was probably meant by one that names no setting."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from atlas_core.names import same_name
from atlas_core.settings.shapes import FREE, Shape

__all__ = ["nearest_variable"]

Template: TypeAlias = "tuple[str | None, ...]"
"""The parts of a variable that sets something; None where any name may stand."""

# What a variable may differ in, in whole levels; found by trying some forty misspellings.
_MAX_COST = 1.25
_CLOSE = 0.2
_ABSENT, _SURPLUS, _MISSPELT, _PART_OF_IT = 0.3, 1.0, 2.0, 0.5
_FREE_NAME, _FREE_KEY = 0.1, 0.7
_ALIKE = 0.6
_NO_MATCH = float("inf")


def nearest_variable(parts: Sequence[str], root: Shape, tree: Mapping[str, Any]) -> str | None:
    """Return the name, without the prefix, of the variable that is nearest to one which names nothing.

    Args:
        parts: The variable's own parts.
        root: What stands at the top of the settings.
        tree: The settings as they are.
    """
    templates = sorted(set(_templates(root, tree, ())), key=lambda t: [part or "" for part in t])
    return _same_but_for_underscores(parts, templates) or _aligned(parts, templates) or _by_last_part(parts, templates)


def _templates(shape: Shape, node: object, path: Template) -> Iterator[Template]:
    table = node if isinstance(node, Mapping) else {}
    keys: list[str | None] = sorted({*shape.known_keys(), *table})
    if shape.item is not None or shape.open:
        keys.append(None)
    for key in keys:
        full = (*path, same_name(key).upper() if key is not None else None)
        yield full
        child = shape.child(key or "")
        if child != FREE and (child.model is not None or child.item is not None):
            yield from _templates(child, table.get(key) if key is not None else None, full)


def _joined(parts: Sequence[str | None]) -> str:
    return "__".join(part or "" for part in parts)


def _same_but_for_underscores(parts: Sequence[str], templates: list[Template]) -> str | None:
    """Find what is spelt with one underscore between two keys, where two belong."""
    forms = {same_name(_joined(t)): _joined(t) for t in reversed(templates) if None not in t}
    close = difflib.get_close_matches(same_name("_".join(parts)), forms, n=1, cutoff=0.95 if len(parts) > 1 else 0.75)
    return forms[close[0]] if close else None


def _aligned(parts: Sequence[str], templates: list[Template]) -> str | None:
    """Find what differs in a level that is absent or too much, or in a few letters."""
    own = [same_name(part) for part in parts]
    found = [(_align(own, parts, template), len(template)) for template in templates]
    # Free names alone are no likeness.
    costs = [(cost, n, names) for (cost, known, names), n in found if known and [*map(same_name, names)] != own]
    cost, _, names = min(costs, key=lambda entry: entry[:2], default=(_NO_MATCH, 0, ()))
    return _joined(names) if cost <= _MAX_COST else None


_Row: TypeAlias = "tuple[float, bool, tuple[str, ...]]"


def _align(own: list[str], parts: Sequence[str], template: Template) -> _Row:
    """Return how far a variable is from a template, whether they share a key, and the template with names filled in."""
    rows: list[_Row] = [(n * _SURPLUS, False, ()) for n in range(len(own) + 1)]
    for place, wanted in enumerate(template):
        before, rows = rows, []
        free = _FREE_KEY if place == len(template) - 1 else _FREE_NAME
        for n in range(len(own) + 1):
            choices: list[_Row] = []
            if wanted is not None:
                choices.append((before[n][0] + _ABSENT, before[n][1], (*before[n][2], wanted)))
            if n:
                cost = free if wanted is None else _distance(own[n - 1], same_name(wanted))
                name = parts[n - 1].upper() if wanted is None else wanted
                last = before[n - 1]
                choices.append((last[0] + cost, last[1] or (wanted is not None and cost <= _CLOSE), (*last[2], name)))
                choices.append((rows[n - 1][0] + _SURPLUS, *rows[n - 1][1:]))
            rows.append(min(choices, key=lambda choice: choice[0], default=(_NO_MATCH, False, ())))
    return rows[-1]


def _distance(own: str, wanted: str) -> float:
    likeness = difflib.SequenceMatcher(None, own, wanted).ratio()
    if likeness >= _ALIKE:
        return (1 - likeness) * _MISSPELT
    return _PART_OF_IT if _is_part(own, wanted) else _NO_MATCH


def _is_part(own: str, wanted: str) -> bool:
    return len(own) > 3 and f"_{own}_" in f"_{wanted}_"


def _by_last_part(parts: Sequence[str], templates: list[Template]) -> str | None:
    """Find the key that a part is like, whatever stands before it; one word alone may well be another program's."""
    if len(parts) < 2:
        return None
    keys = {same_name(t[-1]): _joined(t) for t in reversed(templates) if None not in t and t[-1]}
    ends = [same_name(parts[-1]), same_name(parts[0])]
    close = [key for part in ends for key in difflib.get_close_matches(part, keys, n=1, cutoff=0.75)]
    close += [key for part in ends for key in keys if _is_part(part, key)]
    return keys[close[0]] if close else None
