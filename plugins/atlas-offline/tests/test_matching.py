from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from atlas_offline.matching import Match, Refusal, match

from atlas_core import Example, ToolHints, ToolSchema

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def hinted(name: str = "tool", parameters: Any = TEXT, **hints: Any) -> ToolSchema:
    """Make a schema with hints."""
    return ToolSchema(name=name, parameters=parameters, hints=ToolHints(**hints))


def arguments(found: Match | Refusal) -> dict[str, object]:
    """Return a match's arguments."""
    assert isinstance(found, Match), found
    return dict(found.arguments)


def reason(found: Match | Refusal) -> str:
    """Return a refusal's reason."""
    assert isinstance(found, Refusal), found
    return found.reason


@pytest.mark.parametrize(
    "question",
    [
        "shout loud",
        "Shout LOUD!",
        "please shout loud",
        "can you shout loud for me?",
        "hey, shout loud, thanks",
        "ok so shout loud.",
    ],
)
def test_a_pattern_takes_the_whole_question_whatever_its_case_and_politeness(question: str) -> None:
    """Polite words, case and the last mark make no difference."""
    assert arguments(match(question, [hinted(patterns=(r"shout (?P<text>loud)",))]))["text"].lower() == "loud"  # type: ignore[attr-defined]


def test_a_pattern_that_fits_a_part_only_is_no_match() -> None:
    """Patterns are matched whole."""
    assert isinstance(match("never shout loud here", [hinted(patterns=(r"shout (?P<text>loud)",))]), Refusal)


def test_a_compiled_pattern_keeps_its_flags() -> None:
    """A compiled pattern works as a text does, with its own flags besides."""
    tool = hinted(patterns=(re.compile(r"shout \s (?P<text> \w+ )", re.VERBOSE),))
    assert arguments(match("SHOUT loud", [tool])) == {"text": "loud"}


def test_a_pattern_that_is_none_is_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """A faulty pattern ends nothing; the next one is tried."""
    assert arguments(match("echo a", [hinted(patterns=("(", r"echo (?P<text>\w)"))])) == {"text": "a"}
    assert "no regular expression: '('" in caplog.text


def test_a_pattern_s_number_becomes_one_of_the_schema_s_type() -> None:
    """Groups are converted to the types that the schema wants."""
    assert arguments(
        match("wait 1,000 seconds", [hinted(parameters=NUMBER, patterns=(r"wait (?P<n>[\d,]+) seconds",))])
    ) == {"n": 1000}


def test_an_example_is_matched_word_for_word() -> None:
    """A tool's own example gives its own arguments."""
    tool = hinted(examples=(Example("Say something nice", {"text": "You look well."}),))
    assert arguments(match("say something nice!", [tool])) == {"text": "You look well."}


def test_a_parse_hint_reads_the_question() -> None:
    """What `parse` returns is the call."""
    tool = hinted(parse=lambda q: {"text": q[5:]} if q.startswith("echo ") else None)
    found = match("echo one two", [tool])
    assert arguments(found) == {"text": "one two"}
    assert isinstance(found, Match)
    assert found.thought() == "matched tool: 'echo one two', 0 numbers (the tool's own reading)"


def test_a_thought_leaves_out_what_stands_in_quotes() -> None:
    """Quoted text is passed on, so its words and numbers were not matched; that there is some is told."""
    found = match('echo "delete 3 users"', [hinted(patterns=(r"echo (?P<text>.+)",))])
    assert isinstance(found, Match)
    assert found.thought() == "matched tool: 'echo', 0 numbers, 1 quoted text (a pattern of the tool)"
    assert "users" not in reason(match('nothing "delete 3 users"', [hinted(patterns=("echo",))]))


def test_a_parse_hint_that_drops_a_number_is_refused() -> None:
    """Every number of the question must be used, whatever a tool's own reading says."""
    tool = hinted(parse=lambda _: {"text": "2 + 2"})
    assert "leave out the number 1999" in reason(match("what is 2 + 2 in 1999", [tool]))


def test_a_parse_hint_that_raises_is_logged_and_others_still_fit(caplog: pytest.LogCaptureFixture) -> None:
    """A faulty hint ends nothing."""

    def broken(question: str) -> None:
        raise RuntimeError("boom")

    with caplog.at_level(logging.ERROR):
        found = match("echo a", [hinted("a", parse=broken), hinted("b", patterns=(r"echo (?P<text>\w)",))])
    assert arguments(found) == {"text": "a"}
    assert "parse hint of tool 'a' failed" in caplog.text


@pytest.mark.parametrize(
    "answer", [["text"], {"text": object()}, {"text": float("nan")}], ids=["a list", "an object", "nan"]
)
def test_a_parse_hint_that_returns_no_arguments_is_refused(answer: object) -> None:
    """Arguments must be a mapping of JSON values."""
    assert isinstance(match("echo", [hinted(parse=lambda _: answer)]), Refusal)


def test_a_hint_that_lacks_a_required_argument_names_it() -> None:
    """What a pattern leaves out is told, not guessed."""
    assert "tool needs: text" in reason(match("echo", [hinted(patterns=("echo",))]))


@pytest.mark.parametrize("question", ["2 + 2", "what is 555-1234", "12/05/2024", "x + 2"])
def test_a_parse_hint_that_takes_everything_is_held_to_arithmetic(question: str) -> None:
    """A greedy calculator does not get dates, phone numbers or algebra."""
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    found = match(question, [hinted("calculator", schema, parse=lambda q: {"expression": q})])
    assert isinstance(found, Match) == (question == "2 + 2")


def test_two_tools_that_fit_are_a_question_back() -> None:
    """No choice is made between two tools, unless one is named."""
    tools = [hinted("one", patterns=(r"echo (?P<text>\w+)",)), hinted("two", patterns=(r"echo (?P<text>.*)",))]
    assert "more than one tool fits: one and two" in reason(match("echo hello", tools))
    found = match("use two to echo hello", tools)
    assert isinstance(found, Match)
    assert found.tool.name == "two"


def test_an_unclear_value_is_a_question_back(schemas: Any) -> None:
    """A value that two parameters could take is told with both."""

    def move(from_path: str, to_path: str) -> str:
        """Move a file."""
        return ""

    assert "2 values of the form path" in reason(match("move the file a.txt b.txt", schemas(move)))


def test_two_tools_without_hints_are_never_taken_for_one() -> None:
    """Alike by their words, they may still differ in what they do."""
    tools = [ToolSchema(name=n, description="Roll the dice.") for n in ("dice_roll", "roll_dice")]
    assert "more than one tool fits" in reason(match("roll the dice", tools))


def test_copies_of_a_tool_under_two_names_are_one() -> None:
    """The same hints and arguments are the same call; the first name answers."""
    hints = ToolHints(patterns=(r"echo (?P<text>\w+)",))
    tools = [ToolSchema(name=n, parameters=TEXT, hints=hints) for n in ("a", "b")]
    found = match("echo hello", tools)
    assert isinstance(found, Match)
    assert found.tool.name == "a"


@pytest.mark.parametrize(
    "question",
    ['tool {"text": "a b"}', 'use the tool tool with arguments {"text": "a b"}', 'call tool: {"text": "a b"}'],
)
def test_arguments_may_be_given_as_json(question: str) -> None:
    """Who names a tool can write its arguments out."""
    assert arguments(match(question, [hinted(parse=lambda _: None)])) == {"text": "a b"}


@pytest.mark.parametrize("question", ["the shutdown please", "shutdown now?", "a shutdown", "shutdown, they say"])
def test_a_tool_s_name_as_a_plain_word_is_no_call(question: str) -> None:
    """Only an order runs a tool that needs nothing else from the question."""
    tool = ToolSchema(name="shutdown", description="Shut down the machine.")
    found = match(question, [tool])
    assert isinstance(found, Match) == (question == "shutdown now?")


@pytest.mark.parametrize("question", ["tool {text: 1}", "tool [1]", "tool {"])
def test_faulty_json_is_no_call(question: str) -> None:
    """Half a JSON object is not completed."""
    assert isinstance(match(question, [hinted(parse=lambda _: None)]), Refusal)


def test_a_search_takes_any_question_last() -> None:
    """A fallback tool gets the question whole, where it may and nothing else fits."""
    search = hinted("search", fallback=True)
    assert arguments(match("who won in 2014?", [search], fallback=True)) == {"text": "who won in 2014?"}
    assert isinstance(match("who won in 2014?", [search]), Refusal)
    echo = hinted("echo", patterns=(r"echo (?P<text>\w+)",))
    found = match("echo hi", [search, echo], fallback=True)
    assert isinstance(found, Match)
    assert found.tool.name == "echo"


def test_of_two_searches_one_must_be_named() -> None:
    """Two tools that take anything are told apart by name only."""
    tools = [hinted("web_search", fallback=True), hinted("note_search", fallback=True)]
    assert "more than one tool takes any question" in reason(match("who won?", tools, fallback=True))
    found = match("what does a note say of Paris", tools, fallback=True)
    assert isinstance(found, Match)
    assert found.tool.name == "note_search"


@pytest.mark.parametrize("text", ["42", "3.5", "-7", "1,000", "50%"])
def test_a_number_alone_is_no_question(text: str) -> None:
    """Not even for a tool that would take it."""
    assert reason(match(text, [hinted(parse=lambda q: {"text": q})], fallback=True)) == "a number alone is no question"


def test_the_most_telling_reason_is_given(schemas: Any, tools: Any) -> None:
    """A missing argument says more than that nothing fits."""
    assert "get_weather needs: city" in reason(match("What's the weather in Paris?", schemas(*tools)))
