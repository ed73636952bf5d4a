"""The standard streams: what a command may write and read, whatever a shell, a plugin or a tool did to them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

__all__ = ["OutputError", "abandon", "claim", "flush", "is_closed", "output", "prepare", "release", "write"]

_OUT, _ERR = 1, 2


class OutputError(Exception):
    """Standard output can't be written, for another reason than that nobody reads it."""

    def __init__(self, cause: OSError | ValueError) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"standard output can't be written: {getattr(self.cause, 'strerror', None) or self.cause}"


class _Claimed:
    """Standard output while it is kept for the command's own words; one per process, as the descriptors are."""

    stream: TextIO | None = None
    before: TextIO | None = None
    has_descriptor = False


_CLAIMED = _Claimed()


def is_closed(stream: TextIO | None) -> bool:
    """Tell whether a standard stream is missing, as after `>&-`, or was closed by the program."""
    return stream is None or getattr(stream, "closed", False)


def prepare() -> None:
    """Make the streams harmless.

    What their encoding lacks is spelt out. A descriptor that was closed leads nowhere from now on: else the next file
    that is opened would take its place, and what a plugin prints would go there.
    """
    for descriptor in (0, _OUT, _ERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def output() -> TextIO:
    """Return where answers and listings go."""
    return _CLAIMED.stream if _CLAIMED.stream is not None else sys.stdout


def claim() -> None:
    """Keep standard output for `write`; what anybody else prints goes to standard error, until `release`.

    That holds for `print`, for the descriptor, and for child processes that inherit it. Does nothing the second time.
    """
    if _CLAIMED.stream is not None:
        return
    stream = _CLAIMED.stream = _CLAIMED.before = sys.stdout
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
    if _descriptor(stream) == _OUT:
        own = os.fdopen(os.dup(_OUT), "wb")
        _CLAIMED.stream = io.TextIOWrapper(
            own, encoding=stream.encoding, errors=stream.errors, line_buffering=own.isatty()
        )
        _CLAIMED.has_descriptor = True
        os.dup2(_ERR, _OUT)
    if sys.stderr is not None:
        sys.stdout = sys.stderr


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # a program's own stream, with no descriptor
        return None


def release(*, restore: bool = True) -> None:
    """End `claim`; does nothing without it.

    Args:
        restore: Whether others may print to standard output again, as in a program that goes on; not where the process
            ends, with threads of tools that may still print.
    """
    own, before, _CLAIMED.stream, _CLAIMED.before = _CLAIMED.stream, _CLAIMED.before, None, None
    if own is None or before is None:
        return
    if restore:
        sys.stdout = before
    if _CLAIMED.has_descriptor:
        _CLAIMED.has_descriptor = False
        with contextlib.suppress(OSError, ValueError):
            before.flush()  # printed by others
        if restore:
            os.dup2(own.fileno(), _OUT)
        with contextlib.suppress(OSError, ValueError):
            own.close()


def write(text: str) -> None:
    """Write to standard output.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        OutputError: It can't be written.
    """
    try:
        output().write(text)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputError(exc) from exc


def flush() -> None:
    """Flush standard output.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        OutputError: It can't be written.
    """
    try:
        output().flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as exc:
        raise OutputError(exc) from exc


def abandon() -> None:
    """Send what standard output still holds nowhere: Python flushes it once more at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output().fileno())
        os.close(nowhere)
