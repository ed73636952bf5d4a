"""Messages between agents: their ends, their calls and results, and a round trip that loses nothing."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import Answer, CallStatus, MessageMetadata, MessageType, RunOutcome, RunResult, StructuredMessage
from atlas_core.structured_values import MAX_DEPTH

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

texts = st.text()
names = texts.filter(str.strip)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
calls = st.fixed_dictionaries({"name": names}, optional={"arguments": objects, "call_id": st.none() | names})
results = st.fixed_dictionaries(
    {"name": names},
    optional={
        "arguments": objects,
        "status": st.sampled_from([*CallStatus]),
        "result": json_values,
        "error": st.none() | texts,
        "call_id": st.none() | names,
    },
)
metadata = st.builds(
    MessageMetadata,
    st.sampled_from([*MessageType]),
    st.integers(),
    st.dictionaries(texts.filter(lambda key: key not in ("type", "priority")), json_values, max_size=2),
)
times = st.builds(
    lambda microseconds, zone: (NOON + timedelta(microseconds=microseconds)).astimezone(zone),
    st.integers(-(10**16), 10**16),
    st.timezones(),
)
messages = st.builds(
    StructuredMessage,
    json_values,
    metadata,
    id=names,
    task_id=st.none() | names,
    timestamp=times,
    source_agent=st.none() | names,
    target_agent=st.none() | names,
    in_reply_to=st.none() | names,
    tool_calls=st.lists(calls, max_size=3),
    tool_results=st.lists(results, max_size=3),
)


class _Colour(str, enum.Enum):  # noqa: UP042  # its str() is not its value
    RED = "red"


class _Level(enum.IntEnum):
    LOW = 1


def _deep(levels: int) -> object:
    value: object = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def test_a_plain_message_is_a_query_of_now() -> None:
    """Only the content is needed; the rest has a default, and two messages have two ids."""
    before = datetime.now(UTC)
    message = StructuredMessage("What is it?")
    assert message.metadata == MessageMetadata(MessageType.QUERY, 0, {})
    assert before <= message.timestamp <= datetime.now(UTC)
    assert (message.task_id, message.source_agent, message.target_agent, message.in_reply_to) == (None,) * 4
    assert (message.tool_calls, message.tool_results, message.has_tool_results) == ([], [], False)
    assert message.id != StructuredMessage("What is it?").id


def test_the_types_are_these_eight() -> None:
    """Their values are what JSON holds."""
    assert [t.name for t in MessageType] == [
        *("QUERY", "TASK", "RESPONSE", "RESULT", "ERROR", "STATUS", "TOOL_REQUEST", "TOOL_RESPONSE")
    ]
    assert all(t.value == t.name.lower() for t in MessageType)


def test_metadata_may_be_written_as_a_mapping() -> None:
    """A type is known in any case, and keys of one's own are carried along."""
    message = StructuredMessage("x", {"type": "TASK", "priority": 2, "trace": ["a"]})
    assert message.metadata == MessageMetadata(MessageType.TASK, 2, {"trace": ["a"]})
    assert message.to_dict()["metadata"] == {"type": "task", "priority": 2, "trace": ["a"]}
    assert StructuredMessage("x", {"type": None, "priority": None}).metadata == MessageMetadata()


def test_a_message_may_be_changed_and_each_change_is_checked() -> None:
    """What is assigned is checked at once, what is changed in place when the message is written."""
    message = StructuredMessage("x")
    message.source_agent, message.target_agent = "a", "b"
    message.metadata = MessageMetadata("STATUS", 7)
    assert message.to_dict()["metadata"] == {"type": "status", "priority": 7}
    with pytest.raises(ValueError, match="source_agent is a int, expected text"):
        message.source_agent = 5  # type: ignore[assignment]  # as a careless caller does
    with pytest.raises(ValueError, match=r"tool_results\[0\] has no key 'reslt'; did you mean 'result'\?"):
        message.tool_results = [{"name": "t", "reslt": 1}]
    assert (message.source_agent, message.tool_results) == ("a", [])
    with pytest.raises(AttributeError, match="sorce_agent"):
        message.sorce_agent = "a"  # type: ignore[attr-defined]  # a misspelt field is no new one
    message.tool_results.append({"name": "t", "result": float("nan")})
    with pytest.raises(ValueError, match=r"tool_results\[0\].result is nan, which JSON does not have"):
        message.to_json()


def test_no_two_messages_share_a_list() -> None:
    """What goes in and what comes out is copied, to the bottom."""
    inner = {"deep": [1]}
    shared = [{"name": "t", "arguments": inner}]
    first, second = StructuredMessage(inner, tool_calls=shared), StructuredMessage(inner, tool_calls=shared)
    inner["deep"].append(2)
    first.content["deep"].append(3)
    first.tool_calls[0]["arguments"]["deep"].append(4)
    written = second.to_dict()
    written["content"]["deep"].append(5)
    written["tool_calls"].append("nonsense")
    assert (second.content, second.tool_calls[0]["arguments"]) == ({"deep": [1]}, {"deep": [1]})
    assert (first.content, first.tool_calls[0]["arguments"]) == ({"deep": [1, 3]}, {"deep": [1, 4]})
    metadata = MessageMetadata(extra={"k": [1]})
    third = StructuredMessage("x", metadata)
    metadata.priority = 9
    metadata.extra["k"].append(2)
    assert third.metadata == MessageMetadata(extra={"k": [1]})


def test_a_response_goes_back_where_the_message_came_from() -> None:
    """Ends are swapped, task and priority kept, and it says which message it answers."""
    task = StructuredMessage.create_task("Do it.", task_id="t-1", source_agent="boss", target_agent="ada", priority=3)
    response = task.create_response("Done.", type="result", tool_results=[{"name": "t", "result": 1}])
    assert task.metadata.type is MessageType.TASK
    assert (response.source_agent, response.target_agent) == ("ada", "boss")
    assert (response.in_reply_to, response.task_id) == (task.id, "t-1")
    assert response.metadata == MessageMetadata(MessageType.RESULT, 3)
    assert response.has_tool_results
    assert response.id != task.id
    assert task.create_response("Done.").metadata.type is MessageType.RESPONSE


def test_a_task_has_an_id_of_its_own() -> None:
    """It is made where none is given."""
    one, two = (StructuredMessage.create_task("x", tool_calls=[{"name": "t"}]) for _ in range(2))
    assert one.task_id
    assert one.task_id not in (two.task_id, one.id)
    assert one.tool_calls == [{"name": "t", "arguments": {}, "call_id": None}]


class _UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("it broke", "it broke"),
        (ValueError("it broke"), "ValueError: it broke"),
        (TimeoutError(), "TimeoutError"),
        (OSError("half \udc80"), "OSError: half ?"),
        (_UnreadableError(), "_UnreadableError: (its text can't be read)"),
        (ValueError("x" * 5000), "ValueError: " + "x" * 988),
    ],
    ids=["text", "exception", "exception without text", "surrogate", "unreadable", "long"],
)
def test_an_error_is_an_answer(error: str | BaseException, told: str) -> None:
    """It goes back like a response, and any exception can be told."""
    query = StructuredMessage("x", source_agent="a", target_agent="b", task_id="t")
    answer = query.create_error(error)
    assert answer.content == told
    assert answer.metadata.type is MessageType.ERROR
    assert (answer.source_agent, answer.in_reply_to, answer.task_id) == ("b", query.id, "t")
    assert StructuredMessage.from_json(answer.to_json()) == answer


def test_calls_and_results_are_added_by_id() -> None:
    """A call without id gets one; its result takes over the arguments."""
    message = StructuredMessage("x")
    call_id = message.add_tool_call("sum", {"of": (1, 2)})
    assert message.add_tool_call("now", call_id="mine") == "mine"
    message.add_tool_result("sum", 3, call_id=call_id)
    message.add_tool_result("now", error="no clock", call_id="mine")
    message.add_tool_result("now", 12, arguments={"zone": "UTC"}, call_id="mine")
    message.add_tool_result("other", status=CallStatus.REFUSED, error="denied", call_id="none")
    assert message.tool_calls[0] == {"name": "sum", "arguments": {"of": [1, 2]}, "call_id": call_id}
    assert message.tool_results == [
        {"name": "sum", "arguments": {"of": [1, 2]}, "status": "ok", "result": 3, "error": None, "call_id": call_id},
        {"name": "now", "arguments": {}, "status": "failed", "result": None, "error": "no clock", "call_id": "mine"},
        {
            "name": "now",
            "arguments": {"zone": "UTC"},
            "status": "ok",
            "result": 12,
            "error": None,
            "call_id": "mine",
        },
        {"name": "other", "arguments": {}, "status": "refused", "result": None, "error": "denied", "call_id": "none"},
    ]
    assert message.has_tool_results
    with pytest.raises(ValueError, match="call_id 'mine' is in the message already"):
        message.add_tool_call("now", call_id="mine")
    message.tool_calls[0]["arguments"]["of"].append(3)
    assert message.tool_results[0]["arguments"] == {"of": [1, 2]}


@given(messages)
def test_a_message_survives_json(message: StructuredMessage) -> None:
    """Whatever its texts and values: read back it is equal, and so is what it writes."""
    text = message.to_json()
    again = StructuredMessage.from_json(text)
    assert again == message
    assert again.to_json() == text
    assert text.isascii()
    assert "\n" not in text
    assert StructuredMessage.from_dict(message.to_dict()) == message


@given(messages, json_values, texts)
def test_every_answer_goes_back(message: StructuredMessage, content: Any, error: str) -> None:
    """Answering an answer returns to the first sender; task and priority never change."""
    answer = message.create_response(content)
    back = answer.create_error(error)
    assert (answer.source_agent, answer.target_agent) == (message.target_agent, message.source_agent)
    assert (back.source_agent, back.target_agent) == (message.source_agent, message.target_agent)
    assert message.task_id == answer.task_id == back.task_id
    assert message.metadata.priority == answer.metadata.priority == back.metadata.priority


@pytest.mark.parametrize(
    "carry",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), dataclasses.replace],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_message_can_be_copied(carry: Any) -> None:
    """As any dataclass can, and the copy still checks."""
    message = StructuredMessage("x", {"type": "task"}, tool_calls=[{"name": "t"}])
    again = carry(message)
    assert again == message
    with pytest.raises(ValueError, match="id is blank"):
        again.id = " "


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (_Colour.RED, "red"),
        (_Level.LOW, 1),
        (10**3900, 10**3900),
        (-0.0, -0.0),
        ("\x00 \u2028 é 😀", "\x00 \u2028 é 😀"),
        (_deep(MAX_DEPTH), _deep(MAX_DEPTH)),
    ],
    ids=["tuples", "mapping", "text enum", "number enum", "long integer", "minus zero", "odd text", "deep"],
)
def test_values_are_kept_as_plain_json(content: Any, kept: Any) -> None:
    """Tuples are lists, enums their values, and the limits are limits of the reader too."""
    message = StructuredMessage.from_json(StructuredMessage(content).to_json())
    assert message.content == kept
    assert type(message.content) is type(kept)


def test_an_agents_answer_is_a_content() -> None:
    """It becomes plain text, without the run's result behind it."""
    result = RunResult(run_id="r", outcome=RunOutcome.ANSWERED, output="60", messages=(), new_messages=())
    assert type(StructuredMessage(Answer("60", result)).content) is str


@pytest.mark.parametrize(("content", "text"), [("as it is", "as it is"), ({"n": "é"}, '{"n": "é"}'), (None, "null")])
def test_the_content_as_text(content: Any, text: str) -> None:
    """A text is itself, the rest its JSON."""
    assert StructuredMessage(content).text == text


def test_the_repr_is_short_and_never_fails() -> None:
    """It names type, id and ends, and only the beginning of a long content."""
    message = StructuredMessage("x" * 9000, id="m1", source_agent="a")
    message.tool_calls.append({"name": "t"})
    assert repr(message) == (
        "<StructuredMessage query 'm1' from 'a' to None: 'xxxxxxxxxxxx...xxxxxxxxxxxxx', 1 calls, 0 results>"
    )
    message.content = {}
    message.content["self"] = message.content
    assert len(repr(message)) < 300


_BASE: dict[Any, Any] = {"content": "x"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "a structured message is a list, expected an object"),
        ({}, "a structured message needs the key 'content'"),
        ({"contents": "x"}, r"a structured message has no key 'contents'; did you mean 'content'\?"),
        ({**_BASE, 7: 1}, "a structured message has no key '7'; it has: content, id, in_reply_to, metadata"),
        ({"content": float("nan")}, "content is nan, which JSON does not have; use None or a text"),
        ({"content": [1, {"a": float("inf")}]}, r"content\[1\].a is inf"),
        ({"content": {"a": object()}}, "content.a is a object, expected a JSON value"),
        ({"content": b"x"}, "content is a bytes, expected a JSON value"),
        ({"content": {1: 2}}, "content has the key '1', a int, expected text"),
        ({"content": "half \ud83d pair"}, "content has half a surrogate pair at character 5; clean it"),
        ({"content": {"\udc80": 1}}, "a key of content has half a surrogate pair"),
        ({"content": 10**4300}, "content is an integer of 14285 bits, expected at most 13000"),
        ({"content": _deep(MAX_DEPTH + 1)}, "is nested too deeply, expected at most 90 levels"),
        ({"content": {"k" * 500: object()}}, r"content.k{109}\.\.\. is a object"),
        ({**_BASE, "metadata": "task"}, "metadata is a str, expected an object"),
        ({**_BASE, "metadata": {"type": "taks"}}, r"metadata.type 'taks' is no message type; did you mean 'task'\?"),
        ({**_BASE, "metadata": {"type": 3}}, "metadata.type is a int, expected text"),
        ({**_BASE, "metadata": {"priority": "high"}}, "metadata.priority is a str, expected a whole number"),
        ({**_BASE, "metadata": {"priority": True}}, "metadata.priority is a bool, expected a whole number"),
        ({**_BASE, "metadata": {"priority": 1.5}}, "metadata.priority is a float"),
        ({**_BASE, "metadata": {"note": {1, 2}}}, "metadata.note is a set, expected a JSON value"),
        ({**_BASE, "id": ""}, "id is blank"),
        ({**_BASE, "id": 5}, "id is a int, expected text"),
        ({**_BASE, "task_id": 5}, "task_id is a int, expected text"),
        ({**_BASE, "target_agent": " "}, "target_agent is blank"),
        ({**_BASE, "in_reply_to": []}, "in_reply_to is a list"),
        ({**_BASE, "timestamp": 1764500000}, "timestamp is a int, expected a datetime, or text in ISO 8601"),
        ({**_BASE, "timestamp": "noon"}, "timestamp 'noon' is no time in ISO 8601"),
        ({**_BASE, "timestamp": "2026-11-30T12:00:00"}, "timestamp '2026-11-30T12:00:00' has no time zone"),
        (
            {**_BASE, "timestamp": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))},
            "timestamp '0001-01-01T00:00:00[+]01:00' is out of range in UTC",
        ),
        ({**_BASE, "tool_calls": "t"}, "tool_calls is a str, expected a list of objects"),
        ({**_BASE, "tool_calls": {"name": "t"}}, "tool_calls is a dict, expected a list of objects"),
        ({**_BASE, "tool_calls": 5}, "tool_calls is a int, expected a list of objects"),
        ({**_BASE, "tool_calls": ["t"]}, r"tool_calls\[0\] is a str, expected an object"),
        ({**_BASE, "tool_calls": [{}]}, r"tool_calls\[0\].name is a NoneType, expected text"),
        ({**_BASE, "tool_calls": [{"name": ""}]}, r"tool_calls\[0\].name is blank"),
        (
            {**_BASE, "tool_calls": [{"name": "t", "args": {}}]},
            r"tool_calls\[0\] has no key 'args'; did you mean 'arguments'",
        ),
        (
            {**_BASE, "tool_calls": [{"name": "t", "arguments": "{}"}]},
            r"tool_calls\[0\].arguments is a str, expected an object",
        ),
        ({**_BASE, "tool_calls": [{"name": "t", "arguments": []}]}, r"tool_calls\[0\].arguments is a list"),
        ({**_BASE, "tool_results": [{"name": "t", "call_id": 1}]}, r"tool_results\[0\].call_id is a int"),
        (
            {**_BASE, "tool_results": [{"name": "t"}, {"name": "t", "status": "okay"}]},
            r"tool_results\[1\].status 'okay' is no status; did you mean 'ok'\?",
        ),
        ({**_BASE, "tool_results": [{"name": "t", "status": 0}]}, r"tool_results\[0\].status is a int"),
        ({**_BASE, "tool_results": [{"name": "t", "error": 0}]}, r"tool_results\[0\].error is a int"),
    ],
)
def test_a_wrong_value_is_a_value_error_that_names_its_key(data: Any, text: str) -> None:
    """Unknown keys, wrong types and what is no JSON are refused, in a sentence about that place."""
    with pytest.raises(ValueError, match=text) as caught:
        StructuredMessage.from_dict(data)
    assert len(str(caught.value)) < 400


def test_extra_metadata_can_not_hide_a_field() -> None:
    """Written out, an extra key `priority` would replace the field."""
    with pytest.raises(ValueError, match="extra has the key 'priority', which is a field of its own"):
        MessageMetadata(extra={"priority": 9})
    with pytest.raises(ValueError, match="extra is a list, expected an object"):
        MessageMetadata(extra=[])  # type: ignore[arg-type]
    sly = MessageMetadata()
    sly.extra["type"] = "error"
    with pytest.raises(ValueError, match="metadata has the key 'type'"):
        sly.to_dict()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{}", "is a bytes, expected text"),
        ("", "can't be read: Expecting value at line 1 column 1"),
        ("{", "can't be read: Expecting property name"),
        ('{"content": NaN}', "can't be read: NaN is no JSON number"),
        ('{"content": 1e999}', "can't be read: the number 1e999 is out of range"),
        ('{"content": "a", "content": "b"}', "can't be read: the key 'content' stands twice"),
        ("[" * 200 + "]" * 200, "is nested too deeply"),
        ("[" * 100_000, "is nested too deeply"),
        ('"content"', "a structured message is a str, expected an object"),
    ],
    ids=["bytes", "empty", "cut", "nan", "out of range", "key twice", "deep", "far too deep", "no object"],
)
def test_bad_json_is_a_value_error(text: Any, problem: str) -> None:
    """What a strict reader of JSON refuses, a message refuses."""
    with pytest.raises(ValueError, match=problem):
        StructuredMessage.from_json(text)


@pytest.mark.parametrize(
    "timestamp", ["2026-11-30T13:00:00+01:00", "2026-11-30T12:00:00Z", "20261130T120000Z", NOON], ids=str
)
def test_times_of_any_zone_are_kept_in_utc(timestamp: str | datetime) -> None:
    """As text in any form of ISO 8601 that Python reads, or as a datetime."""
    message = StructuredMessage("x", timestamp=timestamp)
    assert message.timestamp == NOON
    assert message.to_dict()["timestamp"] == "2026-11-30T12:00:00+00:00"


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), max_size=8), st.randoms(use_true_random=False))
def test_an_inbox_is_sorted_by_priority_then_age(entries: list[tuple[int, int]], random: Any) -> None:
    """Whatever order messages came in; messages of one priority and time keep an order of their own."""
    inbox = [
        StructuredMessage(n, {"priority": priority}, id=f"m{n}", timestamp=NOON + timedelta(seconds=seconds))
        for n, (priority, seconds) in enumerate(entries)
    ]
    shuffled = random.sample(inbox, len(inbox))
    order = sorted(shuffled, key=lambda m: m.inbox_key)
    assert order == sorted(inbox, key=lambda m: m.inbox_key)
    for first, second in pairwise(order):
        assert first.metadata.priority >= second.metadata.priority
        if first.metadata.priority == second.metadata.priority:
            assert first.timestamp <= second.timestamp


def test_the_json_is_plain_to_any_reader() -> None:
    """A strict reader without Python's extensions finds the fields by these names."""
    message = StructuredMessage("x", id="m1", timestamp=NOON, tool_results=[{"name": "t", "result": 1.5}])
    assert json.loads(message.to_json()) == {
        "content": "x",
        "metadata": {"type": "query", "priority": 0},
        "id": "m1",
        "task_id": None,
        "timestamp": "2026-11-30T12:00:00+00:00",
        "source_agent": None,
        "target_agent": None,
        "in_reply_to": None,
        "tool_calls": [],
        "tool_results": [{"name": "t", "arguments": {}, "status": "ok", "result": 1.5, "error": None, "call_id": None}],
    }
