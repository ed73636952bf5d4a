"""One run's side of the conversation: each message is encoded once, a request joins the pieces."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from atlas_core import ChatMessage, LLMDelta, LLMResponse, LLMSession, Part, ProviderError, ProviderResponseError, Text
from atlas_core.http import bare
from atlas_openai._output import OutputForm, output_form
from atlas_openai._tools import ToolTable
from atlas_openai._wire import BadReplyError, Encoder, Reader, ServerSaidError, decode

if TYPE_CHECKING:
    from atlas_core import LLMDefaults
    from atlas_core.http import EventStream, HttpClient, Response, ServerEvent
    from atlas_openai.provider import OpenAILLM

__all__ = ["OpenAISession"]

_MOST_EXCERPT = 200

_END_S = 0.5
_USAGE_S = 2.0
"""How long a stream whose answer is complete may take for its end, and for the usage that was asked for. A server that
leaves its streams open costs the second once, the first at each step."""


class OpenAISession(LLMSession):
    """A conversation with a model of this provider.

    Args:
        llm: The model.
        defaults: What stays the same over the run's requests.

    Attributes:
        streamed: Whether the last stream was one, and not an answer that came at once; None before it.
    """

    def __init__(self, llm: OpenAILLM, defaults: LLMDefaults) -> None:
        super().__init__(llm, defaults)
        self._model = llm
        tools = defaults.tools if llm.options.native_tools else ()
        self._tools = ToolTable(tools, strict=llm.options.strict_tools)
        self._output: OutputForm | None = output_form(defaults)
        self._encoder: Encoder = llm.encoder(defaults, self._tools, self._output)
        self._sent = b""
        self._added: list[bytes] = []
        self.streamed: bool | None = None

    def append(self, messages: Iterable[ChatMessage]) -> None:
        """Encode messages and add them at the end.

        Raises:
            ProviderError: One holds a part that can't be sent.
        """
        added = tuple(messages)
        self._added += [self._encoder.message(message) for message in added]
        super().append(added)

    def _body(self, *, stream: bool) -> tuple[bytes, ...]:
        if self._added:
            self._sent = b",".join([self._sent, *self._added] if self._sent else self._added)
            self._added = []
        return self._encoder.body(self._sent, stream=stream)

    # Whole answers ---------------------------------------------------------------------------------------------

    async def complete(self, *, deadline: float | None = None) -> LLMResponse:
        """Ask for the next message."""
        try:
            return await self._complete(deadline)
        except ProviderError as exc:
            raise bare(exc) from exc.__cause__

    async def _complete(self, deadline: float | None) -> LLMResponse:
        client = self._model.client
        found: list[LLMResponse] = []

        def check(response: Response) -> None:
            found.append(self._read(client, response))

        body = self._body(stream=False)
        response = await client.post_json(self._encoder.path, body, deadline=deadline, check=check)
        return self._finished(found[-1], response.request_id)

    def _read(self, client: HttpClient, response: Response) -> LLMResponse:
        value = response.json()
        try:
            return self._model.read(value, self._tools)
        except (BadReplyError, ServerSaidError) as exc:
            error = self._error(client, exc, response)
        raise error

    def _finished(self, response: LLMResponse, request_id: str | None) -> LLMResponse:
        message = response.message
        if self._output is not None and self._output.strict:
            message = replace(message, content=self._restored(message.content, self._output))
        return replace(response, message=message, request_id=request_id or response.request_id)

    def _restored(self, content: str | tuple[Part, ...], output: OutputForm) -> str | tuple[Part, ...]:
        if isinstance(content, str):
            return output.restored(content)
        return tuple(Text(output.restored(part.text)) if isinstance(part, Text) else part for part in content)

    # Streams ---------------------------------------------------------------------------------------------------

    async def stream(self, *, deadline: float | None = None) -> AsyncGenerator[LLMDelta | LLMResponse, None]:
        """Ask for the next message and yield it in pieces, the whole response last."""
        try:
            async with contextlib.aclosing(self._stream(deadline)) as pieces:
                async for piece in pieces:
                    yield piece
        except ProviderError as exc:
            raise bare(exc) from exc.__cause__

    async def _stream(self, deadline: float | None) -> AsyncGenerator[LLMDelta | LLMResponse, None]:
        client = self._model.client
        attempt = _Attempt(self._model.reader(self._tools))

        def may_restart() -> bool:
            if attempt.shown or attempt.reader.ended:
                return False
            attempt.reader, attempt.done = self._model.reader(self._tools), False
            return True

        body = self._body(stream=True)
        path = self._encoder.path
        async with client.stream_sse(path, body, deadline=deadline, may_restart=may_restart) as events:
            while True:
                try:
                    while (event := await self._next(events, attempt)) is not None:
                        for piece in self._feed(event, attempt):
                            attempt.shown = True
                            yield piece
                    response = attempt.whole or attempt.reader.response(done=attempt.done)
                    break
                except (BadReplyError, ServerSaidError) as exc:
                    error = self._error(client, exc, events)
                except ProviderError as exc:
                    raise _with_text(exc, attempt) from exc.__cause__
                try:
                    await events.restart(error)
                except ProviderError as exc:
                    raise _with_text(exc, attempt) from exc.__cause__
            yield self._finished(response, events.request_id)

    async def _next(self, events: EventStream, attempt: _Attempt) -> ServerEvent | None:
        """Return the next event, None at the end; what goes wrong after a complete answer does not matter."""
        try:
            if attempt.reader.ended:
                event = await self._after_the_end(events, attempt)
            else:
                event = await anext(events)
        except StopAsyncIteration:
            return None
        except (ProviderError, TimeoutError):
            if attempt.reader.ended:
                return None
            raise
        if event.data == "[DONE]":
            attempt.done = True
            return None
        return event

    async def _after_the_end(self, events: EventStream, attempt: _Attempt) -> ServerEvent:
        awaits = self._model.expects_usage and attempt.reader.awaits_usage
        try:
            async with asyncio.timeout(_USAGE_S if awaits else _END_S):
                return await anext(events)
        except TimeoutError:
            if awaits:
                self._model.expects_usage = False
            raise

    def _feed(self, event: ServerEvent, attempt: _Attempt) -> Iterable[LLMDelta]:
        try:
            value = decode(event.data)
        except (ValueError, RecursionError):
            raise BadReplyError("sent an event that is no JSON", excerpt=event.data, retryable=True) from None
        self.streamed = event.event != "json"
        if not self.streamed:
            attempt.whole = self._model.read(value, self._tools)
            text = attempt.whole.message.text
            return (LLMDelta(text),) if text else ()
        if event.event == "error" and isinstance(value, dict) and not value.get("error"):
            raise ServerSaidError({"error": value})
        return attempt.reader.feed(value)

    # Errors ----------------------------------------------------------------------------------------------------

    def _error(
        self, client: HttpClient, exc: BadReplyError | ServerSaidError, source: Response | EventStream
    ) -> ProviderError:
        if isinstance(exc, ServerSaidError):
            error = client.error_in(exc.payload, source)
            if error is not None:
                return error
            exc = BadReplyError("sent an error that says nothing")
        problem = f"{self._model.label} {exc.problem}"
        if exc.excerpt:
            problem += f": {_cut(client.redacted(' '.join(exc.excerpt.split())))}"
        return ProviderResponseError(
            problem,
            owner=self._model.owner,
            retryable=exc.retryable,
            status=source.status,
            request_id=source.request_id,
        )


class _Attempt:
    """What one stream brought so far.

    Attributes:
        reader: Reads the answer.
        shown: Whether a piece of it was handed on.
        done: Whether the server said that it is at its end.
        whole: The answer of a server that does not stream.
    """

    __slots__ = ("done", "reader", "shown", "whole")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.shown = False
        self.done = False
        self.whole: LLMResponse | None = None


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_EXCERPT else f"{text[: _MOST_EXCERPT - 3]}..."


def _with_text(error: ProviderError, attempt: _Attempt) -> ProviderError:
    if not error.partial_text:
        error.partial_text = attempt.reader.text
    return error
