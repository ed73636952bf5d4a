"""Stand-ins that speak the real interfaces and never leave the process."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from atlas_core.events import Event
from atlas_core.executors.sync import SyncToolExecutor
from atlas_core.interfaces.llm import (
    BaseLLM,
    Capabilities,
    FinishReason,
    LLMDelta,
    LLMRequest,
    LLMResponse,
)
from atlas_core.messages import ChatMessage, ToolCall, Usage

if TYPE_CHECKING:
    from atlas_core.interfaces.executors import Outcome, PreparedCall
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["FakeLLM", "RecordingExecutor", "RecordingObserver", "Turn"]

Turn: TypeAlias = (
    str | ToolCall | Sequence[ToolCall] | ChatMessage | LLMResponse | BaseException | Callable[[LLMRequest], object]
)
"""What a scripted model does next: text is an answer, calls are asked for, an exception is raised, and a function
(sync or async) of the request returns any of these."""

_E = TypeVar("_E", bound=Event)


class FakeLLM(BaseLLM):
    """A model that follows a script and keeps every request.

    Args:
        script: One turn per request. A request after the last turn fails the test.
        stream_chars: Yield text in pieces of this many characters; 0 for a model that can't stream.
        usage: What each response reports.
        label: What the model is called.

    Attributes:
        requests: What was asked, in order; each is a snapshot.

    Example:
        >>> llm = FakeLLM([ToolCall.of("add", a=1, b=2), "3"])
    """

    def __init__(
        self,
        script: Iterable[Turn],
        *,
        stream_chars: int = 0,
        usage: Usage | None = None,
        label: str = "a scripted model",
    ) -> None:
        self._script = iter(script)
        self._stream_chars = stream_chars
        self._usage = usage or Usage(input_tokens=10, output_tokens=5, requests=1)
        self.requests: list[LLMRequest] = []
        self.capabilities = Capabilities(native_tools=True, streaming=stream_chars > 0)
        self.label = label

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Play the next turn."""
        self.requests.append(request)
        turn = next(self._script, None)
        if turn is None:
            raise AssertionError(f"the script ended, and request {len(self.requests)} was sent: {request!r}")
        value: object = turn
        if callable(turn) and not isinstance(turn, BaseException):
            value = turn(request)
            if inspect.isawaitable(value):
                value = await value
        return self._respond(value)

    def _respond(self, value: object) -> LLMResponse:
        if isinstance(value, BaseException):
            raise value
        if isinstance(value, LLMResponse):
            return value
        if isinstance(value, str):
            return LLMResponse(message=ChatMessage.assistant(value), usage=self._usage)
        if isinstance(value, ToolCall):
            value = [value]
        if isinstance(value, Sequence):
            value = ChatMessage.assistant("", value)
        if not isinstance(value, ChatMessage):
            raise TypeError(f"a turn of the script is a {type(value).__name__}")
        reason = FinishReason.TOOL_CALLS if value.tool_calls else FinishReason.STOP
        return LLMResponse(message=value, finish_reason=reason, usage=self._usage)

    async def stream(self, request: LLMRequest) -> AsyncIterator[LLMDelta | LLMResponse]:
        """Play the next turn in pieces."""
        response = await self.complete(request)
        text = response.message.text
        size = self._stream_chars or len(text) or 1
        for start in range(0, len(text), size):
            yield LLMDelta(text[start : start + size])
        yield response

    def assert_used_up(self) -> None:
        """Fail unless every turn was played.

        Raises:
            AssertionError: A turn is left; the text shows it.
        """
        left = list(self._script)
        if left:
            raise AssertionError(f"{len(left)} turns of the script were not played, the first is {left[0]!r}")


class RecordingExecutor(SyncToolExecutor):
    """Runs calls one after another and keeps every batch.

    Attributes:
        batches: The calls of each batch, in order.
    """

    def __init__(self, tool_registry: ToolRegistry | None = None) -> None:
        super().__init__(tool_registry)
        self.batches: list[tuple[ToolCall, ...]] = []

    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Note the calls and run them."""
        self.batches.append(tuple(call.call for call in calls))
        return await super().execute_batch(calls)


class RecordingObserver:
    """Keeps every event.

    Attributes:
        events: In the order they came.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event, /) -> None:
        """Keep an event."""
        self.events.append(event)

    def of(self, kind: type[_E]) -> list[_E]:
        """Return the events of one class."""
        return [event for event in self.events if isinstance(event, kind)]
