"""`atlas init`: a commented settings file for a provider."""

import dataclasses
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_core.cli.output import fail, say
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean, find_name

if TYPE_CHECKING:
    from atlas_core.cli.look import Answer

__all__ = ["Template", "init", "templates"]

_FOLDER = Path(__file__).with_name("templates")
SERVER_TEMPLATE = "openai"
"""The template of the provider that talks to servers of all kinds."""

_CONNECTION = re.compile(r"(?:^#.*\n)*^\[default\.ai\.connections\.main\]\n(?:^.+\n)+", re.MULTILINE)
"""The connection's table with the comment above it, up to the next empty line."""

_FACT = re.compile(r"#: (\w+) = (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A settings file to begin with. Its first lines, `#: key = value`, say what it needs, and are not written.

    Attributes:
        name: What `atlas init` calls it.
        text: The file.
        summary: One line for listings.
        plugin: The plugin that offers the provider.
        distribution: The distribution that the plugin comes from.
        variable: The environment variable that holds the key, or "".
        check: The connection that should be looked at before it is used, or "".
    """

    name: str
    text: str
    summary: str = ""
    plugin: str = ""
    distribution: str = ""
    variable: str = ""
    check: str = ""


def templates() -> dict[str, Template]:
    """Return the packaged templates by name."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("*.toml"))}


def _read(path: Path) -> Template:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    facts = {match[1]: match[2].strip() for line in lines if (match := _FACT.match(line))}
    text = "".join(line for line in lines if not _FACT.match(line))
    return Template(name=path.stem, text=text, **facts)


def init(
    provider: Annotated[
        str | None,
        typer.Argument(metavar="[PROVIDER]", help="offline (else), openai, anthropic or llama.", show_default=False),
    ] = None,
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="Where to write.")] = Path("settings.toml"),
    look: Annotated[
        bool, typer.Option("--look", help="Look for a model server on this machine, and write a connection to it.")
    ] = False,
    ports: Annotated[
        list[int] | None,
        typer.Option(
            "--port", metavar="N", min=1, max=65535, help="With --look: look at this port only; may be repeated."
        ),
    ] = None,
) -> int:
    """Write a commented settings.toml.

    It suits one provider, which can be changed later; an existing file is left as it is. Nothing is sent anywhere,
    but with --look: then the usual ports of 127.0.0.1 are asked which models a server there has.

    Exit status: 0 written, 1 --look found no server with a model and nothing was written, 2 wrong usage or the file
    exists.
    """
    if ports and not look:
        raise typer.BadParameter("it goes with --look", param_hint="--port")
    known = templates()
    name = find_name(provider or (SERVER_TEMPLATE if look else "offline"), known)
    if name is None:
        raise SettingsError(
            f"there is no template {provider!r}", remedy=did_you_mean(str(provider), known, many="templates")
        )
    if not look:
        _write(file, known[name])
        return ExitStatus.OK
    if name != SERVER_TEMPLATE:
        raise typer.BadParameter(f"--look finds servers for provider {SERVER_TEMPLATE!r}, not {name!r}")
    return _write_found(file, known[name], ports)


def _write(file: Path, template: Template) -> None:
    _write_new(file, template.text)
    say(f"wrote {file}: {template.summary}")
    for step in _next_steps(template):
        say(f"next: {step}")


def _write_found(file: Path, template: Template, ports: list[int] | None) -> int:
    """Look for servers and write a connection to the first one that has a model."""
    from atlas_core.cli.look import USUAL_PORTS, look
    from atlas_core.cli.running import Interruptible

    _refuse_existing(file)
    asked = ports or list(USUAL_PORTS)
    with Interruptible() as loop:
        answers = loop.run(lambda: look(asked))
    usable = [answer for answer in answers if answer.models]
    for answer in answers:
        if not answer.models:
            say(f"port {answer.port}: {answer.problem}")
    if not usable:
        shown = ", ".join(map(str, dict.fromkeys(asked)))
        fail(f"no model server was found on 127.0.0.1 (ports {shown}), and nothing was written")
        return ExitStatus.FAILED
    first, *others = usable
    for answer in others:
        say(f"also found {answer.base_url} with {', '.join(answer.models[:5])}: choose it with --port {answer.port}")
    _write(file, _for_server(template, first))
    return ExitStatus.OK


def _for_server(template: Template, answer: "Answer") -> Template:
    """Return a template with the connection to a server that needs no key."""
    model, *others = answer.models
    more = f"# It also has: {', '.join(others[:20])}\n" if others else ""
    table = (
        f"# This server was found on this machine; `atlas connections check main` tells what it can do.\n{more}"
        f'[default.ai.connections.main]\nbackend = "openai"\nmodel = {_quoted(model)}\n'
        f"base_url = {_quoted(answer.base_url)}\n"
    )
    text, count = _CONNECTION.subn(lambda _: table, template.text)
    assert count == 1, template.name  # noqa: S101  # the packaged template has one
    summary = f"model {model} of the server at {answer.base_url}"
    return dataclasses.replace(template, text=text, summary=summary, variable="")


def _quoted(text: str) -> str:
    # Printable text in JSON's form is a basic string of TOML too.
    return json.dumps(text, ensure_ascii=False)


def _refuse_existing(file: Path, cause: BaseException | None = None) -> None:
    if cause is not None or os.path.lexists(file):
        raise SettingsError(
            f"{str(file)!r} exists and is left as it is", remedy="move it away, or choose another name with --file"
        ) from cause


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as exc:
        _refuse_existing(file, exc)
    except OSError as exc:
        raise SettingsError(f"{str(file)!r} can't be written: {exc.strerror or exc}") from exc


def _next_steps(template: Template) -> list[str]:
    from atlas_core.discovery import scan

    steps = []
    if not scan().named(template.plugin):
        steps.append(
            f"install the distribution {template.distribution}, whose plugin {template.plugin!r} is not installed here "
            f"(in a clone of Atlas: pip install ./plugins/{template.distribution})"
        )
    if template.variable:
        steps.append(f"put your key into the variable {template.variable}")
    if template.check:
        steps.append(f"atlas connections check {template.check}")
    return [*steps, 'atlas run "What is the square root of 144 multiplied by 5?"']
