"""Which line of a TOML document holds which key, which `tomllib` does not tell.

The text is known to be valid TOML, so this reads only as much of the grammar as it takes to find where keys stand
and where values end. Source: TOML 1.0.0, sections Keys, String, Array, Table and Array of Tables.
"""

from __future__ import annotations

import bisect
import json
import re
import tomllib
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["KeyPath", "dotted", "key_lines", "split_key"]

KeyPath: TypeAlias = "tuple[str | int, ...]"
"""Keys from the outside in; a number is a place in an array."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return for each key and array item of a valid TOML document the number of its line, from 1.

    A table is where its header stands, or, without one, where its first key does.

    Raises:
        ValueError: The text is no valid TOML.
    """
    return _Reader(text).read()


def split_key(text: str) -> tuple[str, ...]:
    """Split a dotted key as TOML writes it: `a."b.c"` has two parts.

    Raises:
        ValueError: It is no dotted key.
    """
    reader = _Reader(text.strip())
    parts = reader.dotted()
    if reader.at != len(reader.text):
        raise ValueError(f"{text!r} is no dotted key")
    return parts


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as TOML writes it: `ai.connections."gpt-4.1".model`; places in lists in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        bare = part.replace("-", "").replace("_", "")
        quoted = (
            part if bare.isascii() and (bare.isalnum() or (not bare and part)) else json.dumps(part, ensure_ascii=False)
        )
        text = f"{text}.{quoted}" if text else quoted
    return text


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._lines: dict[KeyPath, int] = {}
        self._last_item: dict[KeyPath, int] = {}

    def read(self) -> dict[KeyPath, int]:
        prefix: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(_BLANK)
        return self._lines

    def dotted(self) -> tuple[str, ...]:
        parts = [self._part()]
        self._skip(_SPACE)
        while self.text.startswith(".", self.at):
            self.at += 1
            parts.append(self._part())
            self._skip(_SPACE)
        return tuple(parts)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"no valid TOML in line {self._line()}")
        self.at = match.end()
        return match[0]

    def _line(self) -> int:
        return bisect.bisect_right(self._starts, self.at)

    def _part(self) -> str:
        self._skip(_SPACE)
        if not self.text.startswith(("'", '"'), self.at):
            return self._skip(_BARE)
        # tomllib knows the escapes.
        decoded: str = tomllib.loads(f"k = {self._skip(_STRING)}")["k"]
        return decoded

    def _note(self, prefix: KeyPath, parts: tuple[str, ...], line: int) -> KeyPath:
        """Record the line of a key and of the tables that it opens; return its full path."""
        path = prefix
        for n, part in enumerate(parts):
            path = (*path, part)
            self._lines.setdefault(path, line)
            if path in self._last_item and n < len(parts) - 1:
                path = (*path, self._last_item[path])
        return path

    def _header(self) -> KeyPath:
        line = self._line()
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        path = self._note((), self.dotted(), line)
        if not self.text.startswith("]" * brackets, self.at):
            raise ValueError(f"no valid TOML in line {line}")
        self.at += brackets
        if brackets == 2:
            self._last_item[path] = self._last_item.get(path, -1) + 1
            path = (*path, self._last_item[path])
        self._lines[path] = line
        return path

    def _pair(self, prefix: KeyPath) -> None:
        line = self._line()
        path = self._note(prefix, self.dotted(), line)
        if not self.text.startswith("=", self.at):
            raise ValueError(f"no valid TOML in line {line}")
        self.at += 1
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        first = self.text[self.at : self.at + 1]
        if first in {"'", '"'}:
            self._skip(_STRING)
        elif first == "[":
            self._items("]", path)
        elif first == "{":
            self._items("}", path)
        else:
            self._skip(_SCALAR)

    def _items(self, close: str, path: KeyPath) -> None:
        self.at += 1
        n = 0
        self._skip(_BLANK)
        while not self.text.startswith(close, self.at):
            if close == "}":
                self._pair(path)
            else:
                self._lines[*path, n] = self._line()
                self._value((*path, n))
                n += 1
            self._skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(_BLANK)
            elif not self.text.startswith(close, self.at):
                raise ValueError(f"no valid TOML in line {self._line()}")
        self.at += 1
