"""The loop: think, decide, act, observe, until an answer or a limit.

One `Run` is one `run()`. It is made from an agent's `Plan`, which was worked out when the agent started, so that a
step costs the same early and late: nothing here walks the history but the repair at a run's start.
"""

from __future__ import annotations

import contextvars
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from atlas_core import events as ev
from atlas_core._runtime.asking import Asking, DeadlinePassedError, Reply
from atlas_core._runtime.budget import Budget, Price
from atlas_core._runtime.dispatch import CallScope, OverdueError
from atlas_core._runtime.history import Ids, repair
from atlas_core._runtime.invoke import error_text
from atlas_core._runtime.output import MISSING, OutputWatch
from atlas_core._runtime.telling import Teller
from atlas_core.errors import (
    AgentMaxIterationsError,
    AgentTimeoutError,
    EmptyAnswerError,
    InvalidOutputError,
    LimitError,
    OutputLimitError,
    RunError,
)
from atlas_core.interfaces.llm import FinishReason, LLMDefaults, LLMDelta, LLMResponse
from atlas_core.messages import CallStatus, ChatMessage, RunOutcome, RunResult, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from atlas_core._runtime.dispatch import Batch, Dispatcher
    from atlas_core._runtime.observing import Audience
    from atlas_core._runtime.output import OutputType
    from atlas_core.interfaces.llm import BaseLLM
    from atlas_core.interfaces.runs import RunStore
    from atlas_core.limits import RunLimits
    from atlas_core.owner import Owner

__all__ = ["CURRENT_RUN", "Plan", "Run", "RunScope", "earlier"]

NOT_RUN_AT_LIMIT = "the limit of {limit} model requests is reached; this call was not run"
NOT_RUN_ANSWERED = "the final answer was given in the same message; this call was not run"
NOT_RUN_DECLINED = "the message declined, so this call was not run"
CUT = "the output limit cut this message, so none of its calls was run; re-issue them, with less text"
LOOKS_LIKE_CALL = re.compile(r'"tool_calls"\s*:')


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run hands down to runs that its tools start."""

    run_id: str
    deadline: float | None
    budget: Budget


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
    as_text: bool = False
    """Whether tools are offered in the prompt and called in the text."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    fixed_tokens: int = 0
    """About what the system prompt and the tools' schemas add to each request."""
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
        output: What type the answer must have; None for text.
        listener: Called with each event, pieces of text among them; None asks for whole answers.
        began: When the run's time began to count, on the clock of `time.monotonic()`.
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
        output: OutputType | None = None,
        listener: Callable[[ev.Event], None] | None = None,
        began: float | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex
        self._plan = plan
        self._limits = limits
        self._message = message
        self._streams = listener is not None
        self._watch = _watch_for(output, plan)
        self._ids = Ids()
        self._messages, self._repairs = repair(history, self._ids)
        self._history_length = len(self._messages)
        parent = CURRENT_RUN.get()
        self._teller = Teller(
            run_id=self.id,
            parent_run_id=parent.run_id if parent is not None else None,
            agent_id=plan.agent_id,
            agent_owner=plan.agent_owner,
            audience=audience,
            store=plan.store,
            listener=listener,
        )
        self._began = time.monotonic() if began is None else began
        self._deadline = earlier(limits.max_execution_time_seconds, parent, self._began)
        self._scope = CallScope(run_id=self.id, agent_id=plan.agent_id, context=context, deadline=self._deadline)
        self._budget = Budget(
            max_tokens=limits.max_tokens,
            max_cost=limits.max_cost,
            prices=plan.prices,
            connection=plan.connection,
            parent=parent.budget if parent is not None else None,
            fixed_tokens=plan.fixed_tokens,
        )
        self._usage = Usage()
        self._iteration = 0
        self._calls_started = 0
        self._was_empty = False
        self._results: list[ToolResult] = []
        self._batch: Batch | None = None
        self._output = ""
        self.result: RunResult | None = None

    async def execute(self) -> RunResult:
        """Run to the end; exactly one `RunEnded` is told, whatever happens.

        Raises:
            RunError: It ended without an answer; the error holds the result so far.
        """
        token = CURRENT_RUN.set(RunScope(self.id, self._deadline, self._budget))
        try:
            await self._begin()
            outcome = await self._converse()
        except RunError as exc:
            outcome = RunOutcome.LIMIT if isinstance(exc, LimitError) else RunOutcome.FAILED
            self._seal()
            exc.result = self._make_result(outcome)
            await self._finish(outcome, exc)
            raise
        except BaseException as exc:
            outcome = RunOutcome.FAILED if isinstance(exc, Exception) else RunOutcome.CANCELLED
            self._seal()
            self._make_result(outcome)
            await self._finish(outcome, exc)
            raise
        finally:
            CURRENT_RUN.reset(token)
        result = self._make_result(outcome)
        await self._finish(outcome, None)
        return result

    async def _begin(self) -> None:
        plan, teller = self._plan, self._teller
        await teller.record(
            ev.RunStarted(
                message=self._message,
                model=plan.model,
                tools=tuple(plan.dispatcher.toolset.offered),
                history_messages=self._history_length,
                notice=plan.llm.notice,
                **teller.facts(),
            )
        )
        for text in plan.warnings:
            teller.warn(text)
        if self._repairs:
            teller.tell(ev.HistoryRepaired(repairs=tuple(self._repairs), **teller.facts()))

    async def _converse(self) -> RunOutcome:
        plan = self._plan
        defaults = self._watch.adjust(plan.defaults) if self._watch is not None else plan.defaults
        asking = Asking(plan.llm, plan.llm_owner, defaults, as_text=plan.as_text)
        try:
            self._messages.append(self._message)
            self._hand_over(asking, self._messages)
            while True:
                taken = await self._take(await self._think(asking))
                if isinstance(taken, RunOutcome):
                    return taken
                self._hand_over(asking, taken)
        finally:
            await asking.close()

    def _hand_over(self, asking: Asking, messages: Sequence[ChatMessage]) -> None:
        if messages:
            self._budget.add(messages)
            asking.hand_over(messages)

    # Thinking --------------------------------------------------------------------------------------------------

    async def _think(self, asking: Asking) -> Reply:
        """Ask the model for its next message."""
        plan, teller = self._plan, self._teller
        self._check_time()
        reserved = self._budget.reserve(plan.defaults.max_output_tokens)
        self._iteration += 1
        teller.iteration = self._iteration
        teller.tell(
            ev.ModelRequested(connection=plan.connection, messages=len(self._messages), **teller.facts(plan.llm_owner))
        )
        began = time.perf_counter()
        try:
            reply = await self._ask(asking)
        except BaseException:
            self._budget.release(reserved)
            raise
        response = reply.response
        usage = response.usage if response.usage.requests else replace(response.usage, requests=1)
        told = self._budget.estimates
        usage = self._budget.settle(reserved, usage, response.message, response.connection)
        if self._budget.estimates and not told:
            teller.warn("the server counts no tokens; the run's budget is kept by estimates")
        self._usage += usage
        for note in response.notes:
            teller.warn(note)
        await teller.record(
            ev.ModelResponded(
                message=response.message,
                finish_reason=str(response.finish_reason),
                usage=usage,
                duration_s=time.perf_counter() - began,
                request_id=response.request_id,
                connection=response.connection or plan.connection,
                model=response.model,
                **teller.facts(plan.llm_owner),
            )
        )
        return reply

    async def _ask(self, asking: Asking) -> Reply:
        try:
            return await asking.ask(
                iteration=self._iteration,
                left_s=None if self._deadline is None else self._deadline - time.monotonic(),
                deadline=self._deadline,
                on_delta=self._tell_delta if self._streams else None,
            )
        except DeadlinePassedError as exc:
            raise self._timed_out("while waiting for the model") from exc

    def _tell_delta(self, piece: LLMDelta) -> None:
        teller = self._teller
        teller.tell(ev.TextDelta(text=piece.text, kind=piece.kind, **teller.facts(self._plan.llm_owner)))

    # Deciding --------------------------------------------------------------------------------------------------

    async def _take(self, reply: Reply) -> RunOutcome | list[ChatMessage]:
        """Act on a reply; return how the run ends, or what the conversation gained."""
        response = reply.response
        message = self._with_ids(response.message)
        calls = message.tool_calls
        if not calls and not message.text.strip() and response.finish_reason is not FinishReason.DECLINED:
            self._refuse_empty(response)
            return []
        self._was_empty = False
        self._messages.append(message)
        if response.finish_reason is FinishReason.DECLINED:
            self._output = message.text
            await self._answer_unrun(calls, NOT_RUN_DECLINED)
            return RunOutcome.DECLINED
        if reply.problem is not None:
            return self._correct(message, reply.problem)
        if not calls:
            return self._take_text(message, response)
        answer = self._watch.answering(calls) if self._watch is not None else None
        problem = self._take_answer(answer) if answer is not None else None
        if answer is not None and problem is None:
            await self._answer_unrun([call for call in calls if call is not answer], NOT_RUN_ANSWERED)
            self._messages.append(ChatMessage.tool(answer, "accepted"))
            return RunOutcome.ANSWERED
        if self._iteration >= self._limits.max_iterations:
            await self._answer_unrun(calls, NOT_RUN_AT_LIMIT.format(limit=self._limits.max_iterations))
            raise self._too_many(f"{len(calls)} tool calls")
        preset = {answer.id: problem} if answer is not None and problem is not None else {}
        return [message, *await self._act(calls, response, preset)]

    def _with_ids(self, message: ChatMessage) -> ChatMessage:
        """Make call ids unique in the conversation."""
        if not message.tool_calls:
            return message
        calls = []
        for n, call in enumerate(message.tool_calls, 1):
            new = self._ids.unique(call.id, f"call_{self._iteration}_{n}")
            calls.append(call if new == call.id else ToolCall(new, call.name, call.arguments_json))
        return replace(message, tool_calls=tuple(calls))

    def _refuse_empty(self, response: LLMResponse) -> None:
        """Let a model that said nothing be asked once more, and only once."""
        if self._was_empty or self._iteration >= self._limits.max_iterations:
            raise EmptyAnswerError(
                f"the model answered with neither text nor a tool call (finish reason {str(response.finish_reason)!r})",
                owner=str(self._plan.llm_owner),
            )
        self._teller.warn("the model answered with nothing and is asked once more")
        self._was_empty = True

    def _take_text(self, message: ChatMessage, response: LLMResponse) -> RunOutcome | list[ChatMessage]:
        """Take a message without calls as the answer, if it is one."""
        self._output = message.text
        if response.finish_reason is FinishReason.LENGTH:
            raise OutputLimitError(
                "the answer was cut by the model's output limit",
                limit=self._plan.defaults.max_output_tokens,
                owner=str(self._plan.llm_owner),
                remedy="raise max_output_tokens of the connection; the part that came is in .result.output",
            )
        if self._watch is not None:
            problem = self._watch.take(message.text)
            if problem is None:
                return RunOutcome.ANSWERED
            self._refuse_output(problem)
            return self._correct(message, problem)
        if not self._plan.as_text and LOOKS_LIKE_CALL.search(message.text):
            self._teller.warn("the answer's text looks like a tool call; text is never executed")
        return RunOutcome.ANSWERED

    def _take_answer(self, answer: ToolCall) -> str | None:
        """Read an answer that came as a call; return what is wrong with it."""
        assert self._watch is not None  # noqa: S101  # it found the call
        self._output = answer.arguments_json
        problem = self._watch.take(answer.arguments_json)
        if problem is not None:
            self._refuse_output(problem)
        return problem

    def _refuse_output(self, problem: str) -> None:
        """End the run if the answer has missed its type too often."""
        assert self._watch is not None  # noqa: S101  # it stated the problem
        if self._watch.gave_up or self._iteration >= self._limits.max_iterations:
            raise InvalidOutputError(
                f"the answer does not meet the output type: {problem}",
                owner=str(self._plan.llm_owner),
                remedy="see .result.output; try a simpler type or another model",
            )
        self._teller.warn(f"the answer does not meet the output type and is asked for again: {problem}")

    def _correct(self, message: ChatMessage, problem: str) -> list[ChatMessage]:
        """Tell the model what was wrong with its message."""
        if self._iteration >= self._limits.max_iterations:
            raise self._too_many("a corrected message")
        told = ChatMessage.user(problem)
        self._messages.append(told)
        return [message, told]

    def _too_many(self, wanted: str) -> AgentMaxIterationsError:
        limit = self._limits.max_iterations
        return AgentMaxIterationsError(
            f"agent {self._plan.agent_id!r} still asked for {wanted} after {limit} model requests",
            limit=limit,
            remedy="raise max_iterations, or go on with this error's .messages as history",
        )

    async def _answer_unrun(self, calls: Sequence[ToolCall], why: str) -> list[ChatMessage]:
        new = []
        for call in calls:
            result = ToolResult(call=call, status=CallStatus.REFUSED, content=f"Error: {why}", error=why)
            new.append(self._observe(result))
            await self._teller.record(self._teller.call_ended(result))
        return new

    # Acting ----------------------------------------------------------------------------------------------------

    async def _act(
        self, calls: Sequence[ToolCall], response: LLMResponse, preset: Mapping[str, str]
    ) -> list[ChatMessage]:
        """Run a message's calls and return their results as messages, in call order."""
        if response.finish_reason is FinishReason.LENGTH:
            return await self._answer_unrun(calls, CUT)
        limit = self._limits
        most = limit.max_calls_per_step
        if limit.max_tool_calls is not None:
            most = min(most, limit.max_tool_calls - self._calls_started)
        dispatcher = self._plan.dispatcher
        most_output = self._plan.defaults.max_output_tokens
        spent = most_output is not None and response.usage.output_tokens >= most_output
        batch = self._batch = dispatcher.prepare(calls, self._scope, most=most, cut=spent, preset=preset)
        ready = batch.ready
        self._calls_started += len(ready)
        for slot in ready:
            assert slot.ready is not None and slot.offered is not None  # noqa: S101, PT018  # what makes it ready
            await self._teller.record(
                ev.ToolCallStarted(
                    call=slot.call,
                    decoded=slot.ready.decoded,
                    executor=dispatcher.executor_name,
                    **self._teller.facts(slot.offered.owner),
                )
            )
        try:
            await dispatcher.execute(batch, self._deadline)
        except OverdueError as exc:
            raise self._timed_out(f"and executor {dispatcher.executor_name!r} did not stop") from exc
        new = []
        for slot in batch.slots:
            assert slot.result is not None  # noqa: S101  # executed or refused, each is settled
            new.append(self._observe(slot.result))
            await self._teller.record(self._teller.call_ended(slot.result, truncated=slot.truncated))
        self._batch = None
        return new

    def _observe(self, result: ToolResult) -> ChatMessage:
        message = ChatMessage.tool(result.call, result.content, is_error=result.status is not CallStatus.OK)
        self._messages.append(message)
        self._results.append(result)
        return message

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
                self._teller.tell(self._teller.call_ended(slot.result, truncated=slot.truncated))

    def _make_result(self, outcome: RunOutcome) -> RunResult:
        messages = tuple(self._messages)
        value = self._watch.value if self._watch is not None else MISSING
        self.result = RunResult(
            run_id=self.id,
            outcome=outcome,
            output=self._output,
            value=None if value is MISSING else value,
            messages=messages,
            new_messages=messages[self._history_length :],
            tool_results=tuple(self._results),
            usage=self._usage,
            iterations=self._iteration,
            model=self._plan.model,
        )
        return self.result

    async def _finish(self, outcome: RunOutcome, error: BaseException | None) -> None:
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
            **self._teller.facts(),
        )
        try:
            await self._teller.record(event)
        except RunError:
            if error is None:
                raise
            # What ended the run matters more than that its end was not written down.


def _watch_for(output: OutputType | None, plan: Plan) -> OutputWatch | None:
    if output is None:
        return None
    can = plan.llm.capabilities
    return OutputWatch(
        output,
        schema_mode=can.schema_output,
        native_tools=can.native_tools and not plan.as_text,
        tool_names=plan.dispatcher.toolset.offered,
    )


def earlier(limit_s: float | None, parent: RunScope | None, now: float) -> float | None:
    """Return when a run that begins now must end: its own limit, or that of the run that starts it."""
    own = None if limit_s is None else now + limit_s
    if parent is None or parent.deadline is None:
        return own
    return parent.deadline if own is None else min(own, parent.deadline)
