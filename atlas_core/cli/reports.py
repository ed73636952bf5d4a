"""Observers that make what `atlas run --json` and `--quiet` print."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Self

from atlas_core import events as ev
from atlas_core.cli.output import say_json, say_value, warn, write_error
from atlas_core.messages import RunOutcome
from atlas_core.settings.secrets import masked

if TYPE_CHECKING:
    from atlas_core.messages import ToolCall

__all__ = ["Heading", "JsonReport", "PlainAnswer"]


class Heading:
    """Writes which model answers, warnings, and the provider's notice to standard error."""

    def __init__(self) -> None:
        self._notice = ""

    def on_event(self, event: ev.Event, /) -> None:
        """Write what is for a person."""
        match event:
            case ev.RunStarted(parent_run_id=None):
                self._notice = event.notice
                _tell(f"model: {event.model}")
            case ev.RunWarning():
                warn(event.text)
            case ev.RunEnded(parent_run_id=None) if self._notice:
                _tell(f"note: {self._notice}")


def _tell(text: str) -> None:
    write_error(f"{text}\n")


class PlainAnswer:
    """Writes the answer to standard output as it is; a decline's reason goes to standard error."""

    def on_event(self, event: ev.Event, /) -> None:
        """Write the answer."""
        match event:
            case ev.RunEnded(parent_run_id=None, outcome=RunOutcome.ANSWERED):
                say_value(event.output)
            case ev.RunEnded(parent_run_id=None, outcome=RunOutcome.DECLINED):
                _tell(f"declined: {event.output}")


class JsonReport:
    """Collects a run, and prints it as one JSON object at the end of the `with` block, however that comes."""

    def __init__(self) -> None:
        self._report: dict[str, Any] = {
            "run_id": None,
            "outcome": "not_started",
            "output": "",
            "profile": None,
            "model": None,
            "notice": "",
            "iterations": 0,
            "duration_s": 0.0,
            "usage": None,
            "tool_results": [],
            "warnings": [],
            "error": None,
        }

    def on_event(self, event: ev.Event, /) -> None:
        """Take note of what belongs to the run that was asked for."""
        report = self._report
        if event.parent_run_id is not None:
            return
        match event:
            case ev.RunStarted():
                report.update(run_id=event.run_id, profile=event.agent_id, model=event.model, notice=event.notice)
            case ev.ToolCallEnded():
                report["tool_results"].append(_tool_result(event))
            case ev.RunWarning():
                report["warnings"].append(event.text)
            case ev.RunEnded():
                report.update(
                    outcome=str(event.outcome),
                    output=event.output,
                    iterations=event.iterations,
                    duration_s=round(event.duration_s, 6),
                    usage=dataclasses.asdict(event.usage),
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        if exc is not None:
            self._report["error"] = {"type": type(exc).__name__, "message": masked(str(exc))}
        if not isinstance(exc, BrokenPipeError):
            say_json(self._report)


def _tool_result(event: ev.ToolCallEnded) -> dict[str, object]:
    return {
        "id": event.call.id,
        "name": event.call.name,
        "arguments": _arguments(event.call),
        "status": str(event.status),
        "content": event.content,
        "error": event.error,
        "duration_s": round(event.duration_s, 6),
        "plugin": event.plugin,
        "distribution": event.distribution,
    }


def _arguments(call: ToolCall) -> object:
    """Return the arguments decoded, or the model's text where it is no JSON."""
    try:
        return json.loads(call.arguments_json or "{}")
    except ValueError:
        return call.arguments_json
