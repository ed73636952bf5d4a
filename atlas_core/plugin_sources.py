"""Where plugins and their options come from: entry points, and objects that a program gives directly."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from atlas_core.errors import PluginLoadError, SettingsError
from atlas_core.names import same_name
from atlas_core.owner import Owner

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atlas_core.metadata import InstalledPlugin
    from atlas_core.plugin_checks import Blame

__all__ = ["GivenPlugin", "OptionsFor", "default_options", "import_target", "named"]

GivenPlugin: TypeAlias = object
"""A module, an object or a class with hooks; or a pair of a name or an `Owner`, and one of these."""

OptionsFor: TypeAlias = "Callable[[str, type[BaseModel] | None, Owner], BaseModel]"
"""Returns a plugin's options, given its name, its model (None if it has none) and its owner; raises SettingsError."""


def import_target(plugin: InstalledPlugin, blame: Blame) -> object:
    """Import a plugin's module and return what its entry point names.

    Raises:
        PluginLoadError: The import raised something, or the module lacks the attribute.
    """
    try:
        module = importlib.import_module(plugin.module)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # a plugin that calls sys.exit must not end its host
        remedy = _import_remedy(plugin, exc)
        raise blame.error(PluginLoadError, f"plugin {plugin.name!r} did not import", remedy=remedy, cause=exc) from exc
    attributes = plugin.target.partition(":")[2]
    what = f"module {plugin.module!r} has no {attributes!r}, which its entry point names"
    return blame.guard(lambda: _attribute(module, attributes), what, kind=PluginLoadError)


def _attribute(module: ModuleType, dotted: str) -> object:
    return functools.reduce(getattr, filter(None, dotted.split(".")), module)


def _import_remedy(plugin: InstalledPlugin, exc: BaseException) -> str | None:
    if not isinstance(exc, ModuleNotFoundError) or not exc.name:
        return None
    if f"{plugin.module}.".startswith(f"{exc.name}."):
        return f"install {plugin.distribution} again: its entry point names a module that is not there"
    return f"install what provides the module {exc.name!r}, or install {plugin.distribution} again"


def named(plugins: Iterable[GivenPlugin]) -> dict[str, tuple[Owner, object]]:
    """Return plugins given directly with their owners, by the form of the name under which names compare.

    Raises:
        ValueError: Two have one name.
    """
    found: dict[str, tuple[Owner, object]] = {}
    for given in plugins:
        name, plugin = given if isinstance(given, tuple) and len(given) == 2 else (_own_name(given), given)
        owner = name if isinstance(name, Owner) else Owner(str(name))
        if same_name(owner.plugin) in found:
            raise ValueError(f"two plugins are given as {owner.plugin!r}; give one as a pair (name, plugin)")
        found[same_name(owner.plugin)] = (owner, plugin)
    return dict(sorted(found.items()))


def _own_name(plugin: object) -> str:
    """Return a name for one given without: "word-tools" for a module `atlas_word_tools.plugin`, else its class's."""
    if not isinstance(plugin, ModuleType):
        return plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__
    parts = [part for part in plugin.__name__.split(".") if part != "plugin"] or [plugin.__name__]
    return re.sub(r"^atlas_(?=.)", "", parts[-1]).replace("_", "-")


def default_options(plugin: str, model: type[BaseModel] | None, owner: Owner) -> BaseModel:
    """Return a plugin's options where nobody sets any.

    Raises:
        SettingsError: Its model has a required key.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate({}) if model is not None else _no_options()()
    except ValidationError as exc:
        first = exc.errors(include_input=False)[0]
        key = ".".join(("plugins.options", plugin, *map(str, first["loc"])))
        raise SettingsError(f"a plugin's options don't fit: {first['msg']}", key=key, owner=str(owner)) from exc


@functools.cache
def _no_options() -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    return create_model("NoOptions", __config__=ConfigDict(frozen=True, extra="forbid"))
