"""What this plugin offers: the LLM provider `offline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atlas_core import BaseLLM, ConnectionConfig, LLMProviderSpec

__all__ = ["atlas_llm_providers"]


@hookimpl
def atlas_llm_providers() -> Iterable[LLMProviderSpec]:
    """Offer the provider `offline`, which takes no options and needs no key."""
    from atlas_core import LLMProviderSpec

    return [
        LLMProviderSpec(
            name="offline",
            factory=_make,
            description="offline rules, no language model: plans calls of the tools on offer, or declines",
        )
    ]


def _make(config: ConnectionConfig) -> BaseLLM:
    from atlas_offline.provider import OfflineLLM

    return OfflineLLM(config)
