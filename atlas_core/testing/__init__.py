"""Public fakes for tests of agents and plugins, and servers that misbehave on purpose.

A scripted model, an executor and an observer that record, and real HTTP servers on the loopback interface:

    from atlas_core.testing import FakeLLM, LoopbackServer, RecordingObserver, ServerReply
"""

from __future__ import annotations

from atlas_core.testing.fakes import FakeLLM, RecordingExecutor, RecordingObserver
from atlas_core.testing.servers import LoopbackProxy, LoopbackServer, Pause, ReceivedRequest, ServerReply, Then

__all__ = [
    "FakeLLM",
    "LoopbackProxy",
    "LoopbackServer",
    "Pause",
    "ReceivedRequest",
    "RecordingExecutor",
    "RecordingObserver",
    "ServerReply",
    "Then",
]
