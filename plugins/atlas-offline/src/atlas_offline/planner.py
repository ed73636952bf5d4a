"""From a question to steps, and from a conversation to the step that is due. Nothing is remembered between requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from atlas_core import ChatMessage, ToolSchema
from atlas_offline import chaining
from atlas_offline.chaining import Value, fill, read_value
from atlas_offline.lookalikes import calculates
from atlas_offline.matching import AN_EXAMPLE, Match, Refusal, match

__all__ = ["Done", "Plan", "Progress", "Step", "make_plan", "progress", "resolve"]

_EARLIER = -1
"""As `Step.refers`: the result of the turn before, or a number that the question itself sets first."""
_MAX_STEPS = 12
_MAX_DEPTH = 6
_MAX_TRIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call to come.

    Attributes:
        clause: The part of the question that it answers.
        found: The call, where it needs no earlier result; else the call as planned on a stand-in.
        refers: The step whose result it uses, -1 for the turn before, None for none.
        templates: How the clause may read with that result in it.
    """

    clause: str
    found: Match
    refers: int | None = None
    templates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of a question, in order, and the earlier value that some refer to."""

    steps: tuple[Step, ...]
    earlier: Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A call that was made and its result."""

    step: int
    found: Match
    result: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a plan has come.

    Attributes:
        done: Calls with their results, in order.
        ready: Steps that can be called now, with their calls.
        refusal: Why the plan can't go on, or None.
    """

    done: tuple[Done, ...] = ()
    ready: tuple[tuple[int, Match], ...] = ()
    refusal: Refusal | None = None


@dataclass(slots=True)
class _Planner:
    tools: Sequence[ToolSchema]
    earlier: Value | Refusal | None
    tries: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    def plan(self, question: str) -> Plan | Refusal:
        """Plan the whole question or nothing: every part must be planned before the first call is made."""
        whole = match(question, self.tools)
        if isinstance(whole, Match) and whole.how == AN_EXAMPLE:
            return Plan(steps=(Step(clause=question, found=whole),))
        parts, has_then = chaining.clauses(question)
        # "then" states an order, which a tool's reading of the whole might lose; else the whole comes first.
        ways = [[question], parts] if not has_then else [parts, [question]]
        if has_then and len(parts) > 1:
            ways = [parts]
        for way in ways:
            steps = self._steps(way)
            if steps:
                earlier = self.earlier if isinstance(self.earlier, Value) else None
                return Plan(steps=tuple(steps), earlier=earlier)
        return max(self.refusals, key=lambda refusal: refusal.rank, default=Refusal("the question has too many parts"))

    def _steps(self, parts: Sequence[str]) -> list[Step]:
        if len(parts) > 1 and (value := chaining.seed(parts[0])):
            self.earlier, parts = value, parts[1:]
        steps: list[Step] = []
        for part in parts:
            more = self._add(steps, part, _MAX_DEPTH)
            if more is None:
                return []
            steps = more
        return steps

    def _add(self, steps: list[Step], clause: str, depth: int) -> list[Step] | None:
        """Add the steps of a clause: as one call, or cut in two at "and" or a comma; None if neither can be planned."""
        if len(steps) >= _MAX_STEPS or depth == 0 or self.tries > _MAX_TRIES:
            return None
        if single := self._single(steps, clause):
            return [*steps, *single]
        for left, right in chaining.pieces(clause):
            if not steps and (value := chaining.seed(left)):
                self.earlier, first = value, []
            elif not (first := self._single(steps, left)):
                continue
            for text in chaining.borrowed(left, right):
                if rest := self._add([*steps, *first], text, depth - 1):
                    return rest
        return None

    def _single(self, steps: list[Step], clause: str) -> list[Step]:
        self.tries += 1
        found = match(clause, self.tools)
        if isinstance(found, Match):
            if steps and chaining.refers(clause) and self._with_reference(steps, clause):
                self.refusals.append(Refusal(f"{clause!r} may speak of the result before, or may not", rank=6))
                return []
            return [Step(clause=clause, found=found)]
        self.refusals.append(found)
        return self._with_unit(steps, clause) or self._with_reference(steps, clause)

    def _with_unit(self, steps: list[Step], clause: str) -> list[Step]:
        """Plan `12 * 5 km in miles`: calculate first, convert the result."""
        cut = chaining.unit_split(clause)
        if cut is None:
            return []
        first = match(cut[0], self.tools)
        if not isinstance(first, Match):
            return []
        second = self._referring(clause, (cut[1],), len(steps), chaining.placeholders(first))
        return [Step(clause=cut[0], found=first), second] if second else []

    def _with_reference(self, steps: list[Step], clause: str) -> list[Step]:
        """Plan a clause that speaks of an earlier result; there must be exactly one that it can mean."""
        templates = tuple(dict.fromkeys(chaining.templates(clause)))
        if not templates:
            return []
        used = {step.refers for step in steps}
        candidates = [i for i in range(len(steps)) if i not in used]
        if len(candidates) > 1:
            self.refusals.append(Refusal(f"{clause!r} may refer to any of {len(candidates)} results", rank=6))
            return []
        if candidates:
            index = candidates[0]
            step = self._referring(clause, templates, index, chaining.placeholders(steps[index].found))
        elif isinstance(self.earlier, Value):
            step = self._referring(clause, templates, _EARLIER, [self.earlier])
        else:
            # Told only where a result would help: the "it" of "what year is it" means nothing said before.
            if self._referring(clause, templates, _EARLIER, chaining.ANY_NUMBER):
                none = Refusal(f"{clause!r} refers to a result, and there is none before it", rank=3)
                self.refusals.append(self.earlier or none)
            return []
        return [step] if step else []

    def _referring(self, clause: str, templates: tuple[str, ...], refers: int, values: Sequence[Value]) -> Step | None:
        found = resolve(templates, values, self.tools)
        if isinstance(found, Match):
            return Step(clause=clause, found=found, refers=refers, templates=templates)
        # Other reasons would speak of the stand-in, which nobody wrote.
        unfit = Refusal(f"no tool on offer fits {clause!r} with an earlier result", rank=2)
        self.refusals.append(found if found.rank >= 6 else unfit)
        return None


def resolve(templates: Sequence[str], values: Sequence[Value], tools: Sequence[ToolSchema]) -> Match | Refusal:
    """Plan the first template that takes one of the values."""
    refusal = Refusal("no tool on offer fits the question")
    for template in templates:
        for value in values:
            found = fill(template, value, tools)
            if isinstance(found, Match):
                return found
            refusal = max(refusal, found, key=lambda r: r.rank)
    return refusal


def make_plan(question: str, tools: Sequence[ToolSchema], earlier: Value | Refusal | None = None) -> Plan | Refusal:
    """Plan the calls that answer a question, all of it or nothing.

    Args:
        question: The question, normalised.
        tools: The tools on offer.
        earlier: The result of the turn before, that "that" may mean; a refusal where there is one that can't be told.
    """
    planner = _Planner(tools, earlier)
    plan = planner.plan(question)
    if isinstance(plan, Refusal) and plan.rank < 7:
        found = match(question, tools, fallback=True)
        if isinstance(found, Match):
            return Plan(steps=(Step(clause=question, found=found),))
    return plan


def progress(plan: Plan, turn: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> Progress:
    """Tell what is due, by running the plan again over what followed the question.

    Args:
        plan: The plan of the turn's question.
        turn: The messages after the question.
        tools: The tools on offer.
    """
    done: dict[int, Done] = {}
    results = {m.tool_call_id: m for m in turn if m.role == "tool"}
    for message in turn:
        if message.role != "assistant" or not message.tool_calls:
            continue
        now = _ready(plan, done, tools)
        if isinstance(now, Refusal) or [f.tool.name for _, f in now] != [c.name for c in message.tool_calls]:
            return Progress(
                done=_in_order(done), refusal=Refusal("the calls made so far are not those of this question")
            )
        for (index, found), call in zip(now, message.tool_calls, strict=True):
            answer = results.get(call.id)
            text, failed = (answer.text, answer.is_error) if answer else ("no result came", True)
            done[index] = Done(step=index, found=found, result=text, failed=failed)
    if any(d.failed for d in done.values()):
        return Progress(done=_in_order(done))
    ready = _ready(plan, done, tools)
    if isinstance(ready, Refusal):
        return Progress(done=_in_order(done), refusal=ready)
    return Progress(done=_in_order(done), ready=tuple(ready))


def _in_order(done: dict[int, Done]) -> tuple[Done, ...]:
    return tuple(done[index] for index in sorted(done))


def _ready(plan: Plan, done: dict[int, Done], tools: Sequence[ToolSchema]) -> list[tuple[int, Match]] | Refusal:
    """Return the steps whose results are not there yet and whose needs are, with their calls."""
    ready: list[tuple[int, Match]] = []
    for index, step in enumerate(plan.steps):
        if index in done or (step.refers is not None and step.refers >= 0 and step.refers not in done):
            continue
        if step.refers is None:
            ready.append((index, step.found))
            continue
        value = plan.earlier if step.refers == _EARLIER else _value(done[step.refers])
        found = resolve(step.templates, [value] if value else [], tools)
        if isinstance(found, Refusal):
            return Refusal(f"{step.clause!r} can't be done with the result before it: {found.reason}", rank=found.rank)
        ready.append((index, found))
    return ready


def _value(done: Done) -> Value:
    return _with_expression(read_value(done.result), done.found.tool.name, done.found.arguments)


def _with_expression(value: Value, name: str, arguments: Mapping[str, object]) -> Value:
    """Keep what a value was calculated from, if a tool that calculates was given nothing but one text."""
    texts = list(arguments.values())
    if len(texts) == 1 and isinstance(texts[0], str) and calculates(ToolSchema(name=name), arguments):
        return chaining.calculated(value, texts[0])
    return value


def _exchange(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the messages after the last user message, the latest first."""
    for message in reversed(messages):
        if message.role == "user":
            return
        yield message


def earlier_result(history: Sequence[ChatMessage]) -> Value | Refusal | None:
    """Return the one result of the turn before, a refusal where it is not one, None where there is no such turn."""
    turn = list(_exchange(history))[::-1]
    asked = [m for m in turn if m.role == "assistant" and m.tool_calls]
    if not asked:
        answer = next((m.text for m in reversed(turn) if m.role == "assistant"), "")
        value = read_value(answer) if answer else None
        return value if value and value.number is not None else None
    last = asked[-1].tool_calls
    if len(last) > 1:
        return Refusal(f"the turn before has {len(last)} results, and it is not clear which is meant", rank=6)
    result = next((m for m in turn if m.role == "tool" and m.tool_call_id == last[0].id), None)
    if result is None or result.is_error:
        return Refusal("the turn before ended without a result to go on with", rank=6)
    try:
        arguments = last[0].arguments
    except ValueError:  # a model wrote them, and the call may have been repaired
        arguments = {}
    return _with_expression(read_value(result.text), last[0].name, arguments)
