"""Which plugins are installed, read from metadata alone: nothing of a plugin is imported.

A plain scan of the `*.dist-info` and `*.egg-info` folders on `sys.path`, by the standard library only, costs a
tenth of `importlib.metadata.entry_points()`; an index keyed on folder times would be faster still, and stale
during an install. What is no folder (a zip file on `sys.path`, a finder of its own on `sys.meta_path`) answers
through `importlib_metadata`, which is imported only then, and nowhere else in Atlas: its classes are not the
standard library's.

Source: "Entry points specification" and "Recording installed projects", packaging.python.org, 2025.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from atlas_core.errors import PluginConflictError, SettingsError
from atlas_core.metadata import InstalledPlugin, has_entry_points, is_editable, pairs_of, plugins_of, read_folder
from atlas_core.names import did_you_mean, same_name

if TYPE_CHECKING:
    from importlib_metadata import Distribution, DistributionFinder

__all__ = ["Discovery", "InstalledPlugin", "conflict", "scan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a scan found.

    Attributes:
        plugins: In name order, whatever order the file system lists folders in.
        problems: One sentence for each piece of metadata that can't be read; nothing else is affected by it.
    """

    plugins: tuple[InstalledPlugin, ...] = ()
    problems: tuple[str, ...] = ()

    def named(self, name: str) -> tuple[InstalledPlugin, ...]:
        """Return the plugins that a name in settings means, `name` or `name@distribution`; names compare loosely."""
        wanted, _, distribution = name.partition("@")
        return tuple(
            p
            for p in self.plugins
            if same_name(p.name) == same_name(wanted)
            and (not distribution or same_name(p.distribution) == same_name(distribution))
        )

    def resolve(self, name: str) -> InstalledPlugin:
        """Return the one plugin that a name in settings means.

        Raises:
            SettingsError: None is installed under that name.
            PluginConflictError: Several are.
        """
        found = self.named(name)
        if not found:
            raise SettingsError(f"plugin {name!r} is not installed", remedy=self.suggestion(name))
        if len(found) > 1:
            raise conflict(found)
        return found[0]

    def suggestion(self, name: str) -> str:
        """Return a remedy for the name of a plugin that is not installed."""
        wanted, _, distribution = name.partition("@")
        others = self.named(wanted)
        if distribution and others:
            return "installed under that name: " + ", ".join(repr(str(p)) for p in others)
        if not self.plugins:
            return "no plugin is installed; install the distribution that offers it, or take the name out"
        return did_you_mean(wanted, (p.name for p in self.plugins), what="installed")


def conflict(plugins: Sequence[InstalledPlugin]) -> PluginConflictError:
    """Return the error for several plugins of one name."""
    ordered = sorted(plugins, key=_order)
    name = ordered[0].name
    owners = [f"{p.distribution} {p.version}".strip() for p in ordered]
    if len({same_name(p.distribution) for p in ordered}) > 1:
        choices = " or ".join(sorted({repr(str(p)) for p in ordered}))
        remedy = f"write {choices} instead of {name!r}, or uninstall one"
    else:
        targets = " and ".join(repr(p.target) for p in ordered)
        remedy = f"one distribution declares it as {targets}: update it, or tell its author"
    return PluginConflictError(
        f"plugin {name!r} is offered by {' and '.join(owners)}", name=name, owners=owners, plugin=name, remedy=remedy
    )


def scan(path: Sequence[str] | None = None) -> Discovery:
    """Read the metadata of what is installed; reads the file system anew each time, and imports no plugin.

    Of several distributions of one name the first on the path counts, as it does for Python's imports; one without
    a metadata file, which an interrupted uninstall leaves behind, counts only where there is no other.

    Args:
        path: Folders and zip files to read; None for `sys.path` and the finders on `sys.meta_path`.
    """
    problems: list[str] = []
    first: dict[str, _Candidate] = {}
    others: dict[str, list[_Candidate]] = {}
    for candidates in _candidates(path, problems):
        for candidate in candidates:
            if first.setdefault(candidate[0], candidate) is not candidate:
                others.setdefault(candidate[0], []).append(candidate)
    for key, rivals in others.items():
        first[key] = _winner([first[key], *rivals], problems)
    plugins: list[InstalledPlugin] = []
    for _, place, _, distribution in first.values():
        if distribution is not None:
            plugins += _read_foreign(distribution, place, problems)
        elif has_entry_points(place):
            plugins += read_folder(place, problems)
    return Discovery(plugins=tuple(sorted(plugins, key=_order)), problems=tuple(sorted(set(problems))))


def _order(plugin: InstalledPlugin) -> tuple[str, ...]:
    return (same_name(plugin.name), same_name(plugin.distribution), plugin.name, plugin.target, plugin.location)


_Candidate: TypeAlias = "tuple[str, str, str, Distribution | None]"
# A distribution's metadata, unread: its name, under the form in which names compare; its metadata folder, or the
# finder or archive that answers for it; the entry of the path that holds it; and what a finder or archive answered
# with. A plain tuple, as hundreds are made at start-up.


def _winner(candidates: list[_Candidate], problems: list[str]) -> _Candidate:
    whole = [c for c in candidates if c[3] is not None or _has_metadata(c[1])] or candidates
    folder = whole[0][2]
    rivals = sorted((c for c in whole if c[2] == folder), key=lambda c: c[1])
    if len(rivals) == 1:
        return rivals[0]
    # Two in one folder come from a broken upgrade. The listing's order would differ from machine to machine.
    newest = max(rivals, key=lambda c: (_modified(c[1]), c[1]))
    if read_folder(newest[1], []):
        names = ", ".join(os.path.basename(place) for _, place, _, _ in rivals)
        problems.append(f"{folder} holds several of one distribution: {names}; install it again")
    return newest


def _has_metadata(place: str) -> bool:
    return any(os.path.isfile(os.path.join(place, file)) for file in ("METADATA", "PKG-INFO"))


def _modified(place: str) -> float:
    try:
        return os.stat(place).st_mtime
    except OSError:
        return 0.0


def _candidates(path: Sequence[str] | None, problems: list[str]) -> Iterator[list[_Candidate]]:
    before, after = _foreign_finders() if path is None else ([], [])
    for finder in before:
        yield _of_finder(finder, problems)
    seen: set[tuple[int, int]] = set()
    for folder in sys.path if path is None else path:
        try:
            status = os.stat(folder or ".")
        except (OSError, ValueError):  # not there, or no path at all, such as an editable install's path hook
            continue
        if (status.st_dev, status.st_ino) in seen:  # listed twice, or once through a link
            continue
        seen.add((status.st_dev, status.st_ino))
        yield _in_folder(folder, problems) if stat.S_ISDIR(status.st_mode) else _in_archive(folder, problems)
    for finder in after:
        yield _of_finder(finder, problems)


def _in_folder(folder: str, problems: list[str]) -> list[_Candidate]:
    try:
        children = os.listdir(folder or ".")
    except OSError as exc:
        problems.append(f"{folder!r} on sys.path can't be read: {exc.strerror}")
        return []
    base = os.path.join(folder, "")
    egg = os.path.basename(folder).lower()
    found: list[_Candidate] = []
    for child in children:  # hundreds: what is done for each is seen in the start-up time
        if "-" not in child:
            continue
        low = child.lower()
        if low.endswith(".dist-info"):
            name = low[:-10].partition("-")[0]
        elif low.endswith(".egg-info"):
            name = low[:-9].partition("-")[0]
        elif low == "egg-info" and egg.endswith(".egg"):
            name = egg.partition("-")[0]
        else:
            continue
        found.append((same_name(name) if "." in name or "__" in name else name, base + child, folder, None))
    return found


def _foreign_finders() -> tuple[list[object], list[object]]:
    """Return the finders that answer for distributions, before and after the one for folders."""
    before: list[object] = []
    after: list[object] = []
    side = before
    for finder in sys.meta_path:
        if getattr(finder, "__module__", None) == "_frozen_importlib_external":
            side = after  # the standard library's; `importlib_metadata` puts one in its place, at the end
        elif hasattr(finder, "find_distributions") and type(finder).__module__ != "importlib_metadata":
            side.append(finder)
    return before, after


def _context(**options: object) -> DistributionFinder.Context:
    from importlib_metadata import DistributionFinder

    return DistributionFinder.Context(**options)  # type: ignore[no-untyped-call]  # its __init__ has no annotations


def _in_archive(folder: str, problems: list[str]) -> list[_Candidate]:
    from importlib_metadata import MetadataPathFinder

    return _foreign(lambda: MetadataPathFinder.find_distributions(_context(path=[folder])), folder, problems)


def _of_finder(finder: object, problems: list[str]) -> list[_Candidate]:
    find: Callable[[object], Iterable[Distribution]] = finder.find_distributions  # type: ignore[attr-defined]  # asked by its caller
    return _foreign(lambda: find(_context()), repr(finder), problems)


def _foreign(find: Callable[[], Iterable[Distribution]], source: str, problems: list[str]) -> list[_Candidate]:
    try:
        return [(same_name(str(d.metadata["Name"])), source, source, d) for d in find()]
    except Exception as exc:  # noqa: BLE001  # somebody's finder or a broken archive must not hide what else there is
        problems.append(f"{source} can't be read for distributions: {type(exc).__name__}: {exc}")
        return []


def _read_foreign(distribution: Distribution, source: str, problems: list[str]) -> list[InstalledPlugin]:
    try:
        fields: Mapping[str, str] = distribution.metadata
        text = distribution.read_text("entry_points.txt") or ""
        place = f"{source}: {fields['Name']}"
        return plugins_of(
            pairs_of(text, place, problems),
            distribution=str(fields["Name"]),
            version=str(fields["Version"] or ""),
            requirements=tuple(distribution.requires or ()),
            location=place,
            editable=is_editable(distribution.read_text("direct_url.json") or ""),
            problems=problems,
        )
    except Exception as exc:  # noqa: BLE001  # as above
        problems.append(f"{source} can't be read for {distribution!r}: {type(exc).__name__}: {exc}")
        return []
