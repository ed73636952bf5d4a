"""Any history becomes a valid conversation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import ChatMessage, ToolCall
from atlas_core._runtime.history import INTERRUPTED, Ids, read_history, repair


def call(call_id: str, name: str = "t") -> ToolCall:
    """Make a call."""
    return ToolCall(call_id, name)


def assistant(*ids: str) -> ChatMessage:
    """Make a message that asks for calls of these ids."""
    return ChatMessage.assistant("", [call(i) for i in ids])


def result(call_id: str, text: str = "r") -> ChatMessage:
    """Make the message that answers a call."""
    return ChatMessage.tool(call(call_id), text)


def test_a_valid_history_is_left_as_it_is() -> None:
    """Nothing is changed where nothing is wrong."""
    messages = [ChatMessage.user("a"), assistant("1", "2"), result("1"), result("2"), ChatMessage.assistant("b")]
    assert repair(messages, Ids()) == (messages, [])


def test_a_call_without_result_is_answered_as_interrupted_and_finished_siblings_are_kept() -> None:
    """Case 80: an open call gets a synthetic result, in any place of the history."""
    messages = [ChatMessage.user("a"), assistant("1", "2"), result("2", "kept"), ChatMessage.user("b")]
    repaired, repairs = repair(messages, Ids())
    assert [m.role for m in repaired] == ["user", "assistant", "tool", "tool", "user"]
    assert [m.tool_call_id for m in repaired if m.role == "tool"] == ["2", "1"]
    assert [m.text for m in repaired if m.role == "tool"] == ["kept", INTERRUPTED]
    assert repairs == ["answered call '1' to 't' as interrupted"]


def test_an_open_call_at_the_end_is_answered_too() -> None:
    """A history that was cut right after the model's message is usable."""
    repaired, _ = repair([ChatMessage.user("a"), assistant("1")], Ids())
    assert repaired[-1].tool_call_id == "1"
    assert repaired[-1].is_error


def test_a_result_that_answers_no_open_call_is_dropped() -> None:
    """Orphan and doubled results go, and are told."""
    repaired, repairs = repair([ChatMessage.user("a"), result("9"), assistant("1"), result("1"), result("1")], Ids())
    assert [m.role for m in repaired] == ["user", "assistant", "tool"]
    assert len(repairs) == 2


def test_one_constant_id_in_every_turn_keeps_every_pair() -> None:
    """Case 40: results are matched to open calls in order, and ids are rewritten on both sides."""
    messages = []
    for n in (1, 2, 3):
        messages += [ChatMessage.user(str(n)), assistant("call_0"), result("call_0", f"r{n}")]
    repaired, _ = repair(messages, Ids())
    pairs = [(m.tool_calls[0].id, r.tool_call_id, r.text) for m, r in zip(repaired[1::3], repaired[2::3], strict=True)]
    assert [text for *_, text in pairs] == ["r1", "r2", "r3"]
    assert all(asked == answered for asked, answered, _ in pairs)
    assert len({asked for asked, *_ in pairs}) == 3


def test_two_calls_of_one_id_in_one_message_are_told_apart_in_order() -> None:
    """Repeated ids inside one message are made unique too."""
    repaired, _ = repair([assistant("x", "x"), result("x", "first"), result("x", "second")], Ids())
    assert [m.text for m in repaired[1:]] == ["first", "second"]
    assert [m.tool_call_id for m in repaired[1:]] == [c.id for c in repaired[0].tool_calls]


def test_an_empty_assistant_message_is_left_out() -> None:
    """Case 58: providers refuse an assistant message with neither text nor calls."""
    repaired, repairs = repair([ChatMessage.user("hi"), ChatMessage.assistant(""), ChatMessage.user("again")], Ids())
    assert [m.text for m in repaired] == ["hi", "again"]
    assert repairs


def test_dicts_are_read_and_never_changed() -> None:
    """Case 82: nested dicts of the caller stay as they were."""
    given: list[dict[str, object]] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": {}}}]},
    ]
    before = copy.deepcopy(given)
    messages = read_history(given)
    repair(messages, Ids())
    assert given == before
    assert messages[1].tool_calls == (ToolCall("1", "t", "{}"),)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        pytest.param(3, r"history\[1\] is a int", id="a number"),
        pytest.param({"role": "boss"}, r"history\[1\]: role 'boss'", id="an unknown role"),
        pytest.param({"role": "user", "contents": "x"}, r"no key 'contents'", id="a misspelt key"),
    ],
)
def test_what_is_no_message_is_named_with_its_place(item: object, text: str) -> None:
    """Bad items are errors that say which one and why."""
    history: list[Any] = [ChatMessage.user("ok"), item]
    with pytest.raises((TypeError, ValueError), match=text):
        read_history(history)


ids = st.sampled_from(["a", "b", "a-2", ""])
any_message = st.one_of(
    st.builds(ChatMessage.user, st.text(min_size=1, max_size=3)),
    st.lists(ids, max_size=3).map(lambda i: ChatMessage.assistant("x", [call(n) for n in i])),
    ids.map(lambda i: ChatMessage(role="tool", content="r", tool_call_id=i or "a")),
)


@given(st.lists(any_message, max_size=12))
def test_repair_law(messages: list[ChatMessage]) -> None:
    """After repair every call has exactly one result, directly after its message, and ids never repeat."""
    repaired, _ = repair(messages, Ids())
    seen: set[str] = set()
    index = 0
    while index < len(repaired):
        message = repaired[index]
        assert message.role != "tool"
        index += 1
        wanted = {c.id for c in message.tool_calls}
        assert len(wanted) == len(message.tool_calls)
        assert not wanted & seen
        seen |= wanted
        answered = []
        while index < len(repaired) and repaired[index].role == "tool":
            answered.append(repaired[index].tool_call_id)
            index += 1
        assert sorted(map(str, answered)) == sorted(wanted)
    again, repairs = repair(repaired, Ids())
    assert again == repaired
    assert not repairs
