"""Whether a question speaks of a tool that brings no hints, judged by the words of its name and description."""

from __future__ import annotations

import re
from functools import lru_cache

from atlas_core import ToolSchema
from atlas_offline.schemas import parameters
from atlas_offline.words import READ_WORDS, content_words, name_words, stem, words

__all__ = ["EFFECT_WORDS", "concerns", "known_words"]

# Verbs that change something. A tool named for one is called only where the question holds that very word.
EFFECT_WORDS = frozenset(
    """
    add append apply approve book buy cancel change clear close commit copy create delete deploy destroy disable
    drop edit email enable erase execute forward grant insert install invite kill launch make merge modify move
    open order overwrite pay post publish purge push put refund register reject remove rename reply reset
    restart revoke rotate run save schedule sell send set share shutdown sign start stop submit transfer trigger
    turn uninstall unlock update upload write
    """.split()
)
_YES_NO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|will|should|may|must)\b", re.IGNORECASE)
_FILLER = frozenset({"of", "the", "a", "an", "and", "or", "for", "to", "in", "by", "from", "with", "is", "as", "on"})


@lru_cache(maxsize=512)
def _vocabulary(name: str, description: str, parameter_text: str) -> frozenset[str]:
    text = [*name_words(name), *(w.text for w in words(f"{description} {parameter_text}"))]
    return frozenset(stem(word) for word in text)


def known_words(tool: ToolSchema) -> frozenset[str]:
    """Return the stems of all words that the tool's schema uses: a question may use these without asking for more."""
    about = " ".join(
        f"{' '.join(name_words(p.name))} {p.description} {' '.join(map(str, p.enum))}" for p in parameters(tool)
    )
    return _vocabulary(tool.name, tool.description, about)


def concerns(clause: str, tool: ToolSchema) -> bool:
    """Tell whether the clause speaks of the tool: by all words of its name, or by two words of its description."""
    said = {word.text for word in words(clause)}
    stems = {stem(word) for word in said}
    name = [w for w in name_words(tool.name) if w not in READ_WORDS and w not in _FILLER]
    effects = [w for w in name if w in EFFECT_WORDS]
    action = _action(tool)
    if effects and (not said.issuperset(effects) or _YES_NO.match(clause)):
        return False
    if name and all(stem(w) in stems for w in name):
        return True
    if action and (action not in said or _YES_NO.match(clause)):
        return False
    about = {stem(w.text) for w in content_words(tool.description) if w.text not in READ_WORDS}
    asked = {stem(w.text) for w in content_words(clause) if w.text not in READ_WORDS}
    return len(about & asked) >= 2 or (
        not name and bool(asked) and asked <= about | {stem(w) for w in name_words(tool.name)}
    )


def _action(tool: ToolSchema) -> str:
    """Return the verb that a description begins with, if it may change something; a read verb, or none, is ""."""
    first = next(words(tool.description), None)
    if first is None:
        return ""
    return first.text if first.text in EFFECT_WORDS else ""
