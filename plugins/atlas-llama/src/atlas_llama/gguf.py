"""What a GGUF file says of itself, read without loading the model.

Source: "GGUF", ggml's docs/gguf.md, versions 2 and 3 (little-endian; a big-endian file reads as an unknown version).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GgufError", "GgufFacts", "read_facts"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MAX_ITEMS = 10_000_000  # the largest vocabularies have 300,000 tokens, so that more is a fault and not data
_MAX_STRING_BYTES = 64 * 1024 * 1024
_CONTROL = 3  # of `tokenizer.ggml.token_type`

_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_END_TEXTS = frozenset(
    [
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<EOT>",
        "<|EOT|>",
        "<eos>",
        "</s>",
        "<｜end▁of▁sentence｜>",  # noqa: RUF001  # DeepSeek's token is written with these
    ]
)
"""How vocabularies name the token that ends a turn; many files name only one of several under `_END_KEYS`."""


class GgufError(ValueError):
    """The file is no GGUF model, or a damaged one; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFacts:
    """What matters of a file's metadata.

    Attributes:
        name: The model's name, or "".
        architecture: As llama.cpp calls it, such as `llama` or `qwen3`.
        context_tokens: The window that the model was trained for.
        has_template: Whether it brings a chat template; llama.cpp uses ChatML for one that does not.
        control_tokens: Texts of the tokens that steer a conversation, such as `<|im_start|>`.
        end_ids: Ids of the tokens that end an answer, ascending.
    """

    name: str
    architecture: str
    context_tokens: int
    has_template: bool
    control_tokens: tuple[str, ...]
    end_ids: tuple[int, ...]


def read_facts(path: Path) -> GgufFacts:
    """Read a file's metadata; takes milliseconds up to some tenths of a second, by the size of the vocabulary.

    Raises:
        OSError: The file can't be read.
        GgufError: It is no GGUF file, is cut or damaged, or holds something other than a language model.
    """
    with path.open("rb") as file:
        reader = _Reader(file, path.stat().st_size)
        values = reader.metadata()
        reader.check_tensors()
    return _facts(values)


def _facts(values: dict[str, object]) -> GgufFacts:
    architecture = values.get("general.architecture")
    if not isinstance(architecture, str):
        raise GgufError("it names no general.architecture")
    context = values.get(f"{architecture}.context_length")
    if not isinstance(context, int) or context < 1:
        raise GgufError(f"it is no language model: it has no {architecture}.context_length")
    tokens = values.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list):
        raise GgufError("it has no vocabulary, as projectors and adapters have none")
    types = values.get("tokenizer.ggml.token_type")
    control = [i for i, kind in enumerate(types) if kind == _CONTROL] if isinstance(types, (list, tuple)) else []
    named = (values.get(f"tokenizer.ggml.{key}") for key in _END_KEYS)
    ends = {i for i in named if isinstance(i, int) and i < len(tokens)}
    ends |= {i for i in control if i < len(tokens) and tokens[i] in _END_TEXTS}
    name = values.get("general.name")
    return GgufFacts(
        name=name if isinstance(name, str) else "",
        architecture=architecture,
        context_tokens=context,
        has_template=isinstance(values.get("tokenizer.chat_template"), str),
        control_tokens=tuple(tokens[i] for i in control if i < len(tokens)),
        end_ids=tuple(sorted(ends)),
    )


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        magic = file.read(4)
        if magic != _MAGIC:
            raise GgufError(f"it does not begin with {_MAGIC.decode()!r} but with {magic!r}" if size else "it is empty")
        version, self._tensors, self._pairs = self._unpack("IQQ")
        if version not in _VERSIONS:
            raise GgufError(f"it is of GGUF version {version}, expected one of {', '.join(map(str, _VERSIONS))}")
        if self._tensors > _MAX_ITEMS or self._pairs > _MAX_ITEMS:
            raise GgufError("its header is damaged")

    def metadata(self) -> dict[str, object]:
        values: dict[str, object] = {}
        for _ in range(self._pairs):
            key = self._text()
            (kind,) = self._unpack("I")
            values[key] = self._value(kind)
        return values

    def check_tensors(self) -> None:
        """Find a file that ends before its last tensor begins; llama.cpp finds the rest but can't say it."""
        last = 0
        for _ in range(self._tensors):
            self._text()
            (dimensions,) = self._unpack("I")
            if dimensions > 8:
                raise GgufError("its list of tensors is damaged")
            *_, offset = self._unpack(f"{dimensions}QIQ")
            last = max(last, offset)
        if self._tensors and self._file.tell() + last >= self._size:
            raise GgufError(f"it is cut: its {self._size} bytes end before its last tensor begins")

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._array()
        return self._unpack(_format(kind))[0]

    def _array(self) -> object:
        kind, count = self._unpack("IQ")
        if count > _MAX_ITEMS:
            raise GgufError(f"a list in it claims {count} items: it is damaged")
        if kind in {_STRING, _ARRAY}:
            read: Callable[[], object] = self._text if kind == _STRING else self._array
            return [read() for _ in range(count)]
        return self._unpack(f"{count}{_format(kind)}")

    def _text(self) -> str:
        (length,) = self._unpack("Q")
        if length > _MAX_STRING_BYTES:
            raise GgufError(f"a text in it claims {length} bytes: it is damaged")
        return self._bytes(length).decode("utf-8", "replace")

    def _unpack(self, form: str) -> tuple[int, ...]:
        form = f"<{form}"
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _bytes(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise GgufError(f"it is cut: its metadata goes on after its {self._size} bytes")
        return data


def _format(kind: int) -> str:
    try:
        return _FORMATS[kind]
    except KeyError:
        raise GgufError(f"a value in it is of the unknown kind {kind}: it is damaged") from None
