"""An httpx transport that connects to addresses checked beforehand, and to no others."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence

import httpx

from atlas_standard_tools._addresses import Address

__all__ = ["PinnedTransport"]

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address that `resolve` returned for its host.

    The name is looked up once and the connection is made to the address that was checked, so a name server can't
    answer differently the second time. Host header and TLS server name stay the host's. No proxy is used, whatever
    the environment says: a proxy would resolve the name itself.

    Args:
        resolve: Returns the checked addresses of a host and port.
        context: TLS settings; certificates are verified against the host's name.
    """

    def __init__(self, resolve: Resolver, *, context: ssl.SSLContext) -> None:
        self._resolve = resolve
        # No connection is kept: one to an address may be reused only for the host it was opened for.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first of the host's addresses that takes the connection."""
        url = request.url
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        addresses = await self._resolve(_host(url), port)
        problem: httpx.TransportError | None = None
        for address in addresses:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
                problem = exc
        raise problem or httpx.ConnectError(f"{url.host} has no address", request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _pinned(request: httpx.Request, address: Address) -> httpx.Request:
    # The headers, Host among them, were made for the original URL and are passed on as they are.
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        extensions={**request.extensions, "sni_hostname": _host(request.url)},
    )


def _host(url: httpx.URL) -> str:
    return url.raw_host.decode("ascii").strip("[]")  # in the form that goes over the wire: xn--..., not its letters
