"""The LLM provider `offline`: a planner of fixed rules behind the interface of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence

from atlas_core import (
    BaseLLM,
    Capabilities,
    ChatMessage,
    ConnectionConfig,
    Data,
    FinishReason,
    LLMRequest,
    LLMResponse,
    Opaque,
    Text,
    ToolCall,
)
from atlas_offline import answers
from atlas_offline.matching import Match, Refusal
from atlas_offline.planner import Plan, earlier_result, make_plan, progress
from atlas_offline.words import normalise

__all__ = ["OfflineLLM"]

# Longer texts are no questions that rules can account for word by word; planning stays in the milliseconds.
_MAX_QUESTION = 2_000


class OfflineLLM(BaseLLM):
    """Answers by rules alone: no language model, no network, the same answer to the same conversation.

    It holds no state: each request plans the question again and compares the plan with the calls made since.
    """

    capabilities = Capabilities(native_tools=True)
    label = "offline rules, no language model"
    notice = answers.NOTICE

    def __init__(self, config: ConnectionConfig | None = None) -> None:
        self._connection = config.name if config else ""

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Plan, continue or answer the last user message; decline where the rules do not cover it. Never raises."""
        messages = tuple(request.messages)
        asked = max((i for i, m in enumerate(messages) if m.role == "user"), default=None)
        if asked is None:
            return _declined("there is no question", request)
        question = _question(messages[asked])
        if isinstance(question, Refusal):
            return _declined(question.reason, request)
        if answers.is_greeting(question):
            return _said(answers.welcome(request.tools))
        if not request.tools:
            return _declined(_no_tools(request), request)
        plan = make_plan(question, request.tools, earlier_result(messages[:asked]))
        if isinstance(plan, Refusal):
            return _declined(plan.reason, request)
        return _next(plan, messages, asked, request)


def _question(message: ChatMessage) -> str | Refusal:
    if not isinstance(message.content, str):
        other = next((p for p in message.content if not isinstance(p, (Text, Opaque))), None)
        if other is not None:
            kind = "structured data" if isinstance(other, Data) else f"{type(other).__name__.lower()}s"
            return Refusal(f"rules can't read {kind}")
    if len(message.text) > _MAX_QUESTION:
        return Refusal(f"the question has {len(message.text)} characters, and rules read at most {_MAX_QUESTION}")
    # Private-use characters stand for results while a plan is made, so a question may not bring its own.
    text = normalise("".join(c for c in message.text if not "\ue000" <= c <= "\uf8ff"))
    return text or Refusal("the question is empty")


def _no_tools(request: LLMRequest) -> str:
    if request.system and "## Available Tools" in request.system:
        return 'rules read no tools from a system prompt; set tool_calls = "auto" in the profile'
    return "no tools are on offer, and rules know nothing by themselves"


def _next(plan: Plan, messages: Sequence[ChatMessage], asked: int, request: LLMRequest) -> LLMResponse:
    state = progress(plan, messages[asked + 1 :], request.tools)
    failed = any(d.failed for d in state.done)
    if state.ready and not failed:
        return _calls([found for _, found in state.ready], messages)
    if state.refusal and not state.done:
        return _declined(state.refusal.reason, request)
    text = answers.answer(state.done, state.refusal.reason if state.refusal else "")
    return _said(text, FinishReason.DECLINED if failed or state.refusal else FinishReason.STOP)


def _calls(found: Sequence[Match], messages: Sequence[ChatMessage]) -> LLMResponse:
    # Numbered over the whole conversation, so that ids stay unique without state.
    before = sum(len(m.tool_calls) for m in messages)
    calls = tuple(
        ToolCall(
            id=f"offline-{before + number}",
            name=match.tool.name,
            arguments_json=json.dumps(dict(match.arguments), ensure_ascii=False),
        )
        for number, match in enumerate(found, 1)
    )
    thought = "\n".join(match.thought() for match in found)
    return LLMResponse(
        message=ChatMessage.assistant(thought, calls), finish_reason=FinishReason.TOOL_CALLS, model=OfflineLLM.label
    )


def _said(text: str, reason: FinishReason = FinishReason.STOP) -> LLMResponse:
    return LLMResponse(message=ChatMessage.assistant(text), finish_reason=reason, model=OfflineLLM.label)


def _declined(reason: str, request: LLMRequest) -> LLMResponse:
    return _said(answers.decline(reason, request.tools), FinishReason.DECLINED)
