"""Answers held to a type: by the provider's schema mode, by a tool, or by words."""

from __future__ import annotations

import dataclasses
import enum
import json
from datetime import date
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from atlas_core import (
    CallStatus,
    Capabilities,
    ChatMessage,
    FinishReason,
    InvalidOutputError,
    LLMResponse,
    RunOutcome,
    ToolCall,
)
from atlas_core._runtime.output import OutputMismatchError, OutputType
from atlas_core.testing import FakeLLM
from tests.runtime.rig import Rig


class Level(enum.Enum):
    """A plain enum."""

    LOW = 1
    HIGH = 2


class City(BaseModel):
    """A pydantic model."""

    name: str
    people: int


@dataclasses.dataclass
class Trip:
    """A dataclass with a model, an enum and a date in it."""

    to: City
    level: Level
    day: date


class Note(TypedDict):
    """A TypedDict of the standard library."""

    text: str


class Tree(BaseModel):
    """A model that refers to itself."""

    name: str
    children: list[Tree] = []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model(script: list[Any], **can: Any) -> FakeLLM:
    """Make a scripted model with capabilities."""
    llm = FakeLLM(script)
    llm.capabilities = Capabilities(**can)
    return llm


VALUES: list[tuple[Any, str, Any]] = [
    (City, '{"name": "Rome", "people": 3}', City(name="Rome", people=3)),
    (
        Trip,
        '{"to": {"name": "R", "people": 1}, "level": 2, "day": "2024-02-29"}',
        Trip(City(name="R", people=1), Level.HIGH, date(2024, 2, 29)),
    ),
    (Note, '{"text": "x"}', {"text": "x"}),
    (int, '{"value": 3}', 3),
    (list[City], '{"value": [{"name": "R", "people": 1}]}', [City(name="R", people=1)]),
    (City | None, '{"value": null}', None),
    (Tree, '{"value": {"name": "a", "children": [{"name": "b"}]}}', Tree(name="a", children=[Tree(name="b")])),
    (dict[str, int], '{"a": 1}', {"a": 1}),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES, ids=lambda v: getattr(v, "__name__", None))
@pytest.mark.parametrize("way", ["schema", "tool", "words", "text tools"])
async def test_every_kind_of_type_by_every_way(kind: Any, text: str, value: Any, way: str) -> None:
    """The validated object is returned, whatever the provider can do."""
    turn: Any = ToolCall("1", "final_answer", text) if way == "tool" else f"```json\n{text}\n```"
    llm = model([turn], schema_output=way == "schema", native_tools=way in ("schema", "tool"))
    async with Rig([], llm=llm) as rig:
        assert await rig.agent.run("x", output_type=kind) == value
    request = llm.requests[0]
    assert (request.output_schema is not None) is (way == "schema")
    assert [t.name for t in request.tools] == (["final_answer"] if way == "tool" else [])
    assert ("## Answer" in (request.system or "")) is (way not in ("schema", "tool"))


@pytest.mark.parametrize(
    "text",
    [
        '<think>ok, {"value": 4}</think>\n{"value": 3}',
        'so\n</think>\n\n```json\n{"value": 3}\n```',
        'Here you go:\n```json\n{"value": 3}\n```',
        '```JSON\n{"value": 3}\n```\nAnything else?',
        '``` json\r\n{"value": 3}\r\n```',
        '~~~\n{"value": 3}\n~~~',
        '  {"value": 3}  ',
    ],
)
def test_habits_of_form_need_no_further_request(text: str) -> None:
    """Thoughts, words around the one block, and ways to write its fence."""
    assert OutputType(int).read(text) == 3


def test_two_blocks_are_no_answer() -> None:
    """Which one is meant can't be known."""
    with pytest.raises(OutputMismatchError, match="not JSON"):
        OutputType(int).read('```json\n{"value": 3}\n```\nor\n```json\n{"value": 4}\n```')


def test_a_type_that_pydantic_can_not_compile_is_a_type_error() -> None:
    """A pattern with a look-ahead, for one."""
    from typing import Annotated

    from pydantic import StringConstraints

    with pytest.raises(TypeError, match="can't be described"):
        OutputType(Annotated[str, StringConstraints(pattern="(?=a)b")])


async def test_what_does_not_fit_goes_back_to_the_model_a_bounded_number_of_times() -> None:
    """Three answers in all; the error holds the last one."""
    bad = '{"name": "Rome", "people": "many"}'
    llm = model([bad, "no JSON", '{"name": "Rome", "people": 3}'], schema_output=True)
    async with Rig([], llm=llm) as rig:
        assert await rig.agent.run("x", output_type=City) == City(name="Rome", people=3)
    told = [m.text for m in llm.requests[2].messages if m.role == "user"]
    assert "people: Input should be a valid integer" in told[1]
    assert "not JSON" in told[2]
    assert "many" not in told[1]
    async with Rig([bad] * 3, llm=model([bad] * 3, schema_output=True)) as rig:
        with pytest.raises(InvalidOutputError, match="people") as caught:
            await rig.agent.run("x", output_type=City)
    assert caught.value.result is not None
    assert caught.value.result.output == bad
    assert caught.value.result.iterations == 3


async def test_re_asks_count_as_requests() -> None:
    """`max_iterations` bounds them too."""
    async with Rig([], llm=model(["x"], schema_output=True), max_iterations=1) as rig:
        with pytest.raises(InvalidOutputError):
            await rig.agent.run("x", output_type=City)


async def test_tools_are_called_before_the_answer() -> None:
    """The answering tool stands beside the agent's own, under a name of its own."""

    def final_answer() -> str:
        """Be in the way."""
        return "mine"

    good = ToolCall("3", "final_answer_", '{"value": 5}')
    turns = [ToolCall("1", "add", '{"a": 2, "b": 3}'), ToolCall("2", "final_answer"), [good, ToolCall("4", "add")]]
    async with Rig(turns, [add, final_answer]) as rig:
        stream = rig.agent.stream("x", output_type=int)
        _ = [event async for event in stream]
    result = stream.result
    assert (result.value, result.output, result.outcome) == (5, '{"value": 5}', RunOutcome.ANSWERED)
    assert [r.status for r in result.tool_results] == [CallStatus.OK, CallStatus.OK, CallStatus.REFUSED]
    answered = [m.tool_call_id for m in result.messages if m.role == "tool"]
    assert sorted(map(str, answered)) == ["1", "2", "3", "4"]


async def test_a_wrong_answer_by_tool_is_that_calls_result_and_its_siblings_run() -> None:
    """The model reads why and answers again."""
    wrong, right = ToolCall("1", "final_answer", '{"value": "x"}'), ToolCall("3", "final_answer", '{"value": 7}')
    async with Rig([[wrong, ToolCall("2", "add", '{"a": 1, "b": 2}')], "seven", right], [add]) as rig:
        assert await rig.agent.run("x", output_type=int) == 7
    first = [m.text for m in rig.llm.requests[1].messages if m.role == "tool"]
    assert "does not meet the schema" in first[0]
    assert first[1] == "3"
    assert "by calling 'final_answer'" in rig.llm.requests[2].messages[-1].text


async def test_text_that_fits_is_taken_though_a_call_was_asked_for() -> None:
    """What counts is the answer."""
    async with Rig(['{"value": 3}']) as rig:
        assert await rig.agent.run("x", output_type=int) == 3


async def test_a_decline_is_no_object() -> None:
    """Where a type was asked for, a decline is an error that quotes it."""
    declined = LLMResponse(message=ChatMessage.assistant("I can't"), finish_reason=FinishReason.DECLINED)
    async with Rig([declined]) as rig:
        with pytest.raises(InvalidOutputError, match="declined: I can't") as caught:
            await rig.agent.run("x", output_type=int)
    assert caught.value.result is not None


def test_plain_code_gets_the_object_too() -> None:
    """Through the sync door."""
    rig = Rig(['{"value": true}'])
    assert rig.agent.run_sync("x", output_type=bool) is True
    rig.agent.stop_sync()


@pytest.mark.parametrize("kind", [object(), 3, lambda: None], ids=["an object", "a number", "a function"])
async def test_what_is_no_type_is_refused_before_anything_starts(kind: Any) -> None:
    """A TypeError that shows it."""
    async with Rig([]) as rig:
        with pytest.raises(TypeError, match=r"output_type .* can't be described"):
            await rig.agent.run("x", output_type=kind)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (int, "[1]", 'one key "value"'),
        (int, '{"value": 1.5}', "fractional"),
        (int, '{"value": true}', None),
        (float, '{"value": NaN}', "not JSON"),
        (City, "", "not JSON"),
        (City, "[" * 100_000, "not JSON"),
    ],
)
def test_what_is_read_and_what_is_not(kind: Any, text: str, why: str | None) -> None:
    """JSON only, and only of the type."""
    made = OutputType(kind)
    if why is None:
        assert made.read(text) == 1
        return
    with pytest.raises(OutputMismatchError, match=why):
        made.read(text)


def test_schemas_are_objects_with_their_definitions() -> None:
    """Providers take only objects; what is wrapped keeps its references."""
    wrapped = OutputType(list[City]).schema
    assert wrapped["required"] == ["value"]
    assert "City" in wrapped["$defs"]  # type: ignore[operator]  # a mapping
    assert OutputType(City).schema["type"] == "object"
    assert OutputType(City).name == "City"
    recursive = OutputType(Tree)
    assert recursive.wrapped
    assert json.dumps(recursive.schema)
