"""A body that should be events, and may be something else under any name."""

from __future__ import annotations

import json
from collections.abc import Callable

from atlas_core.http.sse import EventParser, EventTooLongError, TruncatedEventError
from atlas_core.http.values import ServerEvent

__all__ = ["BodyReader", "NoEventsError"]

_BEFORE = b"\xef\xbb\xbf \t\r\n"
_FIELDS = (b":", b"d", b"e", b"i", b"r")  # comment, data, event, id, retry; none of them begins a JSON value
_MOST_OF_A_PAGE = 64 * 1024


class NoEventsError(Exception):
    """The body holds no events.

    Args:
        body: Its beginning.
    """

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


class BodyReader:
    """Turns a body into events, by its first character: `{` begins a JSON value or lines of them, `<` a page.

    A JSON value makes one event named `json`; lines of JSON make one event each.

    Args:
        most: The longest event or value allowed, in characters or bytes.
        is_json: Whether the server calls it JSON.
    """

    def __init__(self, most: int, *, is_json: bool = False) -> None:
        self._events = EventParser(most)
        self._most = most
        self._is_json = is_json
        self._kept = bytearray()
        self._take: Callable[[bytes], list[ServerEvent]] = self._look
        self._end: Callable[[], list[ServerEvent]] = self._value if is_json else self._events.end

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that a piece of the body completes.

        Raises:
            EventTooLongError: An event or value is too long.
            NoEventsError: It is a page.
        """
        return self._take(piece)

    def end(self) -> list[ServerEvent]:
        """Return what the end of the body completes.

        Raises:
            TruncatedEventError: The body ended inside of an event.
            NoEventsError: It is a page, or JSON that can't be read.
        """
        return self._end()

    def _look(self, piece: bytes) -> list[ServerEvent]:
        kept = self._kept
        kept += piece
        first = bytes(kept.lstrip(_BEFORE)[:1])
        if not first:
            return self._keep(b"")
        if first == b"<":
            self._take, self._end = self._keep_page, self._refuse
            return self._keep_page(b"")
        if first in {b"{", b"["} or (self._is_json and first not in _FIELDS):
            self._take, self._end = self._keep, self._value
            return self._keep(b"")
        self._take, self._end = self._events.feed, self._events.end
        return self._events.feed(bytes(kept))

    def _keep(self, piece: bytes) -> list[ServerEvent]:
        self._kept += piece
        if len(self._kept) > self._most:
            raise EventTooLongError
        return []

    def _keep_page(self, piece: bytes) -> list[ServerEvent]:
        self._kept += piece
        if len(self._kept) > _MOST_OF_A_PAGE:
            self._refuse()
        return []

    def _refuse(self) -> list[ServerEvent]:
        raise NoEventsError(bytes(self._kept))

    def _value(self) -> list[ServerEvent]:
        text = self._kept.decode("utf-8", "replace").removeprefix("\ufeff")
        if _is_json(text):
            return [ServerEvent("json", text)]
        lines = [line for found in text.split("\n") if (line := found.strip())]
        if len(lines) < 2 or not all(map(_is_json, lines[:-1])):
            return self._refuse()
        if not _is_json(lines[-1]):
            raise TruncatedEventError
        return [ServerEvent("message", line) for line in lines]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
