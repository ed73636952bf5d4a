"""Settings: what a user chose, as frozen values, with where each came from.

`loader` reads files and variables, `models` says which keys the kernel knows, `loaded` is the result with its
origins, `owned` validates the tables that belong to plugins, providers, executors and agent types. Nothing is read
before `load_settings` is called, and two loads share nothing.
"""
