"""What others log is told in the form of the command line's own warnings."""

from __future__ import annotations

import logging

import pytest

from atlas_core.cli.log import shown_log
from atlas_core.cli.output import DEBUG
from tests.cli.test_run import Atlas
from tests.cli.world import World


def test_warnings_have_the_form_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, secrets masked; who is not Atlas is named; less than a warning is not told."""
    with shown_log():
        logging.getLogger("atlas.tools").warning("the thread of %s\n was abandoned", "tool 'nap'")
        logging.getLogger("foreign.part").error("key %s is wrong", "sk-TESTSECRET123")
        logging.getLogger("atlas.tools").info("not told")
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("atlas.kernel").exception("it did not stop")
    assert capsys.readouterr().err.splitlines() == [
        "atlas: warning: the thread of tool 'nap' was abandoned",
        "atlas: warning: foreign.part: key *** is wrong",
        "atlas: warning: it did not stop: ValueError: why",
    ]


def test_debugging_shows_the_whole_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With time, level, name and traceback."""
    monkeypatch.setattr(DEBUG, "on", True)
    with shown_log():
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger("atlas.tools").debug("a detail")
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("atlas.kernel").exception("it did not stop")
    err = capsys.readouterr().err
    assert "DEBUG atlas.tools: a detail\n" in err
    assert "ValueError: why" in err
    assert "Traceback" in err


def test_the_log_is_left_as_it_was(world: World, atlas: Atlas) -> None:
    """A program that calls the command finds its levels and handlers again."""
    root, loops = logging.getLogger(), logging.getLogger("asyncio")
    before = root.level, loops.level, list(root.handlers)
    assert atlas("--debug", "config", "show").status == 0
    assert (root.level, loops.level, list(root.handlers)) == before


def test_a_record_that_does_not_fit_its_text_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Foreign code logs as it likes; Python's own complaint names the place."""
    with shown_log():
        # Past pytest's own handler, which makes it an error of the test.
        logging.getLogger().handlers[-1].handle(
            logging.LogRecord("foreign", logging.WARNING, __file__, 1, "%d", ("no number",), None)
        )
    assert "Logging error" in capsys.readouterr().err


def test_an_abandoned_thread_is_a_warning_of_the_command_line(world: World) -> None:
    """As a real process shows it."""
    text = (world.work / "settings.toml").read_text().replace("max_iterations = 3", "max_execution_time_seconds = 1")
    world.settings(text)
    done = world.atlas("run", 'call nap {"seconds": 60}')
    assert done.returncode == 4
    assert all(line.startswith(("atlas: warning: ", "atlas: error: ")) for line in done.stderr.splitlines())
    assert "was abandoned" in done.stderr
