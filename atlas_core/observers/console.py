"""Draws runs as a tree while they happen: model, thought, action, observation, answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from atlas_core import events as ev
from atlas_core.messages import RunOutcome
from atlas_core.observers.screen import make_screen
from atlas_core.observers.text import shortened, usage_text

if TYPE_CHECKING:
    from atlas_core.messages import ToolCall
    from atlas_core.observers.screen import Screen

__all__ = ["ConsoleTree"]

MAX_OBSERVATION_CHARS = 2_000
MAX_OBSERVATION_LINES = 30
"""What of one observation or action is drawn; a trace file keeps it whole."""

SLOW_S = 1.0
"""A call that took at least so long is drawn with its time."""


@dataclass(slots=True)
class _Drawn:
    """What was drawn of one run."""

    depth: int
    model: str
    running: dict[str, str] = field(default_factory=dict)
    batch: int = 0
    streamed: bool = False
    notice: str = ""


class ConsoleTree:
    """An observer that draws runs on a text stream, plainly where it is no terminal.

    What a model or a tool wrote is made harmless: control characters are spelt out. Sub-agents' runs are indented
    below the run that started them. A stream that can't be written any more is left alone from then on.

    Args:
        stream: Where to draw; standard output, as it is at that moment, if left out.
        notices: Whether the provider's notice, such as how to use a real model, follows the answer.
        errors: Whether the error of a failed run is drawn; not where the caller shows it anyway.
        questions: Whether what was asked is drawn too; for a reader who did not ask it.
        repeat: Whether model and notice are drawn for each run, or only when they are others than before.
        waits: Whether a terminal shows what is waited for; not where the past is drawn.

    Attributes:
        broken: Why drawing stopped, such as a `BrokenPipeError`, or None.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        errors: bool = True,
        questions: bool = False,
        repeat: bool = True,
        waits: bool = True,
    ) -> None:
        self.broken: OSError | ValueError | None = None
        self._screen: Screen = make_screen(stream if stream is not None else sys.stdout)
        self._errors = errors
        self._questions = questions
        self._repeat = repeat
        self._waits = waits
        self._seen = {"model": "", "note": ""}
        self._runs: dict[str, _Drawn] = {}
        self._open: tuple[str, str] | None = None  # run and kind of the text that is being written
        self._lock = threading.RLock()  # runs may live on several loops
        self._drawers: dict[type[ev.Event], Callable[..., None]] = {
            ev.RunStarted: self._run_started,
            ev.HistoryRepaired: self._history_repaired,
            ev.ModelRequested: self._model_requested,
            ev.TextDelta: self._text_delta,
            ev.ModelResponded: self._model_responded,
            ev.ToolCallStarted: self._tool_call_started,
            ev.ToolCallEnded: self._tool_call_ended,
            ev.RunWarning: self._run_warning,
            ev.RunEnded: self._run_ended,
        }

    def on_event(self, event: ev.Event, /) -> None:
        """Draw an event."""
        drawer = self._drawers.get(type(event))
        if drawer is None or self.broken is not None:
            return
        with self._lock:
            try:
                drawer(event, self._run_of(event))
            except (OSError, ValueError) as exc:  # a closed stream raises ValueError
                self.broken = exc

    def close(self) -> None:
        """End an unfinished line and the spinner; called when no more events come."""
        with self._lock:
            try:
                self._end_text()
                self._screen.rest()
            except (OSError, ValueError) as exc:
                self.broken = exc

    async def stop(self) -> None:
        """Do as `close` does."""
        self.close()

    # Drawing ---------------------------------------------------------------------------------------------------

    def _run_of(self, event: ev.Event) -> _Drawn:
        run = self._runs.get(event.run_id)
        if run is None:
            parent = self._runs.get(event.parent_run_id or "")
            run = self._runs[event.run_id] = _Drawn(depth=parent.depth + 2 if parent else 0, model="")
        return run

    def _line(self, label: str, text: str, *, depth: int, tone: str, last: bool = False) -> None:
        self._end_text()
        self._screen.line(label, text, depth=depth, tone=tone, last=last)

    def _end_text(self) -> None:
        if self._open is not None:
            self._open = None
            self._screen.end()

    def _run_started(self, event: ev.RunStarted, run: _Drawn) -> None:
        run.model, run.notice = event.model, event.notice
        if run.depth:
            self._line(f"agent {event.agent_id}", event.model, depth=run.depth, tone="model")
        else:
            self._head("model", event.model)
        if self._questions:
            self._line("question", _bounded(event.message.text), depth=run.depth + (1 if run.depth else 0), tone="note")

    def _head(self, label: str, text: str) -> None:
        if text and (self._repeat or self._seen[label] != text):
            self._seen[label] = text
            self._line(label, text, depth=0, tone=label)

    def _history_repaired(self, event: ev.HistoryRepaired, run: _Drawn) -> None:
        self._line("note", f"the history was repaired: {'; '.join(event.repairs)}", depth=run.depth + 1, tone="note")

    def _model_requested(self, event: ev.ModelRequested, run: _Drawn) -> None:
        run.streamed = False
        run.batch = 0
        self._wait(f"waiting for {run.model or event.connection}")

    def _wait(self, text: str) -> None:
        if self._waits and self._open is None:
            self._screen.wait(text)

    def _text_delta(self, event: ev.TextDelta, run: _Drawn) -> None:
        if not event.text:
            return
        if self._open != (event.run_id, event.kind):
            self._end_text()
            label, tone = ("thinking", "thought") if event.kind == "reasoning" else ("reply", "answer")
            self._screen.begin(label, depth=run.depth + 1, tone=tone)
            self._open = (event.run_id, event.kind)
        run.streamed = run.streamed or event.kind == "text"
        self._screen.piece(event.text)

    def _model_responded(self, event: ev.ModelResponded, run: _Drawn) -> None:
        self._end_text()
        self._screen.rest()
        if event.message.tool_calls and event.message.text.strip() and not run.streamed:
            self._line("thought", event.message.text.strip(), depth=run.depth + 1, tone="thought")

    def _tool_call_started(self, event: ev.ToolCallStarted, run: _Drawn) -> None:
        self._line("action", _action(event.call), depth=run.depth + 1, tone="action")
        run.running[event.call.id] = event.call.name
        run.batch += 1
        self._wait(f"running {', '.join(run.running.values())}")

    def _tool_call_ended(self, event: ev.ToolCallEnded, run: _Drawn) -> None:
        if event.call.id not in run.running:
            # Refused before it ran; without its action the observation would hang in the air.
            self._line("action", f"{_action(event.call)} (not run)", depth=run.depth + 1, tone="action")
        run.running.pop(event.call.id, None)
        facts = [event.call.name] if run.batch > 1 else []
        facts += [] if event.error is None else [str(event.status).replace("_", " ")]
        facts += [f"{event.duration_s:.1f} s"] if event.duration_s >= SLOW_S else []
        self._line(
            f"observation ({', '.join(facts)})" if facts else "observation",
            _bounded(event.content),
            depth=run.depth + 2,
            tone="observation" if event.error is None else "failure",
        )
        if run.running:
            self._wait(f"running {', '.join(run.running.values())}")

    def _run_warning(self, event: ev.RunWarning, run: _Drawn) -> None:
        self._line("warning", event.text, depth=run.depth + 1, tone="failure")

    def _run_ended(self, event: ev.RunEnded, run: _Drawn) -> None:
        self._end_text()
        self._screen.rest()
        depth = run.depth + 1 if run.depth else 0
        if event.outcome is RunOutcome.DECLINED:
            self._line("declined", event.output, depth=depth, tone="failure", last=True)
        elif event.outcome is RunOutcome.ANSWERED:
            if not run.streamed:
                self._line("answer", event.output, depth=depth, tone="answer", last=True)
        elif self._errors or run.depth:
            why = event.error or "no answer"
            if event.error_type and not why.startswith(event.error_type):
                why = f"{event.error_type}: {why}"
            self._line(str(event.outcome), why, depth=depth, tone="failure", last=True)
        if not run.depth:
            self._used(event)
            self._head("note", run.notice)
        del self._runs[event.run_id]

    def _used(self, event: ev.RunEnded) -> None:
        """Draw what the run used, where somebody counted it; rules without a language model use nothing."""
        if event.usage.input_tokens or event.usage.output_tokens or event.usage.cost:
            text = usage_text(event.usage, requests=event.usage.requests or event.iterations)
            self._line("used", text, depth=0, tone="note")


def _action(call: ToolCall) -> str:
    return _bounded(f"{call.name} {call.arguments_json}")


def _bounded(text: str) -> str:
    return shortened(text, max_chars=MAX_OBSERVATION_CHARS, max_lines=MAX_OBSERVATION_LINES)
