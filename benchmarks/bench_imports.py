"""What importing Atlas and asking for its version cost."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from _report import Goal, import_seconds, ms, report


def _process_seconds(*commands: list[str], rounds: int = 21) -> list[float]:
    """Return the median wall time of each command, run in turns."""
    times: list[list[float]] = [[] for _ in commands]
    for round_number in range(rounds + 2):
        for command, taken in zip(commands, times, strict=True):
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            if round_number >= 2:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def main() -> int:
    """Measure and compare with bare imports."""
    hookimpl, pluggy, service, bare = import_seconds(
        "from atlas_core import hookimpl",
        "import pluggy",
        "from atlas_core import AgentService",
        "from pydantic import BaseModel, ConfigDict, Field; import pluggy, asyncio",
    )
    atlas = str(Path(sys.executable).with_name("atlas"))
    version, nothing = _process_seconds([atlas, "--version"], [sys.executable, "-c", "pass"])
    return report(
        [
            Goal(
                what="`from atlas_core import hookimpl` against `import pluggy`",
                ratio=hookimpl / pluggy,
                at_most=1.3,
                detail=f"{ms(hookimpl)} / {ms(pluggy)}",
            ),
            Goal(
                what="`from atlas_core import AgentService` against pydantic, pluggy and asyncio",
                ratio=service / bare,
                at_most=1.4,
                detail=f"{ms(service)} / {ms(bare)}",
            ),
            Goal(
                what="`atlas --version` against `python -c pass`, whole processes",
                ratio=version / nothing,
                at_most=2.0,
                detail=f"{ms(version)} / {ms(nothing)}",
            ),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
