from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from typing import Any

import pytest
from atlas_standard_tools._addresses import AddressError, is_global, may_reach, resolve, run_in_thread
from hypothesis import given
from hypothesis import strategies as st

GLOBAL = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "2606:4700:4700::1111",
    "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
]  # fmt: skip
CLOSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "5f00::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%1", "fec0::1", "ff02::1", "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("text", GLOBAL)
def test_addresses_of_the_internet_are_global(text: str) -> None:
    """Also where IPv4 is wrapped in IPv6."""
    assert is_global(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", CLOSED)
def test_all_other_addresses_are_not(text: str) -> None:
    """Private, local, reserved, documentation, multicast, cloud metadata, and each of them wrapped. Case 132."""
    assert not is_global(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_changes_nothing(address: ipaddress.IPv4Address) -> None:
    """Mapped and NAT64 forms are judged as what they lead to."""
    for prefix in (0xFFFF << 32, 0x64FF9B << 96):
        assert is_global(ipaddress.IPv6Address(prefix | int(address))) == is_global(address)


@given(st.ip_addresses())
def test_no_address_is_global_that_python_calls_private(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """The list of networks is at least as strict as the standard library."""
    if is_global(address):
        assert not address.is_loopback
        assert not address.is_link_local
        assert not address.is_multicast
        assert not address.is_unspecified


def test_a_network_can_be_allowed_and_opens_nothing_else() -> None:
    """The mapped form of an allowed address is allowed too."""
    allowed = [ipaddress.ip_network("10.1.0.0/16")]
    assert may_reach(ipaddress.ip_address("10.1.2.3"), allowed)
    assert may_reach(ipaddress.ip_address("::ffff:10.1.2.3"), allowed)
    assert may_reach(ipaddress.ip_address("8.8.8.8"), allowed)
    assert not may_reach(ipaddress.ip_address("10.2.0.1"), allowed)
    assert not may_reach(ipaddress.ip_address("::1"), allowed)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "0", "::1", "::ffff:127.0.0.1"]
)
async def test_each_spelling_of_loopback_is_refused(host: str) -> None:
    """What counts is the address that the system would connect to, not how it is written."""
    with pytest.raises(AddressError, match=r"not on the public internet|can't be found"):
        await resolve(host, 80, [])


@pytest.mark.parametrize("host", ["no.such.host.invalid", "", "a" * 300, "\0", "x..y"])
async def test_a_host_that_does_not_exist_is_said(host: str) -> None:
    """No other error escapes."""
    with pytest.raises(AddressError):
        await resolve(host, 80, [])


async def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with both kinds of addresses is one that is pointed inwards. Case 132."""

    def answer(*_: Any, **__: Any) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("8.8.8.8", 80)), (*kind, ("10.0.0.1", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with pytest.raises(AddressError, match="not on the public internet"):
        await resolve("mixed.example", 80, [])
    assert len(await resolve("mixed.example", 80, [ipaddress.ip_network("10.0.0.1/32")])) == 2


async def test_results_and_errors_come_back_from_the_thread() -> None:
    """The thread is a daemon, so it never delays the end of the program."""
    assert await run_in_thread(lambda: threading.current_thread().daemon)

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await run_in_thread(fail)


async def test_a_thread_that_is_no_longer_waited_for_does_no_harm() -> None:
    """The waiting ends with the time-out, and the late result is dropped."""
    go = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run_in_thread(go.wait)
    go.set()
    await asyncio.sleep(0.05)


def test_a_thread_that_outlives_its_loop_does_no_harm() -> None:
    """It finds nobody to tell, and ends."""
    go = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        go.wait()

    async def main() -> None:
        task = asyncio.ensure_future(run_in_thread(work))
        while not threads:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(main())
    go.set()
    threads[0].join(5)
    assert not threads[0].is_alive()
