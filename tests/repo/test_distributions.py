"""Each distribution is complete, bounded and pinned, and no tracked file names a machine."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = [ROOT, *PLUGINS]


def _toml(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


ROOT_TOML = _toml(ROOT)
OURS = {_toml(path)["project"]["name"] for path in DISTRIBUTIONS}


def _package(folder: Path) -> Path:
    return folder / str(_toml(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"][0])


def _requirements(folder: Path) -> list[Requirement]:
    project = _toml(folder)["project"]
    extras = [line for extra in project.get("optional-dependencies", {}).values() for line in extra]
    return [Requirement(line) for line in [*project["dependencies"], *extras]]


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_distribution_is_complete(folder: Path) -> None:
    """A distribution is typed, described and licensed, and has a README and a list of changes that towncrier finds."""
    project = _toml(folder)["project"]
    assert (_package(folder) / "py.typed").is_file()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert len((folder / "README.md").read_text(encoding="utf-8").split()) >= 30
    assert "<!-- towncrier release notes start -->" in (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(project["description"]) >= 20
    assert project["license"] == "Apache-2.0"
    assert project["requires-python"] == ROOT_TOML["project"]["requires-python"]


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda path: path.name)
def test_plugin_is_named_by_the_rule(folder: Path) -> None:
    """Distribution `atlas-x` lies in `plugins/atlas-x`, holds `atlas_x`, and has one entry point in group `atlas`."""
    project = _toml(folder)["project"]
    assert project["name"] == folder.name
    assert _package(folder).name == folder.name.replace("-", "_")
    targets = project["entry-points"]["atlas"]
    assert len(targets) == 1
    assert all(target.split(".")[0] == _package(folder).name for target in targets.values())


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_our_own_distributions_are_bounded(folder: Path) -> None:
    """A requirement on one of our distributions has a lower and an upper bound: others own similar names."""
    for requirement in _requirements(folder):
        if requirement.name in OURS:
            operators = {specifier.operator for specifier in requirement.specifier}
            assert operators & {">=", "=="}, str(requirement)
            assert operators & {"<", "=="}, str(requirement)


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_every_requirement_has_a_lowest_version(folder: Path) -> None:
    """Each requirement states the lowest version, which `nox -s minimums` tests."""
    lacking = [str(r) for r in _requirements(folder) if not {">=", "=="} & {s.operator for s in r.specifier}]
    assert lacking == []


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda path: path.name)
def test_every_list_of_plugins_holds_the_plugin(folder: Path) -> None:
    """A plugin stands in each list at the root: uv's sources, mypy, import contracts, requirements.txt."""
    package = _package(folder).name
    source = f"plugins/{folder.name}/src"
    linter = ROOT_TOML["tool"]["importlinter"]
    assert ROOT_TOML["tool"]["uv"]["sources"][folder.name] == {"workspace": True}
    assert _toml(folder)["tool"]["uv"]["sources"]["atlas-kernel"] == {"workspace": True}
    assert source in ROOT_TOML["tool"]["mypy"]["files"]
    assert source in ROOT_TOML["tool"]["mypy"]["mypy_path"]
    assert package in linter["root_packages"]
    assert all(
        package in (c.get("forbidden_modules") or c["modules"])
        for c in linter["contracts"]
        if c["id"] in {"kernel", "plugins"}
    )
    assert f"./plugins/{folder.name}" in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()


def test_both_lists_of_pins_are_equal() -> None:
    """constraints.txt (for pip) and pyproject.toml (for uv) hold the same pins, sorted, each with one exact version."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins == ROOT_TOML["tool"]["uv"]["constraint-dependencies"]
    assert pins == sorted(pins, key=lambda line: line.split("==")[0])
    for pin in pins:
        assert [s.operator for s in Requirement(pin).specifier] == ["=="], pin


def test_pins_allow_what_we_require() -> None:
    """Each requirement of a distribution or a task group is pinned, to a version that its bounds allow."""
    here = [r for r in map(Requirement, _pins()) if r.marker is None or r.marker.evaluate()]
    pinned = {r.name: str(r.specifier).removeprefix("==") for r in here}
    groups = [line for group in ROOT_TOML["dependency-groups"].values() for line in group if isinstance(line, str)]
    wanted = [r for folder in DISTRIBUTIONS for r in _requirements(folder)] + [Requirement(line) for line in groups]
    for requirement in wanted:
        if requirement.name not in OURS:
            assert requirement.name in pinned, f"{requirement} is not pinned: run `nox -s pins`"
            assert requirement.specifier.contains(pinned[requirement.name]), str(requirement)


def _pins() -> list[str]:
    return list(ROOT_TOML["tool"]["uv"]["constraint-dependencies"])


def _tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_tracked_file_names_a_registry_or_this_machine() -> None:
    """Downloads come from wherever the reader's tools are set to; paths are relative."""
    hosts = [".".join(parts) for parts in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")]]
    folders = [ROOT, Path.home()]
    here = [f"{folder}/" for folder in folders if len(folder.parts) > 2 or folder == Path("/root")]
    wanted = re.compile("|".join([*map(re.escape, hosts), *(rf"(?<![\w.*]){re.escape(path)}" for path in here)]))
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _tracked()
        if (match := wanted.search(path.read_bytes().decode("utf-8", "replace")))
    ]
    assert found == []


def test_lock_file_is_not_tracked() -> None:
    """uv.lock records download addresses, so it stays out of the repository."""
    assert [path.name for path in _tracked() if path.name == "uv.lock"] == []


def test_one_place_for_each_tool() -> None:
    """No second configuration file silently wins over pyproject.toml."""
    stray = {"pytest.ini", "tox.ini", "setup.cfg", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".coveragerc"}
    stray |= {".importlinter", "towncrier.toml", "uv.toml"}
    assert [path for path in _tracked() if path.name in stray] == []
