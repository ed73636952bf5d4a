"""`atlas_core.settings.shapes`: what a model expects, and how a variable's text becomes it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, SecretStr
from typing_extensions import TypeAliasType

from atlas_core.settings.models import AtlasSettings, ExecutorChoice
from atlas_core.settings.shapes import FREE, flatten, key_for, model_keys, parse_text, shape_of, split_merge


class _Colour(StrEnum):
    RED = "red"


class _Inner(BaseModel):
    depth: int = 0


_Alias = TypeAliasType("_Alias", "int | None")


def test_the_path_to_a_profile_is_known() -> None:
    """The shape of the settings leads through tables with free names to the keys of a profile."""
    shape = shape_of(AtlasSettings)
    for key in ("ai", "agents", "profiles", "connections", "anything"):
        assert shape.is_table
        shape = shape.child(key)
    assert "max_iterations" in shape.known_keys()
    assert shape.child("unknown") == FREE
    assert shape.child("options").child("x") == FREE
    assert not shape.child("tools").is_table


def test_an_executor_may_be_a_table() -> None:
    """An executor is a text or a table whose other keys are its own."""
    shape = shape_of(ExecutorChoice)
    assert not shape.is_table
    assert shape.open
    assert list(model_keys(ExecutorChoice)) == ["name"]


@pytest.mark.parametrize(
    ("annotation", "members"),
    [
        (int, [int]),
        (Optional[int], [int]),  # noqa: UP045  # the old spelling is what is tried
        (Annotated[int | None, Field(ge=1)], [int]),
        (Annotated[int, 1] | str, [int, str]),
        (_Alias, []),
    ],
    ids=["plain", "Optional", "annotated", "annotated inside", "alias"],
)
def test_unions_are_flattened(annotation: object, members: list[object]) -> None:
    """None and `Annotated` don't hide what is meant."""
    if annotation is _Alias:
        annotation, members = TypeAliasType("T", int | None), [int]
    assert flatten(annotation) == members


def test_a_lists_items_have_a_shape() -> None:
    """A list of models leads to the model; a mixed tuple tells nothing."""
    assert shape_of(list[_Inner]).child(3).model is _Inner
    assert shape_of(tuple[int, ...] | None).child(0).annotation is int
    assert shape_of(tuple[int, str]).child(0) == FREE
    assert shape_of(int).child(0) == FREE
    assert shape_of(int).child("x") == FREE


def test_a_models_keys_are_spelled_as_in_settings() -> None:
    """Aliases are what settings write; field names only where the model takes them too."""

    class Model(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        plain: int = 0
        aliased: int = Field(0, alias="al-iased")
        chosen: int = Field(0, validation_alias=AliasChoices("one", AliasPath("two", 0)))

    class Strict(BaseModel):
        aliased: int = Field(0, alias="alias")

    assert list(model_keys(Model)) == ["plain", "al-iased", "aliased", "one", "two", "chosen"]
    assert list(model_keys(Strict)) == ["alias"]


def test_a_key_is_found_in_any_spelling() -> None:
    """An exact key counts alone; otherwise all that mean the same are told."""
    assert key_for("API_URL", ["apiUrl", "api-url"]) == ["api-url"]
    assert key_for("APIURL", ["apiUrl", "api-url"]) == ["apiUrl"]
    assert key_for("a", ["a", "A"]) == ["a"]
    assert key_for("a_b", ["A-b", "a-B"]) == ["A-b", "a-B"]
    assert key_for("x", []) == []


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("1e5", str, "1e5"),
        ("true", str | None, "true"),
        ("[1]", str, "[1]"),
        (" x ", str, " x "),
        ("1", str | int, "1"),
        ("1e5", Any, "1e5"),
        ("12", int, 12),
        (" +1_000 ", int, 1000),
        ("1e5", int, "1e5"),
        ("0x10", int, "0x10"),
        ("3", float, 3.0),
        ("1e5", float | None, 1e5),
        ("inf", float, float("inf")),
        ("fast", float, "fast"),
        ("3", int | float, 3),
        ("True", bool, True),
        ("0", bool, False),
        ("on", bool, True),
        ("No", bool, False),
        ("maybe", bool, "maybe"),
        ("1", bool | int, 1),
        ("true", bool | int, True),
        ("a, b,,c ", tuple[str, ...], ["a", "b", "c"]),
        ("", list[str], []),
        ("['a,b', \"c\"]", list[str], ["a,b", "c"]),
        ("@merge a, b", tuple[str, ...] | None, ["@merge", "a", "b"]),
        ("@merge ['a']", frozenset[str], ["@merge", "a"]),
        ("{a = 1, b.c = 'x'}", Mapping[str, Any], {"a": 1, "b": {"c": "x"}}),
        ("{depth = 2}", _Inner | None, {"depth": 2}),
        ("auto", Literal["auto"] | int, "auto"),
        ("3", Literal["auto"] | int, 3),
        ("process", ExecutorChoice, "process"),
        ("{name = 'p'}", ExecutorChoice, {"name": "p"}),
        ("/x", Path, "/x"),
        ("red", _Colour, "red"),
        ("s", SecretStr, "s"),
    ],
    ids=str,
)
def test_text_becomes_what_is_expected(text: str, annotation: object, value: object) -> None:
    """The expected kind decides how a text is read, not what it looks like."""
    parsed = parse_text(text, shape_of(annotation))
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("3", _Inner),
        ("{a = }", Mapping[str, Any]),
        ("{a = 1}\nb = 2", Mapping[str, Any]),
        ("['a'", list[str]),
        ("['a'] x", list[str]),
        ("{x", ExecutorChoice),
    ],
    ids=str,
)
def test_a_broken_table_or_list_is_an_error(text: str, annotation: object) -> None:
    """Where a table or a list must stand, what is no valid TOML is an error that shows nothing of the text."""
    with pytest.raises(ValueError, match="expected a") as caught:
        parse_text(text, shape_of(annotation))
    assert text not in str(caught.value)


def test_merge_is_marked_by_the_first_item() -> None:
    """Only a list whose first item is `@merge` adds to the one below."""
    assert split_merge(["@merge", "a"]) == (["a"], True)
    assert split_merge(["a", "@merge"]) == (["a", "@merge"], False)
    assert split_merge("@merge a") == ("@merge a", False)
    assert split_merge([]) == ([], False)
