"""Tells of one run: observers at once, and the run store where the run may only go on once it is written down."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from atlas_core import events as ev
from atlas_core._runtime.invoke import error_text
from atlas_core.errors import RunError

if TYPE_CHECKING:
    from atlas_core._runtime.observing import Audience
    from atlas_core.interfaces.runs import RunStore
    from atlas_core.messages import ToolResult
    from atlas_core.owner import Owner

__all__ = ["Teller"]


class Teller:
    """What a run says of itself.

    Args:
        run_id: The run.
        parent_run_id: The run that started it, or None.
        agent_id: The agent.
        agent_owner: Who supplied the agent's type.
        audience: The agent's observers.
        store: Where the run is written down.
        listener: Who iterates over the run's events, or None.

    Attributes:
        iteration: The model request that the run is at, from 1.
    """

    def __init__(
        self,
        *,
        run_id: str,
        parent_run_id: str | None,
        agent_id: str,
        agent_owner: Owner,
        audience: Audience,
        store: RunStore,
        listener: Callable[[ev.Event], None] | None,
    ) -> None:
        self.iteration = 0
        self._run_id = run_id
        self._parent_run_id = parent_run_id
        self._agent_id = agent_id
        self._owner = agent_owner
        self._audience = audience
        self._store = store
        self._listener = listener

    def facts(self, owner: Owner | None = None) -> dict[str, Any]:
        """Return the fields that every event has; `owner` is who supplied the step, else the agent type's."""
        owner = owner or self._owner
        return {
            "run_id": self._run_id,
            "parent_run_id": self._parent_run_id,
            "agent_id": self._agent_id,
            "iteration": self.iteration,
            "time_s": time.time(),
            "plugin": owner.plugin,
            "distribution": owner.distribution,
        }

    def tell(self, event: ev.Event) -> None:
        """Tell observers and whoever iterates."""
        self._audience.tell(event)
        if self._listener is not None:
            self._listener(event)

    def warn(self, text: str) -> None:
        """Tell what an operator should know."""
        self.tell(ev.RunWarning(text=text, **self.facts()))

    async def record(self, event: ev.Event) -> None:
        """Tell, and have it written down before the run goes on.

        Raises:
            RunError: The store failed.
        """
        self.tell(event)
        try:
            await self._store.append(event)
        except Exception as exc:
            raise RunError(f"the run store failed: {error_text(exc)}", remedy="see the store's own settings") from exc

    def call_ended(self, result: ToolResult, *, truncated: bool = False) -> ev.ToolCallEnded:
        """Return the event of a call's end, which names the tool's supplier."""
        facts = self.facts()
        if result.plugin:
            facts["plugin"], facts["distribution"] = result.plugin, result.distribution
        return ev.ToolCallEnded(
            call=result.call,
            status=result.status,
            content=result.content,
            error=result.error,
            duration_s=result.duration_s,
            truncated=truncated,
            **facts,
        )
