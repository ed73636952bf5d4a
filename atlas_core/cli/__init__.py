"""The command line, `atlas`. This module answers `atlas --version` alone; everything else loads when asked for."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `atlas_core`: importing `typing` takes as long as starting Python

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        argv: The words after `atlas`; None for the process's own, which an interruption then ends at once.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    if words in (["--version"], ["-V"]) and _said_version():
        return 0
    try:
        from atlas_core.cli.app import run

        status = run(words, goes_on=argv is not None)
    except KeyboardInterrupt:  # before a command could take care of it
        status = 130
    if argv is not None:
        return status
    from atlas_core.cli.process import end

    return end(status)


def _said_version() -> bool:
    """Say the version if that is possible without further ado."""
    from atlas_core._version import __version__

    try:
        sys.stdout.write(f"atlas {__version__}\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # full, closed, or none at all
        return False
    return True
