"""The base that a strategy for running calls builds on."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from atlas_core._runtime.calls import prepare_alone
from atlas_core._runtime.invoke import Lifecycle
from atlas_core._runtime.workers import Workers
from atlas_core.interfaces.service import BaseService

if TYPE_CHECKING:
    from atlas_core.interfaces.executors import Outcome, PreparedCall
    from atlas_core.interfaces.tools import Tool
    from atlas_core.messages import ToolCall
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["BaseToolExecutor"]


class BaseToolExecutor(BaseService):
    """A strategy for running calls. A new one overrides `execute_batch` alone.

    The kernel has looked up, permitted, validated and approved a call before an executor sees it, and encodes
    the outcome after. A strategy can therefore skip no check.

    Args:
        tool_registry: For use without a kernel: where an agent and `prepare` look tools up.
    """

    def __init__(self, tool_registry: ToolRegistry | None = None) -> None:
        self.tool_registry = tool_registry
        self._workers: Workers | None = None
        self._lifecycle = Lifecycle()
        self._left: tuple[str, ...] = ()

    @property
    def workers(self) -> Workers:
        """The threads in which `PreparedCall.invoke` runs plain functions; made when first needed."""
        if self._workers is None:
            self._workers = self.make_workers()
        return self._workers

    def make_workers(self) -> Workers:
        """Make the executor's threads; override to bound them differently."""
        return Workers()

    @property
    def lifecycle(self) -> Lifecycle:
        """Starts and stops the tools of those who use this executor without a kernel."""
        return self._lifecycle

    @property
    def abandoned_calls(self) -> tuple[str, ...]:
        """Calls that did not return in time and go on; after `stop`, those that `stop` could not end."""
        return self._left if self._workers is None else self._workers.abandoned

    @abstractmethod
    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Run the calls and return one outcome for each, in the order of the calls.

        A failing tool is an outcome, never an exception. Called after `start`, from several runs at once.

        Raises:
            ExecutorError: The executor itself is gone; the run ends.
            asyncio.CancelledError: The run was cancelled; nothing that the executor started goes on.
        """
        raise NotImplementedError

    def prepare(self, tool_calls: Iterable[ToolCall]) -> list[PreparedCall]:
        """Look up and validate calls, for use without an agent.

        Raises:
            UnknownToolError: The registry has no such tool.
            ToolArgumentsError: The arguments don't fit its schema.
            ValueError: The executor has no registry.
        """
        if self.tool_registry is None:
            raise ValueError(f"{type(self).__name__} has no tool_registry; pass one to its constructor")
        return prepare_alone(self.tool_registry, self.workers, self._lifecycle, tool_calls)

    def get_tools_for_agent(self, names: Iterable[str]) -> list[Tool]:
        """Return the registry's tools that the names or patterns choose, in name order.

        Raises:
            UnknownToolError: A name without wildcard is not registered.
        """
        return [] if self.tool_registry is None else self.tool_registry.select(names)

    async def stop(self) -> None:
        """End the executor, its idle threads and the tools that `prepare` had started; does nothing if it has ended."""
        try:
            await super().stop()
        finally:
            await self._lifecycle.stop()
            workers, self._workers = self._workers, None
            if workers is not None:
                here = [task for task in workers.strays if task.get_loop() is asyncio.get_running_loop()]
                for task in tuple(workers.strays):
                    task.get_loop().call_soon_threadsafe(task.cancel)
                if here:
                    await asyncio.wait(here, timeout=1.0)
                self._left = workers.stop()
