"""The keys of a connection with `backend = "llama"`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["LlamaOptions"]


class LlamaOptions(BaseModel):
    """A connection's keys besides the kernel's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, Field(min_length=1)]
    """The GGUF file; `~` is the home folder, a relative path starts from the settings file's folder."""

    threads: Annotated[int, Field(ge=1, le=512)] | None = None
    """Threads that compute; half the cores this process may use, if left out."""

    context_tokens: Annotated[int, Field(ge=256)] | None = None
    """Tokens of input and output together, at most what the file allows; that, but at most 8192, if left out. llama.cpp
    rounds it up to a multiple of 256."""

    temperature: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = 0.0
    """0 always takes the likeliest token, so that the same input gives the same answer."""

    seed: Annotated[int, Field(ge=0, lt=2**32 - 1)] | None = None
    """Start of the random numbers where `temperature` is above 0; another one each time, if left out."""

    gpu_layers: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Layers to put on a graphics card, where xllamacpp was built for one; more than there are means all."""

    parallel: Annotated[int, Field(ge=1, le=64)] = 1
    """Answers that are written at once; each has a window of `context_tokens`, and memory for it. Others wait."""
