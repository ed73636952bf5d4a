"""Makes the model behind each connection, once per kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from atlas_core.interfaces.llm import BaseLLM, ConnectionConfig
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
                ConnectionConfig(name=name, model=connection.model, options=options),
                what=f"the model of connection {name!r} by provider {offer.name!r}",
                kind=BaseLLM,
                base="atlas_core.BaseLLM",
            )
            self._models[name, offer.owner] = model
        return model, offer.owner, name

    @property
    def models(self) -> Mapping[str, BaseLLM]:
        """The models made so far, by connection."""
        return {name: model for (name, _), model in self._models.items()}
