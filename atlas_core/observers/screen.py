"""Where the console tree is drawn: plain lines for pipes and files, colours and a spinner for a terminal."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol, TextIO

from atlas_core.observers.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

__all__ = ["PlainScreen", "RichScreen", "Screen", "is_terminal", "make_screen"]

TONES = {
    "model": "bold cyan",
    "thought": "italic",
    "action": "yellow",
    "observation": "green",
    "failure": "red",
    "answer": "bold",
    "note": "dim",
}
"""How each kind of line looks on a terminal, in rich's words."""

PATIENCE_S = 0.3
"""A wait shorter than this is not shown: a spinner that only flashes disturbs."""


class Screen(Protocol):
    """What the console tree is drawn on. Text is foreign; a screen makes it safe."""

    def line(self, label: str, text: str, *, depth: int, tone: str, last: bool = False) -> None:
        """Draw a labelled text; its further lines are indented."""

    def begin(self, label: str, *, depth: int, tone: str) -> None:
        """Begin a text that comes in pieces."""

    def piece(self, text: str) -> None:
        """Go on with it."""

    def end(self) -> None:
        """End it."""

    def wait(self, text: str) -> None:
        """Show what is waited for, until something else is drawn."""

    def rest(self) -> None:
        """Take away what `wait` showed."""


def is_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") not in {"dumb", "unknown"}


def make_screen(stream: TextIO) -> Screen:
    """Return the screen that fits a stream."""
    return RichScreen(stream) if is_terminal(stream) else PlainScreen(stream)


class PlainScreen:
    """Plain indented lines, flushed one by one.

    Args:
        stream: A text stream; what its encoding lacks is spelt out.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._indent = ""

    def line(self, label: str, text: str, *, depth: int, tone: str, last: bool = False) -> None:
        """Write a labelled text."""
        self.begin(label, depth=depth, tone=tone)
        self.piece(text)
        self.end()

    def begin(self, label: str, *, depth: int, tone: str) -> None:
        """Write a label."""
        self._indent = "  " * depth
        self._write(f"{self._indent}{label}: ")

    def piece(self, text: str) -> None:
        """Write a piece of the text."""
        self._write(printable(text).replace("\n", f"\n{self._indent}  "))

    def end(self) -> None:
        """End the line."""
        self._write("\n")

    def wait(self, text: str) -> None:
        """Do nothing: what reads a pipe has no use for a spinner."""

    def rest(self) -> None:
        """Do nothing."""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()


class RichScreen:
    """A coloured tree, and a spinner with the time that has passed.

    Args:
        stream: A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # 60 ms, needed on a terminal only

        # Foreign text must not become markup, emoji or links, and the terminal wraps lines itself.
        self._console: Console = Console(
            file=stream, force_terminal=True, markup=False, emoji=False, highlight=False, soft_wrap=True
        )
        fancy = (self._console.encoding or "").lower().startswith("utf")
        self._branch, self._leaf, self._trunk = ("├─ ", "└─ ", "│  ") if fancy else ("|- ", "`- ", "|  ")
        self._spinner = "dots" if fancy else "line"
        self._live: Live | None = None
        self._tone = ""
        self._margin = ""

    def line(self, label: str, text: str, *, depth: int, tone: str, last: bool = False) -> None:
        """Draw a labelled text."""
        self._begin(label, depth, tone, last=last)
        self.piece(text)
        self.end()

    def begin(self, label: str, *, depth: int, tone: str) -> None:
        """Draw a label."""
        self._begin(label, depth, tone, last=False)

    def _begin(self, label: str, depth: int, tone: str, *, last: bool) -> None:
        self.rest()
        mark = self._leaf if last else self._branch
        lead = self._trunk * (depth - 1) + mark if depth else ""
        self._margin = (self._trunk * (depth - 1) + ("   " if last else self._trunk)) if depth else ""
        self._tone = TONES.get(tone, "")
        self._draw(lead, "dim")
        self._draw(f"{label}: ", f"{self._tone} not italic" if self._tone else "")

    def piece(self, text: str) -> None:
        """Draw a piece of the text."""
        for number, part in enumerate(printable(text).split("\n")):
            if number:
                self._draw("\n")
                self._draw(self._margin, "dim")
            self._draw(part, self._tone)

    def end(self) -> None:
        """End the line."""
        self._draw("\n")

    def _draw(self, text: str, style: str = "") -> None:
        if text:
            from rich.text import Text

            self._console.print(Text(text, style=style), end="")

    def wait(self, text: str) -> None:
        """Show a spinner with the text and the seconds that have passed."""
        from rich.live import Live

        self.rest()
        waiting = _Waiting(printable(text), self._spinner)
        self._live = Live(
            console=self._console, get_renderable=waiting.now, transient=True, refresh_per_second=8, auto_refresh=True
        )
        self._live.start()

    def rest(self) -> None:
        """Take the spinner away."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


class _Waiting:
    """What a wait looks like at this moment: nothing at first, then a spinner."""

    def __init__(self, text: str, spinner: str) -> None:
        from rich.spinner import Spinner

        self._text = text
        self._spinner = Spinner(spinner)
        self._began = time.monotonic()

    def now(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        took = time.monotonic() - self._began
        if took < PATIENCE_S:
            return Group()
        self._spinner.update(text=Text(f"{self._text} ({took:.0f} s)", style="dim"))
        return self._spinner
