"""When and how long to wait before an attempt is made again."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING

from atlas_core.errors import ProviderError, ProviderRateLimitError

if TYPE_CHECKING:
    from stamina import Attempt

    from atlas_core.http.values import RetryPolicy

__all__ = ["Attempts"]

log = logging.getLogger(__name__)


class Attempts:
    """The attempts of one request. Costs nothing before the first one fails.

    The counting, the wait and the hooks that report it are stamina's, so that `stamina.set_active`,
    `stamina.set_testing` and its instrumentation work.

    Args:
        policy: How often, and how long at most.
        deadline: When the request must be done, on the clock of `time.monotonic()`, or None.

    Attributes:
        made: How many attempts were begun.
        demanded_s: The wait in seconds that the last answer asked for, or None; whoever reads the answer sets it.
    """

    def __init__(self, policy: RetryPolicy, deadline: float | None) -> None:
        self._policy = policy
        self._deadline = deadline
        self._steps: AsyncIterator[Attempt] | None = None
        self._attempt: Attempt | None = None
        self.made = 1
        self.demanded_s: float | None = None

    async def after(self, error: ProviderError) -> None:
        """Wait until it is time for another attempt.

        Args:
            error: What the last attempt ended with.
        Raises:
            ProviderError: `error`, if there is to be no other attempt. Its text tells how many were made, and the
                wait that the server demands if that is longer than what is left.
        """
        if not error.retryable:
            raise error
        if self.demanded_s is None and isinstance(error, ProviderRateLimitError):
            self.demanded_s = error.retry_after_s
        if self._steps is None:
            import stamina  # only where something failed

            _quiet()
            self._steps = aiter(
                stamina.retry_context(on=self._wait_s, attempts=self._policy.max_attempts, timeout=None)
            )
            self._attempt = await anext(self._steps)
        assert self._attempt is not None  # noqa: S101  # set with the steps
        self._attempt.__exit__(type(error), error, error.__traceback__)
        try:
            self._attempt = await anext(self._steps)
        except ProviderError:
            error.problem += self._why_not_again()
            raise
        self.made += 1
        self.demanded_s = None

    def _why_not_again(self) -> str:
        if self._asks_too_much:
            assert self.demanded_s is not None  # noqa: S101
            return f"; it demands a wait of {self.demanded_s:,.0f} s, and {max(0.0, self._left_s):.1f} s are left"
        return f"; tried {self.made} times" if self.made > 1 else ""

    @property
    def _left_s(self) -> float:
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()

    @property
    def _asks_too_much(self) -> bool:
        return self.demanded_s is not None and self.demanded_s > self._left_s

    def _wait_s(self, exc: Exception) -> bool | float:
        """Return the wait before the next attempt, or False for none; stamina asks."""
        if self._asks_too_much:
            return False
        wanted = self.demanded_s
        if wanted is None:
            # At random up to twice as long, so that clients that failed together come back apart.
            wanted = self._policy.first_wait_s * 2.0 ** min(self.made - 1, 30) * (1 + random.random())  # noqa: S311
        wait = min(wanted, self._policy.max_wait_s)
        if wait >= self._left_s:
            return False
        log.info("attempt %d failed, the next may follow in %.1f s: %s", self.made, wait, exc)
        return wait


@cache
def _quiet() -> None:
    # Without a handler, the warning of stamina's hook goes to the terminal; with one, still to the program's own.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
