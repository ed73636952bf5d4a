"""Events as JSON."""

from __future__ import annotations

import json

from atlas_core import CallStatus, ChatMessage, RunEnded, RunOutcome, RunStarted, ToolCall, ToolCallEnded, Usage
from atlas_core.events import to_dict
from atlas_core.interfaces.runs import MemoryRunStore


def test_an_event_is_a_json_object_without_its_empty_fields() -> None:
    """The class name is under `event`; calls keep their arguments as text."""
    started = RunStarted(run_id="r", message=ChatMessage.user("hi"), model="m", tools=("a", "b"))
    assert to_dict(started) == {
        "event": "RunStarted",
        "run_id": "r",
        "iteration": 0,
        "time_s": 0.0,
        "message": {"role": "user", "content": "hi"},
        "model": "m",
        "tools": ["a", "b"],
        "history_messages": 0,
    }
    call = ToolCall("1", "add", '{"a": 1}')
    ended = ToolCallEnded(run_id="r", call=call, status=CallStatus.OK, content="2")
    text = json.dumps(to_dict(ended))
    assert json.loads(text)["call"] == {"id": "1", "name": "add", "arguments": '{"a": 1}'}
    assert json.loads(text)["status"] == "ok"
    assert json.loads(text)["truncated"] is False
    end = RunEnded(
        run_id="r",
        outcome=RunOutcome.ANSWERED,
        output="2",
        usage=Usage(input_tokens=3),
        new_messages=(ChatMessage.assistant("2"),),
    )
    data = json.loads(json.dumps(to_dict(end)))
    assert data["usage"]["input_tokens"] == 3
    assert data["new_messages"] == [{"role": "assistant", "content": "2"}]


async def test_the_memory_store_keeps_the_latest_runs() -> None:
    """Bounded, the oldest run goes first."""
    store = MemoryRunStore(keep_runs=2)
    for run in ("a", "b", "b", "c"):
        await store.append(RunStarted(run_id=run, message=ChatMessage.user("x"), model="m"))
    assert [len(store.events(run)) for run in "abc"] == [0, 2, 1]
