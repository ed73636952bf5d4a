from __future__ import annotations

from typing import Any

import pytest
from atlas_offline.answers import NOTICE, abilities, answer, decline, is_greeting, welcome
from atlas_offline.matching import Match
from atlas_offline.planner import Done

from atlas_core import Example, ToolHints, ToolSchema


def done(tool: str, arguments: dict[str, Any], result: str, *, failed: bool = False) -> Done:
    """Return a call with its result."""
    found = Match(tool=ToolSchema(name=tool), arguments=arguments, how="", clause="")
    return Done(step=0, found=found, result=result, failed=failed)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("calculator_tool", {"expression": "sqrt(144) * 5"}, "60"), "sqrt(144) * 5 = 60 (calculator_tool)"),
        (("calculator_tool", {"expression": "1 / 2"}, "1 / 2 = 0.5"), "1 / 2 = 0.5 (calculator_tool)"),
        (("line_count", {"path": "a.txt"}, "42"), 'line_count(path="a.txt"): 42'),
        (("convert", {"value": 5, "unit": "km"}, "5000 m"), 'convert(value=5, unit="km"): 5000 m'),
        (("now", {}, '"2024"'), "now(): 2024"),
        (("now", {}, ""), "now(): (an empty result)"),
        (("read", {"path": "a"}, "x\ny"), 'read(path="a") returned:\nx\ny'),
        (("say", {"a": 1}, '{"text": "hello"}'), "say(a=1): hello"),
        (("say", {"a": 1}, '{"b": 2, "c": null}'), "say(a=1): b: 2, c: None"),
        (("say", {"a": 1}, '{"b": [2]}'), 'say(a=1): {"b": [2]}'),
        (("say", {"a": 1}, "[1, 2]"), "say(a=1): [1, 2]"),
    ],
)
def test_an_answer_quotes_the_result_and_names_the_tool(call: tuple[str, dict[str, Any], str], text: str) -> None:
    """A calculation reads as an equation, anything else as the call and what it gave."""
    assert answer([done(*call)]) == text


def test_a_failure_is_told_as_one() -> None:
    """The tool's own words are quoted, and that there is no answer."""
    text = answer([done("calculator_tool", {"expression": "1 / 0"}, "nothing can be divided by zero", failed=True)])
    assert text == 'calculator_tool(expression="1 / 0") failed, so there is no answer: nothing can be divided by zero'


def test_long_arguments_are_cut() -> None:
    """A text of many characters is not repeated in the answer."""
    assert "(5002 characters)" in answer([done("count", {"text": "x" * 5000, "n": 1}, "5")])


def test_a_plan_that_stopped_says_why_after_what_it_has() -> None:
    """Results so far come first, then the reason."""
    text = answer([done("now", {}, "1")], "it can't go on")
    assert text == f"now(): 1\nDeclined by the offline rules (no language model): it can't go on.\n{NOTICE}"


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "Hi there!",
        "help",
        "What can you do?",
        "good morning, what can you do for me?",
        "who are you",
        "help please",
    ],
)
def test_greetings_and_calls_for_help_are_told(text: str) -> None:
    """They are answered with what can be asked."""
    assert is_greeting(text)


@pytest.mark.parametrize(
    "text", ["", "  ", "??", "hello world program", "what can you do about rust", "help me move", "hi, 2 + 2?"]
)
def test_a_question_is_no_greeting(text: str) -> None:
    """Nothing else is taken for one."""
    assert not is_greeting(text)


def test_a_decline_says_why_what_works_and_how_to_use_a_model() -> None:
    """Examples of the tools' own, else descriptions, else that there are none."""
    tools = [
        ToolSchema(name="a", hints=ToolHints(examples=(Example("Do a", {}), Example("Do b", {}), Example("Do c", {})))),
        ToolSchema(name="b", description="Does b.\nMore.", parameters={"properties": {"x": {}, "y": {}}}),
        ToolSchema(name="c"),
    ]
    assert decline("it is Monday", tools).split("\n") == [
        "Declined by the offline rules (no language model): it is Monday.",
        "It plans calls of the tools on offer, for questions such as these:",
        '- a: "Do a"; "Do b"',
        "- b: Does b. (reads x, y from the question)",
        "- c: no description",
        NOTICE,
    ]
    assert "No tools are on offer" in decline("x", [])
    assert "and 8 more tools" in abilities([ToolSchema(name=f"t{n}") for n in range(20)])
    assert "no language model" in welcome(tools)
