"""Calls of a real model: always schema-valid, however little it understands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from atlas_llama.provider import LlamaLLM
from atlas_llama.wire import read_answer
from jsonschema import Draft202012Validator

from atlas_core import (
    ChatMessage,
    FinishReason,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    ProviderResponseError,
    ToolCall,
    ToolSchema,
)

Make = Callable[..., LlamaLLM]
Used = Callable[..., list[ChatMessage]]
Schema = Callable[..., ToolSchema]

WORD = {"type": "string", "maxLength": 8}

PARAMETERS: dict[str, dict[str, Any]] = {
    "members and whole numbers": {
        "type": "object",
        "properties": {"unit": {"enum": ["km", "mi"]}, "n": {"type": "integer", "minimum": 3, "maximum": 40}},
        "required": ["unit", "n"],
    },
    "objects inside one another": {
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "properties": {"city": WORD, "at": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
                "required": ["city", "at"],
            },
            "deep": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
        },
        "required": ["place", "deep"],
    },
    "references": {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/Point"}},
        "required": ["first"],
        "$defs": {"Point": {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}},
    },
    "formats and patterns": {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
        },
        "required": ["day", "code"],
    },
    "one of several": {
        "type": "object",
        "properties": {
            "shape": {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "disc"}, "r": {"type": "integer"}},
                        "required": ["kind", "r"],
                    },
                ]
            }
        },
        "required": ["shape"],
    },
    "a pattern beyond the grammar": {
        "type": "object",
        "properties": {"word": {"type": "string", "pattern": "^(?!zz)", "maxLength": 6}},
        "required": ["word"],
    },
    "no arguments": {"type": "object", "properties": {}},
}


def valid(call: ToolCall, tools: dict[str, ToolSchema]) -> bool:
    return Draft202012Validator(dict(tools[call.name].parameters)).is_valid(json.loads(call.arguments_json))


@pytest.mark.parametrize("kind", ["members and whole numbers", "a pattern beyond the grammar"])
async def test_calls_fit_their_schema(kind: str, llm: LlamaLLM, used_to_calling: Used) -> None:
    """The model has seen only a call that breaks the schema, and still can't write one."""
    tools = {"probe": ToolSchema(name="probe", description="Probes.", parameters=PARAMETERS[kind])}
    messages = used_to_calling("Use probe.", ToolCall.of("probe", wrong="yes", n="many"))
    response = await llm.complete(LLMRequest(messages=messages, tools=tuple(tools.values()), max_output_tokens=60))
    assert response.finish_reason in {FinishReason.TOOL_CALLS, FinishReason.LENGTH}
    assert response.message.tool_calls
    assert all(valid(call, tools) for call in response.message.tool_calls)


@pytest.mark.parametrize("kind", PARAMETERS)
async def test_calls_fit_whatever_chance_picks(kind: str, llm: LlamaLLM) -> None:
    """Made to call, out of the blue and at a temperature that leaves no sense, it writes what fits, or is cut."""
    tools = {
        "probe": ToolSchema(name="probe", parameters=PARAMETERS[kind]),
        "other": ToolSchema(name="other", parameters=PARAMETERS["members and whole numbers"]),
    }
    holding = await llm._holding(LLMRequest(messages=[], tools=tuple(tools.values())))
    assert holding is not None
    only_calls = holding.grammar.replace("message: words | calls", "message: calls").replace(
        "/(.|\\n)*<tool_call>", "/<tool_call>"
    )
    assert only_calls.count("/<tool_call>") == 1
    complete = 0
    for seed in range(3):
        body = {"prompt": "\n", "max_tokens": 50, "temperature": 2.0, "seed": seed, "grammar": only_calls}
        raw = ""
        async for chunk in llm._write("text", body, None):
            raw += "".join(choice.get("text") or "" for choice in chunk.get("choices", ()))
        written = read_answer(raw, tools)
        assert written.text == ""
        assert all(valid(ToolCall("", c.name, c.arguments_json), tools) for c in written.calls)
        complete += len(written.calls)
    assert complete


async def test_several_calls_in_one_message(llm: LlamaLLM, tool_schema: Schema) -> None:
    """Calls side by side come back in order, each with an id of its own that goes on counting."""
    tools = (tool_schema("first", v={"enum": ["a", "b"]}), tool_schema("second", v={"enum": ["c", "d"]}))
    pair = [ToolCall("x", "first", '{"v": "a"}'), ToolCall("y", "second", '{"v": "c"}')]
    turn = [
        ChatMessage.user("Call both."),
        ChatMessage.assistant("", pair),
        *(ChatMessage.tool(call, "done") for call in pair),
        ChatMessage.assistant("Done."),
    ]
    messages = [*turn, ChatMessage.user("Call both.")]
    response = await llm.complete(LLMRequest(messages=messages, tools=tools, max_output_tokens=120))
    assert [call.name for call in response.message.tool_calls] == ["first", "second"]
    assert [call.id for call in response.message.tool_calls] == ["llama-3", "llama-4"]


async def test_words_may_precede_a_call_and_only_they_are_streamed(llm: LlamaLLM, tool_schema: Schema) -> None:
    """Whoever watches sees the thought, and never half a call."""
    tool = tool_schema("lookup", word=WORD)
    turn = [
        ChatMessage.user("Look up sun."),
        ChatMessage.assistant("I look it up.", [call := ToolCall.of("lookup", id="c", word="sun")]),
        ChatMessage.tool(call, "done"),
        ChatMessage.assistant("Done."),
    ]
    request = LLMRequest(messages=[*turn, ChatMessage.user("Look up sun.")], tools=(tool,), max_output_tokens=60)
    pieces = [piece async for piece in llm.stream(request)]
    response = pieces.pop()
    assert isinstance(response, LLMResponse)
    shown = "".join(piece.text for piece in pieces if isinstance(piece, LLMDelta))
    assert shown == response.message.text == "I look it up."
    assert [call.arguments for call in response.message.tool_calls] == [{"word": "sun"}]


async def test_a_call_that_is_cut_is_shown_and_not_made(
    llm: LlamaLLM, used_to_calling: Used, tool_schema: Schema
) -> None:
    """The output limit in the middle of a call leaves text, and a reason to raise the limit."""
    tool = tool_schema("probe", word=WORD)
    call = ToolCall.of("probe", word="sun")
    messages = used_to_calling("Use probe.", call)
    response = await llm.complete(LLMRequest(messages=messages, tools=(tool,), max_output_tokens=12))
    assert response.finish_reason is FinishReason.LENGTH
    assert response.message.tool_calls == ()
    assert response.message.text.startswith("<tool_call>")


IMPOSSIBLE = {"type": "object", "properties": {"v": {"enum": ["a"]}}, "required": ["v"], "not": {"required": ["v"]}}


async def test_what_no_grammar_can_hold_is_asked_for_again(llm: LlamaLLM) -> None:
    """A schema that can't be met ends in an error that names the violation, after three tries."""
    request = LLMRequest(
        messages=[ChatMessage.user("Go.")], output_schema=IMPOSSIBLE, output_name="Go", max_output_tokens=20
    )
    with pytest.raises(ProviderResponseError, match=r"wrote 3 times what does not fit: .* should not be valid under"):
        await llm.complete(request)


async def test_a_call_that_does_not_fit_never_comes_out(llm: LlamaLLM, used_to_calling: Used) -> None:
    """Told what is wrong, the model may answer in words; every try is counted."""
    tool = ToolSchema(name="probe", parameters=IMPOSSIBLE)
    messages = used_to_calling("Use probe.", ToolCall.of("probe", v="a"))
    request = LLMRequest(messages=messages, tools=(tool,), max_output_tokens=40)
    (response,) = await asyncio.gather(llm.complete(request), return_exceptions=True)
    if isinstance(response, LLMResponse):
        assert response.message.tool_calls == ()
        assert response.usage.requests > 1
    else:
        assert isinstance(response, ProviderResponseError)
        assert "of 'probe' do not fit" in str(response)


async def test_an_answer_is_held_to_its_schema(llm: LlamaLLM) -> None:
    """`output_schema` makes the text a JSON value that meets it."""
    schema = PARAMETERS["members and whole numbers"]
    request = LLMRequest(
        messages=[ChatMessage.user("Pick a unit and a number.")],
        output_schema=schema,
        output_name="Pick",
        max_output_tokens=40,
    )
    response = await llm.complete(request)
    assert response.finish_reason is FinishReason.STOP
    assert Draft202012Validator(schema).is_valid(json.loads(response.message.text))


async def test_a_tool_set_is_fitted_once(make_llm: Make, tool_schema: Schema) -> None:
    """The second request with the same tools asks llama.cpp nothing about its grammar; many sets are not all kept."""
    async with make_llm(context_tokens=512) as own:
        for n in range(34):
            await own._holding(LLMRequest(messages=[], tools=(tool_schema(f"t{n}"),)))
        again = LLMRequest(messages=[], tools=(tool_schema("t33"),))
        assert await own._holding(again) is await own._holding(again)
        assert len(own._holdings) == 2
