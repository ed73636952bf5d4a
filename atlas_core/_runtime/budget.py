"""The tokens of a run: reserved before a request, settled after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from atlas_core.errors import TokenBudgetError

if TYPE_CHECKING:
    from atlas_core.messages import ChatMessage, Usage

__all__ = ["TokenBudget", "estimate_tokens"]

CHARS_PER_TOKEN = 4
"""A rough figure for English text and current tokenizers, used only until the server has counted."""


def estimate_tokens(messages: Iterable[ChatMessage]) -> int:
    """Return a rough count of tokens, for deciding before a request what only the server knows after it."""
    chars = 0
    for message in messages:
        chars += len(message.text) + sum(len(c.name) + len(c.arguments_json) for c in message.tool_calls) + 16
    return chars // CHARS_PER_TOKEN


class TokenBudget:
    """Bounds the input and output tokens of all requests of a run.

    Args:
        max_tokens: The bound, or None for no limit; then nothing is counted.
    """

    def __init__(self, max_tokens: int | None) -> None:
        self._max_tokens = max_tokens
        self._used = 0
        self._next_input = 0

    def add(self, messages: Iterable[ChatMessage]) -> None:
        """Count messages that the next request holds in addition to the last one's."""
        if self._max_tokens is not None:
            self._next_input += estimate_tokens(messages)

    def reserve(self, max_output_tokens: int | None) -> None:
        """Make sure that the next request fits.

        Raises:
            TokenBudgetError: Its estimated input and its greatest output would go over the bound.
        """
        if self._max_tokens is None:
            return
        needed = self._next_input + (max_output_tokens or 1)
        if self._used + needed > self._max_tokens:
            raise TokenBudgetError(
                f"the next request needs about {needed} tokens, {self._used} of max_tokens {self._max_tokens} are used",
                limit=self._max_tokens,
                remedy="raise max_tokens, or shorten the history",
            )

    def settle(self, usage: Usage) -> None:
        """Book what a request used; the server's count replaces the estimate for the next one."""
        if self._max_tokens is None:
            return
        if usage.input_tokens or usage.output_tokens:
            self._used += usage.input_tokens + usage.output_tokens
            self._next_input = usage.input_tokens
        else:
            self._used += self._next_input
