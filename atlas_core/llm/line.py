"""A connection with what surrounds its model: a rate limit, and other connections to fall back on."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from atlas_core.errors import ProviderError, ProviderRateLimitError, ProviderTimeoutError
from atlas_core.interfaces.llm import BaseLLM, Capabilities, LLMDefaults, LLMDelta, LLMResponse, LLMSession

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

    from atlas_core.interfaces.llm import ConnectionReport, LLMRequest
    from atlas_core.messages import ChatMessage

__all__ = ["Line", "LineLLM"]

log = logging.getLogger("atlas.llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One connection that may be asked.

    Attributes:
        name: The connection.
        llm: Its model.
        requests_per_minute: How often it may be asked, over all runs; None for no limit.
    """

    name: str
    llm: BaseLLM
    requests_per_minute: float | None = None
    _limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncLimiter] = field(
        default_factory=weakref.WeakKeyDictionary, repr=False, compare=False
    )

    async def wait_turn(self) -> None:
        """Wait until another request may be sent."""
        if self.requests_per_minute is None:
            return
        from aiolimiter import AsyncLimiter  # only where a limit is set

        loop = asyncio.get_running_loop()
        limiter = self._limiters.get(loop)
        if limiter is None:
            # A limiter belongs to one loop. It lets a burst of one through and then spaces requests evenly.
            limiter = self._limiters[loop] = AsyncLimiter(1, 60.0 / self.requests_per_minute)
        await limiter.acquire()


def is_servers_fault(error: ProviderError) -> bool:
    """Whether another connection may do better: the server failed, was too busy, too slow or not there."""
    if isinstance(error, (ProviderRateLimitError, ProviderTimeoutError)) or error.retryable:
        return True
    return error.status is not None and error.status >= 500


class LineLLM(BaseLLM):
    """A model that asks the first of several connections whose server answers.

    A run that has fallen back stays where it is: what a model said is not always readable by another.

    Args:
        lines: The connections, the first one first. Their models are started when they are first needed, and
            stopped by whoever made them.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = tuple(lines)
        self.label = lines[0].llm.label
        self.notice = lines[0].llm.notice

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]  # worked out, since models learn theirs at start
        """What all of the models can do, so that a run can go on with any of them."""
        every = [line.llm.capabilities for line in self._lines]
        windows = [c.window_tokens for c in every if c.window_tokens is not None]
        return Capabilities(
            native_tools=all(c.native_tools for c in every),
            streaming=any(c.streaming for c in every),
            images=all(c.images for c in every),
            schema_output=all(c.schema_output for c in every),
            window_tokens=min(windows) if windows else None,
        )

    async def _start(self) -> None:
        await self._lines[0].llm.start()

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request by itself."""
        session = self.open(
            LLMDefaults(
                system=request.system,
                tools=request.tools,
                max_output_tokens=request.max_output_tokens,
                output_schema=request.output_schema,
                output_name=request.output_name,
            )
        )
        session.append(request.messages)
        try:
            return await session.complete(deadline=request.deadline)
        finally:
            await session.aclose()

    def open(self, defaults: LLMDefaults) -> LLMSession:
        """Begin a run's conversation."""
        return _LineSession(self, self._lines, defaults)

    async def list_models(self) -> list[str]:
        """Return the models of the first connection's server."""
        return await self._lines[0].llm.list_models()

    async def check(self) -> ConnectionReport:
        """Look at the first connection."""
        return await self._lines[0].llm.check()


class _LineSession(LLMSession):
    def __init__(self, llm: BaseLLM, lines: tuple[Line, ...], defaults: LLMDefaults) -> None:
        super().__init__(llm, defaults)
        self._lines = lines
        self._at = 0
        self._open = lines[0].llm.open(defaults)
        self._notes: list[str] = []

    def append(self, messages: Iterable[ChatMessage]) -> None:
        messages = tuple(messages)
        super().append(messages)
        self._open.append(messages)

    async def complete(self, *, deadline: float | None = None) -> LLMResponse:
        while True:
            line = self._lines[self._at]
            await line.wait_turn()
            try:
                await line.llm.start()
                return self._noted(await self._open.complete(deadline=deadline))
            except ProviderError as exc:
                await self._next_or_raise(exc)

    async def stream(self, *, deadline: float | None = None) -> AsyncIterator[LLMDelta | LLMResponse]:
        while True:
            line = self._lines[self._at]
            await line.wait_turn()
            shown = False
            try:
                await line.llm.start()
                async with aclosing(self._open.stream(deadline=deadline)) as pieces:  # type: ignore[type-var]  # a generator
                    async for piece in pieces:
                        if isinstance(piece, LLMResponse):
                            yield self._noted(piece)
                            return
                        shown = True
                        yield piece
            except ProviderError as exc:
                if shown:
                    raise
                await self._next_or_raise(exc)
            else:
                return

    async def _next_or_raise(self, error: ProviderError) -> None:
        """Turn to the next connection, with the conversation so far."""
        if self._at + 1 >= len(self._lines) or not is_servers_fault(error):
            if self._notes:
                error.problem = f"{error.problem} (before that, {'; '.join(self._notes)})"
            raise error
        failed = self._lines[self._at]
        self._at += 1
        line = self._lines[self._at]
        note = f"connection {failed.name!r} failed ({type(error).__name__}: {error}), {line.name!r} is asked instead"
        self._notes.append(note)
        log.warning("%s", note)
        await self._open.aclose()
        self._open = line.llm.open(self._defaults)
        self._open.append(self._messages)

    def _noted(self, response: LLMResponse) -> LLMResponse:
        if self._at == 0:
            return response
        notes, self._notes = tuple(self._notes), []
        model = response.model or self._lines[self._at].llm.label
        return replace(response, connection=self._lines[self._at].name, model=model, notes=(*response.notes, *notes))

    async def aclose(self) -> None:
        await self._open.aclose()
