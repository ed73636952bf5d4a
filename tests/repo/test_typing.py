"""What type checkers see of the public API is a promise: right use passes, misuse is refused where it stands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RIGHT = ROOT / "tests" / "typing" / "right"
WRONG = ROOT / "tests" / "typing" / "wrong"


def _mypy(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "--no-pretty", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


def _is_about(line: str, path: Path) -> bool:
    return line.startswith(str(path.relative_to(ROOT)))


def test_right_use_passes() -> None:
    """Each `assert_type` about the public API holds."""
    assert [line for line in _mypy(RIGHT).splitlines() if _is_about(line, RIGHT)] == []


def test_misuse_is_refused() -> None:
    """A misspelt name, a wrong argument or a change to a frozen value is an error on its line, and nothing else is."""
    path = WRONG / "misuse.py"
    expected = {
        (number, match[1])
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := re.search(r"# error: ([\w-]+)", line))
    }
    found = re.findall(
        rf"^{re.escape(str(path.relative_to(ROOT)))}:(\d+): error: .*\[([\w-]+)\]$", _mypy(path), re.MULTILINE
    )
    assert {(int(number), code) for number, code in found} == expected
    assert len(expected) >= 8
