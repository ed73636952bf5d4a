"""What an executor is: the one who decides where and how calls run, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from atlas_core.messages import CallStatus

if TYPE_CHECKING:
    from atlas_core.interfaces.tools import Tool
    from atlas_core.messages import ToolCall

__all__ = [
    "CallStatus",
    "ExecutorSpec",
    "Outcome",
    "PreparedCall",
    "ToolExecutorProtocol",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to.

    Attributes:
        status: How it ended.
        value: What the tool returned, where `status` is ok.
        error: Why not, in words the model can act on.
        exception: What the tool raised, where it did.
    """

    status: CallStatus
    value: object = None
    error: str | None = None
    exception: BaseException | None = None

    @property
    def ok(self) -> bool:
        """Whether the tool returned."""
        return self.status is CallStatus.OK


class PreparedCall(Protocol):
    """A call that passed every check and only waits to be run."""

    @property
    def call(self) -> ToolCall:
        """The call as the model wrote it."""

    @property
    def tool(self) -> Tool:
        """The tool."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments that passed the schema, as JSON values."""

    @property
    def deadline(self) -> float | None:
        """When the call must have ended, on the clock of `time.monotonic()`; None if never."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this call."""

    async def invoke(self) -> Outcome:
        """Run the tool here: a coroutine on this event loop, anything else in one of the executor's threads.

        Keeps to the deadline. What the tool raises is in the outcome; only the caller's own cancellation is raised.
        """

    def payload(self) -> dict[str, Any]:
        """Return what another process needs to run the call: a dict that is plain JSON."""


@runtime_checkable
class ToolExecutorProtocol(Protocol):
    """The typing protocol behind `BaseToolExecutor`."""

    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Run the calls; see `BaseToolExecutor.execute_batch`."""

    async def start(self) -> None:
        """Make the executor ready."""

    async def stop(self) -> None:
        """Free what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSpec:
    """An executor on offer.

    Attributes:
        name: What a profile's `executor` calls it.
        factory: Makes it from validated options; no I/O, that belongs in its `start`.
        options: Pydantic model of the executor table's keys besides `name`; None if it takes none.
        description: One line for listings.
    """

    name: str
    factory: Callable[[Any], ToolExecutorProtocol]
    options: type[Any] | None = None
    description: str = ""
