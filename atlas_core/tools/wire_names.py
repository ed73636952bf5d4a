"""The names that tools have on the wire, where providers allow fewer characters than discovery sources use."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["wire_names"]

MAX_CHARS = 64
"""Longest name that is sent. Source: the pattern that OpenAI's API enforces, `^[a-zA-Z0-9_-]{1,64}$`, 2025."""

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS = 8


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Map each tool name to the one that is sent; the mapping is one to one, so it can be turned round.

    A name that is allowed is sent as it is. Any other gets its forbidden characters replaced by `_`, is cut, and
    ends in a digest of the whole name, so that what is sent depends on the name alone and not on its neighbours.
    Only where that still meets another name, the digest is made longer.

    Args:
        names: The tools' names; repeated ones count once.
    Returns:
        Name to sent name, in the order of `names`; each sent name matches `^[a-zA-Z0-9_-]{1,64}$`.
    """
    wanted = list(dict.fromkeys(names))
    taken = {name for name in wanted if _is_allowed(name)}
    sent = {name: name for name in taken}
    for name in sorted(set(wanted) - taken):
        sent[name] = _make(name, taken)
        taken.add(sent[name])
    return {name: sent[name] for name in wanted}


def _is_allowed(name: str) -> bool:
    return 0 < len(name) <= MAX_CHARS and not _FORBIDDEN.search(name)


def _make(name: str, taken: set[str]) -> str:
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = _FORBIDDEN.sub("_", name)
    for length in range(_DIGEST_CHARS, MAX_CHARS):
        made = f"{readable[: MAX_CHARS - 1 - length]}_{digest[:length]}"
        if made not in taken:
            return made
    raise ValueError(f"no name is left for {name!r} among {len(taken)}")  # pragma: no cover  # a collision of 252 bits
