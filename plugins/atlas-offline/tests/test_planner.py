from __future__ import annotations

from typing import Any

import pytest
from atlas_offline.chaining import Value
from atlas_offline.matching import Refusal
from atlas_offline.planner import Plan, earlier_result, make_plan, progress

from atlas_core import ChatMessage, ToolCall, ToolHints, ToolSchema


def planned(question: str, offered: Any, earlier: Any = None) -> list[tuple[str, dict[str, object] | None, int | None]]:
    """Return a plan's steps as (tool, arguments where known, what it refers to)."""
    plan = make_plan(question, offered, earlier)
    assert isinstance(plan, Plan), plan
    return [
        (s.found.tool.name, None if s.refers is not None else dict(s.found.arguments), s.refers) for s in plan.steps
    ]


def test_one_question_is_one_step(schemas: Any) -> None:
    """A question that one tool takes whole is not cut."""
    assert planned("What is 2 + 2?", schemas()) == [("calculator", {"expression": "2 + 2"}, None)]


@pytest.mark.parametrize(
    "question", ["What is 2 + 2? What is 3 * 3?", "What is 2 + 2 and 3 * 3", "2 + 2; 3 * 3", "2 + 2, 3 * 3"]
)
def test_two_questions_are_two_steps_at_once(schemas: Any, question: str) -> None:
    """Parts that don't need each other refer to nothing."""
    assert planned(question, schemas()) == [
        ("calculator", {"expression": "2 + 2"}, None),
        ("calculator", {"expression": "3 * 3"}, None),
    ]


@pytest.mark.parametrize(
    "question",
    [
        "What is 2 + 2, then multiply that by 3",
        "What is 2 + 2? Multiply the result by 3.",
        "What is 2 + 2 and multiply it by 3",
        "Start with 2, add 2, multiply by 3",
        "Start with 2. Add 2. Multiply by 3.",
        "2 + 2 then * 3",
    ],
)
def test_a_part_that_says_that_waits_for_the_part_before(schemas: Any, question: str) -> None:
    """The second step's arguments are not known before the first has its result."""
    name, arguments, refers = planned(question, schemas())[-1]
    assert (name, arguments, refers) == ("calculator", None, 0)


def test_a_chain_goes_from_tool_to_tool(schemas: Any) -> None:
    """Each step takes the one before, whichever tool it is of."""
    steps = planned("convert 5 km to m, then to cm, then divide that by 2", schemas())
    assert [(name, refers) for name, _, refers in steps] == [("lengths", None), ("lengths", 0), ("calculator", 1)]


def test_a_calculation_with_a_unit_is_two_steps(schemas: Any) -> None:
    """First the calculation, then the conversion of its result."""
    steps = planned("What is 2 * 3 km in m?", schemas())
    assert [(name, refers) for name, _, refers in steps] == [("calculator", None), ("lengths", 0)]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What is 2 + 2, then paint it green", "no tool on offer fits 'paint it green'"),
        ("What is 2 + 2? What is 3 + 3? Multiply that by 2", "may refer to any of 2 results"),
        ("multiply that by 2", "refers to a result, and there is none before it"),
        ("What is 2 + 2, then multiply the sum of those by 2", "no tool on offer fits"),
        ("What is the weather, then double it", "needs: city"),
        ("; ".join(["2 + 2"] * 9), "no tool on offer fits"),
    ],
)
def test_all_parts_are_planned_or_none(schemas: Any, question: str, reason: str) -> None:
    """A question is not begun where its end can't be planned."""
    plan = make_plan(question, schemas())
    assert isinstance(plan, Refusal)
    assert reason in plan.reason


def test_then_is_never_lost_in_a_reading_of_the_whole() -> None:
    """A tool that swallows "then" does not get the whole question."""
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    greedy = ToolSchema(name="sums", parameters=schema, hints=ToolHints(parse=lambda q: {"expression": q}))
    plan = make_plan("2 + 3 then * 4", [greedy])
    assert isinstance(plan, Plan)
    assert len(plan.steps) == 2


def test_an_earlier_result_stands_for_that(schemas: Any) -> None:
    """The turn before gives the number, or the reason why it does not."""
    assert planned("multiply that by 3", schemas(), Value(text="4", number="4"))[0][2] == -1
    refused = make_plan("multiply that by 3", schemas(), Refusal("two results", rank=6))
    assert refused == Refusal("two results", rank=6)


def test_a_search_takes_what_is_left() -> None:
    """A fallback tool gets the question whole, but not where a tool only lacks an argument."""
    text = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    search = ToolSchema(name="search", parameters=text, hints=ToolHints(fallback=True))
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    weather = ToolSchema(name="get_weather", description="Get the weather for a city.", parameters=city)
    assert planned("who won in 2014, and why?", [search, weather]) == [
        ("search", {"query": "who won in 2014, and why?"}, None)
    ]
    refused = make_plan("What's the weather?", [search, weather])
    assert isinstance(refused, Refusal)
    assert "needs: city" in refused.reason


def turn(*calls: tuple[str, str, str, bool]) -> list[ChatMessage]:
    """Return one assistant message with calls, and their results: (tool, arguments, result, failed)."""
    made = [ToolCall(f"{name}-{arguments}-{n}", name, arguments) for n, (name, arguments, _, _) in enumerate(calls)]
    results = [ChatMessage.tool(c, r, is_error=failed) for c, (_, _, r, failed) in zip(made, calls, strict=True)]
    return [ChatMessage.assistant("", made), *results]


def test_progress_goes_step_by_step(schemas: Any) -> None:
    """Each result makes the next step ready, with the real result in it."""
    offered = schemas()
    plan = make_plan("2 + 2 then * 3", offered)
    assert isinstance(plan, Plan)
    first = progress(plan, [], offered)
    assert [found.arguments for _, found in first.ready] == [{"expression": "2 + 2"}]
    messages = turn(("calculator", '{"expression": "2 + 2"}', "4", False))
    second = progress(plan, messages, offered)
    assert [found.arguments for _, found in second.ready] == [{"expression": "4 * 3"}]
    messages += turn(("calculator", '{"expression": "4 * 3"}', "12", False))
    last = progress(plan, messages, offered)
    assert last.ready == ()
    assert [d.result for d in last.done] == ["4", "12"]


def test_progress_stops_at_a_failure(schemas: Any) -> None:
    """Nothing is called on the result of a call that failed, or that has no result."""
    offered = schemas()
    plan = make_plan("2 + 2 then * 3", offered)
    assert isinstance(plan, Plan)
    failed = progress(plan, turn(("calculator", "{}", "boom", True)), offered)
    assert (failed.ready, failed.done[0].failed) == ((), True)
    lost = progress(plan, turn(("calculator", "{}", "4", False))[:1], offered)
    assert (lost.ready, lost.done[0].result) == ((), "no result came")


def test_progress_stops_where_a_result_does_not_fit(schemas: Any) -> None:
    """A text where a number was expected ends the plan, and says so."""
    offered = schemas()
    plan = make_plan("2 + 2 then * 3", offered)
    assert isinstance(plan, Plan)
    stuck = progress(plan, turn(("calculator", "{}", "a lot", False)), offered)
    assert stuck.ready == ()
    assert stuck.refusal is not None
    assert "can't be done with the result before it" in stuck.refusal.reason
    assert [d.result for d in stuck.done] == ["a lot"]


def test_calls_of_someone_else_are_not_taken_for_the_plan_s(schemas: Any) -> None:
    """Another model's calls in the same turn are not explained as ours."""
    offered = schemas()
    plan = make_plan("2 + 2", offered)
    assert isinstance(plan, Plan)
    state = progress(plan, turn(("lengths", "{}", "4", False)), offered)
    assert state.refusal is not None
    assert state.ready == ()


def history(*messages: ChatMessage) -> list[ChatMessage]:
    """Put a question before the messages."""
    return [ChatMessage.user("q"), *messages]


def test_the_turn_before_has_one_result_or_none() -> None:
    """One call's result, the last of a chain, or a number that was answered."""
    one = turn(("calculator", "{}", "4", False))
    two = turn(("calculator", "{}", "4", False), ("calculator", "{}", "9", False))
    assert earlier_result(history(*one)) == Value(text="4", number="4")
    assert earlier_result(history(*two, *one)) == Value(text="4", number="4")
    assert isinstance(earlier_result(history(*two)), Refusal)
    assert isinstance(earlier_result(history(*turn(("calculator", "{}", "no", True)))), Refusal)
    assert isinstance(earlier_result(history(*one[:1])), Refusal)
    assert earlier_result(history(ChatMessage.assistant("The answer is 42."))) == Value(
        text="The answer is 42.", number="42"
    )
    assert earlier_result(history(ChatMessage.assistant("In 1999 I sang."))) is None
    assert earlier_result(history()) is None
    assert earlier_result([]) is None


@pytest.mark.parametrize(
    ("arguments", "result", "exact"),
    [
        ('{"expression": "1 / 3"}', "0.333333333333333", "1 / 3"),
        ('{"expression": "sqrt(2)"}', "1.4142135623731", "sqrt(2)"),
        ('{"expression": "1 / 8"}', "0.125", ""),
        ('{"expression": "2 ** 60"}', "no number", ""),
        ('{"expression": "' + "1 + " * 50 + '1 / 3"}', "50.3333333333333", ""),
        ("{broken", "0.333333333333333", ""),
        ("{}", "0.333333333333333", ""),
    ],
)
def test_a_rounded_result_is_kept_with_its_expression(arguments: str, result: str, exact: str) -> None:
    """So that a third, times 3, is 1; whatever another model wrote as arguments is borne."""
    value = earlier_result(history(*turn(("calculator", arguments, result, False))))
    assert isinstance(value, Value)
    assert value.exact == exact
