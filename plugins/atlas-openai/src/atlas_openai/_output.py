"""Answers that are held to a JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atlas_core import LLMDefaults, strict_parameters
from atlas_openai._strict import known_formats
from atlas_openai._wire import encode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OutputForm", "output_form", "response_format", "text_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputForm:
    """The schema as it is sent.

    Attributes:
        name: Its name.
        schema: The strict form where there is one, else the schema as it is.
        strict: Which of the two it is.
        restore: Takes out the nulls that the strict form forced upon the model.
    """

    name: str
    schema: Mapping[str, object]
    strict: bool
    restore: Callable[[dict[str, object]], dict[str, object]]

    def restored(self, text: str) -> str:
        """Return an answer's text as the original schema means it; what is no object stays as it is."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if not isinstance(value, dict):
            return text
        kept = self.restore(value)
        return text if kept == value else encode(kept).decode()


def output_form(defaults: LLMDefaults) -> OutputForm | None:
    """Return the form that the run's answers are held to, or None."""
    schema = defaults.output_schema
    if schema is None:
        return None
    name = defaults.output_name or "answer"
    form = strict_parameters(schema)
    if form is None:
        return OutputForm(name=name, schema=schema, strict=False, restore=dict)
    return OutputForm(name=name, schema=known_formats(form.parameters), strict=True, restore=form.restore)


def response_format(form: OutputForm) -> dict[str, object]:
    """Return the field `response_format` of Chat Completions."""
    return {
        "type": "json_schema",
        "json_schema": {"name": form.name, "schema": form.schema, "strict": form.strict},
    }


def text_format(form: OutputForm) -> dict[str, object]:
    """Return the field `text` of Responses."""
    return {"format": {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": form.strict}}
