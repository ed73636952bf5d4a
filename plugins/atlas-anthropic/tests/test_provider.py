"""The provider over a real server on the loopback interface, which answers as servers do, good and bad."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from atlas_anthropic import _session
from atlas_anthropic.options import AnthropicOptions
from atlas_anthropic.provider import AnthropicLLM

from atlas_core import (
    ChatMessage,
    ConnectionConfig,
    FinishReason,
    Image,
    LLMDefaults,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    Opaque,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderTimeoutError,
    ToolCall,
    ToolSchema,
    Usage,
)
from atlas_core.testing import LoopbackProxy, LoopbackServer, Pause, ServerReply, Then

Ask = Callable[..., Any]
Connect = Callable[..., AnthropicLLM]
EventsOf = Callable[[str], list[dict[str, Any]]]
MessageOf = Callable[..., dict[str, Any]]
StreamOf = Callable[..., ServerReply]

HELLO = ChatMessage.user("Hello")
KEY = "sk-ant-secret-0123456789"
START: dict[str, Any] = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}
STOP: dict[str, Any] = {"type": "message_stop"}
BLOCKED = b"<html><body><h1>Blocked</h1></body></html>"


def text_events(*texts: str, reason: str = "end_turn") -> list[dict[str, Any]]:
    """Return the events of an answer of text."""
    pieces = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts
    ]
    return [
        START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *pieces,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}},
        STOP,
    ]


def call_events(arguments: str, *, end: bool = True) -> list[dict[str, Any]]:
    """Return the events of an answer of one call, perhaps without its end."""
    block = {"type": "tool_use", "id": "a", "name": "write", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    events: list[dict[str, Any]] = [
        START,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    ]
    ending: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}
    return [*events, {"type": "content_block_stop", "index": 0}, ending, STOP] if end else events


def streamed(*events: object, **more: Any) -> ServerReply:
    """Return a reply with events, named as the vendor names them, and no `[DONE]`."""
    named = [
        f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}" if isinstance(e, dict) and "type" in e else e
        for e in events
    ]
    return ServerReply.of_events(*named, done=False, **more)


def failing(kind: str, message: str, status: int = 200, **more: Any) -> ServerReply:
    """Return an error as platform.claude.com/docs/en/api/errors shows it, read November 2026."""
    value = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}
    return ServerReply.of_json(value, status=status, **more)


# What is sent ----------------------------------------------------------------------------------------------------


async def test_a_request_goes_where_the_vendors_would(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf
) -> None:
    """Path, headers, key; the answer has text, usage, model and the request's id."""
    server.then(ServerReply.of_json(message_of("Hi!"), headers={"request-id": "req_018EeWyXxfu5pfWkrYcMdjWG"}))
    _, response = await ask(connect(beta=["a-1", "b-2"], headers={"x-team": "t"}), HELLO, stream=False)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert request.headers["anthropic-beta"] == "a-1,b-2"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-team"] == "t"
    assert "authorization" not in request.headers
    assert request.json()["messages"][0]["content"][0]["text"] == "Hello"
    assert "stream" not in request.json()
    assert response.message == ChatMessage.assistant("Hi!")
    assert response.finish_reason is FinishReason.STOP
    assert response.usage == Usage(input_tokens=2095, output_tokens=503, requests=1)
    assert (response.model, response.request_id) == ("claude-test-20261101", "req_018EeWyXxfu5pfWkrYcMdjWG")


@pytest.mark.parametrize(
    ("below", "path"),
    [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/api/v1/", "/api/v1/messages"),
        ("/api", "/api/v1/messages"),
    ],
)
async def test_the_address_may_hold_the_version_or_not(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, *, below: str, path: str
) -> None:
    """Both are written in the wild."""
    server.then(ServerReply.of_json(message_of("Hi")))
    await ask(connect(base_url=server.url + below), HELLO, stream=False)
    assert server.requests[0].path == path


async def test_gateways_get_their_own_headers(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key as a bearer's, and further secrets from their variables."""
    monkeypatch.setenv("GATEWAY", "g-12345678")
    server.then(ServerReply.of_json(message_of("Hi")))
    await ask(connect(auth="bearer", headers={"x-gateway_env": "GATEWAY"}), HELLO, stream=False)
    headers = server.requests[0].headers
    assert (headers["authorization"], headers["x-gateway"]) == (f"Bearer {KEY}", "g-12345678")
    assert "x-api-key" not in headers


async def test_another_server_is_not_sent_the_vendors_key(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the connection says so."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-the-vendors")
    server.then(ServerReply.of_json(message_of("Hi")))
    await ask(connect(api_key_env=None), HELLO, stream=False)
    assert "sk-ant-the-vendors" not in str(server.requests[0].headers)


async def test_a_missing_key_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name, the connection and the key of the settings."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    llm = AnthropicLLM(ConnectionConfig(name="main", model="m", options=AnthropicOptions()))
    with pytest.raises(ProviderAuthError) as caught:
        await llm.start()
    assert str(caught.value) == (
        "the variable 'ANTHROPIC_API_KEY' is not set (connection 'main', plugin 'anthropic', api_key_env); "
        "set ANTHROPIC_API_KEY, or name another variable in api_key_env"
    )
    await llm.stop()


async def test_a_proxy_is_asked_where_one_is_set(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By address, or by the variable that holds one with a login."""
    server.then(ServerReply.of_json(message_of("1")), ServerReply.of_json(message_of("2")))
    with LoopbackProxy() as plain, LoopbackProxy(login="user:word") as locked:
        await ask(connect(proxy=plain.url), HELLO, stream=False)
        monkeypatch.setenv("MY_PROXY", locked.url.replace("://", "://user:word@"))
        await ask(connect(proxy_env="MY_PROXY"), HELLO, stream=False)
    assert len(server.requests) == 2


async def test_each_message_is_encoded_once(server: LoopbackServer, connect: Connect, message_of: MessageOf) -> None:
    """A second request begins with what the first one held."""
    call = ToolCall("toolu_1", "add", '{"a": 1}')
    block = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}
    server.then(ServerReply.of_json(message_of(block, stop_reason="tool_use")), ServerReply.of_json(message_of("2")))
    session = connect(prompt_caching=False).open(LLMDefaults(system="s", tools=(ToolSchema(name="add"),)))
    session.append([HELLO])
    first = await session.complete()
    assert first.message.tool_calls == (call,)
    session.append([first.message, ChatMessage.tool(call, "2")])
    assert (await session.complete()).message.text == "2"
    bodies = [request.body for request in server.requests]
    assert bodies[1].startswith(bodies[0].removesuffix(b"]}"))
    assert [request.connection for request in server.requests] == [1, 1]


async def test_what_can_not_be_sent_names_the_connection(connect: Connect) -> None:
    """As every error of the provider does."""
    session = connect().open(LLMDefaults())
    expected = r"an image of type 'image/tiff' can't be sent \(connection 'main', plugin 'anthropic'\)"
    with pytest.raises(ProviderError, match=expected):
        session.append([ChatMessage.user([Image(b"x", media_type="image/tiff")])])


async def test_one_request_without_a_session(server: LoopbackServer, connect: Connect, message_of: MessageOf) -> None:
    """Whole and streamed, as every provider can be asked."""
    server.then(ServerReply.of_json(message_of("Hi")), streamed(*text_events("Hi")))
    request = LLMRequest(messages=[HELLO], system="s", tools=(ToolSchema(name="t"),), max_output_tokens=7)
    llm = connect()
    assert (await llm.complete(request)).message.text == "Hi"
    pieces = [piece async for piece in llm.stream(request)]
    assert [type(piece) for piece in pieces] == [LLMDelta, LLMResponse]
    assert [request.json()["max_tokens"] for request in server.requests] == [7, 7]


async def test_a_long_answer_is_asked_for_as_a_stream(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Also where nobody watches, since it may take longer than a silent connection lives; unless streams are off."""
    server.then(streamed(*text_events("a", "b")), ServerReply.of_json({"content": "c", "stop_reason": "end_turn"}))
    _, response = await ask(connect(), HELLO, stream=False, max_output_tokens=30_000)
    assert response.message.text == "ab"
    _, response = await ask(connect(stream=False), HELLO, stream=False, max_output_tokens=30_000)
    assert response.message.text == "c"
    assert [request.json().get("stream") for request in server.requests] == [True, None]


async def test_names_are_mapped_both_ways(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf
) -> None:
    """What the model calls by the name on the wire is the tool's own."""

    def answer(request: Any) -> ServerReply:
        (tool,) = request.json()["tools"]
        return ServerReply.of_json(message_of({"type": "tool_use", "id": "a", "name": tool["name"], "input": {}}))

    server.then(answer)
    _, response = await ask(connect(), HELLO, stream=False, tools=(ToolSchema(name="files.read:all"),))
    assert response.message.tool_calls[0].name == "files.read:all"


# Good streams ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7], ids=["at once", "byte by byte", "in pieces of seven"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", ["tool_use", "thinking", "web_search"])
async def test_a_stream_is_the_same_however_it_comes(
    server: LoopbackServer, connect: Connect, ask: Ask, stream_of: StreamOf, *, name: str, newline: str, size: int
) -> None:
    """Cases 48 and 54: comments, line ends and pieces that cut letters change nothing."""
    server.then(stream_of(name), stream_of(name, newline=newline, size=size))
    llm = connect()
    assert await ask(llm, HELLO) == await ask(llm, HELLO)
    _, response = await ask_again(server, llm, ask, stream_of(name))
    assert response.request_id == "req_1"
    assert "\ufffd" not in str(response.message)
    assert server.requests[0].json()["stream"] is True


async def ask_again(server: LoopbackServer, llm: AnthropicLLM, ask: Ask, reply: ServerReply) -> Any:
    """Ask for one more reply."""
    server.then(reply)
    return await ask(llm, HELLO)


async def test_letters_that_are_cut_apart_stay_whole(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Case 54: at every byte. Case 46: a line separator inside of a text ends no line."""
    text = "é世😀\u2028b"
    server.then(streamed(*text_events(text)).cut_into(1))
    shown, response = await ask(connect(), HELLO)
    assert response.message.text == text == "".join(delta.text for delta in shown)


async def test_the_connection_is_kept_after_a_stream(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Its end is read too."""
    server.then(*[streamed(*text_events("a")) for _ in range(3)])
    llm = connect()
    for _ in range(3):
        await ask(llm, HELLO)
    assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_a_server_that_does_not_hang_up_is_left(
    server: LoopbackServer, connect: Connect, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is complete with message_stop, whatever the server does then."""
    monkeypatch.setattr(_session, "_DRAIN_S", 0.05)
    server.then(streamed(*text_events("a"), Then.STALL), streamed(*text_events("b"), Then.CUT))
    llm = connect()
    assert (await ask(llm, HELLO))[1].message.text == "a"
    assert (await ask(llm, HELLO))[1].message.text == "b"


@pytest.mark.parametrize("size", [0, 5])
async def test_a_compressed_stream_is_read(server: LoopbackServer, connect: Connect, ask: Ask, size: int) -> None:
    """As a compressed answer is."""
    whole = b"".join(step for step in streamed(*text_events("a", "b")).steps if isinstance(step, bytes))
    packed = gzip.compress(whole)
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    reply = ServerReply(headers=headers, steps=(packed,), chunked=True)
    server.then(reply.cut_into(size) if size else reply)
    assert (await ask(connect(), HELLO))[1].message.text == "ab"


async def test_a_whole_message_in_place_of_a_stream(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf
) -> None:
    """From a server that can't stream: the answer, shown at once."""
    server.then(ServerReply.of_json(message_of("Hi")))
    shown, response = await ask(connect(), HELLO)
    assert shown == [LLMDelta("Hi")]
    assert response.message.text == "Hi"


async def test_the_other_dialects_end_is_passed_over(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Servers that speak both send it here too."""
    events = text_events("a")
    server.then(streamed(*events[:-1], "data: [DONE]", events[-1], "data: [DONE]"))
    assert (await ask(connect(), HELLO))[1].message.text == "a"


async def test_a_very_long_line_is_read(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Ten megabytes in one event; a limit there is, and it is the transport's."""
    text = "x" * 10_000_000
    server.then(streamed(*text_events(text)))
    assert (await ask(connect(), HELLO))[1].message.text == text


async def test_thoughts_go_back_as_they_came(
    server: LoopbackServer, connect: Connect, stream_of: StreamOf, events_of: EventsOf
) -> None:
    """Over a real request: signed, in their place, unchanged."""
    server.then(stream_of("thinking"), streamed(*text_events("ok")))
    session = connect(thinking="adaptive").open(LLMDefaults())
    session.append([HELLO])
    first = [piece async for piece in session.stream()][-1]
    assert isinstance(first, LLMResponse)
    session.append([first.message, ChatMessage.user("and?")])
    async for _ in session.stream():
        pass
    thinking, redacted, text = server.requests[1].json()["messages"][1]["content"]
    assert thinking["signature"] == "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"
    assert redacted == events_of("thinking")[6]["content_block"]
    assert text == {"type": "text", "text": "The greatest common divisor is **21**."}


# Turns that the server pauses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_paused_turn_is_gone_on_with(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, *, stream: bool
) -> None:
    """What came is sent back, and the answer is all of it, with the usage of both requests."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    if stream:
        paused = text_events("one", reason="pause_turn")
        begun = {"type": "content_block_start", "index": 1, "content_block": use}
        server.then(streamed(*paused[:-2], begun, *paused[-2:]), streamed(*text_events(" two")))
    else:
        server.then(
            ServerReply.of_json(message_of("one", use, stop_reason="pause_turn")),
            ServerReply.of_json(message_of(" two")),
        )
    tool = {"type": "web_search_20260209", "name": "web_search"}
    shown, response = await ask(connect(server_tools=[tool]), HELLO, stream=stream)
    assert response.message.text == "one two"
    assert response.usage.requests == 2
    assert response.finish_reason is FinishReason.STOP
    assert [delta.text for delta in shown] == (["one", " two"] if stream else [])
    assert server.requests[1].json()["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "one"}, use],
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_turn_that_is_paused_forever_ends(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, *, stream: bool
) -> None:
    """After as many requests as are allowed, with what to do."""
    whole = ServerReply.of_json(message_of("one", stop_reason="pause_turn"))
    pauses = [streamed(*text_events("one", reason="pause_turn")) if stream else whole for _ in range(20)]
    server.then(*pauses)
    expected = r"paused its answer 11 times.*\(connection 'main', plugin 'anthropic'\); ask for less at once"
    with pytest.raises(ProviderError, match=expected):
        await ask(connect(), HELLO, stream=stream)
    assert len(server.requests) == _session.MAX_PAUSES + 1


# Failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("reply", "error", "texts", "retryable"),
    [
        (failing("authentication_error", "bad key", 401), ProviderAuthError, ["401", "bad key"], False),
        (failing("permission_error", "no access", 403), ProviderAuthError, ["403", "no access"], False),
        (failing("invalid_request_error", "max_tokens: too big", 400), ProviderError, ["max_tokens: too big"], False),
        (failing("not_found_error", "model: claude-x", 404), ProviderError, ["404", "model: claude-x"], False),
        (failing("request_too_large", "too large", 413), ProviderError, ["413", "too large"], False),
        (failing("rate_limit_error", "slow down", 429), ProviderRateLimitError, ["429", "slow down"], True),
        (failing("api_error", "Internal", 500), ProviderError, ["500", "Internal"], True),
        (failing("overloaded_error", "Overloaded", 529), ProviderError, ["529", "Overloaded"], True),
        (failing("overloaded_error", "Overloaded"), ProviderError, ["overloaded_error", "Overloaded"], True),
        (failing("invalid_request_error", "bad schema"), ProviderError, ["bad schema"], False),
        (ServerReply.of_json({"error": "plain text"}), ProviderError, ["plain text"], False),
        (ServerReply.of_bytes(BLOCKED, "text/html"), ProviderResponseError, ["text/html", "Blocked"], True),
        (ServerReply.of_bytes(BLOCKED * 5_000, "text/html", status=502), ProviderError, ["502"], True),
        (ServerReply.of_bytes(b"", "application/json"), ProviderResponseError, ["200"], False),
        (ServerReply.of_json([1]), ProviderResponseError, ["the answer is a JSON list"], False),
        (ServerReply.of_json({"choices": []}), ProviderResponseError, ["no `content`"], False),
    ],
    ids=[
        "401", "403", "400", "404", "413", "429", "500", "529",
        "overloaded with status 200", "an error with status 200", "a plain error with status 200",
        "a page with status 200", "a page with status 502", "an empty body", "a list", "another dialect",
    ],
)  # fmt: skip
async def test_answers_that_are_none_are_typed_errors(
    server: LoopbackServer,
    connect: Connect,
    ask: Ask,
    *,
    reply: ServerReply,
    error: type[ProviderError],
    texts: list[str],
    retryable: bool,
    stream: bool,
) -> None:
    """Case 64: they say what the server did, whose connection it is, and no more than a little of it; no key."""
    server.then(reply)
    with pytest.raises(error) as caught:
        await ask(connect(), HELLO, stream=stream)
    text = str(caught.value)
    assert all(part in text for part in texts), text
    assert "connection 'main'" in text
    assert caught.value.retryable is retryable
    assert len(text) < 1000
    assert KEY not in text + repr(caught.value.__dict__)


async def test_the_requests_id_is_in_the_error(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """It is what the vendor's support asks for."""
    server.then(failing("api_error", "Internal", 500, headers={"request-id": "req_77"}))
    with pytest.raises(ProviderError) as caught:
        await ask(connect(), HELLO, stream=False)
    assert caught.value.request_id == "req_77"
    assert "req_77" in str(caught.value)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "first",
    [
        failing("rate_limit_error", "slow down", 429, headers={"retry-after": "0"}),
        failing("rate_limit_error", "slow down", 429),
        failing("overloaded_error", "Overloaded", 529),
        failing("overloaded_error", "Overloaded"),
        ServerReply.of_bytes(b"busy", "text/plain", status=503, headers={"retry-after": "0"}),
    ],
    ids=["429 with a wait", "429", "529", "overloaded with status 200", "503 with a wait"],
)
async def test_a_busy_server_is_asked_again(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, first: ServerReply, *, stream: bool
) -> None:
    """As often as the connection allows."""
    server.then(first, streamed(*text_events("Hi")) if stream else ServerReply.of_json(message_of("Hi")))
    _, response = await ask(connect(max_retries=1), HELLO, stream=stream)
    assert response.message.text == "Hi"
    assert len(server.requests) == 2


async def test_a_wait_that_is_too_long_ends_the_request(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Case 62: at once, with the wait that was demanded."""
    server.then(failing("rate_limit_error", "slow down", 429, headers={"retry-after": "86400"}))
    began = time.monotonic()
    with pytest.raises(ProviderRateLimitError, match="86,400 s") as caught:
        await ask(connect(max_retries=3), HELLO, stream=False, deadline=began + 30)
    assert time.monotonic() - began < 10
    assert caught.value.retry_after_s == 86400


ERROR_EVENT = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


async def test_an_error_that_comes_as_an_event_is_tried_again_before_anything_was_shown(
    server: LoopbackServer, connect: Connect, ask: Ask
) -> None:
    """Case 52: what came before it is dropped; a call that was begun is not executed twice."""
    server.then(
        streamed(ERROR_EVENT),
        streamed(*call_events('{"a": 1}', end=False), ERROR_EVENT),
        streamed(*call_events('{"b": 2}')),
    )
    _, response = await ask(connect(max_retries=2), HELLO)
    assert [call.arguments_json for call in response.message.tool_calls] == ['{"b": 2}']
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("event", "text", "retryable"),
    [
        (ERROR_EVENT, "Overloaded", True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "bad tool"}}, "bad tool", False),
        ({"type": "error", "error": "plain"}, "plain", False),
        ({"error": {"message": "no type", "code": None}}, "no type", False),
        ({"type": "error"}, "error", False),
    ],
    ids=["overloaded", "a bad request", "a text", "no type", "nothing"],
)
async def test_an_error_after_something_was_shown_ends_the_answer(
    server: LoopbackServer, connect: Connect, ask: Ask, event: dict[str, Any], text: str, *, retryable: bool
) -> None:
    """Case 52: with the server's own words and the text so far, and nothing is asked again."""
    server.then(streamed(*text_events("a", "b", "c")[:5], event))
    shown: list[object] = []
    session = connect(max_retries=3).open(LLMDefaults())
    session.append([HELLO])

    async def show() -> None:
        async for piece in session.stream():
            shown.append(piece)  # noqa: PERF401  # kept when the stream fails

    with pytest.raises(ProviderError) as caught:
        await show()
    assert shown == [LLMDelta("a"), LLMDelta("b"), LLMDelta("c")]
    assert caught.value.partial_text == "abc"
    assert text in str(caught.value)
    assert caught.value.retryable is retryable
    assert len(server.requests) == 1


BROKEN: dict[str, tuple[object, ...]] = {
    "the stream ends before message_stop": (),
    "the connection is cut": (Then.CUT,),
    "the server hangs up": (Then.CLOSE,),
    "the stream ends inside of an event": (b'event: content_block_delta\ndata: {"type": "con',),
    "the stream ends inside of a letter": (b"data: \xe4\xb8",),
}


@pytest.mark.parametrize("ending", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("events", [text_events("a")[:3], call_events("{", end=False)], ids=["text", "a call"])
async def test_a_stream_that_breaks_off_is_an_interrupted_stream(
    server: LoopbackServer, connect: Connect, ask: Ask, events: list[Any], ending: tuple[object, ...]
) -> None:
    """Case 50: never an answer, never an output limit, and no half call."""
    server.then(streamed(*events, *ending))
    with pytest.raises(ProviderResponseError, match="interrupted stream") as caught:
        await ask(connect(), HELLO)
    assert caught.value.retryable
    assert "connection 'main'" in str(caught.value)


@pytest.mark.parametrize("ending", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_breaks_off_before_anything_was_shown_is_tried_again(
    server: LoopbackServer, connect: Connect, ask: Ask, ending: tuple[object, ...]
) -> None:
    """Case 50: at most as often as the connection allows; then the error says why."""
    broken = streamed(*call_events("{", end=False), *ending)
    server.then(broken, streamed(*call_events('{"b": 2}')))
    _, response = await ask(connect(max_retries=1), HELLO)
    assert [call.arguments_json for call in response.message.tool_calls] == ['{"b": 2}']
    server.then(broken, broken)
    with pytest.raises(ProviderResponseError, match=r"interrupted stream.*tried 2 times"):
        await ask(connect(max_retries=1), HELLO)
    assert len(server.requests) == 4


async def test_a_stream_of_nothing_is_an_interrupted_stream(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Not an empty answer."""
    server.then(streamed(), streamed({"type": "ping"}))
    for _ in range(2):
        with pytest.raises(ProviderResponseError, match="interrupted stream"):
            await ask(connect(), HELLO)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("data: {broken", "an event is not JSON: '{broken'"),
        ("data: [1]", "an event is a list, expected an object"),
        ({"type": "content_block_delta", "index": 0}, "an event content_block_delta has no `delta`"),
    ],
    ids=["no JSON", "a list", "no delta"],
)
async def test_events_that_can_not_be_read_are_said_to_be(
    server: LoopbackServer, connect: Connect, ask: Ask, event: object, text: str
) -> None:
    """And not tried again: the server would do the same."""
    server.then(streamed(START, event, headers={"request-id": "req_5"}))
    with pytest.raises(ProviderResponseError) as caught:
        await ask(connect(max_retries=3), HELLO)
    assert text in str(caught.value)
    assert "[request req_5]" in str(caught.value)
    assert (caught.value.request_id, caught.value.status, caught.value.retryable) == ("req_5", 200, False)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_without_a_name_is_said_to_be(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, *, stream: bool
) -> None:
    """Whole and streamed alike."""
    block = {"type": "tool_use", "id": "a", "input": {}}
    events = [START, {"type": "content_block_start", "index": 0, "content_block": block}, STOP]
    server.then(streamed(*events) if stream else ServerReply.of_json(message_of(block)))
    with pytest.raises(ProviderResponseError, match=r"claude-test .*: a call in the answer has no name"):
        await ask(connect(), HELLO, stream=stream)


async def test_a_stream_that_stalls_ends(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """After the time that may pass between two pieces."""
    server.then(streamed(*text_events("a")[:3], Then.STALL))
    with pytest.raises(ProviderTimeoutError):
        await ask(connect(idle_timeout_seconds=0.2), HELLO)


async def test_pings_count_as_signs_of_life(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Case 48: the model may think for longer than the silence that is allowed."""
    events = text_events("a")
    waiting = [step for _ in range(6) for step in (Pause(0.1), {"type": "ping"}, ": comment")]
    server.then(streamed(*events[:2], *waiting, *events[2:]))
    assert (await ask(connect(idle_timeout_seconds=0.4), HELLO))[1].message.text == "a"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_deadline_ends_the_request(server: LoopbackServer, connect: Connect, ask: Ask, *, stream: bool) -> None:
    """Whatever the time-outs allow."""
    server.then(ServerReply(headers=(("content-type", "text/event-stream"),), steps=(Then.STALL,), chunked=True))
    with pytest.raises(ProviderTimeoutError):
        await ask(connect(), HELLO, stream=stream, deadline=time.monotonic() + 0.2)


async def test_a_server_that_is_not_there(connect: Connect, ask: Ask) -> None:
    """The error names the address and what to look at."""
    with LoopbackServer() as gone:
        address = gone.url
    with pytest.raises(ProviderError, match=r"no connection to http://127\.0\.0\.1.*base_url"):
        await ask(connect(base_url=address), HELLO, stream=False)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_cancelled_request_leaves_the_server(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf, *, stream: bool
) -> None:
    """At once, and the model can be asked again."""
    stalled = ServerReply(headers=(("content-type", "text/event-stream"),), steps=(Then.STALL,), chunked=True)
    server.then(stalled, streamed(*text_events("Hi")) if stream else ServerReply.of_json(message_of("Hi")))
    llm = connect()
    task = asyncio.create_task(ask(llm, HELLO, stream=stream))
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(llm, HELLO, stream=stream))[1].message.text == "Hi"


async def test_runs_at_once_share_nothing(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Each gets the answer to its own question."""

    def answer(request: Any) -> ServerReply:
        return streamed(*text_events(request.json()["messages"][0]["content"][0]["text"]))

    server.then(*[answer] * 20)
    llm = connect()
    found = await asyncio.gather(*[ask(llm, ChatMessage.user(str(n))) for n in range(20)])
    assert [response.message.text for _, response in found] == [str(n) for n in range(20)]


# Structured output -----------------------------------------------------------------------------------------------


async def test_a_schema_is_the_servers_business_where_it_can(
    server: LoopbackServer, connect: Connect, ask: Ask, message_of: MessageOf
) -> None:
    """The capability says so, and the answer's text is the JSON."""
    llm = connect()
    assert llm.capabilities.schema_output
    assert not connect(schema_output=False).capabilities.schema_output
    server.then(ServerReply.of_json(message_of('{"n":1}')))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    _, response = await ask(llm, HELLO, stream=False, output_schema=schema, output_name="N")
    assert response.message.text == '{"n":1}'
    assert server.requests[0].json()["output_config"]["format"]["type"] == "json_schema"


# Looking at a connection -----------------------------------------------------------------------------------------


def page(*names: str, more: bool = False) -> ServerReply:
    """Return a page of the list of models, in the form of platform.claude.com/docs/en/api/models-list."""
    data = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-09-01T00:00:00Z"} for name in names]
    return ServerReply.of_json({"data": data, "has_more": more, "first_id": names[0], "last_id": names[-1]})


async def test_models_are_listed_over_all_pages(server: LoopbackServer, connect: Connect) -> None:
    """Sorted, each once."""
    server.then(page("c", "a", more=True), page("b", "a"))
    assert await connect().list_models() == ["a", "b", "c"]
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/models"]
    assert server.requests[1].query["after_id"] == ["a"]


async def test_a_list_without_an_end_ends(server: LoopbackServer, connect: Connect) -> None:
    """A server that always has more is not asked forever."""
    with LoopbackServer(always=page("a", more=True)) as endless:
        assert await connect(base_url=endless.url).list_models() == ["a"]
        assert len(endless.requests) == 50


def whole(text: str, **more: Any) -> ServerReply:
    """Return a message that comes at once."""
    content = [{"type": "text", "text": text}]
    return ServerReply.of_json({"type": "message", "content": content, "stop_reason": "end_turn", "model": "m"} | more)


CALLED = whole("", content=[{"type": "tool_use", "id": "t1", "name": "unused_probe", "input": {}}])


async def test_a_look_at_a_connection_that_works(server: LoopbackServer, connect: Connect) -> None:
    """It answers, lists models, takes tools and streams, also if the model calls the tool that it is shown."""
    server.then(page("claude-test"), whole("ready"), CALLED, streamed(*text_events("ready")))
    report = await connect().check()
    assert (report.answers, report.tools, report.streaming) == (True, True, True)
    assert report.models == ("claude-test",)
    assert report.detail == "'claude-test' answers"
    _, plain, tooled, as_stream = [request.json() if request.body else {} for request in server.requests]
    assert (plain["max_tokens"], "tools" in plain, len(tooled["tools"])) == (64, False, 1)
    assert (as_stream["stream"], "tools" in as_stream) == (True, False)


async def test_a_look_at_one_that_can_less(server: LoopbackServer, connect: Connect) -> None:
    """What was refused is said, and an answer that comes at once is no stream."""
    server.then(
        failing("not_found_error", "no list here", 404),
        whole("ready"),
        failing("invalid_request_error", "tools are not supported", 400),
        whole("ready"),
    )
    report = await connect(thinking=2000).check()
    assert (report.answers, report.tools, report.streaming, report.models) == (True, False, False, ())
    assert "tools are not supported" in report.detail
    assert "no list here" in report.detail
    assert server.requests[1].json()["max_tokens"] == 18_000


async def test_a_look_at_one_that_refuses_to_stream(server: LoopbackServer, connect: Connect) -> None:
    """The rest of the report stands."""
    server.then(page("a"), whole("ready"), CALLED, failing("invalid_request_error", "no streams", 400))
    report = await connect().check()
    assert (report.answers, report.tools, report.streaming) == (True, True, False)
    assert "not as a stream" in report.detail
    assert "no streams" in report.detail


async def test_a_look_without_streams(server: LoopbackServer, connect: Connect) -> None:
    """What is switched off is not tried."""
    server.then(page("a"), whole("ready"), CALLED)
    report = await connect(stream=False).check()
    assert (report.answers, report.tools, report.streaming) == (True, True, None)
    server.then(page("a"), whole("ready"), streamed(*text_events("ready")))
    report = await connect(native_tools=False).check()
    assert (report.answers, report.tools, report.streaming) == (True, None, True)


async def test_a_look_tells_what_is_wrong_with_the_settings(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that can't be sent is in the report, without the key."""
    monkeypatch.setenv("ODD_KEY", "sk-ant-TESTSECRET\nmore")
    report = await connect(api_key_env="ODD_KEY").check()
    assert not report.answers
    assert "line break in the key" in report.detail
    assert "TESTSECRET" not in report.detail
    assert server.requests == []


async def test_a_look_at_one_that_does_not_work(server: LoopbackServer, connect: Connect) -> None:
    """The detail is the server's own."""
    refused = failing("authentication_error", "invalid x-api-key", 401)
    server.then(refused, refused, refused)
    report = await connect().check()
    assert not report.answers
    assert "invalid x-api-key" in report.detail
    assert KEY not in report.detail


# Life ------------------------------------------------------------------------------------------------------------


async def test_stopping_twice_is_fine(server: LoopbackServer, connect: Connect, ask: Ask) -> None:
    """Also before a start."""
    llm = connect()
    await llm.stop()
    await llm.stop()
    server.then(streamed(*text_events("a")))
    other = connect()
    await ask(other, HELLO)
    await other.stop()
    await other.stop()


def test_opaque_parts_name_the_provider() -> None:
    """The same name as the provider's, so that a conversation knows its own."""
    from atlas_anthropic._blocks import PROVIDER
    from atlas_anthropic.plugin import atlas_llm_providers

    (spec,) = atlas_llm_providers()
    assert spec.name == PROVIDER == Opaque(PROVIDER, "{}").provider
