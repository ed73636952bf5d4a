"""`atlas trace`: what a run did, from its trace file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from atlas_core.cli.output import fail, warn
from atlas_core.cli.run import raise_broken
from atlas_core.cli.status import ExitStatus

__all__ = ["app"]

app = typer.Typer(help="Look at trace files.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _trace() -> None:
    """Keeps `show` a command of its own: typer would merge a single one into the group."""


@app.command("show")
def show(file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that --trace wrote.")]) -> int:
    """Draw the runs of a trace file as they looked when they happened.

    A line that can't be read is reported on standard error with its number, and the rest is shown; exit status 1
    says so. A last line that was cut, as by a crash, is only reported.
    """
    from atlas_core.observers.console import ConsoleTree
    from atlas_core.observers.jsonl import read_trace

    tree = ConsoleTree(sys.stdout, questions=True, waits=False)
    broken = False
    try:
        for line in read_trace(file):
            if line.event is not None:
                tree.on_event(line.event)
                raise_broken(tree)
                continue
            warn(f"{file}:{line.number}: {line.problem}")
            broken = broken or not line.cut
    except BrokenPipeError:
        raise
    except OSError as exc:
        fail(f"trace file {str(file)!r} can't be read: {exc.strerror or exc}")
        return ExitStatus.USAGE
    finally:
        tree.close()
    return ExitStatus.FAILED if broken else ExitStatus.OK
