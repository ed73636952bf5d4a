"""What type checkers make of the public API: checked, never run."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import assert_type

import atlas_core
from atlas_core import (
    AgentFactory,
    AgentMaxIterationsError,
    AgentService,
    AgentTimeoutError,
    AgentTypeSpec,
    Answer,
    BaseLLM,
    BaseToolExecutor,
    ChatMessage,
    ExecutorSpec,
    LLMDefaults,
    LLMDelta,
    LLMProviderSpec,
    LLMRequest,
    LLMResponse,
    LLMSession,
    Outcome,
    PreparedCall,
    RunResult,
    ToolCall,
    ToolRegistry,
    hookimpl,
    tool,
)


async def an_agent_is_made_and_run() -> None:
    """The factory gives an agent service, whose answer is text that carries its result."""
    agent = AgentFactory.create("math_agent")
    assert_type(agent, AgentService)
    answer = await agent.run("What is the square root of 144 multiplied by 5?")
    assert_type(answer, Answer)
    assert_type(answer.upper(), str)
    assert_type(answer.result, RunResult)
    assert_type(answer.result.messages, tuple[ChatMessage, ...])
    assert_type(agent.run_sync("again", answer.result.messages), Answer)


def errors_tell_what_happened(error: AgentMaxIterationsError, late: AgentTimeoutError) -> None:
    """Limits hold the run so far, and a timeout is the language's own too."""
    assert_type(error.result, RunResult | None)
    assert_type(error.messages, tuple[ChatMessage, ...])
    builtin: TimeoutError = late
    del builtin


class Echo(BaseLLM):
    """A stateless provider overrides `complete` alone."""

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer with the last message."""
        return LLMResponse(message=ChatMessage.assistant(request.messages[-1].text))


def a_provider_is_typed(llm: Echo) -> None:
    """The base supplies session and stream."""
    session = llm.open(LLMDefaults())
    assert_type(session, LLMSession)
    assert_type(session.stream(), AsyncIterator[LLMDelta | LLMResponse])


class InTurn(BaseToolExecutor):
    """A strategy has one method, which gets calls that passed and returns their outcomes."""

    async def execute_batch(self, calls: Sequence[PreparedCall]) -> list[Outcome]:
        """Run one call after another."""
        return [await call.invoke() for call in calls]


def word_count(text: str) -> int:
    """Count the words in a text."""
    return len(text.split())


@tool(effects="read", timeout_s=2.0)
def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()


def tools_register(registry: ToolRegistry) -> None:
    """A function or a tool is registered under a name."""
    assert_type(registry.register(word_count), str)
    assert_type(registry.register(shout), str)


@hookimpl
def atlas_tool_providers() -> Iterable[Callable[..., object]]:
    """Hooks keep their types through the marker, and may leave `options` out."""
    return [word_count]


@hookimpl(trylast=True)
def atlas_executors() -> Iterable[ExecutorSpec]:
    """The marker takes pluggy's options."""
    return [ExecutorSpec(name="in-turn", factory=lambda _table: InTurn())]


assert_type(list(atlas_tool_providers()), list[Callable[..., object]])


def values_are_typed(call: ToolCall, spec: AgentTypeSpec, provider: LLMProviderSpec) -> None:
    """Fields and properties have the types that they are documented with."""
    assert_type(call.arguments, dict[str, object])
    assert_type(spec.name, str)
    assert_type(provider.description, str)
    assert_type(atlas_core.__version__, str)
