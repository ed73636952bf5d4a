from __future__ import annotations

import asyncio
import gzip
import ipaddress
import re
import ssl
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from atlas_standard_tools._addresses import Address
from atlas_standard_tools._spoken_files import read_address
from atlas_standard_tools._transport import PinnedTransport
from atlas_standard_tools.fetch import Fetcher
from atlas_standard_tools.options import FetchOptions

from atlas_core import ToolError

# --- a loopback server whose every byte the test decides

Answer = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """One request as the server saw it."""

    path: str
    headers: dict[str, str]


@dataclass
class Site:
    """A running server and what it was asked."""

    host: str
    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)

    def url(self, path: str = "/", *, host: str | None = None) -> str:
        return f"{self.scheme}://{host or self.host}:{self.port}{path}"


Serve = Callable[..., Awaitable[Site]]


def page(body: bytes | str, *headers: str, status: str = "200 OK", length: int | None = None) -> Answer:
    """Return an answer that sends this body."""
    data = body.encode() if isinstance(body, str) else body

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data) if length is None else length}", *headers]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + data)
        await writer.drain()

    return answer


def redirect(target: str, *headers: str) -> Answer:
    """Return an answer that sends the client elsewhere."""
    return page("", f"Location: {target}", *headers, status="302 Found")


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start servers on loopback addresses; each answers by path, and closes the connection."""
    servers: list[asyncio.Server] = []

    async def start(
        answers: dict[str, Answer] | Answer, *, host: str = "127.0.0.1", context: ssl.SSLContext | None = None
    ) -> Site:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                pairs = (line.split(": ", 1) for line in head[1:] if ": " in line)
                request = Request(head[0].split(" ")[1], {name.lower(): value for name, value in pairs})
                site.requests.append(request)
                answer = answers[request.path] if isinstance(answers, dict) else answers
                await answer(request, writer)
            except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(handle, host, 0, ssl=context)
        servers.append(server)
        site = Site(host, server.sockets[0].getsockname()[1], "https" if context else "http")
        return site

    yield start
    for server in servers:
        server.close()


def _fetcher(*sites: Site, networks: tuple[str, ...] = ("127.0.0.1/32",), **options: Any) -> Fetcher:
    """A fetcher that may reach the first loopback address, where the tests' "public" servers are."""
    ports = tuple(site.port for site in sites) or (80,)
    return Fetcher(FetchOptions(enabled=True, allowed_private_networks=networks, allowed_ports=ports, **options))


async def test_a_page_becomes_text(serve: Serve) -> None:
    """Title, words and links are kept; scripts are not. The server sees a plain request."""
    html = (
        "<html><head><title>A  page</title><style>x{}</style></head><body><h1>Hi</h1><script>evil()</script>"
        "<p>See <a href='/more'>more</a> and <a href='javascript:x'>not this</a>.</p></body></html>"
    )
    site = await serve(page(html, "Content-Type: text/html; charset=utf-8"))
    text = await _fetcher(site).fetch_url(site.url("/a?b=c#frag"))
    assert text == f"URL: {site.url('/a?b=c')}\n\n# A page\n\n# Hi\n\nSee [more]({site.url('/more')}) and not this."
    request = site.requests[0]
    assert request.path == "/a?b=c"
    assert request.headers["host"] == f"127.0.0.1:{site.port}"
    assert request.headers["user-agent"] == "atlas-standard-tools"
    assert not {"cookie", "authorization", "referer"} & request.headers.keys()


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"plain", "text/plain", "plain"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        ("é".encode(), "text/plain", "é"),
        (b"caf\xe9", "text/plain", "café"),
        (b"x", "text/plain; charset=klingon", "x"),
        (b"\x89PNG\0\0", "image/png", "[image/png, 6 bytes: no text]"),
        (b"\0\1\2", "text/plain", "[text/plain, 3 bytes: no text]"),
        ("<meta charset=latin-1><p>é".encode("latin-1"), "text/html", "é"),
        ("<p>é".encode("utf-16"), "text/html; charset=utf-16", "é"),
        (b"<?xml version='1.0'?><html><body>x</body></html>", "application/xhtml+xml", "x"),
        (b"http://just.text/", "text/html", "http://just.text/"),
        (b"<head><p>unclosed", "text/html", "unclosed"),
    ],
)
async def test_each_type_is_shown_as_what_it_is(serve: Serve, body: bytes, header: str, text: str) -> None:
    """Text in its charset, other types described."""
    site = await serve(page(body, f"Content-Type: {header}"))
    assert await _fetcher(site).fetch_url(site.url()) == f"URL: {site.url()}\n\n{text}"


async def test_a_page_without_a_type_is_looked_at(serve: Serve) -> None:
    """What begins with a tag is HTML."""
    site = await serve({"/a": page("<b>x</b>"), "/b": page("x < y")})
    fetcher = _fetcher(site)
    assert (await fetcher.fetch_url(site.url("/a"))).endswith("\n\n**x**")
    assert (await fetcher.fetch_url(site.url("/b"))).endswith("\n\nx < y")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file:///etc/passwd", "only http:// and https://"),
        ("ftp://example.com/", "only http:// and https://"),
        ("gopher://example.com/", "only http:// and https://"),
        ("data:text/html,x", "only http:// and https://"),
        ("javascript:alert(1)", "only http:// and https://"),
        ("example.com", "only http:// and https://"),
        ("//example.com/", "only http:// and https://"),
        ("http://", "only http:// and https://"),
        ("", "only http:// and https://"),
        ("http://[::1", "is no address"),
        ("http://xn--/", "'http://xn--/' is no address"),
        ("http://xn--:0/", "is no address"),
        ("http://example.com/\x01", "is no address"),
        ("ftp://user:hunter2@example.com/", "user name or password"),
        ("http://exa mple.com/", "can't be found"),
        ("http://example.com:99999/", "port 99999 is not among"),
        ("http://user:hunter2@example.com/", "user name or password"),
        ("http://example.com:22/", "port 22 is not among those allowed (80, 443)"),
        ("http://127.0.0.1/", "not on the public internet"),
        ("http://localhost/", "not on the public internet"),
        ("http://2130706433/", "not on the public internet"),
        ("http://0x7f.1/", "not on the public internet"),
        ("http://[::1]/", "not on the public internet"),
        ("http://[::ffff:127.0.0.1]/", "not on the public internet"),
        ("http://[64:ff9b::7f00:1]/", "not on the public internet"),
        ("http://169.254.169.254/latest/meta-data/", "not on the public internet"),
        ("http://0.0.0.0/", "not on the public internet"),
        ("http://no.such.host.invalid/", "can't be found"),
        ("http://" + "x" * 5000, "can't be found"),
    ],
)
async def test_other_addresses_are_refused(url: str, text: str) -> None:
    """By scheme, form, port and network; the refusal says which, and never repeats a password. Case 132."""
    fetcher = Fetcher(FetchOptions(enabled=True))
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        await fetcher.fetch_url(url)
    assert len(str(caught.value)) < 600
    assert "hunter2" not in str(caught.value)


# --- redirects


async def test_redirects_are_followed_and_the_last_address_is_told(serve: Serve) -> None:
    """A relative target is completed; cookies set on the way are not sent on. Case 132."""
    site = await serve(
        {
            "/": redirect("/b", "Set-Cookie: secret=1; Path=/"),
            "/b": redirect("c?x=1", "Set-Cookie: more=2; Path=/"),
            "/c?x=1": page("end", "Content-Type: text/plain"),
        }
    )
    assert await _fetcher(site).fetch_url(site.url()) == f"URL: {site.url('/c?x=1')}\n\nend"
    assert [r.path for r in site.requests] == ["/", "/b", "/c?x=1"]
    assert not any("cookie" in r.headers for r in site.requests)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("http://127.0.0.2:{port}/", "not on the public internet"),
        ("//127.0.0.2:{port}/", "not on the public internet"),
        ("http://[::ffff:127.0.0.2]:{port}/", "not on the public internet"),
        ("http://169.254.169.254:{port}/latest/", "not on the public internet"),
        ("http://127.0.0.1:22/", "port 22 is not among those allowed"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("ftp://127.0.0.1:{port}/", "only http:// and https://"),
        ("http://user:hunter2@127.0.0.1:{port}/", "user name or password"),
        ("http://[::1", "Invalid URL in location"),
        ("http://xn--:{port}/", "leads to an address that is none"),
        ("//xn--/", "leads to an address that is none"),
    ],
)
async def test_each_hop_is_checked_anew(serve: Serve, target: str, text: str) -> None:
    """A public page can't send the tool inwards: the inner server sees no request. Case 132."""
    inner = await serve(page("INTERNAL"), host="127.0.0.2")
    outer = await serve(redirect(target.format(port=inner.port)))
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        await _fetcher(outer, inner).fetch_url(outer.url())
    assert inner.requests == []
    assert len(outer.requests) == 1
    assert "hunter2" not in str(caught.value)


async def test_a_chain_of_twenty_redirects_is_cut(serve: Serve) -> None:
    """At most so many hops as the option says; a loop is such a chain. Case 132."""
    site = await serve({f"/{n}": redirect(f"/{n + 1}") for n in range(20)} | {"/loop": redirect("/loop")})
    fetcher = _fetcher(site, max_redirects=5)
    with pytest.raises(ToolError, match="redirects over 5 times"):
        await fetcher.fetch_url(site.url("/0"))
    assert [r.path for r in site.requests] == [f"/{n}" for n in range(6)]
    with pytest.raises(ToolError, match="redirects over 5 times"):
        await fetcher.fetch_url(site.url("/loop"))
    with pytest.raises(ToolError, match="redirects over 0 times"):
        await _fetcher(site, max_redirects=0).fetch_url(site.url("/0"))


async def test_a_redirect_without_a_target_is_an_error(serve: Serve) -> None:
    """As are the answers that are no success."""
    site = await serve({"/a": page("", status="302 Found"), "/b": page("gone", status="404 Not Found")})
    fetcher = _fetcher(site)
    with pytest.raises(ToolError, match="answered '302 Found'"):
        await fetcher.fetch_url(site.url("/a"))
    with pytest.raises(ToolError, match=f"answered '404 Not Found' for '{site.url('/b')}'"):
        await fetcher.fetch_url(site.url("/b"))


# --- bounds


async def _endless(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x" * 1000)
        await writer.drain()


async def test_a_body_without_end_is_cut(serve: Serve) -> None:
    """At the byte, with a note, and the connection is closed. Case 132."""
    site = await serve(_endless)
    text = await _fetcher(site, max_bytes=5000).fetch_url(site.url())
    assert text == f"URL: {site.url()}\n\n{'x' * 5000}\n\n[cut after 5000 bytes; the page is longer]"


async def test_a_body_of_exactly_the_limit_is_whole(serve: Serve) -> None:
    """The limit is the last size that is not cut."""
    site = await serve(page("x" * 5000, "Content-Type: text/plain"))
    assert (await _fetcher(site, max_bytes=5000).fetch_url(site.url())).endswith("x")
    assert (await _fetcher(site, max_bytes=4999).fetch_url(site.url())).endswith(
        "[cut after 4999 bytes; the page is longer]"
    )


@pytest.mark.parametrize(
    ("claimed", "text"), [(100, "[the server ended the page early; this is what came]"), (3, "12")]
)
async def test_a_lying_content_length_is_borne(serve: Serve, claimed: int, text: str) -> None:
    """Too long a claim is said; of too short a one, what was claimed is read. Case 132."""
    site = await serve(page("1234567890", "Content-Type: text/plain", length=claimed))
    result = await _fetcher(site).fetch_url(site.url())
    assert text in result
    assert ("4567" in result) == (claimed == 100)


async def test_a_huge_content_length_allocates_nothing(serve: Serve) -> None:
    """What counts is what comes."""
    site = await serve(page("short", "Content-Type: text/plain", length=10**18))
    assert "short" in await _fetcher(site).fetch_url(site.url())


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
async def test_packed_bodies_are_unpacked(serve: Serve, kind: str) -> None:
    """In both forms that are asked for."""
    data = b"hello " * 100
    packed = gzip.compress(data) if kind == "gzip" else zlib.compress(data)
    site = await serve(page(packed, "Content-Type: text/plain", f"Content-Encoding: {kind}"))
    assert (await _fetcher(site).fetch_url(site.url())).endswith("hello " * 100)
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_bare_deflate_stream_is_unpacked_too(serve: Serve) -> None:
    """Some servers send it without the frame that the standard wants."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(b"hello") + packer.flush()
    site = await serve(page(packed, "Content-Type: text/plain", "Content-Encoding: deflate"))
    assert (await _fetcher(site).fetch_url(site.url())).endswith("hello")


async def test_a_bomb_does_not_go_off(serve: Serve) -> None:
    """200 MB packed into 200 kB: only what the limit allows is ever unpacked."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(b"0" * 10**6) for _ in range(200)) + packer.flush()
    site = await serve(page(bomb, "Content-Type: text/plain", "Content-Encoding: gzip"))
    fetcher = _fetcher(site, max_bytes=100_000)
    await fetcher.fetch_url(site.url())  # loads what is loaded once
    tracemalloc.start()
    try:
        text = await fetcher.fetch_url(site.url())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.endswith("[cut after 100000 bytes; the page is longer]")
    assert peak < 20_000_000


@pytest.mark.parametrize(
    ("body", "encoding", "text"),
    [
        (b"no gzip", "gzip", "can't be unpacked"),
        (b"\xff\xff no deflate", "deflate", "can't be unpacked"),
        (b"x", "br", "packed as 'br', which was not asked for"),
        (b"x", "gzip, gzip", "packed as 'gzip, gzip'"),
    ],
)
async def test_what_can_t_be_unpacked_is_said(serve: Serve, body: bytes, encoding: str, text: str) -> None:
    """Broken packing, and packing that was not asked for."""
    site = await serve(page(body, f"Content-Encoding: {encoding}"))
    with pytest.raises(ToolError, match=re.escape(text)):
        await _fetcher(site).fetch_url(site.url())


async def test_a_packed_body_that_ends_early_is_said(serve: Serve) -> None:
    """The framing was right, the packing inside was cut."""
    packed = gzip.compress(bytes(range(256)) * 50)[:-30]
    site = await serve(page(packed, "Content-Type: text/plain; charset=latin-1", "Content-Encoding: gzip"))
    assert "[the server ended the page early" in await _fetcher(site).fetch_url(site.url())


@pytest.mark.parametrize("slow", ["headers", "body", "redirects"])
async def test_the_time_limit_covers_the_whole_call(serve: Serve, slow: str) -> None:
    """However the server spends it: before the headers, a byte at a time, or hop by hop. Case 132."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        if slow == "headers":
            await asyncio.sleep(30)
        if slow == "redirects":
            await asyncio.sleep(0.2)
            await redirect("/again")(request, writer)
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    site = await serve(answer)
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"was not loaded within 0\.5 s"):
        await _fetcher(site, timeout_s=0.5, max_redirects=20).fetch_url(site.url())
    assert time.monotonic() - began < 5


async def test_a_cancelled_call_stays_cancelled(serve: Serve) -> None:
    """Cancellation is no time-out and no tool error."""
    site = await serve(_endless)
    task = asyncio.ensure_future(_fetcher(site, max_bytes=10**8).fetch_url(site.url()))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 20_000 + "deep" + "</div>" * 20_000,
        "<b><i>" * 5000 + "deep",
        "<" * 50_000 + "deep",
        "<!--" * 20_000,
        "&#" * 50_000,
    ],
    ids=["nested", "unclosed", "open angles", "open comments", "broken entities"],
)
async def test_a_hostile_page_is_survived(serve: Serve, html: str) -> None:
    """Nesting beyond any stack, and markup that never closes."""
    site = await serve(page(html, "Content-Type: text/html"))
    text = await _fetcher(site).fetch_url(site.url())
    assert text.startswith("URL: ")
    assert "deep" in text or "deep" not in html


# --- the connection


async def test_a_dead_server_is_explained(serve: Serve) -> None:
    """One that refuses the connection, and one that hangs up."""

    async def hang_up(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    site = await serve(hang_up)
    with pytest.raises(ToolError, match="can't be loaded"):
        await _fetcher(site).fetch_url(site.url())
    fetcher = Fetcher(FetchOptions(enabled=True, allowed_private_networks=("127.0.0.1/32",), allowed_ports=(1,)))
    with pytest.raises(ToolError, match=r"'http://127\.0\.0\.1:1/' can't be loaded"):
        await fetcher.fetch_url("http://127.0.0.1:1/")


async def test_a_name_with_several_addresses_is_tried_in_turn(serve: Serve) -> None:
    """Localhost may be ::1 first, where nobody listens."""
    site = await serve(page("here", "Content-Type: text/plain"))
    fetcher = _fetcher(site, networks=("127.0.0.0/8", "::1/128"))
    assert (await fetcher.fetch_url(site.url(host="localhost"))).endswith("here")
    assert site.requests[0].headers["host"] == f"localhost:{site.port}"


async def test_the_connection_goes_to_the_address_that_was_checked(serve: Serve) -> None:
    """The name is looked up once per request and not again for the connection; the header keeps it. Case 132."""
    site = await serve(page("pinned"))
    asked: list[tuple[str, int]] = []

    async def lookup(host: str, port: int) -> list[Address]:
        asked.append((host, port))
        return [ipaddress.ip_address("127.0.0.3"), ipaddress.ip_address("127.0.0.1")]

    transport = PinnedTransport(lookup, context=ssl.create_default_context())
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        response = await client.get(f"http://rebind.example:{site.port}/")
    assert response.text == "pinned"
    assert asked == [("rebind.example", site.port)]
    assert site.requests[0].headers["host"] == f"rebind.example:{site.port}"


async def test_a_name_without_addresses_is_a_connection_error() -> None:
    """The transport does not fall back to looking it up itself."""

    async def lookup(host: str, port: int) -> list[Address]:
        return []

    transport = PinnedTransport(lookup, context=ssl.create_default_context())
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="has no address"):
            await client.get("http://nowhere.example/")


async def test_no_proxy_of_the_environment_is_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would look names up itself, past every check."""
    proxy = await serve(page("PROXIED"))
    site = await serve(page("direct", "Content-Type: text/plain"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url())
    assert (await _fetcher(site).fetch_url(site.url())).endswith("direct")
    assert proxy.requests == []


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """A certificate authority of the test's own, its certificate in ca.pem."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return ca


def _tls(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


LOOPBACK = ("127.0.0.0/8", "::1/128")


async def test_tls_is_verified_for_the_name_though_the_address_is_pinned(
    serve: Serve, authority: trustme.CA, tmp_path: Path
) -> None:
    """The server is told the name, and its certificate must be for the name."""
    context = _tls(authority, "localhost")
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    site = await serve(page("safe", "Content-Type: text/plain"), context=context)
    fetcher = _fetcher(site, networks=LOOPBACK, ca_file=tmp_path / "ca.pem")
    assert (await fetcher.fetch_url(site.url(host="localhost"))).endswith("safe")
    assert names == ["localhost"]


async def test_a_certificate_for_another_name_is_refused(serve: Serve, authority: trustme.CA, tmp_path: Path) -> None:
    """As is one that nobody known has signed."""
    site = await serve(page("x"), context=_tls(authority, "other.example"))
    with pytest.raises(ToolError, match="CERTIFICATE_VERIFY_FAILED"):
        await _fetcher(site, networks=LOOPBACK, ca_file=tmp_path / "ca.pem").fetch_url(site.url(host="localhost"))
    with pytest.raises(ToolError, match="CERTIFICATE_VERIFY_FAILED"):
        await _fetcher(site, networks=LOOPBACK).fetch_url(site.url(host="localhost"))
    assert site.requests == []


async def test_a_redirect_from_https_to_http_is_refused(serve: Serve, authority: trustme.CA, tmp_path: Path) -> None:
    """What was to come safely does not come in the clear. Case 132."""
    plain = await serve(page("CLEAR"))
    site = await serve(redirect(plain.url()), context=_tls(authority, "localhost"))
    with pytest.raises(ToolError, match="leads from https to http"):
        await _fetcher(site, plain, networks=LOOPBACK, ca_file=tmp_path / "ca.pem").fetch_url(
            site.url(host="localhost")
        )
    assert plain.requests == []


async def test_a_missing_file_of_certificates_names_the_option(tmp_path: Path) -> None:
    """The error says which setting to change."""
    fetcher = Fetcher(FetchOptions(enabled=True, ca_file=tmp_path / "nope.pem"))
    with pytest.raises(ToolError, match=r"standard-tools\.fetch\.ca_file"):
        await fetcher.fetch_url("https://example.com/")


@pytest.mark.parametrize(
    ("question", "url"),
    [
        ("Fetch https://example.com/", "https://example.com/"),
        ("open the page http://example.com/a?b=1.", "http://example.com/a?b=1"),
        ("get https://example.com and add 2", None),
        ("fetch example.com", None),
        ("what is https://example.com", None),
        ("", None),
    ],
)
def test_requests_to_fetch_are_read(question: str, url: str | None) -> None:
    """One full address and nothing else."""
    assert read_address(question) == (None if url is None else {"url": url})


async def test_a_cut_page_may_end_within_a_character(serve: Serve) -> None:
    """The half of it is dropped; the rest does not turn into another encoding."""
    site = await serve(page("é" * 10, "Content-Type: text/plain; charset=utf-8"))
    assert "\n\nééé\n\n[cut after 7 bytes" in await _fetcher(site, max_bytes=7).fetch_url(site.url())
