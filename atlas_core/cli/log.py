"""The log as the command line shows it: warnings in its own form, everything with `--debug`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from atlas_core.cli.output import DEBUG, warn, write_error

__all__ = ["shown_log"]


class _Shown(logging.Handler):
    """Writes what others log to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if DEBUG.on:
                write_error(self.format(record) + "\n")
            elif record.levelno >= logging.WARNING:
                warn(_text(record))
        except Exception:  # noqa: BLE001  # a foreign record, whose arguments may not fit its text
            self.handleError(record)


def _text(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.name.partition(".")[0] != "atlas":
        text = f"{record.name}: {text}"
    error = record.exc_info[1] if record.exc_info else None
    return text if error is None else f"{text}: {type(error).__name__}: {error}"


@contextmanager
def shown_log() -> Iterator[None]:
    """Show the log on standard error while a command runs."""
    root, loops = logging.getLogger(), logging.getLogger("asyncio")
    levels = root.level, loops.level
    handler = _Shown()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        loops.setLevel(levels[1])
