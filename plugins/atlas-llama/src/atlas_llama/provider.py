"""The LLM provider `llama`: a GGUF file behind the interface of a model."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from atlas_core import (
    BaseLLM,
    Capabilities,
    ChatMessage,
    ConnectionConfig,
    FinishReason,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    ProviderError,
    ProviderResponseError,
    ProviderTimeoutError,
    ServiceNotReadyError,
    SettingsError,
    ToolCall,
    Usage,
)
from atlas_llama.engine import Chunk, Engine, EngineError, EngineSettings, Job, default_threads
from atlas_llama.gguf import GgufError, GgufFacts, read_facts
from atlas_llama.holding import Holding, make_holding, probe_body
from atlas_llama.threads import in_thread
from atlas_llama.wire import Neutralizer, render
from atlas_llama.writing import Writing

if TYPE_CHECKING:
    from atlas_llama.options import LlamaOptions

__all__ = ["DEFAULT_WINDOW_TOKENS", "LlamaLLM"]

DEFAULT_WINDOW_TOKENS = 8192
"""The window where the settings name none and the file allows more: memory grows with it, by 1 GiB at this size for a
usual model of eight billion parameters."""

_WINDOW_STEP = 256
"""llama.cpp rounds windows up to a multiple of it."""

_TRIES = 3
"""How often an answer is asked for where one does not fit what the grammar could not hold it to."""
_KEPT_HOLDINGS = 32


class LlamaLLM(BaseLLM):
    """A model file in this process.

    Each object loads the file for itself; the operating system keeps the weights of one file in memory once. What is
    written at once is limited by the connection's `parallel`, and other requests wait for their turn.
    """

    def __init__(self, config: ConnectionConfig) -> None:
        self._options = cast("LlamaOptions", config.options)
        self._key = f"ai.connections.{config.name}"
        self._path = (config.base_dir or Path()) / Path(self._options.path).expanduser()
        self._model = config.model
        self._engine: Engine | None = None
        self._facts: GgufFacts | None = None
        self._neutral = Neutralizer(())
        self._holdings: dict[str, Holding] = {}
        self.capabilities = Capabilities(native_tools=True, streaming=True, schema_output=True)
        self.label = f"{config.model or self._path.name}, in this process"

    # Life cycle ------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        facts = await in_thread(self._read_facts)
        window = self._window(facts)
        engine = Engine(
            EngineSettings(
                path=self._path,
                window_tokens=window,
                threads=self._options.threads or default_threads(),
                gpu_layers=self._options.gpu_layers,
                parallel=self._options.parallel,
            )
        )
        # Also where nobody calls `stop`: when the object goes, or the interpreter does.
        closing = weakref.finalize(self, engine.close)
        try:
            await in_thread(engine.load)
        except EngineError as exc:
            closing()
            raise self._refused(facts) from exc
        except BaseException:
            closing()
            raise
        self._engine, self._facts, self._closing = engine, facts, closing
        self._neutral = Neutralizer(facts.control_tokens)
        self._model = self._model or facts.name or self._path.stem
        self.label = f"{self._model} ({self._path.name}, in this process)"
        self.capabilities = Capabilities(native_tools=True, streaming=True, schema_output=True, window_tokens=window)

    async def _stop(self) -> None:
        if self._engine is not None:
            self._engine = None
            await in_thread(self._closing)

    def _read_facts(self) -> GgufFacts:
        try:
            return read_facts(self._path)
        except (OSError, GgufError) as exc:
            reason = (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
            raise self._faulty(f"the model file {str(self._path)!r} can't be used: {reason}") from exc

    def _faulty(
        self, problem: str, key: str = "path", remedy: str = "name a GGUF file of a language model"
    ) -> SettingsError:
        return SettingsError(problem, key=f"{self._key}.{key}", remedy=remedy)

    def _refused(self, facts: GgufFacts) -> SettingsError:
        return self._faulty(
            f"llama.cpp can't load the model file {str(self._path)!r} of architecture {facts.architecture!r}",
            remedy="fetch the file again if it may be damaged, update xllamacpp if the model is newer than it, "
            "or lower context_tokens if memory may be short",
        )

    def _window(self, facts: GgufFacts) -> int:
        wanted = self._options.context_tokens
        if wanted is None:
            return min(facts.context_tokens, DEFAULT_WINDOW_TOKENS)
        if wanted > facts.context_tokens:
            raise self._faulty(
                f"context_tokens is {wanted}, and the model of {str(self._path)!r} was made for {facts.context_tokens}",
                "context_tokens",
                f"set it to at most {facts.context_tokens}, or leave it out",
            )
        return min(-(-wanted // _WINDOW_STEP) * _WINDOW_STEP, facts.context_tokens)

    async def list_models(self) -> list[str]:
        """Return the one model of the file."""
        return [self._model] if self._model else []

    # Answering -------------------------------------------------------------------------------------------------

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer a request.

        Raises:
            ProviderError: The input does not fit the window, holds what is no text, or llama.cpp refused it.
            ProviderResponseError: The model kept writing calls that break a tool's schema where no grammar can hold it.
            ProviderTimeoutError: The request's deadline passed.
            ServiceNotReadyError: The provider was stopped.
        """
        async with aclosing(self.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, LLMResponse):
                    return piece
        raise AssertionError("the last piece is the response")

    async def stream(self, request: LLMRequest) -> AsyncGenerator[LLMDelta | LLMResponse]:
        """Answer in pieces; raises as `complete` does."""
        await self.start()
        holding = await self._holding(request)
        answer = request.output_schema
        turns = render(request.system, request.tools, request.messages, self._neutral, answer=answer)
        usage = Usage()
        for left in reversed(range(_TRIES)):
            writing = Writing(holding, first=left == _TRIES - 1)
            async with aclosing(self._write("chat", self._body(turns, request, holding), request.deadline)) as chunks:
                async for chunk in chunks:
                    for delta in writing.take(chunk):
                        yield delta
            for delta in writing.end():
                yield delta
            usage += writing.usage
            problem = holding.problem(writing.written) if holding is not None and not writing.cut else None
            if problem is None:
                yield self._response(writing, usage, request)
                return
            turns = [
                *turns,
                {"role": "assistant", "content": self._neutral(writing.raw)},
                {"role": "user", "content": self._neutral(problem)},
            ]
        raise ProviderResponseError(
            f"the model {self._model!r} wrote {_TRIES} times what does not fit: {problem}"[:600],
            remedy="simplify the schema, or use a larger model",
            retryable=False,
        )

    def _body(self, turns: list[dict[str, str]], request: LLMRequest, holding: Holding | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": turns,
            "temperature": self._options.temperature,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # calls back between batches of input, and so lets it be stopped
        }
        if self._options.seed is not None:
            body["seed"] = self._options.seed
        if request.max_output_tokens is not None:
            body["max_tokens"] = request.max_output_tokens
        if holding is not None:
            body["grammar"] = holding.grammar
        return body

    def _response(self, writing: Writing, usage: Usage, request: LLMRequest) -> LLMResponse:
        written = writing.written
        before = sum(len(m.tool_calls) for m in request.messages)
        calls = tuple(
            ToolCall(f"llama-{before + n}", call.name, call.arguments_json) for n, call in enumerate(written.calls, 1)
        )
        text = written.text
        if written.rest and not calls:
            text = f"{text}\n{written.rest}".strip()  # a call that was cut: shown, never executed
        reason = FinishReason.LENGTH if writing.cut else FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return LLMResponse(
            message=ChatMessage.assistant(text, calls), finish_reason=reason, usage=usage, model=self._model
        )

    # Asking llama.cpp ------------------------------------------------------------------------------------------

    async def _holding(self, request: LLMRequest) -> Holding | None:
        """Return what holds the model to the request's tools and schema; None where there is neither."""
        if not request.tools and request.output_schema is None:
            return None
        key = json.dumps([[t.name, t.parameters] for t in request.tools] + [request.output_schema], default=dict)
        holding = self._holdings.get(key)
        if holding is None:
            assert self._facts is not None  # noqa: S101  # it is started

            async def works(grammar: str) -> bool:
                return await self._probe(grammar, request.deadline)

            holding = await make_holding(request.tools, request.output_schema, end_ids=self._facts.end_ids, works=works)
            if len(self._holdings) >= _KEPT_HOLDINGS:
                self._holdings.clear()
            self._holdings[key] = holding
        return holding

    async def _probe(self, grammar: str, deadline: float | None) -> bool:
        """Whether llama.cpp takes a grammar; it drops one that it can't take, and says so nowhere."""
        text = ""
        async with aclosing(self._write("text", probe_body(grammar), deadline)) as chunks:
            async for chunk in chunks:
                text += "".join(choice.get("text") or "" for choice in chunk.get("choices", ()))
        return bool(text) and Holding.begins_probe(text)

    async def _write(self, kind: str, body: dict[str, Any], deadline: float | None) -> AsyncGenerator[Chunk]:
        """Have llama.cpp answer, and yield what it writes; leaving early stops it."""
        engine = self._engine
        if engine is None:
            raise self._stopped()
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Chunk | _End] = asyncio.Queue()

        def post(item: Chunk | _End) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, item)
            except RuntimeError:  # the loop is closed: nobody waits any more
                job.stop()

        job = Job(kind, body, on_chunk=post, on_end=lambda error: post(_End(error)))  # type: ignore[arg-type]  # one of two
        try:
            engine.submit(job)
        except EngineError as exc:
            raise self._stopped() from exc
        whole = False
        try:
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                try:
                    async with asyncio.timeout(left):
                        item = await arrived.get()
                except TimeoutError as exc:
                    raise ProviderTimeoutError(
                        f"the model {self._model!r} did not finish its answer before the deadline",
                        remedy="allow more time, ask for fewer tokens, or use a smaller model",
                    ) from exc
                if isinstance(item, _End):
                    if item.error is not None:
                        raise self._failed(str(item.error)) from item.error
                    if not whole:
                        raise self._stopped()
                    return
                if "error" in item:
                    raise self._fault(item["error"])
                whole = whole or any(choice.get("finish_reason") for choice in item.get("choices", ()))
                yield item
        finally:
            job.stop()

    def _fault(self, error: dict[str, Any]) -> ProviderError:
        if error.get("type") == "exceed_context_size_error":
            return ProviderError(
                f"the input has {error.get('n_prompt_tokens')} tokens, and the window of {self._model!r} has "
                f"{error.get('n_ctx')}",
                owner=f"{self._key}.context_tokens",
                remedy=self._more_room(),
            )
        return self._failed(str(error.get("message")))

    def _more_room(self) -> str:
        most = self._facts.context_tokens if self._facts else 0
        if (self.capabilities.window_tokens or 0) < most:
            return f"raise context_tokens, which this file allows up to {most}, or shorten the conversation"
        return "shorten the conversation, offer fewer tools, or use a model with a larger window"

    def _failed(self, reason: str) -> ProviderError:
        return ProviderError(f"llama.cpp refused the request to {self._model!r}: {reason[:400]}")

    def _stopped(self) -> ServiceNotReadyError:
        return ServiceNotReadyError(f"the model {self._model!r} was stopped", remedy="make a new one")


class _End:
    """The end of a job, with what went wrong."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
