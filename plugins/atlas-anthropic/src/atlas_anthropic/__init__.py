"""Claude models for Atlas, over Anthropic's Messages API.

The plugin's hooks are in `atlas_anthropic.plugin`, the provider in `atlas_anthropic.provider`, its settings in
`atlas_anthropic.options`.
"""

__version__ = "0.1.0"
