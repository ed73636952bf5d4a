"""Public fakes for tests of agents and plugins: a scripted model, an executor and an observer that record.

from atlas_core.testing import FakeLLM, RecordingObserver
"""

from __future__ import annotations

from atlas_core.testing.fakes import FakeLLM, RecordingExecutor, RecordingObserver

__all__ = ["FakeLLM", "RecordingExecutor", "RecordingObserver"]
