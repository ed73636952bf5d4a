from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from atlas_anthropic.options import AnthropicOptions
from atlas_anthropic.provider import AnthropicLLM

from atlas_core import ConnectionConfig, LLMDefaults, LLMDelta, LLMResponse, LLMSession
from atlas_core.testing import LoopbackServer, ServerReply

PAYLOADS = Path(__file__).parent / "payloads"

Connect = Callable[..., AnthropicLLM]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server on the loopback interface; tests write its script."""
    with LoopbackServer() as running:
        yield running


@pytest.fixture
async def connect(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    """Make models that ask the loopback server."""
    monkeypatch.setenv("TEST_KEY", "sk-ant-secret-0123456789")
    made: list[AnthropicLLM] = []

    def make(model: str = "claude-test", **options: Any) -> AnthropicLLM:
        table = {"base_url": server.url, "api_key_env": "TEST_KEY", "max_retries": 0, **options}
        config = ConnectionConfig(name="main", model=model, options=AnthropicOptions.model_validate(table))
        made.append(AnthropicLLM(config))
        return made[-1]

    yield make
    for llm in made:
        await llm.stop()


@pytest.fixture
def events_of() -> Callable[[str], list[dict[str, Any]]]:
    """Read a written-down stream as the values of its events."""

    def read(name: str) -> list[dict[str, Any]]:
        text = (PAYLOADS / f"{name}.sse").read_text(encoding="utf-8")
        return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]

    return read


@pytest.fixture
def stream_of() -> Callable[..., ServerReply]:
    """Make a reply from a written-down stream, in pieces of a size."""

    def make(name: str, *, size: int = 0, newline: str = "\n") -> ServerReply:
        body = (PAYLOADS / f"{name}.sse").read_bytes().replace(b"\n", newline.encode())
        size = size or len(body)
        return ServerReply(
            headers=(("content-type", "text/event-stream; charset=utf-8"), ("request-id", "req_1")),
            steps=tuple(body[i : i + size] for i in range(0, len(body), size)),
            chunked=True,
        )

    return make


@pytest.fixture
def message_of() -> Callable[..., dict[str, Any]]:
    """Make a whole message, in the form of platform.claude.com/docs/en/api/messages/create, read November 2026."""

    def make(*content: dict[str, Any] | str, stop_reason: str | None = "end_turn", **more: Any) -> dict[str, Any]:
        blocks = [{"type": "text", "text": b} if isinstance(b, str) else b for b in content]
        return {
            "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
            "type": "message",
            "role": "assistant",
            "model": "claude-test-20261101",
            "content": blocks,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 2095, "output_tokens": 503},
            **more,
        }

    return make


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Ask a model one thing over a session; return the pieces that were shown and the response."""

    async def run(
        llm: AnthropicLLM, *messages: Any, stream: bool = True, deadline: float | None = None, **defaults: Any
    ) -> tuple[list[LLMDelta], LLMResponse]:
        session: LLMSession = llm.open(LLMDefaults(**defaults))
        session.append(messages)
        if not stream:
            return [], await session.complete(deadline=deadline)
        pieces = [piece async for piece in session.stream(deadline=deadline)]
        last = pieces.pop()
        assert isinstance(last, LLMResponse)
        return [piece for piece in pieces if isinstance(piece, LLMDelta)], last

    return run
