"""The only module that knows httpx; what takes its place one day is changed here.

Uses httpx's bare asynchronous transport, not its client: the client's layers (redirects, cookies, logins, hooks,
a pool that looks at every connection at each request) cost more than the transport itself. What users rely on of
them is here and in `proxies`: default headers, decoding, proxies.
"""

from __future__ import annotations

import importlib.util
import os
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from atlas_core.errors import ServiceNotReadyError, SettingsError
from atlas_core.http.failures import Fault

if TYPE_CHECKING:
    import httpx

    from atlas_core.http.secret import RawHeaders
    from atlas_core.http.values import Timeouts

__all__ = ["Connection", "Reply", "accepted_encodings", "check_installed", "connect", "fault_of", "full_url"]

_lock = threading.Lock()
_contexts: dict[tuple[str, str], ssl.SSLContext] = {}


def check_installed() -> None:
    """Make sure that what the extra `http` brings is there.

    Raises:
        ServiceNotReadyError: A distribution is missing.
    """
    missing = [name for name in ("httpx", "httpx_sse", "stamina") if importlib.util.find_spec(name) is None]
    if missing:
        raise ServiceNotReadyError(
            f"HTTP needs {', '.join(missing)}, not installed here", remedy="pip install 'atlas-kernel[http]'"
        )


def ssl_context() -> ssl.SSLContext:
    """Return the one context for all connections: reading the authorities costs 22 ms and 2.5 MB.

    Honours SSL_CERT_FILE and SSL_CERT_DIR, as they stand at the time of the first connection.
    """
    import httpx

    key = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    with _lock:
        if key not in _contexts:
            _contexts[key] = httpx.create_ssl_context()
        return _contexts[key]


@cache
def _no_context() -> ssl.SSLContext:
    # For transports that speak no TLS; trusts nobody, should one be used for TLS after all.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def accepted_encodings() -> str:
    """Return the `Accept-Encoding` that matches what can be decoded."""
    return ", ".join(name for name in ("gzip", "deflate", "br", "zstd") if name in _decodable())


@cache
def _decodable() -> frozenset[str]:
    names = {"gzip", "deflate", "identity"}
    if importlib.util.find_spec("brotli") or importlib.util.find_spec("brotlicffi"):
        names.add("br")
    if importlib.util.find_spec("zstandard"):
        names.add("zstd")
    return frozenset(names)


def full_url(url: str) -> httpx.URL:
    """Return an address in the library's own form.

    Raises:
        SettingsError: It is no address.
    """
    import httpx

    try:
        return httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        # The text would quote the address, which may hold a key.
        raise SettingsError("the server's address can't be read as a URL", remedy="check base_url and path") from None


class Connection:
    """A transport with one connection at most, opened when first used."""

    __slots__ = ("_transport", "idle_since", "used")

    def __init__(self, transport: httpx.AsyncHTTPTransport) -> None:
        self._transport = transport
        self.used = False
        self.idle_since = 0.0

    async def send(self, method: str, url: httpx.URL, headers: RawHeaders, body: bytes, timeouts: Timeouts) -> Reply:
        """Send a request and return the answer once its headers are there.

        Raises whatever the transport raises; `fault_of` tells what that stands for.
        """
        import httpx

        waits = {"connect": timeouts.connect_s, "read": timeouts.read_s, "write": timeouts.write_s, "pool": None}
        response = await self._transport.handle_async_request(
            httpx.Request(
                method,
                url,
                headers=headers.reveal(len(body) if body or method == "POST" else None),
                stream=httpx.ByteStream(body),
                extensions={"timeout": waits},
            )
        )
        self.used = True
        return Reply(response, waits)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._transport.aclose()


class Reply:
    """An answer whose body has not been read yet.

    Attributes:
        status: The HTTP status.
        headers: Names in lower case; repeated ones joined by ", ".
    """

    __slots__ = ("_pieces", "_response", "_waits", "headers", "status")

    def __init__(self, response: httpx.Response, waits: dict[str, float | None]) -> None:
        self._response = response
        self._waits = waits
        self._pieces: AsyncIterator[bytes] | None = None
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers)

    def pieces(self, *, idle_s: float | None = None) -> AsyncIterator[bytes]:
        """Return the decoded body, piece by piece; call it once.

        Args:
            idle_s: The longest wait for each piece, in place of the time-out that the request was sent with.
        """
        if idle_s is not None:
            # The transport looks at the request's time-outs again when it begins with the body.
            self._waits["read"] = idle_s
        if "content-encoding" in self.headers:
            self._pieces = self._response.aiter_bytes()
        else:
            self._pieces = aiter(self._response.stream)  # type: ignore[arg-type]  # asynchronous, by the transport
        return self._pieces

    @property
    def unknown_encoding(self) -> str:
        """A content encoding that can't be decoded here, or ""."""
        named = self.headers.get("content-encoding", "").lower().split(",")
        return next((name for name in map(str.strip, named) if name and name not in _decodable()), "")

    async def aclose(self) -> None:
        """End the answer; its connection can be used again if the body was read to its end."""
        await self._response.aclose()
        if self._pieces is not None:
            await self._pieces.aclose()  # type: ignore[attr-defined]  # both kinds are asynchronous generators


def connect(scheme: str, proxy: str | None) -> Connection:
    """Return a new connection for an origin; nothing is sent yet.

    Args:
        scheme: "http" or "https".
        proxy: The proxy's address, login included, or None.
    Raises:
        SettingsError: The proxy's address is of an unknown kind, or SOCKS support is not installed.
    """
    import httpx

    secure = scheme == "https"
    through = None
    if proxy is not None:
        through = httpx.Proxy(proxy, ssl_context=ssl_context() if proxy.lower().startswith("https:") else None)
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=ssl_context() if secure else _no_context(), limits=_limits(), proxy=through
        )
    except ImportError:
        raise SettingsError(
            "the proxy speaks SOCKS, and socksio is not installed", remedy="pip install 'httpx[socks]'"
        ) from None
    return Connection(transport)


@cache
def _limits() -> httpx.Limits:
    import httpx

    # How long a connection may idle is the free list's business.
    return httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)


@dataclass(frozen=True, slots=True)
class _Row:
    fault: Fault
    names: tuple[str, ...]


_ROWS = (
    _Row(Fault.CONNECT_TIMEOUT, ("ConnectTimeout", "PoolTimeout")),
    _Row(Fault.READ_TIMEOUT, ("ReadTimeout", "TimeoutException")),
    _Row(Fault.WRITE_TIMEOUT, ("WriteTimeout",)),
    _Row(Fault.CONNECT, ("ConnectError",)),
    _Row(Fault.BROKEN, ("ReadError", "WriteError", "CloseError", "NetworkError", "RemoteProtocolError")),
    _Row(Fault.BROKEN, ("ProtocolError", "TransportError")),
    _Row(Fault.PROXY, ("ProxyError",)),
    _Row(Fault.ENCODING, ("DecodingError",)),
    _Row(Fault.REQUEST, ("LocalProtocolError", "UnsupportedProtocol", "InvalidURL", "CookieConflict")),
    _Row(Fault.REQUEST, ("RequestError", "HTTPError", "HTTPStatusError", "TooManyRedirects")),
    _Row(Fault.OTHER, ("StreamError", "StreamConsumed", "StreamClosed", "ResponseNotRead", "RequestNotRead")),
)


@cache
def faults() -> Mapping[type[BaseException], Fault]:
    """Return what each exception of the library stands for."""
    import httpx

    return {getattr(httpx, name): row.fault for row in _ROWS for name in row.names}


def fault_of(exc: BaseException) -> Fault:
    """Return what an exception of the transport stands for; `Fault.OTHER` for one that it should not raise."""
    known = faults()
    fault = next((known[kind] for kind in type(exc).__mro__ if kind in known), Fault.OTHER)
    if fault is Fault.CONNECT and _certificate_refused(exc):
        return Fault.CERTIFICATE
    return fault


def _certificate_refused(exc: BaseException | None) -> bool:
    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False
