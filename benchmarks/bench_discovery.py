"""What finding the plugins costs among 200 installed distributions, against the standard library's own walk."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import Goal, ms, report

DISTRIBUTIONS = 200
PLUGINS = 10


def _install(folder: Path) -> None:
    """Write the metadata of distributions as an installer leaves it; every fourth has entry points."""
    for number in range(DISTRIBUTIONS):
        info = folder / f"bench_dist_{number}-1.{number}.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.4\nName: bench-dist-{number}\nVersion: 1.{number}\n"
        requires = "".join(f"Requires-Dist: bench-dist-{other}>=1\n" for other in range(number % 12))
        (info / "METADATA").write_text(f"{head}{requires}\n{'A long description. ' * 200}", encoding="utf-8")
        (info / "RECORD").write_text("".join(f"bench_{number}/m{i}.py,,\n" for i in range(50)), encoding="utf-8")
        (info / "INSTALLER").write_text("pip\n", encoding="utf-8")
        if number < PLUGINS:
            text = f"[atlas]\nbench-{number} = bench_{number}.plugin\n"
            (info / "entry_points.txt").write_text(text, encoding="utf-8")
        elif number % 4 == 0:
            text = f"[console_scripts]\nbench-{number} = bench_{number}:main\n"
            (info / "entry_points.txt").write_text(text, encoding="utf-8")


def _first_call_seconds(folder: str, imports: str, call: str) -> tuple[float, int]:
    """Return what the first call costs in a new interpreter, its import not counted, and how many plugins it found."""
    code = (
        f"import sys, time\nsys.path.insert(0, {folder!r})\n{imports}\nstart = time.perf_counter()\n"
        f"found = {call}\nprint(time.perf_counter() - start, len(found))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    seconds, count = done.stdout.split()
    return float(seconds), int(count)


def main() -> int:
    """Measure both walks in turns, on the same `sys.path`, each in a new interpreter as a command starts."""
    with tempfile.TemporaryDirectory() as folder:
        _install(Path(folder))
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(15):
            seconds, found = _first_call_seconds(folder, "from atlas_core.discovery import scan", "scan().plugins")
            ours.append(seconds)
            seconds, known = _first_call_seconds(
                folder, "from importlib.metadata import entry_points", "entry_points().select(group='atlas')"
            )
            theirs.append(seconds)
            if found != known:
                raise AssertionError(f"the scan found {found} plugins, the standard library {known}")
    ratio = statistics.median(ours) / statistics.median(theirs)
    detail = f"{ms(statistics.median(ours))} / {ms(statistics.median(theirs))}"
    what = f"finding {found} plugins, {DISTRIBUTIONS} distributions added, against `entry_points()`"
    return report([Goal(what=what, ratio=ratio, at_most=0.25, detail=detail)])


if __name__ == "__main__":
    sys.exit(main())
