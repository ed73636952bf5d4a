"""Models of OpenAI and of any server that speaks its protocol, for Atlas.

The plugin's hooks are in `atlas_openai.plugin`, the provider in `atlas_openai.provider`.
"""

__version__ = "0.1.0"
