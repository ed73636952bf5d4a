"""`atlas chat`: a conversation."""

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_core.cli.options import EnvOption, ProfileOption, SettingsOption, TraceOption, input_lines
from atlas_core.cli.output import fail, say
from atlas_core.cli.run import drain
from atlas_core.cli.status import ExitStatus, Interrupted
from atlas_core.cli.streams import OutputError, is_closed
from atlas_core.errors import AtlasError

if TYPE_CHECKING:
    from atlas_core.cli.running import Interruptible
    from atlas_core.events import Event, Observer
    from atlas_core.interfaces.agents import Agent
    from atlas_core.messages import ChatMessage
    from atlas_core.observers.console import ConsoleTree

__all__ = ["chat"]

HELP = """/help   show this
/reset  forget the conversation
/exit   leave, as does Ctrl-D; Ctrl-C stops an answer"""
PROMPT = "you> "


def chat(
    profile: ProfileOption = None,
    trace: TraceOption = None,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Talk with an agent.

    Each line is a message, and the conversation is remembered; /help lists what else there is. An error ends an
    answer, not the conversation. From a pipe the lines are read without a prompt.
    """
    from atlas_core.cli.running import Interruptible
    from atlas_core.cli.sessions import make_kernel, running_kernel, tell_warnings
    from atlas_core.observers.console import ConsoleTree
    from atlas_core.observers.jsonl import JsonLinesTrace

    thread = _Thread()
    tree = ConsoleTree(errors=False, repeat=False)
    with contextlib.ExitStack() as stack:
        observers: list[Observer] = [
            thread,
            tree,
            *([stack.enter_context(JsonLinesTrace(trace))] if trace is not None else []),
        ]
        kernel = make_kernel(settings, env, observers)
        agent = kernel.agent(profile)
        tell_warnings(kernel)
        loop = stack.enter_context(Interruptible())
        try:
            _converse(loop, agent, thread, tree)
        finally:

            async def stop() -> None:
                async with running_kernel(kernel):
                    tree.close()

            loop.run(stop)
    return ExitStatus.OK


class _Thread:
    """The conversation so far; an observer, since only that sees what an interrupted run came to."""

    def __init__(self) -> None:
        self.messages: tuple[ChatMessage, ...] = ()

    def on_event(self, event: "Event", /) -> None:
        from atlas_core.events import RunEnded

        # A question that nothing followed is left out: the next one would stand beside it, unanswered.
        if isinstance(event, RunEnded) and event.parent_run_id is None and len(event.new_messages) > 1:
            self.messages = (*self.messages, *event.new_messages)


def _converse(loop: "Interruptible", agent: "Agent", thread: _Thread, tree: "ConsoleTree") -> None:
    for line in _lines():
        command = line.strip().lower()
        if command in {"/exit", "/quit"}:
            return
        if command == "/reset":
            thread.messages = ()
            say("(the conversation is forgotten)")
        elif command == "/help":
            say(HELP)
        elif re.fullmatch(r"/\w+", command):
            say(f"there is no {command}; /help lists what there is")
        elif command:
            _answer(loop, agent, line.strip(), thread, tree)


def _answer(loop: "Interruptible", agent: "Agent", question: str, thread: _Thread, tree: "ConsoleTree") -> None:
    try:
        loop.run(lambda: drain(agent, question, tree, thread.messages))
    except Interrupted as exc:
        if exc.status != ExitStatus.INTERRUPTED:
            raise
        say("(stopped)")
    except (BrokenPipeError, OutputError):
        raise
    except AtlasError as exc:
        fail(exc)
    except Exception as exc:  # noqa: BLE001  # a plugin's agent type may raise anything, and the talk goes on
        fail(exc)


def _lines() -> Iterator[str]:
    """Yield what a person types, or the lines of a pipe, until their end."""
    if is_closed(sys.stdin) or not sys.stdin.isatty():
        yield from input_lines()
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives `input` editing and a history
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            say()
            return
        except KeyboardInterrupt:
            say("\n(Ctrl-D or /exit leaves)")
