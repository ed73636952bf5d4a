"""Makes the model behind each connection, once per kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from atlas_core.interfaces.llm import BaseLLM, ConnectionConfig
from atlas_core.llm.line import Line, LineLLM
from atlas_core.making import make
from atlas_core.settings.owned import NoOptions, validate_owned

if TYPE_CHECKING:
    from atlas_core.catalog import Catalog
    from atlas_core.owner import Owner
    from atlas_core.settings.loaded import LoadedSettings

__all__ = ["LLMManager"]


class LLMManager:
    """The models of one kernel, one per connection and provider.

    Args:
        loaded: The settings that hold the connections.
        catalog: Returns what the environment's enabled plugins offer, where `backend` is looked up. Called only
            when it is needed, since it loads them.
    """

    def __init__(self, loaded: LoadedSettings, catalog: Callable[[], Catalog]) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._models: dict[tuple[str, Owner], BaseLLM] = {}
        self._lines: dict[tuple[str, Owner], LineLLM] = {}

    def get(self, connection_name: str, *, catalog: Catalog | None = None) -> BaseLLM:
        """Return the model behind a connection; nothing is sent before it is started.

        Args:
            connection_name: The connection's name in the settings; names compare loosely.
            catalog: What a profile's plugins offer; the environment's if left out.
        Raises:
            SettingsError: No such connection, no such backend, or the connection's table does not fit.
            PluginError: The plugin that offers the backend failed, or makes no model.
        """
        return self.resolve(connection_name, catalog=catalog)[0]

    def resolve(
        self, connection_name: str, *, catalog: Catalog | None = None, key: str | None = None
    ) -> tuple[BaseLLM, Owner, str]:
        """Return the model, who supplied it, and the connection's name as the settings spell it.

        Args:
            connection_name: The connection's name.
            catalog: As for `get`.
            key: The dotted key that holds the name, for errors.
        """
        name, connection = self._loaded.connection(connection_name, key=key)
        if not connection.fallback and connection.requests_per_minute is None:
            model, owner = self._model(name, catalog)
            return model, owner, name
        offer = (catalog if catalog is not None else self._catalog()).find("llm", connection.backend)
        line = self._lines.get((name, offer.owner))
        if line is None:
            line = LineLLM([self._line(other, catalog) for other in self._chain(name)])
            self._lines[name, offer.owner] = line
        return line, offer.owner, name

    def _line(self, name: str, catalog: Catalog | None) -> Line:
        limit = self._loaded.settings.ai.connections[name].requests_per_minute
        return Line(name=name, llm=self._model(name, catalog)[0], requests_per_minute=limit)

    def _chain(self, name: str) -> list[str]:
        """Return a connection and all it may fall back on, each once, nearest first."""
        chain = [name]
        for known in chain:
            for other in self._loaded.settings.ai.connections[known].fallback:
                found, _ = self._loaded.connection(other, key=f"ai.connections.{known}.fallback")
                if found not in chain:
                    chain.append(found)
        return chain

    def _model(self, name: str, catalog: Catalog | None) -> tuple[BaseLLM, Owner]:
        connection = self._loaded.settings.ai.connections[name]
        offer = (catalog if catalog is not None else self._catalog()).find("llm", connection.backend)
        model = self._models.get((name, offer.owner))
        if model is None:
            options = validate_owned(
                offer.value.options or NoOptions,
                connection.options,
                key=f"ai.connections.{name}",
                loaded=self._loaded,
                owner=offer.owner,
            )
            model = make(
                offer,
                ConnectionConfig(name=name, model=connection.model, options=options, base_dir=self._loaded.base_dir),
                what=f"the model of connection {name!r} by provider {offer.name!r}",
                kind=BaseLLM,
                base="atlas_core.BaseLLM",
            )
            self._models[name, offer.owner] = model
        return model, offer.owner

    @property
    def models(self) -> Mapping[str, BaseLLM]:
        """The models made so far, by connection."""
        return {name: model for (name, _), model in self._models.items()}
