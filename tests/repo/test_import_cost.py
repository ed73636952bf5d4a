"""Importing the kernel stays cheap: what is dear loads where it is first used."""

import json
import subprocess
import sys

import pytest

DEAR = ["pydantic", "dynaconf", "jsonschema", "httpx", "typer", "rich", "importlib_metadata"]


def _loaded(statement: str) -> set[str]:
    """Return the names of all modules that a new interpreter has loaded after the statement."""
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_dear_and_no_plugin() -> None:
    """`import atlas_core` reads its own file and the version, nothing else of ours or of others."""
    loaded = _loaded("import atlas_core")
    assert loaded.isdisjoint(DEAR)
    assert {name for name in loaded if name.startswith("atlas_")} == {"atlas_core", "atlas_core._version"}


@pytest.mark.parametrize(
    "name",
    [
        "hookimpl",
        "AgentService",
        "ToolSchema",
        "ChatMessage",
        "AtlasError",
        "tool",
        "AgentToolkit",
        "StructuredMessage",
    ],
)
def test_names_of_the_loop_and_of_plugins_load_no_validation(name: str) -> None:
    """What the loop and every plugin module import loads neither pydantic nor anything as dear."""
    loaded = _loaded(f"from atlas_core import {name}")
    assert loaded.isdisjoint(DEAR)
    assert "atlas_offline" not in loaded
    assert "atlas_standard_tools" not in loaded


def test_version_is_printed_before_the_command_line_loads() -> None:
    """`atlas --version` prints the version and loads neither typer nor pydantic."""
    statement = (
        "import contextlib, io\nfrom atlas_core.cli import main\nout = io.StringIO()\n"
        "sys.argv = ['atlas', '--version']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(out):\n    main()\n"
        "import atlas_core\nassert atlas_core.__version__ in out.getvalue(), out.getvalue()"
    )
    assert _loaded(statement).isdisjoint(DEAR)
