"""`atlas_core.settings.toml_file`: reading one file. Covers case 110."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_core.errors import SettingsError
from atlas_core.settings.toml_file import read_toml


def test_a_file_is_read_with_its_lines(tmp_path: Path) -> None:
    """The tables come as the TOML parser reads them, and each key knows its line."""
    path = tmp_path / "s.toml"
    path.write_text("[default]\nx = 1\n[default.t]\n")
    file = read_toml(path, label="s.toml")
    assert file is not None
    assert file.tables == {"default": {"x": 1, "t": {}}}
    assert file.origin(("default", "x")) == "s.toml:2"
    assert file.origin(("default", "t", "unknown", 0)) == "s.toml:3"
    assert file.origin(("other",)) == "s.toml"
    assert "1" not in repr(file).replace(str(path), "")


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_byte_order_mark_is_accepted(tmp_path: Path, ending: str) -> None:
    """A byte-order mark is no part of the first key, and line ends of Windows count once."""
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + f"# c{ending}[default]{ending}x = 1{ending}".encode())
    file = read_toml(path, label="s.toml")
    assert file is not None
    assert file.tables == {"default": {"x": 1}}
    assert file.origin(("default", "x")) == "s.toml:3"


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


_SECRET = "api_key = 'sk-TESTSECRET123'\n"
_DAMAGED: list[tuple[str, Callable[[Path], object], str]] = [
    ("a folder", _folder, "is a folder"),
    ("a link to itself", _loop, "can't be read"),
    ("a link that leads nowhere", _nowhere, "link that leads nowhere"),
    ("UTF-16", lambda p: p.write_bytes(_SECRET.encode("utf-16")), "UTF-16"),
    ("UTF-16 without a mark", lambda p: p.write_bytes(_SECRET.encode("utf-16-le")), "UTF-16"),
    ("Latin-1 in line 2", lambda p: p.write_bytes(f"{_SECRET}x = 'ä'".encode("latin-1")), "not UTF-8 in line 2"),
    ("invalid TOML in line 3", lambda p: p.write_text(f"{_SECRET}\nx = sk-TESTSECRET123\n"), "s.toml:3"),
    ("a text that does not end", lambda p: p.write_text(f"{_SECRET}x = 'TESTSECRET"), r"not valid TOML.*s\.toml:2"),
    ("a list that does not end", lambda p: p.write_text(f"{_SECRET}x = [\n1,\n\n"), r"not valid TOML.*s\.toml:3"),
    ("a key twice", lambda p: p.write_text(_SECRET * 2), "not valid TOML"),
]


@pytest.mark.parametrize("must_exist", [True, False], ids=["named by the user", "looked for"])
@pytest.mark.parametrize(("make", "words"), [case[1:] for case in _DAMAGED], ids=[case[0] for case in _DAMAGED])
def test_a_damaged_file_is_an_error_that_shows_nothing_of_it(
    tmp_path: Path, make: Callable[[Path], object], words: str, must_exist: bool
) -> None:
    """Damage is told with file and line wherever the file was found; no content is shown. (case 110)"""
    path = tmp_path / "s.toml"
    make(path)
    with pytest.raises(SettingsError, match=words) as caught:
        read_toml(path, label="s.toml", must_exist=must_exist)
    told = "".join(traceback.format_exception(caught.value))
    assert "s.toml" in str(caught.value)
    assert "TESTSECRET" not in told


def test_only_a_file_named_by_the_user_must_exist(tmp_path: Path) -> None:
    """A missing file is an error where it was named, and none where it was looked for. (case 110)"""
    path = tmp_path / "s.toml"
    assert read_toml(path, label="s.toml", must_exist=False) is None
    with pytest.raises(SettingsError, match=r"'s\.toml' does not exist.*atlas init"):
        read_toml(path, label="s.toml")


def test_a_pipe_is_read_only_if_named(tmp_path: Path) -> None:
    """A special file that merely lies there is refused rather than waited for."""
    path = tmp_path / "s.toml"
    os.mkfifo(path)
    with pytest.raises(SettingsError, match="no regular file"):
        read_toml(path, label="s.toml", must_exist=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(tmp_path: Path) -> None:
    """A file that may not be read is an error with the system's reason. (case 110)"""
    path = tmp_path / "s.toml"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(SettingsError, match="Permission denied"):
        read_toml(path, label="s.toml", must_exist=False)
