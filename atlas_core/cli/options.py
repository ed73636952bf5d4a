"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["EnvOption", "JsonOption", "ProfileOption", "SettingsOption"]

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
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
