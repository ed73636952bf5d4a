"""What this plugin offers: the LLM provider `openai`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atlas_core import BaseLLM, ConnectionConfig, LLMProviderSpec

__all__ = ["atlas_llm_providers"]


@hookimpl
def atlas_llm_providers() -> Iterable[LLMProviderSpec]:
    """Offer the provider `openai`."""
    from atlas_core import LLMProviderSpec
    from atlas_openai.options import OpenAIOptions

    return [
        LLMProviderSpec(
            name="openai",
            factory=_make,
            options=OpenAIOptions,
            description="OpenAI's models, and any server that speaks Chat Completions or Responses",
        )
    ]


def _make(config: ConnectionConfig) -> BaseLLM:
    from atlas_openai.provider import OpenAILLM

    return OpenAILLM(config)
