"""Parts of a file as text: which encoding, where to cut, and when it is no text."""

from __future__ import annotations

import codecs
import mimetypes
import os
from dataclasses import dataclass

__all__ = ["TextPart", "describe_binary", "is_binary", "is_text_encoding", "read_part"]

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A stretch of a text file.

    Attributes:
        text: The characters.
        encoding: How they were encoded.
        guessed: Whether the encoding is what is left where the bytes are no UTF-8.
        start: Offset of the first byte read.
        end: Offset after the last byte read.
        size: Bytes of the whole file.
    """

    text: str
    encoding: str
    guessed: bool
    start: int
    end: int
    size: int


def _mark(head: bytes) -> tuple[int, str] | None:
    return next(((len(mark), name) for mark, name in _MARKS if head.startswith(mark)), None)


def is_text_encoding(name: str) -> bool:
    """Tell whether Python knows an encoding of that name, from bytes to text."""
    try:
        codecs.getincrementaldecoder(name)
        b"    ".decode(name)  # with no bytes at all, Python does not look the name up
    except UnicodeError:
        return True
    except (LookupError, ValueError):
        return False
    return True


def is_binary(head: bytes) -> bool:
    """Tell whether a file that begins so is no text: it holds a zero byte, and no mark of UTF-16 or UTF-32."""
    mark = _mark(head)
    return b"\0" in head and (mark is None or mark[1] == "utf-8")


def describe_binary(name: str, size: int, head: bytes) -> str:
    """Say what is known of a file that is no text."""
    kind = mimetypes.guess_type(name)[0]
    return f"[binary file: {size} bytes{f', {kind} by its name' if kind else ''}, begins {head[:16].hex(' ')}]"


def read_part(descriptor: int, *, offset: int, limit: int, encoding: str | None) -> TextPart:
    """Read up to `limit` bytes of a text file from `offset`, cut between characters, at a line's end if there is one.

    Args:
        descriptor: The open file.
        offset: First byte, 0 or more.
        limit: Most bytes to read, at least 8.
        encoding: How it is encoded; None finds out: by its mark, else UTF-8, else Latin-1.
    Raises:
        UnicodeDecodeError: The bytes are not in the `encoding` that was given.
    """
    size = os.fstat(descriptor).st_size
    mark = _mark(os.pread(descriptor, 4, 0))
    name = encoding or (mark[1] if mark else "utf-8")
    start = max(offset, mark[0]) if mark and encoding is None else offset
    start -= start % _width(name)
    data = os.pread(descriptor, limit, start)
    if name == "utf-8" and offset:
        skipped = next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        start, data = start + skipped, data[skipped:]
    final = start + len(data) >= size
    data = data if final else _whole_lines(data, name)
    try:
        text, used = _decode(data, name, final=final)
    except UnicodeDecodeError:
        if encoding is not None or mark:
            raise
        name, text, used = "latin-1", data.decode("latin-1"), len(data)
    return TextPart(
        text=text, encoding=name, guessed=name == "latin-1" != encoding, start=start, end=start + used, size=size
    )


def _width(encoding: str) -> int:
    return 4 if encoding.startswith("utf-32") else 2 if encoding.startswith("utf-16") else 1


def _whole_lines(data: bytes, encoding: str) -> bytes:
    newline = "\n".encode(encoding) if _width(encoding) > 1 else b"\n"
    end = data.rfind(newline)
    # Not where that would leave little, as in a file of one long line.
    return data[: end + len(newline)] if 2 * end >= len(data) and end % _width(encoding) == 0 else data


def _decode(data: bytes, encoding: str, *, final: bool) -> tuple[str, int]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
    text = decoder.decode(data, final=final)
    return text, len(data) - len(decoder.getstate()[0])
