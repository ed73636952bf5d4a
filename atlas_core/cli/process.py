"""Ending the process, also where something is left that can't be stopped."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from typing import NoReturn

from atlas_core.cli.output import warn

__all__ = ["LEFT", "end", "end_process"]

EXIT_GRACE_S = 10.0
"""How long threads that a plugin or tool started by itself may hold up the end; Python would wait for ever."""

LEFT: list[object] = []
"""Event loops with tasks or threads that did not end, kept so that nothing is collected: that would be complained
about on standard error."""


def end(status: int) -> int:
    """Return the status, for a process that may end in the usual way; end it here where that might take for ever."""
    if status > 128 or LEFT:
        end_process(status)
    if _threads():
        # They may well be about to end, and idle threads of a pool are told to by Python itself.
        threading.Thread(target=_end_later, args=(status,), daemon=True).start()
    return status


def _threads() -> list[str]:
    """Return the names of the threads that Python waits for."""
    return [t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]


def _end_later(status: int) -> NoReturn:
    time.sleep(EXIT_GRACE_S)
    warn(f"ended after {EXIT_GRACE_S:g} s with threads that still ran: {', '.join(_threads())}")
    end_process(status)


def end_process(status: int) -> NoReturn:
    """End the process without waiting for anything."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
