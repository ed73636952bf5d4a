"""Fixtures for the tests of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from atlas_core.cli import main
from tests.cli.world import World
from tests.plugin_factory import importable


class Done(NamedTuple):
    """What a command came to."""

    status: int
    out: str
    err: str


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose plugins this process can import, and whose folder is the current one."""
    made = World(tmp_path)
    for name in [name for name in os.environ if name.startswith("ATLAS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(made.work)
    with importable(made.site):
        yield made


@pytest.fixture
def atlas(world: World, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command in this process."""

    def run(*words: str) -> Done:
        capsys.readouterr()
        status = main(list(words))
        out, err = capsys.readouterr()
        return Done(status, out, err)

    return run
