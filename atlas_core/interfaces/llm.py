"""What a language model's provider is to the loop."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from atlas_core.interfaces.service import BaseService
from atlas_core.messages import ChatMessage, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from atlas_core.interfaces.tools import ToolSchema

__all__ = [
    "BaseLLM",
    "Capabilities",
    "ConnectionConfig",
    "ConnectionReport",
    "FinishReason",
    "LLMDefaults",
    "LLMDelta",
    "LLMProviderSpec",
    "LLMRequest",
    "LLMResponse",
    "LLMSession",
]


class FinishReason(enum.StrEnum):
    """Why a model stopped writing."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    DECLINED = "declined"
    """It refused, a filter stopped it, or, without a language model, it does not know how."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model can do.

    Attributes:
        native_tools: It takes tool schemas and returns calls.
        streaming: `stream` yields text as it is written.
        images: It reads `Image` parts.
        schema_output: It can be held to a JSON Schema.
        window_tokens: Tokens of input and output together, or None if unknown.
    """

    native_tools: bool = True
    streaming: bool = False
    images: bool = False
    schema_output: bool = False
    window_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMDefaults:
    """What stays the same over the requests of one run.

    Attributes:
        system: The system prompt, or None.
        tools: The tools on offer, in name order.
        max_output_tokens: Upper bound of one answer, or None for the provider's own.
        output_schema: JSON Schema that the answer's text must meet, an object's; None for free text. Only set where
            the capabilities have `schema_output`.
        output_name: A name for that schema, of letters, digits, `_` and `-`.
    """

    system: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    output_schema: Mapping[str, object] | None = None
    output_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest:
    """One request to a stateless provider.

    Attributes:
        messages: The conversation without the system prompt; read-only, and never changes once made.
        deadline: When the run ends, on the clock of `time.monotonic()`, or None.
        system, tools, max_output_tokens, output_schema, output_name: As in `LLMDefaults`.
    """

    messages: Sequence[ChatMessage]
    system: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    output_schema: Mapping[str, object] | None = None
    output_name: str = ""
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMResponse:
    """A model's answer.

    Attributes:
        message: An assistant message.
        finish_reason: Why it stopped; the loop acts on what the message holds, not on this label alone.
        usage: What the request used.
        model: The model that answered, where the server names it.
        request_id: The server's id, where it gives one.
        connection: The connection that answered, where that is another one than was asked; set by the kernel.
        notes: What an operator should know, such as a fallback; told as warnings.
    """

    message: ChatMessage
    finish_reason: FinishReason = FinishReason.STOP
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    request_id: str | None = None
    connection: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LLMDelta:
    """A piece of an answer while it is being written.

    Attributes:
        text: The piece.
        kind: "text" for the answer, "reasoning" for thinking shown by the model.
    """

    text: str
    kind: str = "text"


class _Frozen(Sequence[ChatMessage]):
    """The first `n` items of a list that only grows: a snapshot that costs nothing, however long it is."""

    __slots__ = ("_items", "_n")

    def __init__(self, items: list[ChatMessage], n: int) -> None:
        self._items = items
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ChatMessage, ...]: ...
    def __getitem__(self, index: int | slice) -> ChatMessage | tuple[ChatMessage, ...]:
        if isinstance(index, slice):
            return tuple(self._items[i] for i in range(*index.indices(self._n)))
        return self._items[range(self._n)[index]]

    def __iter__(self) -> Iterator[ChatMessage]:
        items = self._items
        for i in range(self._n):
            yield items[i]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # compares by value, and hashing a conversation serves nobody

    def __repr__(self) -> str:
        return f"<{self._n} messages>"


class LLMSession:
    """One run's side of a conversation with a model.

    The base keeps the messages and hands them to a stateless provider's `complete`. A provider that talks to a
    server overrides it to encode each message once, in `append`, so that a request costs the same at the start of
    a conversation and late in it.
    """

    def __init__(self, llm: BaseLLM, defaults: LLMDefaults) -> None:
        self._llm = llm
        self._defaults = defaults
        self._messages: list[ChatMessage] = []

    def append(self, messages: Iterable[ChatMessage]) -> None:
        """Take messages at the end of the conversation; each is given once."""
        self._messages.extend(messages)

    def request(self, *, deadline: float | None = None) -> LLMRequest:
        """Return the request as it stands now."""
        d = self._defaults
        return LLMRequest(
            messages=_Frozen(self._messages, len(self._messages)),
            system=d.system,
            tools=d.tools,
            max_output_tokens=d.max_output_tokens,
            output_schema=d.output_schema,
            output_name=d.output_name,
            deadline=deadline,
        )

    async def complete(self, *, deadline: float | None = None) -> LLMResponse:
        """Ask for the next message; it is not appended.

        Raises:
            ProviderError: The provider failed, after its own retries.
        """
        return await self._llm.complete(self.request(deadline=deadline))

    def stream(self, *, deadline: float | None = None) -> AsyncIterator[LLMDelta | LLMResponse]:
        """Ask for the next message and yield it in pieces; the last item is the whole response."""
        return self._llm.stream(self.request(deadline=deadline))

    async def aclose(self) -> None:
        """Free what the session holds; the run calls it at its end, however that comes about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """What a look at a connection found.

    Attributes:
        answers: Whether the model answered.
        detail: What was found or went wrong, in a sentence.
        models: The models the server names, sorted; empty if it names none.
        tools: Whether a request with a tool was accepted; None if that was not tried.
        streaming: Whether an answer came in pieces; None if that was not tried.
    """

    answers: bool
    detail: str = ""
    models: tuple[str, ...] = ()
    tools: bool | None = None
    streaming: bool | None = None


class BaseLLM(BaseService):
    """A model behind a provider. A stateless provider overrides only `complete`.

    Attributes:
        capabilities: What the model can do.
        label: Who answers, in words for a person; printed before a run.
        notice: One line that a person should read after an answer, or "".
    """

    capabilities: Capabilities = Capabilities()
    label: str = ""
    notice: str = ""

    @abstractmethod
    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer a request.

        Raises:
            ProviderError: It can't be answered; the leaf tells why. Anything else that is raised is reported as
                a fault of the provider's plugin.
        """
        raise NotImplementedError

    async def stream(self, request: LLMRequest) -> AsyncIterator[LLMDelta | LLMResponse]:
        """Answer in pieces, the whole response last; the base answers in one."""
        yield await self.complete(request)

    def open(self, defaults: LLMDefaults) -> LLMSession:
        """Begin a run's conversation."""
        return LLMSession(self, defaults)

    async def list_models(self) -> list[str]:
        """Return the models the server names, sorted; the base knows of none."""
        return []

    async def check(self) -> ConnectionReport:
        """Look whether the model answers, for people who set a connection up; the base only starts it."""
        await self.start()
        can = self.capabilities
        return ConnectionReport(
            answers=True, detail=self.label, models=tuple(await self.list_models()), tools=can.native_tools
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig:
    """One connection, as its provider's factory gets it.

    Attributes:
        name: The connection's name in the settings.
        model: The model's name, or "" if the settings give none.
        options: The rest of the connection's table, validated by the spec's own model.
        base_dir: The folder that relative paths in the options start from: the settings file's. None means the
            current folder.
    """

    name: str
    model: str
    options: BaseModel
    base_dir: Path | None = None


LLMFactory: TypeAlias = Callable[[ConnectionConfig], BaseLLM]


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMProviderSpec:
    """A provider on offer.

    Attributes:
        name: What a connection's `backend` calls it.
        factory: Makes the model's object; no I/O, that belongs in its `start`.
        options: Pydantic model of a connection's keys besides `backend` and `model`; None if it takes none.
        description: One line for listings.
    """

    name: str
    factory: LLMFactory
    options: type[Any] | None = None
    description: str = ""
