"""What an agent was granted on a toolkit: about each tool the last word counts, and without any it may not be used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import dropwhile

from atlas_core.names import tool_form
from atlas_core.permissions import is_pattern, matches

__all__ = ["Grant", "Grants", "check_pattern"]

# What names of tools are made of, and the signs of patterns. Letters of other alphabets look like these and match none.
_PATTERN = re.compile(r"[A-Za-z0-9_.:/ *?\[\]!-]+", re.ASCII)
_SET = re.compile(r"\[!?\]?[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Grant:
    """One word about tools: granted, or taken back.

    Attributes:
        pattern: A tool's name as it is registered, or a pattern.
        granted: Whether it grants.
    """

    pattern: str
    granted: bool

    def __str__(self) -> str:
        return f"{'grant' if self.granted else 'revoke'} {self.pattern}"


@dataclass(frozen=True, slots=True)
class Grants:
    """All words about one agent, the oldest first. A value: adding a word makes a new one.

    Words that no later tool can make count any more are not kept, so that granting and revoking for ever takes no
    more room than there are patterns.
    """

    words: tuple[Grant, ...] = ()

    def after(self, pattern: str, *, granted: bool) -> Grants:
        """Return the grants once a name or pattern was granted, or taken back."""
        kept = [word for word in self.words if not _covers(pattern, word.pattern)]
        # A word that takes back what was not granted before says no more than silence does.
        return Grants(tuple(dropwhile(lambda word: not word.granted, [*kept, Grant(pattern, granted)])))

    def last_word(self, name: str) -> Grant | None:
        """Return what counts for a tool, or None if nothing was ever said about it."""
        return next((word for word in reversed(self.words) if matches(word.pattern, name)), None)

    def allow(self, name: str) -> bool:
        """Return whether the agent may use a tool."""
        word = self.last_word(name)
        return word is not None and word.granted


def _covers(pattern: str, older: str) -> bool:
    """Whether a pattern surely means each tool that an older one means."""
    if not is_pattern(older):
        return matches(pattern, older)
    return pattern == "*" or _form(pattern) == _form(older)


def _form(pattern: str) -> str:
    return pattern.lower() if "[" in pattern else tool_form(pattern)


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that no tool's name can ever match; as a revocation it would protect nothing, unseen.

    Raises:
        ValueError: It has a character that no name has, or a `[` without its `]`.
    """
    allowed = _PATTERN.match(pattern)
    wrong = pattern[allowed.end() if allowed else 0 :]
    if wrong:
        raise ValueError(
            f"pattern {pattern[:100]!r} can match no tool: names have no {wrong[0]!r} (U+{ord(wrong[0]):04X})"
        )
    if "[" in _SET.sub("", pattern):
        raise ValueError(f"pattern {pattern[:100]!r} can match no tool: a '[' lacks its ']'")
