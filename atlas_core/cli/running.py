"""An event loop that Ctrl-C and the like end in an orderly way, and at once when told twice."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

from atlas_core.cli.output import warn
from atlas_core.cli.process import LEFT
from atlas_core.cli.status import Interrupted

__all__ = ["Interruptible"]

_T = TypeVar("_T")
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
GRACE_S = 2.0
"""How long tasks and threads may take to end once the work is over; the executors gave tools their time before."""
FROZEN_S = 5.0
"""How long the event loop may not turn, once it was told to stop, before the process ends without it."""
_NOTE = b"\natlas: stopping; once more ends it at once\n"


class Interruptible:
    """An event loop; the first signal cancels what it runs, the second ends the process without further ado.

    The handlers are plain ones and no callbacks of the loop, so that they work even where a tool blocks the loop. One
    that goes on blocking it for `FROZEN_S` can't be cancelled, and the process ends. Outside the main thread signals
    are left alone.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._threads = _Threads()
        self._task: asyncio.Task[Any] | None = None
        self._received: int | None = None
        self._closing = False
        self._ended = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._runner.__enter__()
        self._runner.get_loop().set_default_executor(self._threads)
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        self._closing = True
        self._threads.hurried = isinstance(exc, (Interrupted, KeyboardInterrupt))
        self._ended = threading.Event()
        if self._threads.hurried:
            self._watch(exc.status if isinstance(exc, Interrupted) else 128 + signal.SIGINT)
        try:
            self._close()
        finally:
            self._ended.set()
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _close(self) -> None:
        """Close the loop in bounded time: a task may ignore that it was cancelled, and a thread knows no such thing."""
        loop = self._runner.get_loop()
        ends = loop.time() + GRACE_S
        tasks = loop.run_until_complete(_end_tasks(ends))
        try:
            threads = 0 if self._threads.hurried else self._threads.wait(ends - loop.time())
            if tasks or threads:
                left = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((tasks, "task"), (threads, "thread")) if n]
                warn(f"{' and '.join(left)} did not end within {GRACE_S:g} s, and will end with the process")
                LEFT.append(self)
        finally:
            if not tasks:
                self._threads.hurried = True
                self._runner.close()

    def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run to the end.

        Raises:
            Interrupted: A signal came; the work was cancelled and has ended.
        """
        self._ended = threading.Event()
        try:
            result = self._runner.run(self._main(work))
        except BaseException as exc:
            self._raise_if_told(exc)
            raise
        self._raise_if_told(None)
        return result

    def _raise_if_told(self, cause: BaseException | None) -> None:
        self._task = None
        self._ended.set()
        received, self._received = self._received, None
        if received is not None:
            # Whatever else the work came to, it was told to stop.
            raise Interrupted(received) from cause

    async def _main(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        self._task = asyncio.current_task()
        return await work()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._received is not None or self._closing:
            _leave(128 + number)
        if self._task is None:
            # Between two pieces of work, such as at a prompt.
            raise KeyboardInterrupt if number == signal.SIGINT else Interrupted(number)
        self._received = number
        # Not through sys.stderr, which the interrupted code may be in the middle of using.
        with contextlib.suppress(OSError):
            os.write(2, _NOTE)
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            self._runner.get_loop().call_soon_threadsafe(self._task.cancel)
        self._watch(128 + number)

    def _watch(self, status: int) -> None:
        watched = (self._runner.get_loop(), self._ended, status)
        with contextlib.suppress(RuntimeError):  # no more threads; a second signal works all the same
            threading.Thread(target=_leave_if_frozen, args=watched, name="atlas-stopping", daemon=True).start()


def _leave_if_frozen(loop: asyncio.AbstractEventLoop, ended: threading.Event, status: int) -> None:
    """End the process where a loop that was told to stop does not turn, until its work has ended."""
    while not ended.is_set():
        turned = threading.Event()
        try:
            loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # closed
            return
        # In steps: the time for which the process is suspended passes in one of them.
        if not any(turned.wait(FROZEN_S / 10) or ended.is_set() for _ in range(10)):
            with contextlib.suppress(OSError):
                os.write(2, f"atlas: ended, since {_place()} blocked the event loop\n".encode("utf-8", "replace"))
            _leave(status)
        ended.wait(FROZEN_S / 10)


def _place() -> str:
    """Return where the main thread is; only it takes signals."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001  # documented for such a use
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})" if frame else "something"


def _leave(status: int) -> NoReturn:
    with contextlib.suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\x1b[?25h")  # a spinner hides the cursor
    os._exit(status)


async def _end_tasks(ends: float) -> int:
    """Cancel all other tasks and close what they iterated over; return how many did not end in time."""
    loop = asyncio.get_running_loop()

    async def wait(tasks: set[asyncio.Task[Any]]) -> int:
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, ends - loop.time()))
        return sum(not task.done() for task in tasks)

    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return await wait(others) or await wait({asyncio.ensure_future(loop.shutdown_asyncgens())})


class _Threads(ThreadPoolExecutor):
    """The loop's threads; those that do not end in time are not waited for.

    Attributes:
        hurried: Whether they are not waited for at all, as after an interruption.
    """

    hurried = False

    def __init__(self) -> None:
        super().__init__()
        self._unfinished: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Take a piece of work, and remember it until it is done."""
        future = super().submit(fn, *args, **kwargs)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def wait(self, timeout_s: float) -> int:
        """Wait until all work is done, or the time is over; return how many pieces are not."""
        futures = tuple(self._unfinished)
        concurrent.futures.wait(futures, timeout=max(0.0, timeout_s))
        return sum(not future.done() for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait and not self.hurried, cancel_futures=cancel_futures or self.hurried)
