"""Exit statuses: what a script can rely on."""

from __future__ import annotations

import enum
import signal

from atlas_core.errors import AtlasError, LimitError, RunError

__all__ = ["ExitStatus", "Interrupted", "status_of"]


class ExitStatus(enum.IntEnum):
    """How a command ended."""

    OK = 0
    """Answered, or done."""
    FAILED = 1
    """The run, the tool or what was looked at failed."""
    USAGE = 2
    """The command line, a setting or a plugin is wrong; nothing was run."""
    DECLINED = 3
    """The model declined to answer."""
    LIMIT = 4
    """A limit of the run was reached."""
    INTERRUPTED = 130
    """Ctrl-C (128 + SIGINT)."""
    BROKEN_PIPE = 141
    """Nobody reads the output any more (128 + SIGPIPE)."""
    TERMINATED = 143
    """Told to end (128 + SIGTERM)."""


def status_of(error: BaseException) -> ExitStatus:
    """Return the status of a command that an error ended."""
    if isinstance(error, LimitError):
        return ExitStatus.LIMIT
    if isinstance(error, RunError):
        return ExitStatus.FAILED
    return ExitStatus.USAGE if isinstance(error, AtlasError) else ExitStatus.FAILED


class Interrupted(Exception):  # noqa: N818  # a signal, no failure
    """Work was ended by a signal, and has cleaned up.

    Attributes:
        signal: The signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number

    def __str__(self) -> str:
        return f"interrupted by {signal.Signals(self.signal).name}"

    @property
    def status(self) -> int:
        """The exit status that shells use for it."""
        return 128 + self.signal
