"""`atlas run`: one question, the chain as it happens, the answer."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atlas_core.cli.options import (
    EnvOption,
    JsonOption,
    ProfileOption,
    SettingsOption,
    TraceOption,
    claim_output,
    read_input,
)
from atlas_core.cli.status import ExitStatus
from atlas_core.cli.streams import OutputError

if TYPE_CHECKING:
    from atlas_core.events import Observer
    from atlas_core.interfaces.agents import Agent
    from atlas_core.kernel import Kernel
    from atlas_core.observers.console import ConsoleTree

__all__ = ["drain", "raise_broken", "run"]


def run(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to ask; - reads standard input.")],
    *,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.", callback=claim_output)
    ] = False,
    trace: TraceOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Ask an agent one thing.

    Prints which model answers, each thought, action and observation as it happens, and the answer. With --json or
    --quiet everything but the answer goes to standard error.

    Exit status: 0 answered, 1 the run failed, 2 wrong usage, settings or plugin, 3 declined, 4 a limit was reached,
    130 interrupted.
    """
    if as_json and quiet:
        raise typer.BadParameter("--json and --quiet exclude each other")
    question = read_input("TEXT") if text == "-" else text
    if not question.strip():
        raise typer.BadParameter("the text is empty", param_hint="TEXT")
    if any("\ud800" <= sign <= "\udfff" for sign in question):  # how Python spells bytes that are no text
        raise typer.BadParameter("the text is not valid in this system's encoding", param_hint="TEXT")
    from atlas_core.cli.reports import Heading, JsonReport, PlainAnswer
    from atlas_core.cli.sessions import make_kernel

    def make(observers: "Sequence[Observer]") -> "Kernel":
        return make_kernel(settings, env, observers)

    if as_json:
        with JsonReport() as report:
            return _ask(question, profile=profile, make=make, trace=trace, observers=[report, Heading()])
    if quiet:
        return _ask(question, profile=profile, make=make, trace=trace, observers=[PlainAnswer(), Heading()])
    from atlas_core.observers.console import ConsoleTree

    tree = ConsoleTree(errors=False)
    try:
        return _ask(question, profile=profile, make=make, trace=trace, observers=[tree], tree=tree)
    finally:
        tree.close()


def _ask(
    question: str,
    *,
    profile: str | None,
    make: "Callable[[Sequence[Observer]], Kernel]",
    trace: Path | None,
    observers: "Sequence[Observer]",
    tree: "ConsoleTree | None" = None,
) -> int:
    from atlas_core.cli.running import Interruptible
    from atlas_core.observers.jsonl import JsonLinesTrace

    with contextlib.ExitStack() as stack:
        if trace is not None:
            observers = [*observers, stack.enter_context(JsonLinesTrace(trace))]
        kernel = make(observers)
        loop = stack.enter_context(Interruptible())
        return loop.run(lambda: _answer(kernel, profile, question, tree))


async def _answer(kernel: "Kernel", profile: str | None, question: str, tree: "ConsoleTree | None") -> int:
    from atlas_core.cli.sessions import running_kernel, tell_warnings

    async with running_kernel(kernel):
        agent = kernel.agent(profile)
        tell_warnings(kernel)
        outcome = await drain(agent, question, tree)
    return ExitStatus.DECLINED if outcome == "declined" else ExitStatus.OK


async def drain(agent: "Agent", question: str, tree: "ConsoleTree | None", history: Any = None) -> str:
    """Have a question answered and return the outcome; what happens is seen by the kernel's observers.

    Raises:
        BrokenPipeError: Nobody reads the tree any more; the run was cancelled.
        OutputError: It can't be written; the run was cancelled.
    """
    from atlas_core.events import RunEnded

    outcome = ""
    stream = agent.stream(question, history)
    try:
        async for event in stream:
            if isinstance(event, RunEnded) and event.parent_run_id is None:
                outcome = str(event.outcome)
            if tree is not None:
                raise_broken(tree)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    return outcome


def raise_broken(tree: "ConsoleTree") -> None:
    """Raise why a tree could not be drawn, if it could not.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        OutputError: It can't be written.
    """
    if isinstance(tree.broken, BrokenPipeError):
        raise tree.broken
    if tree.broken is not None:
        raise OutputError(tree.broken) from tree.broken
