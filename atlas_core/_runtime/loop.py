"""The loop: think, decide, act, observe, until an answer or a limit.

One `Run` is one `run()`. It is made from an agent's `Plan`, which was worked out when the agent started, so that a
step costs the same early and late: nothing here walks the history but the repair at a run's start.
"""

from __future__ import annotations

import contextvars
import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from atlas_core import events as ev
from atlas_core._runtime.asking import Asking, DeadlinePassedError
from atlas_core._runtime.budget import TokenBudget
from atlas_core._runtime.dispatch import CallScope
from atlas_core._runtime.history import Ids, repair
from atlas_core._runtime.invoke import error_text
from atlas_core.errors import (
    AgentMaxIterationsError,
    AgentTimeoutError,
    EmptyAnswerError,
    LimitError,
    OutputLimitError,
    RunError,
)
from atlas_core.interfaces.llm import FinishReason, LLMDefaults, LLMDelta, LLMResponse
from atlas_core.messages import CallStatus, ChatMessage, RunOutcome, RunResult, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from atlas_core._runtime.dispatch import Batch, Dispatcher
    from atlas_core._runtime.observing import Audience
    from atlas_core.interfaces.llm import BaseLLM
    from atlas_core.interfaces.runs import RunStore
    from atlas_core.limits import RunLimits
    from atlas_core.owner import Owner

__all__ = ["CURRENT_RUN", "Plan", "Run", "RunScope"]

NOT_RUN_AT_LIMIT = "the limit of {limit} model requests is reached; this call was not run"
CUT = "the output limit cut this message, so none of its calls was run; re-issue them, with less text"
NOT_RUN_DECLINED = "the message declined, so this call was not run"
LOOKS_LIKE_CALL = re.compile(r'"tool_calls"\s*:')


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run hands down to runs that its tools start."""

    run_id: str
    deadline: float | None


CURRENT_RUN: contextvars.ContextVar[RunScope | None] = contextvars.ContextVar("atlas_run", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What stays the same over the runs of one agent."""

    agent_id: str
    llm: BaseLLM
    defaults: LLMDefaults
    dispatcher: Dispatcher
    store: RunStore
    connection: str
    agent_owner: Owner
    llm_owner: Owner
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """Who answers, in words."""
        return self.llm.label or type(self.llm).__name__


class Run:
    """One run; made for one `execute` and thrown away.

    Args:
        plan: The agent's.
        limits: What the run may use.
        message: The user's.
        history: A list that is the run's own.
        context: What tools get as their context's `context`.
        audience: Who is told.
        on_delta: Called with each piece of text; None asks for whole answers.
    """

    def __init__(
        self,
        plan: Plan,
        limits: RunLimits,
        message: ChatMessage,
        history: Sequence[ChatMessage],
        *,
        context: object,
        audience: Audience,
        on_delta: Callable[[ev.Event], None] | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex
        self._plan = plan
        self._limits = limits
        self._message = message
        self._audience = audience
        self._listener = on_delta
        self._ids = Ids()
        self._messages, self._repairs = repair(history, self._ids)
        self._history_length = len(self._messages)
        parent = CURRENT_RUN.get()
        self._parent_id = parent.run_id if parent is not None else None
        self._began = time.monotonic()
        self._deadline = _earlier(limits.max_execution_time_seconds, parent, self._began)
        self._scope = CallScope(run_id=self.id, agent_id=plan.agent_id, context=context, deadline=self._deadline)
        self._budget = TokenBudget(limits.max_tokens)
        self._usage = Usage()
        self._iteration = 0
        self._calls_started = 0
        self._results: list[ToolResult] = []
        self._batch: Batch | None = None
        self._output = ""
        self.result: RunResult | None = None

    # Telling ---------------------------------------------------------------------------------------------------

    def _facts(self, owner: Owner) -> dict[str, object]:
        return {
            "run_id": self.id,
            "parent_run_id": self._parent_id,
            "agent_id": self._plan.agent_id,
            "iteration": self._iteration,
            "time_s": time.time(),
            "plugin": owner.plugin,
            "distribution": owner.distribution,
        }

    def _tell(self, event: ev.Event) -> None:
        self._audience.tell(event)
        if self._listener is not None:
            self._listener(event)

    async def _record(self, event: ev.Event) -> None:
        """Tell, and have it written down before the run goes on."""
        self._tell(event)
        try:
            await self._plan.store.append(event)
        except Exception as exc:
            raise RunError(f"the run store failed: {error_text(exc)}", remedy="see the store's own settings") from exc

    def _warn(self, text: str) -> None:
        self._tell(ev.RunWarning(text=text, **self._facts(self._plan.agent_owner)))  # type: ignore[arg-type]  # facts

    # The run ---------------------------------------------------------------------------------------------------

    async def execute(self) -> RunResult:
        """Run to the end; exactly one `RunEnded` is told, whatever happens.

        Raises:
            RunError: It ended without an answer; the error holds the result so far.
        """
        token = CURRENT_RUN.set(RunScope(self.id, self._deadline))
        try:
            await self._begin()
            outcome = await self._converse()
        except RunError as exc:
            outcome = RunOutcome.LIMIT if isinstance(exc, LimitError) else RunOutcome.FAILED
            self._seal()
            exc.result = self._make_result(outcome)
            await self._finish(outcome, exc, quietly=True)
            raise
        except BaseException as exc:
            outcome = RunOutcome.FAILED if isinstance(exc, Exception) else RunOutcome.CANCELLED
            self._seal()
            self._make_result(outcome)
            await self._finish(outcome, exc, quietly=True)
            raise
        finally:
            CURRENT_RUN.reset(token)
        result = self._make_result(outcome)
        await self._finish(outcome, None)
        return result

    async def _begin(self) -> None:
        plan = self._plan
        await self._record(
            ev.RunStarted(
                message=self._message,
                model=plan.model,
                tools=tuple(plan.dispatcher.toolset.offered),
                history_messages=self._history_length,
                notice=plan.llm.notice,
                **self._facts(plan.agent_owner),  # type: ignore[arg-type]  # the facts are an event's own fields
            )
        )
        for text in plan.warnings:
            self._warn(text)
        if self._repairs:
            self._tell(
                ev.HistoryRepaired(repairs=tuple(self._repairs), **self._facts(plan.agent_owner))  # type: ignore[arg-type]  # as above
            )

    async def _converse(self) -> RunOutcome:
        asking = Asking(self._plan.llm, self._plan.llm_owner, self._plan.defaults)
        try:
            self._messages.append(self._message)
            self._hand_over(asking, self._messages)
            empty_before = False
            while True:
                response = await self._think(asking)
                message = response.message
                empty = not message.tool_calls and not message.text.strip()
                if empty and response.finish_reason is not FinishReason.DECLINED:
                    if empty_before or self._iteration >= self._limits.max_iterations:
                        raise EmptyAnswerError(
                            f"the model answered with neither text nor a tool call (finish reason "
                            f"{str(response.finish_reason)!r})",
                            owner=str(self._plan.llm_owner),
                        )
                    self._warn("the model answered with nothing and is asked once more")
                    empty_before = True
                    continue
                empty_before = False
                message = self._with_ids(message)
                done = await self._decide(message, response)
                if done is not None:
                    return done
                new = await self._act(message, response)
                self._hand_over(asking, [message, *new])
        finally:
            await asking.close()

    def _hand_over(self, asking: Asking, messages: Sequence[ChatMessage]) -> None:
        self._budget.add(messages)
        asking.hand_over(messages)

    async def _think(self, asking: Asking) -> LLMResponse:
        """Ask the model for its next message."""
        self._check_time()
        self._budget.reserve(self._plan.defaults.max_output_tokens)
        self._iteration += 1
        facts = self._facts(self._plan.llm_owner)
        self._tell(
            ev.ModelRequested(connection=self._plan.connection, messages=len(self._messages), **facts)  # type: ignore[arg-type]  # facts
        )
        began = time.perf_counter()
        response = await self._ask(asking)
        usage = response.usage if response.usage.requests else replace(response.usage, requests=1)
        self._usage += usage
        self._budget.settle(usage)
        await self._record(
            ev.ModelResponded(
                message=response.message,
                finish_reason=str(response.finish_reason),
                usage=usage,
                duration_s=time.perf_counter() - began,
                request_id=response.request_id,
                **self._facts(self._plan.llm_owner),  # type: ignore[arg-type]  # the facts are an event's own fields
            )
        )
        return response

    async def _ask(self, asking: Asking) -> LLMResponse:
        left = None if self._deadline is None else self._deadline - time.monotonic()
        on_delta = self._tell_delta if self._listener is not None else None
        try:
            return await asking.ask(left_s=left, deadline=self._deadline, on_delta=on_delta)
        except DeadlinePassedError as exc:
            raise self._timed_out("while waiting for the model") from exc

    def _tell_delta(self, piece: LLMDelta) -> None:
        self._tell(ev.TextDelta(text=piece.text, kind=piece.kind, **self._facts(self._plan.llm_owner)))  # type: ignore[arg-type]  # facts

    def _with_ids(self, message: ChatMessage) -> ChatMessage:
        """Make call ids unique in the conversation."""
        if not message.tool_calls:
            return message
        calls = tuple(
            call
            if (new := self._ids.unique(call.id, f"call_{self._iteration}_{n}")) == call.id
            else _renamed(call, new)
            for n, call in enumerate(message.tool_calls, 1)
        )
        return replace(message, tool_calls=calls)

    async def _decide(self, message: ChatMessage, response: LLMResponse) -> RunOutcome | None:
        """Note the message; return the outcome if the run ends with it, None if its calls are to be run."""
        self._messages.append(message)
        calls = message.tool_calls
        if response.finish_reason is FinishReason.DECLINED:
            self._output = message.text
            await self._answer_unrun(calls, NOT_RUN_DECLINED)
            return RunOutcome.DECLINED
        if not calls:
            self._output = message.text
            if LOOKS_LIKE_CALL.search(message.text):
                self._warn("the answer's text looks like a tool call; text is never executed")
            if response.finish_reason is FinishReason.LENGTH:
                raise OutputLimitError(
                    "the answer was cut by the model's output limit",
                    limit=self._plan.defaults.max_output_tokens,
                    owner=str(self._plan.llm_owner),
                    remedy="raise max_output_tokens of the connection; the part that came is in .result.output",
                )
            return RunOutcome.ANSWERED
        if self._iteration >= self._limits.max_iterations:
            limit = self._limits.max_iterations
            await self._answer_unrun(calls, NOT_RUN_AT_LIMIT.format(limit=limit))
            raise AgentMaxIterationsError(
                f"agent {self._plan.agent_id!r} still asked for {len(calls)} tool calls after {limit} model requests",
                limit=limit,
                remedy="raise max_iterations, or go on with this error's .messages as history",
            )
        return None

    async def _answer_unrun(self, calls: Sequence[ToolCall], why: str) -> list[ChatMessage]:
        new = []
        for call in calls:
            result = ToolResult(call=call, status=CallStatus.REFUSED, content=f"Error: {why}", error=why)
            new.append(self._observe(result))
            await self._record(self._ended(result))
        return new

    # Acting ----------------------------------------------------------------------------------------------------

    async def _act(self, message: ChatMessage, response: LLMResponse) -> list[ChatMessage]:
        """Run the message's calls and return their results as messages, in call order."""
        if response.finish_reason is FinishReason.LENGTH:
            return await self._answer_unrun(message.tool_calls, CUT)
        limit = self._limits
        most = limit.max_calls_per_step
        if limit.max_tool_calls is not None:
            most = min(most, limit.max_tool_calls - self._calls_started)
        dispatcher = self._plan.dispatcher
        most_output = self._plan.defaults.max_output_tokens
        spent = most_output is not None and response.usage.output_tokens >= most_output
        batch = dispatcher.prepare(message.tool_calls, self._scope, most=most, cut=spent)
        self._batch = batch
        ready = batch.ready
        self._calls_started += len(ready)
        for slot in ready:
            assert slot.ready is not None and slot.offered is not None  # noqa: S101, PT018  # what makes it ready
            await self._record(
                ev.ToolCallStarted(
                    call=slot.call,
                    decoded=slot.ready.decoded,
                    executor=dispatcher.executor_name,
                    **self._facts(slot.offered.owner),  # type: ignore[arg-type]  # the facts are an event's own fields
                )
            )
        await dispatcher.execute(batch, self._deadline)
        new = []
        for slot in batch.slots:
            assert slot.result is not None  # noqa: S101  # executed or refused, each is settled
            new.append(self._observe(slot.result))
            await self._record(self._ended(slot.result, truncated=slot.truncated))
        self._batch = None
        return new

    def _observe(self, result: ToolResult) -> ChatMessage:
        message = ChatMessage.tool(result.call, result.content, is_error=result.status is not CallStatus.OK)
        self._messages.append(message)
        self._results.append(result)
        return message

    def _ended(self, result: ToolResult, *, truncated: bool = False) -> ev.ToolCallEnded:
        facts = self._facts(self._plan.agent_owner)
        if result.plugin:
            facts["plugin"], facts["distribution"] = result.plugin, result.distribution
        return ev.ToolCallEnded(
            call=result.call,
            status=result.status,
            content=result.content,
            error=result.error,
            duration_s=result.duration_s,
            truncated=truncated,
            **facts,  # type: ignore[arg-type]  # the facts are an event's own fields
        )

    # Ending ----------------------------------------------------------------------------------------------------

    def _check_time(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise self._timed_out("between two steps")

    def _timed_out(self, when: str) -> AgentTimeoutError:
        took = time.monotonic() - self._began
        return AgentTimeoutError(
            f"agent {self._plan.agent_id!r} ran out of time after {took:.3g} s, {when}",
            limit=self._limits.max_execution_time_seconds,
            remedy="raise max_execution_time_seconds, or go on with this error's .messages as history",
        )

    def _seal(self) -> None:
        """Leave a valid conversation behind: every call of the last message gets its result."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        batch.interrupt()
        answered = {m.tool_call_id for m in self._messages[self._history_length :] if m.role == "tool"}
        for slot in batch.slots:
            if slot.result is not None and slot.call.id not in answered:
                self._observe(slot.result)
                self._tell(self._ended(slot.result, truncated=slot.truncated))

    def _make_result(self, outcome: RunOutcome) -> RunResult:
        messages = tuple(self._messages)
        self.result = RunResult(
            run_id=self.id,
            outcome=outcome,
            output=self._output,
            messages=messages,
            new_messages=messages[self._history_length :],
            tool_results=tuple(self._results),
            usage=self._usage,
            iterations=self._iteration,
            model=self._plan.model,
        )
        return self.result

    async def _finish(self, outcome: RunOutcome, error: BaseException | None, *, quietly: bool = False) -> None:
        assert self.result is not None  # noqa: S101  # made by every caller just before
        event = ev.RunEnded(
            outcome=outcome,
            output=self._output,
            error_type=type(error).__name__ if error is not None else "",
            error=error_text(error) if error is not None else "",
            usage=self._usage,
            iterations=self._iteration,
            duration_s=time.monotonic() - self._began,
            new_messages=self.result.new_messages,
            **self._facts(self._plan.agent_owner),  # type: ignore[arg-type]  # the facts are an event's own fields
        )
        self._tell(event)
        try:
            await self._plan.store.append(event)
        except Exception as exc:
            if not quietly:  # what ended the run matters more than that its end was not written down
                raise RunError(f"the run store failed: {error_text(exc)}") from exc


def _renamed(call: ToolCall, new: str) -> ToolCall:
    return ToolCall(new, call.name, call.arguments_json)


def _earlier(limit_s: float | None, parent: RunScope | None, now: float) -> float | None:
    own = None if limit_s is None else now + limit_s
    if parent is None or parent.deadline is None:
        return own
    return parent.deadline if own is None else min(own, parent.deadline)
