"""Keeps a client's own secrets out of every text that it writes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from atlas_core.settings.secrets import MASK, looks_secret, masked

__all__ = ["Redactor", "shown_url", "url_secrets"]

# Long, without the dashes and dots of a model's name; or a UUID.
_OPAQUE = re.compile(
    r"(?<![\w.~-])(?:(?=\w*[0-9])(?=\w*[A-Za-z])\w{20,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![\w.~-])"
)


class Redactor:
    """Replaces known secrets, and what has the form of a key, in texts that others wrote.

    Args:
        secrets: The known ones. Those of fewer than eight characters, such as a proxy's user, are found as words
            of their own only, and those of fewer than four not at all, since they occur in any text.
    """

    __slots__ = ("__find",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= 4}
        longest_first = sorted(forms, key=len, reverse=True)
        patterns = [
            re.escape(form) if len(form) >= 8 else rf"(?<![\w-]){re.escape(form)}(?![\w-])" for form in longest_first
        ]
        self.__find = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def __call__(self, text: str) -> str:
        if self.__find is not None:
            text = self.__find.sub(MASK, text)
        return str(masked(text))

    def __repr__(self) -> str:
        return "Redactor()"


def _forms(secret: str) -> set[str]:
    """Return the spellings in which a server may echo a secret."""
    bare = secret.strip()
    scheme, _, token = bare.partition(" ")
    found = {bare, quote(bare, safe=""), quote_plus(bare)}
    if scheme.lower() in {"bearer", "basic", "token"} and token:
        found |= {token.strip(), quote(token.strip(), safe="")}
    return found


def url_secrets(url: str, *, whole: bool = False) -> list[str]:
    """Return what may be secret in an address: user, password, their encoding, query values, opaque path segments.

    Args:
        url: The address.
        whole: It is a secret as a whole, so every longer segment and value is one.
    """
    parts = urlsplit(url)
    found = [unquote(part) for part in (parts.username, parts.password) if part]
    if parts.username or parts.password:
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        found.append(base64.b64encode(login.encode()).decode())
    found += [value for name, value in parse_qsl(parts.query) if whole or looks_secret(name) or len(value) >= 16]
    found += _OPAQUE.findall(parts.path)
    if whole:
        found += [part for part in unquote(parts.path).split("/") if len(part) >= 8]
    return found


def shown_url(url: str, *, whole: bool = False) -> str:
    """Return an address as errors show it: without login and query, opaque path segments masked.

    Args:
        url: The address.
        whole: It is a secret as a whole, so no path is shown.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if not parts.scheme or not parts.netloc:
        return MASK if whole else str(masked(url.partition("?")[0].rpartition("@")[2]))
    if whole and parts.path.strip("/"):
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{MASK}"
    path = "/".join(MASK if _OPAQUE.fullmatch(part) else part for part in parts.path.split("/"))
    return str(masked(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"))
