"""A connection with a rate limit and other connections to fall back on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from atlas_core import (
    BaseLLM,
    Capabilities,
    Kernel,
    LLMDefaults,
    LLMDelta,
    LLMProviderSpec,
    LLMRequest,
    LLMResponse,
    ModelResponded,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderTimeoutError,
    RunWarning,
    SettingsError,
    ToolCall,
    hookimpl,
)
from atlas_core.llm.line import Line, LineLLM
from atlas_core.messages import ChatMessage
from atlas_core.testing import FakeLLM, RecordingObserver


def line(*models: FakeLLM) -> LineLLM:
    """Make a line of scripted models, named a, b, c."""
    return LineLLM([Line(name=name, llm=llm) for name, llm in zip("abc", models, strict=False)])


BUSY = ProviderRateLimitError("busy")


@pytest.mark.parametrize(
    "error",
    [BUSY, ProviderTimeoutError("slow"), ProviderError("down", status=503), ProviderError("cut", retryable=True)],
)
async def test_a_servers_failure_turns_to_the_next_connection(error: ProviderError) -> None:
    """With the whole conversation, and the run stays there."""
    first, second = FakeLLM([ToolCall("1", "t"), error, "never"]), FakeLLM(["from b", "again"])
    session = line(first, second).open(LLMDefaults(system="s"))
    session.append([ChatMessage.user("x")])
    await session.complete()
    session.append([ChatMessage.user("y")])
    response = await session.complete()
    assert (response.message.text, response.connection) == ("from b", "b")
    assert "connection 'a' failed" in response.notes[0]
    assert [m.text for m in second.requests[0].messages] == ["x", "y"]
    assert second.requests[0].system == "s"
    session.append([response.message, ChatMessage.user("z")])
    response = await session.complete()
    assert (response.message.text, response.notes, len(second.requests[1].messages)) == ("again", (), 4)
    await session.aclose()


@pytest.mark.parametrize("error", [ProviderAuthError("no key", status=401), ProviderError("bad", status=400)])
async def test_a_callers_own_mistake_does_not(error: ProviderError) -> None:
    """Another server would only repeat it, or hide it."""
    second = FakeLLM(["x"])
    session = line(FakeLLM([error]), second).open(LLMDefaults())
    session.append([ChatMessage.user("x")])
    with pytest.raises(type(error)):
        await session.complete()
    assert not second.requests


async def test_where_all_fail_the_last_error_tells_of_the_others() -> None:
    """Nothing is hidden."""
    failing = line(FakeLLM([BUSY]), FakeLLM([ProviderTimeoutError("slow")]))
    with pytest.raises(ProviderTimeoutError, match=r"slow \(before that, connection 'a' failed"):
        await failing.complete(LLMRequest(messages=(ChatMessage.user("x"),)))


class Stumbles(BaseLLM):
    """Streams some text, then fails."""

    capabilities = Capabilities(streaming=True)

    def __init__(self, text: str) -> None:
        self.text = text

    async def complete(self, request: LLMRequest) -> LLMResponse:
        raise NotImplementedError

    async def stream(self, request: LLMRequest) -> AsyncIterator[LLMDelta | LLMResponse]:
        if self.text:
            yield LLMDelta(self.text)
        raise ProviderError("cut", retryable=True)


async def test_never_after_text_was_shown() -> None:
    """What a person has read can't be taken back."""
    for text, expected in (("shown", None), ("", "from b")):
        both = LineLLM([Line(name="a", llm=Stumbles(text)), Line(name="b", llm=FakeLLM(["from b"], stream_chars=3))])
        session = both.open(LLMDefaults())
        session.append([ChatMessage.user("x")])
        pieces: list[Any] = []
        try:
            pieces.extend([piece async for piece in session.stream()])
        except ProviderError:
            assert expected is None
        else:
            assert pieces[-1].message.text == expected


async def test_capabilities_are_what_all_can_do() -> None:
    """So that a run can go on with any of them."""
    both = line(FakeLLM([], stream_chars=1), FakeLLM([]))
    assert both.capabilities.streaming
    assert both.capabilities.native_tools
    assert await both.list_models() == []
    assert (await both.check()).answers
    weak = FakeLLM([])
    weak.capabilities = Capabilities(native_tools=False, window_tokens=100)
    assert not line(FakeLLM([]), weak).capabilities.native_tools
    assert line(FakeLLM([]), weak).capabilities.window_tokens == 100


async def test_a_rate_is_kept_over_all_runs() -> None:
    """Requests are spaced evenly."""
    llm = FakeLLM(["x"] * 4)
    limited = LineLLM([Line(name="a", llm=llm, requests_per_minute=1200)])
    began = time.monotonic()
    await asyncio.gather(*(limited.complete(LLMRequest(messages=(ChatMessage.user("x"),))) for _ in range(4)))
    assert time.monotonic() - began >= 0.12


# Through settings ----------------------------------------------------------------------------------------------------


class Models:
    """A plugin whose connections play what their `model` names."""

    scripts: dict[str, list[Any]]

    def __init__(self, **scripts: list[Any]) -> None:
        self.scripts = scripts

    @hookimpl
    def atlas_llm_providers(self) -> list[LLMProviderSpec]:
        return [LLMProviderSpec(name="p", factory=lambda config: FakeLLM(self.scripts[config.model]))]


def settings(**connections: Any) -> dict[str, Any]:
    """Return settings with these connections and one profile on the first."""
    first = next(iter(connections))
    profiles = {"one": {"connection_name": first}}
    return {
        "ai": {
            "connections": {name: {"backend": "p", "model": name, **table} for name, table in connections.items()},
            "agents": {"default_profile": "one", "profiles": {"connections": profiles}},
        }
    }


async def test_a_fallback_is_named_in_the_settings_and_told_in_the_trace() -> None:
    """With prices of its own."""
    observer = RecordingObserver()
    chosen = settings(main={"fallback": ["spare"]}, spare={"fallback": "MAIN", "prices": {"output": 1_000_000.0}})
    plugins = [("models", Models(main=[BUSY], spare=["hi"]))]
    async with Kernel(chosen, plugins=plugins, observers=[observer]) as kernel:
        answer = await kernel.agent().run("x")
        assert answer == "hi"
        assert answer.result.usage.cost == 5.0
    assert "'spare' is asked instead" in observer.of(RunWarning)[0].text
    assert observer.of(ModelResponded)[0].connection == "spare"


async def test_a_fallback_that_is_not_there_is_an_error() -> None:
    """With a suggestion, before any run."""
    kernel = Kernel(settings(main={"fallback": ["spar"]}, spare={}), plugins=[("models", Models(main=[], spare=[]))])
    with pytest.raises(SettingsError, match=r"'spar'.*did you mean 'spare'"):
        kernel.agent()


async def test_a_limit_of_cost_needs_prices() -> None:
    """Else it could not be kept."""
    chosen = settings(main={})
    chosen["ai"]["agents"]["profiles"]["connections"]["one"]["max_cost"] = 1.0
    with pytest.raises(SettingsError, match=r"connection 'main' has no prices.*ai.connections.main.prices"):
        Kernel(chosen, plugins=[("models", Models(main=[]))]).agent()
