"""Arguments for a tool that brings no hints, read from a question by the types in the tool's JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from atlas_core import ToolSchema
from atlas_offline.finders import NUMBER
from atlas_offline.reader import Reader, read_all, unquote
from atlas_offline.relevance import EFFECT_WORDS, known_words
from atlas_offline.schemas import parameters
from atlas_offline.words import READ_WORDS, content_words, stem

__all__ = ["Extraction", "coerce", "extract", "required_missing", "text_parameter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a question says about a tool's parameters.

    Attributes:
        arguments: Values found, of the types that the schema wants.
        missing: Required parameters without a value.
        leftover: Words and numbers of the question that the call would ignore.
        unclear: Why the question can be read in more than one way, or "".
    """

    arguments: dict[str, object]
    missing: tuple[str, ...] = ()
    leftover: tuple[str, ...] = ()
    unclear: str = ""


def extract(clause: str, tool: ToolSchema) -> Extraction:
    """Read the tool's arguments out of a clause.

    Values stand beside their parameter's name (`port 8080`, `limit of 5`, `path=a.txt`), are recognised by their
    form (e-mail, URL, path, date, quoted text, a member of an enumeration) where only one parameter can take
    them, or are not taken at all: nothing is guessed.
    """
    params = parameters(tool)
    reader = Reader(clause)
    read_all(reader, params)
    required = [p.name for p in params if p.required and p.name not in reader.values]
    return Extraction(
        arguments=reader.values,
        missing=tuple(required),
        leftover=_leftover(reader, tool),
        unclear=reader.unclear,
    )


def _leftover(reader: Reader, tool: ToolSchema) -> tuple[str, ...]:
    known = known_words(tool) | {stem(w) for w in READ_WORDS if w not in EFFECT_WORDS}
    left = [w.text for w in content_words(reader.text, reader.spans) if stem(w.text) not in known]
    left += [m[0] for m in NUMBER.finditer(reader.text) if reader.is_free(m.span())]
    left += [m[0] for m in re.finditer(r"[^\W\d_]*\d\w*", reader.text) if reader.is_free(m.span()) and m[0] not in left]
    left += [m[0] for m in re.finditer(r"[-+*/^=%<>]+(?=\s*\d)", reader.text) if reader.is_free(m.span())]
    return tuple(dict.fromkeys(left))


def required_missing(tool: ToolSchema, arguments: Mapping[str, object]) -> tuple[str, ...]:
    """Return the tool's required parameters that the arguments lack."""
    return tuple(p.name for p in parameters(tool) if p.required and p.name not in arguments)


def text_parameter(tool: ToolSchema) -> str | None:
    """Return the one text parameter that a search-like tool needs, or None if it can't be called with a text alone."""
    params = parameters(tool)
    required = [p for p in params if p.required]
    texts = [p for p in (required or params) if p.kind == "text" and not p.enum]
    if len(texts) != 1 or any(p is not texts[0] for p in required):
        return None
    return texts[0].name


def coerce(tool: ToolSchema, groups: Mapping[str, str]) -> dict[str, object] | None:
    """Turn a pattern's groups into values of the schema's types; None if one does not fit its type.

    Quotes around a value are taken off. As a pattern can't name two groups alike, `path_` also gives `path`.
    """
    by_name = {p.name: p for p in parameters(tool)}
    out: dict[str, object] = {}
    for group, written in groups.items():
        name = group if group in by_name else group.rstrip("_")
        text = unquote(written.strip())
        value = by_name[name].convert(text) if name in by_name else text
        if value is None:
            return None
        out[name] = value
    return out
