import codecs
import json

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.http import ServerEvent
from atlas_core.http.sse import EventParser, EventTooLongError, TruncatedEventError


def parsed(*pieces: bytes, most: int = 2**26) -> list[ServerEvent]:
    """Return the events of a body in pieces."""
    parser = EventParser(most)
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.end()]


def data_of(*pieces: bytes) -> list[str]:
    """Return their data."""
    return [event.data for event in parsed(*pieces)]


def test_a_line_separator_inside_of_json_ends_no_line() -> None:
    """U+2028, which models write raw, is text (case 46)."""
    body = 'data: {"t":"a\u2028b"}\n\ndata: {"t":"c\u0085\x0bd"}\n\n'.encode()
    assert [json.loads(data, strict=False)["t"] for data in data_of(body)] == ["a\u2028b", "c\u0085\x0bd"]


def test_comments_are_skipped_and_one_space_after_the_colon_too() -> None:
    """Heartbeats are no events, and `data:` may stand without a space (case 48)."""
    body = b': OPENROUTER PROCESSING\n\n:\n\ndata: {"a":1}\n\n:comment without space\ndata:{"a":2}\n\n'
    body += b"data:  x\n\ndata: [DONE]\n\n"
    assert data_of(body) == ['{"a":1}', '{"a":2}', " x", "[DONE]"]


TEXT = 'data: {"t":"é 漢 🙂"}\n\nevent: delta\ndata: zwei\n\n'.encode()


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("at", range(1, len(TEXT)))
def test_a_body_cut_anywhere_gives_the_same_events(at: int, ending: bytes) -> None:
    """Characters of two to four bytes, and line ends of two, may be split between reads (case 54)."""
    body = TEXT.replace(b"\n", ending)
    assert parsed(body[:at], body[at:]) == [
        ServerEvent("message", '{"t":"é 漢 🙂"}'),
        ServerEvent("delta", "zwei"),
    ]


def test_a_body_that_ends_inside_of_a_character_is_incomplete() -> None:
    """Half a character is a cut stream and no decoding error (case 54)."""
    with pytest.raises(TruncatedEventError):
        parsed('data: {"t":"é'.encode()[:-1])


@pytest.mark.parametrize(
    ("tail", "data"),
    [
        (b"data: [DONE]", ["[DONE]"]),
        (b"data: [DONE]\n", ["[DONE]"]),
        (b'data: {"a": 1}', ['{"a": 1}']),
        (b"event: x\ndata: plain text\n", ["plain text"]),
        (b"data: plain\r", ["plain"]),
        (b": a comment", []),
        (b"", []),
    ],
)
def test_a_last_event_without_its_blank_line_counts_if_it_is_whole(tail: bytes, data: list[str]) -> None:
    """Servers leave out the last blank line; what is complete by its own form is handed over."""
    assert data_of(b"data: first\n\n" + tail) == ["first", *data]


@pytest.mark.parametrize("tail", [b'data: {"a": 1', b"data: [DO", b"event: x", b"dat"])
def test_a_last_event_that_is_not_whole_is_a_cut_stream(tail: bytes) -> None:
    """The end of the body inside of an event is told, not hidden."""
    with pytest.raises(TruncatedEventError):
        parsed(b"data: first\n\n" + tail)


def test_fields_are_read_by_the_rules() -> None:
    """Ids stay until changed, lines of data are joined, `retry` is a number, unknown fields say nothing."""
    body = b"id: 7\nevent: a\ndata: 1\ndata: 2\n\ndata: 3\n\nretry: 50\nfoo: bar\ndata: 4\nid:\n\n"
    body += b"data: 5\n\nevent: ping\n\n"
    assert parsed(body) == [
        ServerEvent("a", "1\n2", "7"),
        ServerEvent("message", "3", "7"),
        ServerEvent("message", "4", "", 50),
        ServerEvent("message", "5"),
    ]


def test_an_event_of_ten_megabytes_in_small_pieces_is_one_event() -> None:
    """A long line is joined once, in time that grows with its length and not with its square."""
    body = b"data: " + b"x" * 10_000_000 + b"\n\ndata: y\n\n"
    pieces = [body[i : i + 4096] for i in range(0, len(body), 4096)]
    assert [len(data) for data in data_of(*pieces)] == [10_000_000, 1]


def test_an_event_longer_than_allowed_ends_the_stream() -> None:
    """A server can't fill the memory with one event; many small ones may be longer together."""
    with pytest.raises(EventTooLongError):
        parsed(*[b"data: " + b"x" * 60] * 2, most=100)
    assert len(parsed(*[b"data: " + b"x" * 60 + b"\n\n"] * 20, most=100)) == 20
    assert len(parsed(*[b"data: " + b"x" * 60 + b"\n", b"\n"] * 20, most=100)) == 20


def test_invalid_bytes_are_replaced() -> None:
    """A byte that is no UTF-8 costs one character and not the stream."""
    assert data_of(b"data: first\n\n", b"data: a\xffb\n\n") == ["first", "a\ufffdb"]


def test_a_mark_at_the_beginning_is_no_part_of_the_first_field() -> None:
    """One byte order mark is dropped."""
    assert data_of(codecs.BOM_UTF8 + b"data: a\n\n") == ["a"]


LINES = st.sampled_from(
    [
        "data: a",
        "data:b",
        "data:  c",
        "data",
        "data: é\u2028",
        "event: e",
        "event:f",
        ": x",
        "",
        "",
        "id: 1",
        "id",
        "retry: 5",
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=30), st.data())
def test_events_are_those_of_httpx_sse(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whatever the lines, and wherever the body is cut, the events are those that the library finds."""
    body = ("".join(line + end for line, end in lines) + "\n\n").encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    expected = [ServerEvent(e.event, e.data, e.id, e.retry) for e in EventSource(response).iter_sse() if e.data]
    assert parsed(*pieces) == expected
