"""What a tool is: to the loop, to a model, and to a plugin that offers some."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import re

__all__ = [
    "AIToolProtocol",
    "Effects",
    "Example",
    "Tool",
    "ToolContext",
    "ToolHints",
    "ToolProvider",
    "ToolSchema",
]

Effects: TypeAlias = Literal["read", "idempotent", "write"]
"""What running a tool changes: nothing; the same however often it runs; something more each time."""

if TYPE_CHECKING:
    # A bare `ToolContext` must please strict type checkers; at run time the default changes nothing.
    from typing_extensions import TypeVar as _TypeVar

    DepsT = _TypeVar("DepsT", default=Any)
else:
    DepsT = TypeVar("DepsT")


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the arguments that answer it."""

    question: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """How a provider without a language model can tell that a question is for this tool. Never sent to a server.

    Attributes:
        examples: Questions with the arguments that answer them; shown to people, tried by tests.
        patterns: Regular expressions for a whole question or a whole clause of one; each named group is an
            argument. They are matched with `fullmatch`, without regard to case.
        parse: Reads a question and returns the arguments, or None if the question is for another tool. It must
            account for every number in the question, else return None.
        fallback: Whether the tool takes any question as its one text argument, as a search does; tried last.
    """

    examples: tuple[Example, ...] = ()
    patterns: tuple[str | re.Pattern[str], ...] = ()
    parse: Callable[[str], Mapping[str, object] | None] | None = None
    fallback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """What a model is told about a tool.

    Attributes:
        name: The name it calls.
        description: What the tool does and when to use it; "" if nothing is known, never None.
        parameters: JSON Schema of the arguments object, Draft 2020-12 unless its `$schema` says otherwise.
        returns: JSON Schema of the result, or None.
        hints: For providers without a language model.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=lambda: {"type": "object", "properties": {}})
    returns: Mapping[str, object] | None = None
    hints: ToolHints | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[DepsT]):
    """What a tool may know about the run it works for.

    A tool function gets one by annotating a parameter with `ToolContext`; the parameter is no part of the
    schema, so a model can neither see nor set it.

    Attributes:
        context: What the caller passed as `run(context=...)`, as it is.
        run_id: The run.
        agent_id: The agent, by its profile's key.
        call_id: The call.
        idempotency_key: The same when the same call is tried again; for a server's own de-duplication.
        deadline: When the call will be stopped, on the clock of `time.monotonic()`; None if never.
    """

    context: DepsT
    run_id: str = ""
    agent_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the deadline, at least 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


@runtime_checkable
class AIToolProtocol(Protocol):
    """The least that an object needs to serve as a tool; no base class is required.

    `schema` is a `ToolSchema`, or the JSON Schema of the arguments object as a mapping. `execute` is called with
    the validated arguments as keywords; it may be an `async def`.
    """

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def schema(self) -> ToolSchema | Mapping[str, object]:
        """Its arguments."""

    def execute(self, **kwargs: Any) -> object:
        """Do it."""


class Tool(ABC):
    """A tool as the kernel handles it; a base class for those who want one.

    Functions and plain objects are wrapped into one when registered. A subclass sets `name`, `description` and
    `schema` and overrides `execute`.

    Attributes:
        effects: What running it changes; "write" unless known better, as that is never repeated on its own.
        timeout_s: Seconds one call may take, or None for the run's own limit.
        requires_approval: Whether a person must agree to each call.
        context_parameter: Keyword under which `execute` wants a `ToolContext`, or None.
        is_async: Whether `execute` is an `async def`, generators included; other functions run in a thread.
    """

    effects: Effects = "write"
    timeout_s: float | None = None
    requires_approval: bool = False
    context_parameter: str | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name it is called by."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it does, in words for a model."""

    @property
    @abstractmethod
    def schema(self) -> ToolSchema:
        """What a model is told about it."""

    @property
    def is_async(self) -> bool:
        """Whether `execute` is awaited on the event loop instead of run in a thread."""
        import inspect  # not needed where a subclass knows

        return inspect.iscoroutinefunction(self.execute) or inspect.isasyncgenfunction(self.execute)

    @abstractmethod
    def execute(self, **kwargs: Any) -> object:
        """Run with validated arguments; may be an `async def`. What it raises becomes the call's result."""

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Turn arguments that passed the schema into what `execute` takes; the base returns them as they are.

        Raises:
            ToolArgumentsError: They can't be built, for a reason the schema does not state.
        """
        return arguments

    @property
    def plain_start(self) -> Callable[[], Any] | None:
        """`start` where it was written as a plain function, which may block and so runs in a thread; else None."""
        import inspect  # as above

        start: Callable[[], Any] = self.start
        return None if inspect.iscoroutinefunction(start) else start

    async def start(self) -> None:
        """Acquire what the tool needs; called once, before its first use."""

    async def stop(self) -> None:
        """Free it; called once, in reverse order of the starts."""


class ToolProvider(ABC):
    """A source of tools that are known only once it runs, such as a server."""

    async def start(self) -> None:
        """Connect; called once, before `tools`."""

    @abstractmethod
    async def tools(self) -> Iterable[Tool | AIToolProtocol | Callable[..., object]]:
        """Return the tools on offer now."""

    async def stop(self) -> None:
        """Disconnect; called once."""
