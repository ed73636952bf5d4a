"""Chat Completions on a real loopback server: what servers answer, well and badly, streamed and not."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from atlas_openai._wire import decode

from atlas_core import (
    ChatMessage,
    FinishReason,
    LLMDefaults,
    LLMDelta,
    Opaque,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderTimeoutError,
    ToolCall,
    Usage,
)
from atlas_core.testing import LoopbackServer, Pause, ServerReply, Then

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[..., Awaitable[Any]]

# The vendor's own example of a call, platform.openai.com/docs/api-reference/chat/create, "Functions", 2025.
VENDOR_CALL = {
    "id": "chatcmpl-abc123",
    "object": "chat.completion",
    "created": 1699896916,
    "model": "gpt-4o-mini",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_abc123",
                        "type": "function",
                        "function": {"name": "search", "arguments": '{\n"q": "Boston, MA"\n}'},
                    }
                ],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 82,
        "completion_tokens": 17,
        "total_tokens": 99,
        "completion_tokens_details": {"reasoning_tokens": 5},
        "prompt_tokens_details": {"cached_tokens": 60},
    },
}


A, B = '{"q":"A"}', '{"q":"B"}'


def whole(message: Any, reason: object = "stop", **more: Any) -> ServerReply:
    """Return a whole reply with a message."""
    return ServerReply.of_json(
        {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": reason}]} | more
    )


def chunk(delta: Any, reason: object = None, **more: Any) -> dict[str, Any]:
    """Return a chunk of a stream."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} | more


def call(name: str, arguments: object, **more: Any) -> dict[str, Any]:
    """Return a call as a message holds it."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | more


async def test_the_vendors_own_example(ask: Ask) -> None:
    """A call, the usage with what was cached and reasoned, the model and the id of the request."""
    response, _ = await ask(ServerReply.of_json(VENDOR_CALL, headers={"x-request-id": "req-7"}))
    assert response.message.tool_calls == (ToolCall("call_abc123", "search", '{\n"q": "Boston, MA"\n}'),)
    assert response.message.content == ""
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(
        input_tokens=82, cached_input_tokens=60, output_tokens=17, reasoning_tokens=5, requests=1
    )
    assert (response.model, response.request_id) == ("gpt-4o-mini", "req-7")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(({"content": "hi"}, "stop", "hi", [], "stop"), id="text"),
        pytest.param(
            ({"role": "assistant", "content": None, "tool_calls": None}, "stop", "", [], "stop"), id="content null"
        ),
        pytest.param(
            ({"role": "assistant", "reasoning_content": ".."}, "stop", "", [], "stop"), id="no content, only reasoning"
        ),
        pytest.param(({"content": "hi"}, None, "hi", [], "unknown"), id="no finish reason"),
        pytest.param(({"content": "hi"}, "eos_token", "hi", [], "unknown"), id="a finish reason nobody knows"),
        pytest.param(
            ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "stop", "ab", [], "stop"),
            id="content is a list",
        ),
        pytest.param(
            (
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                        {"type": "text", "text": "b"},
                    ]
                },
                "stop",
                "b",
                [],
                "stop",
            ),
            id="content is a list with thinking",
        ),
        pytest.param(
            ({"content": "", "tool_calls": []}, "tool_calls", "", [], "stop"), id="calls announced and none there"
        ),
        pytest.param(
            (
                {"content": "x", "tool_calls": [call("now", "{}", id="a")]},
                "stop",
                "x",
                [("a", "now", "{}")],
                "tool_calls",
            ),
            id="calls there and not announced",
        ),
        pytest.param(
            ({"tool_calls": [call("now", "", id="a")]}, "tool_calls", "", [("a", "now", "{}")], "tool_calls"),
            id="arguments are empty",
        ),
        pytest.param(
            ({"tool_calls": [call("now", None, id="a")]}, "tool_calls", "", [("a", "now", "{}")], "tool_calls"),
            id="arguments are null",
        ),
        pytest.param(
            (
                {"tool_calls": [{"id": "a", "function": {"name": "now"}}]},
                "tool_calls",
                "",
                [("a", "now", "{}")],
                "tool_calls",
            ),
            id="arguments are absent",
        ),
        pytest.param(
            (
                {"tool_calls": [call("search", {"q": "A"}, id="a")]},
                "tool_calls",
                "",
                [("a", "search", '{"q":"A"}')],
                "tool_calls",
            ),
            id="arguments are an object",
        ),
        pytest.param(
            (
                {"tool_calls": [call("search", '{"q":', id="a")]},
                "tool_calls",
                "",
                [("a", "search", '{"q":')],
                "tool_calls",
            ),
            id="arguments are no JSON",
        ),
        pytest.param(
            (
                {"tool_calls": [call("search", '{"q":"A"}'), call("search", '{"q":"B"}')]},
                "tool_calls",
                "",
                [("", "search", '{"q":"A"}'), ("", "search", '{"q":"B"}')],
                "tool_calls",
            ),
            id="ids are missing",
        ),
        pytest.param(
            (
                {"tool_calls": [call("now", "{}", id="a", index=0), call("search", '{"q":"B"}', id="b", index=0)]},
                "tool_calls",
                "",
                [("a", "now", "{}"), ("b", "search", '{"q":"B"}')],
                "tool_calls",
            ),
            id="the index is repeated",
        ),
        pytest.param(
            (
                {"function_call": {"name": "now", "arguments": "{}"}},
                "function_call",
                "",
                [("", "now", "{}")],
                "tool_calls",
            ),
            id="the old form of a call",
        ),
        pytest.param(
            ({"content": "I can't.", "refusal": None}, "content_filter", "I can't.", [], "declined"),
            id="filtered with text",
        ),
        pytest.param(
            ({"content": None}, "content_filter", "The provider's content filter stopped this answer.", [], "declined"),
            id="filtered without text",
        ),
        pytest.param(({"content": None, "refusal": "No."}, "stop", "No.", [], "declined"), id="refused"),
        pytest.param(
            ({"content": [{"type": "refusal", "refusal": "No."}]}, "stop", "No.", [], "declined"),
            id="refused in a part",
        ),
        pytest.param(({"content": "so far"}, "length", "so far", [], "length"), id="cut by the output limit"),
        pytest.param(
            (
                {"content": None, "tool_calls": [call("search", '{"q"', id="a")]},
                "length",
                "",
                [("a", "search", '{"q"')],
                "length",
            ),
            id="a call cut by the output limit",
        ),
    ],
)
async def test_what_servers_answer(ask: Ask, streamed: bool, case: Any) -> None:
    """Cases 56 and 60: what is left out, repeated or contradicted is read by what the message holds."""
    message, reason, text, calls, finish = case
    reply = ServerReply.of_events(chunk(message, reason)) if streamed else whole(message, reason)
    if streamed and reason is None:
        reply = ServerReply.of_events(chunk(message), done=True)
    response, pieces = await ask(reply, streamed=streamed)
    assert response.message.text == text
    assert [(c.id, c.name, c.arguments_json) for c in response.message.tool_calls] == calls
    assert response.finish_reason == finish
    assert response.usage == Usage(requests=1)
    if streamed and finish != "declined":
        assert "".join(p.text for p in pieces if p.kind == "text") == text


@pytest.mark.parametrize("message", ["text", 3, [], None], ids=str)
async def test_a_message_that_is_none_is_an_empty_answer(ask: Ask, message: object) -> None:
    """It is read as an assistant's message without text, which the loop asks about once more."""
    response, _ = await ask(whole(message))
    assert response.message == ChatMessage.assistant("")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"choices": []}, "without a choice"),
        ({}, "without a choice"),
        ({"choices": None, "usage": {"prompt_tokens": 3}}, "without a choice"),
        ([], "a JSON list in place of an object"),
        ("text", "a JSON str in place of an object"),
        ({"choices": [{"message": {}, "finish_reason": "error"}]}, "with the reason 'error'"),
        ({"choices": [{"message": {"content": "x"}, "finish_reason": "abort"}]}, "with the reason 'abort'"),
    ],
    ids=["no choices", "an empty object", "only usage", "a list", "a text", "given up", "aborted"],
)
async def test_a_reply_without_an_answer_is_an_error(ask: Ask, body: object, words: str) -> None:
    """A status of 200 alone is no answer; the error says what the server did, and who it is."""
    with pytest.raises(ProviderResponseError, match=r"m at 127\.0\.0\.1:") as caught:
        await ask(ServerReply.of_json(body))
    assert words in str(caught.value)
    assert caught.value.status == 200


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such model", "type": "invalid_request_error", "code": "model_not_found"}},
        {"error": "no such model"},
        {"object": "error", "message": "no such model", "code": 404},
        {"message": "no such model"},
        {"choices": [], "error": {"message": "no such model"}},
        {"detail": "no such model"},
    ],
    ids=["the vendor's form", "a text", "vLLM's old form", "a message alone", "beside choices", "FastAPI's form"],
)
async def test_an_error_with_status_200_is_an_error(ask: Ask, body: object) -> None:
    """The server's own words are in it, and it is not tried again."""
    with pytest.raises(ProviderError, match="no such model") as caught:
        await ask(ServerReply.of_json(body))
    assert not caught.value.retryable


async def test_a_failure_of_the_servers_is_tried_again(ask: Ask, server: LoopbackServer) -> None:
    """503 without Retry-After, 429 with it, an error in a good answer and no choice: then the answer."""
    busy = {"error": {"message": "overloaded", "type": "server_error"}}
    response, _ = await ask(
        ServerReply.of_json(busy, status=503),
        ServerReply.of_json(busy, status=429, headers={"retry-after": "0"}),
        ServerReply.of_json(busy),
        whole({"content": "x"}, choices=[]),
        whole({"content": "hi"}),
        max_retries=4,
    )
    assert response.message.text == "hi"
    assert len(server.requests) == 5
    assert len({request.body for request in server.requests}) == 1


async def test_a_rate_limit_says_how_long(ask: Ask) -> None:
    """After the last attempt the error holds the demanded wait."""
    with pytest.raises(ProviderRateLimitError) as caught:
        await ask(ServerReply.of_json({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "7"}))
    assert caught.value.retry_after_s == 7


async def test_an_error_page_is_an_error(ask: Ask) -> None:
    """Case 64: a page in place of JSON gives a short excerpt without tags."""
    page = b"<html><head><style>x</style></head><body><h1>Blocked</h1>" + b"by the proxy " * 10_000 + b"</body></html>"
    with pytest.raises(ProviderResponseError, match="Blocked") as caught:
        await ask(ServerReply.of_bytes(page, "text/html"))
    assert len(str(caught.value)) < 500
    assert "<h1>" not in str(caught.value)


async def test_a_refused_key_is_not_tried_again(
    ask: Ask, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """401 is the caller's to solve, and the key is not in the error, even where the server repeats it."""
    monkeypatch.setenv("MY_KEY", "key-4711-secret")
    reply = ServerReply.of_json({"error": {"message": "Incorrect API key provided: key-4711-secret"}}, status=401)
    with pytest.raises(ProviderAuthError) as caught:
        await ask(reply, api_key_env="MY_KEY", max_retries=3)
    assert len(server.requests) == 1
    assert server.requests[0].headers["authorization"] == "Bearer key-4711-secret"
    assert "4711" not in f"{caught.value} {caught.value!r}"


# Streams -----------------------------------------------------------------------------------------------------------


async def test_usage_comes_after_the_finish_reason(ask: Ask, server: LoopbackServer) -> None:
    """Case 44: chunks without choices come first and last; the text is whole, and the usage counts."""
    response, pieces = await ask(
        ServerReply.of_events(
            {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            chunk({"role": "assistant", "content": "he"}),
            chunk({"content": "llo"}),
            chunk({}, "stop"),
            {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
            headers={"x-request-id": "req-1"},
        ),
        streamed=True,
    )
    assert [p.text for p in pieces] == ["he", "llo"]
    assert (response.message.text, response.finish_reason) == ("hello", FinishReason.STOP)
    assert response.usage == Usage(input_tokens=10, output_tokens=2, requests=1)
    assert response.request_id == "req-1"
    assert server.requests[0].json()["stream_options"] == {"include_usage": True}


async def test_a_stream_without_a_choice_is_an_error(ask: Ask) -> None:
    """Case 44: it is no success with an empty text."""
    with pytest.raises(ProviderResponseError, match="without a choice"):
        await ask(ServerReply.of_events({"choices": []}, {"choices": [], "usage": {"prompt_tokens": 1}}), streamed=True)


async def test_a_server_may_leave_out_the_end_mark(ask: Ask) -> None:
    """A finish reason is an end, with or without [DONE]."""
    response, _ = await ask(
        ServerReply.of_events(chunk({"content": "hi"}), chunk({}, "stop"), done=False), streamed=True
    )
    assert response.message.text == "hi"


async def test_what_fails_after_a_complete_answer_does_not_matter(ask: Ask, server: LoopbackServer) -> None:
    """The connection is cut after the finish reason: the answer counts, and is asked for once."""
    response, _ = await ask(
        ServerReply.of_events(chunk({"tool_calls": [call("now", "{}", id="a")]}), chunk({}, "stop"), Then.CUT),
        streamed=True,
        max_retries=2,
    )
    assert [c.name for c in response.message.tool_calls] == ["now"]
    assert len(server.requests) == 1


async def test_a_stall_after_a_complete_answer_ends_soon(
    server: LoopbackServer, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that neither ends nor closes the stream does not hold the answer back, and is waited for once."""
    monkeypatch.setattr("atlas_openai.session._USAGE_S", 0.05)
    stalls = ServerReply.of_events(chunk({"content": "hi"}, "stop"), Then.STALL)
    server.then(stalls, stalls)
    llm = connect()
    assert llm.expects_usage
    for _ in range(2):
        session = llm.open(LLMDefaults())
        session.append([ChatMessage.user("hi")])
        response = [piece async for piece in session.stream()][-1]
        assert response.message.text == "hi"
        assert not llm.expects_usage
        monkeypatch.setattr("atlas_openai.session._USAGE_S", 60)
        monkeypatch.setattr("atlas_openai.session._END_S", 0.05)


async def test_a_stall_after_the_usage_does_not_give_up_on_usage(
    ask: Ask, connect: Callable[..., Any], server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usage that came is not waited for, and is expected of the next answer too."""
    monkeypatch.setattr("atlas_openai.session._END_S", 0.05)
    monkeypatch.setattr("atlas_openai.session._USAGE_S", 60)
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    server.then(ServerReply.of_events(chunk({"content": "hi"}, "stop"), usage, Then.STALL))
    llm = connect()
    session = llm.open(LLMDefaults())
    session.append([ChatMessage.user("hi")])
    response = [piece async for piece in session.stream()][-1]
    assert response.usage.input_tokens == 3
    assert llm.expects_usage


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("call_0", "search", A), ("call_0", "search", B)], [("call_0", "search", A), ("call_0", "search", B)]),
        ([("a", "search", '{"q":"A'), ("a", "search", '"}')], [("a", "search", '{"q":"A'), ("a", "search", '"}')]),
        ([(None, "search", ""), (None, "search", B)], [("", "search", "{}"), ("", "search", B)]),
        ([(None, "now", ""), (None, "now", "")], [("", "now", "{}"), ("", "now", "{}")]),
        ([("a", "search", A), ("a", "now", None)], [("a", "search", A), ("a", "now", "{}")]),
    ],
    ids=[
        "one id for two calls", "halves under one id", "the first one is empty", "two without ids and arguments",
        "one id for two tools",
    ],
)  # fmt: skip
async def test_each_call_of_a_whole_reply_stands_alone(
    ask: Ask, calls: list[tuple[str | None, str, str | None]], expected: list[tuple[str, str, str]]
) -> None:
    """Entries are never merged, whatever their ids, in a reply, in a stream's JSON answer or in its one event."""
    entries = [call(name, arguments, **({"id": own} if own else {})) for own, name, arguments in calls]
    reply = whole({"tool_calls": entries}, "tool_calls")
    event = ServerReply.of_events(
        {"choices": [{"index": 0, "message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}
    )
    for sent, streamed in ((reply, False), (reply, True), (event, True)):
        response, _ = await ask(sent, streamed=streamed)
        assert [(c.id, c.name, c.arguments_json) for c in response.message.tool_calls] == expected


async def test_a_whole_message_after_its_pieces_is_not_taken_twice(ask: Ask) -> None:
    """Servers close a stream with the message as a whole."""
    made = call("search", A, id="a", index=0)
    message = {"content": "hi", "tool_calls": [made]}
    last = {"choices": [{"index": 0, "delta": {}, "message": message, "finish_reason": "tool_calls"}]}
    response, _ = await ask(ServerReply.of_events(chunk({"content": "hi", "tool_calls": [made]}), last), streamed=True)
    assert response.message.text == "hi"
    assert response.message.tool_calls == (ToolCall("a", "search", A),)


@pytest.mark.parametrize(
    ("delta", "tools"),
    [
        ({"tool_calls": [call("search", A, id="a", index=0)]}, True),
        ({"content": '```json\n{"tool_calls": [{"name": "search", "arguments": {}}]}\n```'}, False),
    ],
    ids=["a call", "a call written as text"],
)
async def test_a_call_without_a_finish_reason_is_an_interrupted_stream(ask: Ask, delta: Any, *, tools: bool) -> None:
    """Case 50: the mark of the stream's end does not say that the model was done; plain text alone is let through."""
    more = {} if tools else {"tools": ()}
    with pytest.raises(ProviderResponseError, match="without a finish reason: interrupted stream"):
        await ask(ServerReply.of_events(chunk(delta)), streamed=True, **more)
    response, _ = await ask(ServerReply.of_events(chunk({"content": "hi"})), streamed=True, **more)
    assert (response.message.text, response.finish_reason) == ("hi", FinishReason.UNKNOWN)


@pytest.mark.parametrize("kind", ["text/plain", "", "text/event-stream", "application/x-ndjson", "application/json"])
async def test_an_answer_at_once_in_place_of_a_stream_is_an_answer(ask: Ask, kind: str) -> None:
    """Under whatever name it comes."""
    body = json.dumps({"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]})
    response, pieces = await ask(ServerReply.of_bytes(body.encode(), kind), streamed=True)
    assert (response.message.text, [piece.text for piece in pieces]) == ("hi", ["hi"])


async def test_lines_of_json_in_place_of_events_are_an_answer(ask: Ask) -> None:
    """Each line is a chunk."""
    lines = [chunk({"content": "h"}), chunk({"content": "i"}), chunk({}, "stop")]
    body = "\n".join(json.dumps(line) for line in lines) + "\n"
    response, pieces = await ask(ServerReply.of_bytes(body.encode(), "application/x-ndjson"), streamed=True)
    assert (response.message.text, [piece.text for piece in pieces]) == ("hi", ["h", "i"])


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "text/html"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_page_is_asked_again_and_quoted(ask: Ask, server: LoopbackServer, kind: str, *, streamed: bool) -> None:
    """Perhaps it is the one for the time of a repair; the next answer counts."""
    page = ServerReply.of_bytes(b"<!doctype html><h1>Back soon</h1>", kind)
    response, _ = await ask(page, whole({"content": "hi"}), streamed=streamed, max_retries=1)
    assert response.message.text == "hi"
    with pytest.raises(ProviderResponseError, match=r"Back soon.*check that base_url") as caught:
        await ask(page, streamed=streamed)
    assert caught.value.retryable
    assert len(server.requests) == 3


async def test_the_excerpt_of_a_bad_event_is_quoted_from_its_beginning(ask: Ask) -> None:
    """Colons in it do not shorten it."""
    with pytest.raises(ProviderResponseError, match=r"no JSON: oops: at line 3: eof \(connection 'main', plugin"):
        await ask(ServerReply.of_events("data: oops: at line 3: eof"), streamed=True)


async def test_an_interrupted_call_is_asked_for_again_and_not_kept(ask: Ask, server: LoopbackServer) -> None:
    """Case 50: the body ends after the opening brace; no text was shown, so another attempt is made."""
    cut = ServerReply.of_events(chunk({"tool_calls": [call("search", "{", id="a", index=0)]}), done=False)
    good = ServerReply.of_events(
        chunk({"tool_calls": [call("search", '{"q":"A"}', id="b", index=0)]}), chunk({}, "tool_calls")
    )
    response, _ = await ask(cut, good, streamed=True, max_retries=1)
    assert response.message.tool_calls == (ToolCall("b", "search", '{"q":"A"}'),)
    assert len(server.requests) == 2


async def test_an_interrupted_call_names_the_cause(ask: Ask, server: LoopbackServer) -> None:
    """Case 50: when the attempts are used up the error says interrupted, and not output limit."""
    cut = ServerReply.of_events(chunk({"tool_calls": [call("search", "{", id="a", index=0)]}), done=False)
    with pytest.raises(ProviderResponseError, match=r"interrupted stream.*tried 2 times"):
        await ask(cut, cut, streamed=True, max_retries=1)
    assert len(server.requests) == 2


async def test_a_call_cut_before_the_end_mark_is_interrupted(ask: Ask) -> None:
    """[DONE] without a finish reason does not make half of a call a whole one."""
    with pytest.raises(ProviderResponseError, match="interrupted stream"):
        await ask(ServerReply.of_events(chunk({"tool_calls": [call("search", "{", id="a", index=0)]})), streamed=True)


@pytest.mark.parametrize("end", [None, Then.CUT, Then.CLOSE], ids=["it ends", "it is cut", "it is closed"])
async def test_an_interrupted_text_is_not_asked_for_again(ask: Ask, server: LoopbackServer, end: Then | None) -> None:
    """What was shown can't be taken back; the text so far is on the error."""
    steps = [chunk({"content": "so "}), chunk({"content": "far"}), *([end] if end else [])]
    with pytest.raises(ProviderResponseError, match="interrupted stream") as caught:
        await ask(ServerReply.of_events(*steps, done=False), streamed=True, max_retries=3)
    assert caught.value.partial_text == "so far"
    assert len(server.requests) == 1


async def test_a_stall_is_a_time_out(ask: Ask) -> None:
    """A stream that stops in the middle ends by the idle time-out, never in a hang."""
    with pytest.raises(ProviderTimeoutError, match="stalled") as caught:
        await ask(ServerReply.of_events(chunk({"content": "x"}), Then.STALL), streamed=True, idle_timeout_seconds=0.1)
    assert caught.value.partial_text == "x"


@pytest.mark.parametrize(
    "error",
    [
        {"message": "bad tool schema", "type": "invalid_request_error", "code": 400},
        "bad tool schema",
        {"message": "bad tool schema", "type": "invalid_request_error", "code": None},
    ],
    ids=["an object", "a text", "code null"],
)
@pytest.mark.parametrize("shown", [0, 3], ids=["as first chunk", "after text"])
async def test_an_error_in_a_stream_is_an_error(ask: Ask, server: LoopbackServer, error: object, shown: int) -> None:
    """Case 52: the server's message, its type and code; the partial text; nothing is tried again."""
    reply = ServerReply.of_events(*[chunk({"content": "x"})] * shown, {"error": error})
    with pytest.raises(ProviderError, match="bad tool schema") as caught:
        await ask(reply, streamed=True, max_retries=3)
    if isinstance(error, dict):
        assert "invalid_request_error" in str(caught.value)
    assert caught.value.partial_text == "x" * shown
    assert not caught.value.retryable
    assert len(server.requests) == 1


async def test_an_overloaded_stream_is_tried_again_before_text(ask: Ask, server: LoopbackServer) -> None:
    """An error that may pass, given as an event named so, leads to another attempt while nothing was shown."""
    busy = 'event: error\ndata: {"message": "overloaded", "type": "server_error"}'
    response, _ = await ask(
        ServerReply.of_events(busy),
        ServerReply.of_events(chunk({"content": "hi"}, "stop")),
        streamed=True,
        max_retries=1,
    )
    assert response.message.text == "hi"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("data: {broken", "no JSON.*broken"),
        ("data: [1]", "a JSON list in place of a chunk"),
        ("event: error\ndata: {}", "an error that says nothing"),
    ],
)
async def test_an_event_that_is_no_chunk_is_an_error(ask: Ask, event: str, words: str) -> None:
    """The error says what came."""
    with pytest.raises(ProviderError, match=words):
        await ask(ServerReply.of_events(chunk({"content": "x"}), event), streamed=True)


async def test_a_broken_event_is_asked_for_again_before_text(ask: Ask, server: LoopbackServer) -> None:
    """Nothing was shown yet, so another attempt may do better."""
    good = ServerReply.of_events(chunk({"content": "hi"}, "stop"))
    response, _ = await ask(ServerReply.of_events("data: {broken"), good, streamed=True, max_retries=1)
    assert response.message.text == "hi"
    assert len(server.requests) == 2


async def test_comments_line_ends_and_odd_spaces(ask: Ask) -> None:
    """Case 48: heartbeats are no content, CRLF ends lines, and the space after the colon is optional."""
    first, second = (json.dumps(chunk({"content": text})) for text in ("a", "b"))
    response, pieces = await ask(
        ServerReply.of_events(
            ": OPENROUTER PROCESSING",
            ":",
            f"data: {first}",
            ":comment",
            f"data:{second}",
            chunk({}, "stop"),
            newline="\r\n",
        ),
        streamed=True,
    )
    assert [p.text for p in pieces] == ["a", "b"]
    assert response.message.text == "ab"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_characters_cut_anywhere(ask: Ask, size: int) -> None:
    """Cases 46 and 54: the text is the same however the bytes are cut, and a line separator in it ends no line."""
    text = "é漢😀a\u2028b"
    reply = ServerReply.of_events(chunk({"content": text}), chunk({}, "stop")).cut_into(size)
    response, _ = await ask(reply, streamed=True)
    assert response.message.text == text


@pytest.mark.parametrize("data", [" 1 ", '{"a": 1}\n', "[1]", "1"], ids=["spaces", "a line end", "a list", "a number"])
def test_decode_reads_what_json_does(data: str) -> None:
    """The quicker way differs in nothing else."""
    assert decode(data) == json.loads(data)


@pytest.mark.parametrize("data", ["", "{", "1 2", "x", "[" * 100_000])
def test_decode_refuses_what_json_does(data: str) -> None:
    """Text after the value included."""
    with pytest.raises((ValueError, RecursionError)):
        decode(data)


async def test_reasoning_is_shown_as_such(ask: Ask) -> None:
    """Either field of reasoning is yielded apart from the answer, and is not part of the message."""
    response, pieces = await ask(
        ServerReply.of_events(
            chunk({"reasoning_content": "hm", "content": None}),
            chunk({"reasoning": "so"}),
            chunk({"content": "hi"}, "stop"),
        ),
        streamed=True,
    )
    assert pieces == [LLMDelta("hm", "reasoning"), LLMDelta("so", "reasoning"), LLMDelta("hi")]
    assert response.message.content == "hi"


async def test_a_long_line(ask: Ask) -> None:
    """A line of 10 MB is read whole."""
    text = "x" * 10_000_000
    response, _ = await ask(ServerReply.of_events(chunk({"content": text}, "stop")), streamed=True)
    assert response.message.text == text


async def test_other_choices_are_left_out(ask: Ask) -> None:
    """Only the first choice is the answer."""
    others = [{"choices": [{"index": n, "delta": {"content": "no"}}]} for n in (1, "1", 2.0, "x", True)]
    response, _ = await ask(ServerReply.of_events(*others, chunk({"content": "yes"}, "stop")), streamed=True)
    assert response.message.text == "yes"


@pytest.mark.parametrize("first", ["0", 0.0, None])
async def test_the_first_choice_may_be_numbered_in_other_ways(ask: Ask, first: object) -> None:
    """As text, as a float, or not at all."""
    sent = {"choices": [{"index": first, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    response, _ = await ask(ServerReply.of_events(sent), streamed=True)
    assert response.message.text == "yes"


async def test_a_streamed_call_that_comes_once_more_as_a_whole_is_one_call(ask: Ask) -> None:
    """Otherwise a tool that writes would run twice."""
    pieces = [
        call("search", '{"q":', id="a", index=0),
        {"index": 0, "function": {"arguments": '"A"}'}},
        call("search", '{"q":"A"}', id="a", index=0),
    ]
    sent = [chunk({"tool_calls": [piece]}) for piece in pieces]
    response, _ = await ask(ServerReply.of_events(*sent, chunk({}, "tool_calls")), streamed=True)
    assert [(c.id, c.name, c.arguments_json) for c in response.message.tool_calls] == [("a", "search", '{"q":"A"}')]


async def test_a_server_that_does_not_stream(ask: Ask) -> None:
    """A JSON answer to a request for a stream is the answer, shown in one piece."""
    response, pieces = await ask(whole({"content": "hi"}), streamed=True)
    assert response.message.text == "hi"
    assert pieces == [LLMDelta("hi")]


async def test_a_packed_answer(ask: Ask, server: LoopbackServer) -> None:
    """Gzip is asked for and unpacked."""
    body = gzip.compress(json.dumps(VENDOR_CALL).encode())
    response, _ = await ask(ServerReply.of_bytes(body, "application/json", headers={"content-encoding": "gzip"}))
    assert [c.name for c in response.message.tool_calls] == ["search"]
    assert "gzip" in server.requests[0].headers["accept-encoding"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_request_can_be_cancelled(server: LoopbackServer, connect: Any, streamed: bool) -> None:
    """It ends at once, and the next one gets its own answer."""
    server.then(ServerReply.of_events(chunk({"content": "x"}), Then.STALL), whole({"content": "hi"}))
    session = connect().open(LLMDefaults())
    session.append([ChatMessage.user("hi")])

    async def ask() -> None:
        if not streamed:
            await session.complete()
        async for _ in session.stream():
            pass

    task = asyncio.create_task(ask())
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert (await session.complete()).message.text == "hi"


async def test_a_deadline_ends_a_stream(server: LoopbackServer, connect: Any) -> None:
    """The run's deadline holds between two pieces, too."""
    server.then(ServerReply.of_events(chunk({"content": "x"}), between=[Pause(5)]))
    session = connect().open(LLMDefaults())
    session.append([ChatMessage.user("hi")])
    with pytest.raises(ProviderTimeoutError):
        async for _ in session.stream(deadline=time.monotonic() + 0.3):
            pass


# What goes back ----------------------------------------------------------------------------------------------------


async def test_names_come_back_as_they_were(ask: Ask, server: LoopbackServer) -> None:
    """A tool's name is mapped in the offer, in the model's call, and in the history."""
    earlier = ToolCall("c1", "files.read/text", "{}")
    history = [
        ChatMessage.user("hi"),
        ChatMessage.assistant("", [earlier]),
        ChatMessage.tool(earlier, "text"),
    ]

    def answer(request: Any) -> ServerReply:
        sent = [tool["function"]["name"] for tool in request.json()["tools"]]
        return whole({"tool_calls": [call(sent[2], "{}", id="c2")]}, "tool_calls")

    response, _ = await ask(answer, messages=history)
    assert [c.name for c in response.message.tool_calls] == ["files.read/text"]
    body = server.requests[0].json()
    name = body["tools"][2]["function"]["name"]
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == name != "files.read/text"


async def test_reasoning_details_and_signatures_go_back_unchanged(ask: Ask, server: LoopbackServer) -> None:
    """What only the server can read travels in the message and is sent back as it came."""
    details = [{"type": "reasoning.encrypted", "data": "ZW5j"}]
    signed = {"google": {"thought_signature": "c2ln"}}
    first, _ = await ask(
        whole(
            {
                "content": "x",
                "reasoning_details": details,
                "tool_calls": [call("now", "{}", id="a", extra_content=signed)],
            }
        )
    )
    assert isinstance(first.message.content, tuple)
    assert any(isinstance(part, Opaque) and part.provider == "openai" for part in first.message.content)
    restored = ChatMessage.from_dict(first.message.to_dict())
    await ask(
        whole({"content": "y"}),
        messages=[ChatMessage.user("hi"), restored, ChatMessage.tool(restored.tool_calls[0], "t")],
    )
    sent = server.requests[1].json()["messages"][1]
    assert sent["reasoning_details"] == details
    assert sent["tool_calls"][0]["extra_content"] == signed
    assert sent["content"] == "x"


@pytest.mark.parametrize("send", [False, True], ids=["not wanted", "wanted"])
async def test_reasoning_text_goes_back_only_where_wanted(ask: Ask, server: LoopbackServer, send: bool) -> None:
    """Some servers refuse it, others need it: the option `send_reasoning` decides."""
    first, _ = await ask(
        ServerReply.of_events(
            chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m"}), chunk({"content": "x"}, "stop")
        ),
        streamed=True,
        send_reasoning=send,
    )
    await ask(whole({"content": "y"}), messages=[first.message], send_reasoning=send)
    assert server.requests[1].json()["messages"][0].get("reasoning_content") == ("hm" if send else None)


async def test_strict_calls_come_back_without_forced_nulls(ask: Ask) -> None:
    """Case 10: null for an optional parameter means that it was left out."""
    response, _ = await ask(whole({"tool_calls": [call("search", '{"q":"a","lang":null}', id="a")]}), strict_tools=True)
    assert json.loads(response.message.tool_calls[0].arguments_json) == {"q": "a"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_answers_held_to_a_schema(ask: Ask, server: LoopbackServer, streamed: bool) -> None:
    """The schema is sent in its strict form, and the nulls that it forces are taken out of the answer."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "zip": {"type": "string", "default": ""}},
        "required": ["city"],
    }
    text = '{"city":"Bonn","zip":null}'
    reply = ServerReply.of_events(chunk({"content": text}, "stop")) if streamed else whole({"content": text})
    response, _ = await ask(reply, streamed=streamed, defaults={"output_schema": schema, "output_name": "place"})
    sent = server.requests[0].json()["response_format"]
    assert sent["type"] == "json_schema"
    assert (sent["json_schema"]["name"], sent["json_schema"]["strict"]) == ("place", True)
    assert sent["json_schema"]["schema"]["required"] == ["city", "zip"]
    assert json.loads(response.message.text) == {"city": "Bonn"}


async def test_a_schema_without_a_strict_form_is_sent_as_it_is(ask: Ask, server: LoopbackServer) -> None:
    """The server is asked for it all the same; a text that is no object is not touched."""
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    response, _ = await ask(whole({"content": "[1]"}), defaults={"output_schema": schema})
    assert server.requests[0].json()["response_format"]["json_schema"] == {
        "name": "answer", "schema": schema, "strict": False,
    }  # fmt: skip
    assert response.message.text == "[1]"


@pytest.mark.parametrize("text", ["[1]", "no JSON", '{"a": 1}'])
async def test_answers_that_need_no_repair_stay_to_the_letter(ask: Ask, text: str) -> None:
    """Only an object with forced nulls is written anew; what does not fit the schema is for the kernel to refuse."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    response, _ = await ask(whole({"content": text}), defaults={"output_schema": schema})
    assert response.message.text == text
