"""Laying one source of settings over another: tables merge, everything else replaces, `@merge` joins lists.

Dynaconf keeps the layers and merges the tables. Each value lies in it as a `Setting`, an object that dynaconf does
not look into, because on bare values it would act on its own (measured on 3.3.5): a text that begins with `@format`
or `@jinja` is evaluated, `dynaconf_merge` in a list joins it with the one below, and with merging on every list is
joined, which widens an allow-list that was meant to be narrowed. It reads no file, no variable and no hook here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from atlas_core.errors import SettingsError
from atlas_core.settings.frozen import FrozenDict, freeze
from atlas_core.settings.models import AtlasSettings
from atlas_core.settings.shapes import Shape, key_for, shape_of, split_merge
from atlas_core.settings.toml_lines import dotted

if TYPE_CHECKING:
    from dynaconf import Dynaconf

    from atlas_core.settings.toml_lines import KeyPath

__all__ = ["BUILT_IN", "ROOT", "Layers", "Setting", "Tree", "leaves", "merge_tables", "node_at", "values"]

BUILT_IN = "built-in default"
"""The origin of what no file and no variable sets."""
ROOT = shape_of(AtlasSettings)
"""What the kernel expects at the top."""
Tree: TypeAlias = "dict[str, Any]"
"""Nested tables whose leaves are `Setting` objects."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One value and where it came from.

    Attributes:
        value: The value, frozen.
        origin: `settings.toml:12`, `variable ATLAS_...` or `built-in default`.
        text: A variable's text whose kind only the value's owner knows; None otherwise.
        items: The origins of the items of a list, by their place.
    """

    value: Any = field(repr=False)
    origin: str
    text: str | None = field(default=None, repr=False)
    items: Mapping[KeyPath, str] = field(default_factory=FrozenDict, repr=False)


def leaves(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Setting]]:
    """Yield path and setting of every value, in the order of their names."""
    for key in sorted(tree):
        node = tree[key]
        if isinstance(node, Setting):
            yield (*path, key), node
        else:
            yield from leaves(node, (*path, key))


def values(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bare values of a tree, in nested dicts."""
    return {key: node.value if isinstance(node, Setting) else values(node) for key, node in tree.items()}


def node_at(tree: Mapping[str, Any], path: KeyPath) -> Any:
    """Return the table or setting at a path, or None."""
    node: Any = tree
    for key in path:
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node


def merge_tables(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Tree:
    """Lay one tree over another as dynaconf does here; for programs that hand over a mapping and need no dynaconf."""
    merged = dict(lower)
    for key, node in upper.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(node, Mapping)
        merged[key] = merge_tables(below, node) if both else node  # type: ignore[arg-type]  # `both` says so
    return merged


class Layers:
    """The layers of one load, lowest first.

    Attributes:
        tree: What they amount to so far.
        tables: Where each table was last written, by path.
    """

    def __init__(self, *, use_dynaconf: bool = True) -> None:
        self.tree: Tree = {}
        self.tables: dict[KeyPath, str] = {}
        self._use_dynaconf = use_dynaconf
        self._store: Dynaconf | None = None

    def add(self, table: Mapping[str, Any], *, name: str, environment: str, origin: Callable[[KeyPath], str]) -> None:
        """Lay a table over what is there.

        Args:
            table: Tables and values; a value may be a `Setting` already.
            name: The source's name, for dynaconf's own record.
            environment: The environment that the table stands under.
            origin: Tells where a path of the table was written.

        Raises:
            SettingsError: Two keys of one table differ only in case, or a key is one of dynaconf's own.
        """
        layer = _Layer(origin, self.tables).tree(table, _Place(below=self.tree))
        if not self.tree:
            self.tree = layer
        elif self._use_dynaconf:
            self._add_to_store(layer, name, environment)
        else:
            self.tree = merge_tables(self.tree, layer)

    def _add_to_store(self, layer: Tree, name: str, environment: str) -> None:
        from dynaconf.loaders.base import SourceMetadata

        if self._store is None:
            self._store = _new_store()
            self._put(self.tree, SourceMetadata("atlas", BUILT_IN, "default"))
        self._put(layer, SourceMetadata("atlas", name, environment))
        # dynaconf keeps the top level in capitals.
        self.tree = {key.lower(): node for key, node in self._store.as_dict().items() if key in _SECTIONS}

    def _put(self, layer: Tree, source: object) -> None:
        assert self._store is not None  # noqa: S101  # for the type checker
        self._store.update(layer, loader_identifier=source, merge=True, dotted_lookup=False, validate=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A table of a layer: its path as written and as spelled, what lies below it, and what is expected."""

    written: KeyPath = ()
    path: KeyPath = ()
    below: object = None
    shape: Shape = ROOT


@dataclass(frozen=True, slots=True)
class _Layer:
    """Turns tables into a tree whose keys are spelled as those below, and notes where each table was written."""

    origin: Callable[[KeyPath], str]
    tables: dict[KeyPath, str]

    def tree(self, table: Mapping[str, Any], place: _Place) -> Tree:
        self.tables[place.path] = self.origin(place.written)
        below = place.below if isinstance(place.below, Mapping) else {}
        layer: Tree = {}
        for key, value in table.items():
            spelled = _spelled(key, below, place.shape)
            self._check(key, spelled, layer, place)
            under, written = below.get(spelled), (*place.written, key)
            if isinstance(value, Mapping):
                path, shape = (*place.path, spelled), place.shape.child(spelled)
                layer[spelled] = self.tree(value, _Place(written=written, path=path, below=under, shape=shape))
            else:
                setting = value if isinstance(value, Setting) else self._setting(value, written)
                layer[spelled] = _joined(setting, under)
        return layer

    def _check(self, key: str, spelled: str, layer: Tree, place: _Place) -> None:
        same = [other for other in layer if _plain(other) == _plain(spelled)]
        if place.shape.item is not None:
            same += key_for(spelled, layer)
        if same:
            raise SettingsError(
                f"{key!r} stands twice in one table, in two spellings",
                key=dotted((*place.path, spelled)),
                source=self.origin((*place.written, key)),
                remedy="keep one of them; case does not tell keys apart, nor does '-' or '_' in names",
            )
        if key.lower().lstrip("_").startswith("dynaconf_"):
            raise SettingsError(
                f"{key!r} is a command to dynaconf, not a setting",
                key=dotted((*place.path, key)),
                source=self.origin((*place.written, key)),
                remedy='remove it; tables merge by themselves, and ["@merge", ...] joins lists',
            )

    def _setting(self, value: object, written: KeyPath) -> Setting:
        places = range(len(value)) if isinstance(value, list | tuple) else ()
        items = FrozenDict({(n,): self.origin((*written, n)) for n in places})
        return Setting(freeze(value), self.origin(written), items=items)


_SECTIONS = {key.upper() for key in ROOT.known_keys()}


def _new_store() -> Dynaconf:
    from dynaconf import Dynaconf

    # Without loaders it reads neither files nor variables and runs no hook, whatever the variables named
    # *_FOR_DYNACONF say; the empty `envvar` is the name of the variable that would name a settings file.
    return Dynaconf(
        environments=True,
        settings_files=[],
        load_dotenv=False,
        envvar="",
        dynaconf_skip_loaders=True,
        dynaconf_skip_validators=True,
    )


def _plain(key: str) -> str:
    # Keys that dynaconf takes for one.
    return key.lower().replace(" ", "_")


def _spelled(key: str, below: Mapping[str, Any], shape: Shape) -> str:
    """Return a key as the layers below spell it: names in any spelling, other keys in any case."""
    if key in below or key in shape.known_keys():
        return key
    if shape.item is not None:
        return next(iter(key_for(key, below)), key)
    return next((other for other in below if _plain(other) == _plain(key)), key)


def _joined(setting: Setting, below: object) -> Setting:
    """Carry out `@merge`: the list below, then what is new."""
    new, merge = split_merge(setting.value)
    if not merge:
        return setting
    lower: Any = below.value if isinstance(below, Setting) else ()
    old = lower if isinstance(lower, tuple) else (lower,)
    added = [item for item in new if item not in old]  # type: ignore[attr-defined]  # split_merge found a list
    return Setting((*old, *added), setting.origin)
