"""Builds an agent from a script and tools, for the tests of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    BaseToolExecutor,
    ParallelToolExecutor,
    SyncToolExecutor,
    ToolRegistry,
)
from atlas_core.testing import FakeLLM, RecordingObserver

__all__ = ["BOTH", "Rig"]

BOTH = [SyncToolExecutor, ParallelToolExecutor]


class Rig:
    """An agent over a scripted model, and what it did."""

    def __init__(
        self,
        script: Iterable[Any],
        tools: Iterable[Callable[..., Any] | Any] = (),
        *,
        executor: type[BaseToolExecutor] | BaseToolExecutor = ParallelToolExecutor,
        stream_chars: int = 0,
        llm: FakeLLM | None = None,
        offer: Iterable[str] | None = None,
        **profile: Any,
    ) -> None:
        registry = ToolRegistry()
        for tool in tools:
            registry.register(tool)
        self.llm = llm or FakeLLM(script, stream_chars=stream_chars)
        self.observer = RecordingObserver()
        self.executor = executor(registry) if isinstance(executor, type) else executor
        self.executor.tool_registry = registry
        chosen = tuple(registry.names if offer is None else offer)
        settings = AgentProfileSettings(name="tester", tools=chosen, **profile)
        self.agent = AgentService(settings, self.llm, self.executor, observers=[self.observer])

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.agent.stop()
        await self.executor.stop()

    @property
    def tool_messages(self) -> list[str]:
        """Texts of the tool messages in the last request."""
        return [m.text for m in self.llm.requests[-1].messages if m.role == "tool"]
