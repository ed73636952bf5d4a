"""What commands write: answers to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from io import TextIOWrapper

from atlas_core.errors import PluginError
from atlas_core.observers.text import printable
from atlas_core.settings.secrets import masked

__all__ = ["DEBUG", "abandon_output", "fail", "flush", "prepare_streams", "say", "say_json", "say_table", "warn"]


class _Debug:
    """Whether `--debug` was given; set once, before a command runs."""

    on = False


DEBUG = _Debug()


def prepare_streams() -> None:
    """Let no character end the program: what a stream's encoding lacks is spelt out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """Write a line to standard output; control characters in it are spelt out."""
    sys.stdout.write(f"{printable(text)}\n")


def say_json(value: object) -> None:
    """Write one JSON value to standard output, in ASCII where a terminal could misread it."""
    plain = sys.stdout.isatty() or not (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, ensure_ascii=plain, indent=2, default=str) + "\n")


def say_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows in columns; the last column is not padded."""
    lines = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)]
        sys.stdout.write("  ".join([*cells, line[-1]]).rstrip() + "\n")


def warn(text: object) -> None:
    """Write a warning to standard error, in one line."""
    _complain("warning", " ".join(str(text).split()))


def fail(error: BaseException | str) -> None:
    """Write why the command failed to standard error; with `--debug` the traceback as well."""
    _complain("error", str(error) or type(error).__name__)
    if not DEBUG.on or isinstance(error, str):
        return
    if isinstance(error, PluginError) and error.cause:
        _write_error(error.cause)
    _write_error("".join(traceback.format_exception(error)))


def _complain(kind: str, text: str) -> None:
    _write_error(f"atlas: {kind}: {text}\n")


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody listens
        sys.stderr.write(printable(str(masked(text))))
        sys.stderr.flush()


def flush() -> bool:
    """Flush standard output; return whether somebody still reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True


def abandon_output() -> None:
    """Send what standard output still holds nowhere: Python flushes it once more at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
