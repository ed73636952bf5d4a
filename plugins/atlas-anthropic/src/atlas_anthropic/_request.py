"""A run's requests: what stays the same is encoded once, and each message once. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from atlas_anthropic._blocks import assistant_blocks, encode, tool_result, user_blocks
from atlas_anthropic._schema import format_schema, input_schema
from atlas_core import ChatMessage, Image, LLMDefaults, Opaque, ProviderError, Text, ToolSchema, wire_names

if TYPE_CHECKING:
    from atlas_anthropic.options import AnthropicOptions

__all__ = ["DEFAULT_MAX_TOKENS", "Conversation", "max_tokens", "wire_map"]

DEFAULT_MAX_TOKENS = 16_000
"""Bound of an answer where the connection's `max_output_tokens` gives none, since the API demands one.

The vendor's own examples with thinking use it; every model since Claude 4 allows it, and an answer of that length
comes in one piece within the time-out (see `provider.LONG_ANSWER`).
"""

_BEGINNING = b'{"type":"text","text":"(The conversation begins with the assistant.)"}'
_MARKABLE = (b'{"type":"text"', b'{"type":"image"', b'{"type":"document"', b'{"type":"tool_result"')


def max_tokens(defaults: LLMDefaults, options: AnthropicOptions) -> int:
    """Return the bound of an answer; a thinking budget is on top of the default, since the API counts both.

    Raises:
        ProviderError: The thinking budget leaves nothing of the bound that was set.
    """
    budget = options.thinking if isinstance(options.thinking, int) else 0
    limit = defaults.max_output_tokens
    if limit is None:
        return DEFAULT_MAX_TOKENS + budget
    if budget >= limit:
        raise ProviderError(
            f"thinking = {budget} leaves nothing of max_output_tokens = {limit}",
            remedy="set max_output_tokens of the connection above the thinking budget",
        )
    return limit


def wire_map(tools: Iterable[ToolSchema], options: AnthropicOptions) -> dict[str, str]:
    """Return each offered tool's name on the wire.

    Raises:
        ProviderError: A tool has the name of one that the vendor runs.
    """
    names = wire_names(tool.name for tool in tools)
    for theirs in options.server_tools:
        if theirs["name"] in names.values():
            raise ProviderError(
                f"tool {theirs['name']!r} is offered by a plugin and named in server_tools",
                remedy="drop it from the profile's tools, or from the connection's server_tools",
            )
    return names


class Conversation:
    """A conversation in its encoded form, which only grows.

    Consecutive messages of one side become one turn, as the API demands of tool results; system messages join the
    system prompt, which every model accepts.

    With prompt caching, up to four places of a request are marked, as many as the API allows: the last tool, the
    system prompt, the end of the last turn, and the end of the user's turn before it. Up to a mark, the server keeps
    what it has read. It looks for what it kept at most 20 blocks before a mark, so that after a step with many calls
    only the fourth mark finds what the last request left. Source: platform.claude.com/docs/en/build-with-claude/
    prompt-caching, read November 2026.

    Args:
        model: The model's name.
        defaults: What stays the same over the run's requests.
        options: The connection's.
        names: Each offered tool's name on the wire.
    Raises:
        ProviderError: A thinking budget leaves nothing for the answer.
    """

    def __init__(self, model: str, defaults: LLMDefaults, options: AnthropicOptions, names: Mapping[str, str]) -> None:
        self._model = model
        self._defaults = defaults
        self._options = options
        self._names = names
        self._mark = _mark(options.prompt_caching)
        self._told_schema = ""
        self._head = self._make_head()
        self._used: dict[str, None] = {}
        self._system = [defaults.system] if defaults.system else []
        self._system_field: bytes | None = None
        self._closed: list[bytes] = []
        self._mark_at: int | None = None
        self._role = ""
        self._blocks: list[bytes] = []

    # What stays the same ---------------------------------------------------------------------------------------

    def _make_head(self) -> bytes:
        options, defaults = self._options, self._defaults
        body: dict[str, object] = {"model": self._model, "max_tokens": max_tokens(defaults, options)}
        for name in ("temperature", "top_p"):
            if (value := getattr(options, name)) is not None:
                body[name] = value
        if isinstance(options.thinking, int):
            body["thinking"] = {"type": "enabled", "budget_tokens": options.thinking}
        elif options.thinking is not None:
            body["thinking"] = {"type": options.thinking}
        if output := self._output_config():
            body["output_config"] = output
        for key, value in options.extra_body.items():
            ours = body.get(key)
            body[key] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
        head = encode(body)[:-1]
        if tools := self._tools():
            head += b',"tools":[' + b",".join(tools) + b"]"
        return head

    def _output_config(self) -> dict[str, object]:
        config: dict[str, object] = {}
        if self._options.effort is not None:
            config["effort"] = self._options.effort
        schema = self._defaults.output_schema
        if schema is not None:
            form = format_schema(schema)
            if form is not None:
                config["format"] = {"type": "json_schema", "schema": form}
            else:
                # Open keys or a schema that holds itself: the server compiles neither, so the model is only told.
                text = encode(schema).decode()
                self._told_schema = f"Give the final answer as one JSON object and nothing else. Its schema: {text}"
        return config

    def _tools(self) -> list[bytes]:
        tools: list[bytes] = []
        for schema in self._defaults.tools:
            tool: dict[str, object] = {"name": self._names[schema.name]}
            if schema.description:
                tool["description"] = schema.description
            tools.append(encode({**tool, "input_schema": input_schema(schema.parameters)}))
        tools += [encode(tool) for tool in self._options.server_tools]
        if tools:
            tools[-1] = self._marked(tools[-1])
        return tools

    def _marked(self, block: bytes) -> bytes:
        if not self._mark or b'"cache_control":' in block:
            return block
        return block[:-1] + self._mark + b"}"

    # What grows ------------------------------------------------------------------------------------------------

    def append(self, message: ChatMessage) -> None:
        """Encode a message at the end.

        Raises:
            ProviderError: A part of it can't be sent.
        """
        if message.role == "system":
            self._system.append(_system_text(message))
            self._system_field = None
        elif message.role == "assistant":
            self._add("assistant", assistant_blocks(message, self._wire_name))
        elif message.role == "tool":
            self._add("user", [tool_result(message)])
        else:
            if not self._options.images and _has_images(message):
                raise ProviderError(
                    f"model {self._model!r} is set not to read images", remedy="set images = true, or send text"
                )
            self._add("user", user_blocks(message))

    def _wire_name(self, name: str) -> str:
        # A history may hold calls of tools that are not on offer now.
        sent = self._names.get(name) or wire_names([name])[name]
        self._used[sent] = None
        return sent

    def _add(self, role: str, blocks: Sequence[bytes]) -> None:
        if not blocks:
            return
        if role != self._role:
            if not self._role and role == "assistant":
                self._close_turn("user", [_BEGINNING])
            elif self._role:
                self._close_turn(self._role, self._blocks)
            self._role, self._blocks = role, []
        self._blocks.extend(blocks)

    def _close_turn(self, role: str, blocks: Sequence[bytes]) -> None:
        turn = (b"," if self._closed else b"") + _turn(role, blocks)
        if role == "user" and _markable(blocks[-1]):
            # In two pieces, so that a mark fits between them and what was encoded stays as it is.
            self._closed += [turn[:-3], turn[-3:]]
            self._mark_at = len(self._closed) - 1
        else:
            self._closed.append(turn)

    # A request -------------------------------------------------------------------------------------------------

    def body(self, *, stream: bool, continued: Sequence[bytes] = ()) -> list[bytes]:
        """Return a request's body in pieces.

        Args:
            stream: Whether a stream is asked for.
            continued: Blocks of an answer that the server paused and is to go on with.
        Raises:
            ProviderError: There is nothing to answer.
        """
        if self._role != "user":
            raise ProviderError(
                "the conversation has nothing at its end that the model could answer",
                remedy="send a message that is not blank",
            )
        pieces = [self._head, self._past_tools(), self._system_json(), b',"messages":[', *self._closed]
        if self._mark_at is not None:
            pieces.insert(4 + self._mark_at, self._mark)
        if self._closed:
            pieces.append(b",")
        last = self._blocks[-1]
        pieces.append(_turn("user", [*self._blocks[:-1], self._marked(last) if _markable(last) else last]))
        if continued:
            pieces += [b",", _turn("assistant", continued)]
        pieces.append(b'],"stream":true}' if stream else b"]}")
        return pieces

    def _past_tools(self) -> bytes:
        """Describe the tools that only the history knows: where none is on offer, the API refuses calls in it."""
        if not self._used or self._defaults.tools or self._options.server_tools:
            return b""
        told = {"description": "No longer on offer.", "input_schema": {"type": "object"}}
        tools = [encode({"name": name, **told}) for name in self._used]
        return b',"tools":[' + b",".join(tools) + b'],"tool_choice":{"type":"none"}'

    def _system_json(self) -> bytes:
        if self._system_field is None:
            texts = [text for text in (*self._system, self._told_schema) if text.strip()]
            block = encode({"type": "text", "text": "\n\n".join(texts)})
            self._system_field = b',"system":[' + self._marked(block) + b"]" if texts else b""
        return self._system_field


def _mark(caching: bool | str) -> bytes:  # noqa: FBT001  # the option's own type
    if not caching:
        return b""
    ttl = {"ttl": caching} if isinstance(caching, str) and caching != "5m" else {}
    return b',"cache_control":' + encode({"type": "ephemeral", **ttl})


def _markable(block: bytes) -> bool:
    return block.startswith(_MARKABLE) and b'"cache_control":' not in block


def _turn(role: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


def _has_images(message: ChatMessage) -> bool:
    return not isinstance(message.content, str) and any(isinstance(part, Image) for part in message.content)


def _system_text(message: ChatMessage) -> str:
    if not isinstance(message.content, str):
        for part in message.content:
            if not isinstance(part, (Text, Opaque)):
                raise ProviderError(
                    f"a part {type(part).__name__} in a system message can't be sent", remedy="system messages are text"
                )
    return message.text
