from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution

from atlas_offline.plugin import atlas_llm_providers
from atlas_offline.provider import OfflineLLM

from atlas_core import ConnectionConfig, LLMProviderSpec


def test_the_plugin_offers_the_provider_offline() -> None:
    """One provider, without options, made without I/O."""
    (spec,) = atlas_llm_providers()
    assert isinstance(spec, LLMProviderSpec)
    assert (spec.name, spec.options) == ("offline", None)
    assert "no language model" in spec.description
    config = ConnectionConfig(name="offline", model="", options=None)  # type: ignore[arg-type]  # it takes none
    assert isinstance(spec.factory(config), OfflineLLM)


def test_the_distribution_declares_what_it_offers() -> None:
    """Entry point and declared offer name the same module."""
    entries = {(e.group, e.name): e.value for e in distribution("atlas-offline").entry_points}
    assert entries == {
        ("atlas", "offline"): "atlas_offline.plugin",
        ("atlas.offers", "llm.offline"): "atlas_offline.plugin",
    }


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    """The plugin module costs no more than the marker; the provider brings no third-party package."""
    code = (
        "import sys; before = set(sys.modules); import atlas_offline.plugin;"
        "assert not {m for m in sys.modules if m.startswith('atlas_offline.')} - {'atlas_offline.plugin'};"
        "import atlas_offline.provider;"
        "heavy = {'pydantic', 'jsonschema', 'httpx', 'typer', 'rich', 'dynaconf'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
