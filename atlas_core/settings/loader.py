"""Loading settings: packaged defaults, then files, then variables."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean, find_name, same_name
from atlas_core.settings.frozen import FrozenDict, freeze, thaw
from atlas_core.settings.layers import BUILT_IN, ROOT, Layers, values
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.models import AtlasSettings
from atlas_core.settings.toml_file import TomlFile, read_toml
from atlas_core.settings.variables import PREFIX, Assignment, Variable, read_variables, resolve
from atlas_core.settings.violations import join_errors, raise_all, violations

if TYPE_CHECKING:
    from atlas_core.settings.toml_lines import KeyPath

__all__ = ["FILE_NAME", "load_settings", "settings_from_mapping"]

FILE_NAME = "settings.toml"
"""The settings file that is looked for in the current folder."""
_DEFAULT, _GLOBAL = "default", "global"
_DEFAULTS_FILE = Path(__file__).with_name("defaults.toml")


def load_settings(
    path: str | Path | None = None,
    *,
    env: str | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> LoadedSettings:
    """Load the settings of one environment.

    Lowest first: the packaged defaults; the settings file, and the file beside it whose name has `.local` before its
    ending, in each of them `[default]`, the chosen environment and `[global]`; variables. Tables merge, everything
    else replaces, and a list that begins with `"@merge"` adds to the one below.

    Args:
        path: The settings file, which must exist; None for `settings.toml` in the folder, which may be missing.
        env: The environment, or several with commas between them; None for the variable `ATLAS_ENV`, and without
            that for `default` alone.
        environ: The variables; None for those of the process.
        folder: The folder to look in; None for the current one.

    Raises:
        SettingsError: A file can't be read, the environment is defined nowhere, or keys or values are wrong; all
            wrong values are told at once.
    """
    environ = os.environ if environ is None else environ
    files, base_dir = _read_files(path, Path.cwd() if folder is None else Path(folder))
    environments = _environments(files)
    chosen = _chosen(env, environ, environments, files)
    layers = Layers()
    _add_defaults(layers)
    for file in files:
        for environment in [_DEFAULT, *chosen, _GLOBAL]:
            _add_environment(layers, file, environment)
    warnings = _add_variables(layers, read_variables(environ))
    return _loaded(
        layers,
        environment=", ".join(chosen) or _DEFAULT,
        environments=environments,
        files=tuple(file.path for file in files),
        base_dir=base_dir,
        warnings=tuple(warnings),
    )


def settings_from_mapping(mapping: Mapping[str, Any], *, defaults: bool = True) -> LoadedSettings:
    """Make settings from a program's own tables; reads no file and no variable.

    Args:
        mapping: `{"plugins": {...}, "ai": {...}}`, without the level of environments; it is not changed.
        defaults: Whether the packaged defaults lie below it.

    Raises:
        SettingsError: Keys or values are wrong.
    """
    layers = Layers(use_dynaconf=False)
    if defaults:
        _add_defaults(layers)
    layers.add(thaw(mapping), name="the program", environment=_DEFAULT, origin=lambda _path: "the program")
    return _loaded(layers, base_dir=Path.cwd())


def _loaded(layers: Layers, **facts: Any) -> LoadedSettings:
    tree, tables = freeze(layers.tree), FrozenDict(layers.tables)
    draft = LoadedSettings(settings=AtlasSettings(), tree=tree, tables=tables, **facts)
    data = thaw(values(tree))
    found = []
    try:
        settings = AtlasSettings.model_validate(data)
    except ValidationError as exc:
        found = violations(exc, data, ROOT)
    # Outside the handler, so that nothing chains pydantic's error, which holds the values themselves.
    raise_all(found, draft.origin_of)
    return LoadedSettings(settings=settings, tree=tree, tables=tables, **facts)


def _add_defaults(layers: Layers) -> None:
    file = read_toml(_DEFAULTS_FILE, label=BUILT_IN)
    assert file is not None  # noqa: S101  # for the type checker; it must exist
    layers.add(file.tables[_DEFAULT], name=BUILT_IN, environment=_DEFAULT, origin=lambda _path: BUILT_IN)


def _read_files(path: str | Path | None, folder: Path) -> tuple[list[TomlFile], Path]:
    main = folder / (FILE_NAME if path is None else path)
    local = main.with_name(f"{main.stem}.local{main.suffix}")
    shown = FILE_NAME if path is None else str(path)
    label = str(Path(shown).with_name(local.name))
    found = [read_toml(main, label=shown, must_exist=path is not None), read_toml(local, label=label, must_exist=False)]
    files = [file for file in found if file is not None]
    join_errors([error for file in files for error in _wrong_tops(file)])
    return files, main.parent.absolute()


def _wrong_tops(file: TomlFile) -> Iterator[SettingsError]:
    """Yield what is wrong at the two top levels of a file: environments, and the sections in them."""
    seen: dict[str, str] = {}
    for name, table in file.tables.items():
        source = file.origin((name,))
        if name in ROOT.known_keys() or not isinstance(table, Mapping):
            below = f"[{_DEFAULT}.{name}]" if name in ROOT.known_keys() else f"[{_DEFAULT}]"
            yield SettingsError(
                f"{name!r} stands at the top, where environments stand",
                source=source,
                remedy=f"put it below an environment, such as {below}",
            )
            continue
        if name != _DEFAULT and difflib.SequenceMatcher(None, name.lower(), _DEFAULT).ratio() > 0.8:
            yield SettingsError(
                f"environment {name!r} looks like a misspelt {_DEFAULT!r}",
                source=source,
                remedy=f"call it {_DEFAULT!r}, or choose a name less like it",
            )
        if same_name(name) in seen:
            yield SettingsError(
                f"environment {name!r} is also spelled {seen[same_name(name)]!r}", source=source, remedy="keep one"
            )
        seen[same_name(name)] = name
        yield from _wrong_sections(file, name, table)


def _wrong_sections(file: TomlFile, environment: str, table: Mapping[str, Any]) -> Iterator[SettingsError]:
    for key, value in table.items():
        source = file.origin((environment, key))
        if key not in ROOT.known_keys():
            remedy = did_you_mean(key, ROOT.known_keys(), many="known sections")
            yield SettingsError(f"unknown section {key!r}", key=f"{environment}.{key}", source=source, remedy=remedy)
        elif not isinstance(value, Mapping):
            problem = f"section {key!r} is no table"
            yield SettingsError(problem, key=f"{environment}.{key}", source=source, remedy="write tables below it")


def _environments(files: list[TomlFile]) -> tuple[str, ...]:
    names: dict[str, str] = {same_name(_DEFAULT): _DEFAULT}
    for file in files:
        for name in file.tables:
            names.setdefault(same_name(name), name)
    names.pop(_GLOBAL, None)
    return tuple(sorted(names.values()))


def _chosen(env: str | None, environ: Mapping[str, str], known: tuple[str, ...], files: list[TomlFile]) -> list[str]:
    """Return the chosen environments as the files spell them, without `default`, which always counts."""
    source = None if env is not None else f"variable {PREFIX}ENV"
    text = environ.get(f"{PREFIX}ENV", "") if env is None else env
    chosen: list[str] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        found = find_name(name, dict.fromkeys(known))
        if found is None:
            where = " or ".join(file.label for file in files)
            problem = f"environment {name!r} is not defined" + (
                f" in {where}" if files else ": no settings file exists"
            )
            remedy = (
                did_you_mean(name, known, many="environments") if files else f"write [{name}] tables, or choose none"
            )
            raise SettingsError(problem, source=source, remedy=remedy)
        if found not in {_DEFAULT, *chosen}:
            chosen.append(found)
    return chosen


def _add_environment(layers: Layers, file: TomlFile, environment: str) -> None:
    name = find_name(environment, file.tables)
    if name is None:
        return

    def origin(path: KeyPath) -> str:
        return file.origin((name, *path))

    layers.add(file.tables[name], name=file.label, environment=environment, origin=origin)


def _add_variables(layers: Layers, variables: list[Variable]) -> list[str]:
    """Lay variables over the rest, outer tables first; return a warning for each that another one overrides."""
    warnings, errors = [], []
    taken: dict[tuple[str, ...], str] = {}
    for variable in variables:
        try:
            assignment = resolve(variable, layers.tree, variables)
        except SettingsError as exc:
            errors.append(exc)
            continue
        winner = taken.setdefault(assignment.path, variable.name)
        if winner != variable.name:
            warnings.append(
                f"variables {winner} and {variable.name} set the same key; {winner} counts, since capitals come first"
            )
            continue
        _add_variable(layers, variable, assignment)
    join_errors(errors)
    return warnings


def _add_variable(layers: Layers, variable: Variable, assignment: Assignment) -> None:
    origin = f"variable {variable.name}"
    layers.add(assignment.table, name=variable.name, environment=_GLOBAL, origin=lambda _path: origin)
