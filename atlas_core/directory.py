"""Who can do what: agents by id, with their capabilities."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from atlas_core.errors import UnknownAgentError
from atlas_core.names import did_you_mean, nearest, tool_form
from atlas_core.permissions import is_pattern, matches

__all__ = ["AgentDirectory", "plain_name"]


class AgentDirectory:
    """Agents by id, each with what it can do. May be used from several threads.

    Ids and capabilities compare as names of tools do: in any case, and with `-` equal to `_`. The order in which
    agents were registered changes no answer.

    Example:
        directory = AgentDirectory()
        directory.register("ada", ["mathematics", "web-search"])
        directory.register("bob", ["web_search"])
        assert directory.find("Web_Search") == ["ada", "bob"]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._agents: dict[str, tuple[str, tuple[str, ...]]] = {}

    def register(self, agent_id: str, capabilities: Iterable[str] = ()) -> None:
        """Add an agent.

        Args:
            agent_id: Its id.
            capabilities: What it can do; texts without `*`, `?` and `[`, which make a pattern of a name.
        Raises:
            ValueError: The id is taken, or it or a capability is blank or a pattern.
            TypeError: The id or a capability is no text, or the capabilities are one text instead of several.
        """
        entry = (plain_name(agent_id, "agent_id"), _names(capabilities))
        with self._lock:
            taken = self._agents.setdefault(tool_form(agent_id), entry)
        if taken is not entry:
            raise ValueError(
                f"agent {agent_id!r} is in the directory already, as {taken[0]!r}; "
                "update() changes what it can do, unregister() removes it"
            )

    def update(self, agent_id: str, capabilities: Iterable[str]) -> None:
        """Replace what an agent can do.

        Args:
            agent_id: Its id.
            capabilities: As for `register`.
        Raises:
            UnknownAgentError: It is not in the directory.
            ValueError: A capability is blank or a pattern.
            TypeError: A capability is no text, or they are one text instead of several.
        """
        names = _names(capabilities)
        with self._lock:
            self._agents[tool_form(agent_id)] = (self._entry(agent_id)[0], names)

    def unregister(self, agent_id: str) -> None:
        """Remove an agent.

        Raises:
            UnknownAgentError: It is not in the directory.
        """
        with self._lock:
            self._entry(agent_id)
            del self._agents[tool_form(agent_id)]

    def find(self, capability: str) -> list[str]:
        """Return the ids of the agents that have a capability, sorted; none if nobody has it.

        Args:
            capability: A capability, or a pattern (`*`, `?`, `[abc]`) that one of an agent's must match.
        Raises:
            TypeError: The capability is no text.
        """
        if not isinstance(capability, str):
            raise TypeError(f"capability is a {type(capability).__name__}, expected text")
        with self._lock:
            agents = list(self._agents.values())
        return sorted(agent_id for agent_id, names in agents if any(matches(capability, name) for name in names))

    def capabilities(self, agent_id: str) -> tuple[str, ...]:
        """Return what an agent can do, as it was registered, sorted, each once.

        Raises:
            UnknownAgentError: It is not in the directory.
        """
        with self._lock:
            return self._entry(agent_id)[1]

    @property
    def agents(self) -> list[str]:
        """All ids, sorted."""
        with self._lock:
            return sorted(agent_id for agent_id, _ in self._agents.values())

    def __contains__(self, agent_id: object) -> bool:
        return isinstance(agent_id, str) and tool_form(agent_id) in self._agents

    def __len__(self) -> int:
        return len(self._agents)

    def __repr__(self) -> str:
        return f"AgentDirectory({self.agents})"

    def _entry(self, agent_id: str) -> tuple[str, tuple[str, ...]]:
        """Look an agent up; the lock is held."""
        entry = self._agents.get(tool_form(agent_id)) if isinstance(agent_id, str) else None
        if entry is None:
            known = [known for known, _ in self._agents.values()]
            shown = str(agent_id)[:100]
            raise UnknownAgentError(
                f"there is no agent {shown!r}",
                agent_id=shown,
                suggestions=nearest(shown, known),
                remedy=did_you_mean(shown, known, what="registered"),
            )
        return entry


def plain_name(value: object, what: str) -> str:
    """Return a name that is text, not blank and no pattern; private to the package.

    Raises:
        TypeError: It is no text.
        ValueError: It is blank or a pattern.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}, expected text")
    if not value.strip() or is_pattern(value):
        problem = "is a pattern" if value.strip() else "is blank"
        raise ValueError(f"{what} {value!r} {problem}, expected a name without '*', '?' and '['")
    return value


def _names(capabilities: Iterable[str]) -> tuple[str, ...]:
    if isinstance(capabilities, str):
        raise TypeError(f"capabilities is the text {capabilities!r}, expected a list of texts: [{capabilities!r}]")
    # Sorted before equal ones are joined, so that which spelling stays does not depend on the order.
    by_form = {
        tool_form(name): name for name in sorted((plain_name(c, "capability") for c in capabilities), reverse=True)
    }
    return tuple(sorted(by_form.values()))
