"""A call that passed every check, as executors get it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from atlas_core._runtime.invoke import Lifecycle, invoke
from atlas_core.interfaces.tools import ToolContext

if TYPE_CHECKING:
    from atlas_core._runtime.workers import Workers
    from atlas_core.interfaces.executors import Outcome, PreparedCall
    from atlas_core.interfaces.tools import Tool
    from atlas_core.messages import ToolCall
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["ReadyCall", "prepare_alone"]


class ReadyCall:
    """The kernel's `PreparedCall`.

    Attributes:
        outcome: What `invoke` came to, kept here so that a cancelled batch does not lose what had finished.
        duration_s: Seconds inside `invoke`.
    """

    __slots__ = (
        "_keywords",
        "_lifecycle",
        "_workers",
        "arguments",
        "call",
        "deadline",
        "decoded",
        "duration_s",
        "idempotency_key",
        "outcome",
        "started",
        "tool",
    )

    def __init__(
        self,
        call: ToolCall,
        tool: Tool,
        arguments: Mapping[str, Any],
        keywords: dict[str, Any],
        *,
        workers: Workers,
        lifecycle: Lifecycle | None,
        deadline: float | None,
        idempotency_key: str,
        decoded: tuple[str, ...] = (),
    ) -> None:
        self.call = call
        self.tool = tool
        self.arguments = arguments
        self.deadline = deadline
        self.idempotency_key = idempotency_key
        self.decoded = decoded
        self.outcome: Outcome | None = None
        self.started = False
        self.duration_s = 0.0
        self._keywords = keywords
        self._workers = workers
        self._lifecycle = lifecycle

    async def invoke(self) -> Outcome:
        """Run the tool here, keeping to the deadline; only the caller's own cancellation is raised."""
        began = time.perf_counter()
        self.started = True
        try:
            self.outcome = await invoke(
                self.tool,
                self._keywords,
                workers=self._workers,
                lifecycle=self._lifecycle,
                deadline=self.deadline,
                label=f"tool {self.call.name!r}, call {self.call.id!r}",
            )
        finally:
            self.duration_s = time.perf_counter() - began
        return self.outcome

    def payload(self) -> dict[str, Any]:
        """Return what another process needs to run the call: a dict that is plain JSON."""
        left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        return {
            "call_id": self.call.id,
            "tool": self.tool.name,
            "arguments": dict(self.arguments),
            "idempotency_key": self.idempotency_key,
            "remaining_s": left,
        }


def prepare_alone(
    registry: ToolRegistry, workers: Workers, lifecycle: Lifecycle, tool_calls: Iterable[ToolCall]
) -> list[PreparedCall]:
    """Look up and validate calls against a registry, without an agent's permissions and limits."""
    ready: list[PreparedCall] = []
    for call in tool_calls:
        tool = registry.get(call.name)
        checked = registry.checker(call.name).check(call.arguments_json)
        keywords = tool.build_arguments(dict(checked.values))
        if tool.context_parameter is not None:
            context = ToolContext(context=None, call_id=call.id, idempotency_key=call.id)
            keywords = {**keywords, tool.context_parameter: context}
        ready.append(
            ReadyCall(
                call,
                tool,
                checked.values,
                keywords,
                workers=workers,
                lifecycle=lifecycle,
                deadline=None,
                idempotency_key=call.id,
                decoded=checked.decoded,
            )
        )
    return ready
