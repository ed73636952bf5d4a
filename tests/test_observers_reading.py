"""Events survive being written as JSON and read again."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import (
    ChatMessage,
    Event,
    HistoryRepaired,
    Image,
    ModelRequested,
    ModelResponded,
    Opaque,
    RunEnded,
    RunOutcome,
    RunStarted,
    RunWarning,
    Text,
    TextDelta,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    events,
)
from atlas_core.events import to_dict
from atlas_core.interfaces.executors import CallStatus
from atlas_core.observers.reading import _CLASSES, _READERS, event_from_dict

texts = st.text(max_size=20)
calls = st.builds(ToolCall, id=texts, name=texts, arguments_json=texts)
counts = st.integers(0, 10**6)
usages = st.builds(
    Usage,
    input_tokens=counts,
    cached_input_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
    requests=counts,
)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Image, data=st.binary(max_size=10)),
    st.builds(Opaque, provider=texts, payload_json=st.just("{}")),
)
messages = st.one_of(
    st.builds(ChatMessage.user, texts),
    st.builds(ChatMessage.user, st.lists(parts, min_size=1, max_size=3)),
    st.builds(ChatMessage.assistant, texts, st.lists(calls, max_size=2)),
    st.builds(ChatMessage.tool, calls.filter(lambda call: bool(call.id)), texts, is_error=st.booleans()),
)
# Never written: an event has its time from a clock, which gives no NaN.
seconds = st.floats(0, 1e12, allow_nan=False)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "str": texts,
    "str | None": st.none() | texts.filter(bool),
    "int": counts,
    "float": seconds,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(texts, max_size=3).map(tuple),
    "tuple[ChatMessage, ...]": st.lists(messages, max_size=2).map(tuple),
    "ChatMessage": messages,
    "ToolCall": calls,
    "Usage": usages,
    "CallStatus": st.sampled_from(CallStatus),
    "RunOutcome": st.sampled_from(RunOutcome),
}


def events_of(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Return events of a class, every field filled by its annotation."""
    fields = {field.name: FIELDS[str(field.type)] for field in dataclasses.fields(cls)}
    if "kind" in fields:
        fields["kind"] = st.sampled_from(["text", "reasoning"])
    return st.builds(cls, **fields)


def test_the_table_knows_every_event_and_every_kind_of_field() -> None:
    """A new event class, or a field of a new type, must be added to the reader."""
    assert set(_CLASSES) == set(events.__all__) - {"Event", "Observer"}
    assert {str(f.type) for cls in _CLASSES.values() for f in dataclasses.fields(cls)} == set(_READERS)


@given(st.sampled_from(sorted(_CLASSES)).flatmap(lambda name: events_of(_CLASSES[name])))
def test_an_event_read_again_is_equal(event: Event) -> None:
    """Writing as JSON and reading back gives an equal event of the same class."""
    again = event_from_dict(json.loads(json.dumps(to_dict(event))))
    assert type(again) is type(event)
    assert again == event


def test_keys_of_a_newer_version_are_passed_over() -> None:
    """A trace written by a later version can still be shown."""
    event = event_from_dict({"event": "RunWarning", "run_id": "r", "text": "careful", "colour": "red"})
    assert event == RunWarning(run_id="r", text="careful")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param([], "a list, expected an object", id="not an object"),
        pytest.param({}, "unknown event None", id="no class"),
        pytest.param({"event": ["x"]}, "unknown event", id="a class that is no text"),
        pytest.param({"event": "RunStartd"}, "unknown event 'RunStartd'; did you mean 'RunStarted'", id="misspelt"),
        pytest.param({"event": "RunWarning", "run_id": 3}, "run_id: a int, expected str", id="a wrong type"),
        pytest.param({"event": "RunEnded", "run_id": "r"}, "outcome is missing", id="a missing value"),
        pytest.param({"event": "RunEnded", "outcome": "odd"}, "outcome: 'odd' is not a valid", id="a wrong outcome"),
        pytest.param({"event": "RunWarning", "time_s": "now"}, "time_s: a str, expected a number", id="no number"),
        pytest.param({"event": "RunWarning", "time_s": True}, "time_s: a bool, expected a number", id="a bool as one"),
        pytest.param(
            {"event": "RunEnded", "outcome": "failed", "usage": 3}, "usage: a int, expected an object", id="no usage"
        ),
        pytest.param({"event": "HistoryRepaired", "repairs": "a"}, "repairs: a str, expected a list", id="no list"),
        pytest.param({"event": "RunStarted", "message": {"role": "x"}}, "message: role 'x'", id="no message"),
        pytest.param({"event": "ToolCallStarted", "call": {"id": 1}}, "call: a int, expected str", id="a call's id"),
    ],
)
def test_what_is_no_event_is_refused(data: object, message: str) -> None:
    """The error names the field and what was expected."""
    with pytest.raises(ValueError, match=message):
        event_from_dict(data)


def test_every_event_is_public() -> None:
    """What a trace can hold, a program can name."""
    public = {HistoryRepaired, ModelRequested, ModelResponded, RunEnded, RunStarted, RunWarning, TextDelta}
    assert public | {ToolCallEnded, ToolCallStarted} == set(_CLASSES.values())
