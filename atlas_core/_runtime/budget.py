"""The tokens and the cost of a run and of the runs below it: reserved before a request, settled after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from atlas_core.errors import CostBudgetError, TokenBudgetError

if TYPE_CHECKING:
    from atlas_core.messages import ChatMessage, Usage

__all__ = ["Budget", "Price", "Reservation", "estimate_tokens"]

CHARS_PER_TOKEN = 4
"""Characters; a rough figure for English text and current tokenizers, used only until the server has counted."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a connection's tokens cost, each per million, in any one currency."""

    input: float
    cached_input: float
    output: float

    def of(self, usage: Usage) -> float:
        """Return what a request cost."""
        fresh = usage.input_tokens - usage.cached_input_tokens
        total = fresh * self.input + usage.cached_input_tokens * self.cached_input + usage.output_tokens * self.output
        return total / MILLION


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is set aside for a request that is under way."""

    tokens: int
    cost: float


NOTHING = Reservation(0, 0.0)


def estimate_tokens(messages: Iterable[ChatMessage]) -> int:
    """Return a rough count of tokens, for deciding before a request what only the server knows after it."""
    chars = 0
    for message in messages:
        chars += len(message.text) + sum(len(c.name) + len(c.arguments_json) for c in message.tool_calls) + 16
    return chars // CHARS_PER_TOKEN


class Budget:
    """What a run may spend.

    Args:
        max_tokens: Bound of input and output tokens over all requests, or None.
        max_cost: Bound of the cost, or None.
        prices: By connection, of those that may answer; a connection without costs nothing that could be told.
        connection: The connection that is asked first.
        parent: The budget of the run that started this one, which everything counts against as well.
        fixed_tokens: About what each request holds besides messages.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, Price] | None = None,
        connection: str = "",
        parent: Budget | None = None,
        fixed_tokens: int = 0,
    ) -> None:
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._prices = prices or {}
        self._connection = connection
        self._parent = parent
        self._tokens = 0
        self._cost = 0.0
        self._held_tokens = 0
        self._held_cost = 0.0
        self._next_input = fixed_tokens
        self.estimates = False
        """Whether a server counted nothing, so that bounds are kept by estimates."""
        self._bounded: bool = (
            max_tokens is not None or max_cost is not None or (parent is not None and parent.is_bounded)
        )

    @property
    def is_bounded(self) -> bool:
        """Whether this budget or one above it has a bound; where none has, nothing is estimated."""
        return self._bounded

    def add(self, messages: Iterable[ChatMessage]) -> None:
        """Count messages that the next request holds in addition to the last one's."""
        if self._bounded:
            self._next_input += estimate_tokens(messages)

    def reserve(self, max_output_tokens: int | None) -> Reservation:
        """Set aside what the next request may use.

        Raises:
            TokenBudgetError: Its estimated input and its greatest output would go over a bound.
            CostBudgetError: The same for the cost.
        """
        if not self._bounded:
            return NOTHING
        output = max_output_tokens or 1
        # Any of them may have to answer, so the dearest counts.
        cost = (
            max((self._next_input * p.input + output * p.output for p in self._prices.values()), default=0.0) / MILLION
        )
        wanted = Reservation(self._next_input + output, cost)
        budget: Budget | None = self
        while budget is not None:
            budget._refuse_over(wanted)  # noqa: SLF001  # one of its own kind, further up
            budget = budget._parent  # noqa: SLF001  # as above
        self._hold(wanted)
        return wanted

    def _refuse_over(self, wanted: Reservation) -> None:
        used = self._tokens + self._held_tokens
        if self._max_tokens is not None and used + wanted.tokens > self._max_tokens:
            raise TokenBudgetError(
                f"the next request needs about {wanted.tokens} tokens, "
                f"{used} of max_tokens {self._max_tokens} are used",
                limit=self._max_tokens,
                remedy="raise max_tokens, or shorten the history",
            )
        spent = self._cost + self._held_cost
        if self._max_cost is not None and spent + wanted.cost > self._max_cost:
            raise CostBudgetError(
                f"the next request may cost about {wanted.cost:.6g}, "
                f"{spent:.6g} of max_cost {self._max_cost:g} is spent",
                limit=self._max_cost,
                remedy="raise max_cost, shorten the history, or set a smaller max_output_tokens",
            )

    def _hold(self, amount: Reservation, sign: int = 1) -> None:
        self._held_tokens += sign * amount.tokens
        self._held_cost += sign * amount.cost
        if self._parent is not None:
            self._parent._hold(amount, sign)  # noqa: SLF001  # one of its own kind, further up

    def release(self, reservation: Reservation) -> None:
        """Give back what was set aside for a request that failed."""
        if self._bounded:
            self._hold(reservation, -1)

    def settle(self, reservation: Reservation, usage: Usage, answer: ChatMessage, connection: str = "") -> Usage:
        """Book what a request used, and return the usage with its cost.

        Args:
            reservation: What was set aside for it.
            usage: What the server counted. Where it counted nothing and there is a bound, estimates are booked.
            answer: What it answered.
            connection: What answered, if it is another one than was asked.
        """
        counted = bool(usage.input_tokens or usage.output_tokens)
        booked = usage
        if self._bounded and not counted:
            self.estimates = True
            booked = replace(usage, input_tokens=self._next_input, output_tokens=estimate_tokens([answer]) or 1)
        price = self._prices.get(connection or self._connection)
        cost = price.of(booked) if price is not None else 0.0
        if self._bounded:
            self._hold(reservation, -1)
            self._book(booked.input_tokens + booked.output_tokens, cost)
            if counted:
                self._next_input = usage.input_tokens
        return replace(usage, cost=cost) if price is not None else usage

    def _book(self, tokens: int, cost: float) -> None:
        self._tokens += tokens
        self._cost += cost
        if self._parent is not None:
            self._parent._book(tokens, cost)  # noqa: SLF001  # one of its own kind, further up
