"""What this plugin offers: the LLM provider `anthropic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atlas_core import BaseLLM, ConnectionConfig, LLMProviderSpec

__all__ = ["atlas_llm_providers"]


@hookimpl
def atlas_llm_providers() -> Iterable[LLMProviderSpec]:
    """Offer the provider `anthropic`."""
    from atlas_anthropic.options import AnthropicOptions
    from atlas_core import LLMProviderSpec

    return [
        LLMProviderSpec(
            name="anthropic",
            factory=_make,
            options=AnthropicOptions,
            description="Claude models over Anthropic's Messages API, or a server that speaks it",
        )
    ]


def _make(config: ConnectionConfig) -> BaseLLM:
    from atlas_anthropic.provider import AnthropicLLM

    return AnthropicLLM(config)
