"""One answer while it is written: what of it may be shown, and what it comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas_core import LLMDelta, Usage
from atlas_llama.wire import Gate, Written, read_answer

if TYPE_CHECKING:
    from atlas_llama.engine import Chunk
    from atlas_llama.holding import Holding

__all__ = ["Writing"]


class Writing:
    """One answer while it is written.

    Args:
        holding: What the model is held to, or None.
        first: Whether this try may be shown; a second one would follow words that no longer count.
    """

    def __init__(self, holding: Holding | None, *, first: bool) -> None:
        self._holding = holding
        self._names = holding.names if holding is not None else ()
        self._gate = Gate(tools=bool(self._names))
        self._show = first
        self._content = ""
        self._reasoning = ""
        self.cut = False
        self.usage = Usage(requests=1)

    @property
    def raw(self) -> str:
        """What counts as the answer: what a template takes for thinking, if there is nothing else."""
        return self._content if self._content.strip() or self._holding is None else self._reasoning

    @property
    def written(self) -> Written:
        """The answer in parts."""
        return read_answer(self.raw, self._names)

    def take(self, chunk: Chunk) -> list[LLMDelta]:
        """Take a piece from llama.cpp; return what may be shown of it."""
        deltas: list[LLMDelta] = []
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                self._reasoning += thought
                deltas.append(LLMDelta(thought, "reasoning"))
            if piece := delta.get("content"):
                self._content += piece
                deltas.append(LLMDelta(self._gate.feed(piece)))
            self.cut = self.cut or choice.get("finish_reason") == "length"
        if used := chunk.get("usage"):
            self.usage = Usage(
                input_tokens=used.get("prompt_tokens", 0),
                cached_input_tokens=(used.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
                output_tokens=used.get("completion_tokens", 0),
                requests=1,
            )
        return [delta for delta in deltas if delta.text and self._show]

    def end(self) -> list[LLMDelta]:
        """Return what was held back and turned out to be words."""
        text = self._gate.end()
        return [LLMDelta(text)] if text and self._show else []
