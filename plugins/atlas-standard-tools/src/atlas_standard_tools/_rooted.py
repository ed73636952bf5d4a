"""Opening files below one folder, with no way out of it.

The kernel of the operating system never follows a link here: each part of a path is opened on its own, relative
to the folder before it and with `O_NOFOLLOW`, and links are read and walked by hand. So a link swapped in between
a check and its use is met by the open itself, and `..` can only climb back through folders that were opened on the
way down.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["PathError", "Root"]

_MOST_LINKS = 40
_LONGEST = 4096
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class PathError(ValueError):
    """A path can't be used; the text says why and what to do, and tells nothing of what lies outside the root."""


class Root:
    """A folder that paths are resolved in and can't leave.

    Args:
        folder: The folder, absolute. It may itself be reached through links.
        hidden: Whether names that begin with a dot may be used.
        option: The name of the setting that chose it, for errors.
    """

    def __init__(self, folder: Path, *, hidden: bool = False, option: str = "files.root") -> None:
        self._folder = folder
        self._hidden = hidden
        self._option = option

    def shows(self, name: str) -> bool:
        """Tell whether a file of that name may be seen."""
        return self._hidden or not name.startswith(".")

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[int]:
        """Open a regular file for reading; yields its descriptor.

        Raises:
            PathError: There is no such file, it is no regular file, or it lies outside.
        """
        with self._place(path) as (folder, name):
            _check_regular(_look(folder, name, path), path)
            with _named(path):
                descriptor = os.open(name, _FILE, dir_fd=folder)
            try:
                # Between the look and the open the name may have been given to something else.
                _check_regular(os.fstat(descriptor), path)
                yield descriptor
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder for listing; yields its descriptor.

        Raises:
            PathError: There is no such folder, or it lies outside.
        """
        with self._place(path) as (folder, name):
            mode = _look(folder, name, path)
            if not stat.S_ISDIR(mode.st_mode):
                raise PathError(f"{path!r} is no folder; read it with read_file")
            _check_real(mode, path)
            with _named(path):
                descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def replace(self, path: str, data: bytes) -> bool:
        """Write a file in one step: readers see the old content or the new, never a part.

        Missing folders on the way are made. An existing file keeps its permission bits.

        Returns:
            Whether the file existed before.
        Raises:
            PathError: It lies outside, or is a folder or special file.
        """
        with self._place(path, create=True) as (folder, name), _named(path):
            if name == ".":
                raise PathError(f"{path!r} is a folder; give the path of a file")
            mode = _existing_mode(folder, name, path)
            draft = f".{secrets.token_hex(8)}.tmp"
            try:
                _write_new(folder, draft, data, mode)
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise
            return mode is not None

    # --- the walk

    @contextlib.contextmanager
    def _place(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the folder that a path's last part lies in, open, and the part's name; "." for the root itself."""
        parts = deque(self._parts(path))
        opened = [self._open_root()]
        try:
            with _named(path):
                name = self._walk(opened, parts, path, create=create)
            yield opened[-1], name
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _parts(self, path: str) -> list[str]:
        if not path:
            raise PathError("the path is empty; give one relative to the root, or '.' for the root itself")
        if "\0" in path or len(path) > _LONGEST or not _encodes(path):
            raise PathError(f"{path[:60]!r} is no path: it is too long or holds characters that no file name has")
        if path.startswith("~"):
            raise PathError(f"{path!r} begins with '~', which is not expanded; give a path relative to the root")
        if not path.startswith("/"):
            return path.split("/")
        below = self._below(path)
        if below is None:
            raise _outside(path)
        return below

    def _below(self, path: str) -> list[str] | None:
        """Return the parts of an absolute path below the root, going by its text alone; None if it is not below."""
        for root in (str(self._folder), os.path.realpath(self._folder)):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root.rstrip("/")) :].split("/")
        return None

    def _open_root(self) -> int:
        try:
            return os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as exc:
            raise PathError(
                f"the root {str(self._folder)!r} can't be opened: {os.strerror(exc.errno or 0)}; "
                f"set {self._option} to a folder that exists"
            ) from exc

    def _walk(self, opened: list[int], parts: deque[str], path: str, *, create: bool) -> str:
        links = 0
        while parts:
            part = parts.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                if len(opened) == 1:
                    raise _outside(path)
                os.close(opened.pop())
                continue
            if not self.shows(part):
                raise PathError(f"{path!r} is hidden, as {part!r} begins with a dot; such files are not for this tool")
            last = not any(rest not in {"", "."} for rest in parts)
            mode = _mode(opened[-1], part, make=create and not last)
            if mode is not None and stat.S_ISLNK(mode):
                links += 1
                if links > _MOST_LINKS:
                    raise PathError(f"{path!r} runs through over {_MOST_LINKS} links")
                self._enter_link(opened, parts, os.readlink(part, dir_fd=opened[-1]), path)
            elif last:
                return part
            else:
                opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        return "."

    def _enter_link(self, opened: list[int], parts: deque[str], target: str, path: str) -> None:
        if target.startswith("/"):
            below = self._below(target)
            if below is None:
                raise _outside(path)
            while len(opened) > 1:
                os.close(opened.pop())
            parts.extendleft(reversed(below))
        else:
            parts.extendleft(reversed(target.split("/")))


def _encodes(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _outside(path: str) -> PathError:
    return PathError(f"{path!r} leads out of the folder that the file tools may use; give a path below its root")


def _mode(folder: int, name: str, *, make: bool) -> int | None:
    """Return the mode of an entry, making it a folder first if it is missing and `make` is set; None if missing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        if not make:
            return None
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode


def _look(folder: int, name: str, path: str) -> os.stat_result:
    with _named(path):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Turn errors of the operating system into ones that name the path as it was given."""
    try:
        yield
    except FileNotFoundError as exc:
        raise PathError(f"there is no {path!r}; list the folder with list_directory") from exc
    except NotADirectoryError as exc:
        raise PathError(f"a part of {path!r} is no folder; list the folder with list_directory") from exc
    except PermissionError as exc:
        raise PathError(f"the system denies access to {path!r}") from exc
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise PathError(f"{path!r} became a link while it was being opened; try again") from exc
        raise PathError(f"{path!r} can't be used: {os.strerror(exc.errno or 0)}") from exc


def _check_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise PathError(f"{path!r} is a folder; list it with list_directory")
    if not stat.S_ISREG(status.st_mode):
        raise PathError(f"{path!r} is no regular file but a {_kind(status.st_mode)}, which is not opened")
    _check_real(status, path)


def _check_real(status: os.stat_result, path: str) -> None:
    if status.st_dev in _virtual_devices():
        raise PathError(f"{path!r} belongs to the system's /proc, /sys or /dev, which is not opened")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "special file")


@cache
def _virtual_devices() -> frozenset[int]:
    """Return the devices of the file systems whose files are no files: some of them wait when read."""
    mounted = (p for p in ("/proc", "/sys", "/dev") if os.path.ismount(p))
    return frozenset(Path(p).stat().st_dev for p in mounted)


def _existing_mode(folder: int, name: str, path: str) -> int | None:
    """Return the permission bits of the file to be replaced, or None if there is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(status, path)
    return stat.S_IMODE(status.st_mode)


def _write_new(folder: int, name: str, data: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(name, "wb", opener=lambda n, _: os.open(n, flags, 0o666, dir_fd=folder)) as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode & 0o777)  # no set-user-id bits on content from elsewhere
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
