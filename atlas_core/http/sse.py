"""Server-sent events from pieces of bytes.

A model's stream is thousands of events of one or two lines, so those two forms are read here, at a third of what
they cost through httpx-sse; every other event is read by httpx-sse. Lines end at CR, LF or CRLF and nowhere else: the
line readers of Python and httpx also split at U+2028, which models write inside of JSON.

Source: HTML Standard, "Server-sent events", section 9.2.6, as of 2025.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from atlas_core.http.values import ServerEvent

if TYPE_CHECKING:
    import httpx

__all__ = ["EventParser", "EventTooLongError", "TruncatedEventError"]


class TruncatedEventError(Exception):
    """The body ended inside of an event."""


class EventTooLongError(Exception):
    """One event is longer than allowed."""


class EventParser:
    """Turns a body into events, wherever it is cut.

    Events without data are left out, comments too.

    Args:
        most_chars: The longest event allowed, in characters.
    """

    def __init__(self, most_chars: int) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._most = most_chars
        self._open: list[str] = []  # the event that has not ended
        self._size = 0
        self._begun = False
        self._cr = ""
        self._id = ""

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that a piece of the body completes.

        Raises:
            EventTooLongError: An event is too long.
        """
        opened = self._open
        if not opened and self._begun and piece[-2:] == b"\n\n" and not self._cr:
            data = _only_data(piece)
            if data:
                return [ServerEvent("message", data, self._id)]
        text = self._lines(self._decode(piece))
        if not text:
            return []
        if "\n\n" not in text and not (text[0] == "\n" and opened and opened[-1][-1] == "\n"):
            # A long event comes in many pieces; they are joined once.
            opened.append(text)
            self._size += len(text)
            if self._size > self._most:
                raise EventTooLongError
            return []
        if opened:
            opened.append(text)
            text = "".join(opened)
            opened.clear()
        *blocks, rest = text.split("\n\n")
        self._size = len(rest)
        if rest:
            opened.append(rest)
        return self._events(blocks)

    def end(self) -> list[ServerEvent]:
        """Return what the end of the body completes: servers leave out the last blank line, or the last line's end.

        Raises:
            TruncatedEventError: The body ended inside of an event, or of a character.
        """
        text = "".join([*self._open, self._lines(self._decode(b"", final=True))])
        text += "\n" if self._cr else ""
        self._open.clear()
        lines = [line for line in text.split("\n") if line and line[0] != ":"]
        data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
        if lines and text[-1] != "\n" and data.strip() != "[DONE]" and not _is_json(data):
            raise TruncatedEventError
        return self._events([text])

    def _lines(self, text: str) -> str:
        """Return the text with every line's end as LF."""
        if not self._begun and text:
            self._begun = True
            text = text.removeprefix("\ufeff")
        if self._cr or "\r" in text:
            text = self._cr + text
            # What follows a CR tells whether it is one end or half of one.
            self._cr = "\r" if text[-1:] == "\r" else ""
            text = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")
        return text

    def _events(self, blocks: list[str]) -> list[ServerEvent]:
        found: list[ServerEvent] = []
        for block in blocks:
            if block[:5] == "data:" and "\n" not in block:
                data = block[6:] if block[5:6] == " " else block[5:]
                if data:
                    found.append(ServerEvent("message", data, self._id))
            elif block[:7] == "event: " and block.count("\n") == 1 and "\ndata: " in block:
                kind, _, data = block[7:].partition("\ndata: ")
                if data:
                    found.append(ServerEvent(kind or "message", data, self._id))
            elif block and not (block[0] == ":" and "\n" not in block):
                found += self._by_rule(block)
        return found

    def _by_rule(self, block: str) -> Iterator[ServerEvent]:
        from httpx_sse import EventSource

        # It uses `headers` and `iter_text` of a response, and nothing else.
        source = EventSource(cast("httpx.Response", _Block(f"id: {self._id}\n{block}\n\n")))
        for event in source.iter_sse():
            self._id = event.id
            if event.data:
                yield ServerEvent(event.event, event.data, event.id, event.retry)


class _Block:
    """The text of one event, in the shape of a response."""

    headers: Mapping[str, str] = {"content-type": "text/event-stream"}  # was looked at before, with more lenience

    def __init__(self, text: str) -> None:
        self._text = text

    def iter_text(self) -> Iterator[str]:
        yield self._text


def _only_data(piece: bytes) -> str:
    """Return the data of a piece that is one event of one line, as models' servers send them; else ""."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return ""
    return text[6:-2] if text[:6] == "data: " and text.count("\n") == 2 and "\r" not in text else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
