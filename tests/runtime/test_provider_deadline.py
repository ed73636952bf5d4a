"""The run's deadline and the provider's own copy of it ring at the same time."""

import time

import pytest

from atlas_core import AgentTimeoutError, LLMRequest, ProviderTimeoutError
from tests.runtime.rig import Rig


async def test_a_providers_time_out_at_the_runs_deadline_is_the_runs() -> None:
    """A provider that keeps the run's deadline and is a moment earlier than the loop ends the run by its limit."""

    def rings_first(request: LLMRequest) -> object:
        assert request.deadline is not None
        while time.monotonic() < request.deadline:  # blocks the loop, so that its own timer can't ring first
            time.sleep(0.01)
        raise ProviderTimeoutError("the server did not answer in time")

    async with Rig([rings_first], max_execution_time_seconds=0.2) as rig:
        with pytest.raises(AgentTimeoutError, match="waiting for the model") as caught:
            await rig.agent.run("hello")
    assert caught.value.result is not None
    assert caught.value.result.iterations == 1


async def test_a_providers_earlier_time_out_stays_its_own() -> None:
    """A server that is given up on before the run's time is over is the provider's failure."""
    async with Rig([ProviderTimeoutError("no answer in 1 s")], max_execution_time_seconds=60) as rig:
        with pytest.raises(ProviderTimeoutError, match="no answer in 1 s"):
            await rig.agent.run("hello")
