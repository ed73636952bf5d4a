"""What a person needs from an answer that is no answer: the server's own message, or a short excerpt."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping

__all__ = ["MOST_EXCERPT", "MOST_MESSAGE", "excerpt", "is_page", "json_of", "message_of", "request_id_of"]

MOST_EXCERPT = 200
"""Characters of a page or other text."""
MOST_MESSAGE = 500
"""Characters of a server's own message."""

_LOOKED_AT = 64 * 1024  # a tag's end may be far away, a message is not
_INVISIBLE = re.compile(r"<(script|style|template)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*(>|\Z)")
_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "cf-ray")
_KEYS = ("message", "error", "detail", "title", "error_description", "msg", "reason")


def request_id_of(headers: Mapping[str, str], redact: Callable[[str], str] = str) -> str | None:
    """Return the server's id of a request, from the headers that vendors use for it."""
    for name in _IDS:
        value = headers.get(name)
        if value:
            return redact(value)[:128]
    return None


def message_of(payload: object, redact: Callable[[str], str] = str, *, depth: int = 4) -> str:
    """Return the message in an error's JSON value, or "": of `{"error": {"message": ...}}` and its relatives.

    Args:
        payload: The value.
        redact: Takes secrets out of it, before it is cut: half a key is not found.
        depth: How far to look.
    """
    if isinstance(payload, str):
        return _cut(redact(" ".join(payload.split())), MOST_MESSAGE)
    if depth and isinstance(payload, Mapping):
        # OpenAI nests it under `error`, FastAPI writes `detail`, RFC 9457 `title` and `detail`.
        inner = payload.get("error")
        found: list[object] = [inner] if isinstance(inner, Mapping | list) else []
        found += [payload.get(key) for key in _KEYS]
        return next(filter(None, (message_of(value, redact, depth=depth - 1) for value in found)), "")
    if depth and isinstance(payload, list) and payload:
        return message_of(payload[0], redact, depth=depth - 1)
    return ""


def excerpt(body: bytes, content_type: str = "", redact: Callable[[str], str] = str) -> str:
    """Return what a body says, for an error: a JSON message, or the beginning of its text without tags.

    Args:
        body: The decoded body, or its beginning.
        content_type: What the server calls it; HTML and JSON are also known by their look.
        redact: Takes secrets out of it, before it is cut.
    Returns:
        At most `MOST_MESSAGE` characters of a message or `MOST_EXCERPT` of text; "" for an empty body.
    """
    head = body[:_LOOKED_AT]
    message = message_of(json_of(body if len(body) <= _LOOKED_AT else head), redact)
    if message:
        return message
    if b"\0" in head or head.startswith(b"\x1f\x8b"):
        return f"({len(body)} bytes that are no text)"
    text = head.decode("utf-8", "replace")
    if is_page(head, content_type):
        text = html.unescape(_TAG.sub(" ", _INVISIBLE.sub(" ", text)))
    return _cut(redact(" ".join(text.split())), MOST_EXCERPT)


def is_page(body: bytes, content_type: str = "") -> bool:
    """Tell whether a body is a web page, by its name or its look."""
    return "html" in content_type.lower() or body[:1024].lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"<"


def json_of(body: bytes | str) -> object:
    """Return the JSON value that a body holds, or None."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
