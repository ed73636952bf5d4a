"""The console tree draws what happens, plainly in a pipe and alive on a terminal, and is fooled by no text."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import pytest

from atlas_core import (
    AgentMaxIterationsError,
    AgentProfileSettings,
    AgentService,
    ChatMessage,
    Event,
    FinishReason,
    HistoryRepaired,
    LLMResponse,
    ModelRequested,
    ModelResponded,
    ParallelToolExecutor,
    RunEnded,
    RunOutcome,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolRegistry,
    Usage,
)
from atlas_core.observers.console import ConsoleTree
from atlas_core.observers.screen import PlainScreen, RichScreen, is_terminal, make_screen
from atlas_core.testing import FakeLLM


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def slowly(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "done"


def fail() -> None:
    """Fail."""
    raise RuntimeError("no luck")


async def run(tree: ConsoleTree, *script: Any, question: str = "?", stream_chars: int = 0, **profile: Any) -> None:
    """Run an agent with a tree as its observer."""
    registry = ToolRegistry()
    for tool in (add, slowly, fail):
        registry.register(tool)
    settings = AgentProfileSettings(name="tester", tools=["*"], **profile)
    llm = FakeLLM(script, stream_chars=stream_chars)
    llm.notice = "this is a test"
    async with AgentService(settings, llm, ParallelToolExecutor(registry), observers=[tree]) as agent:
        async for _ in agent.stream(question):
            pass
    tree.close()


async def drawn(*script: Any, tree: ConsoleTree | None = None, **options: Any) -> str:
    """Return what a run looks like in a pipe."""
    stream = io.StringIO()
    await run(tree or ConsoleTree(stream), *script, **options)
    return stream.getvalue()


def thought(text: str, *calls: ToolCall) -> ChatMessage:
    """Return a message with a thought and calls."""
    return ChatMessage.assistant(text, calls)


# In a pipe -------------------------------------------------------------------------------------------------------


async def test_the_chain_in_order() -> None:
    """Model, thought, action with arguments, observation, answer, and the provider's notice last."""
    assert await drawn(thought("two numbers", ToolCall.of("add", a=2, b=40)), "it is 42") == (
        "model: a scripted model\n"
        "  thought: two numbers\n"
        '  action: add {"a": 2, "b": 40}\n'
        "    observation: 42\n"
        "answer: it is 42\n"
        "used: 2 requests, 20 tokens in, 10 out\n"
        "note: this is a test\n"
    )


async def test_several_calls_say_which_one_an_observation_is_of() -> None:
    """Calls of one message begin together, so their observations carry names."""
    text = await drawn([ToolCall.of("add", a=1, b=1), ToolCall.of("fail")], "2")
    assert "    observation (add): 2\n    observation (fail, failed): Error: RuntimeError: no luck\n" in text


async def test_a_refused_call_is_drawn_with_its_observation() -> None:
    """A call that never ran has an action line too, which says so."""
    text = await drawn(ToolCall.of("ad", a=1), "sorry")
    assert '  action: ad {"a": 1} (not run)\n    observation (unknown tool): Error: ' in text


async def test_a_slow_call_is_drawn_with_its_time() -> None:
    """From a second on."""
    text = await drawn(ToolCall.of("slowly", seconds=1.01), "done")
    assert re.search(r"observation \(1\.\d s\): done", text)


async def test_text_comes_as_it_is_written() -> None:
    """Pieces are drawn at once, and the answer is not drawn twice."""
    stream = io.StringIO()
    tree = ConsoleTree(stream)
    tree.on_event(RunStarted(run_id="r", message=ChatMessage.user("?"), model="m"))
    seen = []
    for text in ("first\n", "", "second"):
        tree.on_event(TextDelta(run_id="r", text=text))
        seen.append(stream.getvalue())
    assert seen == ["model: m\n  reply: first\n    "] * 2 + ["model: m\n  reply: first\n    second"]
    reply = ChatMessage.assistant("first\nsecond")
    tree.on_event(ModelResponded(run_id="r", message=reply, finish_reason="stop", usage=Usage(), duration_s=0))
    tree.on_event(RunEnded(run_id="r", outcome=RunOutcome.ANSWERED, output=reply.text))
    assert stream.getvalue() == "model: m\n  reply: first\n    second\n"


async def test_streamed_thought_is_not_repeated() -> None:
    """What was streamed before an action stands once."""
    text = await drawn(thought("let me see", ToolCall.of("add", a=1, b=1)), "two", stream_chars=3)
    assert text.count("let me see") == 1
    assert text.count("two") == 1
    assert "  reply: let me see\n  action: add" in text


def test_reasoning_and_text_are_told_apart() -> None:
    """A model's shown thinking has a label of its own; what interrupts a text ends its line."""
    stream = io.StringIO()
    tree = ConsoleTree(stream)
    tree.on_event(TextDelta(run_id="r", text="hm", kind="reasoning"))
    tree.on_event(TextDelta(run_id="r", text="yes"))
    tree.on_event(HistoryRepaired(run_id="r", repairs=("dropped a result",)))
    tree.on_event(TextDelta(run_id="r", text=" and"))
    tree.close()
    assert stream.getvalue().splitlines() == [
        "  thinking: hm",
        "  reply: yes",
        "  note: the history was repaired: dropped a result",
        "  reply:  and",
    ]


async def test_runs_of_sub_agents_are_indented_below_the_run_that_started_them() -> None:
    """An agent that a tool runs is drawn inside."""
    stream = io.StringIO()
    tree = ConsoleTree(stream, questions=True)
    inner = AgentService(
        AgentProfileSettings(name="inner"), FakeLLM(["deep"]), ParallelToolExecutor(ToolRegistry()), observers=[tree]
    )

    async def delegate(task: str) -> str:
        return str(await inner.run(task))

    registry = ToolRegistry()
    registry.register(delegate)
    settings = AgentProfileSettings(name="outer", tools=["delegate"])
    llm = FakeLLM([ToolCall.of("delegate", task="dig"), "found"])
    async with AgentService(settings, llm, ParallelToolExecutor(registry), observers=[tree]) as outer, inner:
        await outer.run("where?")
    assert stream.getvalue() == (
        "model: a scripted model\n"
        "question: where?\n"
        '  action: delegate {"task": "dig"}\n'
        "    agent inner: a scripted model\n"
        "      question: dig\n"
        "      answer: deep\n"
        "    observation: deep\n"
        "answer: found\n"
        "used: 2 requests, 20 tokens in, 10 out\n"
    )


async def test_a_decline_is_no_answer() -> None:
    """It is labelled as what it is."""
    reply = LLMResponse(message=ChatMessage.assistant("I can't"), finish_reason=FinishReason.DECLINED)
    assert "\ndeclined: I can't\n" in await drawn(reply)


@pytest.mark.parametrize("errors", [True, False], ids=["shown by the tree", "left to the caller"])
async def test_how_a_failed_run_ends(*, errors: bool) -> None:
    """The error is drawn unless the caller shows it; warnings are drawn in any case."""
    stream = io.StringIO()
    with pytest.raises(AgentMaxIterationsError):
        await run(
            ConsoleTree(stream, errors=errors),
            ToolCall.of("add", a=1, b=1),
            max_iterations=1,
            permissions={"deny": ["nothing"]},
        )
    assert ("limit: AgentMaxIterationsError: agent" in stream.getvalue()) is errors
    assert "  warning: permissions.deny names 'nothing'" in stream.getvalue()


async def test_model_and_notice_are_repeated_only_where_wanted() -> None:
    """In a conversation they stand once."""
    stream = io.StringIO()
    tree = ConsoleTree(stream, repeat=False)
    for _ in range(2):
        await run(tree, "yes")
    used = "used: 1 request, 10 tokens in, 5 out\n"
    assert stream.getvalue() == (
        f"model: a scripted model\nanswer: yes\n{used}note: this is a test\nanswer: yes\n{used}"
    )


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        pytest.param(Usage(requests=3), "", id="nobody counted"),
        pytest.param(Usage(input_tokens=5), "used: 7 requests, 5 tokens in, 0 out\n", id="requests from the loop"),
        pytest.param(Usage(requests=1, cost=2.0), "used: 1 request, 0 tokens in, 0 out, cost 2.00\n", id="cost alone"),
    ],
)
@pytest.mark.parametrize("outcome", [RunOutcome.DECLINED, RunOutcome.FAILED])
def test_what_a_run_used_is_told_however_it_ended(usage: Usage, shown: str, outcome: RunOutcome) -> None:
    """A failed run has cost as much; where nobody counted, there is no line."""
    stream = io.StringIO()
    tree = ConsoleTree(stream, errors=False)
    tree.on_event(RunStarted(run_id="r", message=ChatMessage.user("?"), model="m"))
    stream.truncate(0)
    tree.on_event(RunEnded(run_id="r", outcome=outcome, output="no", usage=usage, iterations=7))
    assert stream.getvalue().replace("\0", "").replace("declined: no\n", "") == shown


async def test_text_cannot_forge_lines_or_colours() -> None:
    """Escapes are spelt out, and further lines are indented, so that no text looks like a line of the tree."""
    text = await drawn(thought("a\nanswer: forged", ToolCall.of("fail")), "\x1b[2Jgone\u202e\nmodel: forged")
    assert "\x1b" not in text
    assert "  thought: a\n    answer: forged\n" in text
    assert "answer: \\x1b[2Jgone\\u202e\n  model: forged\n" in text


def test_a_long_observation_is_cut() -> None:
    """The screen gets the beginning and how much is missing; so it is with arguments."""
    text = asyncio.run(drawn(ToolCall.of("ad", text="x" * 5_000), "y" * 5_000))
    action = next(line for line in text.splitlines() if line.startswith("  action"))
    assert len(action) < 2_100
    assert "more characters]" in text
    assert "y" * 5_000 in text  # an answer is never cut


def test_a_stream_that_lacks_a_character_gets_it_spelt_out() -> None:
    """Drawing on an ASCII stream loses nothing and raises nothing."""
    raw = io.BytesIO()
    screen = PlainScreen(io.TextIOWrapper(raw, encoding="ascii"))
    screen.line("answer", "12 €", depth=0, tone="answer")
    assert raw.getvalue() == b"answer: 12 \\u20ac\n"


def test_an_unknown_event_is_passed_over() -> None:
    """An event of a newer kernel's draws nothing."""

    class Newer(Event):
        pass

    stream = io.StringIO()
    ConsoleTree(stream).on_event(Newer(run_id="r"))
    assert stream.getvalue() == ""


async def test_a_broken_pipe_is_kept_and_ends_the_drawing() -> None:
    """The run goes on; whoever wants to can look at `broken`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1, encoding="utf-8") as stream:
        tree = ConsoleTree(stream)
        await run(tree, "yes")
        assert isinstance(tree.broken, BrokenPipeError)
        tree.on_event(ModelRequested(run_id="r", connection="c", messages=1))
        with pytest.raises(BrokenPipeError):
            stream.close()


async def test_a_closed_stream_breaks_nothing() -> None:
    """A stream that its owner closed is treated alike, also when an unfinished line is to be ended."""
    stream = io.StringIO()
    tree = ConsoleTree(stream)
    tree.on_event(TextDelta(run_id="r", text="begun"))
    stream.close()
    await tree.stop()
    assert isinstance(tree.broken, ValueError)


def test_without_a_stream_it_draws_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """As it is when the tree is made."""
    tree = ConsoleTree()
    tree.on_event(RunStarted(run_id="r", message=ChatMessage.user("?"), model="m"))
    assert capsys.readouterr().out == "model: m\n"


# On a terminal ---------------------------------------------------------------------------------------------------


class Terminal:
    """A real pseudo-terminal, read as it is written."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._master, slave = pty.openpty()
        self.stream: TextIO = os.fdopen(slave, "w", encoding=encoding)
        self._got: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux's way to tell that the other side is closed
                return
            self._got.append(data)

    def text(self) -> str:
        """Close the terminal and return what was written to it."""
        self.stream.close()
        self._reader.join()
        os.close(self._master)
        return b"".join(self._got).decode().replace("\r\n", "\n")


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which terminals have colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def bare(text: str) -> str:
    """Return text without escapes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


async def test_a_terminal_gets_a_tree_with_colours(colours: None) -> None:
    """Branches, a trunk beside further lines, and colours; foreign escapes and markup stay text."""
    terminal = Terminal()
    tree = ConsoleTree(terminal.stream)
    await run(tree, thought("[bold]x[/bold] :smile:\nb", ToolCall.of("add", a=1, b=1)), "\x1b[31m2")
    text = terminal.text()
    assert "\x1b[32m" in text
    assert "\x1b[31m" not in text
    plain = bare(text)
    assert "├─ thought: [bold]x[/bold] :smile:\n│  b\n" in plain
    assert '├─ action: add {"a": 1, "b": 1}\n│  ├─ observation: 2\nanswer: \\x1b[31m2\n' in plain


async def test_no_color_is_honoured(colours: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NO_COLOR is set nothing is coloured (https://no-color.org, 2023)."""
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    await run(ConsoleTree(terminal.stream), ToolCall.of("add", a=1, b=1), "2")
    assert not re.search(r"\x1b\[[\d;]*3\dm", terminal.text())


async def test_a_long_wait_is_shown_with_its_time(colours: None) -> None:
    """A spinner says what is waited for, and is gone when it is over; a short wait shows none."""
    terminal = Terminal()
    await run(ConsoleTree(terminal.stream), ToolCall.of("slowly", seconds=1.3), "done")
    text = terminal.text()
    assert re.search(r"running slowly \(\d s\)", text)
    assert "waiting for a scripted model" not in text
    assert text.rstrip().endswith("this is a test\x1b[0m")
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l")  # the cursor is back


async def test_the_past_is_drawn_without_waits(colours: None) -> None:
    """`waits=False` draws no spinner at all."""
    terminal = Terminal()
    await run(ConsoleTree(terminal.stream, waits=False), ToolCall.of("slowly", seconds=0.6), "done")
    assert "\x1b[?25l" not in terminal.text()


async def test_streaming_and_sub_runs_on_a_terminal(colours: None) -> None:
    """A streamed text keeps its margin; the end of a run inside is a leaf."""
    terminal = Terminal()
    tree = ConsoleTree(terminal.stream)
    await run(tree, "one\ntwo", stream_chars=2)
    tree.on_event(RunStarted(run_id="a", message=ChatMessage.user("?"), model="m"))
    tree.on_event(RunStarted(run_id="b", parent_run_id="a", agent_id="x", message=ChatMessage.user("?"), model="m"))
    tree.on_event(RunEnded(run_id="b", parent_run_id="a", outcome=RunOutcome.ANSWERED, output="in\nside"))
    tree.close()
    plain = bare(terminal.text())
    assert "├─ reply: one\n│  two\n" in plain
    assert "│  ├─ agent x: m\n│  │  └─ answer: in\n│  │     side\n" in plain


async def test_a_terminal_without_unicode_gets_ascii_branches(colours: None) -> None:
    """The tree is drawn with what the encoding has."""
    terminal = Terminal(encoding="latin-1")
    await run(ConsoleTree(terminal.stream), ToolCall.of("add", a=1, b=1), "2")
    assert '|- action: add {"a": 1, "b": 1}\n|  |- observation: 2\n' in bare(terminal.text())


def test_what_counts_as_a_terminal(colours: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is none, and a dumb terminal gets plain lines."""
    with (tmp_path / "out").open("w") as file:
        assert not is_terminal(file)
    terminal = Terminal()
    assert isinstance(make_screen(terminal.stream), RichScreen)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_screen(terminal.stream), PlainScreen)
    assert terminal.text() == ""


def test_waiting_twice_leaves_one_spinner(colours: None) -> None:
    """A wait replaces the one before it."""
    terminal = Terminal()
    screen = make_screen(terminal.stream)
    screen.wait("one")
    screen.wait("two")
    time.sleep(0.8)
    screen.rest()
    text = terminal.text()
    assert "two (" in text
    assert "one (" not in text
