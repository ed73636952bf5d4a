"""`atlas init`: a commented settings file for a provider."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from atlas_core.cli.output import say
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import SettingsError
from atlas_core.names import did_you_mean, find_name

__all__ = ["Template", "init", "templates"]

_FOLDER = Path(__file__).with_name("templates")
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
    """

    name: str
    text: str
    summary: str = ""
    plugin: str = ""
    distribution: str = ""
    variable: str = ""


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
        str, typer.Argument(metavar="[PROVIDER]", help="offline, openai, anthropic or llama.", show_default=False)
    ] = "offline",
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="Where to write.")] = Path("settings.toml"),
) -> int:
    """Write a commented settings.toml.

    It suits one provider, which can be changed later; an existing file is left as it is.
    """
    known = templates()
    name = find_name(provider, known)
    if name is None:
        raise SettingsError(
            f"there is no template {provider!r}", remedy=did_you_mean(provider, known, what="templates")
        )
    template = known[name]
    _write_new(file, template.text)
    say(f"wrote {file}: {template.summary}")
    for step in _next_steps(template):
        say(f"next: {step}")
    return ExitStatus.OK


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as exc:
        raise SettingsError(
            f"{str(file)!r} exists and is left as it is", remedy="move it away, or choose another name with --file"
        ) from exc
    except OSError as exc:
        raise SettingsError(f"{str(file)!r} can't be written: {exc.strerror or exc}") from exc


def _next_steps(template: Template) -> list[str]:
    from atlas_core.discovery import scan

    steps = []
    if not scan().named(template.plugin):
        steps.append(
            f"install the distribution {template.distribution}, whose plugin {template.plugin!r} is not installed here"
        )
    if template.variable:
        steps.append(f"put your key into the variable {template.variable}")
    return [*steps, 'atlas run "What is the square root of 144 multiplied by 5?"']
