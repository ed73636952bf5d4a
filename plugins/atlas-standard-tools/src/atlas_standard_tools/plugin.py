"""The hooks of atlas-standard-tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import BaseModel

    from atlas_standard_tools.options import Options


@hookimpl
def atlas_options() -> type[BaseModel]:
    """Name the model of the table `plugins.options.standard-tools`."""
    from atlas_standard_tools.options import Options

    return Options


@hookimpl
def atlas_tool_providers(options: Options) -> Iterable[Callable[..., object]]:
    """Offer the tools; `write_file` and `fetch_url` only where the options switch them on."""
    from pathlib import Path

    from atlas_standard_tools.calculator import calculator_tool
    from atlas_standard_tools.clock import Clock
    from atlas_standard_tools.fetch import Fetcher
    from atlas_standard_tools.files import Files
    from atlas_standard_tools.units import unit_converter

    clock = Clock(options.time.timezone)
    files = Files(options.files, root=Path.cwd())
    fetch = [Fetcher(options.fetch).fetch_url] if options.fetch.enabled else []
    return [calculator_tool, unit_converter, clock.current_time, clock.date_arithmetic, *files.tools(), *fetch]
