"""Which proxy the environment asks for: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and the exceptions in NO_PROXY.

A bare transport of httpx reads none of them. Lower-case names win, and HTTP_PROXY is ignored inside a CGI script,
as `urllib.request.getproxies` has it. NO_PROXY follows curl's manual of version 8 ("--noproxy").
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.request import getproxies

__all__ = ["bypasses", "proxy_for"]


def proxy_for(scheme: str, host: str, port: int, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the proxy's address for an origin, or None for a direct connection.

    Args:
        scheme: "http" or "https".
        host: The server's name or address, without brackets.
        port: Its port.
        environment: Addresses by scheme, with the exceptions under "no"; left out, those of the process.
    """
    known = getproxies() if environment is None else environment
    address = (known.get(scheme) or known.get("all") or "").strip()
    if not address or bypasses(known.get("no", ""), host, port):
        return None
    return address if "://" in address else f"http://{address}"


def bypasses(no_proxy: str, host: str, port: int) -> bool:
    """Tell whether NO_PROXY excepts a server.

    Entries are separated by commas or spaces: `*` for all; a name for itself and what is below it, with or without a
    leading dot; an address; a network such as `10.0.0.0/8`; each with `:port` if it is meant for that port only.
    """
    host = host.lower().rstrip(".")
    for entry in no_proxy.replace(",", " ").lower().split():
        if entry == "*":
            return True
        name, wanted = _split_port(entry.partition("://")[2] or entry)
        if wanted in {None, port} and _matches(name, host):
            return True
    return False


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, int(rest[1:]) if rest[1:].isdecimal() else None
    name, colon, port = entry.rpartition(":")
    if colon and ":" not in name and port.isdecimal():
        return name, int(port)
    return entry, None


def _matches(name: str, host: str) -> bool:
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
