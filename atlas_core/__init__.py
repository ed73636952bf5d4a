"""Atlas: a plugin-based framework for LLM agents. This is the public API.

    from atlas_core import AgentFactory

    agent = AgentFactory.create("math_agent")
    text = await agent.run("What is the square root of 144 multiplied by 5?")

Names load when first used: `import atlas_core` alone reads this file and no other.
"""

from __future__ import annotations

from atlas_core._version import __version__ as __version__

# Type checkers take this name for true. `typing` is not imported for it: that alone takes as long as starting Python.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from atlas_core.agents.service import AgentService as AgentService
    from atlas_core.agents.stream import RunStream as RunStream
    from atlas_core.agents.worker import ToolCapableAgent as ToolCapableAgent
    from atlas_core.agents.worker import WorkerAgent as WorkerAgent
    from atlas_core.directory import AgentDirectory as AgentDirectory
    from atlas_core.errors import AgentMaxIterationsError as AgentMaxIterationsError
    from atlas_core.errors import AgentTimeoutError as AgentTimeoutError
    from atlas_core.errors import AtlasError as AtlasError
    from atlas_core.errors import CostBudgetError as CostBudgetError
    from atlas_core.errors import EmptyAnswerError as EmptyAnswerError
    from atlas_core.errors import ExecutorError as ExecutorError
    from atlas_core.errors import InvalidOutputError as InvalidOutputError
    from atlas_core.errors import LimitError as LimitError
    from atlas_core.errors import OutputLimitError as OutputLimitError
    from atlas_core.errors import PluginConflictError as PluginConflictError
    from atlas_core.errors import PluginError as PluginError
    from atlas_core.errors import PluginHookError as PluginHookError
    from atlas_core.errors import PluginLoadError as PluginLoadError
    from atlas_core.errors import PluginResultError as PluginResultError
    from atlas_core.errors import ProviderAuthError as ProviderAuthError
    from atlas_core.errors import ProviderError as ProviderError
    from atlas_core.errors import ProviderRateLimitError as ProviderRateLimitError
    from atlas_core.errors import ProviderResponseError as ProviderResponseError
    from atlas_core.errors import ProviderTimeoutError as ProviderTimeoutError
    from atlas_core.errors import RunError as RunError
    from atlas_core.errors import ServiceNotReadyError as ServiceNotReadyError
    from atlas_core.errors import SettingsError as SettingsError
    from atlas_core.errors import TokenBudgetError as TokenBudgetError
    from atlas_core.errors import ToolArgumentsError as ToolArgumentsError
    from atlas_core.errors import ToolDefinitionError as ToolDefinitionError
    from atlas_core.errors import ToolDeniedError as ToolDeniedError
    from atlas_core.errors import ToolError as ToolError
    from atlas_core.errors import ToolFailedError as ToolFailedError
    from atlas_core.errors import ToolTimeoutError as ToolTimeoutError
    from atlas_core.errors import UnknownAgentError as UnknownAgentError
    from atlas_core.errors import UnknownToolError as UnknownToolError
    from atlas_core.events import Event as Event
    from atlas_core.events import HistoryRepaired as HistoryRepaired
    from atlas_core.events import ModelRequested as ModelRequested
    from atlas_core.events import ModelResponded as ModelResponded
    from atlas_core.events import Observer as Observer
    from atlas_core.events import RunEnded as RunEnded
    from atlas_core.events import RunStarted as RunStarted
    from atlas_core.events import RunWarning as RunWarning
    from atlas_core.events import TextDelta as TextDelta
    from atlas_core.events import ToolCallEnded as ToolCallEnded
    from atlas_core.events import ToolCallStarted as ToolCallStarted
    from atlas_core.executors.base import BaseToolExecutor as BaseToolExecutor
    from atlas_core.executors.parallel import ParallelToolExecutor as ParallelToolExecutor
    from atlas_core.executors.sync import SyncToolExecutor as SyncToolExecutor
    from atlas_core.factory import AgentFactory as AgentFactory
    from atlas_core.interfaces.agents import Agent as Agent
    from atlas_core.interfaces.agents import AgentParts as AgentParts
    from atlas_core.interfaces.agents import AgentTypeSpec as AgentTypeSpec
    from atlas_core.interfaces.agents import ToolGrants as ToolGrants
    from atlas_core.interfaces.executors import ExecutorSpec as ExecutorSpec
    from atlas_core.interfaces.executors import Outcome as Outcome
    from atlas_core.interfaces.executors import PreparedCall as PreparedCall
    from atlas_core.interfaces.executors import ToolExecutorProtocol as ToolExecutorProtocol
    from atlas_core.interfaces.llm import BaseLLM as BaseLLM
    from atlas_core.interfaces.llm import Capabilities as Capabilities
    from atlas_core.interfaces.llm import ConnectionConfig as ConnectionConfig
    from atlas_core.interfaces.llm import ConnectionReport as ConnectionReport
    from atlas_core.interfaces.llm import FinishReason as FinishReason
    from atlas_core.interfaces.llm import LLMDefaults as LLMDefaults
    from atlas_core.interfaces.llm import LLMDelta as LLMDelta
    from atlas_core.interfaces.llm import LLMProviderSpec as LLMProviderSpec
    from atlas_core.interfaces.llm import LLMRequest as LLMRequest
    from atlas_core.interfaces.llm import LLMResponse as LLMResponse
    from atlas_core.interfaces.llm import LLMSession as LLMSession
    from atlas_core.interfaces.service import BaseService as BaseService
    from atlas_core.interfaces.tools import AIToolProtocol as AIToolProtocol
    from atlas_core.interfaces.tools import Example as Example
    from atlas_core.interfaces.tools import Tool as Tool
    from atlas_core.interfaces.tools import ToolContext as ToolContext
    from atlas_core.interfaces.tools import ToolHints as ToolHints
    from atlas_core.interfaces.tools import ToolProvider as ToolProvider
    from atlas_core.interfaces.tools import ToolSchema as ToolSchema
    from atlas_core.kernel import Kernel as Kernel
    from atlas_core.limits import RunLimits as RunLimits
    from atlas_core.llm.manager import LLMManager as LLMManager
    from atlas_core.markers import hookimpl as hookimpl
    from atlas_core.messages import Answer as Answer
    from atlas_core.messages import CallStatus as CallStatus
    from atlas_core.messages import ChatMessage as ChatMessage
    from atlas_core.messages import Data as Data
    from atlas_core.messages import File as File
    from atlas_core.messages import Image as Image
    from atlas_core.messages import Opaque as Opaque
    from atlas_core.messages import Part as Part
    from atlas_core.messages import RunOutcome as RunOutcome
    from atlas_core.messages import RunResult as RunResult
    from atlas_core.messages import Text as Text
    from atlas_core.messages import ToolCall as ToolCall
    from atlas_core.messages import ToolResult as ToolResult
    from atlas_core.messages import Usage as Usage
    from atlas_core.observers.jsonl import JsonLinesTrace as JsonLinesTrace
    from atlas_core.owner import Owner as Owner
    from atlas_core.settings.models import AgentProfileSettings as AgentProfileSettings
    from atlas_core.settings.models import AtlasSettings as AtlasSettings
    from atlas_core.structured import MessageMetadata as MessageMetadata
    from atlas_core.structured import MessageType as MessageType
    from atlas_core.structured import StructuredMessage as StructuredMessage
    from atlas_core.toolkit import AgentToolkit as AgentToolkit
    from atlas_core.tools.function import FunctionTool as FunctionTool
    from atlas_core.tools.function import tool as tool
    from atlas_core.tools.registry import ToolRegistry as ToolRegistry
    from atlas_core.tools.strict import strict_parameters as strict_parameters
    from atlas_core.tools.wire_names import wire_names as wire_names

_HOMES = {
    "agents.service": ("AgentService",),
    "agents.stream": ("RunStream",),
    "agents.worker": ("ToolCapableAgent", "WorkerAgent"),
    "directory": ("AgentDirectory",),
    "errors": (
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
    ),
    "events": (
        "Event",
        "HistoryRepaired",
        "ModelRequested",
        "ModelResponded",
        "Observer",
        "RunEnded",
        "RunStarted",
        "RunWarning",
        "TextDelta",
        "ToolCallEnded",
        "ToolCallStarted",
    ),
    "executors.base": ("BaseToolExecutor",),
    "executors.parallel": ("ParallelToolExecutor",),
    "executors.sync": ("SyncToolExecutor",),
    "factory": ("AgentFactory",),
    "interfaces.agents": ("Agent", "AgentParts", "AgentTypeSpec", "ToolGrants"),
    "interfaces.executors": (
        "ExecutorSpec",
        "Outcome",
        "PreparedCall",
        "ToolExecutorProtocol",
    ),
    "interfaces.llm": (
        "BaseLLM",
        "Capabilities",
        "ConnectionConfig",
        "ConnectionReport",
        "FinishReason",
        "LLMDefaults",
        "LLMDelta",
        "LLMProviderSpec",
        "LLMRequest",
        "LLMResponse",
        "LLMSession",
    ),
    "interfaces.service": ("BaseService",),
    "interfaces.tools": (
        "AIToolProtocol",
        "Example",
        "Tool",
        "ToolContext",
        "ToolHints",
        "ToolProvider",
        "ToolSchema",
    ),
    "kernel": ("Kernel",),
    "limits": ("RunLimits",),
    "llm.manager": ("LLMManager",),
    "markers": ("hookimpl",),
    "messages": (
        "Answer",
        "CallStatus",
        "ChatMessage",
        "Data",
        "File",
        "Image",
        "Opaque",
        "Part",
        "RunOutcome",
        "RunResult",
        "Text",
        "ToolCall",
        "ToolResult",
        "Usage",
    ),
    "observers.jsonl": ("JsonLinesTrace",),
    "owner": ("Owner",),
    "settings.models": ("AgentProfileSettings", "AtlasSettings"),
    "structured": ("MessageMetadata", "MessageType", "StructuredMessage"),
    "toolkit": ("AgentToolkit",),
    "tools.function": ("FunctionTool", "tool"),
    "tools.registry": ("ToolRegistry",),
    "tools.strict": ("strict_parameters",),
    "tools.wire_names": ("wire_names",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605


# A `__getattr__` that type checkers could see would silence them on misspelt names.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
