"""The agent that most programs use: a profile, a model, an executor and tools, joined by the loop."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from atlas_core._runtime.budget import CHARS_PER_TOKEN, Price
from atlas_core._runtime.dispatch import Dispatcher
from atlas_core._runtime.history import read_history
from atlas_core._runtime.invoke import Lifecycle, error_text
from atlas_core._runtime.loop import CURRENT_RUN, Plan, Run, earlier
from atlas_core._runtime.observing import Audience
from atlas_core._runtime.output import OutputType
from atlas_core._runtime.portal import Portal
from atlas_core._runtime.toolset import build_toolset
from atlas_core._runtime.workers import Workers
from atlas_core.agents.stream import RunStream
from atlas_core.errors import (
    AgentTimeoutError,
    AtlasError,
    InvalidOutputError,
    ServiceNotReadyError,
    SettingsError,
)
from atlas_core.interfaces.agents import AgentParts, ToolGrants
from atlas_core.interfaces.llm import LLMDefaults
from atlas_core.interfaces.runs import MemoryRunStore
from atlas_core.interfaces.service import BaseService
from atlas_core.limits import RunLimits
from atlas_core.messages import Answer, ChatMessage, RunOutcome, RunResult
from atlas_core.names import did_you_mean
from atlas_core.owner import Owner

if TYPE_CHECKING:
    from atlas_core.events import Event, Observer
    from atlas_core.interfaces.executors import ToolExecutorProtocol
    from atlas_core.interfaces.llm import BaseLLM
    from atlas_core.interfaces.tools import ToolSchema
    from atlas_core.settings.models import AgentProfileSettings, Prices

__all__ = ["AgentService", "Request"]

T = TypeVar("T")
R = TypeVar("R", bound=Run)

STOP_WAIT_S = 5.0
"""How long `stop` waits for cancelled runs to clean up."""

_OVERRIDES = tuple(f.name for f in dataclasses.fields(RunLimits))


class AgentService(BaseService):
    """An agent. Starts on first use; two runs at once share nothing but what is read-only.

    Args:
        settings: The profile: prompt, tools, permissions, limits.
        llm: The model.
        executor: Where tool calls run; its `tool_registry` holds the tools where there is no toolkit.
        toolkit: Tools with grants: the agent is offered what it was granted under its name, as the grants stand when
            a run begins, and a call to what was revoked since is refused. The profile's `tools`, where it has any, and
            `permissions` narrow that further.
        observers: Who is told of every event of every run.

    The agent starts `llm` and `executor` but leaves stopping them to whoever made them. An agent that came from
    `AgentFactory.create` stops everything it uses.
    """

    def __init__(
        self,
        settings: AgentProfileSettings,
        llm: BaseLLM,
        executor: ToolExecutorProtocol,
        *,
        toolkit: ToolGrants | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        from atlas_core.tools.registry import ToolRegistry  # heavier than what importing this module should cost

        registry = getattr(executor, "tool_registry", None)
        self._set_up(
            AgentParts(
                agent_id=settings.name or "agent",
                settings=settings,
                options=None,
                llm=llm,
                executor=executor,
                tools=registry if registry is not None else ToolRegistry(),
                toolkit=toolkit,
                system_prompt=settings.system_prompt,
                executor_name=type(executor).__name__,
                observers=tuple((observer, Owner()) for observer in observers),
            )
        )

    @classmethod
    def from_parts(cls, parts: AgentParts) -> Self:
        """Make an agent from what a kernel hands to an agent type."""
        self = cls.__new__(cls)
        self._set_up(parts)
        return self

    def _set_up(self, parts: AgentParts) -> None:
        self._parts = parts
        self._plan: Plan | None = None
        self._revision = -1
        self._store = parts.store if parts.store is not None else MemoryRunStore()
        self._portal = Portal()
        # An agent that is dropped without a stop leaves no thread behind.
        weakref.finalize(self, self._portal.close, wait=False).atexit = False
        self._own_workers: Workers | None = None
        # Without a kernel, tools belong to the executor: agents that share it share its tools, and it stops them.
        shared = parts.lifecycle or getattr(parts.executor, "lifecycle", None)
        self._lifecycle = shared if isinstance(shared, Lifecycle) else Lifecycle()
        self._owns_lifecycle = self._lifecycle is not shared
        self._runs: set[asyncio.Task[object]] = set()
        self._stopped_runs: set[asyncio.Task[object]] = set()
        self._at_stop: list[Callable[[], Awaitable[None]]] = []
        s = parts.settings
        self._limits = RunLimits(
            max_iterations=s.max_iterations,
            max_execution_time_seconds=s.max_execution_time_seconds,
            max_tool_calls=s.max_tool_calls,
            max_tokens=s.max_tokens,
            max_cost=s.max_cost,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._parts.agent_id!r}, {self._state}>"

    @property
    def parts(self) -> AgentParts:
        """What the agent is made of."""
        return self._parts

    @property
    def settings(self) -> AgentProfileSettings:
        """The profile."""
        return self._parts.settings

    # Life cycle ------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        parts = self._parts
        if parts.disabled is not None:
            raise ServiceNotReadyError(parts.disabled, remedy="set ai.agents.enabled = true")
        if parts.before_start is not None:
            await parts.before_start()
        model = parts.llm.label or "the model"
        await _started(parts.llm.start, model, parts.llm_owner)
        await _started(parts.executor.start, f"executor {parts.executor_name!r}", Owner())
        self._audience = Audience(parts.observers)
        self._plan = self._make_plan()

    def _make_plan(self) -> Plan:
        """Work out what stays the same over runs: anew only where grants have changed."""
        parts, toolkit = self._parts, self._parts.toolkit
        granted = None
        if toolkit is None:
            toolset = build_toolset(parts.tools, parts.settings)
        else:
            self._revision = toolkit.revision
            toolset = build_toolset(toolkit.allowed_tools(parts.agent_id), parts.settings, granted=True)
            withheld = {name: "it was not granted" for name in toolkit.list_tools() if name not in toolset.offered}
            toolset = dataclasses.replace(toolset, denied={**withheld, **toolset.denied})
            granted = functools.partial(toolkit.has_permission, parts.agent_id)
        dispatcher = Dispatcher(
            toolset,
            parts.executor,
            executor_name=parts.executor_name,
            workers=self._workers,
            lifecycle=self._lifecycle,
            tool_timeout_s=parts.settings.tool_timeout_seconds,
            granted=granted,
        )
        return Plan(
            agent_id=parts.agent_id,
            llm=parts.llm,
            defaults=LLMDefaults(
                system=self.system_prompt(),
                tools=toolset.schemas,
                max_output_tokens=parts.max_output_tokens,
            ),
            dispatcher=dispatcher,
            store=self._store,
            connection=parts.connection,
            agent_owner=parts.owner,
            llm_owner=parts.llm_owner,
            as_text=self._as_text(),
            fixed_tokens=_fixed_tokens(self.system_prompt(), toolset.schemas),
            prices={name: _price(prices) for name, prices in parts.prices.items()},
            warnings=toolset.warnings,
        )

    def current_plan(self) -> Plan:
        """Return the plan for a run that begins now; private to the package."""
        toolkit = self._parts.toolkit
        if self._plan is None or (toolkit is not None and toolkit.revision != self._revision):
            self._plan = self._make_plan()
        return self._plan

    def _as_text(self) -> bool:
        """Whether tools are offered in the prompt, which is settled once the model is ready."""
        wanted, native = self._parts.settings.tool_calls, self._parts.llm.capabilities.native_tools
        if wanted == "native" and not native:
            raise SettingsError(
                f"{self._parts.llm.label or 'the model'} has no native tool calls",
                key=f"ai.agents.profiles.connections.{self._parts.agent_id}.tool_calls",
                remedy="set tool_calls = 'auto' or 'text', which offers the tools in the prompt",
            )
        return wanted == "text" or not native

    def system_prompt(self) -> str | None:
        """Return the system prompt; an agent type may override it to add to the profile's."""
        return self._parts.system_prompt

    def _workers(self) -> Workers:
        workers = getattr(self._parts.executor, "workers", None)
        if isinstance(workers, Workers):
            return workers
        if self._own_workers is None:
            self._own_workers = Workers()
        return self._own_workers

    def at_stop(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Have something stopped together with the agent, after it and in reverse order."""
        self._at_stop.append(callback)

    async def stop(self) -> None:
        """Cancel the runs that go on, then free what the agent holds; does nothing if it has ended."""
        if self._portal.is_open and not self._portal.is_inside:
            # What was started through the sync door lives on its loop and must be stopped there.
            await asyncio.to_thread(self._portal.call, self._stop_everything)
            await asyncio.to_thread(self._portal.close)
        else:
            await self._stop_everything()

    async def _stop_everything(self) -> None:
        running = self._runs - {asyncio.current_task()}
        self._stopped_runs |= running
        for task in running:
            task.get_loop().call_soon_threadsafe(task.cancel)
        patience = time.monotonic() + STOP_WAIT_S
        # Runs may live on other loops, which no wait of this one covers.
        while running & self._runs and time.monotonic() < patience:  # noqa: ASYNC110  # an Event belongs to one loop
            await asyncio.sleep(0.005)
        await super().stop()
        while self._at_stop:
            await self._at_stop.pop()()

    async def _stop(self) -> None:
        if self._owns_lifecycle:
            await self._lifecycle.stop()
        if self._own_workers is not None:
            self._own_workers.stop()

    def stop_sync(self) -> None:
        """Stop from plain code."""
        self._portal.call(self._stop_everything)
        self._portal.close()

    # Runs ------------------------------------------------------------------------------------------------------

    @overload
    async def run(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: None = None,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Answer: ...
    @overload
    async def run(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: type[T],
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> T: ...
    @overload
    async def run(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: Any,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Any: ...
    async def run(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: Any = None,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Any:
        """Answer a message.

        Args:
            input_message: Text, or a user message with other parts.
            history: The conversation so far, such as an earlier `answer.result.messages`; never changed.
            context: Handed to tools that ask for a `ToolContext`, as its `context`.
            output_type: What the answer must be: a pydantic model, a dataclass, a TypedDict, a union or any other
                type that pydantic can validate; None for text.
            limits: Replaces the profile's limits.
            overrides: Single limits by name, such as `max_iterations=3`.
        Returns:
            The answer, a text whose `.result` holds messages, tool results and usage, and whose
            `result.outcome` tells an answer from a decline. With an output type, the validated object itself.
        Raises:
            ServiceNotReadyError: The agent was stopped or disabled, or could not start.
            LimitError: A limit was reached; `AgentMaxIterationsError` and `AgentTimeoutError` are such.
            ProviderError: The model's provider failed.
            InvalidOutputError: The answer did not meet the output type, nor did the ones after it was told why; or the
                model declined where a type was asked for.
            TypeError: An override is not the name of a limit, or the output type has no JSON Schema.
        """
        request = Request(self, input_message, history, output_type=output_type, limits=limits, overrides=overrides)
        await request.wait_ready()
        result = await self._execute(request.make_run(Run, context, None))
        return Answer(result.output, result) if output_type is None else _value(result)

    def stream(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: Any = None,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> RunStream:
        """Answer a message and yield what happens, text as it is written.

        Args and errors are those of `run`; errors are raised by the iteration, after the `RunEnded` event, and an
        output type's object is `stream.result.value`. Leave the iteration early and the run is cancelled;
        `async with agent.stream(...) as events` waits for that.
        """
        request = Request(self, input_message, history, output_type=output_type, limits=limits, overrides=overrides)

        async def execute(tell: Callable[[Event], None]) -> RunResult:
            await request.wait_ready()
            return await self._execute(request.make_run(Run, context, tell))

        return RunStream(execute)

    @overload
    def run_sync(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: None = None,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Answer: ...
    @overload
    def run_sync(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: type[T],
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> T: ...
    @overload
    def run_sync(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: Any,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Any: ...
    def run_sync(
        self,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None = None,
        *,
        context: object = None,
        output_type: Any = None,
        limits: RunLimits | None = None,
        **overrides: Any,
    ) -> Any:
        """Answer a message, from plain code; works where an event loop runs already, as in a notebook.

        Args, what is returned and errors are those of `run`. An agent is used either through this door or through the
        async ones.
        """
        return self._portal.call(
            lambda: self.run(
                input_message, history, context=context, output_type=output_type, limits=limits, **overrides
            )
        )

    async def _execute(self, run: Run) -> RunResult:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine on asyncio runs in a task
        self._runs.add(task)
        try:
            return await run.execute()
        except asyncio.CancelledError:
            # Whoever awaits a run of an agent that is stopped was not cancelled itself.
            if task in self._stopped_runs and task.uncancel() == 0:
                raise ServiceNotReadyError("the agent was stopped during the run") from None
            raise
        finally:
            self._runs.discard(task)
            self._stopped_runs.discard(task)


async def _started(start: Callable[[], Awaitable[None]], what: str, owner: Owner) -> None:
    try:
        await start()
    except (AtlasError, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as exc:  # foreign code
        raise ServiceNotReadyError(f"{what} did not start: {error_text(exc)}", owner=str(owner)) from exc


def _fixed_tokens(system: str | None, schemas: Iterable[ToolSchema]) -> int:
    chars = len(system or "")
    for schema in schemas:
        chars += len(schema.name) + len(schema.description) + len(str(schema.parameters))
    return chars // CHARS_PER_TOKEN


def _price(prices: Prices) -> Price:
    cached = prices.cached_input if prices.cached_input is not None else prices.input
    return Price(prices.input, cached, prices.output)


class Request:
    """The arguments of a run, checked before anything starts; private to the package."""

    def __init__(
        self,
        agent: AgentService,
        input_message: str | ChatMessage,
        history: Iterable[ChatMessage | Mapping[str, object]] | None,
        *,
        output_type: Any,
        limits: RunLimits | None,
        overrides: Mapping[str, Any],
    ) -> None:
        self._output = OutputType(output_type) if output_type is not None else None
        self._agent = agent
        self._message = _user_message(input_message)
        self._history = read_history(history)
        self._limits = limits if limits is not None else agent._limits  # noqa: SLF001  # the same module's
        for name in overrides:
            if name not in _OVERRIDES:
                raise TypeError(f"run() has no option {name!r}; {did_you_mean(name, _OVERRIDES, what='options')}")
        if overrides:
            self._limits = dataclasses.replace(self._limits, **overrides)
        self._began = time.monotonic()

    async def wait_ready(self) -> None:
        """Start the agent if need be; the run's time counts from here."""
        self._began = time.monotonic()
        if self._agent.is_ready:
            return
        limit = self._limits.max_execution_time_seconds
        ends = earlier(limit, CURRENT_RUN.get(), self._began)
        timer = asyncio.timeout(None if ends is None else ends - self._began)
        try:
            async with timer:
                await self._agent.start()
        except TimeoutError as exc:
            if not timer.expired():
                raise
            took = time.monotonic() - self._began
            raise AgentTimeoutError(
                f"agent {self._agent.parts.agent_id!r} did not start within {took:.3g} s",
                limit=limit,
                remedy="raise max_execution_time_seconds, or start the agent before its first run",
            ) from exc

    def make_run(self, kind: type[R], context: object, tell: Callable[[Event], None] | None) -> R:
        """Make a run of a kind; the agent must be ready."""
        return kind(
            self._agent.current_plan(),
            self._limits,
            self._message,
            self._history,
            context=context,
            audience=self._agent._audience,  # noqa: SLF001  # the same module's
            output=self._output,
            listener=tell,
            began=self._began,
        )


def _user_message(message: object) -> ChatMessage:
    if isinstance(message, str):
        message = ChatMessage.user(message)
    if not isinstance(message, ChatMessage):
        raise TypeError(f"input_message is a {type(message).__name__}, expected text or a ChatMessage")
    if message.role != "user":
        raise ValueError(f"input_message has role {message.role!r}, expected 'user'; earlier messages go to history")
    if not message.content or (isinstance(message.content, str) and not message.content.strip()):
        raise ValueError("input_message is empty")
    return message


def _value(result: RunResult) -> object:
    if result.outcome is RunOutcome.ANSWERED:
        return result.value
    error = InvalidOutputError(f"the model declined: {result.output}")
    error.result = result
    raise error
