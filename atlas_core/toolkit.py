"""Tools that agents share, each agent using no more of them than it was granted."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from atlas_core._runtime.direct import DirectCalls
from atlas_core._runtime.invoke import error_text
from atlas_core.errors import (
    ToolArgumentsError,
    ToolDeniedError,
    ToolFailedError,
    ToolTimeoutError,
    UnknownToolError,
)
from atlas_core.grants import Grants, check_pattern
from atlas_core.interfaces.tools import ToolContext
from atlas_core.messages import CallStatus
from atlas_core.names import did_you_mean, nearest, tool_form
from atlas_core.permissions import is_pattern, matches
from atlas_core.tools.registry import ToolRegistry
from atlas_core.tools.schema_check import plain_copy

if TYPE_CHECKING:
    from types import TracebackType

    from atlas_core.interfaces.executors import Outcome
    from atlas_core.interfaces.tools import AIToolProtocol, Tool
    from atlas_core.owner import Owner

__all__ = ["AgentToolkit"]


class AgentToolkit:
    """Tools by name, and which agent may use which: none, until it is granted.

    About each tool the last word counts: a grant, or a revocation, of its name or of a pattern (`*`, `?`, `[abc]`) that
    it matches. A pattern also means tools that are registered later. Ids of agents and names of tools compare in any
    case and with `-` equal to `_`. May be used from several threads and event loops; a tool with a `start` of its own
    belongs to the loop that used it first, so that such tools are best called either through the sync doors or through
    the async ones.

    Args:
        tools: Tools to register at once.
    Raises:
        ToolDefinitionError: As for `register_tool`.
        PluginConflictError: As for `register_tool`.

    Example:
        def add(a: int, b: int) -> int:
            '''Add two numbers.'''
            return a + b

        with AgentToolkit([add]) as toolkit:
            toolkit.grant_permission("accountant", "add")
            assert toolkit.execute_tool_sync("accountant", "add", {"a": 2, "b": 3}) == 5
    """

    def __init__(self, tools: Iterable[Tool | AIToolProtocol | Callable[..., Any]] = ()) -> None:
        self._lock = threading.RLock()
        self._registry = ToolRegistry()
        self._grants: dict[str, Grants] = {}
        self._revision = 0
        self._calls = DirectCalls("the toolkit")
        for tool in tools:
            self.register_tool(tool)

    def __repr__(self) -> str:
        return f"<AgentToolkit, {len(self._registry)} tools, grants for {len(self._grants)} agents>"

    # Tools -------------------------------------------------------------------------------------------------------

    def register_tool(
        self,
        tool: Tool | AIToolProtocol | Callable[..., Any],
        *,
        prefix: str | None = None,
        owner: Owner | None = None,
    ) -> str:
        """Add a tool. Nobody may use it by that, but for agents that were granted a pattern which it matches.

        Args:
            tool: A typed function, a tool, or an object with a tool's four parts.
            prefix: Put before the name, with `_` between unless it ends in one of `_ - . : /`.
            owner: Who supplies it; the program itself if left out.
        Returns:
            The name it has here.
        Raises:
            ToolDefinitionError: It can't be a tool as it stands, or its schema is faulty.
            PluginConflictError: The name is taken.
        """
        with self._lock:
            name = self._registry.register(tool, prefix=prefix, owner=owner)
            self._revision += 1
            return name

    def get_tool(self, name: str) -> Tool:
        """Return a tool.

        Raises:
            UnknownToolError: There is none of that name; `.suggestions` has the nearest names.
        """
        with self._lock:
            return self._registry.get(self._known(name))

    def list_tools(self) -> list[str]:
        """Return the names of all tools, sorted."""
        with self._lock:
            return self._registry.names

    # Permissions -------------------------------------------------------------------------------------------------

    def grant_permission(self, agent_id: str, tool: str) -> list[str]:
        """Let an agent use a tool, or all tools that match a pattern; earlier revocations of them no longer count.

        Args:
            agent_id: The agent; nobody else gains anything.
            tool: The name of a registered tool, or a pattern, which may match nothing yet.
        Returns:
            The names of the tools that this means now.
        Raises:
            UnknownToolError: No tool has that name, which is a ValueError; the text has the nearest one.
            ValueError: No tool's name can ever match the pattern, or the agent's id is blank.
            TypeError: One of the two is no text.
        """
        return self._say(agent_id, tool, granted=True)

    def grant_all_permissions(self, agent_id: str) -> list[str]:
        """Let an agent use every tool, those that are registered later too; the same as granting `*`.

        Args:
            agent_id: The agent.
        Returns:
            The names of all tools.
        Raises:
            ValueError: The id is blank.
            TypeError: The id is no text.
        """
        return self._say(agent_id, "*", granted=True)

    def revoke_permission(self, agent_id: str, tool: str) -> list[str]:
        """Take back the use of a tool, or of all that match a pattern; calls that have not started are refused.

        A tool may be taken out of a granted pattern. It stays out, also when it is registered later only, until it is
        granted again, by its name or by a pattern.

        Args:
            agent_id: The agent.
            tool: The name of a registered tool, or a pattern.
        Returns:
            The names of the tools that this means now.
        Raises:
            UnknownToolError: As for `grant_permission`: a misspelt name would protect nothing.
            ValueError: As for `grant_permission`.
            TypeError: As for `grant_permission`.
        """
        return self._say(agent_id, tool, granted=False)

    def _say(self, agent_id: str, tool: str, *, granted: bool) -> list[str]:
        key = _agent_key(agent_id)
        if not isinstance(tool, str):
            raise TypeError(f"tool is a {type(tool).__name__}, expected a tool's name or a pattern")
        with self._lock:
            if is_pattern(tool):
                check_pattern(tool)
                means = [name for name in self._registry.names if matches(tool, name)]
            else:
                tool = self._known(tool)
                means = [tool]
            self._grants[key] = self._grants.get(key, Grants()).after(tool, granted=granted)
            self._revision += 1
        return means

    def has_permission(self, agent_id: str, tool: str) -> bool:
        """Return whether an agent may use a tool; False for a tool that is not there.

        Raises:
            ValueError: The agent's id is blank.
            TypeError: The agent's id is no text.
        """
        key = _agent_key(agent_id)
        with self._lock:
            name = self._registry.find(tool) if isinstance(tool, str) else None
            return name is not None and self._grants.get(key, Grants()).allow(name)

    def list_grants(self, agent_id: str) -> list[str]:
        """Return what was said about an agent and still counts, the oldest first: `grant a_*`, `revoke a_b`.

        Raises:
            ValueError: The id is blank.
            TypeError: The id is no text.
        """
        return [str(word) for word in self._grants.get(_agent_key(agent_id), Grants()).words]

    def allowed_tools(self, agent_id: str) -> ToolRegistry:
        """Return a registry with the tools that an agent may use now, for an executor or an agent of its own.

        It is made anew at each call and does not follow later changes; `revision` tells when there were any.

        Raises:
            ValueError: The id is blank.
            TypeError: The id is no text.
        """
        key = _agent_key(agent_id)
        with self._lock:
            return self._registry.subset(self._allowed(key))

    def get_tool_descriptions(self, agent_id: str) -> list[dict[str, Any]]:
        """Return what a model may be told: exactly the tools that an agent may use, in name order.

        Returns:
            For each tool a dict with `name`, `description` and `parameters`, a JSON Schema; the caller's own to change.
            Tools that need a person's approval are among them.
        Raises:
            ValueError: The id is blank.
            TypeError: The id is no text.
        """
        schemas = [tool.schema for tool in self.allowed_tools(agent_id)]
        return [
            {"name": s.name, "description": s.description, "parameters": plain_copy(s.parameters, s.name, "")}
            for s in schemas
        ]

    @property
    def revision(self) -> int:
        """A number that grows with each tool that is registered and each word about an agent."""
        return self._revision

    # Calls -------------------------------------------------------------------------------------------------------

    async def execute_tool(
        self,
        agent_id: str,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        context: object = None,
        timeout_s: float | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Run a tool for an agent, which must have been granted it.

        The arguments are checked as a model's are. A plain function runs in a thread.

        Args:
            agent_id: The agent.
            name: The tool.
            args: Its arguments, JSON values; None for none.
            context: Handed to a tool that asks for a `ToolContext`, as its `context`.
            timeout_s: Seconds the call may take, start of the tool included; the tool's own limit holds as well.
            call_id: Names the call to the tool and in logs; made if left out.
        Returns:
            What the tool returned, whole; what a generator yielded, as a list.
        Raises:
            UnknownToolError: There is no such tool; a ValueError. Its text names none that the agent may not use.
            ToolDeniedError: The agent was not granted the tool, or a person must agree to its calls; a PermissionError.
            ToolArgumentsError: The arguments don't fit; a ValueError.
            ToolFailedError: The tool raised, which is the `__cause__`, or could not start.
            ToolTimeoutError: It took too long; a TimeoutError.
            ServiceNotReadyError: The toolkit was stopped.
            ValueError: The agent's id is blank, or the time negative.
            TypeError: The agent's id is no text.
        """
        name, tool, owner = self._permitted(agent_id, name)
        call_id = uuid.uuid4().hex if call_id is None else call_id
        deadline = _deadline(timeout_s)
        keywords = self._built(name, tool, args)
        if tool.requires_approval:
            raise ToolDeniedError(f"tool {name!r} needs a person's approval, and there is nobody to ask", tool=name)
        if tool.context_parameter is not None:
            own = _deadline(tool.timeout_s)
            keywords[tool.context_parameter] = ToolContext(
                context=context,
                agent_id=agent_id,
                call_id=call_id,
                idempotency_key=call_id,
                deadline=min((d for d in (deadline, own) if d is not None), default=None),
            )
        outcome = await self._calls.run(
            tool,
            keywords,
            label=f"tool {name!r}, call {call_id!r} of agent {agent_id[:100]!r}",
            deadline=deadline,
            gate=lambda: self._refuse_denied(agent_id, name),
        )
        if not outcome.ok:
            raise _failure(name, owner, outcome) from outcome.exception
        return outcome.value

    def execute_tool_sync(
        self,
        agent_id: str,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        context: object = None,
        timeout_s: float | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Run a tool for an agent, from plain code; works where an event loop runs already, as in a notebook.

        Args, what is returned and errors are those of `execute_tool`.
        """
        return self._calls.run_sync(
            lambda: self.execute_tool(agent_id, name, args, context=context, timeout_s=timeout_s, call_id=call_id)
        )

    @property
    def abandoned_calls(self) -> tuple[str, ...]:
        """Calls that did not return in time and whose threads still run."""
        return self._calls.abandoned

    def _permitted(self, agent_id: str, name: str) -> tuple[str, Tool, Owner]:
        key = _agent_key(agent_id)
        with self._lock:
            found = self._registry.find(name) if isinstance(name, str) else None
            if found is None:
                raise _unknown(name, self._allowed(key), f"agent {agent_id[:100]!r} may use")
            self._refuse_denied(agent_id, found)
            return found, self._registry.get(found), self._registry.owner(found)

    def _refuse_denied(self, agent_id: str, name: str) -> None:
        word = self._grants.get(_agent_key(agent_id), Grants()).last_word(name)
        if word is None or not word.granted:
            because = "it was not granted" if word is None else f"{word.pattern!r} was revoked"
            raise ToolDeniedError(
                f"agent {agent_id[:100]!r} may not use tool {name!r}: {because}",
                tool=name,
                remedy=f"grant_permission({agent_id[:100]!r}, {name!r}) allows it",
            )

    def _built(self, name: str, tool: Tool, args: Mapping[str, Any] | None) -> dict[str, Any]:
        args = {} if args is None else args
        if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
            got = (
                f"a {type(args).__name__}" if not isinstance(args, Mapping) else "an object with keys that are no text"
            )
            raise ToolArgumentsError(f"the arguments of tool {name!r} are {got}, expected a JSON object", tool=name)
        checked = self._registry.checker(name).check_values(dict(args))
        try:
            return dict(tool.build_arguments(dict(checked.values)))
        except ToolArgumentsError:
            raise
        except Exception as exc:
            problem = f"the arguments of tool {name!r} could not be read: {error_text(exc)}"
            raise ToolArgumentsError(problem[:1_000], tool=name) from exc

    def _allowed(self, key: str) -> list[str]:
        """Return the names of the tools that an agent may use; the lock is held."""
        grants = self._grants.get(key, Grants())
        return [name for name in self._registry.names if grants.allow(name)]

    def _known(self, name: object) -> str:
        """Return the name under which a tool is registered; the lock is held."""
        found = self._registry.find(name) if isinstance(name, str) else None
        if found is None:
            raise _unknown(name, self._registry.names, "registered")
        return found

    # End ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Cancel the calls that go on and stop the tools that were started; does nothing if that was done."""
        await self._calls.stop()

    def stop_sync(self) -> None:
        """Stop from plain code."""
        self._calls.stop_sync()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_sync()


def _agent_key(agent_id: object) -> str:
    """Return the form under which agents compare."""
    if not isinstance(agent_id, str):
        raise TypeError(f"agent_id is a {type(agent_id).__name__}, expected text")
    if not agent_id.strip():
        raise ValueError(f"agent_id {agent_id!r} is blank")
    return tool_form(agent_id)


def _unknown(name: object, known: Iterable[str], what: str) -> UnknownToolError:
    known = list(known)
    shown = str(name) if len(str(name)) <= 100 else str(name)[:97] + "..."
    return UnknownToolError(
        f"there is no tool {shown!r}",
        tool=shown,
        suggestions=nearest(shown, known),
        remedy=did_you_mean(shown, known, what=what),
    )


def _deadline(timeout_s: float | None) -> float | None:
    if timeout_s is None:
        return None
    if not timeout_s >= 0:  # nor is NaN
        raise ValueError(f"timeout_s is {timeout_s!r}, expected at least 0, or None for no limit")
    return time.monotonic() + timeout_s


def _failure(name: str, owner: Owner, outcome: Outcome) -> Exception:
    if isinstance(outcome.exception, ToolArgumentsError):
        return ToolArgumentsError(outcome.exception.problem, tool=name, remedy=outcome.exception.remedy)
    supplier = str(owner) if owner.plugin else None
    if outcome.status is CallStatus.TIMED_OUT:
        return ToolTimeoutError(f"tool {name!r} did not end: {outcome.error}", tool=name, owner=supplier)
    return ToolFailedError(f"tool {name!r} failed: {outcome.error}", tool=name, owner=supplier)
