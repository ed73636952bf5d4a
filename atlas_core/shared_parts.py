"""What the agents of a kernel share and only a run needs: observers and tool providers, started once, stopped last."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, cast

from atlas_core._runtime.invoke import error_text
from atlas_core.errors import PluginResultError, ToolDefinitionError
from atlas_core.interfaces.flight import Flight
from atlas_core.names import prefixed
from atlas_core.permissions import matches

if TYPE_CHECKING:
    from atlas_core.catalog import Offer
    from atlas_core.errors import AtlasError
    from atlas_core.events import Observer
    from atlas_core.interfaces.tools import Tool, ToolProvider
    from atlas_core.owner import Owner
    from atlas_core.tools.registry import ToolRegistry

__all__ = ["SharedParts", "quietly"]

log = logging.getLogger("atlas.kernel")


class SharedParts:
    """The observers and tool providers of one kernel, whose agents may live on different event loops.

    Args:
        warn: Told of what failed and stops nothing.
    """

    def __init__(self, warn: Callable[[AtlasError], None]) -> None:
        self._warn = warn
        self._flights: dict[int, Flight] = {}
        self._observers: list[Observer] = []
        self._provided: dict[int, tuple[ToolProvider, list[object]]] = {}

    async def _once(self, thing: object, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await self._flights.setdefault(id(thing), Flight()).run(start)

    async def start_observer(self, observer: Observer, owner: Owner) -> None:
        """Start an observer; one that fails is told of and breaks nothing."""
        await self._once(observer, functools.partial(self._start_observer, observer, owner))

    async def _start_observer(self, observer: Observer, owner: Owner) -> None:
        if any(observer is started for started in self._observers):
            return
        self._observers.append(observer)
        start = getattr(observer, "start", None)
        try:
            await _maybe_await(start() if start is not None else None)
        except Exception as exc:  # noqa: BLE001  # a foreign observer can't break a run, nor its start
            what = f"observer {type(observer).__name__} did not start: {error_text(exc)}"
            self._warn(PluginResultError(what, plugin=owner.plugin, owner=str(owner)))

    async def add_provided(
        self, offer: Offer[ToolProvider], registry: ToolRegistry, chosen: Sequence[str]
    ) -> PluginResultError | None:
        """Register what a provider offers and names or patterns choose; return why it offers nothing, if so."""
        try:
            tools = await self._tools_of(offer.value)
        except Exception as exc:  # noqa: BLE001  # a foreign source; profiles that don't need it must run
            error = PluginResultError(
                f"the tool provider {offer.name!r} did not start: {error_text(exc)}",
                plugin=offer.owner.plugin,
                owner=str(offer.owner),
            )
            error.__cause__ = exc
            self._warn(error)
            return error
        for tool in tools:
            try:
                name = prefixed(offer.prefix, _tool_name(tool))
                if any(matches(wanted, name) for wanted in chosen):
                    registry.register(cast("Tool", tool), prefix=offer.prefix or None, owner=offer.owner)
            except ToolDefinitionError as exc:
                self._warn(exc)  # one faulty tool of a server takes none of the others away
        return None

    async def _tools_of(self, provider: ToolProvider) -> list[object]:
        await self._once(provider, functools.partial(self._start_provider, provider))
        return self._provided[id(provider)][1]

    async def _start_provider(self, provider: ToolProvider) -> None:
        if id(provider) in self._provided:
            return
        await provider.start()
        try:
            self._provided[id(provider)] = (provider, list(await provider.tools()))
        except BaseException:
            # It runs and is of no use; the next agent that wants it starts it again.
            await quietly("tool provider", provider.stop)
            raise

    async def stop_providers(self) -> None:
        """Stop the tool providers, the last started first."""
        for provider, _ in reversed(self._provided.values()):
            await quietly("tool provider", provider.stop)

    async def stop_observers(self) -> None:
        """Stop the observers, the last started first."""
        for observer in reversed(self._observers):
            stop = getattr(observer, "stop", None)
            if stop is not None:
                await quietly("observer", stop)


async def _maybe_await(value: Any) -> None:
    if value is not None:
        await value


async def quietly(what: str, stop: Callable[[], Any]) -> None:
    """Stop one of many; one that fails is logged and keeps no other from being stopped."""
    try:
        await _maybe_await(stop())
    except Exception:
        log.exception("an %s did not stop" if what[0] in "aeo" else "a %s did not stop", what)


def _tool_name(tool: object) -> str:
    from atlas_core.tools.function import as_tool  # only for tools known at run time

    return as_tool(tool).name
