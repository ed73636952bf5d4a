"""What the benchmarks share: ratios within one run, so that a slow or busy machine changes little."""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A measured ratio and the most that it may be."""

    what: str
    ratio: float
    at_most: float
    detail: str

    @property
    def met(self) -> bool:
        """Whether the ratio keeps to its bound."""
        return self.ratio <= self.at_most


def report(goals: list[Goal]) -> int:
    """Print the goals and return an exit status: 0 if all are met."""
    for goal in goals:
        mark = "ok  " if goal.met else "MISS"
        print(f"{mark} {goal.ratio:6.2f} x (at most {goal.at_most:g} x)  {goal.what}: {goal.detail}")
    return 0 if all(goal.met for goal in goals) else 1


def ms(seconds: float) -> str:
    """Return seconds as milliseconds to read."""
    return f"{seconds * 1000:.2f} ms"


def import_seconds(*statements: str, rounds: int = 21) -> list[float]:
    """Return what each statement costs in a new interpreter, without the interpreter's own start.

    The statements take turns, so that what disturbs the machine disturbs all; the median is returned.
    """
    times: list[list[float]] = [[] for _ in statements]
    for round_number in range(rounds + 2):
        for statement, taken in zip(statements, times, strict=True):
            code = f"import time; t = time.perf_counter()\n{statement}\nprint(time.perf_counter() - t)"
            done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
            if round_number >= 2:  # the first rounds fill the disk cache and write bytecode
                taken.append(float(done.stdout))
    return [statistics.median(taken) for taken in times]
