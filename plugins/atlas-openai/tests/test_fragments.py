from __future__ import annotations

import json
from typing import Any

import pytest
from atlas_openai._fragments import MIXED, Fragments, _value
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
            [
                part('{"q":', i=0, id="a", name="s"),
                part('{"q":', i=0, id="b", name="s"),
                part('"A"}', i=0, id="a"),
                part(" ", i=0, id="b"),
            ],
            [("a", "s", A), ("b", "s", '{"q": ')],
            id="one index for two calls that are interleaved, one of them cut",
        ),
        pytest.param(
            [
                part('{"q":', i=0, id="a", name="s"),
                part('{"q":', i=0, id="b", name="s"),
                part('"B"}', i=0, id="b"),
                part('"A"}', i=0, id="a"),
            ],
            [("a", "s", A), ("b", "s", B)],
            id="one index for two calls that are interleaved",
        ),
        pytest.param(
            [part(A, i=0, id="c", name="s"), part(B, i=0, id="c", name="s")],
            [("c", "s", A), ("c", "s", B)],
            id="one id and index for two whole calls",
        ),
        pytest.param(
            [
                part(A, i=0, id="c", name="s"),
                part('{"q":', i=0, id="c", name="s"),
                part('"B"}', i=0, id="c"),
                part("", i=0, id="c"),
            ],
            [("c", "s", A), ("c", "s", B)],
            id="one id and index for two calls, the second in pieces",
        ),
        pytest.param(
            [
                part("", i=0, id="c", name="s"),
                part("", i=1, id="c", name="s"),
                part('{"q":', i=0, id="c"),
                part(B, i=1),
                part('"A"}', i=0),
            ],
            [("c", "s", A), ("c", "s", B)],
            id="one id for two calls that have numbers",
        ),
        pytest.param(
            [part(A, i=0, id="c", name="s"), part("", i=0, id="c", name="t")],
            [("c", "s", A), ("c", "t", "")],
            id="one id for two tools",
        ),
        pytest.param(
            [part(A, i=0, id="c", name="s"), part("", i=0, id="c", name="s")],
            [("c", "s", A)],
            id="the last fragment is empty and repeats id and name",
        ),
        pytest.param(
            [part('{"q":', i=0, id="a", name="s"), part('{"q":', i=0, id="b", name="s"), part('"A"}', i=0)],
            [("a", "s", f'{MIXED} {{"q":'), ("b", "s", f'{MIXED} {{"q":')],
            id="one index, two open calls and a part without an id",
        ),
        pytest.param(
            [part('{"q":', id="a", name="s"), part('{"q":', id="b", name="t"), part('"A"}', name="s")],
            [("a", "s", '{"q":"A"}'), ("b", "t", '{"q":')],
            id="the name tells whose part it is",
        ),
        pytest.param(
            [part("", i=0, id="a", name="s"), part("", i=0, id="b", name="s"), part(A, i=0)],
            [("a", "s", f"{MIXED} "), ("b", "s", f"{MIXED} ")],
            id="one index, two calls that have not begun and whole arguments without an id",
        ),
        pytest.param(
            [part("", i=0, id="a", name="t"), part('{"q":', i=0, id="b", name="s"), part('"A"}', i=0)],
            [("a", "t", ""), ("b", "s", A)],
            id="what goes on can't begin arguments",
        ),
        pytest.param(
            [part("null", i=0, id="a", name="t"), part('{"q":', i=0, id="b", name="s"), part('"A"}', i=0)],
            [("a", "t", "null"), ("b", "s", A)],
            id="null is complete",
        ),
        pytest.param(
            [part('{"q":', i=0, name="s"), part('"A"}', i=0, id="a", name="s")],
            [("a", "s", A)],
            id="the id comes late",
        ),
        pytest.param(
            [part('{"q":', i=0, id="a", name="s"), part('"A"}', i=1)],
            [("a", "s", A)],
            id="the number grows with each fragment of one call",
        ),
        pytest.param(
            [part("", i=0, id="a", name="s"), part("", i=1, id="b", name="t"), part(A, id="a"), part(B, id="b")],
            [("a", "s", A), ("b", "t", B)],
            id="later fragments have the id alone",
        ),
        pytest.param(
            [part('{"q":', i=0, id="a", name="s"), part('"A"}', i=0), part(A, i=0, id="a", name="s")],
            [("a", "s", A)],
            id="the last fragment is the whole call once more",
        ),
        pytest.param(
            [part(A, i=0, id="a", name="s"), part('{ "q" : "A" }', i=0, id="a", name="s"), part({"q": "A"}, id="a")],
            [("a", "s", A)],
            id="the call comes again in another spelling, without number or name",
        ),
        pytest.param(
            [part(A, id="a", name="s"), part(B, id="b", name="s"), part(A, i=0, id="a"), part(B, i=1, id="b")],
            [("a", "s", A), ("b", "s", B)],
            id="all calls come again, with numbers",
        ),
        pytest.param(
            [part('{"n":1}', i=0, id="c", name="s"), part('{"n":true}', i=0, id="c", name="s")],
            [("c", "s", '{"n":1}'), ("c", "s", '{"n":true}')],
            id="one id for two calls whose arguments are only equal in Python",
        ),
        pytest.param(
            [part(A, i=0, id="c", name="s"), part(A, i=1, id="c", name="s")],
            [("c", "s", A), ("c", "s", A)],
            id="one id for two equal calls with numbers of their own",
        ),
        pytest.param(
            [part(A, i=0, id="c", name="s"), part(A, i=0, id="c", name="t")],
            [("c", "s", A), ("c", "t", A)],
            id="one id for two tools with equal arguments",
        ),
        pytest.param(
            [part(A, i=0, name="s"), part(A, i=0, name="s")],
            [("", "s", A), ("", "s", A)],
            id="two equal calls without ids are two",
        ),
        pytest.param(
            [part('{"q":', i=0, id="a", name="s"), part("{}", i=0, id="a"), part("}", i=0, id="a")],
            [("a", "s", '{"q":{}}')],
            id="an object inside of the arguments repeats nothing",
        ),
        *[
            pytest.param(
                [
                    part("", i=zero, id="a", name="s"),
                    part("", i=one, id="b", name="t"),
                    part('{"q"', i=zero),
                    part('{"q"', i=1),
                    part(':"A"}', i=0),
                    part(':"B"}', i=one),
                ],
                [("a", "s", A), ("b", "t", B)],
                id=f"numbers are written as {one!r}",
            )
            for zero, one in [("0", "1"), (0.0, 1.0)]
        ],
        *[
            pytest.param(
                [part('{"q":', i=odd, id="a", name="s"), part('"A"}', i=0)],
                [("a", "s", A)],
                id=f"no number is {odd if isinstance(odd, float) else odd[:3]!r}",
            )
            for odd in ("x", "", "٠", "9" * 5000, 0.5, float("inf"), float("nan"))
        ],
        pytest.param(["x", None], [("", "", "")], id="fragments that are none"),  # the model is told of the empty name
    ],
)
def test_fragments_become_calls(fragments: list[Any], calls: list[tuple[str, str, str]]) -> None:
    """Case 42: a new id, or a new start after a complete object, is a new call; nothing is merged in silence."""
    assert put_together(*fragments) == calls


def test_entries_of_one_chunk_that_have_names_are_calls_of_their_own() -> None:
    """No server cuts a call within a chunk and names both halves."""
    calls = Fragments(OFFERED.__contains__)
    calls.add([part("", name="s"), part("", name="s"), part("", name="t")])
    calls.add([part(A, i=5, name="s"), part(B, i=5, name="s")])
    assert [(call.name, call.arguments) for call in calls.calls] == [
        ("s", ""),
        ("s", ""),
        ("t", ""),
        ("s", A),
        ("s", B),
    ]


def test_a_call_that_comes_again_keeps_what_is_new_in_it() -> None:
    """Such as a signature that the server wants back."""
    calls = Fragments(OFFERED.__contains__, ("extra",))
    calls.add([part(A, i=0, id="a", name="s")])
    calls.add([part(A, i=0, id="a", name="s") | {"extra": 1}])
    assert [(call.arguments, call.extra) for call in calls.calls] == [(A, {"extra": 1})]


def test_a_call_that_comes_again_may_be_nested_deeply() -> None:
    """Up to where it can't be read and is no call, so that the model is told; how deep that is depends on Python."""
    for depth in (*range(900, 1010), 100_000):
        deep = '{"a":' * depth + "1" + "}" * depth
        [(_, _, once)] = put_together(part(deep, i=0, id="a", name="s"), part(deep, i=0, id="a"))
        assert once.startswith(deep)
    assert _value(deep) == deep


def test_whole_calls_are_never_merged() -> None:
    """Whatever their ids and indices say, also those that are no calls."""
    calls = Fragments(OFFERED.__contains__, ("extra",))
    calls.add_whole([part('{"q":"A', i=0, id="a", name="s") | {"extra": 1}, part('"}', i=0, id="a", name="s"), None])
    assert [(call.id, call.arguments) for call in calls.calls] == [("a", '{"q":"A'), ("a", '"}'), ("", "")]
    assert calls.calls[0].extra == {"extra": 1}


@given(
    calls=st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), min_size=1), min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    marks=st.sampled_from(["none", "numbers", "ids", "ids and one number", "numbers and ids"]),
    data=st.data(),
)
def test_any_cut_gives_the_same_calls(calls: list[dict[str, str]], cuts: list[int], marks: str, data: Any) -> None:
    """However the arguments are cut, and interleaved where fragments are marked, the calls are the same."""
    texts = [json.dumps(arguments) for arguments in calls]
    queues: list[list[dict[str, Any]]] = []
    for n, text in enumerate(texts):
        number = {"numbers": n, "numbers and ids": n, "ids and one number": 0}.get(marks)
        own = f"c{n}" if "ids" in marks else None
        pieces, at = [], 0
        for k in range(len(text)):
            pieces.append(text[at : at + cuts[k % len(cuts)]])
            at += cuts[k % len(cuts)]
        queue = [part("", i=number, id=f"c{n}", name="s")]
        queue += [part(piece, i=number, id=own) for piece in pieces if piece]
        queues.append(queue)
    order: list[dict[str, Any]] = []
    if marks == "none":
        order = [fragment for queue in queues for fragment in queue]
    while marks != "none" and any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        order.append(queue.pop(0))
    expected = [(f"c{n}", "s", text) for n, text in enumerate(texts)]
    assert sorted(put_together(*order)) == sorted(expected)
