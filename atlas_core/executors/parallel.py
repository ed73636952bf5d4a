"""Runs the calls of one message at the same time, up to a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from atlas_core._runtime.workers import Workers
from atlas_core.executors.base import BaseToolExecutor

if TYPE_CHECKING:
    from atlas_core.interfaces.executors import Outcome, PreparedCall
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["ParallelToolExecutor"]


class ParallelToolExecutor(BaseToolExecutor):
    """Runs the calls of one message at the same time.

    Args:
        tool_registry: For use without a kernel.
        max_concurrency: Calls of one batch that run at once, and threads that the executor keeps for plain
            functions over all its runs; at least 1.
    """

    def __init__(self, tool_registry: ToolRegistry | None = None, *, max_concurrency: int = 32) -> None:
        super().__init__(tool_registry)
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency is {max_concurrency!r}, expected at least 1")
        self._max_concurrency = max_concurrency

    def make_workers(self) -> Workers:
        """Make as many threads as calls may run."""
        return Workers(max_threads=self._max_concurrency)

    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Run the calls together; outcomes come in call order whatever finishes first."""
        if len(calls) == 1:
            return [await calls[0].invoke()]
        if len(calls) <= self._max_concurrency:
            return await _gather([call.invoke() for call in calls])
        places = asyncio.Semaphore(self._max_concurrency)

        async def in_turn(call: PreparedCall) -> Outcome:
            async with places:
                return await call.invoke()

        return await _gather([in_turn(call) for call in calls])


async def _gather(coroutines: Sequence[Coroutine[object, object, Outcome]]) -> list[Outcome]:
    # A task group, unlike gather, waits for the others to end before it passes a cancellation or interrupt on.
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]
