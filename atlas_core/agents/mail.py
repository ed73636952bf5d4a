"""How a worker answers messages."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from atlas_core.agents.tasks import Done, Task, read_task, sound
from atlas_core.names import tool_form
from atlas_core.structured import MessageType, StructuredMessage

if TYPE_CHECKING:
    from atlas_core.agents.worker import WorkerAgent

__all__ = ["reply_to"]

_ANSWERS = {
    MessageType.QUERY: MessageType.RESPONSE,
    MessageType.TASK: MessageType.RESULT,
    MessageType.TOOL_REQUEST: MessageType.TOOL_RESPONSE,
}


async def reply_to(agent: WorkerAgent, message: StructuredMessage) -> StructuredMessage:
    """Return an agent's answer to a message, whatever the message is."""
    if not isinstance(message, StructuredMessage):
        got = f"a message is a {type(message).__name__}, expected a StructuredMessage; its from_dict reads a dict"
        return StructuredMessage(got, {"type": MessageType.ERROR}, source_agent=agent.worker_id)
    try:
        message = StructuredMessage.from_dict(message.to_dict())  # it may have been changed since it was checked
        reply = await _reply(agent, message)
    except ValueError as exc:
        reply = message.create_error(sound(str(exc)))
    # Also where the message was for somebody else, in whose name this agent does not speak.
    reply.source_agent = agent.worker_id
    return reply


async def _reply(agent: WorkerAgent, message: StructuredMessage) -> StructuredMessage:
    if message.target_agent is not None and tool_form(message.target_agent) != tool_form(agent.worker_id):
        raise ValueError(f"the message is for agent {message.target_agent[:100]!r}, and this is {agent.worker_id!r}")
    kind = message.metadata.type
    if kind is MessageType.STATUS:
        return message.create_response(_status(agent), type=MessageType.STATUS)
    if kind not in _ANSWERS:
        known = ", ".join(map(str, (*_ANSWERS, MessageType.STATUS)))
        raise ValueError(f"a worker takes no message of type {str(kind)!r}; it takes: {known}")
    return _answer(message, await agent.work_off(_task(message)))


def _task(message: StructuredMessage) -> Task:
    only_calls = message.metadata.type is MessageType.TOOL_REQUEST
    if only_calls and not message.tool_calls:
        raise ValueError("a message of type 'tool_request' needs tool_calls")
    return read_task(
        {
            "task_id": message.task_id if message.task_id is not None else uuid.uuid4().hex,
            "query": None if only_calls or message.content is None else message.text,
            "context": {"tool_results": message.tool_results} if message.tool_results else None,
            "tool_calls": message.tool_calls,
        }
    )


def _answer(message: StructuredMessage, done: Done) -> StructuredMessage:
    kind = _ANSWERS[message.metadata.type]
    if kind is MessageType.TOOL_RESPONSE and done.tool_results:
        good = sum(item["status"] == "ok" for item in done.tool_results)
        reply = message.create_response(f"{good} of {len(done.tool_results)} tool calls succeeded", type=kind)
    elif done.status == "completed":
        reply = message.create_response(done.result, type=kind)
    else:
        reply = message.create_error(done.error or done.status)
    reply.metadata.extra = {"status": done.status}
    reply.tool_results = list(done.tool_results)
    return reply


def _status(agent: WorkerAgent) -> dict[str, object]:
    return {
        "agent": agent.worker_id,
        "specialization": agent.specialization,
        "ready": agent.is_ready,
        "capabilities": [{"name": name, "description": about} for name, about in agent.described_capabilities()],
    }
