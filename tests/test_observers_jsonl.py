"""A trace file holds whole lines whatever happens, and can be read back line by line."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from pathlib import Path

import pytest

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    ChatMessage,
    JsonLinesTrace,
    RunStarted,
    RunWarning,
    SettingsError,
    SyncToolExecutor,
    TextDelta,
)
from atlas_core.observers.jsonl import read_trace
from atlas_core.testing import FakeLLM


def warning(text: str = "careful") -> RunWarning:
    """Return an event."""
    return RunWarning(run_id="r1", text=text)


def texts(path: Path) -> list[str]:
    """Return the texts of the warnings in a file."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_run_is_written_line_by_line(tmp_path: Path) -> None:
    """Each event is on disk when the next one happens, and reads back equal in order."""
    path = tmp_path / "run.jsonl"
    trace = JsonLinesTrace(path)
    seen: list[int] = []

    class Counter:
        def on_event(self, event: object) -> None:
            seen.append(len(path.read_bytes().splitlines()))

    settings = AgentProfileSettings(name="tester")
    llm = FakeLLM(["an answer"], stream_chars=4)
    async with AgentService(settings, llm, SyncToolExecutor(), observers=[trace, Counter()]) as agent:
        events = [event async for event in agent.stream("hi")]
    trace.close()
    assert seen == list(range(1, len(events) + 1))
    assert [line.event for line in read_trace(path)] == events
    assert repr(trace) == f"JsonLinesTrace({str(path)!r})"


def test_events_are_added_to_an_existing_file(tmp_path: Path) -> None:
    """A second trace into one file keeps the first."""
    for text in ("one", "two"):
        with JsonLinesTrace(tmp_path / "t.jsonl") as trace:
            trace.on_event(warning(text))
    assert texts(tmp_path / "t.jsonl") == ["one", "two"]


def test_a_line_that_a_crash_cut_stays_alone(tmp_path: Path) -> None:
    """What is written after a cut line begins on a line of its own."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"event": "RunWarning", "te')
    with JsonLinesTrace(path) as trace:
        trace.on_event(warning())
    first, second = read_trace(path)
    assert "is not JSON" in first.problem
    assert second.event == warning()


async def test_start_and_stop_open_and_close(tmp_path: Path) -> None:
    """`start` makes the file, `stop` ends the writing, and both may be called twice."""
    trace = JsonLinesTrace(tmp_path / "t.jsonl")
    assert not trace.path.exists()
    await trace.start()
    await trace.start()
    assert trace.path.exists()
    trace.on_event(warning())
    await trace.stop()
    await trace.stop()
    trace.on_event(warning("late"))
    assert texts(trace.path) == ["careful"]


def test_a_missing_folder_is_told_at_once(tmp_path: Path) -> None:
    """Before any run, with the folder's name and what to do."""
    with pytest.raises(SettingsError, match=r"nowhere/t.jsonl'.*folder does not exist; make the folder '.*nowhere'"):
        JsonLinesTrace(tmp_path / "nowhere" / "t.jsonl")


def test_a_folder_is_no_trace_file(tmp_path: Path) -> None:
    """A path that is a folder is refused at once."""
    with pytest.raises(SettingsError, match="is a folder"):
        JsonLinesTrace(tmp_path)


def test_a_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    """`open` raises; it does not wait for the first event."""
    trace = JsonLinesTrace(tmp_path / "t.jsonl")
    trace.path.mkdir()
    with pytest.raises(SettingsError, match="can't be written: Is a directory"):
        trace.open()


def test_a_name_that_is_too_long_is_told_at_the_start(tmp_path: Path) -> None:
    """Whatever the system says goes into the error."""
    with pytest.raises(SettingsError, match="File name too long"):
        JsonLinesTrace(tmp_path / ("x" * 300)).open()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_breaks_no_run(caplog: pytest.LogCaptureFixture) -> None:
    """The first failing write is logged, kept in `.error`, and ends the writing."""
    trace = JsonLinesTrace("/dev/full")
    with caplog.at_level(logging.WARNING, "atlas.observers"):
        trace.on_event(warning())
        trace.on_event(warning())
    trace.close()
    assert trace.error is not None
    assert [record.message for record in caplog.records] == [
        "trace file '/dev/full' can't be written, events are lost from here on: [Errno 28] No space left on device"
    ]


def test_a_reader_that_cannot_seek_is_fine(tmp_path: Path) -> None:
    """A named pipe works as a trace file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with JsonLinesTrace(path) as trace:
        trace.on_event(warning())
    with os.fdopen(reader, "rb") as pipe:
        assert json.loads(pipe.read())["text"] == "careful"


def test_a_pipe_that_nobody_reads_is_told_and_not_waited_for(tmp_path: Path) -> None:
    """Opening it would wait for a reader for ever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(SettingsError, match="pipe' is a pipe that nobody reads; start its reader first"):
        JsonLinesTrace(path).open()


def test_a_reader_that_lags_behind_gets_all_of_a_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than the pipe goes through in pieces."""
    monkeypatch.setattr("atlas_core.observers.jsonl.PATIENCE_S", 30.0)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    got: list[bytes] = []
    with os.fdopen(reader, "rb") as pipe:
        thread = threading.Thread(target=lambda: got.append(pipe.read()))
        with JsonLinesTrace(path) as trace:
            thread.start()  # not before there is a writer: a pipe without one is at its end
            trace.on_event(warning("x" * 1_000_000))
        thread.join()
    assert trace.error is None
    assert json.loads(got[0])["text"] == "x" * 1_000_000


def test_a_reader_that_does_not_read_loses_events_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a moment the trace gives up, and says so."""
    monkeypatch.setattr("atlas_core.observers.jsonl.PATIENCE_S", 0.1)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with JsonLinesTrace(path) as trace:
        trace.on_event(warning("x" * 1_000_000))
    os.close(reader)
    assert isinstance(trace.error, BlockingIOError)
    assert "its reader does not keep up" in caplog.text


def test_a_socket_is_no_trace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anything else that can't be appended to."""
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(SettingsError, match="trace file 's' is a socket; name a file"):
            JsonLinesTrace("s")


def test_secrets_are_masked(tmp_path: Path) -> None:
    """What looks like a key occurs nowhere in the file (case 112)."""
    with JsonLinesTrace(tmp_path / "t.jsonl") as trace:
        trace.on_event(warning("refused: key sk-TESTSECRET123 at https://user:TESTSECRET@host/?api_key=TESTSECRET"))
    text = trace.path.read_text(encoding="utf-8")
    assert "TESTSECRET" not in text
    assert "refused: key ***" in text


def test_half_a_surrogate_pair_is_written_as_json_spells_it(tmp_path: Path) -> None:
    """Text that UTF-8 can't encode survives; other text stays readable."""
    with JsonLinesTrace(tmp_path / "t.jsonl") as trace:
        trace.on_event(TextDelta(run_id="r", text="half \ud83d"))
        trace.on_event(TextDelta(run_id="r", text="grün"))
    raw = trace.path.read_text(encoding="utf-8")
    assert "grün" in raw
    assert [line.event.text for line in read_trace(trace.path)] == ["half \ud83d", "grün"]  # type: ignore[union-attr]  # deltas


def test_a_broken_line_does_not_hide_the_rest(tmp_path: Path) -> None:
    """Each line that can't be read is told with its number; blank ones are no lines; the last may be cut."""
    good = '{"event": "RunWarning", "run_id": "r1", "text": "careful"}'
    deep = "[" * 100_000
    lines = [good, "", "no json", '{"event": "Odd"}', "\ufffe", deep, good, '{"event": "RunWar']
    path = tmp_path / "t.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8").replace(b"\xef\xbf\xbe", b"\xff\xfe"))
    found = list(read_trace(path))
    assert [(line.number, line.cut) for line in found] == [
        (1, False),
        (3, False),
        (4, False),
        (5, False),
        (6, False),
        (7, False),
        (8, True),
    ]
    assert [bool(line.event) for line in found] == [True, False, False, False, False, True, False]
    assert found[1].problem.startswith("is not JSON")
    assert found[2].problem.startswith("is no event: unknown event 'Odd'")
    assert found[3].problem.startswith("is not JSON")
    assert "the last line is cut" in found[6].problem


def test_a_last_line_without_an_end_that_is_whole_counts(tmp_path: Path) -> None:
    """Only the newline is missing, nothing of the event."""
    path = tmp_path / "t.jsonl"
    message = ChatMessage.user("hi")
    path.write_text(
        '{"event": "RunStarted", "run_id": "r", "model": "m", "message": {"role": "user", "content": "hi"}}'
    )
    (line,) = read_trace(path)
    assert line.event == RunStarted(run_id="r", model="m", message=message)


def test_writers_on_several_threads_mix_no_lines(tmp_path: Path) -> None:
    """Runs on several loops may share a trace."""
    with JsonLinesTrace(tmp_path / "t.jsonl") as trace:

        def write(n: int) -> None:
            for _ in range(50):
                trace.on_event(warning(f"{n}" * 500))

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = texts(trace.path)
    assert len(found) == 200
    assert {len(text) for text in found} == {500}
