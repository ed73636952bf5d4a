"""What a step of the loop costs on a scripted model in this process, and that it costs the same late as early."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from _report import Goal, ms, report

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    BaseLLM,
    ChatMessage,
    LLMRequest,
    LLMResponse,
    SyncToolExecutor,
    ToolCall,
    ToolRegistry,
)

SHORT, LONG = 50, 400


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Scripted(BaseLLM):
    """Asks for one tool call per request, and answers after so many; notes the CPU time of each request's arrival."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self.marks: list[float] = []

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Play the next turn."""
        self.marks.append(time.process_time())
        self._left -= 1
        if self._left < 0:
            return LLMResponse(message=ChatMessage.assistant("done"))
        call = ToolCall.of("add", id=f"c{len(request.messages)}", a=self._left, b=1)
        return LLMResponse(message=ChatMessage.assistant("", [call]))


async def _step_seconds(steps: int) -> list[float]:
    """Return the CPU time from each request to the next."""
    registry = ToolRegistry()
    registry.register(add)
    llm = Scripted(steps)
    settings = AgentProfileSettings(name="bench", tools=("add",), max_iterations=steps + 1)
    async with AgentService(settings, llm, SyncToolExecutor(registry)) as agent:
        answer = await agent.run("go")
    if answer != "done":
        raise AssertionError(f"the run ended with {answer!r}")
    return [after - before for before, after in zip(llm.marks, llm.marks[1:], strict=False)]


def main() -> int:
    """Compare the last steps of a long run with a short run's, in turns."""
    asyncio.run(_step_seconds(SHORT))
    short: list[float] = []
    late: list[float] = []
    for _ in range(5):
        short.append(statistics.median(asyncio.run(_step_seconds(SHORT))))
        late.append(statistics.median(asyncio.run(_step_seconds(LONG))[-SHORT:]))
    early, end = statistics.median(short), statistics.median(late)
    return report(
        [
            Goal(
                what=f"CPU of a step, the last {SHORT} of {LONG} against {SHORT} in all",
                ratio=end / early,
                at_most=1.3,
                detail=f"{ms(end)} / {ms(early)}",
            )
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
