from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from atlas_anthropic._request import Conversation, max_tokens, wire_map
from atlas_anthropic.options import AnthropicOptions
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import (
    ChatMessage,
    Image,
    LLMDefaults,
    Opaque,
    ProviderError,
    Text,
    ToolCall,
    ToolSchema,
    wire_names,
)

ADD = ToolSchema(
    name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}
)
MARK = {"type": "ephemeral"}
CALL = ToolCall("toolu_1", "add", '{"a": 1}')


def conversation(*messages: ChatMessage, options: dict[str, Any] | None = None, **defaults: Any) -> Conversation:
    """Make a conversation with messages in it."""
    made = AnthropicOptions.model_validate(options or {})
    given_defaults = LLMDefaults(**defaults)
    talk = Conversation("claude-test", given_defaults, made, wire_map(given_defaults.tools, made))
    for message in messages:
        talk.append(message)
    return talk


def body(talk: Conversation, *, stream: bool = False, continued: Sequence[bytes] = ()) -> dict[str, Any]:
    """Return the next request's body."""
    value: dict[str, Any] = json.loads(b"".join(talk.body(stream=stream, continued=continued)))
    return value


def request(*messages: ChatMessage, options: dict[str, Any] | None = None, **defaults: Any) -> dict[str, Any]:
    """Return the body of a first request, without marks for the cache."""
    return body(conversation(*messages, options={"prompt_caching": False, **(options or {})}, **defaults))


def roles(value: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return each turn's role with the types of its blocks."""
    return [(turn["role"], [block["type"] for block in turn["content"]]) for turn in value["messages"]]


# What stays the same ---------------------------------------------------------------------------------------------


def test_the_least_request() -> None:
    """Model, a bound (the API demands one) and the message."""
    assert request(ChatMessage.user("Hello")) == {
        "model": "claude-test",
        "max_tokens": 16_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }


def test_a_request_with_all_options() -> None:
    """Each in the vendor's field; further fields are laid over."""
    value = request(
        ChatMessage.user("Hello"),
        options={
            "version": "2023-06-01",
            "temperature": 1,
            "top_p": 0.95,
            "thinking": 2048,
            "effort": "low",
            "server_tools": [{"type": "web_search_20260209", "name": "web_search", "max_uses": 2}],
            "extra_body": {"metadata": {"user_id": "u"}, "thinking": {"display": "omitted"}, "service_tier": "auto"},
        },
        system="Be nice.",
        tools=(ADD,),
        max_output_tokens=4096,
    )
    assert value == {
        "model": "claude-test",
        "max_tokens": 4096,
        "temperature": 1.0,
        "top_p": 0.95,
        "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"},
        "output_config": {"effort": "low"},
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "tools": [
            {
                "name": "add",
                "description": "Add.",
                "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            },
            {"type": "web_search_20260209", "name": "web_search", "max_uses": 2},
        ],
        "system": [{"type": "text", "text": "Be nice."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }


def test_a_stream_is_asked_for() -> None:
    """In the body, as all the rest."""
    assert body(conversation(ChatMessage.user("a")), stream=True)["stream"] is True


@pytest.mark.parametrize("thinking", ["adaptive", "disabled"])
def test_thinking_without_a_budget(thinking: str) -> None:
    """What current models take."""
    assert request(ChatMessage.user("a"), options={"thinking": thinking})["thinking"] == {"type": thinking}


def test_a_thinking_budget_is_on_top_of_the_default_bound() -> None:
    """The API counts thinking as output, so that a budget would eat the answer."""
    options = AnthropicOptions(thinking=10_000)
    assert max_tokens(LLMDefaults(), options) == 26_000
    assert max_tokens(LLMDefaults(max_output_tokens=10_001), options) == 10_001
    with pytest.raises(ProviderError, match=r"thinking = 10000 leaves nothing of max_output_tokens = 10000; set"):
        max_tokens(LLMDefaults(max_output_tokens=10_000), options)


def test_a_tool_without_description_has_none() -> None:
    """An empty text says nothing to a model."""
    (tool,) = request(ChatMessage.user("a"), tools=(ToolSchema(name="t"),))["tools"]
    assert tool == {"name": "t", "input_schema": {"type": "object", "properties": {}}}


def test_a_name_for_two_tools_is_refused() -> None:
    """The API would refuse it with less said."""
    options = AnthropicOptions(server_tools=({"type": "web_search_20260209", "name": "add"},))
    with pytest.raises(ProviderError, match=r"tool 'add' is offered by a plugin and named in server_tools; drop it"):
        wire_map((ADD,), options)


def test_names_of_tools_are_mapped_in_the_history_too() -> None:
    """Also of a tool that is no longer offered."""
    names = ["files.read:all", "x" * 100]
    calls = [ToolCall("a", names[0]), ToolCall("b", names[1])]
    results = [ChatMessage.tool(call, "1") for call in calls]
    value = request(
        ChatMessage.user("a"), ChatMessage.assistant("", calls), *results, tools=(ToolSchema(name=names[0]),)
    )
    assert [tool["name"] for tool in value["tools"]] == [wire_names([names[0]])[names[0]]]
    used = [block["name"] for block in value["messages"][1]["content"]]
    assert used == [wire_names([name])[name] for name in names]


def test_calls_in_a_history_have_tools_even_where_none_is_on_offer() -> None:
    """The API refuses the one without the other; the model may not call them."""
    past = (ChatMessage.user("q"), ChatMessage.assistant("", [CALL, CALL]), ChatMessage.tool(CALL, "1"))
    value = request(*past)
    assert value["tools"] == [{"name": "add", "description": "No longer on offer.", "input_schema": {"type": "object"}}]
    assert value["tool_choice"] == {"type": "none"}
    other = request(*past, tools=(ToolSchema(name="other"),))
    assert [tool["name"] for tool in other["tools"]] == ["other"]
    assert "tool_choice" not in other


def test_an_answer_is_held_to_a_schema() -> None:
    """By the server, in the form that it compiles; beside the effort."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
    value = request(ChatMessage.user("a"), options={"effort": "high"}, output_schema=schema, output_name="Count")
    assert value["output_config"] == {
        "effort": "high",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"n": {"type": "integer", "description": "(minimum: 0)"}},
                "required": ["n"],
                "additionalProperties": False,
            },
        },
    }


def test_a_schema_without_a_form_is_told_to_the_model() -> None:
    """The kernel checks the answer and asks again, so that words do."""
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    value = request(ChatMessage.user("a"), system="Be nice.", output_schema=schema)
    assert "output_config" not in value
    (block,) = value["system"]
    assert block["text"].startswith(
        "Be nice.\n\nGive the final answer as one JSON object and nothing else. Its schema:"
    )
    assert json.dumps(schema, separators=(",", ":")) in block["text"]


# Turns -----------------------------------------------------------------------------------------------------------


def test_results_that_follow_each_other_are_one_turn() -> None:
    """As the API demands, and a message of the user's that comes next joins them, after them."""
    calls = [ToolCall("a", "add"), ToolCall("b", "add")]
    results = [ChatMessage.tool(call, "1") for call in calls]
    value = request(ChatMessage.user("q"), ChatMessage.assistant("", calls), *results, ChatMessage.user("go on"))
    assert roles(value) == [
        ("user", ["text"]),
        ("assistant", ["tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
    ]


def test_messages_of_one_side_are_one_turn() -> None:
    """The API joins them too; blank ones vanish with their turn (case 58)."""
    value = request(
        ChatMessage.user("hi"), ChatMessage.assistant(""), ChatMessage.user("again"), ChatMessage.assistant("1"),
        ChatMessage.assistant("2"), ChatMessage.user("3"),
    )  # fmt: skip
    assert roles(value) == [("user", ["text", "text"]), ("assistant", ["text", "text"]), ("user", ["text"])]


def test_a_history_that_begins_with_the_assistant_gets_a_first_turn() -> None:
    """The first turn must be the user's."""
    value = request(ChatMessage.assistant("Hello!"), ChatMessage.user("Hi"))
    assert roles(value) == [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])]
    assert value["messages"][0]["content"][0]["text"] == "(The conversation begins with the assistant.)"


def test_system_messages_join_the_system_prompt() -> None:
    """Wherever they stand, since older models know no others; blank ones say nothing."""
    talk = conversation(ChatMessage.system("One."), ChatMessage.user("a"), ChatMessage.system(" "), system="Zero.")
    assert body(talk)["system"][0]["text"] == "Zero.\n\nOne."
    talk.append(ChatMessage(role="system", content=(Text("Two."), Opaque("x", "{}"))))
    assert body(talk)["system"][0]["text"] == "Zero.\n\nOne.\n\nTwo."
    with pytest.raises(ProviderError, match="a part Image in a system message can't be sent"):
        talk.append(ChatMessage(role="system", content=(Image(b"x"),)))


def test_images_are_refused_for_a_model_that_reads_none() -> None:
    """Before the server does, with the option's name."""
    with pytest.raises(ProviderError, match=r"model 'claude-test' is set not to read images; set images = true"):
        conversation(ChatMessage.user([Image(b"x")]), options={"images": False})
    conversation(ChatMessage.user([Text("x")]), options={"images": False})


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [ChatMessage.user("  ")],
        [ChatMessage.system("a")],
        [ChatMessage.user("a"), ChatMessage.assistant("b")],
        [ChatMessage.user("a"), ChatMessage.assistant("b"), ChatMessage.user("\n")],
    ],
    ids=["nothing", "a blank message", "a system message", "an answer at the end", "a blank message after an answer"],
)
def test_a_conversation_that_asks_nothing_is_refused(messages: list[ChatMessage]) -> None:
    """The model would go on with its own words, or the server would refuse the request."""
    with pytest.raises(ProviderError, match="nothing at its end that the model could answer; send a message"):
        body(conversation(*messages))


# The cache -------------------------------------------------------------------------------------------------------


def marks(value: dict[str, Any]) -> list[str]:
    """Return where a request is marked."""
    found = [f"tool {n}" for n, tool in enumerate(value.get("tools", ())) if "cache_control" in tool]
    found += ["system" for block in value.get("system", ()) if "cache_control" in block]
    for n, turn in enumerate(value["messages"]):
        found += [f"turn {n} block {m}" for m, block in enumerate(turn["content"]) if "cache_control" in block]
    return found


def test_marks_stand_at_the_ends_of_what_stays_the_same() -> None:
    """The last tool, the system prompt, the last turn and the user's turn before it: four, as many as are allowed."""
    talk = conversation(ChatMessage.user("q"), system="s", tools=(ADD, ToolSchema(name="zz")))
    assert marks(body(talk)) == ["tool 1", "system", "turn 0 block 0"]
    for step in range(1, 4):
        call = ToolCall(f"c{step}", "add")
        talk.append(ChatMessage.assistant("", [call]))
        talk.append(ChatMessage.tool(call, "1"))
        value = body(talk)
        assert marks(value) == ["tool 1", "system", f"turn {2 * step - 2} block 0", f"turn {2 * step} block 0"]
        assert value["messages"][-1]["content"][0]["cache_control"] == MARK


def test_what_was_sent_is_sent_again_to_the_byte() -> None:
    """But for the marks, a request begins as the one before it, so that the server finds what it kept."""
    talk = conversation(
        ChatMessage.user("q"), ChatMessage.assistant("", [CALL]), ChatMessage.tool(CALL, "1"), system="s"
    )
    mark = b',"cache_control":{"type":"ephemeral"}'
    before = b"".join(talk.body(stream=False)).replace(mark, b"")
    talk.append(ChatMessage.assistant("3"))
    talk.append(ChatMessage.user("more"))
    after = b"".join(talk.body(stream=False)).replace(mark, b"")
    assert after.startswith(before.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("caching", "mark"),
    [(True, MARK), ("5m", MARK), ("1h", {"type": "ephemeral", "ttl": "1h"}), (False, None)],
)
def test_how_long_the_cache_keeps_is_an_option(caching: object, mark: object) -> None:
    """Five minutes are the API's own."""
    talk = conversation(ChatMessage.user("q"), options={"prompt_caching": caching})
    assert body(talk)["messages"][0]["content"][0].get("cache_control") == mark


def test_a_block_with_a_mark_of_its_own_gets_no_second() -> None:
    """Nor does one whose kind takes none."""
    own = Opaque("anthropic", '{"type":"search_result","cache_control":{"type":"ephemeral"}}')
    tools = [{"type": "web_search_20260209", "name": "w", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    talk = conversation(ChatMessage.user([Text("a"), own]), options={"server_tools": tools})
    assert marks(body(talk)) == ["tool 0", "turn 0 block 1"]
    talk.append(ChatMessage.assistant("b"))
    talk.append(ChatMessage.user("c"))
    assert marks(body(talk)) == ["tool 0", "turn 0 block 1", "turn 2 block 0"]


def test_a_paused_answer_is_sent_back_at_the_end() -> None:
    """As the assistant's turn, for this one request."""
    talk = conversation(ChatMessage.user("q"))
    value = body(talk, continued=[b'{"type":"text","text":"so far"}'])
    assert roles(value) == [("user", ["text"]), ("assistant", ["text"])]
    assert roles(body(talk)) == [("user", ["text"])]


# Laws ------------------------------------------------------------------------------------------------------------

_MESSAGES = st.lists(
    st.one_of(
        st.text(max_size=5).map(ChatMessage.user),
        st.text(max_size=5).map(ChatMessage.assistant),
        st.text(max_size=5).map(ChatMessage.system),
        st.integers(0, 9).map(lambda n: ChatMessage.assistant("", [ToolCall(str(n), "add")])),
        st.integers(0, 9).map(lambda n: ChatMessage.tool(ToolCall(str(n), "add"), "1")),
    ),
    max_size=12,
)


@given(_MESSAGES)
def test_turns_alternate(messages: list[ChatMessage]) -> None:
    """Law: whatever comes, turns alternate from the user's on, none is empty, and at most four places are marked."""
    talk = conversation(*messages, ChatMessage.user("end"), system="s", tools=(ADD,))
    value = body(talk)
    assert [role for role, _ in roles(value)] == ["user", "assistant"] * (len(value["messages"]) // 2) + ["user"]
    assert all(turn["content"] for turn in value["messages"])
    assert len(marks(value)) <= 4


@given(_MESSAGES)
def test_a_conversation_that_grew_is_one_that_was_given_whole(messages: list[ChatMessage]) -> None:
    """Law: asking in between changes nothing."""
    grown = conversation(ChatMessage.user("begin"))
    for message in messages:
        body(grown) if grown._role == "user" else None
        grown.append(message)
    grown.append(ChatMessage.user("end"))
    assert body(grown) == body(conversation(ChatMessage.user("begin"), *messages, ChatMessage.user("end")))
