from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from atlas_llama.gguf import GgufError, read_facts

Gguf = Callable[..., bytes]

FACTS: dict[str, object] = {
    "general.architecture": "tiny",
    "general.name": "Tiny",
    "tiny.context_length": 512,
    "tiny.rope.scale": 1.5,
    "tokenizer.ggml.tokens": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "</s>"],
    "tokenizer.ggml.token_type": [3, 3, 3, 1, 3],
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.chat_template": "{{ messages }}",
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def put(data: bytes) -> Path:
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        return path

    return put


def test_facts_are_read(gguf: Gguf, write: Callable[[bytes], Path]) -> None:
    """Name, window, control tokens, and every token that ends an answer, named as such or known by its text."""
    facts = read_facts(write(gguf(FACTS)))
    assert (facts.name, facts.architecture, facts.context_tokens, facts.has_template) == ("Tiny", "tiny", 512, True)
    assert facts.control_tokens == ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "</s>")
    assert facts.end_ids == (0, 2, 4)


def test_a_real_file_is_read(model_path: Path) -> None:
    """The test model's own numbers."""
    facts = read_facts(model_path)
    assert (facts.architecture, facts.context_tokens, facts.has_template) == ("llama", 8192, True)
    assert "<|im_start|>" in facts.control_tokens
    assert facts.end_ids == (0, 2)


def _without(*keys: str) -> dict[str, object]:
    return {key: value for key, value in FACTS.items() if key not in keys}


def test_what_is_left_out_is_unknown(gguf: Gguf, write: Callable[[bytes], Path]) -> None:
    """A file without name, template, kinds of tokens or their ends is still a model."""
    facts = read_facts(write(gguf(_without("general.name", "tokenizer.chat_template", "tokenizer.ggml.token_type"))))
    assert (facts.name, facts.has_template, facts.control_tokens, facts.end_ids) == ("", False, (), (2,))


@pytest.mark.parametrize(
    ("values", "match"),
    [
        pytest.param(_without("general.architecture"), "no general.architecture", id="no architecture"),
        pytest.param(_without("tiny.context_length"), "no language model", id="a projector"),
        pytest.param(_without("tokenizer.ggml.tokens"), "no vocabulary", id="an adapter"),
    ],
)
def test_other_things_in_gguf_files_are_refused(
    values: dict[str, object], match: str, gguf: Gguf, write: Callable[[bytes], Path]
) -> None:
    """GGUF holds adapters and projectors too; the error says what is missing."""
    with pytest.raises(GgufError, match=match):
        read_facts(write(gguf(values)))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param(lambda data: b"", "it is empty", id="an empty file"),
        pytest.param(lambda data: b"PK\x03\x04" + data, "does not begin with 'GGUF' but with b'PK", id="an archive"),
        pytest.param(
            lambda data: data[:4] + b"\x63" + data[5:], "version 99, expected one of 2, 3", id="a new version"
        ),
        pytest.param(lambda data: data[:4] + b"\0\0\0\3" + data[8:], "version 50331648", id="big-endian"),
        pytest.param(lambda data: data[:60], "it is cut: its metadata goes on", id="cut in the metadata"),
        pytest.param(lambda data: data[:-64], "it is cut: its .* end before its last tensor", id="cut in the tensors"),
        pytest.param(lambda data: data[:8] + b"\xff" * 8 + data[16:], "header is damaged", id="a mad count"),
        pytest.param(lambda data: data[:24] + b"\xff" * 8 + data[32:], "claims .* bytes", id="a mad length"),
    ],
)
def test_damaged_files_are_refused(
    change: Callable[[bytes], bytes], match: str, gguf: Gguf, write: Callable[[bytes], Path]
) -> None:
    """Each fault is told, and none makes the reader take memory that the file does not have."""
    with pytest.raises(GgufError, match=match):
        read_facts(write(change(gguf(FACTS))))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        pytest.param(b"\x09\0\0\0\x08\0\0\0\x05", b"\x09\0\0\0\x08\0\0\0\xff\xff\xff\xff", "claims", id="a mad list"),
        pytest.param(b"\x04\0\0\0\x00\x02\0\0", b"\x3f\0\0\0\x00\x02\0\0", "unknown kind 63", id="an unknown kind"),
        pytest.param(b"weight\x02\0\0\0", b"weight\x63\0\0\0", "list of tensors", id="mad dimensions"),
    ],
)
def test_damaged_values_are_refused(
    old: bytes, new: bytes, match: str, gguf: Gguf, write: Callable[[bytes], Path]
) -> None:
    """A fault deep in the metadata is found where it stands."""
    data = gguf(FACTS)
    assert data.count(old) == 1
    with pytest.raises(GgufError, match=match):
        read_facts(write(data.replace(old, new)))


def test_every_cut_is_found(gguf: Gguf, write: Callable[[bytes], Path]) -> None:
    """However much of the end is missing, the file is refused in words."""
    data = gguf(FACTS)
    for length in range(len(data) - 64):
        with pytest.raises(GgufError):
            read_facts(write(data[:length]))
