from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution

import pytest
from atlas_anthropic.options import AnthropicOptions
from atlas_anthropic.plugin import atlas_llm_providers
from atlas_anthropic.provider import AnthropicLLM

from atlas_core import ConnectionConfig, LLMProviderSpec, SettingsError


def test_the_plugin_offers_the_provider_anthropic() -> None:
    """One provider, whose models are made without I/O and without a key."""
    (spec,) = atlas_llm_providers()
    assert isinstance(spec, LLMProviderSpec)
    assert (spec.name, spec.options) == ("anthropic", AnthropicOptions)
    made = spec.factory(ConnectionConfig(name="main", model="claude-x", options=AnthropicOptions()))
    assert isinstance(made, AnthropicLLM)
    assert made.label == "claude-x (api.anthropic.com)"
    assert made.capabilities.native_tools
    assert made.capabilities.streaming
    assert made.capabilities.schema_output


def test_a_connection_without_model_is_refused() -> None:
    """The error names connection and key."""
    (spec,) = atlas_llm_providers()
    with pytest.raises(SettingsError, match=r"connection 'main' names no model \(key ai\.connections\.main\.model\)"):
        spec.factory(ConnectionConfig(name="main", model=" ", options=AnthropicOptions()))


def test_options_of_another_provider_are_a_mistake_of_the_caller() -> None:
    """They are refused by their type."""
    (spec,) = atlas_llm_providers()
    with pytest.raises(TypeError, match="options is a NoneType"):
        spec.factory(ConnectionConfig(name="main", model="m", options=None))  # type: ignore[arg-type]  # the mistake


def test_the_distribution_declares_what_it_offers() -> None:
    """Entry point and declared offer name the same module."""
    entries = {(e.group, e.name): e.value for e in distribution("atlas-anthropic").entry_points}
    assert entries == {
        ("atlas", "anthropic"): "atlas_anthropic.plugin",
        ("atlas.offers", "llm.anthropic"): "atlas_anthropic.plugin",
    }


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    """The plugin module costs no more than the marker; the provider brings no transport and no vendor's client."""
    code = (
        "import sys; import atlas_anthropic.plugin;"
        "assert not {m for m in sys.modules if m.startswith('atlas_anthropic.')} - {'atlas_anthropic.plugin'};"
        "assert 'pydantic' not in sys.modules;"
        "import atlas_anthropic.provider;"
        "heavy = {'anthropic', 'jsonschema', 'httpx', 'typer', 'rich', 'dynaconf'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
