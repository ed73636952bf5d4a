"""The file tools, which see one folder and nothing else."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from atlas_core import Example, ToolError, ToolHints, tool

if TYPE_CHECKING:
    from atlas_standard_tools._rooted import Root
    from atlas_standard_tools._text import TextPart
    from atlas_standard_tools.options import FilesOptions

__all__ = ["Files"]


def _parse_read(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_files import read_reading

    return read_reading(question)


def _parse_list(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_files import read_listing

    return read_listing(question)


def _parse_write(question: str) -> Mapping[str, object] | None:
    from atlas_standard_tools._spoken_files import read_writing

    return read_writing(question)


_READ_HINTS = ToolHints(
    examples=(
        Example("Read the file notes.txt", {"path": "notes.txt"}),
        Example("What is in docs/plan.md?", {"path": "docs/plan.md"}),
    ),
    parse=_parse_read,
)
_LIST_HINTS = ToolHints(
    examples=(
        Example("List the files in docs", {"path": "docs"}),
        Example("Which files are in this folder?", {}),
    ),
    parse=_parse_list,
)
_WRITE_HINTS = ToolHints(
    examples=(Example("Write 'hello' to notes.txt", {"path": "notes.txt", "content": "hello"}),),
    parse=_parse_write,
)


class Files:
    """The file tools.

    Args:
        options: The root and the bounds.
        root: The folder where the options name none.
    """

    def __init__(self, options: FilesOptions, *, root: Path) -> None:
        self._options = options
        self._folder = options.root.expanduser().absolute() if options.root else root

    def tools(self) -> list[Callable[..., object]]:
        """Return the tools on offer; writing only where it was switched on."""
        return [self.read_file, self.list_directory, *([self.write_file] if self._options.write else [])]

    @tool(effects="read", timeout_s=30, hints=_READ_HINTS)
    def read_file(self, path: str, offset: int = 0, limit: int | None = None, encoding: str | None = None) -> str:
        """Read a text file below the root folder.

        A long file comes in parts; the last line then says with which offset to go on. A binary file is described.

        Args:
            path: Path relative to the root folder, such as "docs/plan.md".
            offset: First byte to read, 0 for the start.
            limit: Most bytes to read; the setting max_read_bytes bounds it and is taken if left out.
            encoding: Such as "utf-16" or "cp1252"; left out, it is found out (UTF-8, else Latin-1, which is said).
        """
        from atlas_standard_tools._rooted import PathError

        try:
            return self._read(path, offset, limit, encoding)
        except PathError as exc:
            raise ToolError(str(exc), tool="read_file") from exc

    @tool(effects="read", timeout_s=30, hints=_LIST_HINTS)
    def list_directory(self, path: str = ".") -> str:
        """List a folder below the root folder, one entry a line: folders end in "/", files have their size in bytes.

        Args:
            path: Path relative to the root folder; "." is the root folder itself.
        """
        from atlas_standard_tools._rooted import PathError

        try:
            return self._list(path)
        except PathError as exc:
            raise ToolError(str(exc), tool="list_directory") from exc

    @tool(effects="idempotent", timeout_s=30, hints=_WRITE_HINTS)
    def write_file(self, path: str, content: str) -> str:
        """Write a text file below the root folder, replacing one that is there, in UTF-8.

        Missing folders are made. The file changes in one step: readers see all of the old or all of the new.

        Args:
            path: Path relative to the root folder, such as "docs/plan.md".
            content: The whole new content.
        """
        from atlas_standard_tools._rooted import PathError

        try:
            return self._write(path, content)
        except PathError as exc:
            raise ToolError(str(exc), tool="write_file") from exc

    def _root(self) -> Root:
        from atlas_standard_tools._rooted import Root

        return Root(self._folder, hidden=self._options.hidden)

    def _read(self, path: str, offset: int, limit: int | None, encoding: str | None) -> str:
        from atlas_standard_tools._rooted import PathError
        from atlas_standard_tools._text import describe_binary, is_binary, read_part

        most = self._options.max_read_bytes
        if offset < 0 or (limit is not None and limit < 1):
            raise PathError(f"offset={offset} or limit={limit} is out of range; offset is 0 or more, limit 1 or more")
        _check_encoding(encoding)
        with self._root().file(path) as descriptor:
            size = os.fstat(descriptor).st_size
            if offset > size:
                raise PathError(f"offset={offset} is past the end of {path!r}, which has {size} bytes")
            head = os.pread(descriptor, 8192, 0)
            if encoding is None and is_binary(head):
                return describe_binary(path, size, head)
            try:
                part = read_part(descriptor, offset=offset, limit=max(8, min(limit or most, most)), encoding=encoding)
            except UnicodeError as exc:
                raise PathError(
                    f"{path!r} is not in the encoding {encoding or 'its mark states'!r}: {exc}"[:300]
                ) from exc
        return _with_notes(part, offset)

    def _list(self, path: str) -> str:
        root = self._root()
        most = self._options.max_entries
        with root.folder(path) as descriptor, os.scandir(descriptor) as entries:
            shown = [entry.name for entry in entries if root.shows(entry.name)]
            lines = [_line(name, descriptor) for name in heapq.nsmallest(most, shown)]
        if len(shown) > most:
            lines.append(f"[{len(shown) - most} more entries are not shown]")
        return "\n".join(lines) or "[the folder is empty]"

    def _write(self, path: str, content: str) -> str:
        from atlas_standard_tools._rooted import PathError

        try:
            data = content.encode()
        except UnicodeEncodeError as exc:
            raise PathError(f"the content holds a lone surrogate at character {exc.start}, which is no text") from exc
        if len(data) > self._options.max_write_bytes:
            raise PathError(f"the content has {len(data)} bytes; at most {self._options.max_write_bytes} are written")
        replaced = self._root().replace(path, data)
        return f"{'replaced' if replaced else 'created'} {path}, {len(data)} bytes"


def _check_encoding(encoding: str | None) -> None:
    from atlas_standard_tools._rooted import PathError
    from atlas_standard_tools._text import is_text_encoding

    if encoding is not None and not is_text_encoding(encoding):
        raise PathError(f"encoding={encoding[:40]!r} is no text encoding; write one such as 'utf-8' or 'cp1252'")


def _with_notes(part: TextPart, offset: int) -> str:
    notes = []
    if part.guessed:
        notes.append("[read as Latin-1, as it is no valid UTF-8; name the encoding if letters look wrong]")
    elif part.encoding not in {"utf-8", "ascii"}:
        notes.append(f"[read as {part.encoding}]")
    if part.end < part.size:
        notes.append(f"[bytes {part.start} to {part.end} of {part.size}; go on with offset={part.end}]")
    elif offset:
        notes.append(f"[bytes {part.start} to {part.end}, the end of the file]")
    if not notes:
        return part.text or "[the file is empty]"
    return part.text + ("" if part.text.endswith("\n") else "\n") + "\n".join(notes)


def _line(name: str, folder: int) -> str:
    # A name may hold line breaks or escape codes, which would forge lines of the listing.
    shown = name if name.isprintable() else ascii(name)
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return f"{shown}  (gone)"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    if stat.S_ISLNK(status.st_mode):
        return f"{shown}  (link)"
    return f"{shown}  {status.st_size}" if stat.S_ISREG(status.st_mode) else f"{shown}  (special)"
