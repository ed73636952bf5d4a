"""What commands write: answers to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from collections.abc import Iterable, Sequence

from atlas_core.cli.streams import output, write
from atlas_core.errors import PluginError
from atlas_core.observers.text import printable
from atlas_core.settings.secrets import masked

__all__ = ["DEBUG", "fail", "say", "say_json", "say_table", "say_value", "warn", "write_error"]


class _Debug:
    """Whether `--debug` was given; set once, before a command runs."""

    on = False


DEBUG = _Debug()


def say(text: str = "") -> None:
    """Write a line to standard output; control characters in it are spelt out."""
    write(f"{printable(text)}\n")


def say_value(text: str) -> None:
    """Write a foreign text and a line end: to a pipe as it is, to a screen with its control characters spelt out."""
    write(f"{printable(text) if output().isatty() else text}\n")


def say_json(value: object) -> None:
    """Write one JSON value to standard output, in ASCII where a terminal could misread it."""
    plain = output().isatty() or not (output().encoding or "").lower().startswith("utf")
    write(json.dumps(value, ensure_ascii=plain, indent=2, default=str) + "\n")


def say_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows in columns; the last column is not padded."""
    lines = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)]
        write("  ".join([*cells, line[-1]]).rstrip() + "\n")


def warn(text: object) -> None:
    """Write a warning to standard error, in one line."""
    _complain("warning", " ".join(str(text).split()))


def fail(error: BaseException | str) -> None:
    """Write why the command failed to standard error; with `--debug` the traceback as well."""
    _complain("error", str(error) or type(error).__name__)
    if not DEBUG.on or isinstance(error, str):
        return
    if isinstance(error, PluginError) and error.cause:
        write_error(error.cause)
    write_error("".join(traceback.format_exception(error)))


def _complain(kind: str, text: str) -> None:
    write_error(f"atlas: {kind}: {text}\n")


def write_error(text: str) -> None:
    """Write to standard error, secrets masked and control characters spelt out."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # nobody listens
        sys.stderr.write(printable(str(masked(text))))
        sys.stderr.flush()
