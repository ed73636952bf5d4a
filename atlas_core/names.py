"""How names in settings compare, and which one was probably meant.

Plugins, profiles, connections and tools compare with `-` equal to `_` and in any case, since environment
variables can't spell `-` and arrive in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["did_you_mean", "find_name", "nearest", "prefixed", "same_name", "tool_form"]

_SEPARATORS = re.compile(r"[-_.]+")
_T = TypeVar("_T")


def same_name(name: str) -> str:
    """Return the form under which names compare: lower case, runs of `-`, `_` and `.` as one `_`.

    Source: the rule of PEP 503 for distribution names, with `_` as the separator.
    """
    return _SEPARATORS.sub("_", name.strip()).lower()


def prefixed(prefix: str | None, name: str) -> str:
    """Return a tool's name behind a prefix, with `_` between unless the prefix ends in one of `_ - . : /`."""
    if not prefix:
        return name
    return prefix + name if prefix[-1] in "_-.:/" else f"{prefix}_{name}"


def tool_form(name: str) -> str:
    """Return the form under which names of tools compare: lower case, `-` as `_`.

    A dot stays a dot: servers name tools such as `calendar.add`, which is not `calendar_add`.
    """
    return name.strip().lower().replace("-", "_")


def find_name(name: str, mapping: Mapping[str, _T]) -> str | None:
    """Return the key of `mapping` that `name` means, or None. An exact key wins over a merely equal one."""
    if name in mapping:
        return name
    wanted = same_name(name)
    return next((key for key in mapping if same_name(key) == wanted), None)


def nearest(name: str, known: Iterable[str], *, most: int = 5) -> list[str]:
    """Return up to `most` of the known names, the most similar first, those without likeness left out."""
    import difflib  # costs 4 ms and is needed on error paths only

    known = sorted(set(known))
    by_form = {same_name(k): k for k in reversed(known)}
    close = difflib.get_close_matches(same_name(name), list(by_form), n=most, cutoff=0.5)
    return [by_form[form] for form in close]


def did_you_mean(name: str, known: Iterable[str], *, what: str = "known", many: str = "") -> str:
    """Return a remedy for an unknown name: the nearest one, or the list of those there are.

    Args:
        name: The unknown name.
        known: Those there are.
        what: What is said of each of them, such as `installed`.
        many: What they are called, such as `profiles`; in place of `what`.
    """
    known = sorted(set(known))
    close = nearest(name, known, most=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not known:
        return f"there are no {many}" if many else f"none is {what}"
    shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    return f"{many or what}: {shown}"
