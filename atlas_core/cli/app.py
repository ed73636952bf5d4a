"""Puts the commands together, runs one, and turns whatever it raises into a message and an exit status."""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from atlas_core._version import __version__
from atlas_core.cli import chat, config, connections, explain, init, plugins, tools, trace
from atlas_core.cli import run as run_once
from atlas_core.cli.output import DEBUG, abandon_output, fail, flush, prepare_streams, say
from atlas_core.cli.status import ExitStatus, Interrupted, status_of
from atlas_core.errors import AtlasError

__all__ = ["app", "end_process", "run"]

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
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("asyncio").setLevel(logging.INFO)


def run(words: Sequence[str]) -> int:
    """Run the command that the words name and return its exit status."""
    prepare_streams()
    DEBUG.on = False
    try:
        status = _run(words)
    except BrokenPipeError:
        status = ExitStatus.BROKEN_PIPE
    except Interrupted as exc:
        status = exc.status
    except AtlasError as exc:
        fail(exc)
        status = status_of(exc)
    except (Exception, SystemExit) as exc:  # noqa: BLE001  # the last border; a plugin's code may raise anything
        if DEBUG.on:
            fail(exc)
        else:
            fail(f"unexpected {type(exc).__name__}: {exc}; `atlas --debug ...` shows where")
        status = ExitStatus.FAILED
    if status == ExitStatus.BROKEN_PIPE or not flush():
        abandon_output()
        return ExitStatus.BROKEN_PIPE
    return int(status)


def _run(words: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    streams = sys.stdout, sys.stderr
    try:
        status = command.main(args=list(words), prog_name="atlas", standalone_mode=False)
    except SystemExit as exc:
        # typer's own way to end where standard output is closed
        if isinstance(exc.__context__, OSError):
            raise BrokenPipeError from exc
        raise
    except Exception as exc:
        show, status = getattr(exc, "show", None), getattr(exc, "exit_code", None)
        if show is None or status is None:
            raise
        show(sys.stderr)  # wrong usage, whichever package the parser's exceptions come from
    finally:
        sys.stdout, sys.stderr = streams
    return status if isinstance(status, int) else ExitStatus.OK


def end_process(status: int) -> NoReturn:
    """End the process without waiting for threads of tools that were interrupted and can't be stopped."""
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)
