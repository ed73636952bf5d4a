"""The tools of a run as they are sent, and the way back from what the model wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from atlas_core import ToolSchema, strict_parameters, wire_names
from atlas_openai._strict import known_formats
from atlas_openai._wire import encode

__all__ = ["SentTool", "ToolTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTool:
    """A tool as the server gets it.

    Attributes:
        name: The name on the wire.
        description: What it does, or "".
        parameters: JSON Schema of its arguments.
        strict: Whether calls are held to that schema.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    strict: bool


class ToolTable:
    """Names and schemas of a run's tools, both ways.

    Args:
        tools: What is on offer.
        strict: Hold calls to the schemas that have a strict form; the others are sent as they are.
    """

    def __init__(self, tools: Iterable[ToolSchema], *, strict: bool) -> None:
        offered = tuple(tools)
        self._sent = wire_names(tool.name for tool in offered)
        self._named = {sent: name for name, sent in self._sent.items()}
        forms = {tool.name: strict_parameters(tool.parameters) if strict else None for tool in offered}
        self._strict = {self._sent[name]: form for name, form in forms.items() if form is not None}
        self.tools = tuple(
            SentTool(
                name=self._sent[tool.name],
                description=tool.description,
                parameters=known_formats(form.parameters) if (form := forms[tool.name]) else _object(tool.parameters),
                strict=form is not None,
            )
            for tool in offered
        )

    def sent(self, name: str) -> str:
        """Return the name on the wire, also of a tool that is no longer on offer or never was."""
        known = self._sent.get(name)
        if known is None:
            known = self._sent[name] = wire_names([name])[name]
        return known

    def named(self, sent: str) -> str:
        """Return the tool's name; what was never sent is what the model made up, and stays as it is."""
        return self._named.get(sent, sent)

    def offers(self, sent: str) -> bool:
        """Tell whether a name on the wire is an offered tool's."""
        return sent in self._named

    def restored(self, sent: str, arguments: str) -> str:
        """Return a call's arguments without the nulls that a strict schema forced upon the model."""
        form = self._strict.get(sent)
        if form is None:
            return arguments
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
        if not isinstance(value, dict):
            return arguments
        kept = form.restore(value)
        return arguments if kept == value else encode(kept).decode()


def _object(parameters: Mapping[str, object]) -> Mapping[str, object]:
    # OpenAI refuses an object's schema without properties (400, "object schema missing properties").
    if parameters.get("type") == "object" and "properties" not in parameters:
        return {**parameters, "properties": {}}
    return parameters
