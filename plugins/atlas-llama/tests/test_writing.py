from __future__ import annotations

from typing import Any

from atlas_llama.holding import Holding
from atlas_llama.wire import CLOSE, OPEN, Call, call_head
from atlas_llama.writing import Writing

from atlas_core import LLMDelta, Usage

HOLDING = Holding(grammar="", names=("add",), validators={})
CALL = OPEN + call_head("add") + "{}}" + CLOSE


def chunk(finish: str | None = None, **delta: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_thinking_is_shown_apart() -> None:
    """What the template marks as thinking is no part of the answer."""
    writing = Writing(None, first=True)
    deltas = [
        d for c in (chunk(reasoning_content="Hm."), chunk(content="Yes."), chunk("stop")) for d in writing.take(c)
    ]
    assert deltas == [LLMDelta("Hm.", "reasoning"), LLMDelta("Yes.")]
    assert (writing.end(), writing.written.text, writing.cut) == ([], "Yes.", False)


def test_a_call_inside_of_thinking_counts() -> None:
    """A template that opens the thinking itself makes a call that follows at once look like a thought."""
    writing = Writing(HOLDING, first=True)
    writing.take(chunk(reasoning_content=CALL))
    assert writing.written.calls == (Call("add", "{}"),)


def test_a_second_try_is_not_shown() -> None:
    """The words of the first one were, and can't be taken back."""
    writing = Writing(HOLDING, first=False)
    assert writing.take(chunk(content="Words that go on")) == []
    assert writing.end() == []
    assert writing.written.text == "Words that go on"


def test_tokens_and_the_cut_are_read() -> None:
    """The last pieces tell both, in either order."""
    writing = Writing(None, first=True)
    writing.take(chunk("length"))
    used = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    writing.take({"choices": [], "usage": used})
    assert writing.cut
    assert writing.usage == Usage(input_tokens=9, cached_input_tokens=3, output_tokens=4, requests=1)
