"""Whole runs: settings, kernel, loop, tools and a real model."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Literal

import atlas_llama.plugin
import pytest
from pydantic import BaseModel, Field

from atlas_core import (
    Agent,
    AgentTimeoutError,
    ChatMessage,
    Event,
    Kernel,
    OutputLimitError,
    RunEnded,
    RunOutcome,
    TextDelta,
    ToolCall,
    hookimpl,
    tool,
)
from atlas_core.settings.loader import load_settings

SETTINGS = """
[default.plugins]
enabled = ["llama", "sums"]

[default.ai.connections.local]
backend = "llama"
path = "model.gguf"
context_tokens = 2048
max_output_tokens = 48

[default.ai.agents]
default_profile = "math"

[default.ai.agents.profiles.connections.math]
system_prompt = "You are a helpful assistant. Use tools for math."
connection_name = "local"
tools = ["calculate"]
max_iterations = 3
"""


@tool(effects="read")
def calculate(a: int, operation: Literal["add", "multiply"], b: int) -> int:
    """Calculate with whole numbers.

    Args:
        a: The first number.
        operation: What to do.
        b: The second number.
    """
    return a + b if operation == "add" else a * b


class Sums:
    """A plugin with the tool."""

    @hookimpl
    def atlas_tool_providers(self) -> list[object]:
        return [calculate]


@pytest.fixture
def settings(tmp_path: Path, model_path: Path) -> Path:
    (tmp_path / "model.gguf").symlink_to(model_path)
    path = tmp_path / "settings.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


async def test_a_run_calls_a_tool_and_answers(settings: Path) -> None:
    """From a settings file with a relative path: model, call, result, answer, usage."""
    call = ToolCall.of("calculate", id="c", a=2, operation="add", b=3)
    history = [
        ChatMessage.user("What is 2 + 3?"),
        ChatMessage.assistant("", [call]),
        ChatMessage.tool(call, "5"),
        ChatMessage.assistant("The answer is 5."),
    ]
    async with _kernel(settings) as kernel:
        agent = kernel.agent("math")
        answer = await agent.run("What is 4 + 3?", history)
    result = answer.result
    assert result.outcome is RunOutcome.ANSWERED
    assert answer.strip()
    assert [(r.name, r.status) for r in result.tool_results] == [("calculate", "ok")] * len(result.tool_results)
    assert len(result.tool_results) >= 1
    assert result.usage.requests == result.iterations == 2
    assert result.usage.input_tokens > 200
    assert "SmolLM2-135M" in result.model or "Smollm2" in result.model


async def test_the_math_question_ends_as_any_run_does(settings: Path) -> None:
    """So small a model answers by itself, and wrongly; its words are streamed, and the last event says how it ended."""
    events: list[Event] = []
    async with _kernel(settings) as kernel:
        with contextlib.suppress(OutputLimitError):
            async for event in kernel.agent("math").stream("What is the square root of 144 multiplied by 5?"):
                events.append(event)  # noqa: PERF401  # what came before the limit counts
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.outcome in {RunOutcome.ANSWERED, RunOutcome.LIMIT}
    assert ended.output
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip().endswith(ended.output)


async def test_a_run_is_stopped_by_its_deadline_and_by_cancelling(settings: Path) -> None:
    """Both in the middle of an answer, and the model is free for the next run."""
    text = settings.read_text(encoding="utf-8").replace("max_output_tokens = 48", "max_output_tokens = 1500")
    settings.write_text(text, encoding="utf-8")
    async with _kernel(settings) as kernel:
        agent = kernel.agent("math")
        await agent.start()
        with pytest.raises(AgentTimeoutError, match="waiting for the model"):
            await agent.run("Tell a very long story.", max_execution_time_seconds=1.0)
        task = asyncio.create_task(agent.run("Tell a very long story."))
        await asyncio.sleep(1.0)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1


class Pick(BaseModel):
    """A choice."""

    colour: Literal["red", "blue"]
    count: int = Field(ge=1, le=9)


async def test_an_answer_of_a_type(settings: Path) -> None:
    """`output_type` returns a validated object at the first request."""
    async with _kernel(settings) as kernel:
        agent = kernel.agent("math")
        assert isinstance(await agent.run("Pick a colour and a number.", output_type=Pick), Pick)


def _kernel(settings: Path) -> Kernel:
    return Kernel(load_settings(settings), plugins=[("llama", atlas_llama.plugin), ("sums", Sums())])


def test_agents_of_a_kernel_have_a_protocol(settings: Path) -> None:
    """What a kernel hands out is an agent before its model is loaded."""
    assert isinstance(_kernel(settings).agent("math"), Agent)
