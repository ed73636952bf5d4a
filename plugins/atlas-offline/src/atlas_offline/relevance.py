"""Whether a question speaks of a tool that brings no hints, judged by the words of its name and description."""

from __future__ import annotations

from functools import lru_cache

from atlas_core import ToolSchema
from atlas_offline.phrasing import forms
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
# "Get the status of an order" only reads; what is named for one of these does not.
_NEVER_NOUNS = frozenset(
    {"delete", "destroy", "erase", "kill", "overwrite", "purge", "remove", "shutdown", "uninstall"}
)
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
    """Tell whether the clause speaks of the tool: by all words of its name, or by two words of its description.

    A tool that may change something must be ordered: the clause begins with its verb.
    """
    said = [word.text for word in words(clause)]
    if not _may_run(clause, tool, said):
        return False
    stems = {stem(word) for word in said}
    name = [w for w in name_words(tool.name) if w not in READ_WORDS and w not in _FILLER]
    if name and all(stem(w) in stems for w in name):
        return True
    about = {stem(w.text) for w in content_words(tool.description) if w.text not in READ_WORDS}
    asked = {stem(w.text) for w in content_words(clause) if w.text not in READ_WORDS}
    return len(about & asked) >= 2 or (
        not name and bool(asked) and asked <= about | set(map(stem, name_words(tool.name)))
    )


def _may_run(clause: str, tool: ToolSchema, said: list[str]) -> bool:
    """Tell whether the clause is an order where the tool needs one: "what is a shutdown?" is none."""
    name = name_words(tool.name)
    verb = next((word.text for word in words(tool.description)), "")
    reads = verb in READ_WORDS or (name and name[0] in READ_WORDS)
    verbs = {w for w in name if w in EFFECT_WORDS} or ({verb} & EFFECT_WORDS)
    if reads and not verbs & _NEVER_NOUNS:
        return True
    barest = list(forms(clause))[-1:]
    first = next((word.text for form in barest for word in words(form)), "")
    if verbs:
        return verbs.issubset(said) and first in verbs
    # Nothing else in the question has to fit a tool without parameters, so its name must be an order too.
    return any(p.required for p in parameters(tool)) or first in {*name, verb}
