import copy
import logging
import pickle
import traceback
from collections.abc import Mapping
from urllib.parse import quote, unquote

import pytest

from atlas_core.errors import AtlasError, SettingsError
from atlas_core.http import HttpClient, RetryPolicy, Secret, bare
from atlas_core.http.failures import Server
from atlas_core.http.redact import Redactor, shown_url, url_secrets
from atlas_core.http.secret import RawHeaders
from atlas_core.http.target import Target
from atlas_core.testing import LoopbackProxy, LoopbackServer, ServerReply, Then

KEY = "sk-TESTSECRET123"
ODD = "TESTSECRET-is-in-no-known-form"
MARK = "TESTSECRET"

ECHO = ServerReply.of_json(
    {"error": {"message": f"Incorrect key {KEY}, {ODD}, me:{ODD}, Bearer {KEY}"}},
    status=401,
    headers={"request-id": KEY},
)
ENDINGS: list[tuple[str, ServerReply]] = [
    ("refused", ECHO),
    ("busy", ServerReply.of_bytes(f"<p>{KEY} {ODD}</p>".encode(), "text/html", status=503)),
    ("redirect", ServerReply(status=302, headers=(("location", f"http://me:{ODD}@h/{KEY}?k={ODD}"),))),
    ("type of an error", ServerReply.of_bytes(b"no", f"text/{KEY}", status=400)),
    ("type of an answer", ServerReply.of_bytes(b"no", f"text/{ODD}; a={KEY}")),
    ("cut", ServerReply(wire=b"", steps=(Then.CUT,))),
    ("no HTTP", ServerReply(wire=f"{KEY} {ODD}\r\n\r\n".encode())),
    ("not JSON", ServerReply.of_bytes(f"{KEY} {ODD}".encode(), "text/plain")),
    ("not packed", ServerReply.of_bytes(b"x", headers={"content-encoding": f"{ODD}"})),
]
PLACES: list[tuple[str, str, Mapping[str, str | Secret]]] = [
    ("authorization", "{url}", {"Authorization": Secret(f"Bearer {KEY}"), "x-echo": Secret(ODD)}),
    ("plain header", "{url}", {"x-api-key": KEY, "x-custom": ODD}),
    ("query", "{url}/v1?key=" + KEY + "&code=" + ODD, {}),
    ("login", "{login}/v1", {"x-key": KEY}),
    ("path", "{url}/TESTSECRET0without0any0dash/v1", {"x-key": KEY, "x-2": ODD}),
    ("secret address", "{url}/" + ODD + "/v1?a=" + KEY, {}),
]


def with_locals(exc: BaseException) -> str:
    """Return every text that a report of an error may show: the chain, its frames and their variables."""
    parts = traceback.format_exception(type(exc), exc, exc.__traceback__.tb_next if exc.__traceback__ else None)
    waiting: list[BaseException | None] = [exc]
    seen: set[int] = set()
    while waiting:
        inner = waiting.pop()
        if inner is None or id(inner) in seen:
            continue
        seen.add(id(inner))
        waiting += [inner.__cause__, inner.__context__]
        parts += [repr(inner), repr(inner.args), repr(vars(inner))]
        for frame, _ in traceback.walk_tb(inner.__traceback__):
            if frame.f_code.co_filename != __file__:  # the test itself knows the keys
                parts += [f"{name}={value!r}" for name, value in frame.f_locals.items()]
    return "\n".join(parts).casefold()


@pytest.mark.parametrize(("how", "reply"), ENDINGS, ids=[how for how, _ in ENDINGS])
@pytest.mark.parametrize(("place", "url", "headers"), PLACES, ids=[place for place, *_ in PLACES])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_no_error_or_log_holds_a_key(
    server: LoopbackServer,
    caplog: pytest.LogCaptureFixture,
    *,
    how: str,
    reply: ServerReply,
    place: str,
    url: str,
    headers: Mapping[str, str | Secret],
    stream: bool,
) -> None:
    """Wherever the key stands and whatever the server does with it, nothing written shows it (cases 64 and 112)."""
    caplog.set_level(logging.DEBUG)
    server.then(reply, reply)
    address = url.format(url=server.url, login=server.url.replace("://", f"://me:{ODD}@"))
    base = Secret(address) if place == "secret address" else address
    client = HttpClient(base, headers=headers, retry=RetryPolicy(max_attempts=2, first_wait_s=0))
    caught: BaseException | None = None
    try:
        if stream:
            async with client.stream_sse("chat", b"{}") as events:
                [event async for event in events]
        else:
            (await client.post_json("chat", b"{}")).json()
    except AtlasError as exc:
        caught = exc
    await client.stop()
    sent = server.requests[0]
    assert MARK in f"{sent.target} {sent.headers}" or place == "login"
    if caught is None:
        assert (how, stream) == ("not JSON", True)  # text/plain may be a stream
    else:
        assert MARK.casefold() not in with_locals(caught)
        assert MARK not in f"{caught!r} {caught} {vars(caught)}"
        assert MARK.encode() not in pickle.dumps(caught)
    ours = [
        r.getMessage()
        for r in caplog.records
        if "Location" not in r.getMessage() and "receive_response" not in r.getMessage()
    ]
    assert MARK not in "\n".join(ours)
    assert MARK not in f"{client!r} {client} {client._target!r} {client._setup!r}"


async def test_a_proxys_login_is_in_no_error() -> None:
    """Nor in what is raised where the proxy refuses, or is not there."""
    with LoopbackProxy(login="a:b") as proxy:
        for url in (proxy.url.replace("://", f"://me:{ODD}@"), f"http://me:{ODD}@127.0.0.1:1"):
            client = HttpClient("http://h.example", proxy=url, retry=RetryPolicy(max_attempts=1))
            with pytest.raises(AtlasError) as caught:
                await client.post_json("x", b"")
            assert MARK.casefold() not in with_locals(caught.value)
            assert MARK not in f"{client._setup!r}"
            await client.stop()


async def test_a_cancelled_request_shows_no_key(server: LoopbackServer) -> None:
    """What a cancelled request leaves behind has no frames that hold keys."""
    import asyncio

    server.then(ServerReply(wire=b"", steps=(Then.STALL,)))
    async with HttpClient(server.url, headers={"x-key": Secret(KEY)}) as client:
        task = asyncio.create_task(client.post_json("x", b""))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert MARK.casefold() not in with_locals(caught.value)


def test_a_secret_shows_itself_only_when_asked() -> None:
    """No text, copy or pickle of it holds the value; equal values are equal."""
    secret = Secret(KEY)
    assert secret.reveal() == KEY
    assert f"{secret} {secret!r} {[secret]}" == "*** Secret(***) [Secret(***)]"
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"a": secret})["a"] is secret
    assert secret == Secret(KEY) != Secret("b")
    assert secret != KEY
    assert len({secret, Secret(KEY)}) == 1
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("what", [HttpClient("http://h"), HttpClient("http://h")._target])
def test_what_holds_keys_is_not_pickled(what: object) -> None:
    """A client is made where it is used."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(what)


def test_prepared_headers_are_counted_and_not_shown() -> None:
    """The form that goes to the transport has a text without values."""
    assert repr(RawHeaders({"a": KEY})) == "<1 headers>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {ODD}.", "key ***."),
        ("key TESTSECRET%20x%2Fy", "key ***"),
        ("key TESTSECRET+x%2Fy", "key ***"),
        ("nothing", "nothing"),
        ("sk-abcdefgh12345", "***"),
        ("abc", "abc"),
        ("x-user-agent: users, user1", "x-user-agent: users, user1"),
        ("login 'user' or user:pw", "login '***' or ***:pw"),
    ],
)
def test_known_secrets_are_taken_out_of_texts(text: str, shown: str) -> None:
    """In their own spelling and in that of addresses, and what has the form of a key as well."""
    assert Redactor([ODD, f"{MARK} x/y", "abc", "user"])(text) == shown


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    "reply",
    [
        ServerReply.of_json({"error": {"message": f"{'x' * 480} {ODD}"}}, status=400),
        ServerReply.of_bytes(f"{'y' * 180} {ODD}".encode(), "text/html", status=502),
        ServerReply.of_json({}, status=400, headers={"x-request-id": f"{'z' * 110}{ODD}"}),
    ],
    ids=["a message", "a page", "an id"],
)
async def test_a_key_that_is_cut_off_is_not_shown_in_part(
    server: LoopbackServer, reply: ServerReply, *, stream: bool
) -> None:
    """Texts are cut after what is secret was taken out."""
    server.then(reply)
    once = RetryPolicy(max_attempts=1)
    async with HttpClient(server.url, headers={"x-key": Secret(ODD)}, retry=once) as client:
        with pytest.raises(AtlasError) as caught:
            await (client.stream_sse("chat", b"{}").__aenter__() if stream else client.post_json("chat", b"{}"))
    assert MARK[:6].casefold() not in with_locals(caught.value)


@pytest.mark.parametrize("key", [KEY, ODD, "TESTSECRET;/+9"], ids=["known form", "no form", "with marks"])
@pytest.mark.parametrize("status", [200, 400])
async def test_a_media_type_that_holds_a_key_is_not_named(server: LoopbackServer, key: str, status: int) -> None:
    """Nor in part, where a mark in the key looks like the end of the type; the body is still told."""
    server.then(ServerReply.of_bytes(b"the reason", f"text/{key}", status=status))
    async with HttpClient(server.url, headers={"x-key": Secret(key)}, retry=RetryPolicy(max_attempts=1)) as client:
        with pytest.raises(AtlasError) as caught:
            (await client.post_json("chat", b"{}")).json()
    assert f"answered {status}" in str(caught.value)
    assert "the reason" in str(caught.value)
    assert "(text" not in str(caught.value)
    assert MARK.casefold() not in with_locals(caught.value)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("text/html; charset=utf-8", "answered 400 (text/html): no"),
        (" Application/vnd.api+json ", "answered 400 (Application/vnd.api+json): no"),
        ("text", "answered 400: no"),
        ("a b/c", "answered 400: no"),
        (f"text/{'x' * 101}", "answered 400: no"),
        ("text/plain\u0661", "answered 400: no"),
    ],
    ids=["with parameters", "with a suffix", "no subtype", "a space", "too long", "digits of another script"],
)
def test_only_what_is_a_media_type_is_named(written: str, shown: str) -> None:
    """A server can write anything there."""
    error = Server(name="h").status_error(400, {"content-type": written}, b"no")
    assert str(error).startswith(f"h {shown}")


def encoded(text: str, times: int) -> str:
    """Return a text with each of its characters percent-encoded, and then the percent signs again and again."""
    text = "".join(f"%{byte:02x}" for byte in text.encode())
    for _ in range(times - 1):
        text = quote(text)
    return text


@pytest.mark.parametrize("key", [KEY, ODD], ids=["known form", "no form"])
@pytest.mark.parametrize("times", [1, 2, 4, 5, 9])
def test_an_encoded_key_in_a_redirects_target_is_masked(key: str, times: int) -> None:
    """However often it is encoded; where that is too often to tell, nothing of the target is shown."""
    target = f"http://other.example/a%20b/{encoded(key, times)}/x"
    server = Server(name="h", redact=Redactor([key]))
    text = str(server.status_error(302, {"location": target}, b""))
    for _ in range(12):
        assert key not in text
        text = unquote(text)
    assert ("redirect to 'http://other.example/a b/***/x'" in text) is (times < 5)
    assert ("redirect to '***'" in text) is (times >= 5)


def test_a_redirects_target_without_a_key_is_shown_as_it_is_written() -> None:
    """So that it can be compared with the settings."""
    error = Server(name="h").status_error(302, {"location": "http://other.example/a%20b?c=%25d"}, b"")
    assert "redirect to 'http://other.example/a%20b?c=%25d'" in str(error)


async def test_an_id_that_repeats_a_key_is_masked(server: LoopbackServer) -> None:
    """Also on an answer that is good, since errors made from it carry it on."""
    server.then(*[ServerReply.of_json({}, headers={"x-request-id": f"r-{ODD}"})] * 2)
    async with HttpClient(server.url, headers={"x-key": Secret(ODD)}) as client:
        assert (await client.post_json("chat", b"{}")).request_id == "r-***"
        async with client.stream_sse("chat", b"{}") as events:
            assert events.request_id == "r-***"
        assert client.redacted(f"it said {ODD}, {KEY}") == "it said ***, ***"


def test_a_bare_error_keeps_its_causes_and_nothing_else() -> None:
    """Without frames and contexts, all the way down; a ring of causes ends too."""
    try:
        try:
            try:
                raise OSError(MARK)
            except OSError:
                raise ValueError("why") from None
        except ValueError as exc:
            raise RuntimeError("what") from exc
    except RuntimeError as exc:
        found = bare(exc)
    assert isinstance(found.__cause__, ValueError)
    assert MARK not in with_locals(found)
    assert (found.__traceback__, found.__context__, found.__cause__.__context__) == (None, None, None)
    found.__cause__.__cause__ = found
    assert bare(found) is found


def test_a_client_that_was_refused_can_be_shown() -> None:
    """A debugger shows the object whose making failed."""
    for half in (HttpClient.__new__(HttpClient), Target.__new__(Target)):
        assert "not made" in repr(half)


def test_what_is_secret_in_an_address() -> None:
    """Login, its encoding, values under secret names or long ones, opaque parts of the path."""
    url = f"https://us%65r:p%40ss@h/v1/abcdefghij0123456789/x?api-version=2024-02-01&key=ab&s={'z' * 16}"
    assert url_secrets(url) == ["user", "p@ss", "dXNlcjpwQHNz", "z" * 16, "abcdefghij0123456789"]
    assert shown_url(url) == "https://h/v1/***/x"
    assert shown_url("me:pw@h/x?a") == "h/x"
    assert shown_url("http://[") == "http://["
    assert shown_url("http://[", whole=True) == "***"
    assert shown_url("https://h/deployments/gpt-4o-mini-2024-07-18") == "https://h/deployments/gpt-4o-mini-2024-07-18"
    assert shown_url("https://h/f47ac10b-58cc-4372-a567-0e02b2c3d479") == "https://h/***"


def test_an_address_that_can_t_be_used_is_shown_without_its_secrets() -> None:
    """Errors of the settings hold no login and no query either."""
    with pytest.raises(SettingsError) as caught:
        HttpClient(Secret(f"ftp://me:{ODD}@h/{ODD}1?key={KEY}"))
    assert MARK not in str(caught.value)
