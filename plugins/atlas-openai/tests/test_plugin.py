from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution

from atlas_openai.options import OpenAIOptions
from atlas_openai.plugin import atlas_llm_providers
from atlas_openai.provider import OpenAILLM

from atlas_core import ConnectionConfig, LLMProviderSpec


def test_the_plugin_offers_the_provider_openai() -> None:
    """One provider, made without I/O and without a key."""
    (spec,) = atlas_llm_providers()
    assert isinstance(spec, LLMProviderSpec)
    assert (spec.name, spec.options) == ("openai", OpenAIOptions)
    config = ConnectionConfig(name="main", model="gpt-4.1", options=OpenAIOptions())
    assert isinstance(spec.factory(config), OpenAILLM)


def test_the_distribution_declares_what_it_offers() -> None:
    """Entry point and declared offer name the same module."""
    entries = {(e.group, e.name): e.value for e in distribution("atlas-openai").entry_points}
    assert entries == {
        ("atlas", "openai"): "atlas_openai.plugin",
        ("atlas.offers", "llm.openai"): "atlas_openai.plugin",
    }


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    """The plugin module costs no more than the marker, and the provider loads no HTTP library before its first use."""
    code = (
        "import sys; import atlas_openai.plugin;"
        "heavy = {'pydantic', 'httpx', 'httpx_sse', 'stamina', 'openai', 'typer', 'rich', 'dynaconf'};"
        "assert not heavy & set(sys.modules);"
        "import atlas_openai.provider;"
        "assert not (heavy - {'pydantic'}) & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
