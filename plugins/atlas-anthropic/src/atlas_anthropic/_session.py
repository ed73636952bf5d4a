"""One run's side of a conversation: encodes it as it grows, asks, and reads what comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any

from atlas_anthropic._blocks import assistant_blocks
from atlas_anthropic._request import Conversation, max_tokens, wire_map
from atlas_anthropic._response import AnswerReader, UnreadableError, is_error
from atlas_core import ChatMessage, LLMDefaults, LLMDelta, LLMResponse, LLMSession, ProviderError, ProviderResponseError
from atlas_core.http import bare

if TYPE_CHECKING:
    from atlas_anthropic.options import AnthropicOptions
    from atlas_anthropic.provider import AnthropicLLM
    from atlas_core.http import EventStream, HttpClient, Response

__all__ = ["LONG_ANSWER", "MAX_PAUSES", "AnthropicSession"]

LONG_ANSWER = 21_333
"""Tokens above which an answer is asked for as a stream, shown or not: it may take longer than the ten minutes for
which a connection without a sign of life is kept.

Source: the vendor's own client (anthropic 2.14.0, `_calculate_nonstreaming_timeout`) refuses to ask otherwise.
"""

MAX_PAUSES = 10
"""How often a turn that the server paused is gone on with; it pauses after ten calls of its own tools."""

_MOST_OF_A_PROBLEM = 200
"""Characters of an error's text, which may quote what came."""

_DRAIN_S = 0.5
"""How long the end of a stream may take after its last event; read to its end, a connection can be used again."""


class AnthropicSession(LLMSession):
    """One run's conversation.

    Args:
        llm: The model.
        defaults: What stays the same over the run's requests.
        options: The connection's.

    Attributes:
        streamed: Whether the last stream was one, and not a message that came at once; None before it.

    Raises:
        ProviderError: Options and defaults contradict each other.
    """

    def __init__(self, llm: AnthropicLLM, defaults: LLMDefaults, options: AnthropicOptions) -> None:
        super().__init__(llm, defaults)
        self._model = llm
        self._names = wire_map(defaults.tools, options)
        self._own_names = {sent: own for own, sent in self._names.items()}
        self._conversation = Conversation(llm.model, defaults, options, self._names)
        self.streamed: bool | None = None
        self._by_stream = options.stream and max_tokens(defaults, options) > LONG_ANSWER

    def append(self, messages: Iterable[ChatMessage]) -> None:
        """Encode messages at the end of the conversation.

        Raises:
            ProviderError: One of them has a part that can't be sent.
        """
        try:
            for message in messages:
                self._conversation.append(message)
        except ProviderError as exc:
            exc.owner = exc.owner or self._model.owner
            raise

    async def complete(self, *, deadline: float | None = None) -> LLMResponse:
        """Ask for the next message.

        Raises:
            ProviderError: The server failed, or there is nothing to answer.
        """
        if self._by_stream:
            async with contextlib.aclosing(self.stream(deadline=deadline)) as pieces:
                return [piece async for piece in pieces if isinstance(piece, LLMResponse)][-1]
        try:
            return await self._complete(deadline)
        except ProviderError as exc:
            raise bare(exc) from exc.__cause__

    async def _complete(self, deadline: float | None) -> LLMResponse:
        client = await self._model.client()
        reader = AnswerReader(self._own_names)

        def read(response: Response) -> None:
            payload = response.json()
            if error := client.error_in(payload, response):
                raise error
            reader.restart()
            try:
                reader.read(payload)
            except UnreadableError as exc:
                raise self._error(str(exc), response, retryable=False) from None

        for _ in range(MAX_PAUSES + 1):
            body = self._conversation.body(stream=False, continued=self._begun(reader))
            response = await client.post_json(self._model.path("messages"), body, deadline=deadline, check=read)
            if not reader.paused:
                return self._finished(reader, response)
        raise self._paused_too_often()

    async def stream(self, *, deadline: float | None = None) -> AsyncGenerator[LLMDelta | LLMResponse, None]:
        """Ask for the next message and yield it in pieces; the last item is the whole response.

        Raises:
            ProviderError: The server failed, or there is nothing to answer.
        """
        reader = AnswerReader(self._own_names)
        try:
            async with contextlib.aclosing(self._streamed(reader, deadline)) as pieces:
                async for piece in pieces:
                    yield piece
        except ProviderError as exc:
            exc.partial_text = exc.partial_text or reader.text
            raise bare(exc) from exc.__cause__

    async def _streamed(
        self, reader: AnswerReader, deadline: float | None
    ) -> AsyncGenerator[LLMDelta | LLMResponse, None]:
        client = await self._model.client()
        path = self._model.path("messages")
        for _ in range(MAX_PAUSES + 1):
            body = self._conversation.body(stream=True, continued=self._begun(reader))
            async with client.stream_sse(path, body, deadline=deadline, may_restart=reader.may_restart) as events:
                async with contextlib.aclosing(self._pieces(client, events, reader)) as pieces:
                    async for piece in pieces:
                        yield piece
                await _drain(events)
                if not reader.paused:
                    yield self._finished(reader, events)
                    return
        raise self._paused_too_often()

    async def _pieces(
        self, client: HttpClient, events: EventStream, reader: AnswerReader
    ) -> AsyncGenerator[LLMDelta, None]:
        """Yield what may be shown, until the message ends."""
        while True:
            async for event in events:
                try:
                    self.streamed = event.event != "json"  # the transport's name for one whole value
                    if not self.streamed:
                        payload, delta = {}, reader.take_whole(json.loads(event.data))
                    else:
                        payload = _decoded(event.data)
                        delta = reader.feed(payload)
                except UnreadableError as exc:
                    raise self._error(str(exc), events, retryable=False) from None
                if delta is not None:
                    yield delta
                elif is_error(payload):
                    await events.restart(client.error_in(payload, events) or self._error("it failed", events))
                if reader.ended:
                    return
            await events.restart(self._error("interrupted stream: the answer ended before message_stop", events))

    def _finished(self, reader: AnswerReader, source: Response | EventStream) -> LLMResponse:
        try:
            return reader.finish(source.request_id)
        except UnreadableError as exc:
            raise self._error(str(exc), source, retryable=False) from None

    def _error(self, problem: str, source: Response | EventStream, *, retryable: bool = True) -> ProviderResponseError:
        request = f" [request {source.request_id}]" if source.request_id else ""
        return ProviderResponseError(
            f"{self._model.label}: {_cut(self._model.redacted(problem))}{request}",
            owner=self._model.owner,
            retryable=retryable,
            status=source.status,
            request_id=source.request_id,
        )

    def _paused_too_often(self) -> ProviderError:
        return ProviderError(
            f"the server paused its answer {MAX_PAUSES + 1} times, each time after calls of its own tools",
            owner=self._model.owner,
            remedy="ask for less at once, or bound the tools in server_tools (max_uses)",
        )

    def _begun(self, reader: AnswerReader) -> list[bytes]:
        """Return what the server is to go on with: the blocks of a paused turn, or nothing."""
        if not reader.paused:
            return []
        reader.begin_next()
        return assistant_blocks(reader.continuation(), lambda name: self._names.get(name, name))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_OF_A_PROBLEM else f"{text[: _MOST_OF_A_PROBLEM - 3]}..."


def _decoded(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        if data.strip() == "[DONE]":  # the end of a stream, to servers that speak other dialects too
            return {}
        raise UnreadableError(f"an event is not JSON: {data!r}") from None
    if not isinstance(value, dict):
        raise UnreadableError(f"an event is a {type(value).__name__}, expected an object: {data!r}")
    return value


async def _drain(events: EventStream) -> None:
    """Read the end of a stream whose message is complete, so that the connection is kept."""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in events:
                pass
