"""Tells observers of events; none of them can change or break a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlas_core.events import Event, Observer
    from atlas_core.owner import Owner

__all__ = ["Audience"]

log = logging.getLogger("atlas.observers")


class Audience:
    """The observers of an agent, told in order.

    Args:
        observers: Each with who supplied it.
    """

    def __init__(self, observers: Iterable[tuple[Observer, Owner]]) -> None:
        self._told: list[tuple[Callable[[Event], None], str]] = [
            (observer.on_event, f"{type(observer).__name__} of {owner}") for observer, owner in observers
        ]
        self._failed: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._told)

    def tell(self, event: Event) -> None:
        """Tell everyone; one that raises is logged once with its owner, and the others are told all the same."""
        for on_event, name in self._told:
            try:
                on_event(event)
            except KeyboardInterrupt:
                raise
            except BaseException:  # a foreign observer: whatever it raises stays here
                if name not in self._failed:
                    self._failed.add(name)
                    log.exception("observer %s failed; further failures are not repeated", name)
