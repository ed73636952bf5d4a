"""Where a run is written down as it goes, so that it can be taken up again."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from atlas_core.events import Event

__all__ = ["MemoryRunStore", "RunStore"]


class RunStore(Protocol):
    """One who keeps a run's records.

    The loop awaits `append` at a run's start, after each model response, before each call starts, after each
    outcome and at the end. What `append` raises ends the run: a run that can't be written down must not go on.
    """

    async def append(self, event: Event) -> None:
        """Keep an event; returning means that it is kept."""


class MemoryRunStore:
    """Keeps the records of the latest runs in this process.

    Args:
        keep_runs: Ended and running runs that are kept; the oldest is dropped first.
    """

    def __init__(self, keep_runs: int = 16) -> None:
        self._runs: collections.OrderedDict[str, list[Event]] = collections.OrderedDict()
        self._keep_runs = keep_runs

    async def append(self, event: Event) -> None:
        """Keep an event."""
        records = self._runs.get(event.run_id)
        if records is None:
            records = self._runs[event.run_id] = []
            while len(self._runs) > self._keep_runs:
                self._runs.popitem(last=False)
        records.append(event)

    def events(self, run_id: str) -> tuple[Event, ...]:
        """Return a run's records, the oldest first; empty if none are kept."""
        return tuple(self._runs.get(run_id, ()))
