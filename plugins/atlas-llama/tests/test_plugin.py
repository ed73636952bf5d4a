from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from atlas_llama.options import LlamaOptions
from atlas_llama.plugin import atlas_llm_providers
from atlas_llama.provider import LlamaLLM
from pydantic import ValidationError

from atlas_core import ConnectionConfig, LLMProviderSpec


def test_the_plugin_offers_the_provider_llama() -> None:
    """One provider, whose object is made without looking at the file."""
    (spec,) = atlas_llm_providers()
    assert isinstance(spec, LLMProviderSpec)
    assert (spec.name, spec.options) == ("llama", LlamaOptions)
    options = LlamaOptions(path="~/none.gguf")
    llm = spec.factory(ConnectionConfig(name="local", model="", options=options))
    assert isinstance(llm, LlamaLLM)
    assert llm.label == "none.gguf, in this process"
    assert (llm.capabilities.native_tools, llm.capabilities.streaming, llm.capabilities.window_tokens) == (
        True,
        True,
        None,
    )


def test_the_distribution_declares_what_it_offers() -> None:
    """Entry point and declared offer name the same module."""
    entries = {(e.group, e.name): e.value for e in distribution("atlas-llama").entry_points}
    assert entries == {
        ("atlas", "llama"): "atlas_llama.plugin",
        ("atlas.offers", "llm.llama"): "atlas_llama.plugin",
    }


def test_importing_loads_nothing_heavy() -> None:
    """llama.cpp and jsonschema load when a model starts; the plugin module costs no more than the marker."""
    code = (
        "import sys, atlas_llama.plugin;"
        "assert not {m for m in sys.modules if m.startswith('atlas_llama.')} - {'atlas_llama.plugin'};"
        "import atlas_llama.provider;"
        "heavy = {'xllamacpp', 'jsonschema', 'pydantic', 'httpx'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({}, id="no path"),
        pytest.param({"path": ""}, id="an empty path"),
        pytest.param({"path": "a", "threads": 0}, id="no threads"),
        pytest.param({"path": "a", "context_tokens": 10}, id="a window without room"),
        pytest.param({"path": "a", "temperature": -1}, id="a negative temperature"),
        pytest.param({"path": "a", "temperature": float("inf")}, id="an infinite temperature"),
        pytest.param({"path": "a", "seed": 2**32 - 1}, id="the seed that llama.cpp takes for none"),
        pytest.param({"path": "a", "model_path": "b"}, id="an unknown key"),
    ],
)
def test_wrong_options_are_refused(keys: dict[str, Any]) -> None:
    """Each key has bounds, and a misspelt one is no silence."""
    with pytest.raises(ValidationError):
        LlamaOptions(**keys)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("models/a.gguf", "/etc/atlas/models/a.gguf", id="relative to the settings file"),
        pytest.param("/srv/a.gguf", "/srv/a.gguf", id="absolute"),
        pytest.param("~/a.gguf", str(Path.home() / "a.gguf"), id="in the home folder"),
    ],
)
async def test_where_a_path_leads(path: str, expected: str) -> None:
    """The error about a missing file shows the path that was looked at."""
    config = ConnectionConfig(name="c", model="", options=LlamaOptions(path=path), base_dir=Path("/etc/atlas"))
    with pytest.raises(ValueError, match=f"{expected!r} can't be used: No such file .*key ai.connections.c.path"):
        await LlamaLLM(config).start()
