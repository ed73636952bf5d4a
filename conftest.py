"""Makes the code in README, docs and docstrings run as tests.

What runs, and how:

- ```python blocks and `>>>` examples: in one namespace per document; `await` works at the top level.
- ```console blocks: each `$ ` line in bash (`> ` continues it); what is shown below it must be what it prints, where
  `...` stands for anything. Its exit status must be 0; to show another, write `; echo $?`.
- ```toml and ```json blocks: must parse; TOML with a `[default...]` table must load as Atlas settings.
- A first line `# settings.toml` (any relative path with a suffix) also writes the block to that file.

Each document has an empty folder of its own as current folder, no `ATLAS_` variables, and its own event loop.
Blocks of other languages (sh, text) are not run; `<!-- skip: next "the reason" -->` before a block skips it.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings as hypothesis_settings
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import CodeBlockParser, SkipParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Several test runs may share a machine, so that the time of one example tells nothing about the code.
hypothesis_settings.register_profile("atlas", deadline=None)
hypothesis_settings.load_profile("atlas")

_TITLE = re.compile(r"# ([\w./-]+\.\w+)\n")
_COMMAND_TIMEOUT_S = 120


class _Place:
    """Where one document's examples run: a folder, a clean environment, an event loop."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="atlas-docs-")
        self._cwd = Path.cwd()
        self._environ = dict(os.environ)
        self._runner: asyncio.Runner | None = None
        for name in [name for name in os.environ if name.startswith("ATLAS_")]:
            del os.environ[name]
        scripts = str(Path(sys.executable).parent)
        os.environ.update(
            HOME=self._folder.name,
            PATH=os.pathsep.join([scripts, os.environ.get("PATH", "")]),
            NO_COLOR="1",
            COLUMNS="100",
            TERM="dumb",
        )
        os.chdir(self._folder.name)

    def run(self, coroutine: Any) -> None:
        if self._runner is None:
            self._runner = asyncio.Runner()
        self._runner.run(coroutine)

    def close(self) -> None:
        try:
            if self._runner is not None:
                self._runner.close()
        finally:
            os.chdir(self._cwd)
            os.environ.clear()
            os.environ.update(self._environ)
            self._folder.cleanup()


def _set_up(namespace: dict[str, Any]) -> None:
    namespace["_place"] = _Place()
    namespace["__name__"] = "__main__"


def _tear_down(namespace: dict[str, Any]) -> None:
    namespace.pop("_place").close()


def _write_if_titled(source: str) -> None:
    title = _TITLE.match(source)
    if title:
        path = Path(title[1])
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"a block's title must be a path inside its folder, not {title[1]!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")


def _run_python(example: Example) -> None:
    source = str(example.parsed)
    _write_if_titled(source)
    padded = "\n" * (example.line + getattr(example.parsed, "line_offset", 0)) + source
    code = compile(padded, example.path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        example.namespace["_place"].run(eval(code, example.namespace))  # noqa: S307  # running the docs is the job
    else:
        exec(code, example.namespace)


def _commands(source: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output shown below it."""
    command: str | None = None
    shown: list[str] = []
    for line in source.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(shown)
            command, shown = line[2:], []
        elif command is None:
            raise ValueError(f"a console block begins with a '$ ' line, not with {line!r}")
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown.append(line)
    if command is not None:
        yield command, "\n".join(shown)


def _run_console(example: Example) -> str | None:
    for command, shown in _commands(str(example.parsed)):
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        got = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) + "\n"
        if done.returncode:
            return f"$ {command}\nended with status {done.returncode} and printed:\n{got}"
        want = shown.rstrip() + "\n"
        if shown.strip() and not doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS):
            want, got = textwrap.indent(want, "    "), textwrap.indent(got, "    ")
            return f"$ {command}\nshould print:\n{want}but printed:\n{got}"
    return None


def _check_toml(example: Example) -> None:
    source = str(example.parsed)
    tomllib.loads(source)
    _write_if_titled(source)
    if re.search(r"^\[+default\b", source, re.MULTILINE):
        from atlas_core.settings.loader import load_settings

        path = Path("_block.toml")
        path.write_text(source, encoding="utf-8")
        try:
            load_settings(path)
        finally:
            path.unlink()


def _check_json(example: Example) -> None:
    json.loads(str(example.parsed))


class _PythonBlocks:
    """Finds ```python blocks; one that begins with `>>>` is split into its examples, where `doctests` says so."""

    def __init__(self, *, doctests: bool) -> None:
        self._blocks = CodeBlockParser("python", _run_python)
        self._examples = DocTestStringParser(DocTestEvaluator(doctest.ELLIPSIS))
        self._doctests = doctests

    def __call__(self, document: Document) -> Iterable[Region]:
        for block in self._blocks(document):
            if not block.parsed.startswith(">>>"):
                yield block
            elif self._doctests:
                for region in self._examples(block.parsed, document.path):
                    region.adjust(block, block.parsed)
                    yield region


_EXAMPLE_SECTION = re.compile(r"^[ ]*(?:.* )?Example:\n\n(?P<body>(?:[ ]{4,}\S.*\n|[ ]*\n)+)", re.MULTILINE)


def _run_with_public_names(example: Example) -> None:
    """Run a docstring's `Example:`; it may use every public name of Atlas without importing it."""
    exec("from atlas_core import *\nfrom pathlib import Path\nfrom pydantic import BaseModel", example.namespace)
    _run_python(example)


def _example_sections(document: Document) -> Iterable[Region]:
    for match in _EXAMPLE_SECTION.finditer(document.text):
        body = textwrap.dedent(match["body"])
        if not body.lstrip().startswith((">>>", "```")):
            yield Region(match.start("body"), match.end("body"), body, _run_with_public_names)


_pages = Sybil(
    parsers=[
        SkipParser(),
        _PythonBlocks(doctests=True),
        CodeBlockParser("console", _run_console),
        CodeBlockParser("toml", _check_toml),
        CodeBlockParser("json", _check_json),
    ],
    patterns=["README.md", "docs/**/*.md", "docs/*.md", "plugins/*/README.md"],
    setup=_set_up,
    teardown=_tear_down,
)
_docstrings = Sybil(
    parsers=[DocTestParser(doctest.ELLIPSIS), _PythonBlocks(doctests=False), _example_sections],
    patterns=["atlas_core/*.py", "atlas_core/**/*.py", "plugins/*/src/**/*.py"],
    setup=_set_up,
    teardown=_tear_down,
)

pytest_collect_file = (_pages + _docstrings).pytest()
