from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import hashlib
import json
import math
import pathlib
import time
import types
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.messages import ChatMessage, Data, File, Image, Opaque, Text
from atlas_core.tools.results import Encoded, encode_result

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


class Level(enum.Enum):
    LOW = 1
    NAMED = "high"


class Model(pydantic.BaseModel):
    n: int = 1
    raw: bytes = b"\xff\x00"
    key: pydantic.SecretStr = pydantic.SecretStr("hunter2")
    inner: list[Model] = []


@dataclasses.dataclass
class Point:
    x: float
    parts: tuple[object, ...] = ()


class Pair(NamedTuple):
    left: int
    right: str


class Bare:
    pass


class Told:
    def __repr__(self) -> str:
        return f"<Told by {object.__repr__(self)}>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class BrokenIteration(list[int]):
    def __iter__(self) -> Iterator[int]:
        yield 1
        raise ValueError("no")


class BrokenMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        yield "a"

    def __len__(self) -> int:
        return 1


class BrokenField:
    __attrs_attrs__ = (types.SimpleNamespace(name="a"),)

    @property
    def a(self) -> int:
        raise OSError("no")


class Attributes:
    __attrs_attrs__ = (types.SimpleNamespace(name="a"), types.SimpleNamespace(name="b"))

    def __init__(self) -> None:
        self.a, self.b = 1, [2]


class Bag:
    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))

    def __len__(self) -> int:
        return 2

    def __contains__(self, item: object) -> bool:
        return False


class Text2(str):  # noqa: SLOT000  # as people write it
    def __str__(self) -> str:
        return "other"


class Array:
    """Looks like NumPy's."""

    dtype = "float64"

    def __init__(self, values: list[float]) -> None:
        self.values, self.size = values, len(values)

    def tolist(self) -> list[float]:
        return self.values

    def __repr__(self) -> str:
        return "array([0, 1, ..., 9])"


def text(value: object, **options: Any) -> str:
    """Encode a value that must not be cut."""
    encoded = encode_result(value, **options)
    assert not encoded.truncated
    return encoded.text


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [([], "[]"), ({}, "{}"), ("", "(empty)"), (0, "0"), (False, "false"), (None, "null")],
    ids=["list", "dict", "text", "zero", "false", "none"],
)
def test_an_empty_result_is_a_result(value: object, expected: str) -> None:
    """Nothing found is information; each has a text, and none is empty (case 26)."""
    assert encode_result(value) == Encoded(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain text", "plain text"),
        ("größer 😀", "größer 😀"),
        (Text2("itself"), "itself"),
        (True, "true"),
        (7, "7"),
        (2.5, "2.5"),
        ({"a": [1, None, True, "x"]}, '{"a": [1, null, true, "x"]}'),
        (["ü", '"', "\n", "\\"], '["ü", "\\"", "\\n", "\\\\"]'),
        ((1, 2), "[1, 2]"),
        ({3, 1, 2}, "[1, 2, 3]"),
        (frozenset({"b", "a"}), '["a", "b"]'),
        ({1, "1", (2, 3), 1.5, None}, None),
        (Level.LOW, "1"),
        (Level.NAMED, "high"),
        ([Level.NAMED], '["high"]'),
        (Pair(1, "a"), '{"left": 1, "right": "a"}'),
        (Point(1.5, (Level.LOW, None)), '{"x": 1.5, "parts": [1, null]}'),
        (Attributes(), '{"a": 1, "b": [2]}'),
        (types.SimpleNamespace(a=1), '{"a": 1}'),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T12:00:00+00:00"),
        (dt.time(12, 30), "12:30:00"),
        (dt.timedelta(days=1, hours=2), "1 day, 2:00:00"),
        (decimal.Decimal("1.10"), "1.10"),
        ([decimal.Decimal("1.10")], '["1.10"]'),
        (fractions.Fraction(1, 3), "1/3"),
        (1 + 2j, "(1+2j)"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (range(3), "[0, 1, 2]"),
        (collections.deque([1, 2]), "[1, 2]"),
        (array.array("i", [1, 2]), "[1, 2]"),
        (collections.OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
        (collections.Counter("aab"), '{"a": 2, "b": 1}'),
        (types.MappingProxyType({"a": 1}), '{"a": 1}'),
        ({"b": 1, "a": 2}.keys(), '["b", "a"]'),
        ({"b": 1}.values(), "[1]"),
        ({"b": 1}.items(), '[["b", 1]]'),
        (Bag(), "[1, 2]"),
        (Array([1.0, math.nan]), '[1.0, "NaN"]'),
        (Array([0.0] * 20_000), "array([0, 1, ..., 9])"),
        ({1: "a", None: "b", True and 2.5: "c", Level.NAMED: "d", (1, 2): "e", dt.date(2026, 1, 1): "f"}, None),
        (ValueError("went wrong"), "ValueError: went wrong"),
        (int, "<class int>"),
        (len, "<function len>"),
        (json, "<module json>"),
        (10**4000, "1" + "0" * 3000),
        (10**20_000, "<an integer of about 20,000 digits>"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else type(value).__name__,
)
def test_every_kind_of_value_has_its_text(value: object, expected: str | None) -> None:
    """Texts stay, values with a text form become it, the rest is strict JSON."""
    got = text(value, max_chars=20_000)
    if isinstance(value, int) and expected is not None and len(expected) > 1000:
        assert int(got) == value
    elif expected is not None:
        assert got == expected
    else:
        json.loads(got)


def test_keys_of_any_kind_become_texts() -> None:
    """JSON has text keys only; where two would become one, the pairs are listed instead."""
    keys = {1: "a", None: "b", 2.5: "c", Level.NAMED: "d", (1, 2): "e", dt.date(2026, 1, 1): "f", False: "g"}
    assert json.loads(text(keys)) == {
        "1": "a", "null": "b", "2.5": "c", "high": "d", "[1, 2]": "e", "2026-01-01": "f", "false": "g",
    }  # fmt: skip
    assert text({1: "a", "1": "b"}) == '[[1, "a"], ["1", "b"]]'


def test_sets_have_an_order() -> None:
    """Two equal runs give two equal texts, though texts hash differently in each process."""
    mixed = {"b", "a", 3, 2.5, (1, 2), None, Level.LOW, 10**400, -(10**400), float("inf")}
    assert text(mixed) == text({*sorted(mixed, key=repr)})
    assert text({"b", "a", 10, 9}) == '[9, 10, "a", "b"]'
    big = encode_result(set(range(20_000)), max_chars=300)
    assert "20,000 items" in big.text


def test_nan_and_infinity_are_texts() -> None:
    """The message is strict JSON, and 0 stays 0 (case 30)."""
    got = text({"mean": math.nan, "max": math.inf, "min": -math.inf, "n": 0})
    assert json.loads(got, parse_constant=pytest.fail) == {"mean": "NaN", "max": "Infinity", "min": "-Infinity", "n": 0}
    assert text(math.nan) == "NaN"


def test_a_pydantic_model_is_written_by_its_own_rules() -> None:
    """Nested models, bytes and secrets come out as they should."""
    got = json.loads(text(Model(inner=[Model(n=2)])))
    assert got["n"] == 1
    assert got["inner"][0]["n"] == 2
    assert got["raw"].startswith("<bytes: ")
    assert "hunter2" not in str(got)
    assert text(pydantic.RootModel[list[int]]([1])) == "[1]"


def test_a_generator_that_nobody_collected_is_named_and_not_run() -> None:
    """Encoding looks at values; it does not run code that may never end (case 32)."""

    def count() -> Iterator[int]:
        raise AssertionError("was run")
        yield 1

    async def feed() -> Any:
        yield 1

    assert text({"g": count()}) == '{"g": "<generator, not run>"}'
    assert text(map(str, [1])) == "<map, not run>"
    assert text(feed()) == "<async_generator, not run>"


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_bytes_become_a_marker_with_kind_size_and_digest() -> None:
    """No repr and no base64 reaches the model; what stands beside the bytes is intact (case 28)."""
    got = text({"meta": {"w": 2}, "img": PNG})
    digest = hashlib.sha256(PNG).hexdigest()[:16]
    assert json.loads(got) == {"meta": {"w": 2}, "img": f"<bytes: image/png, 108 bytes, sha256 {digest}>"}
    large = text(bytes(5_000_000))
    assert large.startswith("<bytes: application/octet-stream, 5,000,000 bytes, sha256 ")
    assert len(large) < 100


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"RIFF\0\0\0\0AVI ", "application/octet-stream"),
        (b"%PDF-1.7", "application/pdf"),
        (b"", "application/octet-stream"),
        (b"hello", "application/octet-stream"),
    ],
)
def test_the_kind_of_bytes_is_guessed_from_their_beginning(data: bytes, kind: str) -> None:
    """The marker says what the bytes probably are."""
    for form in (data, bytearray(data), memoryview(data)):
        assert text(form).startswith(f"<bytes: {kind}, {len(data)} bytes, ")


def test_views_of_bytes_are_read_whatever_their_shape() -> None:
    """A view with steps or of numbers is as many bytes as it shows."""
    assert ", 3 bytes, " in text(memoryview(b"abcdef")[::2])
    assert ", 8 bytes, " in text(memoryview(array.array("i", [1, 2])))


def test_endless_bytes_are_not_hashed() -> None:
    """A digest of a gigabyte would cost more than it tells."""
    assert text(bytes(64 * 1024 * 1024 + 1)) == "<bytes: application/octet-stream, 67,108,865 bytes>"


def test_bytes_inside_an_objects_own_text_are_masked() -> None:
    """An object that shows its bytes does not get them past the marker (case 28)."""

    class Shows:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def __repr__(self) -> str:
            return f"Shows({self.data!r}, web='x')"

    assert text(Shows(PNG[:12])) == "Shows(<bytes>, web='x')"
    assert "\\x89" not in text(Shows(PNG * 1000))
    assert text(Shows(b"plain")) == "Shows(b'plain', web='x')"


# --- parts and messages ----------------------------------------------------------------------------------------------


def test_message_parts_are_read_as_what_they_carry() -> None:
    """A tool may return parts, alone or in a list; text stays text, data is JSON, the rest a marker."""
    assert text(Text("hello")) == "hello"
    assert text(Text("")) == "(empty)"
    assert text(Data('{"a": 1}')) == '{"a": 1}'
    assert text([Text("a"), Data("[1]"), Text("b")]) == "a\n[1]\nb"
    assert text(ChatMessage.user("hi")) == "hi"
    assert text(ChatMessage.user([Text("hi"), Data("1")])) == "hi\n1"
    assert text(Image(data=PNG)).startswith("<image: image/png, 108 bytes, sha256 ")
    assert text(Image(url="https://example.com/a.png")) == "<image: image/png, https://example.com/a.png>"
    assert text([File(data=b"x", name="a.bin")]).startswith("<file 'a.bin': application/octet-stream, 1 bytes, sha256 ")
    assert text({"t": Text("a"), "d": Data("[1]")}) == '{"t": "a", "d": [1]}'
    assert text(Opaque("openai", "{}")) == "<content that only openai understands>"
    assert "content can't be read: JSONDecodeError" in text(Data("{bad"))


# --- hostile values --------------------------------------------------------------------------------------------------


def test_what_contains_itself_is_marked() -> None:
    """A cycle ends where it closes; the same value twice is no cycle."""
    loop: list[object] = [1]
    loop.append(loop)
    assert text(loop) == '[1, "<contains itself>"]'
    mapping: dict[str, object] = {"again": loop}
    mapping["me"] = mapping
    assert json.loads(text(mapping)) == {"again": [1, "<contains itself>"], "me": "<contains itself>"}
    point = Point(1.0)
    point.parts = (point,)
    assert text(point) == '{"x": 1.0, "parts": ["<contains itself>"]}'
    twin = [1]
    assert text([twin, twin]) == "[[1], [1]]"
    model = Model()
    model.inner.append(model)
    assert "can't be read: ValueError" in text(model)


def test_deep_nesting_ends() -> None:
    """Depth is bounded, far below Python's own limit."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "<nested too deeply>" in text(deep)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Broken(), "<Broken: its content can't be read: RuntimeError>"),
        ([Broken(), 2], '["<Broken: its content can\'t be read: RuntimeError>", 2]'),
        (BrokenIteration([1, 2]), '[1, "<the rest can\'t be read: ValueError>"]'),
        (BrokenMapping(), '{"<error>": "<the rest can\'t be read: KeyError>"}'),
        (BrokenField(), '{"<error>": "<the rest can\'t be read: OSError>"}'),
        (Bare(), "<Bare>"),
        (Told(), "<Told by <tests.test_tools_results.Told>>"),
        (functools.partial(int, base=2), "functools.partial(<class 'int'>, base=2)"),
        (time.struct_time(range(9)), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_that_resist_are_marked_where_they_stand(value: object, expected: str | None) -> None:
    """What raises when looked at becomes a marker, and no address reaches the model (case 32)."""
    got = text(value)
    assert " at 0x" not in got
    if expected is not None:
        assert (
            got.replace("test_tools_results.Told", "tests.test_tools_results.Told").replace("tests.tests.", "tests.")
            == expected
        )


def test_a_long_text_of_an_object_is_bounded() -> None:
    """An object's own text is a description, not a result."""

    class Long:
        def __str__(self) -> str:
            return "x" * 1_000_000

    assert len(text({"a": Long()})) < 2100
    assert len(text(ValueError("x" * 1_000_000))) < 2100


# --- length ----------------------------------------------------------------------------------------------------------


def test_a_long_text_is_cut_with_a_note() -> None:
    """The beginning stays, and the note says of how much."""
    got = encode_result("x" * 1_000_000, max_chars=1000)
    assert got.truncated
    assert len(got.text) == 1000
    assert got.text.endswith("x\n[cut: this is the beginning of 1,000,000 characters; ask for less to see the rest]")
    assert encode_result("x" * 1000, max_chars=1000) == Encoded("x" * 1000)
    assert encode_result("x" * 20_000).truncated is False
    assert encode_result("x" * 20_001).truncated is True


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (list(range(10**6)), "a list of 1,000,000 items"),
        (dict.fromkeys(map(str, range(10**5)), 1), "an object with 100,000 keys"),
        ({"a": "x" * 10**7}, "an object with 1 keys"),
        ([["y" * 400] * 10**5], "a list of 1 items"),
        ({"k" * 1000: 1}, "an object with 1 keys"),
        (Point(1, ("z" * 1000,)), "an object with 2 keys"),
    ],
    ids=["list", "dict", "long text inside", "nested", "long key", "dataclass"],
)
def test_a_large_value_is_cut_with_a_note(value: object, what: str) -> None:
    """The note says of what the text is the beginning."""
    got = encode_result(value, max_chars=500)
    assert got.truncated
    assert len(got.text) <= 500
    assert got.text.endswith(f"\n[cut: this is the beginning of {what}; ask for less to see the rest]")


def test_a_number_too_long_is_cut_like_text() -> None:
    """Even a single value may be longer than the bound."""
    assert encode_result(10**4000, max_chars=300).text.endswith(
        "[cut: this is the beginning of a long value; ask for less to see the rest]"
    )


def test_a_program_close_to_its_own_limit_gets_a_note() -> None:
    """Where Python's stack is nearly used up, the result is lost and not the run."""
    nested: list[object] = []
    for _ in range(50):
        nested = [nested]

    def dive() -> Encoded:
        try:
            return dive()
        except RecursionError:
            return encode_result(nested)

    assert dive().text


def test_what_lies_behind_the_cut_is_not_visited() -> None:
    """A value without end costs no more than its beginning."""
    seen = []

    class Endless(collections.abc.Sequence[int]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, index: Any) -> Any:
            seen.append(index)
            return index

    got = encode_result(Endless(), max_chars=400)
    assert "a list of 1,000,000,000 items" in got.text
    assert len(seen) < 400


def test_a_bound_too_small_for_the_note_is_raised() -> None:
    """Less than 200 characters would leave no room to say what was cut."""
    assert len(encode_result("x" * 1000, max_chars=1).text) == 200


def test_surrogates_are_made_safe_and_pairs_not_split() -> None:
    """The text can always be sent: pairs are joined, single halves replaced, also at the cut."""
    assert text("\ud83d\ude00 \ud83d") == "😀 \ufffd"
    assert text(["\udc00"]) == '["\ufffd"]'
    assert text({"\ud800": 1}) == '{"\ufffd": 1}'
    for max_chars in (300, 301):
        got = encode_result("\ud83d\ude00" * 1000, max_chars=max_chars)
        assert "\ufffd" not in got.text
        got.text.encode()


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=10)
    | st.binary(max_size=10)
    | st.dates()
    | st.decimals()
    | st.sampled_from([Bare(), BrokenField(), Level.LOW, Text("a"), BrokenIteration([1])]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=4), inner, max_size=4
        ),
        st.tuples(inner, inner),
        inner.map(lambda item: Point(1.0, (item,))),
    ),
    max_leaves=15,
)


@given(ANYTHING, st.integers(200, 400))
def test_the_text_is_never_empty_bounded_and_valid_unicode(value: object, max_chars: int) -> None:
    """Whatever a tool returns, its text can be sent; and unless it is cut or plain text, it is strict JSON."""
    got = encode_result(value, max_chars=max_chars)
    assert got.text
    assert len(got.text) <= max_chars
    got.text.encode("utf-8")
    if got.truncated or isinstance(value, BrokenIteration):
        return
    if isinstance(value, (list, tuple, dict)) and value and Text("a") not in list(value):
        json.loads(got.text, parse_constant=pytest.fail)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner),
    )
)
def test_json_values_survive(value: object) -> None:
    """What is JSON already comes back equal."""
    got = encode_result(value, max_chars=10**6)
    assert json.loads(got.text) == value
