"""Writes the events of runs to a JSON Lines file, and reads them back."""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

from atlas_core.errors import SettingsError
from atlas_core.events import to_dict
from atlas_core.observers.reading import event_from_dict
from atlas_core.settings.secrets import masked

if TYPE_CHECKING:
    from atlas_core.events import Event

__all__ = ["JsonLinesTrace", "TraceLine", "read_trace"]

log = logging.getLogger("atlas.observers")

PATIENCE_S = 1.0
"""How long one write may wait where a pipe is full; the run waits too."""


class JsonLinesTrace:
    """An observer that appends each event to a file, as one JSON object a line, flushed at once.

    The file opens at `start`, at `with`, or at the first event, and holds whole lines whatever happens to the
    process. What looks like a secret is masked. A failing write is logged once, ends the writing and nothing else.

    A pipe needs a reader when it is opened, and one that keeps up: a write waits for it no longer than a second.

    Args:
        path: A file, a terminal or the like, or a named pipe; a new file is made, events are added to an existing one.
    Raises:
        SettingsError: The file's folder does not exist, or the path is a folder, a disk or a socket.

    Attributes:
        path: The file.
        error: Why writing stopped, or None.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.error: OSError | None = None
        self._file: FileIO | None = None
        self._closed = False
        self._lock = threading.Lock()  # runs may live on several loops
        try:
            mode = self.path.stat().st_mode if self.path.exists() else stat.S_IFREG
            has_folder = self.path.parent.is_dir()
        except OSError as exc:
            raise self._refusal(exc) from exc
        if stat.S_ISDIR(mode):
            raise SettingsError(f"trace file {str(self.path)!r} is a folder", remedy="name a file inside it")
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
            kind = "a disk" if stat.S_ISBLK(mode) else "a socket"
            raise SettingsError(f"trace file {str(self.path)!r} is {kind}", remedy="name a file")
        if not has_folder:
            raise SettingsError(
                f"trace file {str(self.path)!r} can't be written: its folder does not exist",
                remedy=f"make the folder {str(self.path.parent)!r}",
            )

    def _refusal(self, exc: OSError) -> SettingsError:
        if exc.errno == errno.ENXIO:
            return SettingsError(
                f"trace file {str(self.path)!r} is a pipe that nobody reads", remedy="start its reader first"
            )
        reason = exc.strerror or str(exc)
        return SettingsError(f"trace file {str(self.path)!r} can't be written: {reason}", remedy="choose another file")

    def open(self) -> None:
        """Open the file; does nothing if it is open.

        Raises:
            SettingsError: It can't be written.
        """
        with self._lock:
            try:
                self._open()
            except OSError as exc:
                raise self._refusal(exc) from exc

    def _open(self) -> FileIO:
        if self._file is None:
            cut = _ends_amid_a_line(self.path)
            # `Path.open` takes no opener. `close` closes it.
            file = open(self.path, "ab", buffering=0, opener=_open_at_once)  # noqa: SIM115
            self._file, self._closed = file, False
            if cut:
                self._file.write(b"\n")
        return self._file

    def on_event(self, event: Event, /) -> None:
        """Write an event."""
        with self._lock:
            if self.error is not None or self._closed:
                return
            line = _encoded(event)
            try:
                # One write for the whole line, past any buffer: a crash can't leave half of an earlier event.
                _write_all(self._open(), line)
            except OSError as exc:
                self.error = exc
                log.warning("trace file %r can't be written, events are lost from here on: %s", str(self.path), exc)

    def close(self) -> None:
        """Close the file; later events are not written. Does nothing if it is closed."""
        with self._lock:
            self._closed = True
            file, self._file = self._file, None
            if file is not None:
                file.close()

    async def start(self) -> None:
        """Open the file, as `open` does."""
        self.open()

    async def stop(self) -> None:
        """Close the file."""
        self.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"JsonLinesTrace({str(self.path)!r})"


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe that nobody reads would wait for a reader, perhaps for ever.
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)


def _write_all(file: FileIO, line: bytes) -> None:
    """Write a line; a pipe or a terminal that is full gets a second to make room."""
    written = file.write(line) or 0
    ends = time.monotonic() + PATIENCE_S
    while written < len(line):
        room = select.poll()
        room.register(file, select.POLLOUT)
        if not room.poll(max(0.0, ends - time.monotonic()) * 1_000):
            raise BlockingIOError(errno.EAGAIN, "its reader does not keep up")
        written += file.write(line[written:]) or 0


def _encoded(event: Event) -> bytes:
    data = masked(to_dict(event))
    try:
        return json.dumps(data, ensure_ascii=False, default=repr).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell and UTF-8 can't
        return json.dumps(data, default=repr).encode() + b"\n"


def _ends_amid_a_line(path: Path) -> bool:
    """Tell whether a file's last line has no end, as a killed writer leaves it; a pipe or device has none."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One line of a trace: the event it holds, or what is wrong with it.

    Attributes:
        number: The line's number, from 1.
        event: The event, or None.
        problem: Why there is none, or "".
        cut: Whether it is a last line that was never finished.
    """

    number: int
    event: Event | None = None
    problem: str = ""
    cut: bool = False


def read_trace(path: str | os.PathLike[str]) -> Iterator[TraceLine]:
    """Yield the lines of a trace, blank ones left out; a broken line does not keep the rest from being read.

    Raises:
        OSError: The file can't be read.
    """
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _read_line(number, line)


def _read_line(number: int, line: bytes) -> TraceLine:
    try:
        data = json.loads(line)
        return TraceLine(number=number, event=event_from_dict(data))
    except (ValueError, RecursionError) as exc:
        if not line.endswith(b"\n"):
            problem = "the last line is cut; its writer ended before it was finished"
            return TraceLine(number=number, problem=problem, cut=True)
        kind = "is not JSON" if isinstance(exc, (json.JSONDecodeError, UnicodeDecodeError)) else "is no event"
        return TraceLine(number=number, problem=f"{kind}: {exc}")
