"""What looks like a secret, and how it is shown: not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from atlas_core.settings.frozen import thaw

__all__ = ["MASK", "literal_secrets", "looks_secret", "masked", "masked_leaf", "shown"]

_Path: TypeAlias = "tuple[str | int, ...]"

MASK = "***"
"""Stands wherever a secret would."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = frozenset(
    "apikey accesskey secretkey privatekey authkey authtoken accesstoken password passwd passphrase pwd secret secrets "
    "credential credentials authorization cookie cookies bearer".split()
)
_KEYS = frozenset("access account api app auth client encryption license master private secret shared signing".split())
_REFERENCES = frozenset(
    "arn count env field file header id length limit name path prefix ttl type var variable".split()
)
# Words before `token` that make it a piece of a model's vocabulary.
_VOCABULARY = frozenset("bos cls end eos first last mask max min next pad per sep start stop unk".split())
# Forms that vendors document for their keys; a match is hidden wherever it stands.
_VALUES = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)-[A-Za-z0-9_-]{6,}|gh[pousr]_[A-Za-z0-9]{10,}|github_pat_\w{10,}|glpat-[\w-]{10,}"
    r"|xox[abeoprs]-[\w-]{8,}|hf_[A-Za-z0-9]{10,}|gsk_[A-Za-z0-9]{10,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)|(?<=[Bb]earer )[^\s'\"]+|(?<=[Bb]asic )[A-Za-z0-9+/=]{8,}"
)
_URL_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_URL_QUERY = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]+)")


def looks_secret(key: str) -> bool:
    """Tell whether a key's value is probably a secret, as with `api_key`, not with `api_key_env` or `max_tokens`."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words or words[-1] in _REFERENCES:
        return False
    last, before = words[-1].removesuffix("s"), words[-2] if len(words) > 1 else ""
    if not _ALWAYS.isdisjoint(words):
        return True
    if words[-1] == "token":
        return before not in _VOCABULARY
    return last in {"key", "token"} and before in _KEYS


def _hides(key: str, *, inherited: bool) -> bool:
    """Tell whether what stands under `key` is hidden, inside a table that is (`credentials = {file = "x"}` is not)."""
    words = _WORDS.findall(key)
    refers = bool(words) and words[-1].lower() in _REFERENCES
    return looks_secret(key) or (inherited and not refers)


def masked(value: object, key: str = "") -> object:
    """Return `value` in plain dicts, lists and tuples with everything that looks like a secret replaced by `MASK`.

    Args:
        value: Any value of a settings file; not changed.
        key: The key it stands under.
    """
    return _masked(value, hidden=looks_secret(key))


def masked_leaf(value: object, path: Sequence[str]) -> object:
    """Return what `masked` makes of the value at the end of a path of keys."""
    hidden = False
    for key in path:
        hidden = _hides(key, inherited=hidden)
    return _masked(value, hidden=hidden)


def _masked(value: object, *, hidden: bool) -> object:
    if isinstance(value, Mapping):
        return {name: _masked(item, hidden=_hides(str(name), inherited=hidden)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_masked(item, hidden=hidden) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if hidden and _says_something(value):
        return MASK
    return _masked_text(value) if isinstance(value, str) else value


def _says_something(value: object) -> bool:
    return not (value is None or isinstance(value, bool) or value == "")


def _masked_text(text: str) -> str:
    text = _VALUES.sub(MASK, text)
    if "://" not in text:
        return text
    text = _URL_LOGIN.sub(MASK, text)
    return _URL_QUERY.sub(lambda m: f"{m[1]}={MASK}" if looks_secret(m[1]) or m[1].lower() == "key" else m[0], text)


def shown(value: object, key: str = "", *, most: int = 80) -> str:
    """Return `repr` of the masked value, cut after `most` characters; for error texts."""
    text = repr(masked(thaw(value), key))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def literal_secrets(value: object, *, path: _Path = (), hidden: bool = False) -> Iterator[_Path]:
    """Yield the path of each literal value that stands under a secret-looking key, however deep."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from literal_secrets(item, path=(*path, name), hidden=_hides(str(name), inherited=hidden))
    elif isinstance(value, list | tuple):
        for n, item in enumerate(value):
            yield from literal_secrets(item, path=(*path, n), hidden=hidden)
    elif hidden and _says_something(value):
        yield path
