"""`atlas_core.settings.prompts`: the system prompt, from the settings or from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_core.errors import SettingsError
from atlas_core.settings.models import AgentProfileSettings
from atlas_core.settings.prompts import read_system_prompt


@pytest.mark.parametrize("prompt", ["Help.", "", None], ids=repr)
def test_a_prompt_in_the_settings_is_given_as_it_is(tmp_path: Path, prompt: str | None) -> None:
    """Without a file, the settings' own text counts, or none."""
    assert read_system_prompt(AgentProfileSettings(system_prompt=prompt), tmp_path) == prompt


def test_a_file_is_read_relative_to_the_base_folder(tmp_path: Path) -> None:
    """The file's text is the prompt, without a byte-order mark; an empty text of the settings does not count."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "math.md").write_bytes("\ufeffHelp with sums: ä\n".encode())
    profile = AgentProfileSettings(system_prompt="", system_prompt_file="prompts/math.md")
    assert read_system_prompt(profile, tmp_path) == "Help with sums: ä\n"
    absolute = AgentProfileSettings(system_prompt_file=str(tmp_path / "prompts" / "math.md"))
    assert read_system_prompt(absolute, Path("/nowhere")) == "Help with sums: ä\n"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "no text in UTF-8"),
    ],
    ids=["missing", "a folder", "UTF-16"],
)
def test_an_unreadable_file_is_an_error(tmp_path: Path, make: Callable[[Path], object], reason: str) -> None:
    """The error names the file, the key, where it was set, and the reason."""
    make(tmp_path / "p.md")
    profile = AgentProfileSettings(name="x", system_prompt_file="p.md")
    with pytest.raises(SettingsError, match=reason) as caught:
        read_system_prompt(profile, tmp_path, key="profiles.x", source="settings.toml:3")
    assert "'p.md'" in str(caught.value)
    assert (caught.value.key, caught.value.source) == ("profiles.x.system_prompt_file", "settings.toml:3")


def test_a_name_that_can_be_no_file_is_an_error(tmp_path: Path) -> None:
    """A name with a zero byte is told like any other that can't be read."""
    with pytest.raises(SettingsError, match="can't be read"):
        read_system_prompt(AgentProfileSettings(system_prompt_file="a\0b"), tmp_path)


def test_both_kinds_of_prompt_are_an_error(tmp_path: Path) -> None:
    """A profile with a text and a file is refused, whether the file exists or not."""
    profile = AgentProfileSettings(name="x", system_prompt="a", system_prompt_file="b")
    with pytest.raises(SettingsError, match="profile 'x' sets both") as caught:
        read_system_prompt(profile, tmp_path)
    assert caught.value.key == "system_prompt_file"
