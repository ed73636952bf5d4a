"""What an agent is, and what the kernel hands to an agent type that makes one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from atlas_core.owner import Owner

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atlas_core.events import Event, Observer
    from atlas_core.interfaces.executors import ToolExecutorProtocol
    from atlas_core.interfaces.llm import BaseLLM
    from atlas_core.interfaces.runs import RunStore
    from atlas_core.messages import Answer, ChatMessage
    from atlas_core.settings.models import AgentProfileSettings, Prices
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["Agent", "AgentParts", "AgentTypeSpec", "ToolGrants"]


@runtime_checkable
class Agent(Protocol):
    """What `Kernel.agent` returns, whatever its type. `AgentService` is the kernel's own."""

    @property
    def is_ready(self) -> bool:
        """Whether it is started and not stopped."""

    async def start(self) -> None:
        """Make it ready; `run` does so by itself on first use."""

    async def stop(self) -> None:
        """Free what it holds; it can't be used afterwards."""

    async def run(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a message, after a history if there is one; see `AgentService.run`."""

    def stream(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        **options: Any,
    ) -> AsyncIterator[Event]:
        """Answer a message and yield the events of the run as they happen."""

    def run_sync(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a message from code that is not async."""


class ToolGrants(Protocol):
    """Tools with the permissions of agents, which may change while agents run; `AgentToolkit` is the kernel's own."""

    @property
    def revision(self) -> int:
        """A number that grows with every change."""

    def list_tools(self) -> list[str]:
        """Return the names of all tools, granted or not."""

    def allowed_tools(self, agent_id: str) -> ToolRegistry:
        """Return the tools that an agent may use now."""

    def has_permission(self, agent_id: str, tool: str) -> bool:
        """Tell whether an agent may use a tool now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """Everything a profile chose, made and owned by the kernel; an agent type joins it.

    Attributes:
        agent_id: The profile's key.
        settings: The profile.
        options: The profile's `options` table, validated by the agent type's model.
        llm, llm_owner, connection: The model, who supplied it, and the connection's name.
        executor, executor_name: The strategy and its name.
        tools: What the profile's plugins offer; the profile's `tools` and `permissions` choose from it.
        toolkit: Grants that choose further, and may change; None for the profile's rules alone. In place of `tools`.
        system_prompt: The profile's prompt, read from its file where it names one.
        max_output_tokens: The connection's bound of one answer, or None.
        prices: By connection, what its tokens cost, where that is known.
        observers: Who is told of events, each with who supplied it.
        owner: Who supplied the agent type.
        store: Where runs are written down, or None for memory.
        lifecycle: The kernel's own, which starts and stops tools; pass it on unseen.
        before_start: Awaited before anything else when the agent starts, or None.
        disabled: Why agents are switched off, or None.
    """

    agent_id: str
    settings: AgentProfileSettings
    options: BaseModel | None
    llm: BaseLLM
    executor: ToolExecutorProtocol
    tools: ToolRegistry
    connection: str = ""
    executor_name: str = ""
    llm_owner: Owner = field(default_factory=Owner)
    owner: Owner = field(default_factory=Owner)
    toolkit: ToolGrants | None = None
    system_prompt: str | None = None
    max_output_tokens: int | None = None
    prices: Mapping[str, Prices] = field(default_factory=dict)
    observers: tuple[tuple[Observer, Owner], ...] = ()
    store: RunStore | None = None
    lifecycle: object = None
    before_start: Callable[[], Awaitable[None]] | None = None
    disabled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTypeSpec:
    """An agent type on offer.

    Attributes:
        name: What a profile's `type` calls it.
        factory: Makes an agent from its parts; no I/O, that belongs in its `start`.
        options: Pydantic model of the profile's `options` table; None if it takes none.
        description: One line for listings.
    """

    name: str
    factory: Callable[[AgentParts], Agent]
    options: type[Any] | None = None
    description: str = ""
