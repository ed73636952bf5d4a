"""Asks a provider, whose code is foreign: whatever goes wrong there is a typed error that names its owner."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from atlas_core._runtime.invoke import error_text
from atlas_core.errors import ProviderError, ProviderResponseError, ProviderTimeoutError, RunError
from atlas_core.interfaces.llm import FinishReason, LLMDelta, LLMResponse
from atlas_core.messages import ChatMessage

if TYPE_CHECKING:
    from atlas_core.interfaces.llm import BaseLLM, LLMDefaults, LLMSession
    from atlas_core.owner import Owner

__all__ = ["Asking", "DeadlinePassedError", "Reply"]

log = logging.getLogger("atlas.llm")


class DeadlinePassedError(Exception):
    """The run's time was over before the provider answered; private, told apart from a provider's own time-out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, and what is wrong with it as a message of the text protocol.

    Attributes:
        response: Its message has the calls that were found in the text.
        problem: What to tell the model instead of running anything, or None.
    """

    response: LLMResponse
    problem: str | None = None


class Asking:
    """One run's side of a provider's session.

    Args:
        llm: The model.
        owner: Who supplied it.
        defaults: What stays the same over the run's requests.
        as_text: Offer the tools in the prompt and read calls from the answer's text.
    Raises:
        RunError: The provider can't open a session.
    """

    def __init__(self, llm: BaseLLM, owner: Owner, defaults: LLMDefaults, *, as_text: bool = False) -> None:
        self._owner = owner
        self._streams = llm.capabilities.streaming
        self._names = frozenset(tool.name for tool in defaults.tools) if as_text and defaults.tools else None
        self._as_text = as_text
        if self._names is not None:
            from atlas_core._runtime.text_prompt import render_tools  # most models have native calls

            told = render_tools(defaults.tools)
            system = f"{defaults.system}\n\n{told}" if defaults.system else told
            defaults = replace(defaults, system=system, tools=())
        try:
            self._session: LLMSession = llm.open(defaults)
        except RunError:
            raise
        except Exception as exc:
            raise self._fault(exc) from exc

    def _fault(self, exc: BaseException) -> ProviderError:
        return ProviderError(f"the provider failed: {error_text(exc)}", owner=str(self._owner))

    def hand_over(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages at the end of the conversation."""
        try:
            self._session.append(_as_text(messages) if self._as_text else messages)
        except RunError:
            raise
        except Exception as exc:
            raise self._fault(exc) from exc

    async def ask(
        self,
        *,
        iteration: int,
        left_s: float | None,
        deadline: float | None,
        on_delta: Callable[[LLMDelta], None] | None,
    ) -> Reply:
        """Return the next message.

        Args:
            iteration: The request's number, which ids of the text protocol are made of.
            left_s: Seconds until the run's time is over, or None.
            deadline: The same as a time, for the provider.
            on_delta: Called with each piece as it comes; None asks for whole answers.
        Raises:
            DeadlinePassedError: The run's time is over.
            RunError: The provider failed.
            asyncio.CancelledError: The run was cancelled, which is told by the task and not by the exception.
        """
        timer = asyncio.timeout(left_s)
        try:
            async with timer:
                if on_delta is not None and self._streams:
                    response: object = await self._stream(deadline, on_delta)
                else:
                    response = await self._session.complete(deadline=deadline)
        except RunError as exc:
            if isinstance(exc, ProviderTimeoutError) and deadline is not None and time.monotonic() >= deadline:
                # The provider keeps the same deadline, and which of the two clocks rings first is chance.
                raise DeadlinePassedError from exc
            exc.owner = exc.owner or str(self._owner)
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ProviderError("the provider cancelled itself", owner=str(self._owner)) from None
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if timer.expired() and isinstance(exc, TimeoutError):
                raise DeadlinePassedError from exc
            raise self._fault(exc) from exc
        if timer.expired():
            # It swallowed its cancellation; what it answers after the run's end counts no more.
            raise DeadlinePassedError
        return self._read(self._checked(response), iteration)

    def _read(self, response: LLMResponse, iteration: int) -> Reply:
        if self._names is None:
            return Reply(response)
        from atlas_core._runtime.text_calls import read_calls  # as above

        ended = response.finish_reason is not FinishReason.LENGTH
        turn = read_calls(response.message.text, self._names, iteration=iteration, ended=ended)
        if turn.problem is not None:
            return Reply(response, turn.problem)
        notes = list(response.notes)
        if turn.dropped:
            notes.append("the model invented a result; what it wrote from there on was dropped")
        if turn.repaired:
            notes.append("the form of a call in the model's text was repaired")
        if not turn.calls and not turn.dropped:
            return Reply(replace(response, notes=tuple(notes)))
        message = ChatMessage.assistant(turn.thoughts, turn.calls)
        reason = FinishReason.TOOL_CALLS if turn.calls else response.finish_reason
        return Reply(replace(response, message=message, finish_reason=reason, notes=tuple(notes)))

    def _checked(self, response: object) -> LLMResponse:
        if isinstance(response, LLMResponse) and response.message.role == "assistant":
            return response
        got = response.message.role if isinstance(response, LLMResponse) else type(response).__name__
        raise ProviderResponseError(
            f"the provider returned a {got!r} in place of a response with an assistant message", owner=str(self._owner)
        )

    async def _stream(self, deadline: float | None, on_delta: Callable[[LLMDelta], None]) -> LLMResponse | None:
        response: LLMResponse | None = None
        async with aclosing(self._session.stream(deadline=deadline)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, LLMDelta):
                    on_delta(piece)
                else:
                    response = piece
        return response

    async def close(self) -> None:
        """Free what the session holds."""
        try:
            await self._session.aclose()
        except Exception:
            # The run has ended already, one way or the other.
            log.exception("the session of %s did not close", self._owner)


def _as_text(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages as a model without native calls can read them: calls and results as text."""
    if any(message.tool_calls or message.role == "tool" for message in messages):
        return list(_texts(messages))
    return list(messages)


def _texts(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    from atlas_core._runtime.text_prompt import render_call_message, render_results  # as above

    results: list[ChatMessage] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            yield ChatMessage.user(render_results(results))
            results = []
        yield ChatMessage.assistant(render_call_message(message)) if message.tool_calls else message
    if results:
        yield ChatMessage.user(render_results(results))
