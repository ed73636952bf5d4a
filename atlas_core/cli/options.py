"""Options that several commands share."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from atlas_core.cli import streams

__all__ = [
    "EnvOption",
    "JsonOption",
    "ProfileOption",
    "SettingsOption",
    "TraceOption",
    "claim_output",
    "input_lines",
    "read_input",
]


def claim_output(asked: bool) -> bool:
    """Keep standard output for the command's answer, where an option promises that it holds nothing else."""
    if asked:
        streams.claim()
    return asked


def read_input(what: str) -> str:
    """Read standard input to its end.

    Args:
        what: The argument that asked for it.
    Raises:
        typer.BadParameter: It is closed, can't be read, or is no text.
    """
    return "".join(input_lines(what))


def input_lines(what: str | None = None) -> Iterator[str]:
    """Yield the lines of standard input; see `read_input`."""
    if streams.is_closed(sys.stdin):
        raise typer.BadParameter("standard input is closed", param_hint=what)
    try:
        yield from sys.stdin
    except OSError as exc:
        raise typer.BadParameter(f"standard input can't be read: {exc.strerror or exc}", param_hint=what) from exc
    except UnicodeDecodeError as exc:
        raise typer.BadParameter(f"standard input is no text in {exc.encoding}", param_hint=what) from exc


SettingsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Settings file; else settings.toml here, if there is one."),
]
EnvOption: TypeAlias = Annotated[
    str | None, typer.Option("--env", metavar="NAME", help="Environment of the settings; else what ATLAS_ENV names.")
]
ProfileOption: TypeAlias = Annotated[
    str | None, typer.Option("--profile", "-p", metavar="NAME", help="Agent profile; else the default profile.")
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else.", callback=claim_output)
]
TraceOption: TypeAlias = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Append every event to a JSON Lines file.")
]
