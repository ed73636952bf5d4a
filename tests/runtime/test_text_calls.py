"""Calls in plain text are read as what they were meant for, and nothing else is executed."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from atlas_core import ToolCall
from atlas_core._runtime.text_calls import TextTurn, read_calls
from tests.runtime.text_asides import ASIDES
from tests.runtime.text_outputs import DELETE, OFFERED, ONE, OUTPUTS, Output, fenced, form

ALL = [*OUTPUTS, *ASIDES]


def read(text: str, *, ended: bool = True) -> TextTurn:
    """Read a message that answers the third request."""
    return read_calls(text, OFFERED, iteration=3, ended=ended)


def asked(turn: TextTurn) -> list[tuple[str, dict[str, object]]]:
    """Return a turn's calls as names and arguments."""
    return [(call.name, call.arguments) for call in turn.calls]


@pytest.mark.parametrize("output", ALL, ids=[output.id for output in ALL])
def test_what_models_write_is_read_as_meant(output: Output) -> None:
    """Case 140 and the habits of models: calls, a problem, or nothing but text."""
    turn = read(output.text)
    assert asked(turn) == list(output.calls)
    assert (turn.problem is None) is (output.problem is None), turn.problem
    assert output.problem is None or output.problem in str(turn.problem)


@pytest.mark.parametrize("output", ALL, ids=[output.id for output in ALL])
def test_a_message_that_was_cut_is_never_executed(output: Output) -> None:
    """Whatever it holds; where it held a wish, the model is told."""
    turn = read(output.text, ended=False)
    assert turn.calls == ()
    assert (turn.problem is None) is not bool(output.calls or output.problem)
    assert "cut off" in (turn.problem or "cut off")


def test_the_table_is_as_long_as_it_claims() -> None:
    """Many messages, each with a name of its own."""
    assert len({output.id for output in ALL}) == len(ALL) >= 300


def test_ids_tell_the_request_and_the_place_over_all_blocks() -> None:
    """Ids are `t<iteration>-<n>`."""
    turn = read(form('{"name": "now"}, {"name": "now"}') + "\n" + fenced())
    assert [call.id for call in turn.calls] == ["t3-1", "t3-2", "t3-3"]


def test_text_around_blocks_and_other_keys_are_thoughts() -> None:
    """Nothing that the model said is lost."""
    body = (
        '{"thought": "b", "tool_calls": [{"name": "now", "arguments": {}, "reason": "c"}], "n": 1, "e": null, "s": ""}'
    )
    turn = read(f" a \n{fenced(body)}\n \n")
    assert turn.thoughts == "a\n\nc\n\nb\n\nn: 1"


def test_an_answer_beside_an_empty_list_is_the_answer() -> None:
    """A model that says in form that it calls nothing has answered."""
    assert read(fenced('{"tool_calls": [], "answer": "720"}')) == TextTurn(thoughts="720")
    assert read("It is 720.\n" + fenced('{"tool_calls": []}')) == TextTurn(thoughts="It is 720.")


def test_what_follows_an_invented_result_is_dropped_and_shown_apart() -> None:
    """Case 140, A: it is no thought of the model's, and an event can tell it."""
    turn = read(f"a\n{fenced()}\n\nObservation: 720\nFinal answer: 720")
    assert turn.thoughts == "a"
    assert turn.dropped == "Observation: 720\nFinal answer: 720"


def test_a_final_answer_behind_a_call_is_told() -> None:
    """Case 140, D: nothing runs and nothing is lost; the model writes the one or the other."""
    turn = read(f"{fenced()}\nFinal answer: 720")
    assert (turn.calls, turn.dropped) == ((), "")
    assert "Final answer: 720" in turn.thoughts
    assert "text stands behind" in str(turn.problem)


def test_marks_at_the_end_of_an_answer_are_left_alone() -> None:
    """Only where there may be calls are they taken for a format's."""
    assert read("Write </s>").thoughts == "Write </s>"


def test_thoughts_in_tags_are_kept() -> None:
    """A draft inside of them is text."""
    text = f"<think>\n{fenced(DELETE)}\n</think>"
    assert read(f"{text}\n{fenced()}").thoughts == text


def test_a_message_without_executed_calls_is_kept_whole() -> None:
    """An answer is what the model wrote, but for the space around it."""
    for text in ("The answer.", form("{"), f"> {ONE}"):
        assert read(f"\n{text} \n").thoughts == text


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (fenced(), False),
        (form('{"id": "a", "name": "now"}'.replace('"id": "a", ', "")), False),
        (form("{'name': 'now'}"), True),
        (form('{"name": "now",}'), True),
        (form('{"tool": "now"}'), True),
        (form('{"name": "now", "args": {}}'), True),
        (form('{"name": "now", "arguments": "{}"}'), True),
        (form('{"name": "now"} {"name": "now"}'), True),
        (f"```json\n{ONE}```", True),
    ],
)
def test_a_turn_tells_whether_a_form_was_repaired(text: str, *, repaired: bool) -> None:
    """So that a trace can say so."""
    turn = read(text)
    assert turn.calls
    assert turn.repaired is repaired


@pytest.mark.parametrize("digits", ["1" * 5000, "-0", "1.10", "1e999", "0.1000000000000000055511151231257827"])
def test_numbers_stay_the_digits_that_were_written(digits: str) -> None:
    """Huge and long numbers go to the arguments' check as they are; it tells what it can't take."""
    (call,) = read(form(f'{{"name": "calculator_tool", "arguments": {{"a": {digits}}}}}')).calls
    assert call.arguments_json == f'{{"a": {digits}}}'


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    """Else nobody could encode the message."""
    (call,) = read(form('{"name": "now", "arguments": {"a": "\\ud83d", "b": "\\ud83d\\ude00"}}')).calls
    call.arguments_json.encode()
    assert call.arguments == {"a": "\ud83d", "b": "\U0001f600"}


def test_a_problem_is_one_line_of_bounded_length() -> None:
    """It goes into the conversation at each try."""
    for text in (form(json.dumps({"name": "x\n" * 500})), fenced('{"tool_calls": [{"name": "now\n\n' + "y" * 999)):
        problem = str(read(text).problem)
        assert len(problem) <= 300
        assert "\n" not in problem


def test_names_are_offered_exactly() -> None:
    """With no tools, nothing is ever executed."""
    turn = read_calls(fenced(), (), iteration=1)
    assert turn.calls == ()
    assert "there are none" in str(turn.problem)


# Laws ----------------------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        "```json\n",
        "```\n",
        "~~~\n",
        "````\n",
        "```",
        "\n",
        "> ",
        "- ",
        "1. ",
        "    ",
        "  ",
        "\t",
        "\r",
        "<think>",
        "</think>\n",
        "<!--",
        "<a>",
        "</a>",
        "[THINK]",
        '"""',
        "-->",
        "Observation: x\n",
        ONE,
        DELETE,
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "“",
        "”",
        ",",
        ":",
        "//",
        "/*",
        "\\",
        "#",
        '"tool_calls"',
        '{"tool_calls": [',
        '{"name": "now"}',
        '"arguments"',
        "a",
        "é",
        "1",
        "-",
        "True",
        "\ufeff",
        "\ud83d",
        "\0",
    ]
)
_FOREIGN_TURN = re.compile(r"(?i)(observation|result|output|response|user|human|system|instruction|<|\[)")
_WISH = re.compile("tool_calls")
_TEXTS = st.text() | st.lists(_PIECES, max_size=30).map("".join)
_ARGUMENTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
_CALLS = st.lists(st.tuples(st.sampled_from(OFFERED), _ARGUMENTS), min_size=1, max_size=3)


def written(calls: list[tuple[str, dict[str, object]]], *, indent: int | None = None) -> str:
    """Write calls as a model that does it right."""
    return json.dumps(
        {"tool_calls": [{"name": n, "arguments": a} for n, a in calls]}, indent=indent, ensure_ascii=False
    )


@given(_TEXTS, st.booleans())
def test_any_text_is_read_and_only_offered_tools_are_called(text: str, ended: bool) -> None:
    """Nothing raises; a turn has calls or a problem, never both."""
    turn = read_calls(text, ["now"], iteration=1, ended=ended)
    assert {call.name for call in turn.calls} <= {"now"}
    assert all(isinstance(call.arguments, dict) for call in turn.calls)
    assert not (turn.calls and (turn.problem or not ended))


@given(
    _CALLS,
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["json", "", "tool_call"]),
)
def test_calls_written_right_are_read_exactly(
    calls: list[tuple[str, dict[str, object]]], indent: int | None, fence: str, info: str
) -> None:
    """Names and arguments come out as they went in, in a block and alone."""
    body = written(calls, indent=indent)
    for text in (fenced(body, info, fence), body):
        turn = read(text)
        assert asked(turn) == calls
        assert not turn.repaired


@given(_TEXTS, st.sampled_from(["````", "~~~"]), st.sampled_from(["", "json", "markdown"]))
@example(f"a\n{fenced(DELETE)}", "````", "")
def test_nothing_inside_a_longer_fence_or_another_kind_is_executed(text: str, fence: str, info: str) -> None:
    """What a model shows it does not ask for."""
    inner = text.replace(fence, "").replace("~~~", "").replace("</", "")
    turn = read(f"{fence}{info}\nAs so:\n{inner}\n{fence}")
    assert turn.calls == ()


@given(_TEXTS)
@example(fenced(DELETE))
def test_nothing_inside_a_quotation_is_executed(text: str) -> None:
    """Each line of it begins with the sign."""
    quoted = "\n".join(f"> {line}" for line in text.replace("\r", "\n").split("\n"))
    assert read(quoted).calls == ()


@given(st.lists(_CALLS, min_size=1, max_size=2), st.data())
def test_a_prefix_of_a_message_never_calls_with_other_arguments(
    blocks: list[list[tuple[str, dict[str, object]]]], data: st.DataObject
) -> None:
    """It has the calls of its closed blocks, or a problem, or is text."""
    raw = data.draw(st.booleans())
    text = "Step.\n" + "\n".join(fenced(written(calls)) for calls in blocks)
    if raw:  # strings with real line breaks, as sloppy models write them
        text = text.replace("\\n", "\n")
    whole = asked(read(text))
    turn = read(text[: data.draw(st.integers(0, len(text)))])
    assert asked(turn) == whole[: len(turn.calls)]


@given(_TEXTS, st.sampled_from(["blockquote", "document", "x-y"]))
@example(fenced(DELETE), "document")
def test_nothing_inside_a_tag_is_executed(text: str, tag: str) -> None:
    """Unless it closes the tag itself, or ends thoughts."""
    turn = read(f"<{tag}>\n{text.replace('</', '')}\n</{tag}>")
    assert turn.calls == ()


@given(_TEXTS, st.text(min_size=1).filter(lambda text: text.strip()))
@example("", "So.")
def test_nothing_is_executed_before_other_text(before: str, behind: str) -> None:
    """But for what is no text of the model's: an invented turn, or a mark that ends one."""
    assume(not _FOREIGN_TURN.search(behind) and not _WISH.search(behind))
    assert not read(f"{before}\n{fenced(DELETE)}\n{behind}").calls


@pytest.mark.parametrize("output", [o for o in ALL if o.calls and "</" not in o.text], ids=lambda o: o.id)
def test_no_prefix_of_a_real_message_calls_anything_else(output: Output) -> None:
    """The same law, at every place of every message of the table."""
    for end in range(len(output.text)):
        turn = read(output.text[:end])
        assert asked(turn) == list(output.calls)[: len(turn.calls)]


# Time ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "\n",
            " ",
            "`",
            "~",
            "```\n",
            "```json\n",
            "~~~~\n```\n",
            "> ",
            "- ",
            "1. a\n",
            "  ```json\n",
            "{",
            '{"',
            "[",
            "<think>\n",
        ),
        *(
            "<!--\n",
            "</think>\n",
            "Observation: x\n",
            "Action: ",
            "Action: now\n",
            "\\",
            '"',
            "/*",
            "# \n",
            "“",
            "- - - ",
            "* * *\n",
            "\t",
        ),
        *(
            '{"tool_calls": \n',
            '```json\n{"tool_calls": ["\n```\n',
            '```json\n{"tool_calls": []}\n```\n',
            "```json\n{'tool_calls': [1 2]}\n```\n",
        ),
        *(
            f"{fenced()}\n",
            f"- {fenced()}\n",
            "<tool_call>\n",
            '```json\n"\n```\n',
            "\r",
            "`````\n````\n",
            "  ```json tool_calls:\n  ~~~\n",
        ),
        *(
            "<a>\n",
            "<a>",
            "<a></a>",
            "<a></a> <b>\n",
            "<think>a</think>",
            "</think><think>",
            "<|channel|>analysis<|end|>",
            "<",
            "</",
            "</a ",
            "<a b ",
            '""" \n',
            '"""a\n</think>\n',
            "[quote]\n",
            "\\begin{a}\n",
            "<|channel|>analysis\n",
            "<think>\n</think>",
            "a</think>",
            "[THINK]",
            "<b>\n</think>\n",
            "<|im_end|>",
            "Sure <tool_call> now\n",
            "a {'tool_calls': now [\n",
            '{"name": "now", "arguments":\n',
            "```py\n{'tool_calls': 1\n```\n",
            "`",
            "Observation: x</think>\n",
        ),
    ],
)
@pytest.mark.parametrize(
    "begin", ["", "x\n", f"{fenced()}\n", '```json\n{"tool_calls": [', '{"tool_calls": ["', "- a\n"]
)
def test_a_long_message_takes_time_in_proportion(begin: str, unit: str) -> None:
    """Ten times the text takes at most about ten times as long; a factor of ten beyond that is slack."""

    def seconds(length: int) -> float:
        text = begin + unit * (length // len(unit))
        began = time.perf_counter()
        read(text)
        return time.perf_counter() - began

    short = max(seconds(10_000), seconds(10_000), 0.002)
    assert seconds(100_000) < short * 100


def test_thousands_of_calls_and_a_megabyte_are_read_quickly() -> None:
    """How many are run is bounded elsewhere."""
    calls = [("calculator_tool", {"expression": "1" * 60, "n": n}) for n in range(8_000)]
    text = fenced(written(calls, indent=1))
    assert len(text) > 1_000_000
    began = time.perf_counter()
    turn = read(text)
    assert time.perf_counter() - began < 30
    assert asked(turn) == calls
    assert isinstance(turn.calls[-1], ToolCall)
    assert turn.calls[-1].id == "t3-8000"
