"""Plugins for tests: distributions laid out on disk, as an installer leaves them, and small ones given directly."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from atlas_core.catalog import PluginRecord
from atlas_core.errors import AtlasError, PluginError
from atlas_core.markers import hookimpl
from atlas_core.plugins import PluginHost

TOOL = '''
from atlas_core.markers import hookimpl

def {name}(text: str) -> int:
    """Count something in a text."""
    return len(text)

@hookimpl
def atlas_tool_providers(options):
    return [{name}]
'''


def tool_plugin(name: str) -> str:
    """Return the source of a plugin module that offers one tool of that name."""
    return TOOL.format(name=name)


def lay_out(
    folder: Path,
    distribution: str,
    version: str = "1.0",
    *,
    plugins: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | None = None,
    offers: Mapping[str, str] | None = None,
    requires: Iterable[str] = (),
    scripts: Iterable[str] = (),
    egg: bool = False,
    direct_url: str | None = None,
) -> Path:
    """Write a distribution's metadata and modules into a folder, and return the metadata folder.

    Args:
        folder: What stands for `site-packages`.
        distribution: The name, as its author spells it.
        version: The version.
        plugins: Entry points of group `atlas`, name to target.
        modules: Module name to source; a dotted name is a module in a package.
        offers: Entry points of group `atlas.offers`, offer to module.
        requires: Requirements.
        scripts: Names of commands, a group that is not ours.
        egg: Whether to write setuptools' `*.egg-info` in place of a `*.dist-info`.
        direct_url: Text of the record that an installer leaves for what came from a folder.
    """
    stem = f"{distribution.replace('-', '_')}{'' if egg else '-' + version}"
    place = folder / f"{stem}.{'egg' if egg else 'dist'}-info"
    place.mkdir(parents=True, exist_ok=True)
    lines = [f"Metadata-Version: 2.4\nName: {distribution}\nVersion: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (place / ("PKG-INFO" if egg else "METADATA")).write_text(
        "\n".join(lines) + "\n\nName: not this one\n", encoding="utf-8"
    )
    groups = {"console_scripts": {s: f"{s}:main" for s in scripts}, "atlas": plugins, "atlas.offers": offers}
    text = "\n".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
        if entries
    )
    if text:
        (place / "entry_points.txt").write_text(text, encoding="utf-8")
    if direct_url is not None:
        (place / "direct_url.json").write_text(direct_url, encoding="utf-8")
    for name, source in (modules or {}).items():
        write_module(folder, name, source)
    return place


def write_module(folder: Path, name: str, source: str) -> Path:
    """Write a module, and the packages above it, into a folder."""
    *packages, module = name.split(".")
    for depth in range(len(packages)):
        package = folder.joinpath(*packages[: depth + 1])
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    path = folder.joinpath(*packages, f"{module}.py")
    path.write_text(dedent(source), encoding="utf-8")
    return path


def take_away(folder: Path, distribution: str) -> None:
    """Remove a distribution's metadata, as an uninstall does."""
    for place in folder.glob(f"{distribution.replace('-', '_')}*-info"):
        shutil.rmtree(place)


@contextmanager
def importable(folder: Path) -> Iterator[Path]:
    """Put a folder first on `sys.path`; afterwards no module that came from it is left."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin is not None and Path(origin).is_relative_to(folder):
                del sys.modules[name]


def word_count(text: str) -> int:
    """Count the words in a text."""
    return len(text.split())


class Plain:
    """A plugin that offers one tool, `word_count`."""

    @hookimpl
    def atlas_tool_providers(self) -> list[Callable[..., object]]:
        return [word_count]


def load_one(plugin: object, **options: Any) -> PluginRecord:
    """Load a plugin that is given directly."""
    (record,) = PluginHost(plugins=[plugin], **options).load_given()
    return record


def failure(plugin: object, kind: type[AtlasError] = PluginError, **options: Any) -> str:
    """Return the text of a given plugin's failure, which must be of a class."""
    record = load_one(plugin, **options)
    assert (record.status, record.offers) == ("failed", None)
    assert isinstance(record.error, kind), record.error
    return str(record.error)


def tool_names(*records: PluginRecord) -> list[str]:
    """Return the names of the tools that plugins offer."""
    return [offer.name for record in records if record.offers is not None for offer in record.offers.tools]


def plugin_with(name: str, function: Any, **marks: Any) -> object:
    """Return a plugin whose one hook is that function."""
    marked: Any = hookimpl
    module = ModuleType("given")
    setattr(module, name, marked(**marks)(function))
    return module
