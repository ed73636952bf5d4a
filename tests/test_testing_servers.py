import http.client
import json
import ssl
import time
import urllib.request
from urllib.error import HTTPError

import pytest
import trustme

from atlas_core.testing import LoopbackProxy, LoopbackServer, Pause, ServerReply, Then


def ask(server: LoopbackServer, method: str = "POST", path: str = "/p?a=1", body: bytes = b"{}") -> tuple[int, bytes]:
    """Send a request with the standard library's client."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request(method, path, body, {"X-A": "b"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_script_is_followed_and_requests_are_kept() -> None:
    """Each request gets the next reply, by value or by function, and is there to be looked at."""
    with LoopbackServer([ServerReply.of_json({"n": 1}, status=503)]) as server:
        server.then(lambda request: ServerReply.of_json(request.json()))
        assert ask(server) == (503, b'{"n": 1}')
        assert ask(server, body=b'{"x": 2}') == (200, b'{"x": 2}')
        status, body = ask(server)
    assert (status, "script has ended" in str(json.loads(body))) == (500, True)
    first = server.requests[0]
    assert (first.method, first.path, first.query, first.headers["x-a"]) == ("POST", "/p", {"a": ["1"]}, "b")
    assert [request.connection for request in server.requests] == [1, 2, 3]
    assert server.connections == 3


def test_an_answer_for_all_requests_and_a_restart_on_the_same_port() -> None:
    """`always` answers what the script does not; a stopped server refuses, and starts again where it was."""
    server = LoopbackServer(always=ServerReply.of_bytes(b"ok", "text/plain"))
    with server:
        port = server.port
        assert ask(server, "GET") == (200, b"ok")
    with pytest.raises(ConnectionRefusedError):
        ask(server)
    server.stop()
    with server:
        assert server.port == port
        assert ask(server) == (200, b"ok")


def test_events_are_sent_as_chunks_with_pauses() -> None:
    """Values become JSON, text and bytes go as they are, and steps between take their time."""
    reply = ServerReply.of_events({"a": "\u2028é"}, "event: x\ndata: y", b": raw\n\n", Pause(0.2), newline="\r\n")
    with LoopbackServer([reply, reply.cut_into(3)]) as server:
        began = time.monotonic()
        status, body = ask(server)
        assert time.monotonic() - began >= 0.2
        assert body == 'data: {"a": "\u2028é"}\r\n\r\nevent: x\r\ndata: y\r\n\r\n: raw\n\ndata: [DONE]\r\n\r\n'.encode()
        assert (status, body) == ask(server)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ServerReply(steps=(b"half", Then.CUT, b"rest")), (ConnectionResetError, http.client.IncompleteRead)),
        (ServerReply(steps=(b"half", Then.CLOSE, b"rest")), http.client.IncompleteRead),
        (ServerReply(wire=b"nonsense\r\n\r\n"), http.client.BadStatusLine),
        (ServerReply(wire=b"", steps=(Then.CLOSE,)), http.client.RemoteDisconnected),
    ],
    ids=["cut", "closed", "no HTTP", "no answer"],
)
def test_misbehaviour_reaches_the_client(reply: ServerReply, error: type[Exception]) -> None:
    """Each way to break off is seen by a client of another make."""
    with LoopbackServer([reply]) as server, pytest.raises(error):
        ask(server)


def test_a_stalled_server_stops_at_once() -> None:
    """A reply that stalls holds its connection until the client leaves or the server stops."""
    with LoopbackServer([ServerReply(wire=b"", steps=(Then.STALL,))]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.2)
        connection.request("GET", "/")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        began = time.monotonic()
    assert time.monotonic() - began < 4
    connection.close()


def test_the_proxy_forwards_tunnels_and_asks_for_a_login() -> None:
    """A client of another make gets through it both ways, and is refused without the login."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    ok = ServerReply.of_json("ok", headers={"connection": "close"})
    with LoopbackServer(always=ok) as plain, LoopbackServer(always=ok, tls=context) as secure, LoopbackProxy() as proxy:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy.url, "https": proxy.url}),
            urllib.request.HTTPSHandler(context=trusting),
        )
        for server in (plain, secure):
            with opener.open(f"{server.url}/x?y=1", timeout=5) as response:
                assert response.read() == b'"ok"'
            assert server.requests[0].target == "/x?y=1"
        assert proxy.asked == [f"GET {plain.url}/x?y=1", f"CONNECT 127.0.0.1:{secure.port}"]
        with LoopbackProxy(login="a:b") as guarded:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": guarded.url}))
            with pytest.raises(HTTPError, match="407"):
                opener.open(f"{plain.url}/", timeout=5)
