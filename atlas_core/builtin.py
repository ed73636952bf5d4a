"""What the kernel itself offers, declared through the same hooks as a stranger's plugin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from atlas_core.interfaces.agents import AgentTypeSpec
from atlas_core.interfaces.executors import ExecutorSpec
from atlas_core.markers import hookimpl

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["atlas_agent_types", "atlas_executors"]


@hookimpl
def atlas_executors() -> Iterable[ExecutorSpec]:
    """Offer `sync` and `parallel`."""
    from pydantic import BaseModel, Field

    from atlas_core.executors.parallel import ParallelToolExecutor
    from atlas_core.executors.sync import SyncToolExecutor

    class ParallelOptions(BaseModel):
        """The table of executor `parallel`."""

        max_concurrency: int = Field(default=32, ge=1, description="Calls of one message that run at once.")

    def make_parallel(options: BaseModel) -> ParallelToolExecutor:
        assert isinstance(options, ParallelOptions)  # noqa: S101  # validated by the spec's own model
        return ParallelToolExecutor(max_concurrency=options.max_concurrency)

    return [
        ExecutorSpec(name="sync", factory=lambda _: SyncToolExecutor(), description="One call after another."),
        ExecutorSpec(
            name="parallel",
            factory=make_parallel,
            options=ParallelOptions,
            description="The calls of one message at the same time.",
        ),
    ]


@hookimpl
def atlas_agent_types() -> Iterable[AgentTypeSpec]:
    """Offer `react`, `worker` and `tool_capable`."""
    from atlas_core.agents.service import AgentService
    from atlas_core.agents.worker import ToolCapableAgent, WorkerAgent
    from atlas_core.agents.worker_options import WorkerOptions

    return [
        AgentTypeSpec(
            name="react",
            factory=AgentService.from_parts,
            description="Thinks, calls tools, observes, until it has an answer.",
        ),
        AgentTypeSpec(
            name="worker",
            factory=WorkerAgent.from_parts,
            options=WorkerOptions,
            description="Takes tasks and messages, and has no tools.",
        ),
        AgentTypeSpec(
            name="tool_capable",
            factory=ToolCapableAgent.from_parts,
            options=WorkerOptions,
            description="Takes tasks and messages, and works on them with tools.",
        ),
    ]
