"""Run by `nox -s wheels` as `python -I smoke.py README.md DISTRIBUTION...`, where only the built wheels are installed.

What a user of the published distributions gets: the packages, complete and from the environment; the README's first
Python example; the command.
"""

import asyncio
import importlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

QUESTION = "What is the square root of 144 multiplied by 5?"


def check_packages(distributions: list[str]) -> None:
    """Each distribution installs its own package, typed, licensed, and no tests or plugins of others."""
    for name in distributions:
        files = [str(file) for file in importlib.metadata.files(name) or []]
        package = {"atlas-kernel": "atlas_core"}.get(name, name.replace("-", "_"))
        tops = {file.split("/")[0] for file in files if not file.startswith("..")}
        assert all(top == package or top.startswith(f"{package}-") or ".dist-info" in top for top in tops), tops
        assert f"{package}/py.typed" in files, name
        module = importlib.import_module(package)
        assert Path(module.__file__ or "").is_relative_to(sys.prefix), f"{package} comes from {module.__file__}"


def check_public_names() -> None:
    """Every public name resolves with the kernel's own dependencies alone."""
    import atlas_core

    for name in atlas_core.__all__:
        getattr(atlas_core, name)


def check_readme(readme: Path) -> None:
    """The README's first Python example runs."""
    blocks = re.findall(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(blocks[0], str(readme), "exec"), {"__name__": "__main__"})


def check_factory() -> None:
    """The first question is answered through the factory with the settings that ship in the wheel."""
    from atlas_core import AgentFactory

    async def ask() -> None:
        async with AgentFactory.create() as agent:
            assert "60" in await agent.run(QUESTION)

    asyncio.run(ask())


def check_command() -> None:
    """The command answers with exit status 0, and knows its version."""
    atlas = str(Path(sys.executable).with_name("atlas"))
    done = subprocess.run([atlas, "run", QUESTION], capture_output=True, text=True, check=True)
    assert "60" in done.stdout, done.stdout
    version = subprocess.run([atlas, "--version"], capture_output=True, text=True, check=True).stdout
    assert importlib.metadata.version("atlas-kernel") in version, version


if __name__ == "__main__":
    check_packages(sys.argv[2:])
    check_public_names()
    check_readme(Path(sys.argv[1]))
    check_factory()
    check_command()
    print("the wheels work")
