"""The plugin's options, as they stand in the settings under `plugins.options.standard-tools`."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["FetchOptions", "FilesOptions", "Options", "TimeOptions"]

_Port = Annotated[int, Field(ge=1, le=65535)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FilesOptions(_Table):
    """Table `files`: what `read_file`, `list_directory` and `write_file` may touch."""

    root: Path | None = Field(
        default=None,
        description="The one folder they see, relative to the working folder; left out, the working folder itself.",
    )
    write: bool = Field(default=False, description="Whether write_file is offered.")
    hidden: bool = Field(default=False, description="Whether names that begin with a dot may be seen, such as .env.")
    max_read_bytes: int = Field(default=65_536, ge=8, le=16_777_216, description="Most bytes of one read_file.")
    max_write_bytes: int = Field(default=1_048_576, ge=0, description="Most bytes of one write_file.")
    max_entries: int = Field(default=1000, ge=1, le=100_000, description="Most entries of one list_directory.")


class FetchOptions(_Table):
    """Table `fetch`: whether and what `fetch_url` may load."""

    enabled: bool = Field(default=False, description="Whether fetch_url is offered.")
    timeout_s: float = Field(default=20, gt=0, le=600, description="Seconds for one call, redirects included.")
    max_bytes: int = Field(
        default=2_000_000, ge=1, le=100_000_000, description="Most bytes of one page, unpacked; the rest is cut."
    )
    max_redirects: int = Field(default=5, ge=0, le=20, description="Most redirects followed in one call.")
    allowed_ports: tuple[_Port, ...] = Field(default=(80, 443), description="Ports that may be connected to.")
    allowed_private_networks: tuple[str, ...] = Field(
        default=(),
        description="Networks beyond the global internet that may be reached, such as '10.1.0.0/16'.",
    )
    user_agent: str = Field(default="atlas-standard-tools", min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")
    ca_file: Path | None = Field(
        default=None, description="Certificates to trust in place of the usual ones, in PEM; for a private authority."
    )

    @field_validator("allowed_private_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                ipaddress.ip_network(text)
            except ValueError as exc:
                raise ValueError(f"{text!r} is no network: {exc}; write one such as '10.1.0.0/16'") from exc
        return value


class TimeOptions(_Table):
    """Table `time`: the clock."""

    timezone: str = Field(
        default="UTC", min_length=1, description="Zone where a call names none: an IANA name, a city in one, an offset."
    )

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        from atlas_standard_tools._zones import find_zone

        find_zone(value)
        return value


class Options(_Table):
    """The whole table."""

    files: FilesOptions = FilesOptions()
    fetch: FetchOptions = FetchOptions()
    time: TimeOptions = TimeOptions()
