"""GGUF models in the process for Atlas, through llama.cpp.

The plugin's hooks are in `atlas_llama.plugin`, the provider in `atlas_llama.provider`.
"""

__version__ = "0.1.0"
