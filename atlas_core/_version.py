"""The version, a constant: `atlas --version` answers from it before anything else loads."""

__version__ = "0.1.0"
