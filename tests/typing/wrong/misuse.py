"""What type checkers must refuse: the lines that name an error, and no other."""

import atlas_core
from atlas_core import AgentService, ChatMessage, LLMProviderSpec, RunLimits, hookimpl

atlas_core.no_such_name  # error: attr-defined

ChatMessage(role="robot", content="")  # error: arg-type
ChatMessage("user", "hello")  # error: call-arg
RunLimits(max_iterations="ten")  # error: arg-type
LLMProviderSpec(name="echo")  # error: call-arg
hookimpl(tryfirst="yes")  # error: call-overload


def frozen(message: ChatMessage, agent: AgentService) -> None:
    """Values can't be changed, and a run is awaited."""
    message.content = "other"  # error: misc
    answer: str = agent.run("hello")  # error: assignment
    del answer
