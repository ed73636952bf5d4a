import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from atlas_core.errors import ProviderError, SettingsError
from atlas_core.http import HttpClient, RetryPolicy, Secret, _backend
from atlas_core.testing import LoopbackProxy, LoopbackServer, ServerReply

OK = ServerReply.of_json({"ok": True})
ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return an authority that nobody knows."""
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """Return a server's context with a certificate of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SSL_CERT_FILE name the test's own authority."""
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


@pytest.fixture
def proxy() -> Iterator[LoopbackProxy]:
    """Return a running proxy."""
    with LoopbackProxy() as running:
        yield running


async def ask(url: str, **options: object) -> object:
    """Send two requests and return what they answer."""
    async with HttpClient(url, retry=ONCE, **options) as client:  # type: ignore[arg-type]
        first = (await client.post_json("x", b"{}")).json()
        assert (await client.post_json("x", b"{}")).json() == first
        return first


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_the_environments_proxy_forwards_plain_requests(
    name: str, proxy: LoopbackProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy variable sends requests through a real proxy, as whole addresses."""
    monkeypatch.setenv(name, proxy.url)
    with LoopbackServer(always=OK) as server:
        assert await ask(server.url) == {"ok": True}
        assert proxy.asked[0] == f"POST {server.url}/x"
        assert server.requests[0].path == "/x"


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "*", "127.0.0.0/8", "example.org, 127.0.0.1:{port}"])
async def test_no_proxy_goes_directly(no_proxy: str, proxy: LoopbackProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What NO_PROXY names is asked without the proxy."""
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with LoopbackServer(always=OK) as server:
        monkeypatch.setenv("NO_PROXY", no_proxy.format(port=server.port))
        assert await ask(server.url) == {"ok": True}
    assert proxy.asked == []


async def test_a_given_proxy_goes_before_the_environments(
    proxy: LoopbackProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address given is used whatever the environment says, and "" means none."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "*")
    with LoopbackServer(always=OK) as server:
        assert await ask(server.url, proxy=proxy.url) == {"ok": True}
        assert len(proxy.asked) >= 1
        monkeypatch.delenv("NO_PROXY")
        assert await ask(server.url, proxy="") == {"ok": True}


@pytest.mark.usefixtures("trusted")
async def test_tls_goes_through_a_tunnel(
    proxy: LoopbackProxy, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY opens a tunnel, and the server's certificate is checked at its other end."""
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    with LoopbackServer(always=OK, tls=tls) as server:
        assert await ask(server.url) == {"ok": True}
        assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port}"]


@pytest.mark.usefixtures("trusted")
async def test_a_proxy_may_speak_tls_itself(tls: ssl.SSLContext) -> None:
    """An https:// proxy is asked over TLS for a plain server."""
    with LoopbackServer(always=OK) as server, LoopbackProxy(tls=tls) as secure:
        assert await ask(server.url, proxy=secure.url) == {"ok": True}
        assert secure.asked[0].startswith("POST http://")


@pytest.mark.parametrize("secure", [False, True], ids=["forwarded", "tunnelled"])
@pytest.mark.usefixtures("trusted")
async def test_a_proxys_login_is_sent_to_it_alone(tls: ssl.SSLContext, *, secure: bool) -> None:
    """The login in the proxy's address opens the proxy; a wrong one is told without it."""
    with LoopbackServer(always=OK, tls=tls if secure else None) as server, LoopbackProxy(login="me:pw1234") as guarded:
        assert await ask(server.url, proxy=Secret(guarded.url.replace("://", "://me:pw1234@"))) == {"ok": True}
        with pytest.raises(ProviderError, match="407") as caught:
            await ask(server.url, proxy=guarded.url.replace("://", "://me:TESTSECRET@"))
    assert not caught.value.retryable
    assert "TESTSECRET" not in str(caught.value)
    if secure:
        assert f"the proxy {guarded.url} refused: 407" in str(caught.value)


async def test_a_proxy_that_is_not_there_is_named() -> None:
    """The error tells that the way led through a proxy, without its login."""
    with pytest.raises(
        ProviderError, match=r"no connection to http://h\.example through the proxy http://127\.0\.0\.1:1:"
    ) as caught:
        await ask("http://h.example", proxy="http://me:TESTSECRET@127.0.0.1:1")
    assert "check that the proxy http://127.0.0.1:1 runs" in str(caught.value)
    assert "TESTSECRET" not in str(caught.value)
    assert "base_url" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["ftp://127.0.0.1:1", "http://", "nonsense"])
def test_a_proxy_that_can_t_be_used_is_refused_at_once(proxy: str) -> None:
    """A wrong address is an error of the settings."""
    with pytest.raises(SettingsError, match=r"proxy is .*expected http:// or https:// or socks5:// or socks5h://"):
        HttpClient("http://h", proxy=proxy)


async def test_an_environments_proxy_that_can_t_be_used_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that the environment is wrong, not the settings file."""
    monkeypatch.setenv("ALL_PROXY", "gopher://me:TESTSECRET@h:1")
    with pytest.raises(SettingsError, match="the proxy that the environment names is 'gopher://h:1'"):
        await ask("http://h")


async def test_a_socks_proxy_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without socksio the error says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "socksio", None)
    with pytest.raises(SettingsError, match=r"pip install 'httpx\[socks\]'"):
        await ask("http://h", proxy="socks5://127.0.0.1:1")


@pytest.mark.usefixtures("trusted")
async def test_all_connections_share_one_context(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the authorities is dear, so it is done once, and only where TLS is spoken."""
    made: list[ssl.SSLContext] = []
    import httpx

    original = httpx.create_ssl_context
    monkeypatch.setattr(_backend, "_contexts", {})
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: made.append(original()) or made[-1])  # type: ignore[func-returns-value]
    with LoopbackServer(always=OK) as plain, LoopbackServer(always=OK, tls=tls) as server:
        await ask(plain.url)
        assert made == []
        await ask(server.url)
        await ask(server.url)
        assert len(made) == 1


async def test_a_certificate_that_nobody_vouches_for_is_refused(tls: ssl.SSLContext) -> None:
    """An unknown authority is not tried again, and the error says how to name it."""
    with LoopbackServer(always=OK, tls=tls) as server, pytest.raises(ProviderError, match="SSL_CERT_FILE") as caught:
        await ask(server.url)
    assert "the certificate of https://127.0.0.1" in str(caught.value)
    assert not caught.value.retryable
