"""The loop that signals end: the first cancels, the second ends the process, and what is left is not waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from atlas_core.cli.running import Interruptible
from atlas_core.cli.status import ExitStatus, Interrupted, status_of
from atlas_core.errors import AgentTimeoutError, PluginError, ProviderError, SettingsError


class Left(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def leaving(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Statuses with which the process would have ended at once."""
    statuses: list[int] = []

    def leave(status: int) -> None:
        statuses.append(status)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    return statuses


def tell(number: int = signal.SIGINT) -> None:
    """Send this process a signal."""
    os.kill(os.getpid(), number)


def test_without_a_signal_it_is_an_event_loop() -> None:
    """Results and errors pass; the handlers are put back."""

    async def work() -> int:
        return 7

    async def fail() -> None:
        raise ZeroDivisionError

    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    before = signal.getsignal(signal.SIGINT)
    with Interruptible() as loop:
        assert signal.getsignal(signal.SIGINT) != before
        assert loop.run(work) == 7
        with pytest.raises(ZeroDivisionError):
            loop.run(fail)
        with pytest.raises(asyncio.CancelledError):
            loop.run(cancel_itself)
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["INT", "TERM", "HUP"],
)
def test_a_signal_cancels_the_work_and_waits_for_its_end(
    number: int, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The work cleans up; then the caller hears of the signal. The loop serves on."""
    ended = []

    async def work() -> None:
        tell(number)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    with Interruptible() as loop:
        with pytest.raises(Interrupted) as caught:
            loop.run(work)
        assert loop.run(lambda: asyncio.sleep(0, "again")) == "again"
    assert ended == [True]
    assert caught.value.status == status
    assert str(caught.value) == f"interrupted by {signal.Signals(number).name}"
    assert "stopping; once more ends it at once" in capfd.readouterr().err


def test_work_that_swallows_its_cancellation_was_interrupted_all_the_same() -> None:
    """It returned, but it was told to stop."""

    async def stubborn() -> str:
        tell()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done anyway"
        return "slept"

    with Interruptible() as loop, pytest.raises(Interrupted):
        loop.run(stubborn)


def test_a_second_signal_ends_the_process(leaving: list[int], capfd: pytest.CaptureFixture[str]) -> None:
    """Even where the first can't get through."""

    async def blocked() -> None:
        tell()
        tell(signal.SIGTERM)

    with Interruptible() as loop, pytest.raises((Left, Interrupted)):
        loop.run(blocked)
    assert leaving == [143]
    assert "\x1b" not in capfd.readouterr().err  # no terminal, no cursor to bring back


def test_a_terminal_gets_its_cursor_back(leaving: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A spinner that is cut short would leave it hidden."""
    written: list[bytes] = []
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(os, "write", lambda _, data: written.append(data))

    async def blocked() -> None:
        tell()
        tell()

    with Interruptible() as loop, pytest.raises((Left, Interrupted)):
        loop.run(blocked)
    assert written[-1] == b"\x1b[?25h"


def test_between_two_pieces_of_work_a_signal_is_raised_at_once() -> None:
    """At a prompt Ctrl-C is what it always is, and being told to end ends the program."""
    with Interruptible():
        with pytest.raises(KeyboardInterrupt):
            tell()
        with pytest.raises(Interrupted) as caught:
            tell(signal.SIGTERM)
    assert caught.value.status == 143


def test_a_thread_that_does_not_end_is_not_waited_for() -> None:
    """After an interruption the loop closes at once; without one it waits for its threads."""
    release = threading.Event()
    entered = threading.Event()

    def hold() -> None:
        entered.set()
        release.wait(60)

    async def work() -> None:
        holding = asyncio.ensure_future(asyncio.to_thread(hold))
        while not entered.is_set():
            await asyncio.sleep(0.01)
        tell()
        await holding

    began = time.monotonic()
    with pytest.raises(Interrupted), Interruptible() as loop:
        loop.run(work)
    assert time.monotonic() - began < 30
    release.set()


def test_while_it_closes_a_signal_ends_the_process(leaving: list[int]) -> None:
    """A thread that holds it up can be left behind by one Ctrl-C."""

    def hold() -> None:
        time.sleep(0.3)
        tell()
        time.sleep(0.3)

    async def work() -> None:
        _ = asyncio.get_running_loop().run_in_executor(None, hold)

    with pytest.raises(Left), Interruptible() as loop:
        loop.run(work)
    assert leaving == [130]


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    """Only the main thread may take them; the loop works."""
    results: list[int] = []

    async def work() -> int:
        return 7

    def elsewhere() -> None:
        with Interruptible() as loop:
            results.append(loop.run(work))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert results == [7]
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SettingsError("x"), ExitStatus.USAGE),
        (PluginError("x"), ExitStatus.USAGE),
        (ProviderError("x"), ExitStatus.FAILED),
        (AgentTimeoutError("x"), ExitStatus.LIMIT),
        (ZeroDivisionError(), ExitStatus.FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.name,
)
def test_status_of_an_error(error: Exception, status: ExitStatus) -> None:
    """Each branch of the error tree has one."""
    assert status_of(error) is status


def test_statuses_are_what_they_are_documented_to_be() -> None:
    """Scripts rely on the numbers."""
    assert {status.name: int(status) for status in ExitStatus} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "DECLINED": 3,
        "LIMIT": 4,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
        "TERMINATED": 143,
    }
