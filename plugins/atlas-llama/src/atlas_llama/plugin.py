"""What this plugin offers: the LLM provider `llama`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atlas_core import BaseLLM, ConnectionConfig, LLMProviderSpec

__all__ = ["atlas_llm_providers"]


@hookimpl
def atlas_llm_providers() -> Iterable[LLMProviderSpec]:
    """Offer the provider `llama`; a connection's options are `LlamaOptions`."""
    from atlas_core import LLMProviderSpec
    from atlas_llama.options import LlamaOptions

    return [
        LLMProviderSpec(
            name="llama",
            factory=_make,
            options=LlamaOptions,
            description="a GGUF model file, run in this process by llama.cpp; no key, no server",
        )
    ]


def _make(config: ConnectionConfig) -> BaseLLM:
    from atlas_llama.provider import LlamaLLM

    return LlamaLLM(config)
