"""Reading one settings file: its tables, and the line of each key."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlas_core.errors import SettingsError
from atlas_core.settings.toml_lines import KeyPath, key_lines

__all__ = ["TomlFile", "read_toml"]

_BOM = b"\xef\xbb\xbf"
_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlFile:
    """A settings file as read.

    Attributes:
        path: The file.
        label: How errors name it.
        tables: What it holds.
        lines: The line of each key, from 1.
    """

    path: Path
    label: str
    tables: Mapping[str, Any] = field(repr=False)
    lines: Mapping[KeyPath, int] = field(repr=False)

    def origin(self, path: KeyPath) -> str:
        """Return `settings.toml:12` for a key, or for the nearest table around it that has a line."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.label}:{self.lines[path]}" if path else self.label


def read_toml(path: Path, *, label: str, must_exist: bool = True) -> TomlFile | None:
    """Read a TOML file; a byte-order mark is accepted. No error text shows what the file holds.

    Args:
        path: The file.
        label: How errors name it.
        must_exist: Whether a missing file is an error; a link that leads nowhere is one in any case.
    Returns:
        The file, or None if it is missing and may be.

    Raises:
        SettingsError: The file is missing, is no regular file, can't be read, is not UTF-8 or no valid TOML.
    """
    raw = _read_bytes(path, label, must_exist=must_exist)
    if raw is None:
        return None
    text = _decode(raw, label)
    try:
        # TOML counts CRLF as one line end and forbids a lone CR, so this loses nothing.
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        place = _TOML_PLACE.search(str(exc))
        # Where the text ends too soon there is no line in the error: it is the last one that holds anything.
        line = place[1] if place and place[1] else text.rstrip().count("\n") + 1
        source = f"{label}:{line}"
        reason = _TOML_PLACE.sub("", str(exc))
        # Not chained: from Python 3.14 on that error carries the whole document.
        raise SettingsError(
            f"settings file {label!r} is not valid TOML: {reason}", source=source, remedy="correct that line"
        ) from None
    return TomlFile(path=path, label=label, tables=tables, lines=key_lines(text))


def _read_bytes(path: Path, label: str, *, must_exist: bool) -> bytes | None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SettingsError(f"settings file {label!r} is a folder", remedy="name a file, or move the folder away")
        if not must_exist and not stat.S_ISREG(mode):
            raise SettingsError(f"settings file {label!r} is no regular file", remedy="move it away, or name a file")
        return path.read_bytes()
    except FileNotFoundError as exc:
        if path.is_symlink():
            raise SettingsError(
                f"settings file {label!r} is a link that leads nowhere", remedy="mend or remove the link"
            ) from exc
        if not must_exist:
            return None
        raise SettingsError(
            f"settings file {label!r} does not exist", remedy="check the path; `atlas init` writes a new one"
        ) from exc
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
        raise SettingsError(
            f"settings file {label!r} can't be read: {reason}", remedy="check the path and its permissions"
        ) from exc


def _decode(raw: bytes, label: str) -> str:
    raw = raw.removeprefix(_BOM)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        raise SettingsError(f"settings file {label!r} is encoded in UTF-16 or UTF-32", remedy="save it as UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
    # Outside the handler, so that no traceback carries the error, which holds the file's bytes.
    raise SettingsError(
        f"settings file {label!r} is not UTF-8 in line {line}", source=f"{label}:{line}", remedy="save it as UTF-8"
    )
