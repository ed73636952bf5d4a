"""The loop, line by line of its norm."""

from __future__ import annotations

import asyncio
import copy
import time
from typing import Any

import pytest

from atlas_core import (
    AgentMaxIterationsError,
    AgentTimeoutError,
    Answer,
    CallStatus,
    ChatMessage,
    EmptyAnswerError,
    FinishReason,
    HistoryRepaired,
    LLMResponse,
    ModelRequested,
    ModelResponded,
    OutputLimitError,
    ProviderError,
    ProviderResponseError,
    RunEnded,
    RunError,
    RunLimits,
    RunOutcome,
    RunStarted,
    RunWarning,
    TextDelta,
    TokenBudgetError,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    ToolContext,
    Usage,
    tool,
)
from atlas_core.testing import FakeLLM, RecordingExecutor
from tests.runtime.rig import BOTH, Rig


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def cut(text: str, *calls: ToolCall) -> LLMResponse:
    """Make a response that the output limit cut."""
    return LLMResponse(message=ChatMessage.assistant(text, calls), finish_reason=FinishReason.LENGTH)


# Answers ---------------------------------------------------------------------------------------------------------


async def test_think_act_observe_answer() -> None:
    """The model's call is run, its result observed under the call's id, and the answer returned."""
    async with Rig([ToolCall.of("add", id="c1", a=2, b=3), "5"], [add], system_prompt="Be exact.") as rig:
        answer = await rig.agent.run("2+3?")
    assert answer == "5"
    assert isinstance(answer, Answer)
    first, second = rig.llm.requests
    assert first.system == "Be exact."
    assert [t.name for t in first.tools] == ["add"]
    assert [m.role for m in first.messages] == ["user"]
    assert [(m.role, m.text, m.tool_call_id) for m in second.messages] == [
        ("user", "2+3?", None),
        ("assistant", "", None),
        ("tool", "5", "c1"),
    ]
    result = answer.result
    assert (result.outcome, result.iterations, result.usage.requests) == (RunOutcome.ANSWERED, 2, 2)
    assert [(r.value, r.status) for r in result.tool_results] == [(5, CallStatus.OK)]
    assert result.messages == result.new_messages == (*second.messages, ChatMessage.assistant("5"))


async def test_a_request_is_a_snapshot() -> None:
    """What was asked earlier does not change when the conversation grows."""
    async with Rig([ToolCall.of("add", a=1, b=1), "2"], [add]) as rig:
        await rig.agent.run("x")
    assert [len(r.messages) for r in rig.llm.requests] == [1, 3]
    assert rig.llm.requests[0].messages == (ChatMessage.user("x"),)
    assert rig.llm.requests[1].messages[-1].role == "tool"
    assert len(rig.llm.requests[1].messages[1:]) == 2


async def test_a_decline_is_an_outcome_and_its_calls_are_not_run() -> None:
    """Declining is no error, and nothing of a declined message is executed."""
    ran: list[int] = []

    def act() -> None:
        ran.append(1)

    declined = LLMResponse(
        message=ChatMessage.assistant("I won't", [ToolCall("1", "act")]), finish_reason=FinishReason.DECLINED
    )
    async with Rig([declined], [act]) as rig:
        answer = await rig.agent.run("x")
    assert (answer, answer.result.outcome) == ("I won't", RunOutcome.DECLINED)
    assert not ran
    assert answer.result.messages[-1].tool_call_id == "1"


# History ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [list, tuple, iter, lambda m: (x for x in m)], ids=["list", "tuple", "iterator", "gen"]
)
async def test_the_callers_history_is_never_changed(make: Any) -> None:
    """Case 82: the list passed in stays as it is, whatever kind of iterable it is."""
    messages: list[Any] = [ChatMessage.user("a"), {"role": "assistant", "content": "b"}]
    before = copy.deepcopy(messages)
    async with Rig([ToolCall.of("add", a=1, b=1), "2", "3"], [add]) as rig:
        first = await rig.agent.run("x", make(messages))
        assert messages == before
        messages.append(ChatMessage.user("changed later"))
        await rig.agent.run("x", make(before))
    assert rig.llm.requests[0].messages == rig.llm.requests[2].messages
    assert [m.text for m in first.result.messages[:3]] == ["a", "b", "x"]
    assert [m.role for m in first.result.new_messages] == ["user", "assistant", "tool", "assistant"]


async def test_an_answers_messages_are_the_next_history() -> None:
    """A conversation goes on from `answer.result.messages`."""
    async with Rig(["one", "two"]) as rig:
        first = await rig.agent.run("a")
        second = await rig.agent.run("b", first.result.messages)
    assert [m.text for m in second.result.messages] == ["a", "one", "b", "two"]


async def test_a_broken_history_is_repaired_and_told() -> None:
    """Case 80: repair happens when the request is built, so old sessions recover."""
    history = [ChatMessage.user("a"), ChatMessage.assistant("", [ToolCall("c", "add")])]
    async with Rig(["ok"], [add]) as rig:
        await rig.agent.run("b", history)
    assert [m.role for m in rig.llm.requests[0].messages] == ["user", "assistant", "tool", "user"]
    (event,) = rig.observer.of(HistoryRepaired)
    assert "interrupted" in event.repairs[0]


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        ("", ValueError, "empty"),
        ("  \n", ValueError, "empty"),
        (ChatMessage.user(()), ValueError, "empty"),
        (ChatMessage.assistant("x"), ValueError, "role 'assistant'"),
        (7, TypeError, "int"),
    ],
    ids=["nothing", "white space", "no parts", "another role", "no message"],
)
async def test_bad_input_is_refused_before_anything_starts(message: Any, error: type[Exception], text: str) -> None:
    """A caller's mistake is a TypeError or ValueError that says what was expected."""
    async with Rig([]) as rig:
        with pytest.raises(error, match=text):
            await rig.agent.run(message)
        assert not rig.agent.is_ready


# Limits ----------------------------------------------------------------------------------------------------------


async def test_at_the_request_limit_the_last_calls_are_not_run_and_all_is_kept() -> None:
    """Case 78: the error holds a valid history, and the conversation can go on."""
    ran: list[int] = []

    def act(n: int) -> int:
        ran.append(n)
        return n

    turns = [[ToolCall.of("act", id=f"c{n}", n=n)] for n in range(3)]
    async with Rig([*turns, "done"], [act], max_iterations=3) as rig:
        with pytest.raises(AgentMaxIterationsError, match="after 3 model requests") as caught:
            await rig.agent.run("x")
        assert ran == [0, 1]
        result = caught.value.result
        assert result is not None
        assert result.outcome is RunOutcome.LIMIT
        assert (result.usage.requests, result.output, caught.value.limit) == (3, "", 3)
        assert "not run" in caught.value.messages[-1].text
        assert await rig.agent.run("go on", caught.value.messages) == "done"
    assert not rig.observer.of(HistoryRepaired)


@pytest.mark.parametrize(("batches", "ran"), [([8], 6), ([4, 4], 6)], ids=["eight in one message", "four and four"])
async def test_a_limit_of_calls_is_checked_before_launching(batches: list[int], ran: int) -> None:
    """Case 76: the first ones run, the surplus is answered, failed executions count."""
    done: list[int] = []

    def act(n: int) -> int:
        done.append(n)
        if n == 0:
            raise ValueError("fails")
        return n

    turns = [[ToolCall.of("act", n=n) for n in range(size)] for size in batches]
    async with Rig([*turns, "end"], [act], max_tool_calls=6) as rig:
        answer = await rig.agent.run("x")
    assert len(done) == ran
    assert len(answer.result.tool_results) == sum(batches)
    assert [r.status for r in answer.result.tool_results][-2:] == [CallStatus.REFUSED, CallStatus.REFUSED]
    assert "limit of tool calls" in rig.tool_messages[-1]


async def test_a_thousand_calls_in_one_message_are_bounded() -> None:
    """A model gone wild starts no more than a step allows."""
    done: list[int] = []

    def act() -> None:
        done.append(1)

    async with Rig([[ToolCall("", "act")] * 1000, "end"], [act]) as rig:
        answer = await rig.agent.run("x")
    assert len(done) == 64
    assert len({r.call.id for r in answer.result.tool_results}) == 1000


async def test_a_slow_model_ends_by_the_deadline() -> None:
    """The deadline covers the model; the error is a TimeoutError and holds the messages."""

    async def slow(_: object) -> str:
        await asyncio.sleep(30)
        return "late"

    async with Rig([slow], max_execution_time_seconds=0.05) as rig:
        with pytest.raises(AgentTimeoutError, match="waiting for the model") as caught:
            await rig.agent.run("x")
    assert isinstance(caught.value, TimeoutError)
    assert [m.text for m in caught.value.messages] == ["x"]


async def test_slow_tools_end_by_the_deadline_and_finished_siblings_are_kept() -> None:
    """The deadline covers tools too, and every call has its result."""

    async def slow() -> str:
        await asyncio.sleep(30)
        return "late"

    async with Rig(
        [[ToolCall("1", "add", '{"a":1,"b":2}'), ToolCall("2", "slow")]], [add, slow], max_execution_time_seconds=0.1
    ) as rig:
        with pytest.raises(AgentTimeoutError) as caught:
            await rig.agent.run("x")
    assert [m.text.split(";")[0][:20] for m in caught.value.messages[2:]] == ["3", "Error: timed out: th"]


async def test_a_nested_run_never_outlives_its_parent() -> None:
    """A run started by a tool gets its parent's deadline and names its parent."""
    inner = Rig([ToolCall("1", "add", '{"a":1,"b":2}'), "inner"], [add])
    seen: list[float | None] = []

    async def delegate(context: ToolContext[object]) -> str:
        """Ask the other agent."""
        seen.append(context.deadline)
        return str(await inner.agent.run("sub"))

    async with inner, Rig([ToolCall("1", "delegate"), "outer"], [delegate], max_execution_time_seconds=50) as rig:
        await rig.agent.run("x")
    (outer_start,) = rig.observer.of(RunStarted)
    (inner_start,) = inner.observer.of(RunStarted)
    assert inner_start.parent_run_id == outer_start.run_id
    assert outer_start.parent_run_id is None
    limit = inner.llm.requests[0].deadline
    assert limit is not None
    assert seen[0] is not None
    assert limit <= seen[0]


async def test_a_token_budget_is_checked_before_spending() -> None:
    """The request that would go over is not sent."""
    llm = FakeLLM([ToolCall.of("add", a=1, b=2), "3"], usage=Usage(input_tokens=400, output_tokens=100, requests=1))
    async with Rig([], [add], llm=llm, max_tokens=800) as rig:
        with pytest.raises(TokenBudgetError, match="500 of max_tokens 800 are used") as caught:
            await rig.agent.run("x")
    assert len(llm.requests) == 1
    assert [m.role for m in caught.value.messages] == ["user", "assistant", "tool"]


async def test_a_token_budget_holds_without_the_servers_count() -> None:
    """A provider that reports no usage is estimated."""
    llm = FakeLLM(["a", "b"], usage=Usage())
    async with Rig([], llm=llm, max_tokens=500) as rig:
        await rig.agent.run("x" * 400)
        with pytest.raises(TokenBudgetError):
            await rig.agent.run("x" * 4000)


async def test_overrides_are_named_run_options() -> None:
    """An unknown one is a TypeError with a suggestion; known ones and `limits` replace the profile's."""
    async with Rig([ToolCall.of("add", a=1, b=2)] * 5, [add]) as rig:
        with pytest.raises(TypeError, match="'max_iteration'; did you mean 'max_iterations'"):
            await rig.agent.run("x", max_iteration=1)
        with pytest.raises(AgentMaxIterationsError):
            await rig.agent.run("x", max_iterations=1)
        with pytest.raises(AgentMaxIterationsError):
            await rig.agent.run("x", limits=RunLimits(max_iterations=2))
        with pytest.raises(ValueError, match="max_iterations is 0"):
            await rig.agent.run("x", max_iterations=0)


# What models do wrong --------------------------------------------------------------------------------------------


async def test_a_message_cut_by_the_output_limit_never_has_its_calls_run() -> None:
    """Each call is told so and may be re-issued."""
    async with Rig([cut("", ToolCall("1", "add", '{"a": 1, "b": 2}')), "ok"], [add], executor=RecordingExecutor) as rig:
        answer = await rig.agent.run("x")
    assert answer == "ok"
    assert "output limit cut" in rig.tool_messages[0]
    assert isinstance(rig.executor, RecordingExecutor)
    assert not rig.executor.batches


async def test_an_answer_cut_by_the_output_limit_is_no_silent_success() -> None:
    """The part that came is on the error."""
    async with Rig([cut("Once upon")]) as rig:
        with pytest.raises(OutputLimitError) as caught:
            await rig.agent.run("x")
    assert caught.value.result is not None
    assert caught.value.result.output == "Once upon"


async def test_empty_answers_are_asked_once_more_and_then_are_an_error() -> None:
    """Case 56, 60: bounded by facts, whatever the finish reason says."""
    nothing = LLMResponse(message=ChatMessage.assistant(" "), finish_reason=FinishReason.TOOL_CALLS)
    async with Rig([nothing, nothing]) as rig:
        with pytest.raises(EmptyAnswerError, match="neither text nor a tool call"):
            await rig.agent.run("x")
    assert [len(r.messages) for r in rig.llm.requests] == [1, 1]
    async with Rig([nothing, "better"]) as rig:
        assert await rig.agent.run("x") == "better"
    assert [m.text for m in rig.llm.requests[1].messages] == ["x"]


async def test_a_label_does_not_overrule_what_the_message_holds() -> None:
    """Text labelled as tool calls is an answer; calls labelled as stop are run."""
    labelled = LLMResponse(message=ChatMessage.assistant("hi"), finish_reason=FinishReason.TOOL_CALLS)
    async with Rig([labelled]) as rig:
        assert await rig.agent.run("x") == "hi"
    stop = LLMResponse(message=ChatMessage.assistant("", [ToolCall("1", "add", '{"a":1,"b":2}')]))
    async with Rig([stop, "3"], [add]) as rig:
        assert await rig.agent.run("x") == "3"


async def test_text_that_looks_like_a_call_is_never_executed_and_told() -> None:
    """In native mode text stays text."""
    text = '```json\n{"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}\n```'
    async with Rig([text], [add], executor=RecordingExecutor) as rig:
        assert await rig.agent.run("x") == text
    assert isinstance(rig.executor, RecordingExecutor)
    assert not rig.executor.batches
    assert "never executed" in rig.observer.of(RunWarning)[0].text


async def test_missing_and_repeated_ids_are_made_unique() -> None:
    """Within a message, over steps, and against the history."""
    history = [ChatMessage.user("a"), ChatMessage.assistant("", [ToolCall("c", "add")]), ChatMessage.assistant("z")]
    calls = [ToolCall(i, "add", '{"a":1,"b":1}') for i in ("c", "", "c", "")]
    async with Rig([calls, calls, "end"], [add]) as rig:
        answer = await rig.agent.run("x", history)
    ids = [r.call.id for r in answer.result.tool_results]
    assert len(set(ids)) == 8
    assert "c" not in ids
    answered = [m.tool_call_id for m in answer.result.new_messages if m.role == "tool"]
    assert answered == ids


@pytest.mark.parametrize("executor", BOTH)
async def test_results_are_observed_in_call_order(executor: Any) -> None:
    """Case 38: whatever finishes first, and with a failing one among them."""

    async def wait(ms: int) -> int:
        await asyncio.sleep(ms / 1000)
        if ms == 40:
            raise RuntimeError("boom")
        return ms

    calls = [ToolCall(str(ms), "wait", f'{{"ms": {ms}}}') for ms in (80, 10, 40, 20)]
    async with Rig([calls, "end"], [wait], executor=executor) as rig:
        answer = await rig.agent.run("x")
    assert rig.tool_messages == ["80", "10", "Error: RuntimeError: boom", "20"]
    assert [e.call.id for e in rig.observer.of(ToolCallEnded)] == ["80", "10", "40", "20"]
    assert [r.value for r in answer.result.tool_results] == [80, 10, None, 20]


async def test_a_wrong_name_is_answered_with_the_nearest_and_siblings_run() -> None:
    """Cases 34, 36: the run goes on; hidden tools are not named."""

    def get_time() -> str:
        return "noon"

    def get_weather(city: str) -> str:
        return "sun"

    def get_secret() -> str:
        return "s"

    calls = [ToolCall.of("get_wether", city="x"), ToolCall("", "get_time")]
    async with Rig([calls, "end"], [get_time, get_weather, get_secret], offer=["get_time", "get_weather"]) as rig:
        assert await rig.agent.run("x") == "end"
    told, noon = rig.tool_messages
    assert told == "Error: there is no tool 'get_wether'; available, nearest first: get_weather, get_time"
    assert noon == "noon"


async def test_a_failing_lookup_leaves_no_task_behind() -> None:
    """Case 34: when the turn returns, nothing it started goes on, and effects happened once."""
    log: list[str] = []

    async def slow_write() -> None:
        await asyncio.sleep(0.05)
        log.append("written")

    before = asyncio.all_tasks()
    async with Rig([[ToolCall("", "slow_write"), ToolCall("", "no_such_tool")], "end"], [slow_write]) as rig:
        await rig.agent.run("x")
        assert asyncio.all_tasks() == before
    assert log == ["written"]


@pytest.mark.parametrize(
    ("arguments", "spent", "told"),
    [
        ('{"path": "a.txt", "text": "Lorem ip', True, "the output limit cut this call"),
        ('{"path": "a.txt", "text": "Lorem ip', False, "JSON"),
        ('{path: "a.txt"}', True, "JSON"),
        ('{"path": "a.txt", "text": "x"}', True, "written"),
    ],
    ids=["cut and spent", "cut but not spent", "wrong and spent", "whole and spent"],
)
async def test_a_cut_that_is_labelled_as_tool_calls_is_recognised(arguments: str, *, spent: bool, told: str) -> None:
    """Case 24: unterminated JSON plus a spent output limit is a truncation; whole arguments run normally."""
    from atlas_core._runtime.loop import Plan  # the connection's limit reaches the loop through the plan

    def write(path: str, text: str) -> str:
        return "written"

    turn = LLMResponse(
        message=ChatMessage.assistant("", [ToolCall("1", "write", arguments)]),
        finish_reason=FinishReason.TOOL_CALLS,
        usage=Usage(output_tokens=100 if spent else 7),
    )
    async with Rig([turn, "end"], [write]) as rig:
        await rig.agent.start()
        plan = rig.agent._plan
        assert isinstance(plan, Plan)
        import dataclasses

        rig.agent._plan = dataclasses.replace(plan, defaults=dataclasses.replace(plan.defaults, max_output_tokens=100))
        await rig.agent.run("x")
    assert told in rig.tool_messages[0]


async def test_six_kinds_of_bad_arguments_are_six_results() -> None:
    """Case 20: each call gets its own bounded answer, in call order."""

    def nothing() -> str:
        return "ran"

    payloads = ["null", "[]", "3", '"x"', "{bad", "x" * 300_000]
    async with Rig([[ToolCall("", "nothing", p) for p in payloads], "end"], [nothing]) as rig:
        answer = await rig.agent.run("x")
    assert [r.status for r in answer.result.tool_results] == [CallStatus.OK] + [CallStatus.INVALID_ARGUMENTS] * 5
    assert all(len(text) <= 1100 for text in rig.tool_messages)


async def test_broken_json_never_runs_a_tool_whose_arguments_are_optional() -> None:
    """Case 22: `{}` must not stand in for JSON that could not be read."""
    wiped: list[str] = []

    def wipe(folder: str = "all") -> str:
        wiped.append(folder)
        return folder

    calls = [ToolCall("", "wipe", '{"folder": "tmp'), ToolCall("", "wipe", "{folder: tmp}")]
    async with Rig([calls, "end"], [wipe]) as rig:
        await rig.agent.run("x")
    assert not wiped
    assert all("JSON" in text for text in rig.tool_messages)


# Permissions -----------------------------------------------------------------------------------------------------


async def test_a_denied_tool_is_neither_offered_nor_run() -> None:
    """Case 84: denied tools are invisible, a call is refused as policy, a rule that means nothing is a warning."""

    def shell() -> str:
        return "!"

    def write() -> str:
        return "w"

    def read() -> str:
        return "r"

    rules = {"deny": ["shell", "net.*"], "ask": ["write"], "allow": ["read", "write", "shell"]}
    calls = [ToolCall("", "shell"), ToolCall("", "write"), ToolCall("", "read"), ToolCall("", "shel")]
    async with Rig([calls, "end"], [shell, write, read], permissions=rules) as rig:
        await rig.agent.run("x")
    assert [t.name for t in rig.llm.requests[0].tools] == ["read", "write"]
    assert rig.tool_messages[0] == "Error: tool 'shell' is denied by policy"
    assert "nobody to ask" in rig.tool_messages[1]
    assert rig.tool_messages[2] == "r"
    assert "'shell'" not in rig.tool_messages[3]
    assert [w.text for w in rig.observer.of(RunWarning)] == ["permissions.deny names 'net.*', which matches no tool"]


async def test_a_tool_that_requires_approval_is_not_run_without_someone_to_ask() -> None:
    """`ask` with nobody to ask is a denial."""
    ran: list[int] = []

    @tool(requires_approval=True)
    def pay(amount: int) -> None:
        ran.append(amount)

    async with Rig([ToolCall.of("pay", amount=1), "end"], [pay]) as rig:
        await rig.agent.run("x")
    assert not ran
    assert "approval" in rig.tool_messages[0]


# Cancellation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", BOTH)
async def test_cancelling_the_run_stops_its_tools_and_keeps_what_finished(executor: Any) -> None:
    """Cases 68a, 80: the cancellation propagates, and the history that is left is valid."""
    stopped = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    calls = [ToolCall("1", "add", '{"a":1,"b":2}'), ToolCall("2", "slow"), ToolCall("3", "nope")]
    async with Rig([calls], [add, slow], executor=executor) as rig:
        task = asyncio.create_task(rig.agent.run("x"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert stopped.is_set()
    (ended,) = rig.observer.of(RunEnded)
    assert ended.outcome is RunOutcome.CANCELLED
    results = [m for m in ended.new_messages if m.role == "tool"]
    assert [m.tool_call_id for m in results] == ["1", "2", "3"]
    assert results[0].text == "3"
    assert results[1].text.startswith("Error: interrupted")


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_tool_that_cancels_itself_is_only_its_calls_failure(kind: str) -> None:
    """Case 68b: told by the task's state, not by the exception's class."""

    async def odd_async() -> None:
        raise asyncio.CancelledError("inner")

    def odd_sync() -> None:
        raise asyncio.CancelledError("inner")

    async with Rig([ToolCall("", f"odd_{kind}"), "end"], [odd_async, odd_sync]) as rig:
        assert await rig.agent.run("x") == "end"
    assert rig.tool_messages == ["Error: the tool cancelled itself"]


async def test_a_tools_own_time_limit_is_a_result() -> None:
    """Case 68c: the call times out, the run goes on."""

    @tool(timeout_s=0.05, effects="read")
    async def slow_read() -> None:
        await asyncio.sleep(30)

    @tool(timeout_s=0.05)
    def slow_write() -> None:
        time.sleep(0.5)

    async with Rig([[ToolCall("", "slow_read"), ToolCall("", "slow_write")], "end"], [slow_read, slow_write]) as rig:
        answer = await rig.agent.run("x")
        assert rig.executor.abandoned_calls
    assert [r.status for r in answer.result.tool_results] == [CallStatus.TIMED_OUT, CallStatus.TIMED_OUT]
    read, write = rig.tool_messages
    assert read == "Error: timed out after 0.05 s"
    assert "may still take effect" in write


async def test_the_profile_may_bound_every_call() -> None:
    """`tool_timeout_seconds` holds for tools that state nothing."""

    async def slow() -> None:
        await asyncio.sleep(30)

    async with Rig([ToolCall("", "slow"), "end"], [slow], tool_timeout_seconds=0.05) as rig:
        answer = await rig.agent.run("x")
    assert answer.result.tool_results[0].status is CallStatus.TIMED_OUT


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), StopIteration(), StopAsyncIteration()])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_what_would_end_a_program_ends_only_the_call(error: BaseException, kind: str) -> None:
    """Case 90: the run goes on."""

    async def odd_async() -> None:
        raise error

    def odd_sync() -> None:
        raise error

    async with Rig([ToolCall("", f"odd_{kind}"), "end"], [odd_async, odd_sync]) as rig:
        answer = await rig.agent.run("x")
    assert answer.result.tool_results[0].status is CallStatus.FAILED


# Providers -------------------------------------------------------------------------------------------------------


async def test_a_foreign_error_of_the_provider_is_typed_and_holds_the_run() -> None:
    """A bug in a provider is reported with its owner, and the messages so far are kept."""
    async with Rig([ToolCall.of("add", a=1, b=2), KeyError("choices")], [add]) as rig:
        with pytest.raises(ProviderError, match="KeyError: 'choices'") as caught:
            await rig.agent.run("x")
    assert [m.role for m in caught.value.messages] == ["user", "assistant", "tool"]
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), TimeoutError("t")])
async def test_a_provider_can_neither_end_nor_cancel_its_host(error: BaseException) -> None:
    """What it raises is the run's failure."""
    async with Rig([error]) as rig:
        with pytest.raises(ProviderError):
            await rig.agent.run("x")
    assert rig.observer.of(RunEnded)[0].outcome is RunOutcome.FAILED


@pytest.mark.parametrize("response", [None, "text", LLMResponse(message=ChatMessage.user("x"))])
async def test_what_is_no_response_is_refused(response: Any) -> None:
    """A provider that breaks its contract is told apart from one that failed."""
    llm = FakeLLM([])

    async def complete(request: object) -> Any:
        return response

    llm.complete = complete  # type: ignore[method-assign]  # a provider that is wrong on purpose
    async with Rig([], llm=llm) as rig:
        with pytest.raises(ProviderResponseError):
            await rig.agent.run("x")


# Events ----------------------------------------------------------------------------------------------------------


async def test_every_step_is_told_in_order_with_its_facts() -> None:
    """The trace of a run, from its start to its end."""
    async with Rig([ToolCall.of("add", id="c", a=1, b="2"), "3"], [add]) as rig:
        answer = await rig.agent.run("x")
    kinds = [type(e) for e in rig.observer.events]
    assert kinds == [
        RunStarted,
        ModelRequested,
        ModelResponded,
        ToolCallStarted,
        ToolCallEnded,
        ModelRequested,
        ModelResponded,
        RunEnded,
    ]
    assert {e.run_id for e in rig.observer.events} == {answer.result.run_id}
    assert {e.agent_id for e in rig.observer.events} == {"tester"}
    assert [e.iteration for e in rig.observer.events] == [0, 1, 1, 1, 1, 2, 2, 2]
    assert rig.observer.of(ToolCallStarted)[0].decoded == ("b",)
    assert [e.messages for e in rig.observer.of(ModelRequested)] == [1, 3]
    assert rig.observer.of(RunEnded)[0].new_messages == answer.result.new_messages


async def test_events_cant_be_changed() -> None:
    """A call carries its arguments as text, so each reader decodes its own."""
    async with Rig([ToolCall.of("add", a=1, b=2), "3"], [add]) as rig:
        await rig.agent.run("x")
    (event,) = rig.observer.of(ToolCallStarted)
    event.call.arguments["a"] = 99
    assert event.call.arguments == {"a": 1, "b": 2}
    with pytest.raises(AttributeError):
        event.iteration = 7  # type: ignore[misc]  # frozen on purpose


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
async def test_an_observer_can_neither_change_nor_break_a_run(error: BaseException, caplog: Any) -> None:
    """Case 92: one that raises is logged once, the others are told all the same."""

    class Bad:
        def on_event(self, event: object) -> None:
            raise error

    async with Rig(["hi"]) as rig:
        rig.agent._parts = __import__("dataclasses").replace(
            rig.agent._parts, observers=((Bad(), rig.agent._parts.owner), *rig.agent._parts.observers)
        )
        assert await rig.agent.run("x") == "hi"
    assert isinstance(rig.observer.events[-1], RunEnded)
    assert len([r for r in caplog.records if "observer Bad" in r.getMessage()]) == 1


@pytest.mark.parametrize(
    "script",
    [["ok"], [KeyError("x")], [cut("part")], [ToolCall("", "boom"), "ok"], [[ToolCall("", "boom")]] * 2],
    ids=["answer", "provider error", "cut", "tool error", "limit"],
)
async def test_exactly_one_end_follows_each_start(script: list[Any]) -> None:
    """Case 92: whatever happened."""

    def boom() -> None:
        raise ValueError("boom")

    async with Rig(script, [boom], max_iterations=2) as rig:
        caught: RunError | None = None
        try:
            await rig.agent.run("x")
        except RunError as exc:
            caught = exc
    (ended,) = rig.observer.of(RunEnded)
    assert ended.error_type == (type(caught).__name__ if caught is not None else "")
    assert caught is None or caught.result is not None
    assert len(rig.observer.of(RunStarted)) == len(rig.observer.of(RunEnded)) == 1


async def test_an_executor_that_breaks_its_contract_ends_the_run_with_its_name() -> None:
    """One outcome per call, nothing else."""
    from atlas_core import BaseToolExecutor, ExecutorError, Outcome

    class Few(BaseToolExecutor):
        async def execute_batch(self, calls: Any) -> Any:
            return []

    class Wrong(BaseToolExecutor):
        async def execute_batch(self, calls: Any) -> Any:
            return ["x"] * len(calls)

    class Gone(BaseToolExecutor):
        async def execute_batch(self, calls: Any) -> list[Outcome]:
            await calls[0].invoke()
            raise OSError("cluster lost")

    class Odd(BaseToolExecutor):
        async def execute_batch(self, calls: Any) -> list[Outcome]:
            raise asyncio.CancelledError

    class Own(BaseToolExecutor):
        async def execute_batch(self, calls: Any) -> list[Outcome]:
            raise ExecutorError("scheduler lost")

    for kind, text in (
        (Few, "0 outcomes"),
        (Wrong, "returned 'x'"),
        (Gone, "cluster lost"),
        (Odd, "itself"),
        (Own, "sch"),
    ):
        async with Rig([[ToolCall.of("add", a=1, b=2), ToolCall.of("add", a=1, b=3)]], [add], executor=kind) as rig:
            with pytest.raises(ExecutorError, match=text) as caught:
                await rig.agent.run("x")
            assert [m.role for m in caught.value.messages] == ["user", "assistant", "tool", "tool"]
            if kind is Gone:
                assert caught.value.messages[2].text == "3"


# Streaming -------------------------------------------------------------------------------------------------------


async def test_stream_yields_text_as_it_comes_and_the_same_end() -> None:
    """The pieces join to the answer; `result` is what `run` would have given."""
    async with Rig([ToolCall.of("add", a=1, b=2), "The sum is 3"], [add], stream_chars=4) as rig:
        stream = rig.agent.stream("x")
        events = [e async for e in stream]
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "The sum is 3"
        assert stream.result.output == "The sum is 3"
        assert isinstance(events[0], RunStarted)
        assert isinstance(events[-1], RunEnded)
        assert [e async for e in stream] == []


async def test_stream_raises_what_the_run_raised_after_its_end_was_told() -> None:
    """Errors come from the iteration."""
    async with Rig([KeyError("x")]) as rig:
        stream = rig.agent.stream("x")
        kinds = [type(await anext(stream)) for _ in range(3)]
        assert kinds[-1] is RunEnded
        with pytest.raises(ProviderError):
            await anext(stream)


@pytest.mark.parametrize("how", ["break", "return", "exception", "aclose elsewhere", "dropped"])
async def test_leaving_a_stream_early_cancels_its_run(how: str, caplog: Any) -> None:
    """Case 128: no further tool is started, and nothing is logged as an error."""
    ran: list[int] = []

    async def step() -> None:
        await asyncio.sleep(0.02)
        ran.append(1)

    async with Rig([ToolCall("", "step")] * 50, [step], max_iterations=50) as rig:
        stream = rig.agent.stream("x")

        async def consume() -> None:
            async for _ in stream:
                if how in ("break", "dropped"):
                    break
                if how == "return":
                    return
                if how == "exception":
                    raise LookupError
                await asyncio.create_task(stream.aclose())

        try:
            await consume()
        except LookupError:
            assert how == "exception"
        if how == "dropped":
            del consume, stream
        else:
            await stream.aclose()
        await asyncio.sleep(0.1)
        count = len(ran)
        await asyncio.sleep(0.1)
        assert len(ran) == count
    assert rig.observer.of(RunEnded)[0].outcome is RunOutcome.CANCELLED
    assert not [r for r in caplog.records if r.levelname == "ERROR"]
