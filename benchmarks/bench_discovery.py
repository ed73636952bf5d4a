"""Finding the plugins among 200 installed distributions: at most 0.25 of `importlib.metadata.entry_points()`.

Both read the same folder in one process, with warm file caches and without the garbage collector, as `timeit` does;
the ratio of the medians counts. The standard library keeps its listing of a folder between calls, the scan keeps
nothing: a first call compares better still. Prints the ratio; exits with 1 where the goal is missed.
"""

from __future__ import annotations

import importlib.metadata
import statistics
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path

from atlas_core.discovery import scan

GOAL = 0.25
DISTRIBUTIONS = 200
PLUGINS = 5
ROUNDS = 51


def lay_out(folder: Path) -> None:
    """Write 200 distributions; as in a real environment, a third has entry points and each has a package."""
    for number in range(DISTRIBUTIONS):
        place = folder / f"some_package_{number:03}-1.{number}.0.dist-info"
        place.mkdir()
        (folder / f"some_package_{number:03}").mkdir()
        description = "A line of the description, as README files are long.\n" * 100
        header = (
            f"Metadata-Version: 2.4\nName: some-package-{number:03}\nVersion: 1.{number}.0\nRequires-Dist: other>=1\n"
        )
        (place / "METADATA").write_text(f"{header}\n{description}", encoding="utf-8")
        (place / "RECORD").write_text("file.py,sha256=0,0\n" * 50, encoding="utf-8")
        if number % 3 == 0:
            text = f"[console_scripts]\nscript-{number} = some_package_{number:03}:main\n"
            if number < 3 * PLUGINS:
                text += f"\n[atlas]\nplugin-{number} = some_package_{number:03}.plugin\n"
            (place / "entry_points.txt").write_text(text, encoding="utf-8")


def median_s(call: Callable[[], object]) -> float:
    """Return the median of the seconds that a call takes."""
    return statistics.median(timeit.repeat(call, number=1, repeat=ROUNDS))


def bench_discovery() -> float:
    """Measure, print both medians and return their ratio."""
    before = list(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        sys.path[:] = [folder]
        try:
            found = {entry.name for entry in importlib.metadata.entry_points(group="atlas")}
            assert {plugin.name for plugin in scan().plugins} == found
            assert len(found) == PLUGINS
            ours, theirs = median_s(scan), median_s(importlib.metadata.entry_points)
        finally:
            sys.path[:] = before
    print(
        f"discovery, {DISTRIBUTIONS} distributions: {ours * 1e3:.2f} ms, importlib.metadata {theirs * 1e3:.2f} ms, "
        f"ratio {ours / theirs:.3f} (goal {GOAL})"
    )
    return ours / theirs


if __name__ == "__main__":
    sys.exit(bench_discovery() > GOAL)
