from __future__ import annotations

import json
from typing import Any

import pytest
from atlas_anthropic._blocks import assistant_blocks, encode, tool_result, user_blocks
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import ChatMessage, Data, File, Image, Opaque, Part, ProviderError, Text, ToolCall


def blocks(*parts: Part) -> list[Any]:
    """Encode a user's message."""
    return [json.loads(block) for block in user_blocks(ChatMessage.user(parts))]


def said(message: ChatMessage) -> list[Any]:
    """Encode an assistant's message, each tool under its own name."""
    return [json.loads(block) for block in assistant_blocks(message, lambda name: name)]


# Users' messages -------------------------------------------------------------------------------------------------


def test_text_is_one_block() -> None:
    """Compact JSON, letters as they are."""
    assert user_blocks(ChatMessage.user("Grüße, 世界")) == ['{"type":"text","text":"Grüße, 世界"}'.encode()]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"], ids=repr)
def test_blank_text_is_never_sent(text: str) -> None:
    """Case 58: the API refuses text blocks that are empty or all white space."""
    assert user_blocks(ChatMessage.user(text)) == []
    assert blocks(Text(text), Text("a"), Data(text)) == [{"type": "text", "text": "a"}]


def test_half_a_surrogate_pair_does_not_break_a_request() -> None:
    """It has no form in UTF-8 and becomes a question mark."""
    assert json.loads(encode("a\ud800b")) == "a?b"
    assert json.loads(encode("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))) == "😀"


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Data('{"a": 1}'), {"type": "text", "text": '{"a": 1}'}),
        (
            Image(b"\x89PNG", media_type="image/PNG"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        ),
        (
            Image(url="https://example.com/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        ),
        (
            Image(url="data:image/gif;base64,R0lG"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}},
        ),
        (
            File(b"%PDF", media_type="application/pdf", name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
                "title": "a.pdf",
            },
        ),
        (
            File(url="https://example.com/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        ),
        (
            File("\ufeffä".encode(), media_type="text/markdown; charset=utf-8"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ä"}},
        ),
        (
            File(url="data:,a%20b", media_type="text/plain"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a b"}},
        ),
        (
            Opaque("anthropic", '{"type":"search_result","source":"s","title":"t","content":[]}'),
            {"type": "search_result", "source": "s", "title": "t", "content": []},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parts_have_the_vendors_forms(part: Part, block: dict[str, Any]) -> None:
    """Images, PDF and text files by bytes or address; what is the provider's own as it is."""
    assert blocks(part) == [block]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Image(b"BM", media_type="image/bmp"), "an image of type 'image/bmp' can't be sent; convert it to one of"),
        (Image(url="file:///etc/passwd"), "the address 'file:///etc/passwd' can't be sent"),
        (Image(url="data:image/png;base64,%%"), "the address 'data:image/png;base64' holds no base64"),
        (File(b"\0", media_type="audio/wav"), "a file of type 'audio/wav' can't be sent; send PDF or text"),
        (File(url="https://example.com/a.md", media_type="text/markdown"), "can't be sent as an address"),
        (File(b"\xff", media_type="text/plain", name="a.txt"), "the file 'a.txt' of type 'text/plain' is not UTF-8"),
        (Opaque("", '{"type": "video", "x": 1}'), "a part of unknown type 'video' in a message of role 'user'"),
        (Opaque("", "[]"), "a part of unknown type None"),
        (Opaque("anthropic", "{"), "an opaque part without a `type`"),
        (Opaque("anthropic", '{"a": 1}'), "an opaque part without a `type`"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_the_api_has_no_form_for_is_refused(part: Part, text: str) -> None:
    """By name and with what would work, and nothing is dropped in silence."""
    with pytest.raises(ProviderError) as caught:
        blocks(part)
    assert text in str(caught.value)
    assert not caught.value.retryable


def test_thoughts_of_another_provider_are_left_out() -> None:
    """Nobody else can read them, and a conversation may change its model."""
    assert blocks(Opaque("openai", '{"type":"reasoning"}'), Text("a")) == [{"type": "text", "text": "a"}]
    assert said(ChatMessage.assistant([Opaque("openai", "{}"), Text("a")])) == [{"type": "text", "text": "a"}]


# Results ---------------------------------------------------------------------------------------------------------


def test_results_of_tools() -> None:
    """Text, nothing, parts, failures."""
    call = ToolCall("toolu_1", "t")
    assert json.loads(tool_result(ChatMessage.tool(call, "42"))) == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "42",
    }
    assert json.loads(tool_result(ChatMessage.tool(call, " ", is_error=True))) == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "is_error": True,
    }
    rich = json.loads(tool_result(ChatMessage.tool(call, [Text(""), Text("a"), Image(b"x")])))
    assert [block["type"] for block in rich["content"]] == ["text", "image"]
    assert "content" not in json.loads(tool_result(ChatMessage.tool(call, [Text("")])))


# Assistants' messages --------------------------------------------------------------------------------------------


def test_calls_come_after_what_was_said() -> None:
    """In their order, arguments as the model wrote them, to the byte."""
    calls = [ToolCall("a", "x", '{"n":  1.0}'), ToolCall("b", "y", "")]
    message = ChatMessage.assistant("Let me see", calls)
    assert assistant_blocks(message, str.upper) == [
        b'{"type":"text","text":"Let me see"}',
        b'{"type":"tool_use","id":"a","name":"X","input":{"n":  1.0}}',
        b'{"type":"tool_use","id":"b","name":"Y","input":{}}',
    ]


def test_a_message_of_calls_alone_has_no_text_block() -> None:
    """An empty one would be refused."""
    assert [block["type"] for block in said(ChatMessage.assistant("", [ToolCall("a", "x")]))] == ["tool_use"]


@pytest.mark.parametrize("arguments", ['{"a": 1', "[1]", '"x"', '{"a": NaN}', "[" * 100_000], ids=lambda t: t[:10])
def test_arguments_that_are_no_object_are_carried_as_a_text(arguments: str) -> None:
    """`input` must be an object, and the model should see what it wrote."""
    (block,) = said(ChatMessage.assistant("", [ToolCall("a", "x", arguments)]))
    assert block["input"] == {"INVALID_JSON": arguments}


@pytest.mark.parametrize("arguments", ["null", " ", ""], ids=repr)
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    """As they are for the kernel."""
    (block,) = said(ChatMessage.assistant("", [ToolCall("a", "x", arguments)]))
    assert block["input"] == {}


def test_ids_of_other_servers_get_the_characters_that_the_api_takes() -> None:
    """On both sides alike, and different ids stay different."""
    (use,) = said(ChatMessage.assistant("", [ToolCall("functions.x:0", "x")]))
    result = json.loads(tool_result(ChatMessage.tool(ToolCall("functions.x:0", "x"), "1")))
    other = json.loads(tool_result(ChatMessage.tool(ToolCall("functions_x:0", "x"), "1")))
    assert use["id"] == result["tool_use_id"] != other["tool_use_id"]
    assert set(use["id"]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_opaque_parts_go_back_to_the_byte() -> None:
    """A signature covers what was signed, so that a thinking block is not written anew."""
    payload = '{"type": "thinking", "thinking": "a\\u0020b",  "signature": "EqQB=="}'
    message = ChatMessage.assistant([Opaque("anthropic", payload), Text("c")])
    assert assistant_blocks(message, str)[0] == payload.encode()


def test_a_call_keeps_its_place_and_what_else_it_held() -> None:
    """Where something followed a call, or the call had more than a call has."""
    place = Opaque("anthropic", '{"type": "tool_use", "index": 0, "toolset_name": "browser"}')
    message = ChatMessage.assistant([place, Text("then")], [ToolCall("new-id", "x", "{}"), ToolCall("b", "y", "{}")])
    first, text, second = said(message)
    assert first == {"type": "tool_use", "id": "new-id", "name": "x", "toolset_name": "browser", "input": {}}
    assert text["type"] == "text"
    assert second["id"] == "b"


@pytest.mark.parametrize("index", ["1", "-1", '"0"', "null"])
def test_a_place_without_its_call_is_left_out(index: str) -> None:
    """A message may have lost calls; none is sent twice or made up."""
    place = Opaque("anthropic", f'{{"type": "tool_use", "index": {index}}}')
    assert [b["id"] for b in said(ChatMessage.assistant([place, place], [ToolCall("a", "x")]))] == ["a"]


def test_one_place_holds_one_call() -> None:
    """A repeated place is left out."""
    place = Opaque("anthropic", '{"type": "tool_use", "index": 0}')
    assert [b["id"] for b in said(ChatMessage.assistant([place, place], [ToolCall("a", "x")]))] == ["a"]


def test_citations_belong_to_the_text_before_them() -> None:
    """And are left out where that is gone."""
    cited = Opaque("anthropic", '{"type": "citations", "citations": [{"type": "char_location"}]}')
    assert said(ChatMessage.assistant([cited, Text("a"), cited])) == [
        {"type": "text", "text": "a", "citations": [{"type": "char_location"}]}
    ]


@pytest.mark.parametrize("part", [Image(b"x"), File(b"x")], ids=lambda part: type(part).__name__)
def test_an_assistant_sends_no_files(part: Part) -> None:
    """The API takes them from users only (since version 2026-10-21 documents too)."""
    with pytest.raises(ProviderError, match=f"a part {type(part).__name__} in a message of role 'assistant'"):
        said(ChatMessage.assistant([part]))


@given(st.text())
def test_any_text_is_sent_as_json(text: str) -> None:
    """Law: the block is JSON whose text is the text, unless that is blank or has no form in UTF-8."""
    for block in user_blocks(ChatMessage.user(text)):
        assert json.loads(block)["text"] == text.encode("utf-8", "replace").decode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_arguments_are_an_object(value: Any) -> None:
    """Law: whatever the arguments are, `input` is an object, and an object is the same."""
    (block,) = said(ChatMessage.assistant("", [ToolCall("a", "x", json.dumps(value))]))
    assert isinstance(block["input"], dict)
    if isinstance(value, dict):
        assert block["input"] == value
