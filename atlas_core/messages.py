"""Values that travel between caller, loop and provider: messages, tool calls, results, usage. All are immutable."""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = [
    "Answer",
    "CallStatus",
    "ChatMessage",
    "Data",
    "File",
    "Image",
    "Opaque",
    "Part",
    "Role",
    "RunOutcome",
    "RunResult",
    "Text",
    "ToolCall",
    "ToolResult",
    "Usage",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its bytes, or a URL that the provider fetches. Exactly one is set."""

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        _need_one_source("Image", self.data, self.url)


@dataclass(frozen=True, slots=True)
class File:
    """A document: its bytes, or a URL that the provider fetches. Exactly one is set."""

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    media_type: str = "application/octet-stream"
    name: str | None = None

    def __post_init__(self) -> None:
        _need_one_source("File", self.data, self.url)


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON value, kept as text so that nobody can change it in place."""

    value_json: str

    @property
    def value(self) -> object:
        """The decoded value, fresh each time."""
        return json.loads(self.value_json)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something only one provider understands, such as a signed thinking block; carried back to it unchanged."""

    provider: str
    payload_json: str

    @property
    def payload(self) -> object:
        """The decoded payload, fresh each time."""
        return json.loads(self.payload_json)


Part: TypeAlias = Text | Image | File | Data | Opaque
"""A piece of a message's content; what a provider does not know it keeps and passes on as `Opaque`."""


def _need_one_source(kind: str, data: bytes | None, url: str | None) -> None:
    if (data is None) == (url is None):
        raise ValueError(f"{kind} takes either data or url, got {'both' if url is not None else 'neither'}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool.

    Attributes:
        id: Unique among the calls of a conversation.
        name: The tool's name as the model wrote it.
        arguments_json: The arguments exactly as the model wrote them: JSON text that may be malformed.
    """

    id: str
    name: str
    arguments_json: str = "{}"

    @classmethod
    def of(cls, name: str, /, *, id: str = "", **arguments: object) -> ToolCall:
        """Make a call from Python values, mostly for tests and scripts."""
        return cls(id=id, name=name, arguments_json=json.dumps(arguments, ensure_ascii=False))

    @property
    def arguments(self) -> dict[str, object]:
        """The decoded arguments, a fresh dict each time.

        Raises:
            ValueError: The text is not a JSON object.
        """
        value = json.loads(self.arguments_json or "{}")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ValueError(f"arguments of call {self.id!r} to {self.name!r} are not a JSON object")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation.

    Attributes:
        role: Who speaks. A `tool` message answers the call named by `tool_call_id`.
        content: Text, or a tuple of parts (any iterable is taken and made one).
        tool_calls: What an assistant message asks for.
        tool_call_id: On a `tool` message, the call it answers.
        name: On a `tool` message, the tool's name; else a speaker's name.
        is_error: On a `tool` message, whether the call failed.
    """

    role: Role
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"role {self.role!r} is not one of {', '.join(_ROLES)}")
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a tool message needs tool_call_id, the id of the call it answers")
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"only an assistant message has tool_calls, this one's role is {self.role!r}")
        if not isinstance(self.content, (str, tuple)):
            object.__setattr__(self, "content", tuple(self.content))
        if not isinstance(self.tool_calls, tuple):
            object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @property
    def text(self) -> str:
        """The text of the content, other parts left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @classmethod
    def system(cls, content: str) -> ChatMessage:
        """Make a system message."""
        return cls(role="system", content=content)

    @classmethod
    def user(cls, content: str | Iterable[Part]) -> ChatMessage:
        """Make a user message."""
        return cls(role="user", content=content if isinstance(content, str) else tuple(content))

    @classmethod
    def assistant(cls, content: str | Iterable[Part] = "", tool_calls: Iterable[ToolCall] = ()) -> ChatMessage:
        """Make an assistant message."""
        return cls(
            role="assistant",
            content=content if isinstance(content, str) else tuple(content),
            tool_calls=tuple(tool_calls),
        )

    @classmethod
    def tool(cls, call: ToolCall, content: str | Iterable[Part], *, is_error: bool = False) -> ChatMessage:
        """Make the message that answers `call`."""
        return cls(
            role="tool",
            content=content if isinstance(content, str) else tuple(content),
            tool_call_id=call.id,
            name=call.name,
            is_error=is_error,
        )

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dict that `from_dict` reads back; empty fields are left out."""
        out: dict[str, object] = {"role": self.role}
        out["content"] = self.content if isinstance(self.content, str) else [_part_to_dict(p) for p in self.content]
        if self.tool_calls:
            out["tool_calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments_json} for c in self.tool_calls]
        if self.tool_call_id is not None:
            out["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            out["name"] = self.name
        if self.is_error:
            out["is_error"] = True
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ChatMessage:
        """Read a message from a dict: `to_dict`'s form, or the common chat form with `function` inside a call.

        Raises:
            ValueError: A key is unknown or missing, or a value has the wrong type; the text names it.
        """
        known = {"role", "content", "tool_calls", "tool_call_id", "name", "is_error"}
        if unknown := sorted(set(map(str, data)) - known):
            raise ValueError(f"a message has no key {unknown[0]!r}; it has {', '.join(sorted(known))}")
        role = data.get("role")
        if role not in ("system", "user", "assistant", "tool"):
            raise ValueError(f"role {role!r} is not one of {', '.join(_ROLES)}")
        content = data.get("content")
        if content is None:
            content = ""
        if isinstance(content, (list, tuple)):
            content = tuple(_part_from_dict(p) for p in content)
        elif not isinstance(content, str):
            raise ValueError(f"content is a {type(content).__name__}, expected text or a list of parts")
        calls = data.get("tool_calls") or ()
        if not isinstance(calls, (list, tuple)):
            raise ValueError(f"tool_calls is a {type(calls).__name__}, expected a list")
        return cls(
            role=role,
            content=content,
            tool_calls=tuple(_call_from_dict(c) for c in calls),
            tool_call_id=_optional_text(data, "tool_call_id"),
            name=_optional_text(data, "name"),
            is_error=data.get("is_error") is True,
        )


def _optional_text(data: Mapping[str, object], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} is a {type(value).__name__}, expected text")
    return value


def _call_from_dict(data: object) -> ToolCall:
    if not isinstance(data, Mapping):
        raise ValueError(f"a tool call is a {type(data).__name__}, expected an object")
    inner = data.get("function", data)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise ValueError("a tool call needs a name")
    arguments = inner.get("arguments", "{}")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=str(data.get("id") or ""), name=inner["name"], arguments_json=arguments)


def _part_to_dict(part: Part) -> dict[str, object]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Data(value_json):
            return {"type": "data", "value_json": value_json}
        case Opaque(provider, payload_json):
            return {"type": "opaque", "provider": provider, "payload_json": payload_json}
    out: dict[str, object] = {"type": type(part).__name__.lower(), "media_type": part.media_type}
    if part.url is not None:
        out["url"] = part.url
    if part.data is not None:
        out["data_base64"] = base64.b64encode(part.data).decode("ascii")
    if isinstance(part, File) and part.name is not None:
        out["name"] = part.name
    return out


def _part_from_dict(data: object) -> Part:
    if isinstance(data, (Text, Image, File, Data, Opaque)):
        return data
    if not isinstance(data, Mapping):
        raise ValueError(f"a content part is a {type(data).__name__}, expected an object")
    kind = data.get("type")
    try:
        match kind:
            case "text":
                return Text(str(data["text"]))
            case "data":
                return Data(str(data["value_json"]))
            case "opaque":
                return Opaque(str(data["provider"]), str(data["payload_json"]))
            case "image" | "file":
                raw = data.get("data_base64")
                content = base64.b64decode(str(raw), validate=True) if raw is not None else None
                url = _optional_text(data, "url")
                media_type = str(data["media_type"])
                if kind == "image":
                    return Image(content, url, media_type)
                return File(content, url, media_type, _optional_text(data, "name"))
    except KeyError as exc:
        raise ValueError(f"a {kind} part needs the key {exc.args[0]!r}") from exc
    # A part that a newer version or another system wrote is carried, not dropped.
    return Opaque(provider="", payload_json=json.dumps(dict(data), ensure_ascii=False, default=str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a request or a run used, in tokens.

    `cached_input_tokens` is part of `input_tokens`, `reasoning_tokens` part of `output_tokens`. `cost` is in the
    currency of the connection's prices, 0 where it has none.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            requests=self.requests + other.requests,
            cost=self.cost + other.cost,
        )


class CallStatus(enum.StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The worker that ran it died."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """It may have taken effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What became of one call.

    Attributes:
        call: The call, as the model wrote it and with its final id.
        status: How it ended.
        content: What the model was told, perhaps cut.
        value: What the tool returned, whole and unencoded; None unless `status` is ok.
        error: Why it failed, or None.
        duration_s: Time in the executor, in seconds; 0 where the call never ran.
        plugin, distribution: Who supplied the tool.
    """

    call: ToolCall
    status: CallStatus
    content: str
    value: object = field(default=None, repr=False, compare=False)
    error: str | None = None
    duration_s: float = 0.0
    plugin: str = ""
    distribution: str = ""

    @property
    def name(self) -> str:
        """The tool's name, as the model wrote it."""
        return self.call.name


class RunOutcome(enum.StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    DECLINED = "declined"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run did.

    Attributes:
        run_id: Names the run in events and traces.
        outcome: How it ended.
        output: The answer; on a declined run the reason given; "" where neither came.
        value: The answer as the output type that the run asked for; None where it asked for none.
        messages: History and new messages, valid as the next run's history.
        new_messages: Only what this run added, the user's message first.
        tool_results: One per call, in call order.
        usage: The sum over the run's requests.
        iterations: Model requests made.
        model: What answered.
    """

    run_id: str
    outcome: RunOutcome
    output: str
    messages: tuple[ChatMessage, ...]
    new_messages: tuple[ChatMessage, ...]
    tool_results: tuple[ToolResult, ...] = ()
    usage: Usage = field(default_factory=Usage)
    iterations: int = 0
    model: str = ""
    value: object = field(default=None, repr=False)


class Answer(str):
    """The answer of a run: text that knows how it came about.

    Attributes:
        result: The run's messages, tool results and usage.
    """

    __slots__ = ("result",)
    result: RunResult

    def __new__(cls, text: str, result: RunResult) -> Answer:
        self = super().__new__(cls, text)
        self.result = result
        return self

    def __getnewargs__(self) -> tuple[str, RunResult]:  # type: ignore[override]  # str's own lacks the result
        return str(self), self.result
