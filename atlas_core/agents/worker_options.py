"""The `options` table of profiles of type `worker` and `tool_capable`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from atlas_core.directory import plain_name

__all__ = ["WorkerOptions"]


def _capability(name: str) -> str:
    return plain_name(name, "capability")


class WorkerOptions(BaseModel):
    """What a profile says about a worker besides what all profiles say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    specialization: str = Field(default="", description="What it is good at; the profile's description if left out.")
    capabilities: tuple[Annotated[str, AfterValidator(_capability)], ...] = Field(
        default=(), description="Names of what it can do, for a directory."
    )
