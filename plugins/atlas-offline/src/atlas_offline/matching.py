"""Which tool a clause is for, and with which arguments: hints first, then the schema, then fallback tools."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atlas_core import ToolHints, ToolSchema
from atlas_offline import extraction
from atlas_offline.lookalikes import calculates, lookalike
from atlas_offline.phrasing import forms, unpunctuated
from atlas_offline.relevance import concerns
from atlas_offline.words import name_words, number_values, phrases, unused_numbers, without_quotes

__all__ = ["AN_EXAMPLE", "Match", "Refusal", "match", "numbers_in"]

_LOG = logging.getLogger(__name__)
_USE = re.compile(r"(?:please )?(?:use|using|with|via|call|run|ask|invoke)\s+(?:the\s+)?", re.IGNORECASE)
_NAME = re.compile(r"[`'\"]?(?P<name>[\w-]+)[`'\"]?(?P<gap>[:,]?\s+)")
_AFTER_NAME = re.compile(r"^(?:tool\b[:,]?\s*)?(?:to|and|for|on|with(?: the)? arguments?|with|:)?\s*", re.IGNORECASE)

AN_EXAMPLE = "an example of the tool"
_AS_JSON = "its arguments as JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A tool that takes a clause.

    Attributes:
        tool: The tool.
        arguments: Arguments to call it with, JSON values.
        how: By which rule, as a fact to show.
        clause: What it was matched against.
    """

    tool: ToolSchema
    arguments: Mapping[str, object]
    how: str
    clause: str

    def thought(self) -> str:
        """Say what was matched, in facts: the words, how many numbers, and by which rule.

        What stands in quotes is passed on, not matched, so its words and numbers are no part of it.
        """
        clause, quoted = without_quotes(self.clause)
        facts = [f"'{phrase}'" for phrase in phrases(clause)]
        facts.append(_count(numbers_in(clause), "number"))
        facts += [_count(quoted, "quoted text")] if quoted else []
        return f"matched {self.tool.name}: {', '.join(facts)} ({self.how})"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no tool takes a clause. The reason with the highest `rank` is the one to tell."""

    reason: str
    rank: int = 0


def numbers_in(text: str) -> int:
    """Count the numbers that a text states."""
    return len(number_values(text))


def match(clause: str, tools: Sequence[ToolSchema], *, fallback: bool = False) -> Match | Refusal:
    """Find the one tool that takes the clause as a whole.

    Args:
        clause: A question or a part of one, normalised.
        tools: The tools on offer.
        fallback: Whether search-like tools may take it where no other does.
    """
    if re.fullmatch(r"[-+]?[\d,\s]*\.?\d+\s*%?", clause):
        return Refusal("a number alone is no question", rank=2)
    named = _named_tool(clause, tools)
    if named is None:
        return _match_one_of(clause, tools, named=False, fallback=fallback)
    tool, rest = named
    answer = _match_one_of(rest, [tool], named=True, fallback=True)
    if isinstance(answer, Match) or _USE.match(clause):
        return answer
    # A tool's name may also be a plain word of the question: "echo hello" for a tool named `echo`.
    other = _match_one_of(clause, tools, named=False, fallback=fallback)
    return other if isinstance(other, Match) or other.rank > answer.rank else answer


def _named_tool(clause: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, str] | None:
    """Find the tool that the clause names: after "use" or the like, or by a name that can be no plain word here."""
    use = _USE.match(clause)
    found = _NAME.match(clause, use.end() if use else 0)
    if not found or not clause[found.end() :].strip():
        return None
    rest = clause[found.end() :]
    wanted = found["name"].lower().replace("-", "_")
    if not (use or "_" in wanted or ":" in found["gap"] or rest.startswith("{")):
        return None
    for tool in tools:
        whole = tool.name.lower().replace("-", "_")
        if wanted == whole or (use and wanted == whole.removesuffix("_tool")):
            return tool, _AFTER_NAME.sub("", rest, count=1)
    return None


def _match_one_of(clause: str, tools: Sequence[ToolSchema], *, named: bool, fallback: bool) -> Match | Refusal:
    refusals = [_nothing_fits(clause, tools)]
    for rule in (_hinted, _typed):
        matches: list[Match] = []
        for tool in tools:
            answer = rule(clause, tool, named=named)
            if isinstance(answer, Match):
                answer = _checked(answer)
            if isinstance(answer, Match):
                matches.append(answer)
            elif answer is not None:
                refusals.append(answer)
        if matches:
            return _the_one(matches)
    if fallback and (answer := _fallback(clause, tools)):
        return answer
    return max(refusals, key=lambda refusal: refusal.rank)


def _nothing_fits(clause: str, tools: Sequence[ToolSchema]) -> Refusal:
    """Say that no tool fits, and why where it can be told: what looks like arithmetic and is none, or which words."""
    if any(calculates(tool, {}) for tool in tools) and (reason := lookalike(clause)):
        return Refusal(reason, rank=1)
    said = [f"'{phrase}'" for phrase in phrases(without_quotes(clause)[0])]
    return Refusal("no tool on offer fits the question" + (f" (its words: {', '.join(said)})" if said else ""))


def _the_one(matches: list[Match]) -> Match | Refusal:
    """Choose among several takers: only one, or copies of the same tool under several names."""
    first = matches[0]
    if all(_same_tool(first, other) for other in matches[1:]):
        return first
    names = " and ".join(sorted({m.tool.name for m in matches}))
    return Refusal(f"more than one tool fits: {names}; say which, as in 'use {first.tool.name} to ...'", rank=6)


def _same_tool(one: Match, other: Match) -> bool:
    if one.tool.hints is None or other.tool.hints is None or one.arguments != other.arguments:
        return False
    return one.tool.hints == other.tool.hints


def _checked(found: Match) -> Match | Refusal:
    """Refuse a match that would leave a number out or calculate with what is no number to calculate with."""
    if found.how != _AS_JSON and calculates(found.tool, found.arguments) and (reason := lookalike(found.clause)):
        return Refusal(reason, rank=5)
    if unused := unused_numbers(found.clause, found.arguments.values()):
        return Refusal(f"{found.tool.name} would leave out the number {', '.join(unused)}", rank=4)
    try:
        json.dumps(dict(found.arguments), allow_nan=False)
    except (TypeError, ValueError):
        _LOG.warning("the hints of tool %r gave arguments that are no JSON values", found.tool.name)
        return Refusal(f"the hints of {found.tool.name} gave arguments that are no JSON values", rank=1)
    return found


def _hinted(clause: str, tool: ToolSchema, *, named: bool) -> Match | Refusal | None:
    if named and (given := _given_outright(clause)) is not None:
        return Match(tool=tool, arguments=given, how=_AS_JSON, clause=clause)
    hints = tool.hints
    if hints is None:
        return None
    refusal = None
    for rule in (_by_example, _by_pattern, _by_parse):
        for form in forms(clause):
            answer = rule(form, tool, hints)
            if isinstance(answer, Refusal):
                refusal = answer
            elif answer is not None:
                arguments, how = answer
                if lacking := extraction.required_missing(tool, arguments):
                    refusal = _needs(tool, lacking)
                else:
                    # The whole clause is kept: a number that a rule's form lost must still be accounted for.
                    return Match(tool=tool, arguments=arguments, how=how, clause=clause)
    return refusal


def _given_outright(clause: str) -> dict[str, object] | None:
    """Read a clause that is nothing but a JSON object of arguments."""
    if not clause.startswith("{"):
        return None
    try:
        given = json.loads(clause)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


_Found = tuple[dict[str, object], str] | None


def _by_example(form: str, tool: ToolSchema, hints: ToolHints) -> _Found:
    key = unpunctuated(form.casefold())
    for example in hints.examples:
        if unpunctuated(example.question.casefold()) == key:
            return dict(example.arguments), AN_EXAMPLE
    return None


def _by_pattern(form: str, tool: ToolSchema, hints: ToolHints) -> _Found:
    for pattern in hints.patterns:
        try:
            found = re.fullmatch(_source(pattern), form, _flags(pattern))
        except re.error:
            _LOG.warning("tool %r has a pattern that is no regular expression: %r", tool.name, pattern)
            continue
        if found:
            groups = {name: value for name, value in found.groupdict().items() if value is not None}
            arguments = extraction.coerce(tool, groups)
            if arguments is not None:
                return arguments, "a pattern of the tool"
    return None


def _source(pattern: str | re.Pattern[str]) -> str:
    return pattern if isinstance(pattern, str) else pattern.pattern


def _flags(pattern: str | re.Pattern[str]) -> int:
    return re.IGNORECASE if isinstance(pattern, str) else pattern.flags | re.IGNORECASE


def _by_parse(form: str, tool: ToolSchema, hints: ToolHints) -> _Found:
    if hints.parse is None:
        return None
    try:
        found = hints.parse(form)
    except Exception:  # noqa: BLE001 - a plugin's own code: its fault must not end the run, and other tools may still fit
        _LOG.exception("the parse hint of tool %r failed on %r", tool.name, form[:200])
        return None
    if found is None or not isinstance(found, Mapping):
        return None
    return {str(key): value for key, value in found.items()}, "the tool's own reading"


def _needs(tool: ToolSchema, names: Sequence[str]) -> Refusal:
    example = ", ".join(f'{name}="..."' for name in names)
    return Refusal(f"{tool.name} needs: {', '.join(names)} (write it as {example})", rank=7)


def _typed(clause: str, tool: ToolSchema, *, named: bool) -> Match | Refusal | None:
    """Match a tool by the types of its parameters; for tools that bring no way of reading a question."""
    if tool.hints is not None and (tool.hints.parse or tool.hints.patterns or tool.hints.fallback):
        return None
    if not named and not concerns(clause, tool):
        return None
    found = extraction.extract(clause, tool)
    if found.unclear:
        return Refusal(f"{tool.name}: {found.unclear}", rank=6)
    if found.leftover and not found.missing:
        return Refusal(f"{tool.name} has no use for {_quoted(found.leftover)}", rank=3)
    if found.missing:
        return Refusal(_needs(tool, found.missing).reason, rank=2 if found.leftover else 7)
    return Match(tool=tool, arguments=found.arguments, how="the types of its parameters", clause=clause)


def _quoted(items: Sequence[str]) -> str:
    return ", ".join(f"'{item}'" for item in items[:5])


def _fallback(clause: str, tools: Sequence[ToolSchema]) -> Match | Refusal | None:
    takers = [(t, p) for t in tools if t.hints is not None and t.hints.fallback and (p := extraction.text_parameter(t))]
    if not takers:
        return None
    if len(takers) > 1:
        named = [(t, p) for t, p in takers if set(name_words(t.name)) & set(clause.lower().split())]
        if len(named) != 1:
            names = " and ".join(sorted(t.name for t, _ in takers))
            return Refusal(f"more than one tool takes any question: {names}; say 'use NAME to ...'", rank=6)
        takers = named
    tool, parameter = takers[0]
    return Match(tool=tool, arguments={parameter: clause}, how="it takes any question", clause=clause)
