from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
import stamina
from atlas_openai.options import OpenAIOptions
from atlas_openai.provider import OpenAILLM

from atlas_core import ChatMessage, ConnectionConfig, LLMDefaults, LLMDelta, LLMResponse, ToolSchema
from atlas_core.testing import LoopbackServer, ServerReply

Asked = tuple[LLMResponse, list[LLMDelta]]
Ask = Callable[..., Awaitable[Asked]]

SEARCH = ToolSchema(
    name="search",
    description="Search.",
    parameters={
        "type": "object",
        "properties": {"q": {"type": "string"}, "lang": {"type": ["string", "null"], "default": None}},
        "required": ["q"],
    },
)
NOW = ToolSchema(name="now", description="The time.")
DOTTED = ToolSchema(name="files.read/text", description="Read.")
TOOLS = (SEARCH, NOW, DOTTED)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says about proxies and keys is no part of a test."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(autouse=True)
def _no_waits() -> Iterator[None]:
    """Attempts follow one another at once."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A real server whose script a test fills."""
    with LoopbackServer() as running:
        yield running


@pytest.fixture
async def connect(server: LoopbackServer) -> AsyncIterator[Callable[..., OpenAILLM]]:
    """Make models of the server; stopped at the end."""
    made: list[OpenAILLM] = []

    def make(model: str = "m", **options: Any) -> OpenAILLM:
        options.setdefault("base_url", f"{server.url}/v1")
        options.setdefault("max_retries", 0)
        config = ConnectionConfig(name="main", model=model, options=OpenAIOptions(**options))
        made.append(OpenAILLM(config))
        return made[-1]

    yield make
    for llm in made:
        await llm.stop()


@pytest.fixture
def ask(server: LoopbackServer, connect: Callable[..., OpenAILLM]) -> Ask:
    """Ask one question, streamed or not, against the replies given; return the response and its pieces."""

    async def run(
        *replies: ServerReply,
        streamed: bool = False,
        tools: Sequence[ToolSchema] = TOOLS,
        messages: Sequence[ChatMessage] = (ChatMessage.user("hi"),),
        defaults: dict[str, Any] | None = None,
        **options: Any,
    ) -> Asked:
        server.then(*replies)
        llm = connect(**options)
        session = llm.open(LLMDefaults(tools=tuple(tools), **(defaults or {})))
        session.append(messages)
        if not streamed:
            return await session.complete(), []
        pieces = [piece async for piece in session.stream()]
        assert isinstance(pieces[-1], LLMResponse)
        return pieces[-1], [piece for piece in pieces[:-1] if isinstance(piece, LLMDelta)]

    return run
