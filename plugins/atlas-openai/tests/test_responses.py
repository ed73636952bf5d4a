"""Responses on a real loopback server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from atlas_core import (
    ChatMessage,
    FinishReason,
    LLMDelta,
    Opaque,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ToolCall,
    Usage,
)
from atlas_core.testing import LoopbackServer, ServerReply, Then

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[..., Awaitable[Any]]

# The vendor's own example of a call, platform.openai.com/docs/api-reference/responses/create, "Functions", March 2025.
VENDOR_CALL = {
    "id": "resp_67ca09c5efe0819096d0511c92b8c890096610f474011cc0",
    "object": "response",
    "created_at": 1741294021,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "gpt-4.1-2025-04-14",
    "output": [
        {
            "type": "function_call",
            "id": "fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0",
            "call_id": "call_unLAR8MvFNptuiZK6K6HCy5k",
            "name": "search",
            "arguments": '{"q":"Boston, MA"}',
            "status": "completed",
        }
    ],
    "usage": {
        "input_tokens": 291,
        "input_tokens_details": {"cached_tokens": 128},
        "output_tokens": 23,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 314,
    },
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j", "status": "completed"}
BARE = {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "hm"}]}


def text_item(text: str, **more: Any) -> dict[str, Any]:
    """Return an item with text."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]} | more


def call_item(name: str, call_id: str, arguments: Any = "{}") -> dict[str, Any]:
    """Return an item with a call."""
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def body(*output: Any, **more: Any) -> dict[str, Any]:
    """Return a whole response."""
    return {"id": "resp_1", "object": "response", "model": "m-1", "status": "completed", "output": list(output)} | more


def events(*output: Any, **more: Any) -> ServerReply:
    """Return the stream of a response, as the vendor's types have its events."""
    sent: list[Any] = [{"type": "response.created", "response": {"status": "in_progress", "output": []}}]
    for n, item in enumerate(output):
        sent.append({"type": "response.output_item.added", "output_index": n, "item": item})
        for part in item.get("content", []) if item["type"] == "message" else []:
            kind = "response.refusal.delta" if "refusal" in part else "response.output_text.delta"
            whole = part.get("refusal") or part.get("text")
            sent += [{"type": kind, "output_index": n, "delta": piece} for piece in (whole[:2], whole[2:], "")]
        if item["type"] == "function_call":
            sent.append({"type": "response.function_call_arguments.delta", "output_index": n, "delta": "{"})
        sent.append({"type": "response.output_item.done", "output_index": n, "item": item})
    last = body(*output, **more)
    return ServerReply.of_events(*sent, {"type": f"response.{last['status']}", "response": last}, done=False)


async def test_the_vendors_own_example(ask: Ask, server: LoopbackServer) -> None:
    """A call, the usage with what was cached and reasoned, the model and the id."""
    response, _ = await ask(ServerReply.of_json(VENDOR_CALL), api="responses")
    assert response.message == ChatMessage.assistant(
        "", [ToolCall("call_unLAR8MvFNptuiZK6K6HCy5k", "search", '{"q":"Boston, MA"}')]
    )
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(
        input_tokens=291, cached_input_tokens=128, output_tokens=23, reasoning_tokens=4, requests=1
    )
    assert (response.model, response.request_id) == ("gpt-4.1-2025-04-14", VENDOR_CALL["id"])
    assert server.requests[0].path == "/v1/responses"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(([text_item("hi")], {}, "hi", [], "stop"), id="text"),
        pytest.param(([], {}, "", [], "stop"), id="nothing"),
        pytest.param(([text_item("x"), call_item("now", "a")], {}, "x", ["now"], "tool_calls"), id="text and a call"),
        pytest.param(([call_item("now", "a", {})], {}, "", ["now"], "tool_calls"), id="arguments are an object"),
        pytest.param(([call_item("now", "a", None)], {}, "", ["now"], "tool_calls"), id="arguments are null"),
        pytest.param(
            ([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}], {}, "No.", [], "declined"),
            id="refused",
        ),
        pytest.param(
            (
                [text_item("so far")],
                {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
                "so far",
                [],
                "length",
            ),
            id="cut by the output limit",
        ),
        pytest.param(
            (
                [],
                {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
                "The provider's content filter stopped this answer.",
                [],
                "declined",
            ),
            id="filtered",
        ),
        pytest.param(
            ([text_item("x")], {"status": "incomplete"}, "x", [], "unknown"), id="incomplete without a reason"
        ),
    ],
)
async def test_what_servers_answer(ask: Ask, streamed: bool, case: Any) -> None:
    """The message, and why it stopped, whole and streamed alike."""
    output, more, text, calls, finish = case
    reply = events(*output, **more) if streamed else ServerReply.of_json(body(*output, **more))
    response, pieces = await ask(reply, streamed=streamed, api="responses")
    assert response.message.text == text
    assert [call.name for call in response.message.tool_calls] == calls
    assert all(call.arguments == {} for call in response.message.tool_calls)
    assert response.finish_reason == finish
    if streamed and "filter" not in text:
        assert "".join(piece.text for piece in pieces) == text


async def test_items_go_back_unchanged_and_in_their_order(ask: Ask, server: LoopbackServer) -> None:
    """Reasoning, phases and calls return to the server as they came, also when the history was written to a file."""
    output = [
        REASONING,
        text_item("I look.", phase="commentary"),
        call_item("now", "a"),
        {**REASONING, "id": "rs_3"},
        call_item("files.read/text", "b"),
        text_item("Soon."),
    ]
    first, _ = await ask(ServerReply.of_json(body(*output)), api="responses", tools=())
    message = ChatMessage.from_dict(first.message.to_dict())
    assert [c.id for c in message.tool_calls] == ["a", "b"]
    assert message.text == "I look.Soon."
    await ask(ServerReply.of_json(body(text_item("x"))), api="responses", messages=[message])
    sent = server.requests[1].json()["input"]
    assert [item.get("type") or item["content"] for item in sent] == [
        "reasoning", "I look.", "function_call", "reasoning", "function_call", "Soon.",
    ]  # fmt: skip
    assert (sent[0], sent[3]) == (REASONING, {**REASONING, "id": "rs_3"})
    assert sent[1] == {"role": "assistant", "content": "I look.", "phase": "commentary"}
    assert (sent[2]["call_id"], sent[4]["call_id"]) == ("a", "b")


@pytest.mark.parametrize(("store", "kinds"), [(False, [None]), (True, ["reasoning", None])])
async def test_reasoning_that_the_server_did_not_keep_stays_here(
    ask: Ask, server: LoopbackServer, store: bool, kinds: list[str | None]
) -> None:
    """An item without content is no more than an id, which a server that stores nothing does not know."""
    first, _ = await ask(ServerReply.of_json(body(BARE, text_item("x"))), api="responses", store=store)
    await ask(ServerReply.of_json(body(text_item("y"))), api="responses", messages=[first.message], store=store)
    assert [item.get("type") for item in server.requests[1].json()["input"]] == kinds
    assert server.requests[1].json()["store"] is store


async def test_histories_of_the_other_protocol_are_understood(ask: Ask, server: LoopbackServer) -> None:
    """What either protocol kept for itself is left out of the other's requests, and the rest is there."""
    message = ChatMessage.assistant(
        [Opaque("openai", '{"type":"chat","message":{"reasoning_details":[1]}}'), *_parts()],
        [ToolCall("a", "now", "{}")],
    )
    await ask(ServerReply.of_json(body(text_item("x"))), api="responses", messages=[message])
    items = server.requests[0].json()["input"]
    assert [item.get("type") or item["content"] for item in items] == ["reasoning", "hi", "function_call"]
    await ask(ServerReply.of_json({"choices": [{"message": {"content": "x"}}]}), messages=[message])
    sent = server.requests[1].json()["messages"][0]
    assert sent.keys() == {"role", "content", "tool_calls", "reasoning_details"}


def _parts() -> list[Any]:
    from atlas_core import Text

    return [Opaque("openai", json.dumps(REASONING)), Text("hi")]


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        ({"error": {"message": "bad schema", "type": "invalid_request_error"}}, ProviderError, "bad schema"),
        (
            body(status="failed", error={"code": "rate_limit_exceeded", "message": "too fast"}),
            ProviderRateLimitError,
            "too fast",
        ),
        (body(status="failed", error=None), ProviderError, "the response is failed"),
        (body(status="in_progress"), ProviderResponseError, "is 'in_progress': leave out background"),
        ({"detail": "Not Found"}, ProviderError, "Not Found"),
        ({"status": "completed"}, ProviderResponseError, "without an output"),
        ([], ProviderResponseError, "a JSON list"),
    ],
)
async def test_a_reply_without_an_answer_is_an_error(ask: Ask, reply: Any, kind: type[Exception], words: str) -> None:
    """The server's own words, or what it did."""
    with pytest.raises(kind, match=words):
        await ask(ServerReply.of_json(reply), api="responses")


async def test_text_is_shown_as_it_comes_and_reasoning_apart(ask: Ask) -> None:
    """Summaries and reasoning text are yielded as reasoning."""
    reply = ServerReply.of_events(
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.reasoning_text.delta", "delta": "so"},
        {"type": "response.output_text.delta", "delta": "hi"},
        {"type": "response.completed", "response": {"output": []}},
        done=False,
    )
    response, pieces = await ask(reply, streamed=True, api="responses")
    assert pieces == [LLMDelta("hm", "reasoning"), LLMDelta("so", "reasoning"), LLMDelta("hi")]
    assert response.message.text == "hi"


@pytest.mark.parametrize("one", [1, "1", 1.0], ids=repr)
async def test_items_count_where_the_last_event_leaves_them_out(ask: Ask, one: object) -> None:
    """Some servers close with an empty output; the items that were done are the answer, in their order."""
    reply = ServerReply.of_events(
        {"type": "response.output_item.done", "output_index": one, "item": call_item("now", "a")},
        {"type": "response.output_item.done", "output_index": 0, "item": text_item("x")},
        {"type": "response.output_item.done", "item": call_item("now", "b")},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 3}}},
    )
    response, _ = await ask(reply, streamed=True, api="responses")
    assert response.message.text == "x"
    assert [call.id for call in response.message.tool_calls] == ["a", "b"]
    assert response.usage.input_tokens == 3


async def test_items_under_one_number_are_all_kept(ask: Ask) -> None:
    """None takes another's place, whatever their ids; one that is sent again to the letter counts once."""
    calls = [call_item("search", "c", text) for text in ('{"q":"A"}', '{"q":"B"}', '{"q":"B"}')]
    for item in calls:
        item.pop("id", None)
    same = {**call_item("now", "n"), "id": "f9"}
    sent = [{"type": "response.output_item.done", "output_index": 0, "item": item} for item in [*calls, same, same]]
    closing = {"type": "response.completed", "response": {"output": []}}
    response, _ = await ask(ServerReply.of_events(*sent, closing), streamed=True, api="responses")
    found = [(call.id, call.name, call.arguments_json) for call in response.message.tool_calls]
    assert found == [
        ("c", "search", '{"q":"A"}'), ("c", "search", '{"q":"B"}'), ("c", "search", '{"q":"B"}'), ("n", "now", "{}")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "broke down"},
        {
            "type": "response.failed",
            "response": body(status="failed", error={"code": "server_error", "message": "broke down"}),
        },
        {"error": {"message": "broke down", "type": "server_error"}},
    ],
    ids=["an error event", "a failed response", "a bare error"],
)
async def test_an_error_in_a_stream_is_an_error(ask: Ask, server: LoopbackServer, event: Any) -> None:
    """It may pass, so it is tried again while nothing was shown; after text it is an error with the text so far."""
    text = {"type": "response.output_text.delta", "delta": "so far"}
    response, _ = await ask(
        ServerReply.of_events(event), events(text_item("hi")), streamed=True, api="responses", max_retries=1
    )
    assert response.message.text == "hi"
    with pytest.raises(ProviderError, match="broke down") as caught:
        await ask(ServerReply.of_events(text, event), streamed=True, api="responses", max_retries=1)
    assert caught.value.partial_text == "so far"
    assert len(server.requests) == 3


@pytest.mark.parametrize("end", [None, Then.CUT], ids=["it ends", "it is cut"])
async def test_an_interrupted_stream_is_an_error(ask: Ask, end: Then | None) -> None:
    """Without a closing event there is no answer, whatever was written."""
    item = {"type": "response.output_item.done", "output_index": 0, "item": call_item("now", "a")}
    with pytest.raises(ProviderResponseError, match="interrupted stream"):
        await ask(ServerReply.of_events(item, *([end] if end else []), done=False), streamed=True, api="responses")


async def test_an_event_that_is_none_is_an_error(ask: Ask) -> None:
    """The error says what came."""
    with pytest.raises(ProviderResponseError, match="a JSON list in place of an event"):
        await ask(ServerReply.of_events("data: []"), streamed=True, api="responses")


async def test_content_that_is_a_text_is_read(ask: Ask) -> None:
    """A server that writes a plain text in place of parts is understood."""
    response, _ = await ask(ServerReply.of_json(body({"type": "message", "content": "hi"})), api="responses")
    assert response.message == ChatMessage.assistant("hi")


async def test_schemas_and_instructions(ask: Ask, server: LoopbackServer) -> None:
    """The system prompt are the instructions, and an answer's schema stands in `text`."""
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    schema["properties"]["b"] = {"type": "integer", "default": 2}
    response, _ = await ask(
        ServerReply.of_json(body(REASONING, text_item('{"a":1,"b":null}'))),
        api="responses",
        defaults={"system": "help", "output_schema": schema},
    )
    assert json.loads(response.message.text) == {"a": 1}
    sent = server.requests[0].json()
    assert sent["instructions"] == "help"
    assert sent["text"]["format"]["type"] == "json_schema"
    assert sent["text"]["format"]["strict"] is True
    assert [tool["strict"] for tool in sent["tools"]] == [False, False, False]
