"""Discovery reads metadata, all of it, and nothing but."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from atlas_core.discovery import Discovery, scan
from atlas_core.errors import PluginConflictError, SettingsError
from atlas_core.metadata import InstalledPlugin
from atlas_core.names import same_name
from tests.plugin_factory import lay_out, take_away

EDITABLE = '{"url": "file:///somewhere", "dir_info": {"editable": true}}'


def names(*path: Path) -> list[str]:
    """Scan folders and return the plugins found, each with its distribution."""
    return [str(plugin) for plugin in scan([str(p) for p in path]).plugins]


def test_a_plugin_is_described_by_its_metadata(tmp_path: Path) -> None:
    """Name, distribution, version, target, offers, requirements and place come from the metadata folder."""
    place = lay_out(
        tmp_path,
        "Atlas-Web.Tools",
        "2.1rc1",
        plugins={"web": "atlas_web.plugin:hooks"},
        offers={"tool.send": "atlas_web.plugin", "llm.webby": "atlas_web.plugin"},
        requires=["atlas-kernel>=0.1", "httpx[http2] >=0.28 ; python_version > '3'", 'rich>=1; extra == "pretty"'],
        scripts=["webby"],
    )
    assert scan([str(tmp_path)]) == Discovery(
        plugins=(
            InstalledPlugin(
                name="web",
                distribution="Atlas-Web.Tools",
                version="2.1rc1",
                target="atlas_web.plugin:hooks",
                offers=("llm.webby", "tool.send"),
                requirements=(
                    "atlas-kernel>=0.1",
                    "httpx[http2] >=0.28 ; python_version > '3'",
                    'rich>=1; extra == "pretty"',
                ),
                location=str(place),
            ),
        )
    )


def test_derived_facts_of_a_plugin() -> None:
    """Owner, module, entry point, qualified name and required distributions follow from the fields."""
    needs = ("Atlas.Kernel>=0.1", "httpx[http2] ; python_version > '3'", 'rich; extra == "pretty"', "(odd)")
    plugin = InstalledPlugin(name="web", distribution="atlas-web", version="1.0", target="a.b:c", requirements=needs)
    assert plugin.requires == {"atlas_kernel", "httpx"}
    assert (str(plugin.owner), plugin.module) == ("plugin 'web' of atlas-web 1.0", "a.b")
    assert (plugin.entry_point, str(plugin)) == ("web = a.b:c", "web@atlas-web")


def test_nothing_of_a_plugin_is_imported(tmp_path: Path) -> None:
    """A scan in a fresh interpreter imports neither the plugin nor any library that reads metadata."""
    lay_out(tmp_path, "atlas-loud", plugins={"loud": "loud"}, modules={"loud": "raise SystemExit('imported')"})
    script = """
        import sys
        from atlas_core.discovery import scan
        assert "loud" in [p.name for p in scan().plugins], scan()
        print(sorted({"loud", "importlib_metadata", "importlib.metadata", "email", "pluggy"} & set(sys.modules)))
    """
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", dedent(script)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_order_does_not_depend_on_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins come in name order, whatever order a folder lists its entries in (case 102)."""
    for name in ("zeta", "Alpha", "mid-dle", "beta"):
        lay_out(tmp_path, f"dist-{name}", plugins={name: "m"})
    expected = ["Alpha@dist-Alpha", "beta@dist-beta", "mid-dle@dist-mid-dle", "zeta@dist-zeta"]
    assert names(tmp_path) == expected
    listing = os.listdir
    monkeypatch.setattr("atlas_core.discovery.os.listdir", lambda folder: sorted(listing(folder), reverse=True))
    assert names(tmp_path) == expected


@pytest.mark.parametrize("second", ["the same", "a link", "with a slash"])
def test_one_folder_reached_twice_counts_once(tmp_path: Path, second: str) -> None:
    """A folder that is on the path twice, or once through a link, gives each plugin once (case 98)."""
    folder = tmp_path / "lib"
    lay_out(folder, "atlas-web", plugins={"web": "atlas_web"})
    link = tmp_path / "lib64"
    link.symlink_to(folder, target_is_directory=True)
    other = {"the same": str(folder), "a link": str(link), "with a slash": f"{folder}/"}[second]
    assert [str(p) for p in scan([str(folder), other]).plugins] == ["web@atlas-web"]


def test_the_first_distribution_of_a_name_on_the_path_counts(tmp_path: Path) -> None:
    """A shadowed distribution offers nothing, however its name is spelt, as Python would import the first (case 98)."""
    lay_out(tmp_path / "a", "atlas-web", "1.0", plugins={"web": "atlas_web"})
    lay_out(tmp_path / "b", "Atlas.Web", "2.0", plugins={"web": "atlas_web", "extra": "atlas_web"})
    (found,) = scan([str(tmp_path / "a"), str(tmp_path / "b")]).plugins
    assert found.version == "1.0"
    assert len(scan([str(tmp_path / "b"), str(tmp_path / "a")]).plugins) == 2


def test_a_distribution_without_plugins_shadows_too(tmp_path: Path) -> None:
    """An older release without the plugin, first on the path, hides the newer one that has it."""
    lay_out(tmp_path / "a", "atlas-web", "1.0")
    lay_out(tmp_path / "b", "atlas-web", "2.0", plugins={"web": "atlas_web"})
    assert names(tmp_path / "a", tmp_path / "b") == []


def test_an_editable_install_and_its_egg_info_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project folder that is the current folder and is installed for editing gives its plugin once (case 98)."""
    project, site = tmp_path / "project", tmp_path / "site"
    lay_out(project, "atlas-web", plugins={"web": "atlas_web"}, egg=True)
    (project / "pyproject.toml").touch()
    lay_out(site, "atlas-web", plugins={"web": "atlas_web"}, direct_url=EDITABLE)
    monkeypatch.chdir(project)
    (found,) = scan(["", str(project), str(site)]).plugins
    assert (found.editable, found.location) == (True, "atlas_web.egg-info")
    (found,) = scan([str(site), ""]).plugins
    assert (found.editable, Path(found.location).parent) == (True, site)


def test_two_distributions_of_one_plugin_name_are_both_found(tmp_path: Path) -> None:
    """Two distributions offering one name are two plugins, for whoever chooses to settle (case 98)."""
    lay_out(tmp_path, "dist-b", plugins={"web": "b"})
    lay_out(tmp_path, "dist-a", plugins={"Web": "a"})
    assert names(tmp_path) == ["Web@dist-a", "web@dist-b"]


def test_offers_belong_to_the_plugin_whose_module_they_name(tmp_path: Path) -> None:
    """A distribution with two plugins declares for each; an offer of no plugin's module is told."""
    offers = {"tool.a": "m.one", "tool.b": "m.two:hooks", "tool.c": "m.three"}
    place = lay_out(tmp_path, "dist", plugins={"one": "m.one", "two": "m.two:hooks"}, offers=offers)
    found = scan([str(tmp_path)])
    assert {p.name: p.offers for p in found.plugins} == {"one": ("tool.a",), "two": ("tool.b",)}
    assert found.problems == (
        f"{place} declares the offer 'tool.c' for module 'm.three', which is none of its plugins",
    )


def test_a_broken_line_costs_that_line_only(tmp_path: Path) -> None:
    """Lines that are no entry points are told with their file; comments, spaces and extras are read as specified."""
    place = lay_out(tmp_path, "dist")
    text = (
        "# note\n[atlas]\ngood = m : hooks [fast]\nno-value =\njust words\n= m\nodd = m-x\n; odd\n\n [other]\nx = y z\n"
    )
    (place / "entry_points.txt").write_text(text, encoding="utf-8")
    found = scan([str(tmp_path)])
    assert [p.entry_point for p in found.plugins] == ["good = m:hooks"]
    assert [re.search(r"has (.*) in \[atlas\]", p)[1] for p in found.problems] == [  # type: ignore[index]  # all match
        "'; odd'",
        "'= m'",
        "'just words'",
        "'no-value ='",
        "'odd = m-x'",
    ]
    assert all(str(place) in problem for problem in found.problems)


def test_a_large_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Entry points of any size are read, those behind the first block as well."""
    many = {f"p{number:05}": "m" for number in range(9_000)}
    lay_out(tmp_path, "dist", plugins=many)
    assert [p.name for p in scan([str(tmp_path)]).plugins] == list(many)


def test_metadata_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    """Bytes that are no text are named as a problem, and what is readable still counts."""
    place = lay_out(tmp_path, "dist", plugins={"good": "m"})
    with (place / "entry_points.txt").open("ab") as file:
        file.write(b"caf\xe9 = m.n\n")
    found = scan([str(tmp_path)])
    assert "good" in {p.name for p in found.plugins}
    assert f"{place}/entry_points.txt is not UTF-8" in found.problems


@pytest.mark.parametrize("file", ["entry_points.txt", "METADATA", "direct_url.json"])
def test_a_file_that_is_a_folder_is_no_crash(tmp_path: Path, file: str) -> None:
    """A metadata file that can't be opened is told, where it matters, and other distributions are found."""
    place = lay_out(tmp_path, "broken", "3.0", plugins={"broken": "m"})
    lay_out(tmp_path, "fine", plugins={"fine": "m"})
    (place / file).unlink(missing_ok=True)
    (place / file).mkdir()
    found = scan([str(tmp_path)])
    assert "fine@fine" in map(str, found.plugins)
    assert [f"{place}/{file}" in p for p in found.problems] == ([] if file == "direct_url.json" else [True])
    assert {p.version for p in found.plugins if p.name == "broken"} == (
        set() if file == "entry_points.txt" else {"3.0"}
    )


def test_missing_metadata_is_told_and_filled_in_from_the_folder(tmp_path: Path) -> None:
    """Without its METADATA file a distribution has the name and version of its folder, and a remedy."""
    place = lay_out(tmp_path, "atlas-web", "1.2", plugins={"web": "m"})
    (place / "METADATA").unlink()
    found = scan([str(tmp_path)])
    assert [(p.distribution, p.version) for p in found.plugins] == [("atlas_web", "1.2")]
    assert found.problems == (f"{place} has no METADATA; install the distribution again",)


def test_a_header_without_a_body_and_with_folded_lines_is_read(tmp_path: Path) -> None:
    """The metadata file is read as e-mail headers are: a line that begins with a space goes on with the one above."""
    place = lay_out(tmp_path, "dist", plugins={"p": "m"})
    text = "Name: Real-Name\nSummary: of\n Name: folded\n\tVersion: 9\nno colon here\nVersion: 1.5"
    (place / "METADATA").write_text(text, encoding="utf-8")
    assert [(p.distribution, p.version) for p in scan([str(tmp_path)]).plugins] == [("Real-Name", "1.5")]


def test_the_remains_of_an_uninstall_hide_nothing(tmp_path: Path) -> None:
    """A folder without METADATA, first on the path, does not shadow a whole distribution."""
    (lay_out(tmp_path / "a", "atlas-web", "1.0", plugins={"web": "m"}) / "METADATA").unlink()
    lay_out(tmp_path / "b", "atlas-web", "2.0", plugins={"web": "m"})
    (found,) = scan([str(tmp_path / "a"), str(tmp_path / "b")]).plugins
    assert found.version == "2.0"


def test_two_versions_in_one_folder_are_told_and_the_newer_counts(tmp_path: Path) -> None:
    """After a broken upgrade the folder written last counts, in every listing order, and the user is told."""
    old = lay_out(tmp_path, "atlas-web", "9.0", plugins={"web": "m"})
    new = lay_out(tmp_path, "atlas-web", "10.0", plugins={"web": "m"})
    os.utime(old, (1_000_000, 1_000_000))
    os.utime(new, (2_000_000, 2_000_000))
    found = scan([str(tmp_path)])
    assert [p.version for p in found.plugins] == ["10.0"]
    assert [p for p in found.problems if "atlas_web-10.0.dist-info, atlas_web-9.0.dist-info" in p]


def test_rivals_that_are_gone_do_not_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata that is removed while it is being read, by an uninstall at the same time, is left out."""
    lay_out(tmp_path, "atlas-web", "1.0", plugins={"web": "m"})
    lay_out(tmp_path, "atlas-web", "2.0", plugins={"web": "m"})
    isfile = os.path.isfile

    def vanishing(path: str) -> bool:
        found = isfile(path)
        shutil.rmtree(Path(path).parent, ignore_errors=True)
        return found

    monkeypatch.setattr("atlas_core.discovery.os.path.isfile", vanishing)
    assert scan([str(tmp_path)]) == Discovery()


@pytest.mark.parametrize(
    ("record", "editable"),
    [
        (EDITABLE, True),
        ('{"url": "file:///x", "dir_info": {}}', False),
        ('{"url": "https://x", "archive_info": {}}', False),
        ('{"dir_info": {"editable": "yes"}}', False),
        ("[1]", False),
        ("{", False),
        (None, False),
    ],
)
def test_editable_is_what_the_record_says(tmp_path: Path, record: str | None, *, editable: bool) -> None:
    """Only a readable record that says so makes an install editable."""
    lay_out(tmp_path, "dist", plugins={"p": "m"}, direct_url=record)
    (found,) = scan([str(tmp_path)]).plugins
    assert found.editable is editable


def test_paths_that_are_none_are_passed_over(tmp_path: Path) -> None:
    """What is not there, can't be a path, or names a hook for imports is passed over in silence, as Python does."""
    lay_out(tmp_path, "dist", plugins={"p": "m"})
    path = [str(tmp_path / "none"), "__editable__.x.finder.__path_hook__", "nul\0byte", str(tmp_path)]
    assert [str(p) for p in scan(path).plugins] == ["p@dist"]
    assert scan(path).problems == ()


def test_a_folder_that_may_not_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the path without permission to list it is a problem, not a crash."""

    def refuse(folder: str) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("atlas_core.discovery.os.listdir", refuse)  # root, as whom CI may run, is never refused
    assert scan([str(tmp_path)]).problems == (f"{str(tmp_path)!r} on sys.path can't be read: Permission denied",)


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points without permission to read them are a problem of that distribution only."""
    place = lay_out(tmp_path, "dist", plugins={"p": "m"})
    lay_out(tmp_path, "fine", plugins={"fine": "m"})

    opening = os.open

    def refusing(path: str, flags: int) -> int:
        if path == f"{place}/entry_points.txt":
            raise PermissionError(13, "Permission denied", path)
        return opening(path, flags)

    monkeypatch.setattr("atlas_core.metadata.os.open", refusing)
    found = scan([str(tmp_path)])
    assert found.problems == (f"{place}/entry_points.txt can't be read: Permission denied",)
    assert [p.name for p in found.plugins] == ["fine"]


def test_an_egg_folder_on_the_path_is_read(tmp_path: Path) -> None:
    """The older layout, a folder `name-version.egg` with `EGG-INFO` in it, still counts."""
    egg = tmp_path / "atlas_web-1.5-py3.11.egg"
    place = lay_out(egg, "atlas-web", "1.5", plugins={"web": "m"}, egg=True)
    place.rename(egg / "EGG-INFO")
    assert [(p.name, p.version) for p in scan([str(egg)]).plugins] == [("web", "1.5")]


# What is no folder answers through importlib_metadata.


def zipped(folder: Path, to: Path) -> str:
    """Pack a folder and return the path of the archive."""
    with zipfile.ZipFile(to, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return str(to)


def test_a_zip_file_on_the_path_is_read(tmp_path: Path) -> None:
    """Plugins inside a zip file are found, and shadow or are shadowed by path order."""
    lay_out(tmp_path / "in", "atlas-zip", "3.0", plugins={"zip": "m"}, offers={"tool.z": "m"}, requires=["x>1"])
    lay_out(tmp_path / "out", "atlas-zip", "4.0", plugins={"zip": "m"}, direct_url=EDITABLE)
    archive = zipped(tmp_path / "in", tmp_path / "app.pyz")
    (found,) = scan([archive, str(tmp_path / "out")]).plugins
    assert (found.version, found.offers, found.requires, found.editable) == (
        "3.0",
        ("tool.z",),
        frozenset({"x"}),
        False,
    )
    assert archive in found.location
    (found,) = scan([str(tmp_path / "out"), archive]).plugins
    assert found.version == "4.0"


def test_a_file_that_is_no_zip_is_passed_over(tmp_path: Path) -> None:
    """Any other file on the path is passed over, as Python does."""
    (tmp_path / "notes.txt").write_text("no zip", encoding="utf-8")
    assert scan([str(tmp_path / "notes.txt")]) == Discovery()


class Finder:
    """A finder of its own, such as an application bundler installs."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def find_spec(self, name: str, path: object = None, target: object = None) -> None: ...

    def find_distributions(self, context: object = None) -> Iterator[object]:
        if isinstance(self.answer, BaseException):
            raise self.answer
        yield self.answer


def distribution(text: str, metadata: str = "Name: atlas-frozen\nVersion: 7.0\n") -> object:
    """Make a distribution that lies in no folder."""
    from importlib_metadata import Distribution, SimplePath

    class Frozen(Distribution):
        def read_text(self, filename: str) -> str | None:
            return {"METADATA": metadata, "entry_points.txt": text}.get(str(filename))

        def locate_file(self, path: object) -> SimplePath:
            raise NotImplementedError

    return Frozen()


@pytest.mark.parametrize("first", [True, False])
def test_a_finder_of_its_own_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, first: bool) -> None:
    """A finder on sys.meta_path answers for its distributions; its place decides what shadows what."""
    lay_out(tmp_path, "atlas-frozen", "1.0", plugins={"frozen": "m"})
    finder = Finder(distribution("[atlas]\nfrozen = f.plugin\n"))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path] if first else [*sys.meta_path, finder])
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (found,) = scan().named("frozen")
    assert found.version == ("7.0" if first else "1.0")


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("finder is broken"), distribution("", metadata=""), object()],
    ids=["raises", "has no name", "answers with no distribution"],
)
def test_a_broken_finder_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object, recwarn: pytest.WarningsRecorder
) -> None:
    """A finder that fails is told as a problem, and what is in folders is found."""
    lay_out(tmp_path, "atlas-web", plugins={"web": "m"})
    monkeypatch.setattr(sys, "meta_path", [Finder(answer), *sys.meta_path])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = scan()
    assert len(found.named("web")) == 1
    assert [p for p in found.problems if "can't be read for distributions" in p]


def test_a_finders_distribution_that_fails_when_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution whose files raise when read is a problem, after its name was known."""
    broken = distribution("[atlas]\nx = m\n")
    read = type(broken).read_text  # type: ignore[attr-defined]  # it is a Distribution

    def failing(self: object, filename: str) -> str | None:
        if filename == "entry_points.txt":
            raise OSError("disk on fire")
        return read(self, filename)  # type: ignore[no-any-return]  # as above

    monkeypatch.setattr(type(broken), "read_text", failing)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder(broken)])
    assert [p for p in scan().problems if "disk on fire" in p]


# A comparison with importlib_metadata, over what real installers do.


def as_seen_by_importlib_metadata() -> set[tuple[str, str, str, str]]:
    """Return name, target, distribution and version of each entry point of group `atlas`."""
    import importlib_metadata

    importlib.invalidate_caches()
    found = importlib_metadata.entry_points(group="atlas")
    return {(e.name, e.value, e.dist.name, e.dist.version) for e in found if e.dist is not None}


def as_scanned() -> set[tuple[str, str, str, str]]:
    """Return the same, as the scan finds it."""
    found = scan()
    assert found.problems == ()
    return {(p.name, p.target, p.distribution, p.version) for p in found.plugins}


def test_scan_agrees_with_importlib_metadata_on_hand_laid_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the same after an install, an upgrade, an editable install beside an egg-info, and a removal."""
    site, project = tmp_path / "site", tmp_path / "project"
    monkeypatch.setattr(sys, "path", [str(project), str(site), *sys.path])
    lay_out(site, "atlas-web", "1.0", plugins={"web": "atlas_web.plugin"})
    assert ("web", "atlas_web.plugin", "atlas-web", "1.0") in as_scanned()
    assert as_scanned() == as_seen_by_importlib_metadata()
    take_away(site, "atlas-web")
    lay_out(site, "atlas-web", "1.1", plugins={"web": "atlas_web.hooks", "web-two": "atlas_web.two:attr"})
    assert ("web", "atlas_web.hooks", "atlas-web", "1.1") in as_scanned()
    assert as_scanned() == as_seen_by_importlib_metadata()
    lay_out(site, "atlas-edit", "1.0", plugins={"edit": "edit"}, direct_url=EDITABLE)
    lay_out(project, "atlas-edit", "1.0", plugins={"edit": "edit"}, egg=True)
    assert ("edit", "edit", "atlas-edit", "1.0") in as_scanned()
    assert as_scanned() == as_seen_by_importlib_metadata()
    take_away(site, "atlas-web")
    take_away(site, "atlas-edit")
    take_away(project, "atlas-edit")
    assert not {"web", "edit"} & {name for name, *_ in as_scanned()}
    assert as_scanned() == as_seen_by_importlib_metadata()


UV = shutil.which("uv") or next((str(p) for p in [Path(sys.executable).parent / "uv"] if p.exists()), None)


def project(folder: Path, version: str, *, plugins: str) -> str:
    """Write a project that builds without any other package: its build backend lies in the project."""
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(
        dedent(f"""
            [build-system]
            requires = []
            build-backend = "backend"
            backend-path = ["."]

            [project]
            name = "atlas-real"
            version = "{version}"
        """),
        encoding="utf-8",
    )
    (folder / "backend.py").write_text(
        dedent(f"""
            import zipfile

            def build_wheel(folder, config_settings=None, metadata_directory=None, editable=False):
                info, name = "atlas_real-{version}.dist-info", "atlas_real-{version}-py3-none-any.whl"
                files = {{
                    info + "/METADATA": "Metadata-Version: 2.4\\nName: atlas-real\\nVersion: {version}\\n",
                    info + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
                    info + "/entry_points.txt": {plugins!r},
                    ("atlas_real.pth" if editable else "atlas_real.py"): {str(folder)!r} if editable else "",
                }}
                files[info + "/RECORD"] = "".join(f"{{file}},,\\n" for file in [*files, info + "/RECORD"])
                with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
                    for file, text in files.items():
                        wheel.writestr(file, text)
                return name

            def build_editable(folder, config_settings=None, metadata_directory=None):
                return build_wheel(folder, editable=True)
        """),
        encoding="utf-8",
    )
    return str(folder)


@pytest.mark.skipif(UV is None, reason="uv is not on the PATH; the hand-laid metadata above covers the same steps")
def test_scan_agrees_with_importlib_metadata_on_real_installs(tmp_path: Path) -> None:
    """In an environment of its own both see what uv installed, upgraded, installed for editing, and removed."""
    environment = tmp_path / "env"
    python = environment / "bin" / "python"
    script = """
        import sys
        sys.path[:0] = sys.argv[1:]
        import importlib_metadata
        from atlas_core.discovery import scan
        found = scan()
        assert not found.problems, found
        ours = {(p.name, p.target, p.distribution, p.version) for p in found.plugins}
        entries = importlib_metadata.entry_points(group="atlas")
        theirs = {(e.name, e.value, e.dist.name, e.dist.version) for e in entries}
        assert ours == theirs, (ours, theirs)
        print(*sorted((p.name, p.version, p.editable) for p in found.plugins if p.distribution == "atlas-real"))
    """
    libraries = [
        str(Path(__file__).parents[1]),
        str(Path(importlib.import_module("importlib_metadata").__path__[0]).parent),
    ]

    def uv(*arguments: str) -> None:
        # Offline and without a cache: what is installed lies here.
        done = subprocess.run(
            [str(UV), *arguments, "--offline", "--no-cache"], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr

    def seen() -> str:
        command = [str(python), "-c", dedent(script), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    uv("venv", "--python", sys.executable, str(environment))
    install = ("pip", "install", "--python", str(python))
    uv(*install, project(tmp_path / "p", "1.0", plugins="[atlas]\nreal = atlas_real\n"))
    assert seen() == "('real', '1.0', False)"
    uv(*install, project(tmp_path / "p", "1.1", plugins="[atlas]\nreal = atlas_real:hooks\nother = atlas_real\n"))
    assert seen() == "('other', '1.1', False) ('real', '1.1', False)"
    uv(*install, "--editable", project(tmp_path / "p", "1.2", plugins="[atlas]\nreal = atlas_real\n"))
    assert seen() == "('real', '1.2', True)"
    uv("pip", "uninstall", "--python", str(python), "atlas-real")
    assert seen() == ""


# Names in settings.


@pytest.fixture(name="installed")
def _installed(tmp_path: Path) -> Discovery:
    lay_out(tmp_path, "dist-a", "1.0", plugins={"web": "a", "my-plugin": "a.mine"})
    lay_out(tmp_path, "dist-b", "2.0", plugins={"web": "b"})
    return scan([str(tmp_path)])


@pytest.mark.parametrize("name", ["my-plugin", "my_plugin", "My.Plugin", "MY--plugin", "my-plugin@Dist_A"])
def test_names_compare_loosely(installed: Discovery, name: str) -> None:
    """Dash, underscore, point and case make no difference (case 100)."""
    assert installed.resolve(name).name == "my-plugin"


def test_a_name_of_two_distributions_is_a_conflict(installed: Discovery) -> None:
    """The conflict names both distributions and how to settle it; the qualified name does."""
    with pytest.raises(PluginConflictError) as caught:
        installed.resolve("web")
    assert caught.value.owners == ("dist-a 1.0", "dist-b 2.0")
    assert str(caught.value) == (
        "plugin 'web' is offered by dist-a 1.0 and dist-b 2.0; "
        "write 'web@dist-a' or 'web@dist-b' instead of 'web', or uninstall one"
    )
    assert installed.resolve("web@dist-b").version == "2.0"


def test_a_name_declared_twice_by_one_distribution_is_its_authors_fault(tmp_path: Path) -> None:
    """Where a qualified name can't settle it, the error shows both targets and blames the distribution."""
    lay_out(tmp_path, "dist", plugins={"web": "a", "Web": "b"})
    with pytest.raises(PluginConflictError, match="one distribution declares it as 'b' and 'a': update it"):
        scan([str(tmp_path)]).resolve("web")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("wep", "did you mean 'web'?"),
        ("zzz", "installed: my-plugin, web"),
        ("web@dist-c", "installed under that name: 'web@dist-a', 'web@dist-b'"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(installed: Discovery, name: str, remedy: str) -> None:
    """The error says what is installed and makes up no distribution."""
    with pytest.raises(SettingsError, match=re.escape(f"plugin {name!r} is not installed; {remedy}")):
        installed.resolve(name)


def test_with_nothing_installed_the_remedy_says_so() -> None:
    """An empty environment is not searched for likenesses."""
    with pytest.raises(SettingsError, match="no plugin is installed; install the distribution that offers it"):
        Discovery().resolve("web")


def test_what_is_installed_here_is_found() -> None:
    """In the environment of the tests, Atlas's own distributions are found by the plain scan."""
    assert same_name("standard-tools") in {same_name(plugin.name) for plugin in scan().plugins}
