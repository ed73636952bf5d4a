"""Puts the commands together, runs one, and turns whatever it raises into a message and an exit status."""

import logging
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from atlas_core._version import __version__
from atlas_core.cli import chat, config, connections, explain, init, plugins, streams, tools, trace
from atlas_core.cli import run as run_once
from atlas_core.cli.log import shown_log
from atlas_core.cli.output import DEBUG, fail, say, write_error
from atlas_core.cli.status import ExitStatus, Interrupted, status_of
from atlas_core.errors import AtlasError

__all__ = ["app", "run"]

app = typer.Typer(
    name="atlas",
    help="Atlas runs LLM agents that are put together from plugins, by name, in settings.toml.",
    epilog="Exit status: 0 answered or done, 1 failed, 2 wrong usage, settings or plugin, 3 declined, 4 limit reached, "
    "130 interrupted, 143 terminated.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # rich's boxes cost 60 ms and stand in the way of a pipe
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run_once.run)
app.command("chat")(chat.chat)
app.command("init")(init.init)
app.command("explain")(explain.explain)
app.add_typer(plugins.app, name="plugins")
app.add_typer(tools.app, name="tools")
app.add_typer(connections.app, name="connections")
app.add_typer(config.app, name="config")
app.add_typer(trace.app, name="trace")


def _version(asked: bool) -> None:
    if asked:
        say(f"atlas {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and the log.")] = False,
) -> None:
    DEBUG.on = debug
    if debug:
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.INFO)


def run(words: Sequence[str], *, goes_on: bool = True) -> int:
    """Run the command that the words name and return its exit status.

    Args:
        words: What follows `atlas`.
        goes_on: Whether the program does anything afterwards.
    """
    DEBUG.on = False
    if streams.is_closed(sys.stdout):
        streams.prepare()
        fail("standard output is closed; send it to /dev/null to do without the answer")
        return ExitStatus.USAGE
    streams.prepare()
    before = sys.stdout, sys.stderr
    try:
        with shown_log():
            return int(_flushed(_status(words)))
    finally:
        streams.release(restore=goes_on)
        if goes_on:
            sys.stdout, sys.stderr = before  # typer replaces them where a pipe broke


def _flushed(status: int) -> int:
    """Return the status, or that of an output which can't be written."""
    try:
        streams.flush()
    except (BrokenPipeError, streams.OutputError) as exc:
        return _unwritten(exc)
    return status


def _unwritten(error: BrokenPipeError | streams.OutputError) -> int:
    streams.abandon()
    if isinstance(error, BrokenPipeError):
        return ExitStatus.BROKEN_PIPE
    fail(error)
    return ExitStatus.FAILED


def _status(words: Sequence[str]) -> int:
    """Run a command; whatever it raises becomes a message and a status."""
    try:
        return _run(words)
    except (BrokenPipeError, streams.OutputError) as exc:
        return _unwritten(exc)
    except Interrupted as exc:
        return exc.status
    except AtlasError as exc:
        fail(exc)
        return status_of(exc)
    except (Exception, SystemExit) as exc:  # noqa: BLE001  # the last border; a plugin's code may raise anything
        if DEBUG.on:
            fail(exc)
        else:
            fail(f"unexpected {type(exc).__name__}: {exc}; `atlas --debug ...` shows where")
        return ExitStatus.FAILED


def _run(words: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    try:
        status = command.main(args=list(words), prog_name="atlas", standalone_mode=False)
    except SystemExit as exc:
        # typer's own way to end where standard output is closed
        if isinstance(exc.__context__, OSError):
            raise BrokenPipeError from exc
        raise
    except OSError as exc:
        if _raised_in(exc) in {"typer", "click"}:  # the parser could not write its help
            raise streams.OutputError(exc) from exc
        raise
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            raise
        return _tell_usage(exc)
    return status if isinstance(status, int) else ExitStatus.OK


def _raised_in(error: BaseException) -> str:
    """Return the package whose code raised an error."""
    frame = None
    for frame, _ in traceback.walk_tb(error.__traceback__):  # noqa: B007  # the last one is meant
        pass
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame is not None else ""


def _tell_usage(error: Any) -> int:
    """Tell of wrong usage in the words of the parser, whichever package its exceptions come from."""
    context = getattr(error, "ctx", None)
    text = str(error.format_message())
    if type(error).__name__ == "NoArgsIsHelpError":
        write_error(f"{text}\n")
    else:
        text = " ".join(text.split()).removesuffix(".")
        command = context.command_path if context is not None else "atlas"
        fail(f"{text[:1].lower()}{text[1:]}; `{command} --help` tells the usage")
    return int(error.exit_code)
