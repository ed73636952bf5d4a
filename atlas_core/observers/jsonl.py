"""Writes the events of runs to a JSON Lines file, and reads them back."""

from __future__ import annotations

import json
import logging
import threading
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
    import os

    from atlas_core.events import Event

__all__ = ["JsonLinesTrace", "TraceLine", "read_trace"]

log = logging.getLogger("atlas.observers")


class JsonLinesTrace:
    """An observer that appends each event to a file, as one JSON object a line, flushed at once.

    The file opens at `start`, at `with`, or at the first event, and holds whole lines whatever happens to the
    process. What looks like a secret is masked. A failing write is logged once, ends the writing and nothing else.

    Args:
        path: The file; a new one is made, events are added to an existing one.
    Raises:
        SettingsError: The file's folder does not exist, or the path is a folder.

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
            is_folder, has_folder = self.path.is_dir(), self.path.parent.is_dir()
        except OSError as exc:
            raise self._refusal(exc) from exc
        if is_folder:
            raise SettingsError(f"trace file {str(self.path)!r} is a folder", remedy="name a file inside it")
        if not has_folder:
            raise SettingsError(
                f"trace file {str(self.path)!r} can't be written: its folder does not exist",
                remedy=f"make the folder {str(self.path.parent)!r}",
            )

    def _refusal(self, exc: OSError) -> SettingsError:
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
            self._file, self._closed = self.path.open("ab", buffering=0), False
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
                self._open().write(line)
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
