from __future__ import annotations

import os
import re
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from atlas_standard_tools._rooted import PathError, Root
from atlas_standard_tools._spoken_files import read_listing, read_reading, read_writing
from atlas_standard_tools.files import Files
from atlas_standard_tools.options import FilesOptions
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_core import ToolError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root, with a file."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "x").write_text("SECRET")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """A root with a file, a folder, and links of all kinds."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "ok.txt").write_text("fine\n")
    (folder / "sub" / "deep.txt").write_text("deep\n")
    (folder / "L").symlink_to(outside)
    (folder / "F").symlink_to(outside / "x")
    (folder / "G").symlink_to("../outside/x")
    (folder / "D").symlink_to(outside / "missing")
    (folder / "in").symlink_to("ok.txt")
    (folder / "in-abs").symlink_to(folder / "ok.txt")
    (folder / "sub" / "up").symlink_to("../ok.txt")
    (folder / "to-sub").symlink_to("sub")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.fixture
def files(root: Path, tmp_path: Path) -> Files:
    """The tools over that root."""
    return Files(FilesOptions(root=root, write=True), root=tmp_path)


OUTSIDE = ["../x", "..", "L/x", "L/missing", "L/sub/new.txt", "F", "G", "D", "sub/../../x", "sub/../../root/ok.txt",
           "{outside}/x", "{outside}/missing", "/etc/passwd", "/proc/self/environ", "/"]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out(files: Files, outside: Path, path: str) -> None:
    """Neither dots, links nor absolute paths get out, to read, list or write. Case 134."""
    path = path.format(outside=outside)
    for call in (files.read_file, files.list_directory, lambda p: files.write_file(p, "owned")):
        with pytest.raises(ToolError, match=re.escape(f"{path!r} leads out of the folder")):
            call(path)
    assert [p.name for p in outside.iterdir()] == ["x"]
    assert (outside / "x").read_text() == "SECRET"


@pytest.mark.parametrize(
    ("there", "missing"), [("L/x", "L/missing"), ("F", "D"), ("{o}/x", "{o}/missing"), ("../outside/x", "../outside/y")]
)
def test_the_error_does_not_tell_whether_an_outside_file_exists(
    files: Files, outside: Path, there: str, missing: str
) -> None:
    """A path outside gets one text, whether or not something lies there. Case 134."""
    texts = []
    for path in (there.format(o=outside), missing.format(o=outside)):
        with pytest.raises(ToolError) as caught:
            files.read_file(path)
        texts.append(str(caught.value).replace(repr(path), "PATH"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "is empty"),
        ("~/x", "not expanded"),
        ("~root/x", "not expanded"),
        ("ok.txt\0.png", "is no path"),
        ("\ud800", "is no path"),
        ("x" * 5000, "is no path"),
        ("x" * 300, "can't be used"),
        ("nope.txt", "there is no 'nope.txt'"),
        ("nope/x", "there is no 'nope/x'"),
        ("ok.txt/x", "is no folder"),
        ("in/x", "is no folder"),
        ("sub", "is a folder; list it"),
        (".", "is a folder"),
        ("loop", "over 40 links"),
        (".env", "is hidden"),
        ("sub/.git/config", "is hidden"),
    ],
)
def test_what_is_no_readable_path_is_explained(files: Files, path: str, text: str) -> None:
    """The refusal names the path as it was given, and what to do. Case 134."""
    with pytest.raises(ToolError, match=re.escape(text)) as caught:
        files.read_file(path)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "path",
    ["ok.txt", "./ok.txt", "sub/../ok.txt", "in", "in-abs", "sub/up", "to-sub/up", "{root}/ok.txt", "sub//.././ok.txt"],
)
def test_paths_that_stay_inside_work(files: Files, root: Path, path: str) -> None:
    """So do links that stay inside, and an absolute path below the root."""
    assert files.read_file(path.format(root=root)) == "fine\n"


def test_the_root_may_itself_be_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    """Both its names are below it then."""
    (tmp_path / "alias").symlink_to(root)
    files = Files(FilesOptions(root=tmp_path / "alias"), root=tmp_path)
    for path in ("ok.txt", f"{tmp_path}/alias/ok.txt", f"{root}/ok.txt", "in-abs"):
        assert files.read_file(path) == "fine\n"


def test_without_a_root_the_working_folder_is_the_root(root: Path) -> None:
    """Nothing beyond it can be read, and nothing written. Case 134."""
    files = Files(FilesOptions(), root=root)
    assert files.read_file("ok.txt") == "fine\n"
    with pytest.raises(ToolError, match="leads out"):
        files.read_file("../outside/x")
    assert [t.__name__ for t in files.tools()] == ["read_file", "list_directory"]


def test_a_root_that_does_not_exist_names_the_setting(tmp_path: Path) -> None:
    """The error says which setting to change."""
    files = Files(FilesOptions(root=tmp_path / "nope"), root=tmp_path)
    with pytest.raises(ToolError, match=r"set files\.root to a folder that exists"):
        files.list_directory()


def test_special_files_are_not_opened(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe would hang the reader for ever; it, sockets and devices are refused at once."""
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        monkeypatch.chdir(root)  # the name of a socket has at most 108 bytes
        sock.bind("socket")
        for name, kind in (("pipe", "pipe"), ("socket", "socket")):
            began = time.perf_counter()
            with pytest.raises(ToolError, match=f"no regular file but a {kind}"):
                files.read_file(name)
            with pytest.raises(ToolError, match=f"no regular file but a {kind}"):
                files.write_file(name, "x")
            assert time.perf_counter() - began < 1
    assert "pipe  (special)" in files.list_directory()


@pytest.mark.parametrize(
    ("folder", "path"),
    [("/dev", "null"), ("/dev", "zero"), ("/proc/self", "environ"), ("/proc", "self/status"), ("/", "proc/version")],
)
def test_devices_and_the_system_s_own_files_are_not_read(tmp_path: Path, folder: str, path: str) -> None:
    """Even where someone makes the whole machine the root."""
    files = Files(FilesOptions(root=Path(folder)), root=tmp_path)
    with pytest.raises(ToolError, match=r"not opened|denies"):
        files.read_file(path)


def test_a_link_swapped_in_during_the_walk_is_met_by_the_open(root: Path, outside: Path) -> None:
    """While another thread swaps a folder and a file for links to the outside, not one read gets out."""
    victim = root / "victim"
    victim.mkdir()
    (victim / "x").write_text("inside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            victim.rename(root / "aside")
            victim.symlink_to(outside)
            victim.unlink()
            (root / "aside").rename(victim)

    thread = threading.Thread(target=swap)
    thread.start()
    got: list[str] = []
    try:
        walker = Root(root)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            try:
                with walker.file("victim/x") as descriptor:
                    got.append(os.read(descriptor, 100).decode())
            except PathError:
                continue
    finally:
        done.set()
        thread.join()
    assert set(got) == {"inside"}


def test_names_with_a_dot_in_front_are_hidden_unless_switched_on(root: Path, tmp_path: Path) -> None:
    """Secrets such as .env are neither listed, read nor written, also not through a link."""
    (root / ".env").write_text("KEY=1")
    (root / "alias").symlink_to(".env")
    shy = Files(FilesOptions(root=root, write=True), root=tmp_path)
    assert ".env" not in shy.list_directory()
    for path in (".env", "alias"):
        with pytest.raises(ToolError, match="is hidden"):
            shy.read_file(path)
        with pytest.raises(ToolError, match="is hidden"):
            shy.write_file(path, "KEY=2")
    bold = Files(FilesOptions(root=root, hidden=True), root=tmp_path)
    assert bold.read_file("alias") == "KEY=1"
    assert ".env  5" in bold.list_directory()


# --- reading


def _over(tmp_path: Path, data: bytes, **options: Any) -> Files:
    (tmp_path / "f.txt").write_bytes(data)
    return Files(FilesOptions(root=tmp_path, **options), root=tmp_path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "[the file is empty]"),
        (b"\xef\xbb\xbfmark\n", "mark\n"),
        ("é".encode(), "é"),
        ("hé\n".encode("utf-16"), "hé\n[read as utf-16-le]"),
        (b"\xfe\xff" + "hé\n".encode("utf-16-be"), "hé\n[read as utf-16-be]"),
        ("hé\n".encode("utf-32"), "hé\n[read as utf-32-le]"),
        (
            "caf\xe9".encode("latin-1"),
            "café\n[read as Latin-1, as it is no valid UTF-8; name the encoding if letters look wrong]",
        ),
        (b"a\r\nb\r\n", "a\r\nb\r\n"),
    ],
)
def test_encodings_are_found_out(tmp_path: Path, data: bytes, text: str) -> None:
    """By its mark, else UTF-8, else Latin-1, which is said."""
    assert _over(tmp_path, data).read_file("f.txt") == text


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    """It is used, and said; a wrong or unknown one is an error."""
    files = _over(tmp_path, "50 \x80".encode("latin-1"))
    assert files.read_file("f.txt", encoding="cp1252") == "50 €\n[read as cp1252]"
    with pytest.raises(ToolError, match="not in the encoding 'utf-8'"):
        files.read_file("f.txt", encoding="utf-8")
    for name in ("klingon", "base64", "a\0b"):
        with pytest.raises(ToolError, match="no text encoding"):
            files.read_file("f.txt", encoding=name)


def test_a_file_with_a_mark_but_broken_contents_is_explained(tmp_path: Path) -> None:
    """The mark is believed, and its breach said."""
    with pytest.raises(ToolError, match="not in the encoding"):
        _over(tmp_path, b"\xff\xfe" + b"\x00\xd8\x00\xd8").read_file("f.txt")


def test_binary_files_are_described(tmp_path: Path) -> None:
    """Their bytes are of no use to a model."""
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"x" * 100)
    files = Files(FilesOptions(root=tmp_path), root=tmp_path)
    assert files.read_file("p.png") == (
        "[binary file: 116 bytes, image/png by its name, begins 89 50 4e 47 0d 0a 1a 0a 00 00 00 0d 49 48 44 52]"
    )


def test_a_long_file_comes_in_parts(tmp_path: Path) -> None:
    """Each part ends at a line and says where to go on."""
    files = _over(tmp_path, b"line\n" * 100, max_read_bytes=52)
    assert files.read_file("f.txt") == "line\n" * 10 + "[bytes 0 to 50 of 500; go on with offset=50]"
    assert files.read_file("f.txt", offset=480) == "line\n" * 4 + "[bytes 480 to 500, the end of the file]"
    assert files.read_file("f.txt", offset=0, limit=8) == "line\n[bytes 0 to 5 of 500; go on with offset=5]"
    assert files.read_file("f.txt", limit=10**9).endswith("go on with offset=50]")
    with pytest.raises(ToolError, match=r"past the end of 'f\.txt', which has 500 bytes"):
        files.read_file("f.txt", offset=501)
    for offset, limit in ((-1, None), (0, 0), (0, -5)):
        with pytest.raises(ToolError, match="out of range"):
            files.read_file("f.txt", offset=offset, limit=limit)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=200),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    st.integers(8, 40),
)
@settings(max_examples=150, deadline=None)
def test_the_parts_of_a_file_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, encoding: str, limit: int
) -> None:
    """Whatever the encoding and the limit, the parts put together are the text: no character is cut or lost."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "f").write_bytes(text.encode(encoding))
    size = (folder / "f").stat().st_size
    files = Files(FilesOptions(root=folder), root=folder)
    parts, offset = [], 0
    while True:
        part = files.read_file("f", offset=offset, limit=limit)
        match = re.search(r"\n?\[bytes \d+ to (\d+)[^\]]*\]\Z", part)
        body = part[: match.start()] if match else part
        notes = r"\n?\[read as utf-\d+-?\w*\]\Z"
        body = re.sub(notes, "", body)
        parts.append("" if body == "[the file is empty]" else body)
        if match is None or "go on" not in match.group():
            break
        offset = int(match.group(1))
    assert "".join(parts).replace("\n", "") == text.replace("\n", "")
    assert offset <= size


def test_the_middle_of_a_character_is_no_place_to_start(tmp_path: Path) -> None:
    """An offset within one begins with the next."""
    files = _over(tmp_path, "ééé".encode())
    assert files.read_file("f.txt", offset=1).startswith("éé")


# --- listing


def test_a_listing_tells_kind_and_size(files: Files) -> None:
    """Folders end in a slash, links are named as links and not followed."""
    assert files.list_directory().splitlines() == [
        "D  (link)", "F  (link)", "G  (link)", "L  (link)", "in  (link)", "in-abs  (link)", "loop  (link)", "ok.txt  5",
        "sub/", "to-sub  (link)",
    ]  # fmt: skip
    assert files.list_directory("to-sub").splitlines() == ["deep.txt  5", "up  (link)"]


def test_a_long_listing_is_cut(tmp_path: Path) -> None:
    """The first names are shown, and how many are not."""
    for n in range(20):
        (tmp_path / f"f{n:02}").touch()
    files = Files(FilesOptions(root=tmp_path, max_entries=3), root=tmp_path)
    assert files.list_directory() == "f00  0\nf01  0\nf02  0\n[17 more entries are not shown]"


def test_an_empty_folder_and_a_file_are_told_apart(files: Files, root: Path) -> None:
    """An empty folder says so; a file is no folder."""
    (root / "void").mkdir()
    assert files.list_directory("void") == "[the folder is empty]"
    with pytest.raises(ToolError, match="is no folder; read it"):
        files.list_directory("ok.txt")


def test_names_can_t_forge_lines(files: Files, root: Path) -> None:
    """A line break or escape code in a name is shown as such."""
    (root / "sub" / "a\nb\x1b[31m").touch()
    assert "'a\\nb\\x1b[31m'  0" in files.list_directory("sub").splitlines()


def test_a_folder_that_may_not_be_read_is_explained(files: Files, root: Path) -> None:
    """Unless one is the superuser, for whom nothing is denied."""
    (root / "sub").chmod(0)
    try:
        if os.geteuid() == 0:
            assert "deep.txt" in files.list_directory("sub")
        else:
            with pytest.raises(ToolError, match="denies access to 'sub'"):
                files.list_directory("sub")
    finally:
        (root / "sub").chmod(0o755)


# --- writing


def test_writing_creates_replaces_and_makes_folders(files: Files, root: Path) -> None:
    """The result says which; the bytes are UTF-8."""
    assert files.write_file("new/a/b.txt", "é") == "created new/a/b.txt, 2 bytes"
    assert (root / "new/a/b.txt").read_bytes() == "é".encode()
    assert files.write_file("new/a/b.txt", "") == "replaced new/a/b.txt, 0 bytes"
    assert sorted(p.name for p in (root / "new/a").iterdir()) == ["b.txt"]


def test_writing_through_an_inner_link_writes_its_target(files: Files, root: Path) -> None:
    """The link stays a link."""
    files.write_file("sub/up", "changed")
    assert (root / "sub/up").is_symlink()
    assert (root / "ok.txt").read_text() == "changed"


def test_permission_bits_stay(files: Files, root: Path) -> None:
    """A script stays executable; a set-user-id bit does not survive new content."""
    (root / "ok.txt").chmod(0o4751)
    files.write_file("ok.txt", "x")
    assert stat.S_IMODE((root / "ok.txt").stat().st_mode) == 0o751


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        ("sub", "x", "is a folder"),
        (".", "x", "is a folder"),
        ("sub/..", "x", "is a folder"),
        (".hidden", "x", "is hidden"),
        ("ok.txt/x", "x", "is no folder"),
        ("ok.txt", "x" * 2000, "at most 1000 are written"),
        ("ok.txt", "\ud800", "lone surrogate at character 0"),
        ("", "x", "is empty"),
    ],
)
def test_what_can_t_be_written_is_explained(root: Path, tmp_path: Path, path: str, content: str, text: str) -> None:
    """And nothing is changed."""
    files = Files(FilesOptions(root=root, write=True, max_write_bytes=1000), root=tmp_path)
    with pytest.raises(ToolError, match=re.escape(text)):
        files.write_file(path, content)
    assert (root / "ok.txt").read_text() == "fine\n"


def test_readers_see_the_old_or_the_new_content(files: Files, root: Path) -> None:
    """While a file is rewritten over and over, each read is one of the whole contents."""
    texts = ["a" * 5000, "b" * 5000]
    files.write_file("f", texts[0])
    done = threading.Event()

    def rewrite() -> None:
        n = 0
        while not done.is_set():
            files.write_file("f", texts[n % 2])
            n += 1

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert (root / "f").read_text() in texts
    finally:
        done.set()
        thread.join()
    assert not [p for p in root.iterdir() if p.name.endswith(".tmp")]


def test_a_failed_write_leaves_no_draft(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, say, leaves the old file and nothing else."""

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    before = sorted(p.name for p in root.iterdir())
    with pytest.raises(ToolError, match=r"'ok\.txt' can't be used: No space left"):
        files.write_file("ok.txt", "x")
    assert sorted(p.name for p in root.iterdir()) == before
    assert (root / "ok.txt").read_text() == "fine\n"


# --- questions


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Read the file notes.txt", "notes.txt"),
        ("What is in docs/plan.md?", "docs/plan.md"),
        ("what does README.md say?", "README.md"),
        ("show me the contents of a/b.csv", "a/b.csv"),
        ("please open 'my notes.txt'", "my notes.txt"),
        ("read the file Makefile", "Makefile"),
        ("open example.com", None),
        ("read my mind", None),
        ("what is in the box", None),
        ("what is notes.txt", None),
        ("read https://example.com/a.txt", None),
        ("read notes.txt and add 2", None),
        ("", None),
    ],
)
def test_requests_to_read_are_read(question: str, path: str | None) -> None:
    """A path is one beyond doubt, or it is left alone."""
    assert read_reading(question) == (None if path is None else {"path": path})


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("List the files in docs", {"path": "docs"}),
        ("list the files", {}),
        ("Which files are in this folder?", {}),
        ("what files are there in src/app/", {"path": "src/app/"}),
        ("list the folder 'my docs'", {"path": "my docs"}),
        ("ls", {}),
        ("list the prime numbers in 10", None),
        ("", None),
    ],
)
def test_requests_to_list_are_read(question: str, arguments: dict[str, object] | None) -> None:
    """The root folder needs no name."""
    assert read_listing(question) == arguments


def test_requests_to_write_are_read() -> None:
    """The content is quoted, the path beyond doubt."""
    assert read_writing("Write 'hello, you' to notes.txt") == {"path": "notes.txt", "content": "hello, you"}
    assert read_writing("write hello to notes.txt") is None
    assert read_writing("write 'hello' to the world") is None
