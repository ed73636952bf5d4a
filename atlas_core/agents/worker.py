"""Agents that work for others: they take tasks and messages, and answer each with what became of it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlas_core._runtime.invoke import error_text
from atlas_core._runtime.task_run import TaskRun
from atlas_core._runtime.toolset import build_toolset
from atlas_core.agents.mail import reply_to
from atlas_core.agents.service import AgentService, Request
from atlas_core.agents.tasks import Done, Task, read_task, result_items, sound, status_of_calls, task_id_of
from atlas_core.directory import plain_name
from atlas_core.errors import LimitError, SettingsError
from atlas_core.interfaces.agents import AgentParts
from atlas_core.interfaces.llm import BaseLLM
from atlas_core.messages import RunOutcome, RunResult
from atlas_core.names import tool_form

if TYPE_CHECKING:
    from atlas_core.interfaces.agents import ToolGrants
    from atlas_core.interfaces.executors import ToolExecutorProtocol
    from atlas_core.kernel import Kernel
    from atlas_core.structured import StructuredMessage

__all__ = ["ToolCapableAgent", "WorkerAgent"]

log = logging.getLogger("atlas.agents")


class WorkerAgent(AgentService):
    """An agent without tools that works off tasks and answers messages; it can all that `AgentService` can.

    It starts on first use. What it made itself (a kernel where none was given, an executor) ends with its `stop`; what
    was passed in is left to whoever made it.

    Args:
        worker_id: Its name, in messages, grants and traces.
        specialization: What it is good at, in a few words; one of its capabilities.
        system_prompt: What the model is told; a sentence with the specialization if left out.
        system_prompt_file: A text file with it, relative to the settings' folder. Only one of the two.
        llm: The model, or a connection's name; None for the connection of the default profile, which is `offline`
            where no settings say otherwise.
        kernel: Where connections are looked up, and whose observers are told; with the kernel the agent ends. Without
            one, and without a model, the agent makes a kernel from the settings in the current folder.
    Raises:
        SettingsError: There is no such connection, or the file with the prompt can't be read.
        PluginError: The plugin behind the connection failed.
        TypeError: An argument has the wrong type.
        ValueError: `worker_id` or `specialization` is blank.

    Example:
        >>> from atlas_core.testing import FakeLLM
        >>> with_model = WorkerAgent("ada", "mathematics", llm=FakeLLM(["It is 4."]))
        >>> with_model.process_task({"task_id": "t1", "query": "What is 2 + 2?"})["result"]
        'It is 4.'
        >>> with_model.stop_sync()
    """

    _type = "worker"

    def __init__(
        self,
        worker_id: str,
        specialization: str,
        *,
        system_prompt: str | None = None,
        system_prompt_file: str | Path | None = None,
        llm: BaseLLM | str | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        self._make(
            worker_id=worker_id,
            specialization=specialization,
            system_prompt=system_prompt,
            system_prompt_file=system_prompt_file,
            llm=llm,
            kernel=kernel,
        )

    def _make(
        self,
        *,
        worker_id: str,
        specialization: str,
        system_prompt: str | None,
        system_prompt_file: str | Path | None,
        llm: BaseLLM | str | None,
        kernel: Kernel | None,
        toolkit: ToolGrants | None = None,
        executor: ToolExecutorProtocol | None = None,
    ) -> None:
        from atlas_core.settings.models import AgentProfileSettings  # pydantic, as in all of this

        settings = AgentProfileSettings(
            name=_text(worker_id, "worker_id"),
            type=self._type,
            description=_text(specialization, "specialization"),
            system_prompt=system_prompt,
            system_prompt_file=None if system_prompt_file is None else str(system_prompt_file),
        )
        if llm is not None and not isinstance(llm, (BaseLLM, str)):
            raise TypeError(f"llm is a {type(llm).__name__}, expected a model or a connection's name")
        own = _own_kernel() if kernel is None and not isinstance(llm, BaseLLM) else None
        home = kernel if kernel is not None else own
        if home is not None:
            parts = home.parts_for(settings, llm)
        else:
            assert isinstance(llm, BaseLLM)  # noqa: S101  # else there is a kernel
            parts = _bare_parts(settings, llm)
        made = parts.executor if home is None and executor is None else None
        if executor is not None:
            parts = dataclasses.replace(parts, executor=executor, executor_name=type(executor).__name__)
        self._set_up(dataclasses.replace(parts, toolkit=toolkit))
        if own is not None:
            self.at_stop(own.stop)
        if made is not None:
            self.at_stop(made.stop)
        if kernel is not None:
            kernel.adopt(self)

    def _set_up(self, parts: AgentParts) -> None:
        options = parts.options
        self._specialization = getattr(options, "specialization", "") or parts.settings.description
        self._naming = threading.Lock()
        self._capabilities: dict[str, tuple[str, str]] = {}
        self._check_tools(parts)
        super()._set_up(parts)
        for name in getattr(options, "capabilities", ()):
            self.register_capability(name)

    def _check_tools(self, parts: AgentParts) -> None:
        if parts.settings.tools:
            raise SettingsError(
                f"agents of type {parts.settings.type!r} use no tools",
                key=f"ai.agents.profiles.connections.{parts.agent_id}.tools",
                remedy="set type = 'tool_capable', or leave the tools out",
            )

    @property
    def worker_id(self) -> str:
        """Its name; a profile's key, where the agent came from a profile."""
        return self._parts.agent_id

    @property
    def specialization(self) -> str:
        """What it is good at."""
        return self._specialization

    def system_prompt(self) -> str | None:
        """Return the prompt it was given, or one that tells its name and specialization."""
        given = self._parts.system_prompt
        if given or not self._specialization:
            return given
        return f"You are {self.worker_id}. Your specialization: {self._specialization}"

    # Tasks -------------------------------------------------------------------------------------------------------

    async def aprocess_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Work off a task.

        Args:
            task: `query` (or `description`, or `content`): what is asked. Optional: `task_id`, a text; `context`, any
                JSON value, shown to the model as data and to no tool, as are keys of the caller's own; `tool_calls`,
                a list of dicts with `name`, `arguments` and perhaps `id`, which run before the model is asked, by the
                same permissions and limits as its own. Without a query only they run.
        Returns:
            `task_id` (made, if the task had none), `status` (completed, failed, refused, limit or cancelled), `result`
            (the answer, or None), `tool_results` (dicts with name, arguments, status, result, error and call_id; the
            task's own first) and `error` (a text or None). Whatever is wrong with the task or goes wrong is told so;
            only the caller's own cancellation is raised.
        """
        try:
            wanted = read_task(task)
        except ValueError as exc:
            return Done(status="failed", error=sound(str(exc))).to_dict(_id_of(task))
        return (await self.work_off(wanted)).to_dict(wanted.task_id)

    def process_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Work off a task, from plain code; works where an event loop runs already, as in a notebook.

        Args and what is returned are those of `aprocess_task`. An agent is used either through its sync doors or
        through the async ones.
        """
        return self._portal.call(lambda: self.aprocess_task(task))

    async def work_off(self, task: Task) -> Done:
        """Work off a task that was read; private to the package."""
        run: TaskRun | None = None
        try:
            request = Request(self, task.question, None, output_type=None, limits=None, overrides={})
            await request.wait_ready()
            run = request.make_run(TaskRun, None, None)
            run.calls, run.asks = task.calls, bool(task.query)
            return _done(await self._execute(run), asked=run.asks)
        except asyncio.CancelledError as exc:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            return _failed(run.result if run is not None else None, exc)  # something foreign cancelled itself
        except Exception as exc:
            # Behind this door is foreign code (models, executors, plugins), and whoever sent the task may be far away.
            log.info("task %r failed", task.task_id, exc_info=exc)
            return _failed(run.result if run is not None else None, exc)

    # Messages ----------------------------------------------------------------------------------------------------

    async def aprocess_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """Answer a message.

        A QUERY is answered by a RESPONSE, a TASK by a RESULT, a TOOL_REQUEST (whose calls alone are run) by a
        TOOL_RESPONSE, and a STATUS by one with the agent's state and capabilities. Anything else, a message for
        another agent and a task that is not completed are answered by an ERROR. The answer carries what became of all
        calls, and `status` in its metadata where a task was worked off.

        Args:
            message: The message; it is not changed.
        Returns:
            The answer, with the ends swapped and `in_reply_to` set. Only the caller's own cancellation is raised.
        """
        return await reply_to(self, message)

    def process_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """Answer a message, from plain code; works where an event loop runs already.

        Args and what is returned are those of `aprocess_structured_message`.
        """
        return self._portal.call(lambda: self.aprocess_structured_message(message))

    # Capabilities ------------------------------------------------------------------------------------------------

    def register_capability(self, name: str, description: str = "") -> None:
        """Say that the agent can do something; said again, the description is replaced.

        Args:
            name: A short name; compares in any case and with `-` equal to `_`.
            description: What is meant, in a sentence.
        Raises:
            ValueError: The name is blank or a pattern.
            TypeError: One of the two is no text.
        """
        if not isinstance(description, str):
            raise TypeError(f"description is a {type(description).__name__}, expected text")
        with self._naming:
            self._capabilities[tool_form(plain_name(name, "capability"))] = (name, description)

    def get_capabilities(self) -> list[str]:
        """Return what the agent can do: what was registered, its specialization, `tool:NAME` for each of its tools.

        Returns:
            Names, sorted, each once; fit for `AgentDirectory`. Tools follow the grants as they stand.
        """
        return sorted(name for name, _ in self.described_capabilities())

    def described_capabilities(self) -> list[tuple[str, str]]:
        """Return the capabilities, each with its description, which may be empty."""
        tools = {f"tool:{name}": (f"tool:{name}", about) for name, about in self._tools()}
        # `*`, `?` and `[` make a pattern of a name, and a specialization is free text.
        special = " ".join(self._specialization.translate(str.maketrans("*?[]", "    ")).split())
        with self._naming:
            said = dict(self._capabilities)
        every = {**({tool_form(special): (special, "")} if special else {}), **tools, **said}
        return sorted(every.values())

    def _tools(self) -> list[tuple[str, str]]:
        parts = self._parts
        tools = parts.tools if parts.toolkit is None else parts.toolkit.allowed_tools(parts.agent_id)
        # As if granted: names that only a started provider offers are no error here.
        return [(s.name, s.description) for s in build_toolset(tools, parts.settings, granted=True).schemas]


class ToolCapableAgent(WorkerAgent):
    """A worker with tools: those that a toolkit grants to its `worker_id`, as the grants stand when a task begins.

    Args:
        worker_id, specialization, system_prompt, system_prompt_file, llm, kernel: As for `WorkerAgent`.
        toolkit: The tools with their grants, such as an `AgentToolkit`; without one there are no tools.
        executor: Where calls run; `parallel` if left out.
    Raises:
        SettingsError, PluginError, TypeError, ValueError: As for `WorkerAgent`.
    """

    _type = "tool_capable"

    def __init__(
        self,
        worker_id: str,
        specialization: str,
        *,
        system_prompt: str | None = None,
        system_prompt_file: str | Path | None = None,
        llm: BaseLLM | str | None = None,
        kernel: Kernel | None = None,
        toolkit: ToolGrants | None = None,
        executor: ToolExecutorProtocol | None = None,
    ) -> None:
        self._make(
            worker_id=worker_id,
            specialization=specialization,
            system_prompt=system_prompt,
            system_prompt_file=system_prompt_file,
            llm=llm,
            kernel=kernel,
            toolkit=toolkit,
            executor=executor,
        )

    def _check_tools(self, parts: AgentParts) -> None:
        """Take all tools."""

    @property
    def toolkit(self) -> ToolGrants | None:
        """The toolkit; None where there is none, and where a profile's own rules hold."""
        return self._parts.toolkit


def _own_kernel() -> Kernel:
    # By its name, as the package's own lazy names are: the kernel makes agents of these types, and so imports this.
    made: Kernel = import_module("atlas_core.kernel").Kernel.from_settings()
    return made


def _bare_parts(settings: Any, llm: BaseLLM) -> AgentParts:
    from atlas_core.executors.parallel import ParallelToolExecutor
    from atlas_core.settings.prompts import read_system_prompt
    from atlas_core.tools.registry import ToolRegistry

    return AgentParts(
        agent_id=settings.name,
        settings=settings,
        options=None,
        llm=llm,
        executor=ParallelToolExecutor(),
        executor_name="parallel",
        tools=ToolRegistry(),
        system_prompt=read_system_prompt(settings, Path()),
    )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}, expected text")
    if not value.strip():
        raise ValueError(f"{what} is blank")
    return value


def _id_of(task: object) -> str | None:
    """Return the id of a task that can't be read otherwise."""
    try:
        return task_id_of(task) if isinstance(task, Mapping) else None
    except ValueError:
        return None


def _done(result: RunResult, *, asked: bool) -> Done:
    items = result_items(result.tool_results)
    text = sound(result.output) or None
    if result.outcome is RunOutcome.DECLINED:
        return Done(status="refused", tool_results=items, error=text or "the model declined")
    if asked:
        return Done(status="completed", result=text, tool_results=items)
    status, error = status_of_calls(result.tool_results)
    return Done(status=status, tool_results=items, error=None if error is None else sound(error))


def _failed(result: RunResult | None, error: BaseException) -> Done:
    status = "limit" if isinstance(error, LimitError) else "failed"
    if result is not None and result.outcome is RunOutcome.CANCELLED:
        status = "cancelled"
    return Done(
        status=status,
        result=sound(result.output) or None if result is not None else None,
        tool_results=result_items(result.tool_results) if result is not None else (),
        error=sound(error_text(error)),
    )
