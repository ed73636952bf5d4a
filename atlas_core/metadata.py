"""What one distribution's metadata says about its plugins.

Source: "Entry points specification" and "Core metadata specifications", packaging.python.org, 2025.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from atlas_core.names import same_name
from atlas_core.owner import Owner

__all__ = [
    "GROUP",
    "OFFERS_GROUP",
    "InstalledPlugin",
    "has_entry_points",
    "is_editable",
    "pairs_of",
    "plugins_of",
    "read_folder",
]

GROUP = "atlas"
"""The entry-point group whose entries are plugins: `name = module` or `name = module:attribute`."""

OFFERS_GROUP = "atlas.offers"
"""The group in which a distribution may declare what it offers: `tool.word_count = module of the plugin`."""

_REFERENCE = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attr>[\w.]+)\s*)?(?:\[.*\]\s*)?")
_BODY = re.compile(rb"\r?\n\r?\n")
_FIELD = re.compile(r"^(Name|Version|Requires-Dist):(.*)$", re.MULTILINE | re.IGNORECASE)
_ENTRY_POINTS = f"{os.sep}entry_points.txt"
_BLOCK = 1 << 16
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """A plugin as its distribution's metadata describes it.

    Attributes:
        name: The entry point's name, which settings use.
        distribution: The distribution that declares it, as it spells itself.
        version: That distribution's version, or "" if its metadata gives none.
        target: What will be imported: `module`, or `module:attribute`.
        offers: What the distribution declares that it offers, such as `tool.word_count`, sorted; may be empty.
        requirements: What it requires, as its metadata spells it.
        location: The metadata folder, or what stands for it where there is none.
        editable: Whether it was installed from a working tree.
    """

    name: str
    distribution: str
    version: str
    target: str
    offers: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    location: str = ""
    editable: bool = False

    @property
    def owner(self) -> Owner:
        """Who supplies what it offers."""
        return Owner(self.name, self.distribution, self.version)

    @property
    def requires(self) -> frozenset[str]:
        """The distributions that it requires without an extra, under the form in which names compare."""
        plain = (r for r in self.requirements if not re.search(r"\bextra\s*==", r.partition(";")[2]))
        return frozenset(same_name(match[0]) for match in map(_REQUIREMENT.match, plain) if match)

    @property
    def module(self) -> str:
        """The module that will be imported."""
        return self.target.partition(":")[0]

    @property
    def entry_point(self) -> str:
        """The entry point, as the metadata spells it."""
        return f"{self.name} = {self.target}"

    def __str__(self) -> str:
        return f"{self.name}@{self.distribution}"


def has_entry_points(place: str) -> bool:
    """Tell whether a metadata folder has entry points; most have none, and to ask costs half of failing to open."""
    return os.access(place + _ENTRY_POINTS, os.F_OK)


def read_folder(place: str, problems: list[str]) -> list[InstalledPlugin]:
    """Return the plugins of a metadata folder.

    Args:
        place: The `*.dist-info` or `*.egg-info` folder.
        problems: Takes one sentence for each thing that can't be read.
    """
    path = place + _ENTRY_POINTS
    raw = _read(path, problems)
    if raw is None or b"[atlas]" not in raw:
        return []
    text = _decode(raw, path, problems)
    header = _header(place, problems)
    if "name" not in header or "version" not in header:
        name, _, version = os.path.basename(place).rpartition(".")[0].partition("-")
        header = {"name": [name], "version": [version.partition("-")[0]], **header}
    return plugins_of(
        pairs_of(text, place, problems),
        distribution=header["name"][0],
        version=header["version"][0],
        requirements=tuple(header.get("requires-dist", ())),
        location=place,
        editable=_is_editable(place),
        problems=problems,
    )


def _read(path: str, problems: list[str]) -> bytes | None:
    """Return a file's bytes; None if it is not there, or, noting why, if it can't be read."""
    try:
        file = os.open(path, os.O_RDONLY)  # half of what `open` costs
        try:
            raw = os.read(file, _BLOCK)
            while len(raw) % _BLOCK == 0 and (more := os.read(file, _BLOCK)):
                raw += more
            return raw
        finally:
            os.close(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        problems.append(f"{path} can't be read: {exc.strerror}")
        return None


def _decode(raw: bytes, place: str, problems: list[str]) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        problems.append(f"{place} is not UTF-8")
        return raw.decode(errors="replace")


def pairs_of(text: str, place: str, problems: list[str]) -> list[tuple[str, str, str]]:
    """Return (group, name, `module` or `module:attribute`) of our groups; a broken line costs that line only."""
    pairs, group = [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif line and not line.startswith("#") and group in (GROUP, OFFERS_GROUP):
            name, equals, value = map(str.strip, line.partition("="))
            match = _REFERENCE.fullmatch(value)
            if name and equals and match:
                pairs.append((group, name, ":".join(filter(None, match.groups()))))
            else:
                problems.append(f"{place}/entry_points.txt has {line!r} in [{group}], expected 'name = module'")
    return pairs


def _header(place: str, problems: list[str]) -> dict[str, list[str]]:
    """Return what matters of the metadata file's fields; `email`, which reads them all, costs 10 ms to import."""
    for name in ("METADATA", "PKG-INFO"):
        before = len(problems)
        raw = _read(f"{place}{os.sep}{name}", problems)
        if raw is not None or len(problems) > before:
            break
    else:
        problems.append(f"{place} has no METADATA; install the distribution again")
    head = _BODY.split(raw or b"", maxsplit=1)[0]
    fields: dict[str, list[str]] = {}
    for field, value in _FIELD.findall(_decode(head, f"{place}{os.sep}{name}", problems)):
        fields.setdefault(field.lower(), []).append(value.strip())
    return fields


def _is_editable(place: str) -> bool:
    if place.lower().endswith("egg-info"):  # setuptools' own way; a project folder is its mark
        project = os.path.dirname(place)
        return any(os.path.isfile(os.path.join(project, f)) for f in ("pyproject.toml", "setup.py"))
    path = f"{place}{os.sep}direct_url.json"
    return os.access(path, os.F_OK) and is_editable(_read(path, []) or "")


def is_editable(raw: bytes | str) -> bool:
    """Tell whether the text of a `direct_url.json` says that the distribution was installed from a working tree."""
    if not raw:
        return False
    import json  # only a distribution that came from a file or a repository has the record

    try:
        record = json.loads(raw)
    except ValueError:
        return False
    info = record.get("dir_info") if isinstance(record, dict) else None
    return isinstance(info, dict) and info.get("editable") is True


def plugins_of(
    pairs: Iterable[tuple[str, str, str]],
    *,
    distribution: str,
    version: str,
    requirements: tuple[str, ...],
    location: str,
    editable: bool,
    problems: list[str],
) -> list[InstalledPlugin]:
    """Return one value for each entry of group `atlas`, with the offers that name its module."""
    pairs = list(pairs)
    targets = dict.fromkeys((name, target) for group, name, target in pairs if group == GROUP)
    offers = [(name, target) for group, name, target in pairs if group == OFFERS_GROUP]
    plugins = [
        InstalledPlugin(
            name=name,
            distribution=distribution,
            version=version,
            target=target,
            offers=tuple(sorted({offer for offer, value in offers if _module(value) == _module(target)})),
            requirements=requirements,
            location=location,
            editable=editable,
        )
        for name, target in targets
    ]
    modules = {p.module for p in plugins}
    problems.extend(
        f"{location} declares the offer {offer!r} for module {value!r}, which is none of its plugins"
        for offer, value in offers
        if _module(value) not in modules
    )
    return plugins


def _module(target: str) -> str:
    return target.partition(":")[0]
