from __future__ import annotations

import json
from typing import Any

import pytest
from atlas_openai._fragments import Fragments
from hypothesis import given
from hypothesis import strategies as st

OFFERED = {"s", "t", "get", "get_weather"}


def put_together(*fragments: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return id, name and arguments of each call that fragments make."""
    calls = Fragments(OFFERED.__contains__)
    for fragment in fragments:
        calls.add([fragment])
    return [(call.id, call.name, call.arguments) for call in calls.calls]


def part(
    arguments: object = None, *, i: object = None, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return a fragment."""
    made: dict[str, Any] = {"function": {"arguments": arguments}}
    if i is not None:
        made["index"] = i
    if id is not None:
        made["id"] = id
    if name is not None:
        made["function"]["name"] = name
    return made


A, B = '{"q":"A"}', '{"q":"B"}'


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        pytest.param(
            [part(A, i=0, id="a", name="s"), part(B, i=0, id="b", name="s")],
            [("a", "s", A), ("b", "s", B)],
            id="all calls have index 0",
        ),
        pytest.param(
            [part(A, id="a", name="s"), part(B, id="b", name="s")],
            [("a", "s", A), ("b", "s", B)],
            id="no index at all",
        ),
        pytest.param(
            [part(A, i=0, name="s"), part(B, i=0, name="s")],
            [("", "s", A), ("", "s", B)],
            id="one index, no ids, two complete objects",
        ),
        pytest.param(
            [part('{"q"', i=0, id="a", name="s"), part(':"', i=0, id="a"), part('A"}', i=0, id="a")],
            [("a", "s", A)],
            id="the id is repeated in each fragment",
        ),
        pytest.param(
            [part('{"q":', i=0, id="a", name="s"), part('"A"}', i=0, id="a", name="s")],
            [("a", "s", A)],
            id="id and name are repeated in each fragment",
        ),
        pytest.param(
            [part('{"q":', i=0, name="s"), part('"A"}', i=0, name="s")],
            [("", "s", A)],
            id="the name is repeated and there is no id",
        ),
        pytest.param(
            [part('{"q":', i=0, id="x1", name="s"), part('"A"}', i=0, id="x2")],
            [("x1", "s", A)],
            id="each fragment has a new id",
        ),
        pytest.param(
            [
                part("", i=0, id="a", name="s"),
                part("", i=1, id="b", name="t"),
                part('{"q"', i=0),
                part('{"q"', i=1),
                part(':"A"}', i=0),
                part(':"B"}', i=1),
            ],
            [("a", "s", A), ("b", "t", B)],
            id="parallel calls are interleaved",
        ),
        pytest.param(
            [part('{"q"', i=0, id="a", name="s"), part(':"A"}')],
            [("a", "s", A)],
            id="later fragments have no index",
        ),
        pytest.param(
            [part("", i=0, name="get"), part(A, i=0, name="_weather")],
            [("", "get_weather", A)],
            id="the name comes in pieces",
        ),
        pytest.param(
            [part("", i=0, name="s"), part("", i=0, name="t")],
            [("", "s", ""), ("", "t", "")],
            id="two calls without arguments under one index",
        ),
        pytest.param([part({"q": "A"}, i=0, id="a", name="s")], [("a", "s", A)], id="arguments are an object"),
        pytest.param([part(None, i=0, id="a", name="s")], [("a", "s", "")], id="no arguments"),
        pytest.param([part(A, i=True, id="a", name="s")], [("a", "s", A)], id="an index that is no number"),
        pytest.param(
            [part(A, i=0, id="a", name="s"), part(B, i=0)],
            [("a", "s", A + B)],
            id="parts that can't be told apart are no valid arguments",
        ),
        pytest.param(
            [part(A, i=0, id="a", name="s"), part(B, i=0, id="b")],
            [("a", "s", A), ("b", "", B)],
            id="a call without a name",
        ),
        pytest.param(
            [part("", i=0, id="a", name="s"), part("", i=1, id="b", name="t"), part(A, id="a"), part(B, id="b")],
            [("a", "s", A), ("b", "t", B)],
            id="later fragments have the id alone",
        ),
        pytest.param(["x", None], [("", "", "")], id="fragments that are none"),  # the model is told of the empty name
    ],
)
def test_fragments_become_calls(fragments: list[Any], calls: list[tuple[str, str, str]]) -> None:
    """Case 42: a new id, or a new start after a complete object, is a new call; nothing is merged in silence."""
    assert put_together(*fragments) == calls


@given(
    calls=st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), min_size=1), min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    numbered=st.booleans(),
    data=st.data(),
)
def test_any_cut_gives_the_same_calls(calls: list[dict[str, str]], cuts: list[int], numbered: bool, data: Any) -> None:
    """However the arguments are cut, and interleaved where they are numbered, the calls are the same."""
    texts = [json.dumps(arguments) for arguments in calls]
    queues: list[list[dict[str, Any]]] = []
    for n, text in enumerate(texts):
        sizes = [cuts[k % len(cuts)] for k in range(len(text))]
        pieces, at = [], 0
        for size in sizes:
            pieces.append(text[at : at + size])
            at += size
        queue = [part("", i=n if numbered else None, id=f"c{n}", name="s")]
        queue += [part(piece, i=n if numbered else None) for piece in pieces if piece]
        queues.append(queue)
    order: list[dict[str, Any]] = []
    if numbered:
        while any(queues):
            queue = data.draw(st.sampled_from([q for q in queues if q]))
            order.append(queue.pop(0))
    else:
        order = [fragment for queue in queues for fragment in queue]
    expected = [(f"c{n}", "s", text) for n, text in enumerate(texts)]
    assert sorted(put_together(*order)) == sorted(expected)
