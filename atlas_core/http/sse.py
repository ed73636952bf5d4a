"""Server-sent events from pieces of bytes.

The events themselves are httpx-sse's: it splits lines at CR, LF and CRLF only, where the general line reader of
httpx also splits at U+2028, which models write inside of JSON. Source: HTML Standard, "Server-sent events", 9.2.6.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

__all__ = ["EventText", "EventTooLongError", "TruncatedEventError", "events_in"]

_BLANK_LINE = re.compile(r"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")
_DONE = "[DONE]"


class TruncatedEventError(Exception):
    """The body ended inside of an event."""


class EventTooLongError(Exception):
    """One event is longer than allowed."""


class EventText:
    """The decoded text of a stream, in the shape of the response that httpx-sse reads.

    Args:
        pieces: The body.
        most_bytes: The longest event allowed, in characters.
    """

    headers: Mapping[str, str] = {"content-type": "text/event-stream"}  # checked before, with more lenience

    def __init__(self, pieces: AsyncIterator[bytes], most_bytes: int) -> None:
        self._pieces = pieces
        self._most = most_bytes
        self._open: list[str] = []
        self._size = 0

    async def aiter_text(self) -> AsyncGenerator[str, None]:
        """Yield the text.

        Raises:
            TruncatedEventError: It ended inside of an event, or of a character.
            EventTooLongError: An event is too long.
        """
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        last = ""
        first = True
        async for piece in self._pieces:
            text = decode(piece)
            if not text:
                continue
            if first:
                first = False
                text = text.removeprefix("\ufeff")
            self._note(text, last)
            last = text[-3:]
            yield text
        rest = decode(b"", final=True)
        yield rest + self._ending(rest)

    def _note(self, text: str, last: str) -> None:
        """Remember the text of the event that has not ended yet."""
        probe = last + text
        if "\n\n" in probe or ("\r" in probe and _BLANK_LINE.search(probe)):
            self._open.clear()
            self._size = 0
        self._open.append(text)
        self._size += len(text)
        if self._size > self._most:
            raise EventTooLongError

    def _ending(self, rest: str) -> str:
        """Return what ends the last event, where a server leaves out its blank line."""
        tail = _BLANK_LINE.split("".join(self._open) + rest)[-1]
        lines = [line for line in re.split(r"\r\n|\r|\n", tail) if line and not line.startswith(":")]
        if not lines:
            return ""
        if tail[-1] in "\r\n":
            return "\n"
        data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
        if data.strip() == _DONE or _is_json(data):
            return "\n\n"
        raise TruncatedEventError


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def events_in(text: EventText) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events of a text; some have no data."""
    from httpx_sse import EventSource

    # It uses `headers` and `aiter_text` of the response, and nothing else.
    return EventSource(cast("httpx.Response", text)).aiter_sse()
