"""The hooks. A hook declares what a plugin offers; the work is done by the objects it returns.

All are plain functions, called once while a kernel is composed, one plugin at a time, without I/O. Every hook
but `atlas_options` receives `options`: the plugin's own table of the settings (`plugins.options.NAME`),
validated by the model that `atlas_options` returned and frozen; for a plugin without `atlas_options`, an empty
model. An implementation may leave the argument out. What a hook raises becomes a `PluginResultError` that names
the plugin, and nothing that this plugin offered is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import BaseModel

    from atlas_core.events import Observer
    from atlas_core.interfaces.agents import AgentTypeSpec
    from atlas_core.interfaces.executors import ExecutorSpec
    from atlas_core.interfaces.llm import LLMProviderSpec
    from atlas_core.interfaces.tools import AIToolProtocol, Tool, ToolProvider

__all__ = [
    "atlas_agent_types",
    "atlas_executors",
    "atlas_llm_providers",
    "atlas_observers",
    "atlas_options",
    "atlas_tool_providers",
]


@hookspec(firstresult=True)
def atlas_options() -> type[BaseModel]:
    """Name the pydantic model of the plugin's own settings table.

    Called first, once per plugin and kernel. The table `plugins.options.NAME` is validated by the model before
    any other hook of the plugin is called; a value that does not fit is a `SettingsError` naming file and key.

    Returns:
        A model class. A plugin without this hook takes no options, and a table for it is an error.

    Since 0.1. Example:

        class Options(BaseModel):
            root: Path | None = None

        @hookimpl
        def atlas_options() -> type[BaseModel]:
            return Options
    """
    raise NotImplementedError


@hookspec
def atlas_tool_providers(options: BaseModel) -> Iterable[Callable[..., object] | Tool | AIToolProtocol | ToolProvider]:
    """Offer tools.

    Called once per plugin and kernel. Answers of all plugins are merged in name order; a tool name offered twice
    is a `PluginConflictError` naming both owners for the profiles that use it, and `plugins.prefix` settles it.

    Args:
        options: The plugin's own options, validated; read-only.
    Returns:
        Typed functions, tools, objects with `name`, `description`, `schema` and `execute`, or tool providers for
        tools known only at run time. Empty if the host lacks what they need.

    Since 0.1. Example:

        def word_count(text: str) -> int:
            \"\"\"Count the words in a text.\"\"\"
            return len(text.split())

        @hookimpl
        def atlas_tool_providers(options):
            return [word_count]
    """
    raise NotImplementedError


@hookspec
def atlas_llm_providers(options: BaseModel) -> Iterable[LLMProviderSpec]:
    """Offer model providers, which connections name as their `backend`.

    Called once per plugin and kernel. A provider name offered twice is a `PluginConflictError`.

    Args:
        options: The plugin's own options, validated; read-only.
    Returns:
        One spec per provider.

    Since 0.1. Example:

        @hookimpl
        def atlas_llm_providers(options):
            return [LLMProviderSpec(name="echo", factory=EchoLLM)]
    """
    raise NotImplementedError


@hookspec
def atlas_executors(options: BaseModel) -> Iterable[ExecutorSpec]:
    """Offer strategies for running tool calls, which profiles name as their `executor`.

    Called once per plugin and kernel. An executor name offered twice is a `PluginConflictError`.

    Args:
        options: The plugin's own options, validated; read-only.
    Returns:
        One spec per strategy; empty if the host lacks what they need.

    Since 0.1. Example:

        @hookimpl
        def atlas_executors(options):
            return [ExecutorSpec(name="slow", factory=lambda table: SlowExecutor())]
    """
    raise NotImplementedError


@hookspec
def atlas_agent_types(options: BaseModel) -> Iterable[AgentTypeSpec]:
    """Offer agent types, which profiles name as their `type`.

    Called once per plugin and kernel. An agent type offered twice is a `PluginConflictError`.

    Args:
        options: The plugin's own options, validated; read-only.
    Returns:
        One spec per type.

    Since 0.1. Example:

        @hookimpl
        def atlas_agent_types(options):
            return [AgentTypeSpec(name="polite", factory=PoliteAgent)]
    """
    raise NotImplementedError


@hookspec
def atlas_observers(options: BaseModel) -> Iterable[Observer]:
    """Offer observers, which are told of every event of every run of the profiles that enable the plugin.

    Called once per plugin and kernel. Observers are told in the plugins' name order; one that raises is logged
    and does not keep the others from being told.

    Args:
        options: The plugin's own options, validated; read-only.
    Returns:
        Objects with `on_event(event)`, and `start` and `stop` coroutines where they hold something.

    Since 0.1. Example:

        class Counter:
            n = 0
            def on_event(self, event): self.n += 1

        @hookimpl
        def atlas_observers(options):
            return [Counter()]
    """
    raise NotImplementedError
