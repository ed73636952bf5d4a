"""Offline rules for Atlas: a deterministic planner behind the provider interface. No language model.

The plugin's hooks are in `atlas_offline.plugin`, the provider in `atlas_offline.provider`.
"""

__version__ = "0.1.0"
