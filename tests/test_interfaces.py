"""The contracts' own code: services, sessions, base tools, fakes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from atlas_core import (
    AIToolProtocol,
    BaseLLM,
    BaseService,
    ChatMessage,
    LLMDefaults,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    Owner,
    ParallelToolExecutor,
    RunLimits,
    ServiceNotReadyError,
    SettingsError,
    SyncToolExecutor,
    Tool,
    ToolArgumentsError,
    ToolCall,
    ToolContext,
    ToolRegistry,
    ToolSchema,
    UnknownToolError,
    hookimpl,
)
from atlas_core.interfaces.llm import LLMSession
from atlas_core.testing import FakeLLM, RecordingExecutor


class Slow(BaseService):
    """A service that takes its time."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.log: list[str] = []
        self.error = error
        self.go = asyncio.Event()

    async def _start(self) -> None:
        self.log.append("start")
        await self.go.wait()
        if self.error is not None:
            raise self.error

    async def _stop(self) -> None:
        self.log.append("stop")


# Services ------------------------------------------------------------------------------------------------------------


async def test_a_service_starts_once_for_all_who_ask() -> None:
    """Two starts at once share one."""
    service = Slow()
    starts = [asyncio.create_task(service.start()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not service.is_ready
    service.go.set()
    await asyncio.gather(*starts)
    await service.wait_ready(1)
    assert service.is_ready
    await asyncio.gather(service.stop(), service.stop())
    assert service.log == ["start", "stop"]
    with pytest.raises(ServiceNotReadyError, match="Slow was stopped"):
        await service.start()


async def test_a_start_that_takes_too_long_is_given_up_and_may_be_tried_again() -> None:
    """`wait_ready` bounds the wait, and nothing goes on unseen."""
    service = Slow()
    with pytest.raises(TimeoutError):
        await service.wait_ready(0.02)
    await asyncio.sleep(0.02)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    service.go.set()
    await service.start()
    assert service.is_ready
    await service.stop()


async def test_stopping_during_a_start_ends_it() -> None:
    """What was begun is freed."""
    service = Slow()
    start = asyncio.create_task(service.start())
    await asyncio.sleep(0.01)
    await service.stop()
    with pytest.raises(ServiceNotReadyError, match="was stopped"):
        await start
    assert service.log == ["start", "stop"]
    assert not service.is_ready


async def test_one_who_gives_up_waiting_takes_no_start_from_the_others() -> None:
    """A cancelled caller cancels a start only if nobody else waits for it."""
    service = Slow()
    first, second = (asyncio.create_task(service.start()) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0)
    service.go.set()
    await second
    assert first.cancelled()
    assert service.is_ready
    assert service.log == ["start"]
    await service.stop()


async def test_a_start_that_cancels_itself_has_failed() -> None:
    """It is not tried again for ever."""
    service = Slow(asyncio.CancelledError("inner"))
    service.go.set()
    with pytest.raises(ServiceNotReadyError, match="did not start: CancelledError"):
        await service.start()
    await service.stop()


@pytest.mark.parametrize("error", [OSError("no"), SettingsError("no")])
async def test_a_failed_start_is_told_to_everyone_after(error: Exception) -> None:
    """An Atlas error as it is, another one wrapped."""
    service = Slow(error)
    service.go.set()
    with pytest.raises(type(error)):
        await service.start()
    expected = SettingsError if isinstance(error, SettingsError) else ServiceNotReadyError
    with pytest.raises(expected, match="no"):
        await service.start()
    await service.stop()
    assert service.log == ["start", "stop"]


async def test_stopping_what_never_started_frees_nothing() -> None:
    """There is nothing to free."""
    service = Slow()
    await service.stop()
    assert service.log == []


# Models --------------------------------------------------------------------------------------------------------------


class Echo(BaseLLM):
    """The least a provider can be."""

    async def complete(self, request: LLMRequest) -> LLMResponse:
        return LLMResponse(message=ChatMessage.assistant(request.messages[-1].text))


async def test_a_stateless_provider_overrides_only_complete() -> None:
    """Session and streaming come from the base."""
    session = Echo().open(LLMDefaults(system="s", max_output_tokens=9))
    session.append([ChatMessage.user("a")])
    first = session.request()
    session.append((ChatMessage.user("b"),))
    assert (await session.complete()).message.text == "b"
    assert [type(p).__name__ async for p in session.stream()] == ["LLMResponse"]
    assert (first.system, first.max_output_tokens, list(first.messages)) == ("s", 9, [ChatMessage.user("a")])
    assert first.messages != [ChatMessage.user("x")]
    assert first.messages[-1:] == (ChatMessage.user("a"),)
    with pytest.raises(IndexError):
        _ = first.messages[1]
    assert repr(first.messages) == "<1 messages>"
    await session.aclose()


async def test_a_session_can_be_made_by_hand() -> None:
    """For providers that keep state."""
    assert isinstance(Echo().open(LLMDefaults()), LLMSession)


# Tools ---------------------------------------------------------------------------------------------------------------


class Double(Tool):
    """A tool as a class."""

    @property
    def name(self) -> str:
        return "double"

    @property
    def description(self) -> str:
        return "Double a number."

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(
            name="double",
            parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        )

    def execute(self, **kwargs: Any) -> int:
        return int(kwargs["n"]) * 2


@pytest.mark.parametrize("executor", [SyncToolExecutor, ParallelToolExecutor, RecordingExecutor])
async def test_an_executor_serves_alone(executor: type[SyncToolExecutor]) -> None:
    """`prepare` looks up and validates, `execute_batch` runs, in call order."""
    registry = ToolRegistry()
    registry.register(Double(), owner=Owner("maths"))

    @registry.register
    async def who(context: ToolContext) -> str:
        """Tell the call's id."""
        return context.call_id

    async with executor(registry) as alone:
        calls = alone.prepare([ToolCall("1", "double", '{"n": "4"}'), ToolCall("2", "who")])
        outcomes = await alone.execute_batch(calls)
        assert [o.value for o in outcomes] == [8, "2"]
        assert all(o.ok for o in outcomes)
        assert calls[0].payload() == {
            "call_id": "1",
            "tool": "double",
            "arguments": {"n": 4},
            "idempotency_key": "1",
            "remaining_s": None,
        }
        assert calls[0].deadline is None
        with pytest.raises(UnknownToolError):
            alone.prepare([ToolCall("1", "dubble")])
        with pytest.raises(ToolArgumentsError):
            alone.prepare([ToolCall("1", "double")])
        assert [t.name for t in alone.get_tools_for_agent(["d*"])] == ["double"]
        assert alone.abandoned_calls == ()


async def test_an_executor_without_registry_says_so() -> None:
    """It has no tools to look up."""
    async with SyncToolExecutor() as alone:
        assert alone.get_tools_for_agent(["*"]) == []
        assert alone.abandoned_calls == ()
        with pytest.raises(ValueError, match="SyncToolExecutor has no tool_registry"):
            alone.prepare([])


async def test_parallel_keeps_to_its_bound() -> None:
    """No more calls at once than `max_concurrency`, coroutines included."""
    running = most = 0
    registry = ToolRegistry()

    @registry.register
    async def work() -> None:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    async with ParallelToolExecutor(registry, max_concurrency=3) as executor:
        outcomes = await executor.execute_batch(executor.prepare([ToolCall(str(n), "work") for n in range(10)]))
    assert all(o.ok for o in outcomes)
    assert most == 3
    with pytest.raises(ValueError, match="max_concurrency is 0"):
        ParallelToolExecutor(max_concurrency=0)


def test_a_plain_object_meets_the_protocol() -> None:
    """No base class is required."""

    class Plain:
        name = "plain"
        description = "d"
        schema = ToolSchema(name="plain")

        def execute(self, **kwargs: Any) -> object:
            return None

    assert isinstance(Plain(), AIToolProtocol)
    assert isinstance(Double(), AIToolProtocol)


async def test_a_base_tool_has_sensible_parts() -> None:
    """Nothing to start, arguments as they are, never repeated on its own."""
    tool = Double()
    await tool.start()
    await tool.stop()
    assert not tool.is_async
    assert tool.effects == "write"
    assert tool.build_arguments({"n": 1}) == {"n": 1}
    assert ToolContext(context=1).remaining_s is None


# Fakes ---------------------------------------------------------------------------------------------------------------


async def test_a_scripted_model_plays_every_kind_of_turn() -> None:
    """Text, calls, messages, responses, exceptions, and functions of the request."""

    async def later(request: LLMRequest) -> str:
        return f"{len(request.messages)} messages"

    turns: list[Any] = [
        "text",
        ToolCall("1", "a"),
        [ToolCall("1", "a"), ToolCall("2", "b")],
        ChatMessage.assistant("m"),
        LLMResponse(message=ChatMessage.assistant("r")),
        later,
        lambda request: "now",
        KeyError("k"),
        3,
    ]
    llm = FakeLLM(turns)
    request = LLMRequest(messages=())
    seen = [(await llm.complete(request)).message for _ in range(7)]
    assert [m.text for m in seen] == ["text", "", "", "m", "r", "0 messages", "now"]
    assert [len(m.tool_calls) for m in seen[:3]] == [0, 1, 2]
    with pytest.raises(AssertionError, match="2 turns of the script were not played, the first is KeyError"):
        FakeLLM(turns[-2:]).assert_used_up()
    with pytest.raises(KeyError):
        await llm.complete(request)
    with pytest.raises(TypeError, match="a turn of the script is a int"):
        await llm.complete(request)
    with pytest.raises(AssertionError, match="the script ended"):
        await llm.complete(request)
    llm.assert_used_up()


async def test_a_scripted_model_streams_in_pieces() -> None:
    """Of the size asked for, the whole response last."""
    pieces = [p async for p in FakeLLM(["abcde"], stream_chars=2).stream(LLMRequest(messages=()))]
    assert [p.text for p in pieces if isinstance(p, LLMDelta)] == ["ab", "cd", "e"]
    assert isinstance(pieces[-1], LLMResponse)


# The rest ------------------------------------------------------------------------------------------------------------


def test_owners_are_named_for_people() -> None:
    """As much as is known."""
    assert str(Owner()) == "this program"
    assert str(Owner("p")) == "plugin 'p'"
    assert str(Owner("p", "atlas-p")) == "plugin 'p' of atlas-p"
    assert str(Owner("p", "atlas-p", "1.2")) == "plugin 'p' of atlas-p 1.2"


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_iterations": 0}, "max_iterations is 0, expected at least 1"),
        ({"max_calls_per_step": 0}, "max_calls_per_step is 0"),
        ({"max_tokens": -1}, "max_tokens is -1, expected at least 0, or None"),
        ({"max_execution_time_seconds": -0.5}, "max_execution_time_seconds is -0.5"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], text: str) -> None:
    """A ValueError that says what was expected."""
    with pytest.raises(ValueError, match=text):
        RunLimits(**limits)


def test_the_marker_marks() -> None:
    """A hook implementation stays a function."""

    @hookimpl
    def atlas_executors() -> list[Any]:
        return []

    assert atlas_executors() == []
