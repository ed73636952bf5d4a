from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from atlas_anthropic._blocks import assistant_blocks
from atlas_anthropic._response import AnswerReader, UnreadableError, is_error, read_models
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import (
    FinishReason,
    LLMDelta,
    LLMResponse,
    Opaque,
    ProviderResponseError,
    Text,
    ToolCall,
    Usage,
)

EventsOf = Callable[[str], list[dict[str, Any]]]
MessageOf = Callable[..., dict[str, Any]]

START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def ended(reason: str | None, **delta: Any) -> dict[str, Any]:
    """Return the event that tells why a message ends."""
    return {"type": "message_delta", "delta": {"stop_reason": reason, **delta}, "usage": {"output_tokens": 9}}


def begun(index: object, **block: Any) -> dict[str, Any]:
    """Return the event that begins a block."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: object, **delta: Any) -> dict[str, Any]:
    """Return an event with a piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stopped(index: object) -> dict[str, Any]:
    """Return the event that ends a block."""
    return {"type": "content_block_stop", "index": index}


def fed(*events: dict[str, Any], names: dict[str, str] | None = None) -> tuple[list[LLMDelta], LLMResponse]:
    """Feed events to a reader; return what may be shown, and the answer."""
    reader = AnswerReader(names or {})
    shown = [delta for event in events if (delta := reader.feed(event)) is not None]
    assert reader.ended
    return shown, reader.finish("req_1")


def read(message: object, names: dict[str, str] | None = None) -> LLMResponse:
    """Read a whole message."""
    reader = AnswerReader(names or {})
    reader.read(message)
    assert reader.ended
    return reader.finish()


# Streams of the vendor's pages -----------------------------------------------------------------------------------


def test_a_stream_with_a_call(events_of: EventsOf) -> None:
    """The call's fragments are its arguments, as the model wrote them; the ping says nothing."""
    shown, response = fed(*events_of("tool_use"))
    assert shown == [LLMDelta("Okay"), LLMDelta(", let me look")]
    assert response.message.text == "Okay, let me look"
    assert response.message.tool_calls == (
        ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", '{"location": "San Francisco, CA"}'),
    )
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(input_tokens=472, output_tokens=89, requests=1)
    assert (response.model, response.request_id) == ("claude-opus-5-5", "req_1")


def test_a_stream_with_thinking(events_of: EventsOf) -> None:
    """Thoughts are shown as such, and go back signed and in their place."""
    shown, response = fed(*events_of("thinking"))
    assert [delta.kind for delta in shown] == ["reasoning", "reasoning", "text"]
    thinking, redacted, text = tuple(response.message.content)
    assert isinstance(thinking, Opaque)
    assert thinking.payload == {
        "type": "thinking",
        "thinking": "I need the GCD of 1071 and 462.\n\n1071 = 2 × 462 + 147",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
    }
    assert isinstance(redacted, Opaque)
    assert text == Text("The greatest common divisor is **21**.")
    sent = [json.loads(block) for block in assistant_blocks(response.message, str)]
    assert sent[0] == thinking.payload
    assert sent[1] == redacted.payload == events_of("thinking")[6]["content_block"]


def test_usage_is_the_sum_of_what_the_server_counts_apart(events_of: EventsOf) -> None:
    """Input is what was read fresh, from the cache, and into it; thinking is part of the output."""
    assert fed(*events_of("thinking"))[1].usage == Usage(
        input_tokens=10 + 200 + 3000,
        cached_input_tokens=3000,
        output_tokens=120,
        reasoning_tokens=95,
        requests=1,
    )


def test_a_stream_with_a_tool_of_the_servers(events_of: EventsOf) -> None:
    """Its call and result are carried back as they came, with the citations; later counts replace earlier ones."""
    _, response = fed(*events_of("web_search"))
    assert response.message.text == "It is 21 degrees in New York."
    assert response.message.tool_calls == ()
    assert response.usage.input_tokens == 10682
    use, result, text = [json.loads(block) for block in assistant_blocks(response.message, str)]
    assert use == {
        "type": "server_tool_use",
        "id": "srvtoolu_014hJH82Qum7Td6UV8gDXThB",
        "name": "web_search",
        "input": {"query": "weather NYC today"},
    }
    assert result == events_of("web_search")[5]["content_block"]
    assert text["citations"] == [events_of("web_search")[9]["delta"]["citation"]]


# What servers do to streams --------------------------------------------------------------------------------------


def test_parallel_calls_may_be_interleaved() -> None:
    """The index tells whose piece it is."""
    _, response = fed(
        START,
        begun(0, type="tool_use", id="a", name="x", input={}),
        begun(1, type="tool_use", id="b", name="y", input={}),
        grown(1, type="input_json_delta", partial_json='{"q":'),
        grown(0, type="input_json_delta", partial_json='{"p":1}'),
        grown(1, type="input_json_delta", partial_json="2}"),
        stopped(0),
        stopped(1),
        ended("tool_use"),
        STOP,
    )
    assert response.message.tool_calls == (ToolCall("a", "x", '{"p":1}'), ToolCall("b", "y", '{"q":2}'))


@pytest.mark.parametrize("index", [0, None, "0"], ids=["all have index 0", "none has an index", "indices are texts"])
def test_a_new_start_is_a_new_block(index: object) -> None:
    """Case 42: two calls on one index are two calls, never one with both arguments."""
    _, response = fed(
        START,
        begun(index, type="tool_use", id="a", name="s", input={}),
        grown(index, type="input_json_delta", partial_json='{"q":"A"}'),
        begun(index, type="tool_use", id="b", name="s", input={}),
        grown(index, type="input_json_delta", partial_json='{"q":"B"}'),
        ended("tool_use"),
        STOP,
    )
    assert response.message.tool_calls == (ToolCall("a", "s", '{"q":"A"}'), ToolCall("b", "s", '{"q":"B"}'))


@pytest.mark.parametrize(
    ("block", "pieces", "arguments"),
    [
        ({"input": {}}, [], "{}"),
        ({"input": {}}, [""], "{}"),
        ({}, [], "{}"),
        ({"input": None}, [], "{}"),
        ({"input": {"a": 1}}, [], '{"a": 1}'),
        ({"input": '{"a":  1}'}, [], '{"a":  1}'),
        ({"input": ""}, [], "{}"),
        ({"input": {}}, ['{"a"', ":1}"], '{"a":1}'),
        ({"input": {}}, ['{"a": "unfinish'], '{"a": "unfinish'),
    ],
    ids=[
        "an empty object",
        "an empty piece",
        "no input",
        "null",
        "an object at once",
        "a JSON text at once",
        "an empty text",
        "pieces",
        "pieces that break off",
    ],
)
def test_arguments_come_in_many_ways(block: dict[str, Any], pieces: list[str], arguments: str) -> None:
    """What the model wrote is kept; nothing is an empty object. Whole and in pieces alike."""
    events = [grown(0, type="input_json_delta", partial_json=piece) for piece in pieces]
    _, response = fed(START, begun(0, type="tool_use", id="a", name="x", **block), *events, ended("tool_use"), STOP)
    assert [call.arguments_json for call in response.message.tool_calls] == [arguments]
    if not pieces:
        (call,) = read({"content": [{"type": "tool_use", "id": "a", "name": "x", **block}]}).message.tool_calls
        assert call.arguments_json == arguments


def test_blocks_may_lack_their_beginning() -> None:
    """Text and thoughts speak for themselves; a call without a name does not."""
    shown, response = fed(
        grown(0, type="thinking_delta", thinking="hm"), grown(1, type="text_delta", text="a"),
        grown(1, type="text_delta", text="b"), ended("end_turn"), STOP,
    )  # fmt: skip
    assert [delta.text for delta in shown] == ["hm", "a", "b"]
    assert response.message.text == "ab"
    with pytest.raises(UnreadableError, match=r"content_block_delta \('input_json_delta'\) belongs to no block"):
        AnswerReader({}).feed(grown(0, type="input_json_delta", partial_json="{}"))


def test_text_may_stand_in_the_beginning_of_a_block() -> None:
    """It is shown too."""
    shown, response = fed(
        begun(0, type="text", text="a"), grown(0, type="text_delta", text="b"), ended("end_turn"), STOP
    )
    assert [delta.text for delta in shown] == ["a", "b"]
    assert response.message.content == "ab"


def test_kinds_that_came_later_are_carried() -> None:
    """Unknown events are passed over; unknown blocks and pieces go back as they came."""
    _, response = fed(
        START,
        {"type": "new_event", "x": 1},
        {},
        begun(0, type="compaction", content="a", state=1),
        grown(0, type="compaction_delta", content="b", state=2, more={"x": 1}),
        grown(0, type="compaction_delta", content="c"),
        ended("end_turn"),
        STOP,
    )
    (part,) = tuple(response.message.content)
    assert isinstance(part, Opaque)
    assert part.provider == "anthropic"
    assert part.payload == {"type": "compaction", "content": "abc", "state": 2, "more": {"x": 1}}


def test_a_whole_message_may_come_for_a_stream(message_of: MessageOf) -> None:
    """A server that can't stream answers at once; the text is shown then."""
    shown, response = fed(message_of("a", {"type": "tool_use", "id": "i", "name": "n", "input": {}}, "b"))
    assert shown == [LLMDelta("ab")]
    assert response.message.text == "ab"
    assert fed(message_of())[0] == []


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": "text"},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": None},
    ],
    ids=["no block", "a text for a block", "no delta", "null for a delta"],
)
def test_events_without_what_they_are_about(event: dict[str, Any]) -> None:
    """The text names the event and what it lacks."""
    with pytest.raises(UnreadableError, match=f"an event {event['type']} has no `"):
        AnswerReader({}).feed(event)


@pytest.mark.parametrize("usage", [None, "many", {"input_tokens": "3"}, {"output_tokens": -1}, {"input_tokens": True}])
def test_usage_that_is_none_counts_nothing(usage: object) -> None:
    """It never breaks an answer."""
    response = read({"content": [{"type": "text", "text": "a"}], "usage": usage})
    assert response.usage == Usage(requests=1)


def test_odd_facts_are_passed_over() -> None:
    """Whatever stands where a text or an object belongs."""
    _, response = fed(
        {"type": "message_start"},
        {"type": "message_start", "message": {"model": 5, "usage": []}},
        begun(0, type="text", text=None),
        grown(0, type="text_delta", text=None),
        grown(0, type="text_delta", text="a"),
        {"type": "message_delta"},
        stopped(0),
        stopped(7),
        STOP,
    )
    assert response.message.content == "a"
    assert (response.model, response.finish_reason) == ("", FinishReason.UNKNOWN)


def test_errors_are_known_by_their_type_or_their_key() -> None:
    """Some servers leave the type out."""
    assert is_error({"type": "error", "error": {"message": "m"}})
    assert is_error({"error": "m"})
    assert not is_error({"type": "message", "error": None})
    assert not is_error({})


def test_an_attempt_may_be_made_again_until_something_was_shown() -> None:
    """What came before is dropped; once a piece was shown or the message is complete, it stays."""
    reader = AnswerReader({})
    reader.feed(begun(0, type="tool_use", id="a", name="x"))
    assert reader.may_restart()
    reader.feed(begun(0, type="text", text=""))
    reader.feed(ended("end_turn"))
    reader.feed(STOP)
    assert not reader.may_restart()
    assert reader.finish().message.tool_calls == ()
    reader = AnswerReader({})
    reader.feed(grown(0, type="text_delta", text="a"))
    assert not reader.may_restart()


def test_a_broken_input_of_a_servers_tool_is_an_empty_one() -> None:
    """It is the server's own to know, and `input` must be an object."""
    block = begun(0, type="server_tool_use", id="s", name="w", input={})
    _, response = fed(block, grown(0, type="input_json_delta", partial_json='{"q'), ended("max_tokens"), STOP)
    (part,) = tuple(response.message.content)
    assert isinstance(part, Opaque)
    assert part.payload == {"type": "server_tool_use", "id": "s", "name": "w", "input": {}}


# Why a message ended ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("tool_use", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.DECLINED),
        ("pause_turn", FinishReason.UNKNOWN),
        ("something_new", FinishReason.UNKNOWN),
        (None, FinishReason.UNKNOWN),
    ],
)
def test_reasons_of_messages_without_calls(message_of: MessageOf, reason: str | None, finish: FinishReason) -> None:
    """The label alone calls nothing (case 56)."""
    assert read(message_of("a", stop_reason=reason)).finish_reason is finish


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", FinishReason.TOOL_CALLS),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("something_new", FinishReason.TOOL_CALLS),
        (None, FinishReason.TOOL_CALLS),
        ("max_tokens", FinishReason.LENGTH),
        ("refusal", FinishReason.DECLINED),
    ],
)
def test_reasons_of_messages_with_calls(message_of: MessageOf, reason: str | None, finish: FinishReason) -> None:
    """What the message holds counts, unless it was cut or declined."""
    message = message_of({"type": "tool_use", "id": "a", "name": "x", "input": {}}, stop_reason=reason)
    assert read(message).finish_reason is finish


@pytest.mark.parametrize(
    ("details", "content", "text"),
    [
        (None, (), "The model declined, without a reason."),
        ({"category": "cyber", "explanation": None}, (), "The model declined: cyber."),
        ({"category": "bio", "explanation": "Not this."}, (), "Not this."),
        ({"explanation": "Not this."}, ("So far",), "So far\n\nNot this."),
    ],
)
def test_a_refusal_says_why(message_of: MessageOf, details: object, content: tuple[str, ...], text: str) -> None:
    """In the answer's text, whole and streamed alike, so that a person is not left with nothing."""
    assert read(message_of(*content, stop_reason="refusal", stop_details=details)).message.text == text
    pieces = [grown(0, type="text_delta", text=piece) for piece in content]
    shown, response = fed(*pieces, ended("refusal", stop_details=details), STOP)
    assert response.message.text == text == "".join(delta.text for delta in shown)
    assert fed(message_of(*content, stop_reason="refusal", stop_details=details))[0] == [LLMDelta(text)]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_thought_that_was_cut_before_it_was_signed_is_dropped(reason: str) -> None:
    """The API refuses it when it comes back, and the conversation could not go on."""
    block = begun(0, type="thinking", thinking="", signature="")
    _, response = fed(block, grown(0, type="thinking_delta", thinking="hm"), ended(reason), STOP)
    assert not [part for part in response.message.content if isinstance(part, Opaque)]
    signed = grown(0, type="signature_delta", signature="s")
    _, response = fed(block, grown(0, type="thinking_delta", thinking="hm"), signed, ended(reason), STOP)
    assert [part for part in response.message.content if isinstance(part, Opaque)]


def test_a_paused_turn_is_gone_on_with(message_of: MessageOf) -> None:
    """Blocks and usage add up; a call that is ours to make is no pause."""
    reader = AnswerReader({})
    reader.read(
        message_of("one", {"type": "server_tool_use", "id": "s", "name": "w", "input": {}}, stop_reason="pause_turn")
    )
    assert reader.paused
    reader.begin_next()
    assert not reader.paused
    assert [type(part) for part in reader.continuation().content] == [Text, Opaque]
    reader.read(message_of(" two"))
    response = reader.finish()
    assert response.message.text == "one two"
    assert response.usage == Usage(input_tokens=4190, output_tokens=1006, requests=2)
    reader.read(message_of({"type": "tool_use", "id": "a", "name": "x", "input": {}}, stop_reason="pause_turn"))
    assert not reader.paused


# Whole messages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": ""}], ""], ids=repr)
def test_an_empty_answer_is_empty(content: object) -> None:
    """And not an error here: the loop asks once more."""
    response = read({"content": content, "stop_reason": "end_turn"})
    assert response.message.content == ""
    assert response.message.tool_calls == ()


def test_content_may_be_null_or_a_text() -> None:
    """Case 60: as servers of other makers have it."""
    assert read({"content": None, "stop_reason": "end_turn"}).message.content == ""
    assert read({"content": "a", "stop_reason": "end_turn"}).message.content == "a"


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ([], "the answer is a JSON list and no message"),
        (None, "the answer is a JSON NoneType and no message"),
        ({}, "it has no `content`"),
        ({"content": None}, "it has no `content`"),
        ({"choices": []}, "it has no `content`"),
        ({"content": ["a"]}, "the answer's `content` holds a str, expected blocks"),
        ({"content": [{"text": "a"}]}, "a block of the answer has no type: {'text': 'a'}"),
    ],
)
def test_what_is_no_message_is_said_to_be_none(payload: object, text: str) -> None:
    """Never a silent empty answer."""
    with pytest.raises(UnreadableError, match=text):
        AnswerReader({}).read(payload)


@pytest.mark.parametrize(
    "block", [{"type": "tool_use"}, {"type": "tool_use", "name": ""}, {"type": "tool_use", "name": 1}]
)
def test_a_call_without_a_name_is_unreadable(block: dict[str, Any]) -> None:
    """Nobody can tell what it wants."""
    with pytest.raises(UnreadableError, match="a call in the answer has no name"):
        read({"content": [block]})


def test_missing_ids_are_left_to_the_loop() -> None:
    """It gives calls ids that are unique in the conversation."""
    (call,) = read({"content": [{"type": "tool_use", "name": "x", "id": None}]}).message.tool_calls
    assert call.id == ""


def test_names_are_turned_back() -> None:
    """A name that was not offered stays, so that the loop can say what it thinks of it."""
    blocks = [{"type": "tool_use", "id": str(n), "name": name} for n, name in enumerate(["a_b_1", "other"])]
    response = read({"content": blocks}, {"a_b_1": "a.b"})
    assert [call.name for call in response.message.tool_calls] == ["a.b", "other"]


def test_calls_keep_their_place_where_it_matters() -> None:
    """What came after a call comes after it again, and what else a call held comes back with it."""
    content: list[dict[str, Any]] = [
        {"type": "tool_use", "id": "a", "name": "x", "input": {"n": 1}},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "b", "name": "y", "input": {}, "caller": {"type": "direct"}, "toolset_name": None},
        {"type": "tool_use", "id": "c", "name": "z", "input": {}, "caller": {"type": "code", "tool_id": "t"}},
    ]
    message = read({"content": content}).message
    assert [type(part) for part in message.content] == [Opaque, Opaque, Opaque]
    sent = [json.loads(block) for block in assistant_blocks(message, str)]
    assert [(block["type"], block.get("id")) for block in sent] == [
        ("tool_use", "a"),
        ("thinking", None),
        ("tool_use", "c"),
        ("tool_use", "b"),
    ]
    assert sent[2]["caller"] == {"type": "code", "tool_id": "t"}


# The list of models ----------------------------------------------------------------------------------------------


def test_a_page_of_models() -> None:
    """Its names, and where the next page begins."""
    page = {"data": [{"id": "b"}, {"id": 1}, "x"], "has_more": True, "first_id": "b", "last_id": "b"}
    assert read_models(page) == ({"b"}, "b")
    assert read_models({**page, "has_more": False}) == ({"b"}, None)
    assert read_models({"data": [], "has_more": True, "last_id": "b"}) == (set(), None)


@pytest.mark.parametrize("page", [[], {}, {"data": {}}, None], ids=repr)
def test_what_is_no_list_of_models(page: object) -> None:
    """The remedy is to look at the address."""
    with pytest.raises(ProviderResponseError, match="the server's list of models has no `data`; check base_url"):
        read_models(page)


# Laws ------------------------------------------------------------------------------------------------------------

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda v: st.lists(v, max_size=3), max_leaves=5
)
_EVENTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
             "message_stop", "ping", "other"]
        )
    },
    optional={
        "index": _VALUES,
        "usage": _VALUES,
        "message": _VALUES | st.fixed_dictionaries({}, optional={"usage": _VALUES, "model": _VALUES}),
        "content_block": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "thinking", "tool_use", "server_tool_use", "new"]) | _VALUES},
            optional=dict.fromkeys(["text", "name", "id", "input", "citations", "signature"], _VALUES),
        )
        | _VALUES,
        "delta": st.fixed_dictionaries(
            {"type": st.sampled_from(["text_delta", "input_json_delta", "thinking_delta", "signature_delta", "new"])},
            optional={"text": _VALUES, "partial_json": _VALUES, "thinking": _VALUES, "stop_reason": _VALUES},
        )
        | _VALUES,
    },
)  # fmt: skip


@given(st.lists(_EVENTS, max_size=15))
def test_no_stream_breaks_the_reader(events: list[dict[str, Any]]) -> None:
    """Law: any events are read, or said to be unreadable; and what was read can be sent back."""
    reader = AnswerReader({})
    try:
        for event in events:
            reader.feed(event)
        message = reader.finish().message
    except UnreadableError:
        return
    for block in assistant_blocks(message, str):
        assert isinstance(json.loads(block), dict)


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6))
def test_pieces_are_the_whole(pieces: list[str]) -> None:
    """Law: however a text is cut, what is shown and what is kept are the same text."""
    shown, response = fed(*[grown(0, type="text_delta", text=piece) for piece in pieces], ended("end_turn"), STOP)
    assert "".join(delta.text for delta in shown) == response.message.text == "".join(pieces)
