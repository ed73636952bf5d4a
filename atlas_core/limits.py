"""The limits of a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RunLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What one run may use. None means no limit of that kind.

    Attributes:
        max_iterations: Model requests; a provider's transport retries don't count.
        max_execution_time_seconds: Wall time of model, tools and sub-agents together.
        max_tool_calls: Calls that may be started; failed ones count, surplus ones are answered with a refusal.
        max_tokens: Input and output tokens over all requests.
        max_cost: What all requests may cost, in the currency of the connection's prices.
        max_calls_per_step: Calls of one message that may be started; a bound against a model gone wild.
    """

    max_iterations: int = 10
    max_execution_time_seconds: float | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_calls_per_step: int = 64

    def __post_init__(self) -> None:
        for name in ("max_iterations", "max_calls_per_step", "max_tool_calls", "max_tokens"):
            count: object = getattr(self, name)
            optional = name in ("max_tool_calls", "max_tokens")
            if not (type(count) is int or (optional and count is None)):
                raise TypeError(f"{name} is {count!r}, expected a whole number{', or None' if optional else ''}")
        for name in ("max_execution_time_seconds", "max_cost"):
            value = getattr(self, name)
            if value is not None and not (type(value) in (int, float) and value == value):  # noqa: PLR0124  # NaN
                raise TypeError(f"{name} is {value!r}, expected a number, or None for no limit")
        for name in ("max_iterations", "max_calls_per_step"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least 1")
        for name in ("max_execution_time_seconds", "max_tool_calls", "max_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} is {value!r}, expected at least 0, or None for no limit")
