"""Messages are immutable and survive a round trip."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import (
    Answer,
    ChatMessage,
    Data,
    File,
    Image,
    Opaque,
    RunOutcome,
    RunResult,
    Text,
    ToolCall,
    Usage,
)

parts = st.one_of(
    st.builds(Text, st.text()),
    st.builds(Image, data=st.binary(), media_type=st.sampled_from(["image/png", "image/jpeg"])),
    st.builds(Image, url=st.text(min_size=1)),
    st.builds(File, data=st.binary(), name=st.none() | st.text()),
    st.builds(Data, st.just('{"a": 1}')),
    st.builds(Opaque, st.text(), st.just("[1, 2]")),
)
calls = st.builds(ToolCall, st.text(), st.text(min_size=1), st.text())
content = st.text() | st.lists(parts).map(tuple)
messages = st.one_of(
    st.builds(ChatMessage, role=st.sampled_from(["system", "user"]), content=content, name=st.none() | st.text()),
    st.builds(ChatMessage, role=st.just("assistant"), content=content, tool_calls=st.lists(calls).map(tuple)),
    st.builds(
        ChatMessage,
        role=st.just("tool"),
        content=content,
        tool_call_id=st.text(min_size=1),
        is_error=st.booleans(),
    ),
)


@given(messages)
def test_a_message_survives_json_and_pickle(message: ChatMessage) -> None:
    """Every part, whatever text is in it."""
    assert ChatMessage.from_dict(json.loads(json.dumps(message.to_dict()))) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(message) == hash(copy.deepcopy(message))


def test_a_part_that_nobody_here_knows_is_carried() -> None:
    """A newer version's part is kept, not dropped."""
    data = {"role": "user", "content": [{"type": "hologram", "depth": 3}]}
    part = ChatMessage.from_dict(data).content[0]
    assert isinstance(part, Opaque)
    assert part.payload == {"type": "hologram", "depth": 3}


def test_the_common_chat_form_is_read() -> None:
    """Calls with `function`, arguments as text or as an object, content null."""
    message = ChatMessage.from_dict(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}},
                {"id": None, "name": "b", "arguments": {"y": 2}},
            ],
        }
    )
    assert message.content == ""
    assert [c.arguments for c in message.tool_calls] == [{"x": 1}, {"y": 2}]
    assert [c.id for c in message.tool_calls] == ["1", ""]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"role": "boss"}, "role 'boss' is not one of"),
        ({"content": "x"}, "role None"),
        ({"role": "user", "content": 3}, "content is a int"),
        ({"role": "user", "content": [3]}, "content part is a int"),
        ({"role": "user", "content": [{"type": "text"}]}, "text part needs the key 'text'"),
        (
            {"role": "user", "content": [{"type": "image", "media_type": "image/png"}]},
            "either data or url, got neither",
        ),
        ({"role": "user", "content": [{"type": "image", "url": 3, "media_type": "x"}]}, "url is a int"),
        ({"role": "user", "extra": 1}, "no key 'extra'"),
        ({"role": "tool", "content": "x"}, "needs tool_call_id"),
        ({"role": "tool", "content": "x", "tool_call_id": 3}, "tool_call_id is a int"),
        ({"role": "assistant", "tool_calls": "x"}, "tool_calls is a str"),
        ({"role": "assistant", "tool_calls": ["x"]}, "tool call is a str"),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, "needs a name"),
        ({"role": "user", "tool_calls": [{"name": "x"}]}, "only an assistant message"),
    ],
)
def test_what_is_no_message_is_refused_by_name(data: dict[str, Any], text: str) -> None:
    """The text names the key and what was expected."""
    with pytest.raises(ValueError, match=text):
        ChatMessage.from_dict(data)


def test_a_message_takes_any_iterable_of_parts_and_keeps_a_tuple() -> None:
    """The caller's list is not kept."""
    given_parts: list[Any] = [Text("a"), Text("b")]
    message = ChatMessage(role="user", content=given_parts)  # type: ignore[arg-type]  # any iterable is taken
    given_parts.clear()
    assert message.text == "ab"
    assert ChatMessage.assistant(iter([Text("x")]), iter([ToolCall("1", "t")])).tool_calls == (ToolCall("1", "t"),)
    assert ChatMessage(role="assistant", tool_calls=[ToolCall("1", "t")]).tool_calls == (  # type: ignore[arg-type]  # as above
        ToolCall("1", "t"),
    )
    with pytest.raises(ValueError, match="role 'x'"):
        ChatMessage(role="x")  # type: ignore[arg-type]  # wrong on purpose


def test_an_image_is_bytes_or_a_url() -> None:
    """Both is an error too."""
    with pytest.raises(ValueError, match="got both"):
        Image(b"x", "https://example.test/x.png")


def test_arguments_are_fresh_each_time_and_must_be_an_object() -> None:
    """Nobody can change a call through its arguments."""
    call = ToolCall.of("t", id="1", values=[1])
    assert call.arguments is not call.arguments
    assert ToolCall("1", "t", "null").arguments == {}
    assert ToolCall("1", "t", "").arguments == {}
    with pytest.raises(ValueError, match="call '1' to 't' are not a JSON object"):
        _ = ToolCall("1", "t", "[1]").arguments


def test_data_and_opaque_parts_decode_afresh() -> None:
    """Their text is what is kept."""
    data = Data('{"a": [1]}')
    assert data.value == {"a": [1]}
    assert data.value is not data.value
    assert Opaque("p", "3").payload == 3


def test_usage_adds_up() -> None:
    """Each count on its own."""
    one = Usage(input_tokens=1, cached_input_tokens=2, output_tokens=3, reasoning_tokens=4, requests=5)
    assert one + one == Usage(input_tokens=2, cached_input_tokens=4, output_tokens=6, reasoning_tokens=8, requests=10)


def test_an_answer_is_text_that_survives_copying_with_its_result() -> None:
    """Pickled, copied, and as plain text in JSON."""
    result = RunResult(run_id="r", outcome=RunOutcome.ANSWERED, output="hi", messages=(), new_messages=())
    answer = Answer("hi", result)
    for other in (pickle.loads(pickle.dumps(answer)), copy.copy(answer), copy.deepcopy(answer)):
        assert other == "hi"
        assert other.result == result
    assert json.dumps(answer) == '"hi"'
