"""Which addresses a page may be fetched from: those of the global internet, and networks that were named."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

__all__ = ["Address", "AddressError", "is_global", "resolve", "run_in_thread"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_T = TypeVar("_T")

# Python's `is_global` changes with its version and calls multicast global; these are named whatever it says.
# Source: IANA special-purpose address registries for IPv4 and IPv6, as of 2025.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
        "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    )
]  # fmt: skip
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")


class AddressError(ValueError):
    """A host can't be resolved, or resolves to an address that may not be reached."""


def inner(address: Address) -> Address:
    """Return the IPv4 address that a mapped or NAT64 address leads to; any other as it is."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if int(address) >> 32 == 0 and int(address) > 1:  # the old "IPv4-compatible" form, ::a.b.c.d
            return ipaddress.IPv4Address(int(address))
    return address


def is_global(address: Address) -> bool:
    """Tell whether an address belongs to the global internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return False
    real = inner(address)
    if any(real in network for network in _NEVER if network.version == real.version):
        return False
    return real.is_global and (isinstance(real, ipaddress.IPv4Address) or real in _UNICAST)


def may_reach(address: Address, allowed: Sequence[Network]) -> bool:
    """Tell whether an address is global, or in one of the networks that were named."""
    real = inner(address)
    return is_global(address) or any(real in net for net in allowed if net.version == real.version)


async def resolve(host: str, port: int, allowed: Sequence[Network]) -> list[Address]:
    """Return the addresses of a host, all of them checked.

    Raises:
        AddressError: There are none, or one of them may not be reached: a name with both kinds is one that an
            attacker points inwards.
    """
    try:
        found = await run_in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as exc:
        raise AddressError(f"the host {host[:100]!r} can't be found; check its spelling") from exc
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0])) for entry in found))
    if not addresses or not all(may_reach(address, allowed) for address in addresses):
        raise AddressError(
            f"the host {host[:100]!r} is not on the public internet, so it is not fetched; a network can be "
            "allowed with plugins.options.standard-tools.fetch.allowed_private_networks"
        )
    return addresses


async def run_in_thread(function: Callable[[], _T]) -> _T:
    """Run a function that blocks, in a daemon thread.

    Not in the event loop's own pool: that is waited for at the end of the program, and a name server that does not
    answer, or a page that takes minutes to parse, would hold it up.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(act: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            act(value)

    def work() -> None:
        act, value = future.set_result, None
        try:
            value = function()
        except BaseException as exc:  # noqa: BLE001  # handed to the one who waits
            act, value = future.set_exception, exc  # type: ignore[assignment]
        try:
            loop.call_soon_threadsafe(settle, act, value)
        except RuntimeError:
            return  # the loop was closed meanwhile; nobody waits

    threading.Thread(target=work, name="atlas-fetch", daemon=True).start()
    return await future
