"""What a tool returned, as text for a model: strict JSON or plain text, bounded, whatever the value is."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import enum
import inspect
import json
import math
import re
import sys
import types
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MappingView,
    Sequence,
)
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, TypeVar

from atlas_core.messages import ChatMessage, Data, File, Image, Opaque, Text

__all__ = ["Encoded", "encode_result"]

_T = TypeVar("_T")

MAX_CHARS = 20_000
"""Default length of a result's text; some 5,000 tokens of English."""

EMPTY = "(empty)"
"""What stands for an empty text: providers refuse a tool message without content."""

_MAX_DEPTH = 60
_MAX_TEXT_CHARS = 2_000
"""Of an object that has nothing but its own text."""
_MAX_SORTED = 10_000
_MAX_INTEGER_BITS = 14_000
"""Below the 4,300 digits from which on Python refuses to write an integer."""
_MAX_DIGEST_BYTES = 64 * 1024 * 1024
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
# The repr of bytes that are no text, inside the text of an object that shows them.
_BYTES = re.compile(r"""\bb(?:'[^']*\\x[^']*'?|"[^"]*\\x[^"]*"?)""")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Encoded:
    """A result as text.

    Attributes:
        text: Never empty, valid Unicode.
        truncated: Whether something was cut; the text then ends in a note saying what.
    """

    text: str
    truncated: bool = False


def encode_result(value: object, *, max_chars: int = MAX_CHARS) -> Encoded:
    """Encode what a tool returned.

    Text stays as it is, and what has a text form of its own (dates, paths, ids, members with a text value) becomes that
    text; anything else becomes strict JSON. NaN and Infinity become texts; bytes, images and files become a marker with
    kind, size and digest; what contains itself, or fails when looked at, is marked where it stands.

    Args:
        value: Anything. It is read, never changed; a generator is not run.
        max_chars: Longest text, at least 200 with the note about a cut. What lies behind the cut is not even visited.
    Returns:
        The text, and whether it was cut.
    """
    max_chars = max(200, max_chars)
    if type(value) is str:
        return _bounded_text(value, max_chars)
    parts = _text_of_parts(value)
    if parts is not None:
        return _bounded_text(parts, max_chars)
    plain = _plain(value)
    if isinstance(plain, str):
        return _bounded_text(plain, max_chars)
    writer = _Writer(max_chars)
    try:
        writer.write(plain, value)
    except _FullError:
        return _cut("".join(writer.pieces), max_chars, f"the beginning of {_size_of(plain)}")
    except RecursionError:
        # Only if the program itself stands close to Python's limit.
        return Encoded("(the result is nested too deeply to be shown)", truncated=True)
    text = "".join(writer.pieces)
    return Encoded(_sound(text))


def _bounded_text(text: str, max_chars: int) -> Encoded:
    if len(text) <= max_chars:
        return Encoded(_sound(text) or EMPTY)
    return _cut(text, max_chars, f"the beginning of {len(text):,} characters")


def _cut(text: str, max_chars: int, what: str) -> Encoded:
    note = f"\n[cut: this is {what}; ask for less to see the rest]"
    kept = text[: max(0, max_chars - len(note))]
    if kept and "\ud800" <= kept[-1] <= "\udbff":
        kept = kept[:-1]  # half a pair
    return Encoded(_sound(kept) + note, truncated=True)


def _sound(text: str) -> str:
    """Return text that UTF-8 can carry: pairs of surrogates joined, single ones replaced by U+FFFD."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _size_of(value: object) -> str:
    if isinstance(value, _Members):
        return f"an object with {value.count:,} keys" if value.count is not None else "an object"
    if isinstance(value, _Items):
        return f"a list of {value.count:,} items" if value.count is not None else "a list"
    return "a long value"


def _text_of_parts(value: object) -> str | None:
    """Return the text of message parts, which a tool may return as they are; None if it is something else."""
    if isinstance(value, ChatMessage):
        value = value.content if isinstance(value.content, tuple) else (Text(value.content),)
    if isinstance(value, Text):
        return value.text
    kinds = (Text, Image, File, Data, Opaque)
    if isinstance(value, (list, tuple)) and 0 < len(value) <= 1000 and all(isinstance(part, kinds) for part in value):
        return "\n".join(_part_text(part) for part in value)
    return None


def _part_text(part: object) -> str:
    if isinstance(part, Text):
        return part.text
    plain = _plain(part)
    return plain if isinstance(plain, str) else encode_result(part).text


class _FullError(Exception):
    """The text is as long as it may be."""


@dataclass(frozen=True, slots=True)
class _Members:
    """What becomes a JSON object: pairs, taken one after another."""

    pairs: Callable[[], Iterable[tuple[object, object]]]
    count: int | None


@dataclass(frozen=True, slots=True)
class _Items:
    """What becomes a JSON array."""

    items: Callable[[], Iterable[object]]
    count: int | None


class _Writer:
    """Writes JSON until it is full."""

    def __init__(self, max_chars: int) -> None:
        self.pieces: list[str] = []
        self._left = max_chars
        self._open: set[int] = set()

    def _put(self, piece: str) -> None:
        self.pieces.append(piece)
        self._left -= len(piece)
        if self._left < 0:
            raise _FullError

    def _put_text(self, text: str) -> None:
        # What surely does not fit is not escaped in full: it may be very long.
        self._put(encode_basestring(_sound(text[: self._left + 1])))

    def write(self, plain: object, source: object) -> None:
        """Write a value that `_plain` has seen; `source` is the value itself, by which cycles are known."""
        if isinstance(plain, str):
            self._put_text(plain)
        elif isinstance(plain, (_Members, _Items)):
            self._write_container(plain, source)
        else:
            self._put(json.dumps(plain))

    def _write_container(self, plain: _Members | _Items, source: object) -> None:
        if id(source) in self._open:
            self._put_text("<contains itself>")
        elif len(self._open) >= _MAX_DEPTH:
            self._put_text("<nested too deeply>")
        else:
            self._open.add(id(source))
            if isinstance(plain, _Members):
                self._write_members(plain)
            else:
                self._write_items(plain)
            self._open.discard(id(source))

    def _write_members(self, plain: _Members) -> None:
        self._put("{")
        separator = ""
        for key, value in _guarded(plain.pairs, lambda note: ("<error>", note)):
            self._put(separator)
            separator = ", "
            self._put_text(_key_text(key))
            self._put(": ")
            self.write(_plain(value), value)
        self._put("}")

    def _write_items(self, plain: _Items) -> None:
        self._put("[")
        separator = ""
        for item in _guarded(plain.items, lambda note: note):
            self._put(separator)
            separator = ", "
            self.write(_plain(item), item)
        self._put("]")


def _guarded(source: Callable[[], Iterable[_T]], failure: Callable[[str], _T]) -> Iterator[_T]:
    """Iterate a stranger's object; where that raises, the rest is missing, and the last item says so."""
    try:
        yield from source()
    except Exception as exc:  # noqa: BLE001  # a stranger's iterator
        yield failure(f"<the rest can't be read: {type(exc).__name__}>")


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    plain = _plain(key)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, (_Members, _Items)):
        return encode_result(key, max_chars=200).text
    return json.dumps(plain)


def _plain(value: object) -> object:
    """Turn a value into None, a bool, number, text, `_Items` or `_Members`; one level, nothing inside is touched."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    try:
        if (quick := _EXACT.get(kind)) is not None:
            return quick(value)
        for test, convert in _CONVERSIONS:
            if isinstance(value, test):
                return convert(value)
        return _special(value)
    except Exception as exc:  # noqa: BLE001  # a stranger's object may raise from anything that is asked of it
        return f"<{_kind_name(value)}: its content can't be read: {type(exc).__name__}>"


def _kind_name(value: object) -> str:
    return type(value).__qualname__.replace("<locals>.", "")


def _number(value: float) -> object:
    return (
        float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    )


def _integer(value: int) -> object:
    return (
        int(value)
        if value.bit_length() <= _MAX_INTEGER_BITS
        else f"<an integer of about {int(value.bit_length() * 0.30103):,} digits>"
    )


def _bytes(value: bytes | bytearray | memoryview) -> str:
    data = value.tobytes() if isinstance(value, memoryview) and not value.contiguous else value
    return _bytes_marker(memoryview(data).cast("B"), None)


def _bytes_marker(view: memoryview, media_type: str | None) -> str:
    kind = media_type or _guess(bytes(view[:16]))
    if view.nbytes > _MAX_DIGEST_BYTES:
        return f"<bytes: {kind}, {view.nbytes:,} bytes>"
    import hashlib

    return f"<bytes: {kind}, {view.nbytes:,} bytes, sha256 {hashlib.sha256(view).hexdigest()[:16]}>"


# Source: the registrations of each format, as collected in the WHATWG MIME Sniffing standard (2025).
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"BM", "image/bmp"),
    (b"SQLite format 3", "application/vnd.sqlite3"),
)


def _guess(head: bytes) -> str:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "application/octet-stream")
    return "application/octet-stream"


def _media(value: Image | File) -> str:
    name = f" {value.name!r}" if isinstance(value, File) and value.name else ""
    if value.data is None:
        return f"<{type(value).__name__.lower()}{name}: {value.media_type}, {value.url}>"
    return _bytes_marker(memoryview(value.data), value.media_type).replace(
        "<bytes", f"<{type(value).__name__.lower()}{name}", 1
    )


def _pairs(value: Mapping[Any, object]) -> object:
    def pairs() -> Iterable[tuple[object, object]]:
        return value.items()

    if all(type(key) is str for key in _first(value, 1000)):
        return _Members(pairs, len(value))
    keys = [_key_text(key) for key in _first(value, 10_000)]
    if len(set(keys)) == len(keys):
        return _Members(pairs, len(value))
    # 1 and "1" would become one key.
    return _Items(pairs, len(value))


def _first(values: Iterable[Any], most: int) -> list[Any]:
    return [value for value, _ in zip(values, range(most), strict=False)]


def _set(value: set[object] | frozenset[object]) -> _Items:
    # Texts hash differently in each process: without an order, two equal runs would differ.
    if len(value) <= _MAX_SORTED:
        return _Items(lambda: sorted(value, key=lambda item: (type(item).__name__, _order(item))), len(value))
    return _Items(lambda: value, len(value))


def _order(item: object) -> tuple[int, float, str]:
    if isinstance(item, (int, float)):
        return (0, float(item) if abs(item) < 1e300 else math.copysign(1e300, item), "")
    return (1, 0.0, item if isinstance(item, str) else _key_text(item))


def _sequence(value: Sequence[object]) -> object:
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        return _Members(lambda: zip(fields, value, strict=False), len(fields))
    return _Items(lambda: value, len(value))


def _error_text(value: BaseException) -> str:
    return f"{type(value).__name__}: {value}"[:_MAX_TEXT_CHARS]


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], object]], ...] = (
    (enum.Enum, lambda value: _plain(value.value)),
    (str, str.__str__),
    (int, _integer),
    (float, _number),
    ((bytes, bytearray, memoryview), _bytes),
    (Text, lambda value: value.text),
    (Data, lambda value: _plain(value.value)),
    ((Image, File), _media),
    (Opaque, lambda value: f"<content that only {value.provider or 'another system'} understands>"),
    (Mapping, _pairs),
    ((list, tuple), _sequence),
    ((set, frozenset), _set),
    ((dt.date, dt.time), lambda value: value.isoformat()),
    (types.SimpleNamespace, lambda value: _pairs(vars(value))),
    (BaseException, _error_text),
)


# The kinds that most results are made of, found without a walk through the table above.
_EXACT: dict[type, Callable[[Any], object]] = {
    int: _integer,
    float: _number,
    dict: _pairs,
    list: _sequence,
}

_COLLECTIONS = (Sequence, MappingView, collections.deque, array.array)


def _special(value: Any) -> object:
    """Convert what is known by its looks rather than by a base class that is already imported."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _plain(value.model_dump(warnings=False))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value, [spec.name for spec in dataclasses.fields(value)])
    if not isinstance(value, type) and (specs := getattr(type(value), "__attrs_attrs__", None)):
        return _fields(value, [spec.name for spec in specs])
    if hasattr(value, "dtype") and hasattr(value, "tolist") and getattr(value, "size", 0) <= _MAX_SORTED:
        return _plain(value.tolist())  # an array or number of NumPy's kind; a longer one shows its own short form
    if isinstance(value, type) or inspect.isroutine(value):
        return f"<{'class' if isinstance(value, type) else 'function'} {value.__qualname__}>"
    if isinstance(value, types.ModuleType):
        return f"<module {value.__name__}>"
    if isinstance(value, (Iterator, AsyncIterator, Awaitable)):
        return f"<{_kind_name(value)}, not run>"
    if isinstance(value, Collection) and (not _has_own_text(value) or isinstance(value, _COLLECTIONS)):
        return _Items(lambda: value, len(value))
    return _shown(value)


def _fields(value: object, names: Sequence[str]) -> _Members:
    return _Members(lambda: ((name, getattr(value, name)) for name in names if hasattr(value, name)), len(names))


def _has_own_text(value: object) -> bool:
    kind = type(value)
    return kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__


def _shown(value: object) -> str:
    """Return an object's own text, bounded, without addresses; its class where it has none."""
    if not _has_own_text(value):
        return f"<{_kind_name(value)}>"
    text = str(value)
    if len(text) > _MAX_TEXT_CHARS:
        text = text[: _MAX_TEXT_CHARS - 3] + "..."
    return _BYTES.sub("<bytes>", _ADDRESS.sub("", text))
