"""What a run tells while it happens. Events are immutable to the bottom: a call carries its arguments as text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Protocol

from atlas_core.messages import CallStatus, ChatMessage, RunOutcome, ToolCall, Usage

__all__ = [
    "Event",
    "HistoryRepaired",
    "ModelRequested",
    "ModelResponded",
    "Observer",
    "RunEnded",
    "RunStarted",
    "RunWarning",
    "TextDelta",
    "ToolCallEnded",
    "ToolCallStarted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has.

    Attributes:
        run_id: The run.
        parent_run_id: The run that started it, or None.
        agent_id: The agent, by its profile's key.
        iteration: The model request it belongs to, from 1; 0 before the first.
        time_s: When it happened, in seconds since the epoch.
        plugin, distribution: Who supplied the step: the provider's, the tool's, or the agent type's plugin.
    """

    run_id: str
    parent_run_id: str | None = None
    agent_id: str = ""
    iteration: int = 0
    time_s: float = 0.0
    plugin: str = ""
    distribution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began. `model` says who answers, `tools` names what is offered, `notice` is the provider's."""

    message: ChatMessage
    model: str
    tools: tuple[str, ...] = ()
    history_messages: int = 0
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRepaired(Event):
    """The history given was not a valid conversation; `repairs` says what was changed in the run's copy."""

    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequested(Event):
    """A request is about to be sent. `messages` counts what it holds."""

    connection: str
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """A piece of the answer; only from `stream`. `kind` is "text" or "reasoning"."""

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponded(Event):
    """A response came. Text beside tool calls is the model's thought; `connection` is the one that answered."""

    message: ChatMessage
    finish_reason: str
    usage: Usage
    duration_s: float
    request_id: str | None = None
    connection: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(Event):
    """A call passed every check and goes to the executor.

    Attributes:
        call: The call.
        decoded: Arguments that came as JSON text where only a number, bool, array or object fits, and were decoded.
        executor: The executor that runs it.
    """

    call: ToolCall
    decoded: tuple[str, ...] = ()
    executor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEnded(Event):
    """A call ended, or was answered without being run. Emitted in call order.

    Attributes:
        call: The call.
        status: How it ended.
        content: What the model is told.
        error: Why it failed, or None.
        duration_s: Time in the executor; 0 where it never ran.
        truncated: Whether the content was cut.
    """

    call: ToolCall
    status: CallStatus
    content: str
    error: str | None = None
    duration_s: float = 0.0
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWarning(Event):
    """Something an operator should know that does not end the run."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """A run ended. Exactly one follows each `RunStarted`, whatever happened.

    Attributes:
        outcome: How it ended.
        output: The answer, the reason of a decline, or "".
        error_type: Class name of the error that is raised, or "".
        error: Its text, or "".
        usage: Sum over the run.
        iterations: Model requests made.
        duration_s: Seconds since the start.
        new_messages: What the run added to the conversation.
    """

    outcome: RunOutcome
    output: str
    error_type: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    iterations: int = 0
    duration_s: float = 0.0
    new_messages: tuple[ChatMessage, ...] = ()


class Observer(Protocol):
    """One who is told of events.

    `on_event` is called on the run's event loop, in order, and must return at once. What it raises is logged with
    its owner and changes nothing else. An observer may also have `start` and `stop` coroutines.
    """

    def on_event(self, event: Event, /) -> None:
        """Take note of an event."""


def to_dict(event: Event) -> dict[str, object]:
    """Return an event as a JSON-ready dict; its key `event` is the class name. Empty fields are left out."""
    out: dict[str, object] = {"event": type(event).__name__}
    for spec in dataclasses.fields(event):
        value = getattr(event, spec.name)
        if value is None or value in ("", ()):
            continue
        out[spec.name] = _plain(value)
    return out


def _plain(value: object) -> object:
    if isinstance(value, ChatMessage):
        return value.to_dict()
    if isinstance(value, ToolCall):
        return {"id": value.id, "name": value.name, "arguments": value.arguments_json}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value
