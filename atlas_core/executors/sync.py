"""Runs calls one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from atlas_core.executors.base import BaseToolExecutor

if TYPE_CHECKING:
    from atlas_core.interfaces.executors import Outcome, PreparedCall

__all__ = ["SyncToolExecutor"]


class SyncToolExecutor(BaseToolExecutor):
    """Runs the calls of one message one after another, in their order."""

    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Run the calls in turn."""
        return [await call.invoke() for call in calls]
