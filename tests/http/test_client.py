import asyncio
import gzip
import json
import socket
import time
import zlib

import pytest

from atlas_core.errors import (
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderTimeoutError,
    ServiceNotReadyError,
    SettingsError,
)
from atlas_core.http import HttpClient, Response, RetryPolicy, Secret, Timeouts
from atlas_core.testing import LoopbackServer, Pause, ServerReply, Then

QUICK = RetryPolicy(first_wait_s=0.01)
ONCE = RetryPolicy(max_attempts=1)
OK = ServerReply.of_json({"ok": True})


async def ask(url: str, **options: object) -> Response:
    """Send one request."""
    deadline = options.pop("deadline", None)
    async with HttpClient(url, **{"retry": QUICK, **options}) as client:  # type: ignore[arg-type]
        return await client.post_json("chat", b"{}", deadline=deadline)  # type: ignore[arg-type]


async def failure(url: str, **options: object) -> ProviderError:
    """Return the error that one request ends with."""
    with pytest.raises(ProviderError) as caught:
        await ask(url, **options)
    return caught.value


# What is sent ---------------------------------------------------------------------------------------------------


async def test_a_request_carries_path_query_headers_and_the_joined_body(server: LoopbackServer) -> None:
    """The base's path and query stay, paths are joined by one slash, pieces of the body by nothing."""
    server.then(OK)
    async with HttpClient(f"{server.url}/v1/?api-version=2", headers={"Api-Key": Secret(" k1 ")}) as client:
        response = await client.post_json(
            "/deployments/a b/chat?x=1", [b'{"a":', b"1}"], params={"q": "ä&"}, headers={"X-More": "m"}
        )
    (request,) = server.requests
    assert response.json() == {"ok": True}
    assert request.path == "/v1/deployments/a%20b/chat"
    assert request.query == {"api-version": ["2"], "x": ["1"], "q": ["ä&"]}
    assert request.json() == {"a": 1}
    sent = dict(request.headers)
    assert sent.pop("user-agent").startswith("atlas-kernel/")
    assert sent == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "application/json",
        "accept-encoding": sent["accept-encoding"],
        "content-type": "application/json",
        "content-length": "7",
        "api-key": "k1",
        "x-more": "m",
    }


async def test_a_get_has_no_body(server: LoopbackServer) -> None:
    """`get_json` asks without a body, as for a list of models."""
    server.then(OK)
    async with HttpClient(server.url) as client:
        assert (await client.get_json("models")).status == 200
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("GET", "/models", b"")
    assert "content-length" not in request.headers


async def test_a_login_in_the_address_is_basic_authorization(server: LoopbackServer) -> None:
    """A user and password are decoded and sent as the header; a given header goes before them."""
    server.then(OK, OK)
    address = server.url.replace("://", "://us%40er:p%3Aw@")
    await ask(address)
    await ask(address, headers={"Authorization": "Bearer x"})
    first, second = (request.headers["authorization"] for request in server.requests)
    assert first == "Basic dXNAZXI6cDp3"
    assert second == "Bearer x"


async def test_many_paths_do_not_fill_the_memory(server: LoopbackServer) -> None:
    """Addresses are kept for a bounded number of paths, and all paths work."""
    with LoopbackServer(always=OK) as many:
        async with HttpClient(many.url) as client:
            for n in range(70):
                await client.post_json(f"p{n}", b"")
            assert len(client._target._urls) == 64
    assert many.requests[-1].path == "/p69"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("example.com/v1", "base_url is .*expected http:// or https:// and a host"),
        ("ftp://example.com", "expected http://"),
        ("http://", "and a host"),
        ("http://example.com:99999", "expected http://"),
        ("http://[::1", "expected http://"),
        ("", "expected http://"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(url: str, text: str) -> None:
    """A wrong `base_url` is an error of the settings, and names what was expected."""
    with pytest.raises(SettingsError, match=text):
        HttpClient(url)


@pytest.mark.parametrize("path", ["https://evil.example/x", "//evil.example/x"])
async def test_a_path_can_t_lead_to_another_server(path: str) -> None:
    """Keys go to the server of `base_url` only."""
    async with HttpClient("http://127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="without a host"):
            await client.post_json(path, b"")


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"a b": "x"}, "'a b' is no name"),
        ({"": "x"}, "'' is no name"),
        ({"x-key": "sk-TESTSECRET\nx: y"}, r"header 'x-key' holds the character '\\n'"),
        ({"x-key": "a\x00"}, "holds the character"),
    ],
)
def test_a_header_that_can_t_be_sent_is_refused_without_its_value(headers: dict[str, str], text: str) -> None:
    """A line break in a key would open a way for more headers."""
    with pytest.raises(SettingsError, match=text) as caught:
        HttpClient("http://127.0.0.1:1", headers=headers)
    assert "TESTSECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HttpClient("http://h", max_response_bytes=0),
        lambda: RetryPolicy(max_attempts=0),
        lambda: RetryPolicy(max_wait_s=-1),
        lambda: Timeouts(connect_s=0),
        lambda: Timeouts(idle_s=float("nan")),
    ],
)
def test_a_limit_without_sense_is_refused(make: object) -> None:
    """Limits say what they expect."""
    with pytest.raises(ValueError, match="expected"):
        make()  # type: ignore[operator]


# What comes back ------------------------------------------------------------------------------------------------


async def test_an_answer_has_status_headers_body_and_the_servers_id(server: LoopbackServer) -> None:
    """Header names are in lower case, and the body is as sent."""
    server.then(ServerReply.of_json([1], status=201, headers={"X-Request-ID": "r-1", "X-A": "b"}))
    response = await ask(server.url)
    assert (response.status, response.body, response.request_id) == (201, b"[1]", "r-1")
    assert response.headers["x-a"] == "b"
    assert repr(response) == "Response(status=201, request_id='r-1')"


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("GZIP", gzip.compress),
        ("deflate, gzip", lambda body: gzip.compress(zlib.compress(body))),
    ],
)
async def test_a_packed_body_is_unpacked(server: LoopbackServer, encoding: str, encode: object) -> None:
    """What `Accept-Encoding` offers is understood, also where the content type is wrong (case 64)."""
    body = json.dumps({"text": "a" * 1000}).encode()
    packed: bytes = encode(body)  # type: ignore[operator]
    server.then(ServerReply.of_bytes(packed, "text/html", headers={"content-encoding": encoding}).cut_into(7))
    response = await ask(server.url)
    assert response.body == body
    assert {"gzip", "deflate"} <= set(server.requests[0].headers["accept-encoding"].split(", "))


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        ({"content-encoding": "gzip"}, b"this is not gzip", "can't be decoded"),
        ({"content-encoding": "compress"}, b"x", "content-encoding 'compress'"),
    ],
)
async def test_a_body_that_can_t_be_unpacked_is_an_error(
    server: LoopbackServer, headers: dict[str, str], body: bytes, text: str
) -> None:
    """A wrong or unknown encoding is told, and not tried again."""
    server.then(ServerReply.of_bytes(body, headers=headers))
    error = await failure(server.url)
    assert type(error) is ProviderResponseError
    assert text in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b"<html><script>x()</script><h1>Welcome</h1> to our&nbsp;proxy</html>", "text/html", "Welcome to our proxy"),
        (b"", "application/json", "the body is empty"),
        (b'{"a": ', "application/json", '{"a":'),
        (b"[" * 100_000, "application/json", "[[["),
    ],
)
async def test_a_good_status_without_json_is_an_error_when_it_is_read(
    server: LoopbackServer, body: bytes, kind: str, text: str
) -> None:
    """A page in place of an answer is shown as status, type and a short excerpt (case 64)."""
    server.then(ServerReply.of_bytes(body, kind))
    response = await ask(server.url)
    with pytest.raises(ProviderResponseError, match=f"answered 200 .{kind}., which is not JSON") as caught:
        response.json()
    assert text in str(caught.value)
    assert len(str(caught.value)) < 600
    assert caught.value.status == 200


async def test_a_body_longer_than_allowed_is_an_error(server: LoopbackServer) -> None:
    """Neither a long body nor a small one that unpacks to a long one fills the memory."""
    server.then(
        ServerReply.of_bytes(b"x" * 2000),
        ServerReply.of_bytes(gzip.compress(b"x" * 2000), headers={"content-encoding": "gzip"}),
        ServerReply.of_bytes(b"x" * 1000),
    )
    for _ in range(2):
        error = await failure(server.url, max_response_bytes=1000)
        assert "more than 1,000 bytes" in str(error)
        assert not error.retryable
    assert len((await ask(server.url, max_response_bytes=1000)).body) == 1000


# Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, ProviderError, False),
        (401, ProviderAuthError, False),
        (403, ProviderAuthError, False),
        (404, ProviderError, False),
        (408, ProviderTimeoutError, True),
        (409, ProviderError, True),
        (413, ProviderError, False),
        (422, ProviderError, False),
        (429, ProviderRateLimitError, True),
        (500, ProviderError, True),
        (502, ProviderError, True),
        (503, ProviderError, True),
        (504, ProviderTimeoutError, True),
        (529, ProviderError, True),
    ],
)
async def test_a_status_is_a_typed_error_tried_again_where_that_helps(
    server: LoopbackServer, status: int, kind: type[ProviderError], *, retryable: bool
) -> None:
    """408, 409, 429 and 5xx are tried again, others not; the error has status, id and the server's message."""
    reply = ServerReply.of_json(
        {"error": {"message": "it is so", "code": "c1"}}, status=status, headers={"request-id": "req_7"}
    )
    server.then(reply, reply)
    error = await failure(server.url, retry=RetryPolicy(max_attempts=2, first_wait_s=0.01), owner="connection 'main'")
    assert (type(error), error.retryable, error.status, error.request_id) == (kind, retryable, status, "req_7")
    assert f"{server.url} answered {status} (application/json): it is so [request req_7]" in str(error)
    assert "connection 'main'" in str(error)
    assert ("tried 2 times" in str(error)) is retryable
    assert len(server.requests) == 1 + retryable


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (
            502,
            b"<html><head><title>502</title></head><body>" + b"<p>Bad gateway</p>" * 12_000,
            "text/html",
            "Bad gateway",
        ),
        (413, b"", "", "with an empty body"),
        (400, b'{"message": "m1"}', "application/json", ": m1"),
        (400, b'{"error": "plain"}', "application/json", ": plain"),
        (400, b'{"error": {"error": {"message": "deep"}}}', "application/json", ": deep"),
        (422, b'{"detail": [{"loc": ["a"], "msg": "missing field"}]}', "application/json", ": missing field"),
        (400, b'{"error": {"message": null, "type": 3}}', "application/json", ': {"error"'),
        (400, b"\x1f\x8b\x08\x00\x00", "application/json", "5 bytes that are no text"),
        (400, b'{"message": "' + b"m" * 5000 + b'"}', "application/json", "mmm..."),
        (400, b"plain words \xff", "text/plain", "plain words"),
    ],
)
async def test_an_error_says_what_the_body_says_and_not_all_of_it(
    server: LoopbackServer, status: int, body: bytes, kind: str, text: str
) -> None:
    """The server's message if there is one, else an excerpt without tags (case 64)."""
    server.then(ServerReply.of_bytes(body, kind, status=status))
    error = await failure(server.url, retry=ONCE)
    assert text in str(error)
    assert len(str(error)) < 700
    assert (f"({kind})" in str(error)) is bool(kind)


async def test_a_redirect_is_an_error_that_names_its_target(server: LoopbackServer) -> None:
    """A key is not sent on to wherever a server points."""
    target = "https://other.example/v1?key=sk-TESTSECRET123"
    server.then(ServerReply(status=307, headers=(("location", target),)))
    error = await failure(server.url)
    assert "redirect to 'https://other.example/v1" in str(error)
    assert "base_url" in str(error)
    assert "TESTSECRET" not in str(error)
    assert len(server.requests) == 1


async def test_a_quota_that_is_used_up_is_not_tried_again(server: LoopbackServer) -> None:
    """A 429 for an unpaid bill does not pass with time, nor what the server says not to try again."""
    server.then(
        ServerReply.of_json({"error": {"message": "pay", "code": "insufficient_quota"}}, status=429),
        ServerReply.of_json({}, status=503, headers={"x-should-retry": "false"}),
        ServerReply.of_json({}, status=400, headers={"x-should-retry": "true"}),
        OK,
    )
    assert not (await failure(server.url)).retryable
    assert not (await failure(server.url)).retryable
    assert (await ask(server.url)).status == 200


async def test_a_broken_error_body_still_tells_the_status(server: LoopbackServer) -> None:
    """What came of the body is used when the connection breaks within it."""
    server.then(ServerReply(status=400, headers=(("content-length", "99"),), steps=(b"half", Then.CUT)))
    error = await failure(server.url)
    assert (error.status, "half" in str(error)) == (400, True)


async def test_a_server_that_is_not_there_is_named() -> None:
    """A refused connection is tried again, and the error says where and what to check."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    error = await failure(f"http://127.0.0.1:{port}/v1")
    assert f"no connection to http://127.0.0.1:{port}/v1" in str(error)
    assert "tried 3 times" in str(error)
    assert error.retryable


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (ServerReply(wire=b"", steps=(Then.CUT,)), ProviderError, "broke before an answer"),
        (ServerReply(wire=b"", steps=(Then.CLOSE,)), ProviderError, "broke before an answer"),
        (ServerReply(wire=b"SSH-2.0-OpenSSH\r\n\r\n"), ProviderError, "broke before an answer"),
        (
            ServerReply(steps=(b"abc",), headers=(("content-length", "9"), ("connection", "close"))),
            ProviderResponseError,
            "interrupted",
        ),
        (
            ServerReply(wire=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", steps=(b"zz\r\n",)),
            ProviderResponseError,
            "interrupted",
        ),
    ],
    ids=["reset", "closed", "no HTTP", "too short", "wrong chunk"],
)
async def test_a_connection_that_breaks_is_tried_again(
    server: LoopbackServer, reply: ServerReply, kind: type[ProviderError], text: str
) -> None:
    """Whatever the server does with the connection, the next attempt may succeed; else the error says what it did."""
    server.then(reply, OK)
    assert (await ask(server.url)).json() == {"ok": True}
    server.then(reply)
    error = await failure(server.url, retry=ONCE)
    assert (type(error), error.retryable) == (kind, True)
    assert text in str(error)


async def test_an_error_inside_of_a_good_answer_is_found(server: LoopbackServer) -> None:
    """`error_in` reads it, and `check` makes it count as a failure of the server."""
    busy = ServerReply.of_json({"error": {"message": "busy", "type": "overloaded_error"}}, headers={"cf-ray": "ray1"})
    server.then(busy, OK, busy)
    async with HttpClient(server.url, retry=QUICK) as client:

        def check(response: Response) -> None:
            error = client.error_in(response.json(), response)
            if error is not None:
                raise error

        assert (await client.post_json("x", b"", check=check)).json() == {"ok": True}
        response = await client.post_json("x", b"")
        error = client.error_in(response.json(), response)
    assert error is not None
    assert error.retryable
    assert "answered 200 with an error (overloaded_error): busy [request ray1]" in str(error)


# Retries and deadlines ------------------------------------------------------------------------------------------


async def test_the_servers_wait_is_kept(server: LoopbackServer) -> None:
    """The next attempt follows after `Retry-After`, not before."""
    server.then(ServerReply.of_json({}, status=429, headers={"retry-after": "0.3"}), OK)
    await ask(server.url)
    first, second = server.requests
    assert second.at - first.at >= 0.29


async def test_a_wait_longer_than_allowed_is_cut(server: LoopbackServer) -> None:
    """With time enough, the configured maximum bounds the wait."""
    server.then(ServerReply.of_json({}, status=503, headers={"retry-after": "86400"}), OK)
    assert (await ask(server.url, retry=RetryPolicy(max_wait_s=0.01))).status == 200


@pytest.mark.parametrize("value", ["86400", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_a_demanded_wait_longer_than_what_is_left_ends_the_request_at_once(
    server: LoopbackServer, value: str
) -> None:
    """Waiting is only useful within the deadline; the error states the demand (case 62)."""
    server.then(ServerReply.of_json({}, status=429, headers={"retry-after": value}))
    began = time.monotonic()
    error = await failure(server.url, deadline=began + 10)
    assert time.monotonic() - began < 5
    assert isinstance(error, ProviderRateLimitError)
    assert error.retry_after_s is not None
    assert error.retry_after_s >= 86400
    assert f"it demands a wait of {error.retry_after_s:,.0f} s" in str(error)
    assert "s are left" in str(error)


async def test_no_attempt_is_made_that_the_deadline_forbids(server: LoopbackServer) -> None:
    """A wait that would pass the deadline is not begun: the last failure is told instead."""
    server.then(ServerReply.of_json({"error": "busy"}, status=503))
    began = time.monotonic()
    error = await failure(server.url, deadline=began + 5, retry=RetryPolicy(first_wait_s=30))
    assert time.monotonic() - began < 3
    assert "busy" in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        ServerReply(steps=(Pause(30), b"x")),
        ServerReply(steps=(b"a" * 10, Then.STALL), headers=(("content-length", "20"),)),
        ServerReply(steps=(b"x", Pause(0.05)) * 300, chunked=True),
    ],
    ids=["no answer", "stalled", "dripping"],
)
async def test_a_deadline_bounds_the_whole_request(server: LoopbackServer, reply: ServerReply) -> None:
    """No answer, a stalled one and one that drips: each ends when the deadline passes."""
    server.then(reply)
    began = time.monotonic()
    error = await failure(server.url, deadline=began + 0.3)
    assert time.monotonic() - began < 3
    assert isinstance(error, ProviderTimeoutError)
    assert "not complete within the 0.3 s" in str(error)


async def test_a_deadline_that_has_passed_sends_nothing(server: LoopbackServer) -> None:
    """There is no time to ask."""
    error = await failure(server.url, deadline=time.monotonic() - 1)
    assert isinstance(error, ProviderTimeoutError)
    assert "the deadline had passed" in str(error)
    assert server.requests == []


async def test_silence_ends_at_the_read_time_out(server: LoopbackServer) -> None:
    """A server that accepts and says nothing is told from one that is not there."""
    server.then(ServerReply(wire=b"", steps=(Then.STALL,)))
    error = await failure(server.url, timeouts=Timeouts(read_s=0.2), retry=ONCE)
    assert isinstance(error, ProviderTimeoutError)
    assert "did not answer within 0.2 s" in str(error)
    assert error.retryable


async def test_a_connection_that_is_not_accepted_times_out() -> None:
    """A full queue of connections is a time-out to connect."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        try:
            error = await failure(f"http://127.0.0.1:{port}", timeouts=Timeouts(connect_s=0.2, read_s=0.3), retry=ONCE)
        finally:
            for one in waiting:
                one.close()
    assert isinstance(error, ProviderTimeoutError)
    assert "no connection to" in str(error)


@pytest.mark.parametrize(
    "reply", [ServerReply(wire=b"", steps=(Then.STALL,)), ServerReply.of_json({}, status=503)], ids=["wait", "retry"]
)
async def test_a_cancelled_request_ends_at_once_and_leaves_no_connection(
    server: LoopbackServer, reply: ServerReply
) -> None:
    """Cancellation passes through a wait for the server as through one between attempts."""
    server.then(reply)
    async with HttpClient(server.url, retry=RetryPolicy(first_wait_s=30)) as client:
        task = asyncio.create_task(client.post_json("x", b""))
        while not server.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 3)
        pool = await client._setup.pools.here()
        assert not pool._busy


async def test_a_stopped_client_is_not_used(server: LoopbackServer) -> None:
    """After `stop` there is an error that says so, also for the request that was under way."""
    server.then(ServerReply(wire=b"", steps=(Then.STALL,)))
    client = HttpClient(server.url)
    task = asyncio.create_task(client.post_json("x", b""))
    while not server.requests:
        await asyncio.sleep(0.01)
    await client.stop()
    await client.stop()
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await asyncio.wait_for(task, 3)
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await client.post_json("x", b"")


async def test_a_time_out_of_the_callers_own_is_not_taken_for_the_deadline(server: LoopbackServer) -> None:
    """What `check` raises, and is no error of the provider, goes through as it is."""
    server.then(OK)

    def check(response: Response) -> None:
        raise TimeoutError("mine")

    async with HttpClient(server.url) as client:
        with pytest.raises(TimeoutError, match="mine"):
            await client.post_json("x", b"", check=check, deadline=time.monotonic() + 30)


async def test_of_a_long_error_page_only_the_beginning_is_read(server: LoopbackServer) -> None:
    """A page of megabytes costs no more than its first part; its connection is not kept."""
    server.then(ServerReply.of_bytes(b"words " * 500_000, "text/plain", status=400))
    async with HttpClient(server.url) as client:
        with pytest.raises(ProviderError, match="words words"):
            await client.post_json("x", b"")
        assert client._setup.pools.idle == 0


async def test_an_error_without_its_answer_is_read_too(server: LoopbackServer) -> None:
    """`error_in` knows many forms, and knows what is no error."""
    client = HttpClient(server.url)
    kinds = {
        "rate_limit_error": ProviderRateLimitError,
        "authentication_error": ProviderAuthError,
        "timeout_error": ProviderTimeoutError,
        "unheard_of": ProviderError,
    }
    for kind, error in kinds.items():
        assert type(client.error_in({"type": "error", "error": {"type": kind, "message": "m"}})) is error
    coded = client.error_in({"error": {"code": "429", "message": "m"}})
    assert isinstance(coded, ProviderRateLimitError)
    assert client.error_in({"object": "error", "message": "not found", "code": 404}) is not None
    fine: list[object] = [{"error": None, "choices": []}, {"error": ""}, [], None, {"choices": []}]
    for value in fine:
        assert client.error_in(value) is None


@pytest.mark.parametrize("url", ["http://exa mple.org/", "http://a\u2000b/"])
async def test_a_host_that_the_library_refuses_is_an_error_of_the_settings(url: str) -> None:
    """What looks like an address and is none is told at the first request."""
    async with HttpClient(url, retry=ONCE) as client:
        with pytest.raises(
            (SettingsError, ProviderError), match=r"can't be read as a URL|could not be sent|no connection"
        ):
            await client.post_json("x?key=sk-TESTSECRET1", b"")
