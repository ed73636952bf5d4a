"""Takes the calls of one message through lookup, permission, arguments, approval, execution and encoding.

An executor sees none of it but execution, so no strategy can skip a check. A failure at any stage becomes that
call's result, in words the model can act on, and never stops its siblings.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atlas_core._runtime.calls import ReadyCall
from atlas_core._runtime.history import INTERRUPTED
from atlas_core._runtime.invoke import error_text
from atlas_core.errors import ExecutorError, ToolArgumentsError
from atlas_core.interfaces.executors import Outcome
from atlas_core.interfaces.tools import ToolContext
from atlas_core.messages import CallStatus, ToolCall, ToolResult
from atlas_core.names import nearest
from atlas_core.tools.results import encode_result

if TYPE_CHECKING:
    from atlas_core._runtime.invoke import Lifecycle
    from atlas_core._runtime.toolset import OfferedTool, Toolset
    from atlas_core._runtime.workers import Workers
    from atlas_core.interfaces.executors import ToolExecutorProtocol
    from atlas_core.tools.arguments import Checked

__all__ = ["OVER_LIMIT", "Batch", "CallScope", "Dispatcher", "OverdueError", "Slot"]

log = logging.getLogger("atlas.tools")

MAX_RESULT_CHARS = 20_000
"""What of one result the model is shown; the program keeps it whole."""

OVER_LIMIT = "the limit of tool calls is reached; this call was not run"

MAX_EXPLAINED = 64
"""Calls of one message whose unknown names are looked up; suggestions cost time."""

OVERDUE_S = 2.0
"""How long after the run's deadline an executor that ignores it is waited for."""


class OverdueError(Exception):
    """The executor did not come back though the run's time is over; private, told as the run's own time-out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """What the calls of a run have in common."""

    run_id: str
    agent_id: str
    context: object
    deadline: float | None


class Slot:
    """One call on its way: either refused already, with its result, or ready to run."""

    __slots__ = ("call", "offered", "ready", "result", "truncated")

    def __init__(self, call: ToolCall, offered: OfferedTool | None) -> None:
        self.call = call
        self.offered = offered
        self.ready: ReadyCall | None = None
        self.result: ToolResult | None = None
        self.truncated = False

    def answer(self, status: CallStatus, error: str, *, duration_s: float = 0.0) -> None:
        """Settle the call without a value."""
        owner = self.offered.owner if self.offered is not None else None
        self.result = ToolResult(
            call=self.call,
            status=status,
            content=f"Error: {error}",
            error=error,
            duration_s=duration_s,
            plugin=owner.plugin if owner else "",
            distribution=owner.distribution if owner else "",
        )

    def settle(self, outcome: Outcome) -> None:
        """Settle the call with what its execution came to."""
        duration_s = self.ready.duration_s if self.ready is not None else 0.0
        if not outcome.ok:
            if outcome.exception is not None:
                log.debug("tool %r failed", self.call.name, exc_info=outcome.exception)
            self.answer(outcome.status, outcome.error or str(outcome.status), duration_s=duration_s)
            return
        try:
            encoded = encode_result(outcome.value, max_chars=MAX_RESULT_CHARS)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # noqa: BLE001  # a foreign object's own methods
            self.answer(CallStatus.FAILED, f"the result can't be read: {error_text(exc)}", duration_s=duration_s)
            return
        self.truncated = encoded.truncated
        owner = self.offered.owner if self.offered is not None else None
        self.result = ToolResult(
            call=self.call,
            status=outcome.status,
            content=encoded.text,
            value=outcome.value,
            duration_s=duration_s,
            plugin=owner.plugin if owner else "",
            distribution=owner.distribution if owner else "",
        )


class Batch:
    """The calls of one message, in their order."""

    __slots__ = ("slots",)

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)

    @property
    def ready(self) -> list[Slot]:
        """Those that passed every check and have not run."""
        return [slot for slot in self.slots if slot.ready is not None and slot.result is None]

    def interrupt(self) -> None:
        """Settle what finished before a cancellation, and answer the rest as interrupted."""
        for slot in self.slots:
            if slot.result is None:
                if slot.ready is not None and slot.ready.outcome is not None:
                    slot.settle(slot.ready.outcome)
                elif slot.ready is not None and not slot.ready.started:
                    slot.answer(CallStatus.CANCELLED, "interrupted: the run ended before this call was started")
                else:
                    slot.answer(CallStatus.CANCELLED, INTERRUPTED)


class Dispatcher:
    """Prepares and runs the calls of one agent; holds nothing of a run.

    Args:
        toolset: What the agent may call.
        executor: Where calls run.
        executor_name: What errors and events call it.
        workers: Gives the threads for plain functions.
        lifecycle: Starts tools before their first use.
        tool_timeout_s: The longest one call may take, or None.
        granted: Tells whether a tool may be used at the moment of its call; None where nothing can change.
    """

    def __init__(
        self,
        toolset: Toolset,
        executor: ToolExecutorProtocol,
        *,
        executor_name: str,
        workers: Callable[[], Workers],
        lifecycle: Lifecycle,
        tool_timeout_s: float | None = None,
        granted: Callable[[str], bool] | None = None,
    ) -> None:
        self.toolset = toolset
        self.executor = executor
        self.executor_name = executor_name
        self._workers = workers
        self._lifecycle = lifecycle
        self._tool_timeout_s = tool_timeout_s
        self._granted = granted

    def prepare(
        self,
        calls: Sequence[ToolCall],
        scope: CallScope,
        *,
        most: int,
        cut: bool = False,
        preset: Mapping[str, str] | None = None,
    ) -> Batch:
        """Check each call; at most `most` become ready, the surplus is answered.

        Args:
            calls: The message's.
            scope: What the run's calls have in common.
            most: How many may be started.
            cut: The message used up its output limit, so malformed arguments are a cut and no mistake.
            preset: By call id, why a call is invalid that is answered outside of the tools.
        """
        slots: list[Slot] = []
        started = 0
        for call in calls:
            slot = Slot(call, self.toolset.offered.get(call.name))
            if preset and call.id in preset:
                slot.answer(CallStatus.INVALID_ARGUMENTS, preset[call.id])
            elif self._passes(slot, scope, len(slots), cut=cut):
                if started < most:
                    started += 1
                else:
                    slot.ready = None
                    slot.answer(CallStatus.REFUSED, OVER_LIMIT)
            slots.append(slot)
        return Batch(slots)

    def _passes(self, slot: Slot, scope: CallScope, number: int, *, cut: bool) -> bool:
        offered = slot.offered
        if offered is None:
            self._explain_missing(slot, number)
            return False
        if self._granted is not None and not self._granted(slot.call.name):
            slot.answer(CallStatus.REFUSED, f"tool {slot.call.name!r} is denied by policy")
            return False
        try:
            checked = offered.check(slot.call.arguments_json)
            keywords = offered.build(dict(checked.values))
        except ToolArgumentsError as exc:
            if cut and _is_cut(slot.call.arguments_json):
                slot.answer(CallStatus.INVALID_ARGUMENTS, "the output limit cut this call; re-issue it, shorter")
            else:
                slot.answer(CallStatus.INVALID_ARGUMENTS, exc.problem)
            log.info("arguments for tool %r were refused", slot.call.name)
            return False
        except Exception as exc:  # noqa: BLE001  # a foreign validator
            slot.answer(CallStatus.INVALID_ARGUMENTS, f"the arguments could not be read: {error_text(exc)}")
            return False
        if offered.ask is not None:
            slot.answer(
                CallStatus.REFUSED, f"tool {slot.call.name!r} needs a person's approval, and there is nobody to ask"
            )
            return False
        slot.ready = self._ready(slot.call, offered, checked, keywords, scope)
        return True

    def _ready(
        self,
        call: ToolCall,
        offered: OfferedTool,
        checked: Checked,
        keywords: dict[str, object],
        scope: CallScope,
    ) -> ReadyCall:
        deadline = scope.deadline
        if self._tool_timeout_s is not None:
            bound = time.monotonic() + self._tool_timeout_s
            deadline = bound if deadline is None else min(deadline, bound)
        key = f"{scope.run_id}/{call.id}"
        if offered.tool.context_parameter is not None:
            keywords = {
                **keywords,
                offered.tool.context_parameter: ToolContext(
                    context=scope.context,
                    run_id=scope.run_id,
                    agent_id=scope.agent_id,
                    call_id=call.id,
                    idempotency_key=key,
                    deadline=deadline,
                ),
            }
        return ReadyCall(
            call,
            offered.tool,
            checked.values,
            keywords,
            workers=self._workers(),
            lifecycle=self._lifecycle,
            deadline=deadline,
            idempotency_key=key,
            decoded=checked.decoded,
        )

    def _explain_missing(self, slot: Slot, number: int) -> None:
        name = slot.call.name
        if number > MAX_EXPLAINED:
            slot.answer(CallStatus.UNKNOWN_TOOL, f"there is no tool {name[:100]!r}; see the results above")
            return
        if name in self.toolset.denied:
            slot.answer(CallStatus.REFUSED, f"tool {name!r} is denied by policy")
            return
        names = list(self.toolset.offered)
        close = nearest(name[:100], names)
        rest = [n for n in names if n not in close]
        shown = close + rest[: 20 - len(close)]
        known = ", ".join(shown) + (", ..." if len(shown) < len(names) else "")
        slot.answer(
            CallStatus.UNKNOWN_TOOL,
            f"there is no tool {name[:100]!r}; " + (f"available, nearest first: {known}" if names else "there is none"),
        )

    async def execute(self, batch: Batch, deadline: float | None) -> None:
        """Run what is ready and settle it.

        Raises:
            ExecutorError: The executor failed as a whole or broke its contract; finished calls are settled.
            asyncio.CancelledError: The run was cancelled; finished calls are settled, the rest interrupted.
        """
        slots = batch.ready
        if not slots:
            return
        calls = [slot.ready for slot in slots if slot.ready is not None]
        try:
            outcomes = await self._run_strategy(calls, deadline)
        except BaseException:
            batch.interrupt()
            raise
        for slot, outcome in zip(slots, outcomes, strict=True):
            slot.settle(outcome)

    async def _run_strategy(self, calls: list[ReadyCall], deadline: float | None) -> list[Outcome]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) + OVERDUE_S
        timer = asyncio.timeout(left)
        try:
            async with timer:
                outcomes: object = await self.executor.execute_batch(calls)
        except ExecutorError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ExecutorError(f"executor {self.executor_name!r} cancelled itself") from None
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if isinstance(exc, TimeoutError) and timer.expired():
                raise OverdueError from exc
            raise ExecutorError(f"executor {self.executor_name!r} failed: {error_text(exc)}") from exc
        if not isinstance(outcomes, (list, tuple)) or len(outcomes) != len(calls):
            got = f"{len(outcomes)} outcomes" if isinstance(outcomes, (list, tuple)) else repr(type(outcomes).__name__)
            raise ExecutorError(
                f"executor {self.executor_name!r} returned {got} for {len(calls)} calls",
                remedy="execute_batch must return one Outcome per call, in their order",
            )
        if wrong := [o for o in outcomes if not isinstance(o, Outcome) or not isinstance(o.status, CallStatus)]:
            raise ExecutorError(
                f"executor {self.executor_name!r} returned {wrong[0]!r:.200} in place of an Outcome with a CallStatus"
            )
        return list(outcomes)


def _is_cut(arguments_json: str) -> bool:
    """Whether JSON text ends before its outermost bracket closes."""
    import json  # an error path

    try:
        json.loads(arguments_json)
    except json.JSONDecodeError as exc:
        text = arguments_json.rstrip()
        return exc.pos >= len(text) - 1 or exc.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False
