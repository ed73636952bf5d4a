import asyncio
import gzip
import json
import time

import pytest

from atlas_core.errors import (
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderTimeoutError,
    ServiceNotReadyError,
)
from atlas_core.http import HttpClient, RetryPolicy, ServerEvent, Timeouts
from atlas_core.testing import LoopbackServer, Pause, ServerReply, Then

QUICK = RetryPolicy(first_wait_s=0.01)
ONCE = RetryPolicy(max_attempts=1)


async def read(url: str, into: list[str] | None = None, **options: object) -> list[str]:
    """Return the data of all events; `into` keeps those that came before an error."""
    call = {name: options.pop(name) for name in ("deadline", "may_restart") if name in options}
    found = into if into is not None else []
    client = HttpClient(url, **{"retry": QUICK, **options})  # type: ignore[arg-type]
    async with client, client.stream_sse("chat", b"{}", **call) as events:  # type: ignore[arg-type]
        async for event in events:
            found.append(event.data)  # keeps what came before an error
    return found


async def test_events_come_as_they_are_sent(server: LoopbackServer) -> None:
    """An event is handed over before the next one is sent, with its type, id and the answer's facts."""
    server.then(
        ServerReply.of_events(
            "event: a\nid: 1\ndata: first", Pause(0.4), {"n": 2}, done=False, headers={"x-request-id": "r"}
        )
    )
    async with HttpClient(server.url) as client, client.stream_sse("chat", [b"{", b"}"]) as events:
        assert (events.status, events.request_id, events.headers["x-request-id"]) == (200, "r", "r")
        assert not events.streamed
        began = time.monotonic()
        assert await anext(events) == ServerEvent("a", "first", "1")
        assert events.streamed
        assert time.monotonic() - began < 0.4
        assert [event async for event in events] == [ServerEvent("message", '{"n": 2}', "1")]
        assert [event async for event in events] == []
    (request,) = server.requests
    assert (request.headers["accept"], request.body) == ("text/event-stream", b"{}")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
async def test_pieces_of_any_size_give_the_same_events(server: LoopbackServer, size: int) -> None:
    """Reads split characters and lines anywhere, also in a packed stream (cases 46, 54)."""
    reply = ServerReply.of_events({"t": "é\u2028漢🙂"}, ": heartbeat", {"t": "b"}, newline="\r\n")
    packed = gzip.compress(b"".join(step for step in reply.steps if isinstance(step, bytes)))
    kind = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    server.then(reply.cut_into(size), ServerReply.of_bytes(packed, headers=kind).cut_into(size))
    expected = ['{"t": "é\u2028漢🙂"}', '{"t": "b"}', "[DONE]"]
    assert await read(server.url) == expected
    assert await read(server.url) == expected


async def test_a_line_of_ten_megabytes_is_one_event(server: LoopbackServer) -> None:
    """Long lines pass; one longer than allowed is an error that says so."""
    reply = ServerReply.of_events("data: " + "x" * 10_000_000)
    server.then(reply, reply)
    assert [len(data) for data in await read(server.url)] == [10_000_000, 6]
    with pytest.raises(ProviderResponseError, match="an event of more than 1,000,000 bytes"):
        await read(server.url, max_response_bytes=1_000_000)


async def test_heartbeats_are_activity_and_no_content(server: LoopbackServer) -> None:
    """A stream of comments does not time out, and nothing of it is handed over (case 48)."""
    server.then(ServerReply.of_events(*[": working"] * 8, {"a": 1}, between=(Pause(0.1),)))
    assert await read(server.url, timeouts=Timeouts(idle_s=0.4)) == ['{"a": 1}', "[DONE]"]


async def test_a_stream_without_done_just_ends(server: LoopbackServer) -> None:
    """The end of the body ends the iteration; what is missing is for the reader to judge."""
    server.then(ServerReply.of_events({"a": 1}, done=False))
    assert await read(server.url) == ['{"a": 1}']


@pytest.mark.parametrize("kind", ["text/event-stream; charset=utf-8", "text/plain", "application/octet-stream", ""])
async def test_events_under_another_name_are_read(server: LoopbackServer, kind: str) -> None:
    """Servers mislabel their streams."""
    server.then(ServerReply.of_bytes(b"data: 1\n\n", kind))
    assert await read(server.url) == ["1"]


async def test_one_json_value_in_place_of_events_is_one_event(server: LoopbackServer) -> None:
    """A server that does not stream gives its whole answer, named `json`."""
    server.then(ServerReply.of_json({"choices": []}))
    async with HttpClient(server.url) as client, client.stream_sse("chat", b"{}") as events:
        assert [event async for event in events] == [ServerEvent("json", '{"choices": []}')]


JSON_OF_ONE = b'\xef\xbb\xbf  {"choices": [1]}\n'


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "application/x-ndjson", "application/json", ""])
@pytest.mark.parametrize("size", [1, 1000])
async def test_a_json_value_is_known_by_how_it_begins(server: LoopbackServer, kind: str, size: int) -> None:
    """Whatever the server calls it, and however its bytes come."""
    server.then(ServerReply.of_bytes(JSON_OF_ONE, kind).cut_into(size))
    async with HttpClient(server.url) as client, client.stream_sse("chat", b"{}") as events:
        (event,) = [event async for event in events]
    assert (event.event, json.loads(event.data)) == ("json", {"choices": [1]})


@pytest.mark.parametrize("kind", ["text/event-stream", "application/x-ndjson", "application/json", ""])
async def test_lines_of_json_are_events(server: LoopbackServer, kind: str) -> None:
    """One for each line; a last line that is cut is an interrupted stream."""
    server.then(
        ServerReply.of_bytes(b'{"a": 1}\n\n{"a": 2}\r\n', kind),
        *[ServerReply.of_bytes(b'{"a": 1}\n{"a": ', kind)] * 2,
    )
    assert await read(server.url) == ['{"a": 1}', '{"a": 2}']
    with pytest.raises(ProviderResponseError, match="interrupted stream"):
        await read(server.url, retry=RetryPolicy(max_attempts=2, first_wait_s=0))


async def test_events_that_are_called_json_are_events(server: LoopbackServer) -> None:
    """Servers mislabel them so too; any other JSON value is one."""
    server.then(
        ServerReply.of_bytes(b"data: 1\n\n", "application/json"),
        ServerReply.of_bytes(b"[1]", "application/problem+json"),
        ServerReply.of_bytes(b"null", "application/json"),
    )
    assert [await read(server.url) for _ in range(3)] == [["1"], ["[1]"], ["null"]]


async def test_a_stream_of_nothing_is_one(server: LoopbackServer) -> None:
    """Blank lines hold no events."""
    server.then(ServerReply.of_bytes(b"\n\n", "text/event-stream"), ServerReply.of_bytes(b"", "text/plain"))
    assert [await read(server.url) for _ in range(2)] == [[], []]


@pytest.mark.parametrize("size", [100, 200_000], ids=["a short page", "a page that goes on"])
async def test_a_page_that_is_called_a_stream_is_told_as_a_page(server: LoopbackServer, size: int) -> None:
    """It may be the one for the time of a repair, so the request is sent again."""
    page = b"<!doctype html><h1>Down</h1> for a while " + b"x" * size
    server.then(ServerReply.of_bytes(page, "text/event-stream"), ServerReply.of_events({"a": 1}))
    assert await read(server.url) == ['{"a": 1}', "[DONE]"]
    server.then(ServerReply.of_bytes(page, "text/event-stream"))
    with pytest.raises(
        ProviderResponseError, match=r"no event stream: Down for a while.*check that base_url"
    ) as caught:
        await read(server.url, retry=ONCE)
    assert caught.value.retryable


async def test_what_is_too_long_is_said_without_a_contradiction(server: LoopbackServer) -> None:
    """A value is bounded as an event is, and nothing is said of an empty body."""
    server.then(*[ServerReply.of_json(["x" * 5000])] * 2)
    with pytest.raises(ProviderResponseError, match=r"an event of more than 1,000 bytes$"):
        await read(server.url, max_response_bytes=1000)
    async with HttpClient(server.url, max_response_bytes=1000) as client:
        with pytest.raises(ProviderResponseError, match=r"an answer of more than 1,000 bytes$"):
            await client.post_json("chat", b"{}")


@pytest.mark.parametrize(
    ("reply", "text", "retryable"),
    [
        (ServerReply.of_json({"error": {"message": "bad", "code": 400}}), "with an error .400.: bad", False),
        (ServerReply.of_json({"error": "no model", "code": None}), "with an error: no model", False),
        (ServerReply.of_json({"error": {"message": "full", "type": "overloaded_error"}}), "full", True),
        (
            ServerReply.of_bytes(b"<h1>Sign in</h1>", "text/html"),
            "which is no event stream: Sign in; tried 3 times; check that",
            True,  # perhaps it is the one for the time of a repair
        ),
        (ServerReply.of_bytes(b"{", "application/json"), "which is no event stream: {", False),
    ],
)
async def test_a_good_status_without_a_stream_is_an_error(
    server: LoopbackServer, reply: ServerReply, text: str, *, retryable: bool
) -> None:
    """200 with an error or a page is told with what the server says."""
    server.then(*[reply] * 3)
    with pytest.raises(ProviderError, match=text) as caught:
        await read(server.url)
    assert caught.value.retryable is retryable
    assert len(server.requests) == (3 if retryable else 1)


async def test_a_refused_stream_is_tried_again(server: LoopbackServer) -> None:
    """Statuses and broken connections before the first event are retried as for a plain answer."""
    server.then(
        ServerReply.of_json({}, status=503),
        ServerReply(wire=b"", steps=(Then.CUT,)),
        ServerReply.of_events({"a": 1}),
    )
    assert await read(server.url) == ['{"a": 1}', "[DONE]"]


async def test_a_demanded_wait_that_is_too_long_ends_a_stream_at_once(server: LoopbackServer) -> None:
    """The rate limit's error states the demand (case 62)."""
    server.then(ServerReply.of_json({}, status=429, headers={"retry-after": "500"}))
    with pytest.raises(ProviderRateLimitError, match="demands a wait of 500 s"):
        await read(server.url, deadline=time.monotonic() + 5)


CUT = ServerReply.of_events({"a": 1}, '{"half', Then.CUT)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (ServerReply.of_events({"a": 1}, Then.CUT), "interrupted stream: the connection to"),
        (ServerReply.of_events({"a": 1}, Then.CLOSE), "interrupted stream: the connection to"),
        (ServerReply.of_events({"a": 1}, b'data: {"b', done=False), "interrupted stream: .* ended inside of an event"),
    ],
    ids=["reset", "closed", "ended inside of an event"],
)
async def test_a_stream_that_breaks_after_an_event_is_an_error_and_not_repeated(
    server: LoopbackServer, reply: ServerReply, text: str
) -> None:
    """What was handed over may have been shown: it can't come twice (case 50)."""
    server.then(reply)
    found: list[str] = []
    with pytest.raises(ProviderResponseError, match=text) as caught:
        await read(server.url, found)
    assert found == ['{"a": 1}']
    assert caught.value.retryable
    assert len(server.requests) == 1


async def test_a_stream_that_breaks_before_an_event_is_repeated(server: LoopbackServer) -> None:
    """Comments are no content, so nothing is lost."""
    server.then(ServerReply.of_events(": wait", Then.CUT), ServerReply.of_events({"a": 1}))
    assert await read(server.url) == ['{"a": 1}', "[DONE]"]


async def test_a_reader_that_takes_back_what_it_got_has_the_stream_repeated(server: LoopbackServer) -> None:
    """`may_restart` allows it as long as attempts are left; then the error names the cause (case 50)."""
    half = ServerReply.of_events({"a": 1}, Then.CUT)
    server.then(half, half, ServerReply.of_events({"a": 2}), half, half, half)
    allowed = iter([True, True])
    data = await read(server.url, may_restart=lambda: next(allowed))
    assert data == ['{"a": 1}', '{"a": 1}', '{"a": 2}', "[DONE]"]
    assert next(allowed, None) is None
    with pytest.raises(ProviderResponseError, match=r"interrupted stream.*tried 3 times"):
        await read(server.url, may_restart=lambda: True)
    server.then(half)
    with pytest.raises(ProviderResponseError, match="interrupted stream"):
        await read(server.url, may_restart=lambda: False)


async def test_an_error_event_restarts_the_stream_if_that_is_allowed(server: LoopbackServer) -> None:
    """The reader hands the error to `restart`, which goes on with a new answer or raises it (case 52)."""
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    wrong = {"error": {"message": "bad tool schema", "type": "invalid_request_error", "code": 400}}
    server.then(
        ServerReply.of_events(busy, done=False),
        ServerReply.of_events({"a": 1}, done=False),
        ServerReply.of_events(wrong),
    )

    async def run() -> list[object]:
        found: list[object] = []
        client = HttpClient(server.url, retry=QUICK)
        async with client, client.stream_sse("chat", b"{}", may_restart=lambda: True) as events:
            async for event in events:
                value = json.loads(event.data)
                error = client.error_in(value, events)
                if error is not None:
                    await events.restart(error)
                else:
                    found.append(value)
        return found

    assert await run() == [{"a": 1}]
    with pytest.raises(ProviderError, match="bad tool schema") as caught:
        await run()
    assert not caught.value.retryable


async def test_a_stall_within_a_stream_is_a_time_out(server: LoopbackServer) -> None:
    """Silence longer than `idle_s` ends a stream that had begun, and the error says how long."""
    server.then(ServerReply.of_events({"a": 1}, Then.STALL))
    found: list[str] = []
    with pytest.raises(ProviderTimeoutError, match=r"stalled: nothing came for 0\.2 s"):
        await read(server.url, found, timeouts=Timeouts(idle_s=0.2, read_s=30))
    assert found == ['{"a": 1}']


async def test_the_first_byte_may_take_longer_than_the_next(server: LoopbackServer) -> None:
    """`read_s` bounds the time to the answer's beginning, `idle_s` what comes after."""
    server.then(ServerReply(wire=b"", steps=(Pause(0.5), ServerReply.of_events({"a": 1}).head(), Then.CLOSE)))
    with pytest.raises(ProviderResponseError, match="interrupted"):
        await read(server.url, timeouts=Timeouts(idle_s=0.2, read_s=30), retry=ONCE)


@pytest.mark.parametrize("step", [(Then.STALL,), (Pause(0.05), ": x") * 200], ids=["silence", "heartbeats"])
async def test_the_deadline_ends_a_stream(server: LoopbackServer, step: tuple[object, ...]) -> None:
    """The deadline bounds the whole stream, whatever still comes."""
    server.then(ServerReply.of_events({"a": 1}, *step))
    began = time.monotonic()
    with pytest.raises(ProviderTimeoutError, match=r"not complete within the 0\.4 s"):
        await read(server.url, deadline=began + 0.4)
    assert time.monotonic() - began < 4


async def test_the_deadline_does_not_end_what_the_reader_does(server: LoopbackServer) -> None:
    """Between two events the reader may take its time; the next event then finds that there is none left."""
    server.then(ServerReply.of_events({"a": 1}, Pause(0.1), {"a": 2}))
    client = HttpClient(server.url)
    async with client, client.stream_sse("chat", b"{}", deadline=time.monotonic() + 0.2) as events:
        await anext(events)
        await asyncio.sleep(0.4)
        with pytest.raises(ProviderTimeoutError):
            await anext(events)


async def test_a_reader_that_is_cancelled_ends_at_once(server: LoopbackServer) -> None:
    """Cancellation goes through as such, also with a deadline, and the connection is closed."""
    server.then(ServerReply.of_events({"a": 1}, Then.STALL))
    task = asyncio.create_task(read(server.url, deadline=time.monotonic() + 30))
    while not server.requests:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 3)


async def test_leaving_early_closes_the_connection_and_reading_to_the_end_keeps_it(server: LoopbackServer) -> None:
    """Half an answer can't be followed by another on the same connection."""
    server.then(*[ServerReply.of_events({"a": 1}, Pause(0.05), {"a": 2})] * 3)
    async with HttpClient(server.url) as client:
        async with client.stream_sse("chat", b"{}") as events:
            async for _ in events:
                break
        assert client._setup.pools.idle == 0
        for _ in range(2):
            async with client.stream_sse("chat", b"{}") as events:
                assert len([event async for event in events]) == 3
        assert client._setup.pools.idle == 1
    assert server.connections == 2


async def test_stopping_the_client_ends_its_streams(server: LoopbackServer) -> None:
    """A stream that is being read fails with a word about the stop, not about the server."""
    server.then(ServerReply.of_events({"a": 1}, Then.STALL))
    client = HttpClient(server.url)
    got = asyncio.Event()

    async def reading() -> None:
        async with client.stream_sse("chat", b"{}") as events:
            async for _ in events:
                got.set()

    task = asyncio.create_task(reading())
    await asyncio.wait_for(got.wait(), 5)
    await client.stop()
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await asyncio.wait_for(task, 3)
