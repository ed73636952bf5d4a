"""Makes an agent from settings in one call, for programs that want no kernel of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from atlas_core.kernel import Kernel
from atlas_core.settings.loaded import LoadedSettings

if TYPE_CHECKING:
    from atlas_core.agents.service import AgentService
    from atlas_core.interfaces.agents import Agent

__all__ = ["AgentFactory"]


class AgentFactory:
    """Makes agents from settings, for programs that want no kernel of their own."""

    @classmethod
    def create(
        cls,
        profile_name: str | None = None,
        *,
        settings: str | Path | Mapping[str, object] | LoadedSettings | None = None,
        env: str | None = None,
        kernel: Kernel | None = None,
    ) -> AgentService:
        """Make the agent that a profile describes.

        Args:
            profile_name: The profile's name; None for the default profile.
            settings: A file, a mapping or loaded settings; None for `settings.toml` in the current folder, and
                the built-in defaults where that is missing.
            env: The environment; None for what `ATLAS_ENV` names. Only with settings from a file.
            kernel: Use this kernel instead. Without one the agent gets a kernel of its own, which its `stop` closes.
        Returns:
            An `AgentService`, or what the profile's agent type makes in its place.
        Raises:
            SettingsError: The settings are wrong, or something the profile names is not there.
            PluginError: A plugin that the profile needs failed.
            TypeError: `kernel` was given together with `settings` or `env`.
        """
        if kernel is not None:
            if settings is not None or env is not None:
                raise TypeError("give either kernel, or settings and env")
            return cast("AgentService", kernel.agent(profile_name))
        if isinstance(settings, (Mapping, LoadedSettings)):
            if env is not None:
                raise TypeError("env chooses an environment of a settings file; these settings are loaded already")
            own = Kernel(settings)
        else:
            own = Kernel.from_settings(settings, env=env)
        agent = own.agent(profile_name)
        at_stop = getattr(agent, "at_stop", None)
        if at_stop is not None:
            at_stop(own.stop)
        else:
            agent = cast("Agent", _Owning(agent, own.stop))
        return cast("AgentService", agent)


class _Owning:
    """A foreign agent together with the kernel that was made for it."""

    def __init__(self, agent: Agent, stop_kernel: Callable[[], Awaitable[None]]) -> None:
        self._agent = agent
        self._stop_kernel = stop_kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def stop(self) -> None:
        """Stop the agent and its kernel."""
        try:
            await self._agent.stop()
        finally:
            await self._stop_kernel()
