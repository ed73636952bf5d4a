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
    if words in (["--version"], ["-V"]):
        from atlas_core._version import __version__

        sys.stdout.write(f"atlas {__version__}\n")
        return 0
    try:
        from atlas_core.cli.app import end_process, run

        status = run(words)
    except KeyboardInterrupt:  # before a command could take care of it
        return 130
    if argv is None and status > 128:
        end_process(status)
    return status
