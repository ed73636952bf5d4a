from __future__ import annotations

import asyncio
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from atlas_llama.engine import Engine, EngineError, EngineSettings, Job
from atlas_llama.provider import LlamaLLM

from atlas_core import ChatMessage, LLMRequest, ProviderError

Make = Callable[..., LlamaLLM]
SETTINGS = EngineSettings(path=Path("none.gguf"), window_tokens=256, threads=1)


def job(ends: list[BaseException | None]) -> Job:
    return Job("text", {"prompt": "x"}, on_chunk=lambda chunk: None, on_end=ends.append)


def test_without_a_model_nothing_is_taken() -> None:
    """An engine that was never loaded, or was closed, refuses a job in words; closing it twice is fine."""
    engine = Engine(SETTINGS)
    for _ in range(2):
        with pytest.raises(EngineError, match="the model was freed"):
            engine.submit(job([]))
        engine.close()


def test_a_job_always_ends_once() -> None:
    """Whoever waits is told, also where there is nothing to ask any more."""
    ends: list[BaseException | None] = []
    job(ends).run(None)
    stopped = job(ends)
    stopped.stop()
    stopped.run(None)
    assert [type(end) for end in ends] == [EngineError, EngineError]


def test_a_file_that_llama_cpp_refuses_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a socket nor its folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EngineError, match="Failed to init server"):
        Engine(SETTINGS).load()
    assert list(tmp_path.iterdir()) == []


def test_an_engine_closed_while_it_loads_frees_what_it_loaded(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gave up does not get a model all the same."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = Engine(EngineSettings(path=model_path, window_tokens=256, threads=1))
    engine.close()
    with pytest.raises(EngineError, match="closed while it loaded"):
        engine.load()
    assert list(tmp_path.iterdir()) == []


def _ask_server(address: str, path: str) -> int:
    """Return the status that llama.cpp's own server answers a stranger with."""
    request = urllib.request.Request(f"{address}{path}", data=b'{"messages": [], "prompt": "x"}')
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


async def test_the_server_beside_is_shut(
    make_llm: Make, llm: LlamaLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens on a socket that only the user reaches; where the path is too long, on loopback for a secret key."""
    assert llm._engine is not None
    assert llm._engine._server is not None
    assert llm._engine._server.listening_address.startswith("unix://")
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with make_llm(context_tokens=256) as other:
        assert other._engine is not None
        assert other._engine._server is not None
        address = other._engine._server.listening_address
        assert address.startswith("http://127.0.0.1:")
        for path in ("/v1/chat/completions", "/completion", "/tokenize", "/apply-template"):
            assert await asyncio.to_thread(_ask_server, address, path) == 401


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"messages": "x"}, id="a body that is not understood"),
        pytest.param({"messages": [{"role": "user", "content": "x"}], "grammar": "root := x"}, id="a broken grammar"),
    ],
)
async def test_what_llama_cpp_refuses_is_told(body: dict[str, Any], llm: LlamaLLM) -> None:
    """Its words are passed on, and the next request is answered."""
    with pytest.raises(ProviderError, match=r"llama\.cpp refused the request to 'Smollm2"):
        async for _ in llm._write("chat", body, None):
            pass
    request = LLMRequest(messages=[ChatMessage.user("Say hi")], max_output_tokens=2)
    assert (await llm.complete(request)).message.text
