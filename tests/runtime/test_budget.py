"""Tokens and costs are reserved before they are spent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import ChatMessage, CostBudgetError, RunWarning, TokenBudgetError, ToolCall, Usage
from atlas_core._runtime.budget import Budget, Price
from atlas_core.testing import FakeLLM
from tests.runtime.rig import Rig

ANSWER = ChatMessage.assistant("ok")
PRICE = Price(input=1.0, cached_input=0.1, output=10.0)


def test_what_a_request_costs() -> None:
    """Cached input has its own price; reasoning is output."""
    usage = Usage(input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=50_000)
    assert PRICE.of(usage) == pytest.approx(0.6 + 0.04 + 0.5)


def test_a_cost_that_may_go_over_is_refused_before_it_is_spent() -> None:
    """The greatest output counts."""
    budget = Budget(max_cost=0.01, prices={"main": PRICE}, connection="main")
    budget.add([ChatMessage.user("x" * 400)])
    with pytest.raises(CostBudgetError, match=r"0 of max_cost 0\.01 is spent") as caught:
        budget.reserve(1_000)
    assert caught.value.limit == 0.01
    held = budget.reserve(500)
    with pytest.raises(CostBudgetError):
        budget.reserve(500)
    budget.release(held)
    held = budget.reserve(500)
    assert budget.settle(held, Usage(input_tokens=100, output_tokens=10), ANSWER).cost == pytest.approx(0.0002)


def test_the_connection_that_answered_is_the_one_that_costs() -> None:
    """A fallback has its own prices."""
    budget = Budget(prices={"main": PRICE, "other": Price(0, 0, 1.0)}, connection="main")
    held = budget.reserve(None)
    assert budget.settle(held, Usage(output_tokens=1_000_000), ANSWER, "other").cost == 1.0


def test_what_a_child_spends_counts_for_its_parent() -> None:
    """A child without a bound of its own is held to its parent's."""
    parent = Budget(max_tokens=100)
    child = Budget(parent=parent)
    assert child.is_bounded
    held = child.reserve(60)
    with pytest.raises(TokenBudgetError):
        Budget(parent=parent).reserve(60)
    child.settle(held, Usage(input_tokens=50, output_tokens=30), ANSWER)
    with pytest.raises(TokenBudgetError, match="80 of max_tokens 100 are used"):
        parent.reserve(30)
    parent.reserve(10)


spends = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 100)), max_size=20)


@given(spends, st.integers(1, 400))
def test_a_budget_never_goes_over_where_the_server_keeps_to_its_limit(
    requests: list[tuple[int, int, int]], bound: int
) -> None:
    """Whatever is asked, what is booked stays below the bound if output stays below what was reserved for it."""
    budget, used = Budget(max_tokens=bound), 0
    for input_tokens, output_tokens, most in requests:
        try:
            held = budget.reserve(most)
        except TokenBudgetError:
            continue
        spent = Usage(input_tokens=0, output_tokens=min(output_tokens + 1, most))
        budget.settle(held, spent, ANSWER)
        used += spent.output_tokens
        assert used <= bound
        del input_tokens


async def test_a_cost_is_bounded_where_the_server_counts_nothing() -> None:
    """By estimates, and that is told once."""

    def act() -> str:
        """Act."""
        return "x" * 400

    llm = FakeLLM([ToolCall("", "act")] * 50, usage=Usage())
    async with Rig([], [act], llm=llm, max_cost=0.15, max_iterations=50) as rig:
        await rig.agent.start()
        plan: Any = rig.agent._plan
        rig.agent._plan = dataclasses.replace(plan, prices={"": Price(100, 100, 100)})
        with pytest.raises(CostBudgetError) as caught:
            await rig.agent.run("x")
    assert len(llm.requests) < 20
    assert caught.value.result is not None
    assert 0 < caught.value.result.usage.cost <= 0.15
    assert [w.text for w in rig.observer.of(RunWarning)] == [
        "the server counts no tokens; the run's budget is kept by estimates"
    ]


async def test_a_runs_cost_is_told_and_bounded() -> None:
    """Through an agent: usage has the cost, the bound ends the run with what was done."""

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    llm = FakeLLM(
        [ToolCall.of("add", a=1, b=2)] * 3, usage=Usage(input_tokens=100_000, output_tokens=50_000, requests=1)
    )
    async with Rig([], [add], llm=llm, max_cost=1.0) as rig:
        await rig.agent.start()
        plan: Any = rig.agent._plan
        rig.agent._plan = dataclasses.replace(plan, prices={"": PRICE})
        with pytest.raises(CostBudgetError) as caught:
            await rig.agent.run("x")
    assert caught.value.result is not None
    assert caught.value.result.usage.cost == pytest.approx(1.2)
    assert len(llm.requests) == 2
