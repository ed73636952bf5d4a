"""Every error that Atlas raises, as one tree.

AtlasError
├── SettingsError (ValueError)      a settings file, variable or name is wrong
├── PluginError                     a plugin can't be used
│   ├── PluginLoadError             its module does not import
│   ├── PluginHookError             a hook is misspelt, has a wrong signature or is `async def`
│   ├── PluginResultError           a hook raised, or an offered object breaks its interface
│   └── PluginConflictError         two owners offer one name
├── ToolError
│   ├── ToolDefinitionError (ValueError)    a tool can't be registered as it stands
│   ├── UnknownToolError (KeyError, ValueError)     no tool of that name
│   ├── ToolArgumentsError (ValueError)     a call's arguments don't fit the tool's schema
│   ├── ToolDeniedError (PermissionError)   the agent may not use the tool
│   └── ToolFailedError                     the tool itself failed; its exception is the cause
│       └── ToolTimeoutError (TimeoutError)
├── UnknownAgentError (KeyError, ValueError)        no agent of that name
├── ServiceNotReadyError            used after `stop`, while disabled, or after a failed start
└── RunError                        a run ended without an answer; `.result` holds what was done
    ├── ProviderError               the model's provider failed
    │   ├── ProviderAuthError       no key, or a refused one
    │   ├── ProviderRateLimitError  `.retry_after_s` says how long to wait
    │   ├── ProviderTimeoutError (TimeoutError)
    │   ├── ProviderResponseError   the reply can't be read
    │   └── EmptyAnswerError        the model kept answering with nothing
    ├── InvalidOutputError          the answer never met the output type
    ├── ExecutorError               the executor failed or is gone
    └── LimitError                  a limit of the run was reached
        ├── AgentMaxIterationsError
        ├── AgentTimeoutError (TimeoutError)
        ├── TokenBudgetError
        ├── CostBudgetError
        └── OutputLimitError        the answer was cut by the model's output limit

Each error carries its facts as attributes and builds its text in `__str__`, so it survives pickling
across a process border. This module imports nothing of Atlas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atlas_core.messages import ChatMessage, RunResult

__all__ = [
    "AgentMaxIterationsError",
    "AgentTimeoutError",
    "AtlasError",
    "CostBudgetError",
    "EmptyAnswerError",
    "ExecutorError",
    "InvalidOutputError",
    "LimitError",
    "OutputLimitError",
    "PluginConflictError",
    "PluginError",
    "PluginHookError",
    "PluginLoadError",
    "PluginResultError",
    "ProviderAuthError",
    "ProviderError",
    "ProviderRateLimitError",
    "ProviderResponseError",
    "ProviderTimeoutError",
    "RunError",
    "ServiceNotReadyError",
    "SettingsError",
    "TokenBudgetError",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolDeniedError",
    "ToolError",
    "ToolFailedError",
    "ToolTimeoutError",
    "UnknownAgentError",
    "UnknownToolError",
]


class AtlasError(Exception):
    """Root of the tree.

    Args:
        problem: What failed, with the offending value in `repr`.
        owner: Who owns the value: a plugin with its distribution and version, or a file with line and key.
        remedy: What to do, as an imperative without a full stop.
    """

    def __init__(self, problem: str, *, owner: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.owner = owner
        self.remedy = remedy

    def __str__(self) -> str:
        text = self.problem
        if self.owner:
            text = f"{text} ({self.owner})"
        if self.remedy:
            text = f"{text}; {self.remedy}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own recipe calls cls(*args) and so loses keyword-only arguments.
        return _rebuild, (type(self), self.args, dict(self.__dict__))


def _rebuild(cls: type[AtlasError], args: tuple[object, ...], state: dict[str, object]) -> AtlasError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class SettingsError(AtlasError, ValueError):
    """A settings file, variable or name is wrong.

    Attributes:
        key: Dotted key of the offending value, such as `ai.agents.default_profile`; None for a whole file.
        source: Where the value was set: `settings.toml:12`, or the name of a variable.
    """

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        source: str | None = None,
        owner: str | None = None,
        remedy: str | None = None,
    ) -> None:
        places = [f"key {key}" if key else "", f"set in {source}" if source else "", owner or ""]
        super().__init__(problem, owner=", ".join(p for p in places if p) or None, remedy=remedy)
        self.key = key
        self.source = source


class PluginError(AtlasError):
    """A plugin can't be used.

    Attributes:
        plugin: The plugin's name (its entry point's), or None.
        distribution: The distribution that it comes from, or "" if the program gave it directly.
        version: That distribution's version, or "".
        entry_point: Its entry point as the metadata spells it, `name = module:attribute`, or "".
        cause: The formatted traceback of what its code raised, or "".
    """

    def __init__(
        self,
        problem: str,
        *,
        plugin: str | None = None,
        distribution: str = "",
        version: str = "",
        entry_point: str = "",
        owner: str | None = None,
        remedy: str | None = None,
        cause: str = "",
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.plugin = plugin
        self.distribution = distribution
        self.version = version
        self.entry_point = entry_point
        self.cause = cause


class PluginLoadError(PluginError):
    """A plugin's module does not import, or its entry point names something that is not there."""


class PluginHookError(PluginError):
    """A plugin's hook is misspelt, has a wrong signature, or is an `async def`."""


class PluginResultError(PluginError):
    """A plugin's hook raised, or an object it offers breaks its interface."""


class PluginConflictError(PluginError):
    """Two owners offer one name.

    Attributes:
        name: The contested name.
        owners: Both owners, in a stable order.
    """

    def __init__(
        self,
        problem: str,
        *,
        name: str,
        owners: Sequence[str] = (),
        plugin: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(problem, plugin=plugin, remedy=remedy)
        self.name = name
        self.owners = tuple(owners)


class ToolError(AtlasError):
    """Something about a tool; `.tool` is its name."""

    def __init__(
        self, problem: str, *, tool: str | None = None, owner: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.tool = tool


class ToolDefinitionError(ToolError, ValueError):
    """A function or object can't become a tool as it stands."""


class UnknownToolError(ToolError, KeyError, ValueError):
    """No tool has that name.

    Attributes:
        suggestions: Names that would have worked, nearest first.
    """

    def __init__(
        self,
        problem: str,
        *,
        tool: str | None = None,
        suggestions: Sequence[str] = (),
        owner: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(problem, tool=tool, owner=owner, remedy=remedy)
        self.suggestions = tuple(suggestions)


class ToolArgumentsError(ToolError, ValueError):
    """A call's arguments don't fit the tool's schema. The text is meant for the model, at most 1,000 characters."""


class ToolDeniedError(ToolError, PermissionError):
    """The agent may not use the tool."""


class ToolFailedError(ToolError):
    """A tool that a program ran directly failed; what it raised is the `__cause__`.

    In a run of an agent a failure is the call's result instead.

    Attributes:
        status: How the call ended, by the names of `CallStatus`: "failed" unless the subclass says otherwise.
    """

    status = "failed"


class ToolTimeoutError(ToolFailedError, TimeoutError):
    """A tool did not return in time; it may still take effect, in whole or in part."""

    status = "timed_out"


class UnknownAgentError(AtlasError, KeyError, ValueError):
    """No agent has that name.

    Attributes:
        agent_id: The name.
        suggestions: Names that would have worked, nearest first.
    """

    def __init__(
        self,
        problem: str,
        *,
        agent_id: str | None = None,
        suggestions: Sequence[str] = (),
        owner: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.agent_id = agent_id
        self.suggestions = tuple(suggestions)


class ServiceNotReadyError(AtlasError):
    """A service was used after `stop`, while it is disabled, or after its start failed."""


class RunError(AtlasError):
    """A run ended without an answer.

    Attributes:
        result: What was done until then: messages, tool results, usage. None if no run had begun.
    """

    def __init__(self, problem: str, *, owner: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.result: RunResult | None = None

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages of the run so far, history included; a valid history for the next run."""
        return self.result.messages if self.result is not None else ()


class ProviderError(RunError):
    """The model's provider failed.

    Attributes:
        retryable: Whether the same request may succeed later.
        status: The HTTP status, where there was one.
        request_id: The server's id of the request, where it gave one.
        partial_text: What the model had written when a streamed answer failed, or "".
    """

    def __init__(
        self,
        problem: str,
        *,
        owner: str | None = None,
        remedy: str | None = None,
        retryable: bool = False,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.retryable = retryable
        self.status = status
        self.request_id = request_id
        self.partial_text = ""


class ProviderAuthError(ProviderError):
    """There is no key, or the server refused it."""


class ProviderRateLimitError(ProviderError):
    """The server asks for a pause.

    Attributes:
        retry_after_s: Seconds the server asked to wait, or None.
    """

    def __init__(
        self,
        problem: str,
        *,
        owner: str | None = None,
        remedy: str | None = None,
        retryable: bool = True,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy, retryable=retryable, status=status, request_id=request_id)
        self.retry_after_s = retry_after_s


class ProviderTimeoutError(ProviderError, TimeoutError):
    """The server did not answer in time."""


class ProviderResponseError(ProviderError):
    """The server's reply can't be read as an answer."""


class EmptyAnswerError(ProviderError):
    """The model answered with neither text nor a tool call, and did so again when asked once more."""


class InvalidOutputError(RunError):
    """The model's answer did not meet the output type, and did not when it was told why; see `.result.output`."""


class ExecutorError(RunError):
    """The executor failed as a whole, or is gone; a failure of one call is that call's result instead."""


class LimitError(RunError):
    """A limit of the run was reached.

    Attributes:
        limit: The limit's value, in the unit that the subclass states.
    """

    def __init__(
        self, problem: str, *, limit: float | None = None, owner: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(problem, owner=owner, remedy=remedy)
        self.limit = limit


class AgentMaxIterationsError(LimitError):
    """The model still wanted to call tools after `max_iterations` requests; `.limit` counts requests."""


class AgentTimeoutError(LimitError, TimeoutError):
    """The run's `max_execution_time_seconds` passed; `.limit` is in seconds."""


class TokenBudgetError(LimitError):
    """The next request would go over `max_tokens`; `.limit` counts input and output tokens of the run."""


class CostBudgetError(LimitError):
    """The next request could go over `max_cost`; `.limit` is in the currency of the connection's prices."""


class OutputLimitError(LimitError):
    """The model's answer was cut by its output limit; the part that came is in `.result.output`."""
