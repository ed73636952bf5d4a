"""Who supplied a thing: named in every event, error and listing."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Owner"]


@dataclass(frozen=True, slots=True)
class Owner:
    """A plugin, its distribution and that distribution's version; all empty for what the program itself supplied."""

    plugin: str = ""
    distribution: str = ""
    version: str = ""

    def __str__(self) -> str:
        if not self.plugin:
            return "this program"
        if not self.distribution:
            return f"plugin {self.plugin!r}"
        version = f" {self.version}" if self.version else ""
        return f"plugin {self.plugin!r} of {self.distribution}{version}"
