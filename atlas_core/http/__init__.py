"""HTTP for providers: one client per server, with retries, deadlines, event streams and typed errors.

    from atlas_core.http import HttpClient, RetryPolicy, Secret, Timeouts

    client = HttpClient(
        "https://api.example.com/v1",
        headers={"authorization": Secret(f"Bearer {key}")},
        retry=RetryPolicy(max_attempts=3),
        owner="connection 'main'",
    )
    response = await client.post_json("chat/completions", body, deadline=request.deadline)
    value = response.json()
    error = client.error_in(value, response)      # a server may put an error into an answer with status 200

    async with client.stream_sse("chat/completions", body, deadline=request.deadline) as events:
        async for event in events:                # ServerEvent(event, data, id, retry)
            ...

    await client.stop()

Everything that goes wrong is a `ProviderError` of `atlas_core.errors`; its `retryable` says whether the same request
may succeed later, and what is retryable has been tried again already, as `RetryPolicy` has it. A failing stream is
tried again only before its first event, or if `may_restart` allows it; `EventStream.restart(error)` does so for an
error that came as an event. Texts of errors hold no key, login or query, and nothing hangs on them that does: where a
provider turns what it read into an error of its own, `client.redacted(text)` and `raise bare(error)` do the same.

The libraries (extra `atlas-kernel[http]`) load with the first request.
"""

from __future__ import annotations

from atlas_core.http._bare import bare
from atlas_core.http.client import Body, HttpClient
from atlas_core.http.response import Response
from atlas_core.http.secret import Secret
from atlas_core.http.stream import EventStream
from atlas_core.http.values import RetryPolicy, ServerEvent, Timeouts

__all__ = ["Body", "EventStream", "HttpClient", "Response", "RetryPolicy", "Secret", "ServerEvent", "Timeouts", "bare"]
