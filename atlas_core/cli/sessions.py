"""What commands that use a kernel have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from atlas_core.cli.output import warn

if TYPE_CHECKING:
    from pathlib import Path

    from atlas_core.events import Observer
    from atlas_core.kernel import Kernel

__all__ = ["make_kernel", "running_kernel", "tell_warnings"]


def make_kernel(settings: Path | None, env: str | None, observers: Iterable[Observer] = ()) -> Kernel:
    """Make a kernel from the options that commands share."""
    from atlas_core.kernel import Kernel  # dear: settings, pydantic

    return Kernel.from_settings(settings, env=env, observers=observers)


def tell_warnings(kernel: Kernel) -> None:
    """Write the kernel's warnings to standard error, and what discovery could not read."""
    for text in (*kernel.discovery.problems, *kernel.warnings):
        warn(text)


@asynccontextmanager
async def running_kernel(kernel: Kernel) -> AsyncIterator[Kernel]:
    """Stop a kernel at the end, also where it never started."""
    try:
        yield kernel
    finally:
        await kernel.stop()
