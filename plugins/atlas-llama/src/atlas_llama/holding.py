"""What holds a model to its tools: a grammar that llama.cpp takes, and the checks of what the grammar leaves open."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atlas_core import ProviderError
from atlas_llama.grammar import RUNGS, SENTINEL, answer_grammar, probe_grammar
from atlas_llama.wire import Written, plain

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from atlas_core import ToolSchema

__all__ = ["Holding", "make_holding", "probe_body"]

Works = Callable[[str], Awaitable[bool]]
"""Asks llama.cpp whether it takes a grammar that begins with `SENTINEL`."""


def probe_body(grammar: str) -> dict[str, Any]:
    """Return the request that tries a grammar: one token after an empty line."""
    return {"prompt": "\n", "max_tokens": 1, "temperature": 0, "grammar": grammar}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A grammar with the checks that go with it.

    Attributes:
        grammar: What llama.cpp is given.
        names: The tools on offer.
        validators: One per tool, by name.
        answer: The validator of an answer that is no call; None where that is text.
    """

    grammar: str
    names: tuple[str, ...]
    validators: Mapping[str, Validator]
    answer: Validator | None = None

    @staticmethod
    def begins_probe(text: str) -> bool:
        """Whether a probe's answer shows that its grammar was in force."""
        return SENTINEL.startswith(text) or text.startswith(SENTINEL)

    def problem(self, written: Written) -> str | None:
        """Return why an answer can't stand, in words for the model; None if it can."""
        if written.rest:
            return f"That is no complete call: {written.rest[:200]!r}. Write it again, exactly in the form described."
        for call in written.calls:
            if problem := _violation(self.validators[call.name], call.arguments_json):
                return f"The arguments of {call.name!r} do not fit its parameters: {problem}. Call it again."
        if self.answer is not None and not written.calls and (problem := _violation(self.answer, written.text)):
            return f"That answer does not meet the schema: {problem}. Write the JSON object again."
        return None


def _violation(validator: Validator, text: str) -> str | None:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # 1e999 is read as infinity, which is no JSON any more
        error = next(iter(validator.iter_errors(value)), None)
    except ValueError as exc:
        return str(exc)[:200]
    except RecursionError:
        return "it is nested too deeply"
    return None if error is None else f"{error.message[:200]} (at {error.json_path})"


def _validator(schema: dict[str, Any]) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # nothing is ever fetched

    return validator_for(schema, default=Draft202012Validator)(_without_foreign_patterns(schema), registry=REGISTRY)


def _without_foreign_patterns(schema: Any) -> Any:
    """Leave out patterns that are no regular expressions to Python: schemas speak JavaScript's dialect."""
    if isinstance(schema, list):
        return [_without_foreign_patterns(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_foreign_patterns(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and not _compiles(value))
    }


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


async def make_holding(
    tools: Sequence[ToolSchema],
    output_schema: Mapping[str, object] | None,
    *,
    end_ids: Sequence[int],
    works: Works,
) -> Holding:
    """Find the closest grammar that llama.cpp takes.

    All is tried at once, and each schema by itself only where that fails.

    Args:
        tools: The tools on offer.
        output_schema: Schema of an answer that is no call, or None.
        end_ids: Tokens that end an answer.
        works: Asks llama.cpp.
    Raises:
        ProviderError: It takes none.
    """
    schemas = [plain(tool.parameters) for tool in tools]
    answer = plain(output_schema) if output_schema is not None else None
    every = schemas if answer is None else [*schemas, answer]
    close = [RUNGS[0](schema) for schema in every]
    fitted = close
    if not await works(_grammar(tools, close, answer, end_ids, probe=True)):
        fitted = [await _fit(schema, works) for schema in every]
        if not await works(_grammar(tools, fitted, answer, end_ids, probe=True)):
            raise ProviderError(
                f"llama.cpp takes no grammar for {len(tools)} tools",
                remedy="offer fewer or simpler tools, or update xllamacpp",
            )
    return Holding(
        grammar=_grammar(tools, fitted, answer, end_ids),
        names=tuple(tool.name for tool in tools),
        validators={tool.name: _validator(schema) for tool, schema in zip(tools, schemas, strict=True)},
        answer=None if answer is None else _validator(answer),
    )


def _grammar(
    tools: Sequence[ToolSchema],
    schemas: Sequence[dict[str, Any]],
    answer: object,
    end_ids: Sequence[int],
    *,
    probe: bool = False,
) -> str:
    return answer_grammar(
        list(zip(tools, schemas, strict=False)),  # the answer's, if there is one, comes last
        answer=None if answer is None else schemas[-1],
        end_ids=end_ids,
        probe=probe,
    )


async def _fit(schema: dict[str, Any], works: Works) -> dict[str, Any]:
    for rung in RUNGS:
        fitted = rung(schema)
        if await works(probe_grammar(fitted)):
            return fitted
    return fitted
