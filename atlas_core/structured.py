"""What agents send each other: one message with its type, its ends, the task it belongs to, and calls with results.

Everything in a message is JSON, so that it can be sent anywhere and read back equal.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import reprlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

from atlas_core.names import did_you_mean
from atlas_core.structured_values import (
    check_call,
    check_items,
    check_json,
    check_name,
    check_object,
    check_optional_name,
    check_result,
    check_text,
    check_timestamp,
    wrong,
)
from atlas_core.tools.arguments import parse

if TYPE_CHECKING:
    from atlas_core.messages import CallStatus

__all__ = ["MessageMetadata", "MessageType", "StructuredMessage"]


MAX_ERROR_CHARS = 1_000
"""What an error message holds of an exception's text."""


class MessageType(enum.StrEnum):
    """What a message is for."""

    QUERY = "query"
    TASK = "task"
    RESPONSE = "response"
    RESULT = "result"
    ERROR = "error"
    STATUS = "status"
    TOOL_REQUEST = "tool_request"
    TOOL_RESPONSE = "tool_response"


class _Checked:
    """Checks and copies what is assigned to a field, so that a wrong value is refused where it comes in."""

    __slots__ = ()
    _checks: ClassVar[Mapping[str, Callable[[object, str], object]]]

    # A `__setattr__` that type checkers could see would silence them on misspelt fields.
    if not TYPE_CHECKING:  # pragma: no branch

        def __setattr__(self, name: str, value: object) -> None:
            check = self._checks.get(name)
            object.__setattr__(self, name, value if check is None else check(value, name))


@dataclass(slots=True, init=False)
class MessageMetadata(_Checked):
    """What is said about a message. Fields may be assigned; a wrong value is a ValueError that names its key.

    Args:
        type: What the message is for; also as text, in any case.
        priority: A whole number; the message with the higher one leaves an inbox first, and that is all it does.
        extra: Further keys with JSON values, carried along.
    Raises:
        ValueError: A value has the wrong type, or an extra key is `type` or `priority`.
    """

    type: MessageType
    priority: int
    extra: dict[str, Any]

    def __init__(
        self, type: MessageType | str = MessageType.QUERY, priority: int = 0, extra: Mapping[str, object] | None = None
    ) -> None:
        self.type = type  # type: ignore[assignment]  # made one by its check, as are all below
        self.priority = priority
        self.extra = {} if extra is None else extra  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return `type`, `priority` and the extra keys in one JSON-ready dict.

        Raises:
            ValueError: What was put into `extra` since is no JSON; the text names the key.
        """
        return {"type": str(self.type), "priority": self.priority, **_extra(self.extra, "metadata")}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> MessageMetadata:
        """Read what `to_dict` wrote; both known keys may be missing, others become `extra`.

        Raises:
            ValueError: A value has the wrong type; the text names the key.
        """
        rest = {key: value for key, value in data.items() if key not in ("type", "priority")}
        kind, priority = data.get("type"), data.get("priority")
        return cls(
            MessageType.QUERY if kind is None else _type(kind, "metadata.type"),
            0 if priority is None else _priority(priority, "metadata.priority"),
            _extra(rest, "metadata"),
        )


@dataclass(slots=True, init=False, repr=False)
class StructuredMessage(_Checked):
    """A message between agents, or from a program to one. Unlike Atlas's other values it may be changed.

    Each assignment is checked and copied, so that no two messages share a list. What is changed inside of a list or
    dict is checked when the message is written out.

    Args:
        content: Text, or any other JSON value.
        metadata: Type and priority, as an object or as a mapping with these keys; a query of priority 0 if left out.
        id: Names the message; made if left out.
        task_id: The task it belongs to, or None.
        timestamp: When it was made, with a time zone, kept in UTC; also as ISO 8601 text. Now, if left out.
        source_agent: Who sends it, or None.
        target_agent: Who is to get it, or None.
        in_reply_to: The `id` of the message that this one answers, or None.
        tool_calls: Calls that are wished for: dicts with `name`, `arguments` (an object) and `call_id`.
        tool_results: What became of calls: dicts with `name`, `arguments`, `status` (one of `CallStatus`), `result`
            (a JSON value), `error` (a text or None) and `call_id`. Missing keys but `name` are filled in.
    Raises:
        ValueError: A value is of the wrong type, is no JSON (NaN, an object, text with half a surrogate pair), or has
            an unknown key; the text names the key.
    """

    content: Any
    metadata: MessageMetadata
    id: str
    task_id: str | None
    timestamp: datetime
    source_agent: str | None
    target_agent: str | None
    in_reply_to: str | None
    tool_calls: list[dict[str, Any]]
    tool_results: list[dict[str, Any]]

    def __init__(
        self,
        content: object,
        metadata: MessageMetadata | Mapping[str, object] | None = None,
        *,
        id: str | None = None,
        task_id: str | None = None,
        timestamp: datetime | str | None = None,
        source_agent: str | None = None,
        target_agent: str | None = None,
        in_reply_to: str | None = None,
        tool_calls: Iterable[Mapping[str, object]] | None = None,
        tool_results: Iterable[Mapping[str, object]] | None = None,
    ) -> None:
        self.content = content
        self.metadata = MessageMetadata() if metadata is None else metadata  # type: ignore[assignment]  # see _checks
        self.id = uuid.uuid4().hex if id is None else id
        self.task_id = task_id
        self.timestamp = datetime.now(UTC) if timestamp is None else timestamp  # type: ignore[assignment]
        self.source_agent = source_agent
        self.target_agent = target_agent
        self.in_reply_to = in_reply_to
        self.tool_calls = [] if tool_calls is None else tool_calls  # type: ignore[assignment]
        self.tool_results = [] if tool_results is None else tool_results  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<StructuredMessage {self.metadata.type} {self.id!r} from {self.source_agent!r} to {self.target_agent!r}: "
            f"{reprlib.repr(self.content)}, {len(self.tool_calls)} calls, {len(self.tool_results)} results>"
        )

    @property
    def text(self) -> str:
        """The content as text: itself, or its JSON."""
        return self.content if isinstance(self.content, str) else json.dumps(self.content, ensure_ascii=False)

    @property
    def has_tool_results(self) -> bool:
        """Whether any result is in the message, a failed one too."""
        return bool(self.tool_results)

    @property
    def inbox_key(self) -> tuple[int, datetime, str]:
        """What an inbox sorts by: the higher priority first, then the older message, then the id."""
        return (-self.metadata.priority, self.timestamp, self.id)

    # Making others -----------------------------------------------------------------------------------------------

    @classmethod
    def create_task(
        cls,
        content: object,
        *,
        task_id: str | None = None,
        source_agent: str | None = None,
        target_agent: str | None = None,
        priority: int = 0,
        tool_calls: Iterable[Mapping[str, object]] | None = None,
    ) -> Self:
        """Make a message that gives someone a task.

        Args:
            content: What is to be done.
            task_id: Names the task; made if left out.
            source_agent: Who gives it.
            target_agent: Who is to do it.
            priority: As in `MessageMetadata`.
            tool_calls: Calls that belong to it.
        Raises:
            ValueError: As for the class.
        """
        return cls(
            content,
            MessageMetadata(MessageType.TASK, priority),
            task_id=uuid.uuid4().hex if task_id is None else task_id,
            source_agent=source_agent,
            target_agent=target_agent,
            tool_calls=tool_calls,
        )

    def create_response(
        self,
        content: object,
        *,
        type: MessageType | str = MessageType.RESPONSE,
        tool_results: Iterable[Mapping[str, object]] | None = None,
    ) -> Self:
        """Make the answer to this message: its ends are swapped, its task and priority kept.

        Args:
            content: The answer.
            type: What kind of answer it is, such as `RESULT` at the end of a task.
            tool_results: What became of calls made for it.
        Raises:
            ValueError: As for the class.
        """
        return self.__class__(
            content,
            MessageMetadata(type, self.metadata.priority),
            task_id=self.task_id,
            source_agent=self.target_agent,
            target_agent=self.source_agent,
            in_reply_to=self.id,
            tool_results=tool_results,
        )

    def create_error(self, error: str | BaseException) -> Self:
        """Make the answer that says why there is none.

        Args:
            error: What went wrong; an exception is told by its class and text.
        Raises:
            ValueError: The error is neither.
        """
        if isinstance(error, BaseException):
            error = _told(error)
        return self.create_response(check_text(error, "error"), type=MessageType.ERROR)

    # Calls and results -------------------------------------------------------------------------------------------

    def add_tool_call(
        self, name: str, arguments: Mapping[str, object] | None = None, *, call_id: str | None = None
    ) -> str:
        """Add the wish for a call.

        Args:
            name: The tool's.
            arguments: A JSON object.
            call_id: Names the call in this message; made if left out.
        Returns:
            The call's id.
        Raises:
            ValueError: As for the class, or the message has a call of that id.
        """
        call_id = f"call_{uuid.uuid4().hex[:12]}" if call_id is None else call_id
        call = check_call(
            {"name": name, "arguments": arguments, "call_id": call_id}, f"tool_calls[{len(self.tool_calls)}]"
        )
        if any(call_id == other.get("call_id") for other in self.tool_calls):
            raise ValueError(f"call_id {call_id!r} is in the message already; give each call one of its own")
        self.tool_calls.append(call)
        return call_id

    def add_tool_result(
        self,
        name: str,
        result: object = None,
        *,
        arguments: Mapping[str, object] | None = None,
        status: CallStatus | str | None = None,
        error: str | None = None,
        call_id: str | None = None,
    ) -> None:
        """Add what became of a call.

        Args:
            name: The tool's.
            result: What it returned, a JSON value.
            arguments: What it was called with; those of the message's call of that id, if left out.
            status: How it ended; "ok" if left out, and "failed" where there is an error.
            error: Why it failed.
            call_id: The call's id.
        Raises:
            ValueError: As for the class.
        """
        if arguments is None and call_id is not None:
            arguments = next((c.get("arguments") for c in self.tool_calls if c.get("call_id") == call_id), None)
        item = {"name": name, "arguments": arguments, "status": status, "result": result, "error": error}
        where = f"tool_results[{len(self.tool_results)}]"
        self.tool_results.append(check_result({**item, "call_id": call_id}, where))

    # Writing and reading -----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict that `from_dict` reads back equal; it shares nothing with the message.

        Raises:
            ValueError: What was put into a list or dict since is no JSON or has the wrong shape; the text names the
                key.
        """
        out = {field.name: self._checks[field.name](getattr(self, field.name), field.name) for field in _FIELDS}
        out["metadata"] = self.metadata.to_dict()
        out["timestamp"] = self.timestamp.isoformat()
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read a message from a dict in the form of `to_dict`; all keys but `content` may be missing.

        Raises:
            ValueError: `content` is missing, a key is unknown, or a value is wrong; the text names it.
        """
        known = {field.name for field in _FIELDS}
        data = check_object(data, "a structured message", known)
        if "content" not in data:
            raise ValueError("a structured message needs the key 'content'")
        return cls(**data)

    def to_json(self) -> str:
        """Return the message as one line of JSON, in ASCII.

        Raises:
            ValueError: As for `to_dict`.
        """
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a message from JSON as `to_json` wrote it. No key may stand twice, and NaN is none.

        Raises:
            ValueError: It is not valid JSON, or as for `from_dict`.
        """
        if not isinstance(text, str):
            raise ValueError(f"the JSON of a structured message is a {type(text).__name__}, expected text")
        try:
            data = parse(text)
        except RecursionError as exc:
            raise ValueError("the JSON of a structured message is nested too deeply") from exc
        except ValueError as exc:
            raise ValueError(f"the JSON of a structured message can't be read: {exc}") from exc
        return cls.from_dict(data)  # type: ignore[arg-type]  # from_dict looks whether it is an object


def _told(error: BaseException) -> str:
    """Return an exception as text that any message can hold, even where its own `str` fails."""
    try:
        text = str(error).encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001  # a foreign exception class
        text = "(its text can't be read)"
    name = type(error).__name__
    return f"{name}: {text}"[:MAX_ERROR_CHARS] if text else name


def _type(value: object, where: str) -> MessageType:
    try:
        return MessageType(check_text(value, where).lower())
    except ValueError as exc:
        if not isinstance(value, str):
            raise
        remedy = did_you_mean(value[:100], map(str, MessageType), what="known")
        raise wrong(where, f"{value[:100]!r} is no message type; {remedy}") from exc


def _priority(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(where, f"is a {type(value).__name__}, expected a whole number")
    return int(check_json(value, where))


def _extra(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(where, f"is a {type(value).__name__}, expected an object")
    for key in ("type", "priority"):
        if key in value:
            raise wrong(where, f"has the key {key!r}, which is a field of its own")
    return dict(check_json(value, where))


def _metadata(value: object, where: str) -> MessageMetadata:
    if isinstance(value, MessageMetadata):
        return MessageMetadata(value.type, value.priority, value.extra)
    if not isinstance(value, Mapping):
        raise wrong(where, f"is a {type(value).__name__}, expected an object")
    return MessageMetadata.from_dict(value)


_FIELDS = dataclasses.fields(StructuredMessage)
MessageMetadata._checks = {"type": _type, "priority": _priority, "extra": _extra}  # noqa: SLF001  # the same module's
StructuredMessage._checks = {  # noqa: SLF001  # the same module's
    "content": check_json,
    "metadata": _metadata,
    "id": check_name,
    "task_id": check_optional_name,
    "timestamp": check_timestamp,
    "source_agent": check_optional_name,
    "target_agent": check_optional_name,
    "in_reply_to": check_optional_name,
    "tool_calls": lambda value, where: check_items(value, where, check_call),
    "tool_results": lambda value, where: check_items(value, where, check_result),
}
