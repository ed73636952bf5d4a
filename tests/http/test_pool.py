import asyncio
import gc
import threading
import warnings

import pytest

from atlas_core.http import HttpClient, RetryPolicy
from atlas_core.testing import LoopbackServer, Pause, ServerReply

OK = ServerReply.of_json({"ok": True})
ONCE = RetryPolicy(max_attempts=1)


async def get(client: HttpClient, n: int = 1) -> None:
    """Send requests in sequence."""
    for _ in range(n):
        assert (await client.post_json("x", b"{}")).json() == {"ok": True}


async def test_one_connection_serves_requests_in_sequence() -> None:
    """A connection is given back when its answer is read, and used again."""
    with LoopbackServer(always=OK) as server:
        async with HttpClient(server.url) as client:
            await get(client, 20)
        assert server.connections == 1


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    """As many as needed are opened, and kept for the next time."""
    with LoopbackServer(always=ServerReply(steps=(Pause(0.05), b'{"ok": true}'))) as server:
        async with HttpClient(server.url) as client:
            for _ in range(2):
                async with asyncio.TaskGroup() as group:
                    for _ in range(30):
                        group.create_task(get(client))
            assert client._setup.pools.idle == 30
        assert server.connections == 30
        assert client._setup.pools.idle == 0


async def test_a_connection_that_the_server_closed_meanwhile_costs_no_attempt() -> None:
    """Whether the close is seen before the request or only by it, the request is sent again on a new connection."""
    with LoopbackServer([OK, ServerReply(wire=b""), OK, OK]) as server:
        async with HttpClient(server.url, retry=ONCE) as client:
            await get(client)
            await get(client)  # the server reads this one and closes the connection without an answer
            assert len(server.requests) == 3
            server.stop()
            server.start()
            await get(client)  # the close was there to be seen before


async def test_connections_that_idled_too_long_are_closed() -> None:
    """An old connection is not used, and goes when another one is given back."""
    with LoopbackServer(always=OK) as server:
        async with HttpClient(server.url, keep_alive_s=0.05) as client:
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(get(client))
            before = server.connections
            await asyncio.sleep(0.1)
            await get(client, 4)
            assert server.connections == before + 1
            assert client._setup.pools.idle == 1


async def test_the_free_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a burst no more connections are kept than the bound."""
    monkeypatch.setattr("atlas_core.http.pool._MOST_IDLE", 2)
    with LoopbackServer(always=ServerReply(steps=(Pause(0.05), b'{"ok": true}'))) as server:
        async with HttpClient(server.url) as client:
            async with asyncio.TaskGroup() as group:
                for _ in range(6):
                    group.create_task(get(client))
            assert client._setup.pools.idle == 2


def test_a_client_works_in_loop_after_loop_and_in_another_thread() -> None:
    """Connections belong to their loop, and are closed when it ends, without a warning (case 70)."""
    with LoopbackServer(always=OK) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        client = HttpClient(server.url)
        for _ in range(2):
            asyncio.run(get(client, 2), debug=True)
        thread = threading.Thread(target=lambda: asyncio.run(get(client, 2)))
        thread.start()
        thread.join()
        asyncio.run(get(client, 2))
        gc.collect()
        assert server.connections == 4
        assert client._setup.pools.idle == 0
        asyncio.run(client.stop())


async def test_stopping_closes_connections_of_other_loops_too() -> None:
    """A loop that runs in another thread closes its own connections when told to stop from here."""
    with LoopbackServer(always=OK) as server:
        client = HttpClient(server.url)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(get(client), loop))
            await get(client)
            assert client._setup.pools.idle == 2
            await client.stop()
            assert client._setup.pools.idle == 0
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
        gc.collect()


def test_a_loop_that_stands_still_closes_its_connections_when_it_ends() -> None:
    """A client stopped elsewhere leaves them to the loop's own end."""
    with LoopbackServer(always=OK) as server:
        client = HttpClient(server.url)
        with asyncio.Runner() as runner:
            runner.run(get(client))
            asyncio.run(client.stop())
            assert client._setup.pools.idle == 1
        assert client._setup.pools.idle == 0


async def test_a_client_without_a_stop_leaves_no_warning() -> None:
    """The connections of a client that was forgotten are closed; any warning fails this test."""
    with LoopbackServer(always=OK) as server:
        await get(HttpClient(server.url))
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0.01)
            if not server._tasks:
                break
        assert not server._tasks
