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

__all__ = ["GROUP", "OFFERS_GROUP", "InstalledPlugin", "is_editable", "pairs_of", "plugins_of", "read_folder"]

GROUP = "atlas"
"""The entry-point group whose entries are plugins: `name = module` or `name = module:attribute`."""

OFFERS_GROUP = "atlas.offers"
"""The group in which a distribution may declare what it offers: `tool.word_count = module of the plugin`."""

_REFERENCE = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attr>[\w.]+)\s*)?(?:\[.*\]\s*)?")
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
        requires: Distributions that it requires without an extra, under the form in which names compare, sorted.
        location: The metadata folder, or what stands for it where there is none.
        editable: Whether it was installed from a working tree.
    """

    name: str
    distribution: str
    version: str
    target: str
    offers: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    location: str = ""
    editable: bool = False

    @property
    def owner(self) -> Owner:
        """Who supplies what it offers."""
        return Owner(self.name, self.distribution, self.version)

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


def read_folder(place: str, name: str, version: str, problems: list[str]) -> list[InstalledPlugin]:
    """Return the plugins of a metadata folder.

    Args:
        place: The `*.dist-info` or `*.egg-info` folder.
        name: The distribution's name, for the case that the metadata file has none.
        version: Its version, likewise.
        problems: Takes one sentence for each thing that can't be read.
    """
    try:
        with open(os.path.join(place, "entry_points.txt"), "rb") as file:
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as exc:
        problems.append(f"{place}/entry_points.txt can't be read: {exc.strerror}")
        return []
    if b"[atlas]" not in raw:
        return []
    text = _decode(raw, f"{place}/entry_points.txt", problems)
    header = _header(place, problems)
    return plugins_of(
        pairs_of(text, place, problems),
        distribution=header.get("name", [name])[0],
        version=header.get("version", [version])[0],
        requires=header.get("requires-dist", []),
        location=place,
        editable=_is_editable(place),
        problems=problems,
    )


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
    """Return the fields of the metadata file; `email`, which reads it in full, costs 10 ms to import."""
    for name in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(place, name), "rb") as file:
                text = _decode(file.read(), f"{place}/{name}", problems)
            break
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as exc:
            problems.append(f"{place}/{name} can't be read: {exc.strerror}")
            return {}
    else:
        problems.append(f"{place} has no METADATA; install the distribution again")
        return {}
    fields: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        field, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            fields.setdefault(field.lower(), []).append(value.strip())
    return fields


def _is_editable(place: str) -> bool:
    if place.lower().endswith("egg-info"):  # setuptools' own way; a project folder is its mark
        project = os.path.dirname(place)
        return any(os.path.isfile(os.path.join(project, f)) for f in ("pyproject.toml", "setup.py"))
    try:
        with open(os.path.join(place, "direct_url.json"), "rb") as file:
            raw = file.read()
    except OSError:
        return False
    return is_editable(raw)


def is_editable(raw: bytes | str) -> bool:
    """Tell whether the text of a `direct_url.json` says that the distribution was installed from a working tree."""
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
    requires: Iterable[str],
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
            requires=_required(requires),
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


def _required(requirements: Iterable[str]) -> tuple[str, ...]:
    names = set()
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and not re.search(r"\bextra\s*==", requirement.partition(";")[2]):
            names.add(same_name(match[0]))
    return tuple(sorted(names))
