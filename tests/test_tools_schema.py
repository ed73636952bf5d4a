# ruff: noqa: B008, PLR0917  # the functions here are tools, odd ones among them
from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import math
import pathlib
import typing
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypedDict, Union

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import Doc

from atlas_core import interfaces
from atlas_core.errors import ToolArgumentsError, ToolDefinitionError
from atlas_core.interfaces.tools import ToolContext
from atlas_core.tools.arguments import ArgumentChecker
from atlas_core.tools.function import FunctionTool
from atlas_core.tools.schema import read_docstring

if TYPE_CHECKING:
    from atlas_core.interfaces.tools import ToolContext as RunContext  # for case 2: a name that is not there


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Opt:
    level: Level
    tags: list[str]


class Address(TypedDict):
    street: str
    level: typing.NotRequired[Level]


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(description="Full name.")
    level: Level = Level.LOW
    title: str | None = None


class Node(pydantic.BaseModel):
    value: int
    next: Node | None = None


def parameters(function: Any, **options: Any) -> dict[str, Any]:
    """Return the parameters of a function's schema, after the metaschema has accepted them."""
    schema = dict(FunctionTool(function, **options).schema.parameters)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def properties(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = parameters(function)["properties"]
    return found


def call(tool: FunctionTool, arguments_json: str, **context: object) -> object:
    """Run a tool as the loop does: check, build, execute."""
    values = ArgumentChecker(tool.schema).check(arguments_json).values
    return tool.execute(**tool.build_arguments(values), **context)


# --- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(int, {"type": "integer"}, id="an int"),
        pytest.param(float, {"type": "number"}, id="a float"),
        pytest.param(bool, {"type": "boolean"}, id="a bool"),
        pytest.param(str, {"type": "string"}, id="a text"),
        pytest.param(Any, {}, id="anything"),
        pytest.param(object, {}, id="an object is anything"),
        pytest.param(list[int], {"type": "array", "items": {"type": "integer"}}, id="a list"),
        pytest.param(Sequence[str], {"type": "array", "items": {"type": "string"}}, id="a sequence"),
        pytest.param(
            set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, id="a set has no item twice"
        ),
        pytest.param(
            dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}, id="a dict of floats"
        ),
        pytest.param(Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, id="an optional"),  # noqa: UP045
        pytest.param(Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, id="a union"),  # noqa: UP007
        pytest.param(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, id="a literal"),
        pytest.param(Literal["a"], {"type": "string", "const": "a"}, id="a literal of one"),
        pytest.param(Annotated[int, pydantic.Field(ge=1)], {"type": "integer", "minimum": 1}, id="a constraint"),
        pytest.param(dt.date, {"type": "string", "format": "date"}, id="a date"),
        pytest.param(pathlib.Path, {"type": "string", "format": "path"}, id="a path"),
        pytest.param(uuid.UUID, {"type": "string", "format": "uuid"}, id="an id"),
    ],
)
def test_a_type_becomes_its_json_schema(annotation: object, expected: dict[str, object]) -> None:
    """Each annotation is described as JSON Schema describes it, without a title."""

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    assert properties(f) == {"x": expected}


def test_an_enum_is_described_by_its_values() -> None:
    """An enum's values are what a model may send, and a member is what the function gets (case 18)."""

    def run(level: Level, opt: Opt) -> str:
        return f"{level is Level.HIGH} {opt == Opt(Level.LOW, [])} {opt.level is Level.LOW}"

    schema = parameters(run)
    assert schema["$defs"]["Level"] == {"type": "integer", "enum": [1, 2]}
    assert call(FunctionTool(run), '{"level": 2, "opt": {"level": 1, "tags": []}}') == "True True True"


@pytest.mark.parametrize(
    "arguments", ['{"level": 3, "opt": {"level": 1, "tags": []}}', '{"level": 1, "opt": {"level": 3, "tags": []}}']
)
def test_a_value_outside_an_enum_is_refused_with_its_members(arguments: str) -> None:
    """A value that no member has is an argument error listing those that have (case 18)."""

    def run(level: Level, opt: Opt) -> None: ...

    with pytest.raises(ToolArgumentsError, match=r"level: expected one of 1, 2, got 3"):
        call(FunctionTool(run), arguments)


def test_a_typed_dict_stays_a_dict_with_its_members_converted() -> None:
    """A TypedDict of the standard library is described, and its values are built (case 18)."""

    def run(a: Address, b: Optional[list[Address]] = None, c: Annotated[dict[str, Address], "map"] = {}) -> object:  # noqa: B006, UP045
        return a, b, c

    schema = parameters(run)
    assert schema["$defs"]["Address"]["required"] == ["street"]
    a, b, c = typing.cast(
        "Any",
        call(
            FunctionTool(run), '{"a": {"street": "x", "level": 2}, "b": [{"street": "y"}], "c": {"k": {"street": "z"}}}'
        ),
    )
    assert a == {"street": "x", "level": Level.HIGH}
    assert a["level"] is Level.HIGH
    assert (b, c) == ([{"street": "y"}], {"k": {"street": "z"}})


def test_a_pydantic_model_arrives_as_an_instance() -> None:
    """A pydantic model is described with its own texts, and built (case 18)."""

    def run(person: Person) -> object:
        return person

    schema = parameters(run)
    assert schema["$defs"]["Person"]["properties"]["name"] == {"type": "string", "description": "Full name."}
    assert "title" in schema["$defs"]["Person"]["properties"], "a property called title is no noise"
    assert call(FunctionTool(run), '{"person": {"name": "Bo", "level": 2}}') == Person(name="Bo", level=Level.HIGH)


def test_a_recursive_model_is_described_and_built() -> None:
    """A type that contains itself works in schema, check and build."""

    def run(node: Node) -> object:
        return node.next and node.next.value

    assert call(FunctionTool(run), '{"node": {"value": 1, "next": {"value": 2}}}') == 2


def test_local_types_of_postponed_annotations_are_found() -> None:
    """A tool made inside a function may name that function's own classes."""

    class Kind(enum.Enum):
        A = "a"

    @dataclasses.dataclass
    class Box:
        kind: Kind

    class Row(TypedDict):
        kind: Kind

    def run(kind: Kind, box: Box, row: Row) -> object:
        return kind is Kind.A, box == Box(Kind.A), row

    got = call(FunctionTool(run), '{"kind": "a", "box": {"kind": "a"}, "row": {"kind": "a"}}')
    assert got == (True, True, {"kind": Kind.A})


def test_names_that_pydantic_keeps_for_itself_are_free() -> None:
    """A parameter may be called what a pydantic model's attribute is called, or begin with `_`."""

    def run(schema: int, copy: int, model_config: int, _hidden: int, json: int, self_: int) -> object:
        return schema, copy, model_config, _hidden, json, self_

    text = '{"schema": 1, "copy": 2, "model_config": 3, "_hidden": 4, "json": 5, "self_": 6}'
    assert call(FunctionTool(run), text) == (1, 2, 3, 4, 5, 6)


def test_lax_building_does_what_the_schema_allows() -> None:
    """A whole float is an int, an int a float, and texts become dates, paths and decimals, as the annotation says."""

    def run(n: int, x: float, day: dt.date, p: pathlib.Path, d: decimal.Decimal, t: tuple[int, str]) -> object:
        return n, x, day, p, d, t

    got = typing.cast(
        "Any", call(FunctionTool(run), '{"n": 2.0, "x": 3, "day": "2026-01-31", "p": "/a", "d": "1.10", "t": [1, "a"]}')
    )
    assert got == (2, 3.0, dt.date(2026, 1, 31), pathlib.Path("/a"), decimal.Decimal("1.10"), (1, "a"))
    assert [type(value) for value in got[:2]] == [int, float]


def test_what_the_schema_can_not_say_is_refused_when_built() -> None:
    """A date that is none passes the schema, whose formats are not asserted, and fails in words for the model."""

    def run(day: dt.date) -> None: ...

    with pytest.raises(
        ToolArgumentsError, match=r"day: input should be a valid date.*got the string 'x'; call it again"
    ):
        call(FunctionTool(run), '{"day": "x"}')


def test_a_strict_model_takes_what_json_can_say() -> None:
    """Strict types are strict about JSON, not about the Python values that JSON lacks."""

    class Event(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        day: dt.date

    def run(event: Event) -> object:
        return event.day

    assert call(FunctionTool(run), '{"event": {"day": "2026-01-31"}}') == dt.date(2026, 1, 31)


def test_a_validator_that_breaks_is_an_argument_error() -> None:
    """What a type's own validator raises becomes the call's error, not the run's."""

    def explode(value: int) -> int:
        raise KeyError(value)

    def run(n: Annotated[int, pydantic.AfterValidator(explode)]) -> None: ...

    with pytest.raises(ToolArgumentsError, match="can't be used: KeyError: 1"):
        call(FunctionTool(run), '{"n": 1}')


# --- required and defaults -------------------------------------------------------------------------------------------


def test_required_mirrors_the_signature() -> None:
    """A default makes a parameter optional, keyword-only or not, and stands in the schema (cases 4 and 10)."""

    def f(a: int, b: int = 5, *, c: int = 3, d: list[str] | None = None) -> str:
        d = d or []
        d.append("x")
        return f"{a} {b} {c} {d}"

    schema = parameters(f)
    assert schema["required"] == ["a"]
    assert schema["additionalProperties"] is False
    assert {k: v.get("default", "none") for k, v in schema["properties"].items()} == {
        "a": "none",
        "b": 5,
        "c": 3,
        "d": None,
    }
    tool = FunctionTool(f)
    assert [call(tool, '{"a": 1}') for _ in range(2)] == ["1 5 3 ['x']"] * 2


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    """No parameters: no `required`, and any key is one too many."""

    def f() -> str:
        return "ran"

    assert parameters(f) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert call(FunctionTool(f), "null") == "ran"


@pytest.mark.parametrize(
    "default",
    [[], {}, set(), collections.deque(), bytearray(), Opt(Level.LOW, [])],
    ids=lambda value: type(value).__name__,
)
def test_mutable_defaults_are_never_shared_between_calls(default: object) -> None:
    """A call that leaves a parameter out gets a copy of its mutable default (case 4)."""
    seen: list[object] = []

    def f(x: Any = default) -> None:
        seen.append(x)

    tool = FunctionTool(f)
    call(tool, "{}")
    call(tool, "{}")
    assert seen == [default, default]
    assert seen[0] is not seen[1]
    assert seen[0] is not default


def test_a_default_that_can_not_be_copied_is_left_to_the_function() -> None:
    """A default that refuses to be copied is used as it is."""

    class Stubborn(list[int]):
        def __deepcopy__(self, memo: object) -> Stubborn:
            raise TypeError("no")

    stubborn = Stubborn()

    def f(x: Any = stubborn) -> object:
        return x

    assert call(FunctionTool(f), "{}") is stubborn


@pytest.mark.parametrize(
    "default",
    [object(), math.nan, b"\xff", lambda: 1, {"x": object()}],
    ids=["an object", "not a number", "bytes that are no text", "a function", "a dict with an object"],
)
def test_a_default_without_json_form_makes_the_parameter_optional_and_no_more(default: object) -> None:
    """Such a default has no `default` key, and registration works (case 4)."""

    def f(x: Any = default) -> object:
        return x

    assert parameters(f) == {"type": "object", "properties": {"x": {}}, "additionalProperties": False}
    got = call(FunctionTool(f), "{}")
    assert isinstance(default, dict) or got is default


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (Level.HIGH, 2),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (pathlib.Path("/a"), "/a"),
        ((1, 2), [1, 2]),
        (decimal.Decimal("1.5"), "1.5"),
        (Opt(Level.LOW, ["a"]), {"level": 1, "tags": ["a"]}),
    ],
)
def test_a_default_is_shown_as_a_model_would_write_it(default: object, shown: object) -> None:
    """The `default` key holds the JSON form of the value."""

    def f(x: Any = default) -> None: ...

    assert properties(f)["x"]["default"] == shown


def test_a_default_of_none_allows_null() -> None:
    """`limit: int = None` means an optional number, whatever the annotation says."""

    def f(limit: int = None) -> object:  # type: ignore[assignment]  # noqa: RUF013  # people write it
        return limit

    assert properties(f)["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert call(FunctionTool(f), '{"limit": null}') is None


def test_pydantic_fields_in_the_place_of_defaults_are_understood() -> None:
    """`x: int = Field(3, ge=1, description=...)` is described, checked and filled in as it reads."""

    def f(
        a: int = pydantic.Field(description="first", ge=1),
        b: int = pydantic.Field(3),
        c: list[int] = pydantic.Field(default_factory=list),
    ) -> object:
        return a, b, c

    schema = parameters(f)
    assert schema["required"] == ["a"]
    assert schema["properties"]["a"] == {"type": "integer", "minimum": 1, "description": "first"}
    assert schema["properties"]["b"] == {"type": "integer", "default": 3}
    assert call(FunctionTool(f), '{"a": 1}') == (1, 3, [])


# --- the context parameter -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Deps:
    tenant: str


def ctx_plain(ctx: ToolContext, key: str, limit: Optional[int] = None) -> object:  # noqa: UP045  # the case's own
    return ctx, key, limit


def ctx_generic(ctx: ToolContext[Deps], key: str, limit: int | None = None) -> object:
    return ctx, key, limit


def ctx_quoted(ctx: "ToolContext", key: str, limit: int | None = None) -> object:  # noqa: UP037
    return ctx, key, limit


def ctx_optional(ctx: Optional[ToolContext[Deps]], key: str, limit: int | None = None) -> object:  # noqa: UP045
    return ctx, key, limit


def ctx_or_none(ctx: ToolContext[Deps] | None, key: str, limit: int | None = None) -> object:
    return ctx, key, limit


def ctx_annotated(ctx: Annotated[ToolContext[Deps], "the run"], key: str, limit: int | None = None) -> object:
    return ctx, key, limit


def ctx_dotted(ctx: interfaces.tools.ToolContext[Deps], key: str, limit: int | None = None) -> object:
    return ctx, key, limit


def ctx_last(key: str, limit: int | None = None, *, ctx: ToolContext) -> object:
    return ctx, key, limit


def _type_checking_only(annotation: str) -> Any:
    def lookup(ctx: Any, key: str, limit: int | None = None) -> object:
        return ctx, key, limit

    lookup.__annotations__["ctx"] = annotation
    return lookup


CONTEXT_FORMS = [ctx_plain, ctx_generic, ctx_quoted, ctx_optional, ctx_or_none, ctx_annotated, ctx_dotted, ctx_last]
UNRESOLVED = [
    "missing.ToolContext",
    "ToolContext[NotThere]",
    "'missing.ToolContext'",
    "t.Optional[missing.ToolContext[Deps]]",
    "Optional[missing.ToolContext]",
    "missing.ToolContext | None",
    "None | missing.ToolContext[NotThere]",
]


@pytest.mark.parametrize(
    "function",
    [*CONTEXT_FORMS, *map(_type_checking_only, UNRESOLVED)],
    ids=[f.__name__ for f in CONTEXT_FORMS] + UNRESOLVED,
)
def test_the_context_parameter_is_injected_and_never_shown(function: Any) -> None:
    """However the context is annotated, the schema has only what the model may set (case 2)."""
    tool = FunctionTool(function)
    schema = tool.schema.parameters
    assert (list(typing.cast("Any", schema["properties"])), schema["required"]) == (["key", "limit"], ["key"])
    context = ToolContext(context=Deps("t"))
    assert tool.context_parameter == "ctx"
    assert call(tool, '{"key": "k"}', ctx=context) == (context, "k", None)
    with pytest.raises(ToolArgumentsError, match="there is no 'ctx'"):
        call(tool, '{"key": "k", "ctx": {}}')


def test_a_context_under_a_name_for_type_checkers_only_is_a_clear_error() -> None:
    """A renamed import that exists for type checkers only can't be recognised; the error says what to do (case 2)."""

    def lookup(ctx: RunContext, key: str) -> None: ...

    with pytest.raises(
        ToolDefinitionError, match=r"'RunContext' of parameter 'ctx' of tool 'lookup' can't be resolved.*import"
    ):
        FunctionTool(lookup)


def test_two_contexts_are_refused() -> None:
    """A second context parameter is a mistake."""

    def f(a: ToolContext, b: ToolContext) -> None: ...

    with pytest.raises(ToolDefinitionError, match="'a' and 'b' of tool 'f' both take the ToolContext"):
        FunctionTool(f)


def test_a_mixed_or_derived_context_is_refused() -> None:
    """A parameter is either the context or the model's, never both."""

    class Mine(ToolContext[int]):
        pass

    def mixed(a: ToolContext | int) -> None: ...
    def derived(a: Mine) -> None: ...

    for function in (mixed, derived):
        with pytest.raises(ToolDefinitionError, match="mixes the ToolContext with something else"):
            FunctionTool(function)


# --- partials --------------------------------------------------------------------------------------------------------


def greet(ctx: ToolContext, greeting: str, name: str = "you") -> str:
    """Greet."""
    return f"{greeting} {name} {ctx.run_id}"


@pytest.mark.parametrize(
    "bound",
    [
        functools.partial(greet, greeting="Hello"),
        functools.partial(functools.partial(greet), greeting="Hello"),
        functools.partial(functools.partial(greet, greeting="Bye"), greeting="Hello"),
    ],
    ids=["bound", "nested", "bound twice"],
)
def test_what_a_partial_binds_is_out_of_the_models_reach(bound: Any) -> None:
    """The bound keyword is no part of the schema, and no call replaces it (case 6)."""
    tool = FunctionTool(bound)
    assert list(typing.cast("Any", tool.schema.parameters["properties"])) == ["name"]
    assert tool.description == "Greet."
    context = ToolContext(context=None, run_id="r1")
    assert call(tool, '{"name": "Bo"}', ctx=context) == "Hello Bo r1"
    with pytest.raises(ToolArgumentsError, match="there is no 'greeting'"):
        call(tool, '{"greeting": "Bye"}', ctx=context)
    with pytest.raises(ToolArgumentsError, match="'greeting' of tool 'greet' is fixed"):
        tool.execute(greeting="Bye", ctx=context)


def test_a_partial_of_a_method_and_of_positions_works() -> None:
    """Positions that a partial fills vanish as well, the context's included."""

    class Shop:
        def price(self, item: str, count: int = 1) -> str:
            return f"{item} {count}"

    assert call(FunctionTool(functools.partial(Shop().price, "tea")), '{"count": 2}') == "tea 2"
    context = ToolContext(context=None)
    tool = FunctionTool(functools.partial(greet, context))
    assert tool.context_parameter is None
    assert call(tool, '{"greeting": "Hi"}') == "Hi you "


# --- refusals --------------------------------------------------------------------------------------------------------


def positional_only(a: int, /, b: int) -> None: ...
def var_positional(*values: int) -> None: ...
def var_keyword(**values: int) -> None: ...
def untyped(a, b: int = 1) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def unresolved(a: int, b: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def no_expression(a: int) -> None: ...
def forward(a: int) -> None: ...
def a_lock(lock: typing.IO[str]) -> None: ...
def a_function(callback: typing.Callable[[int], int]) -> None: ...


class Plain:
    pass


def a_class(plain: Plain) -> None: ...


class Method:
    def call(this, a: int) -> None: ...  # noqa: N805


forward.__annotations__["a"] = typing.ForwardRef("NotThere")
no_expression.__annotations__["a"] = "not an expression"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (positional_only, r"parameter 'a' of tool 'positional_only' is positional-only"),
        (var_positional, r"parameter '\*values' of tool 'var_positional' takes any number"),
        (var_keyword, r"parameter '\*\*values' of tool 'var_keyword' takes any keyword"),
        (untyped, r"parameter 'a' of tool 'untyped' has no type"),
        (unresolved, r"annotation 'NotThere' of parameter 'b' of tool 'unresolved' can't be resolved: NameError"),
        (no_expression, r"annotation 'not an expression' of parameter 'a'.*SyntaxError"),
        (forward, r"annotation 'NotThere' of parameter 'a' of tool 'forward' can't be resolved: NameError"),
        (Method.call, r"parameter 'this' of tool 'call' has no type"),
        (a_lock, r"parameter 'lock' of tool 'a_lock' has the type typing.IO\[str\], which no JSON value describes"),
        (a_function, r"parameter 'callback' of tool 'a_function' has the type .*which no JSON value describes"),
        (a_class, r"parameter 'plain' of tool 'a_class' has the type Plain, which no JSON value describes"),
        (max, r"tool 'max' has no signature"),
        (math.sqrt, r"'sqrt' is positional-only"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_can_not_be_a_tool_is_refused_with_function_and_parameter(function: Any, text: str) -> None:
    """The error names tool, parameter and place, and says what to do."""
    with pytest.raises(ToolDefinitionError, match=text) as caught:
        FunctionTool(function)
    assert caught.value.tool == function.__name__
    assert caught.value.remedy
    if hasattr(function, "__code__"):
        assert f"test_tools_schema.py:{function.__code__.co_firstlineno}" in str(caught.value)


# --- docstrings ------------------------------------------------------------------------------------------------------

GOOGLE = """Find pages.

    Looks at titles
    and bodies.

    Args:
        q: What to look for: words.
        lang (str): Language
            of the pages.

    Returns:
        Pages.

    Raises:
        ValueError: Never.

    Examples:
        >>> find("x")
        []
    """
NUMPY = """Find pages.

    Looks at titles
    and bodies.

    Parameters
    ----------
    q : str
        What to look for: words.
    lang : str, optional
        Language
        of the pages.

    Returns
    -------
    list
        Pages.

    Examples
    --------
    >>> find("x")
    """
REST = """Find pages.

    Looks at titles
    and bodies.

    :param q: What to look for: words.
    :param lang: Language
        of the pages.
    :returns: Pages.
    :raises ValueError: Never.
    """


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_only_summary_and_paragraph_describe_a_tool(doc: str) -> None:
    """Sections stay out of the description; parameter texts stand at the parameters, once (case 8)."""

    def find(q: str, lang: str = "en") -> list[str]:
        return []

    find.__doc__ = doc
    tool = FunctionTool(find)
    assert tool.description == "Find pages.\n\nLooks at titles\nand bodies."
    assert tool.schema.parameters["properties"] == {
        "q": {"type": "string", "description": "What to look for: words."},
        "lang": {"type": "string", "description": "Language of the pages.", "default": "en"},
    }
    assert repr(tool.schema).count("What to look for") == 1
    explicit = FunctionTool(find, description="Other.")
    assert explicit.description == "Other."
    assert explicit.schema.parameters == tool.schema.parameters
    assert FunctionTool(find, description="").description == ""


@pytest.mark.parametrize("doc", [None, "", "  \n "], ids=["none", "empty", "blank"])
def test_a_tool_without_docstring_has_an_empty_description(doc: str | None) -> None:
    """The description is then "", never None or 'None' (case 8)."""

    def f() -> None: ...

    f.__doc__ = doc
    assert FunctionTool(f).description == ""


def test_a_text_in_the_annotation_wins_over_the_docstring() -> None:
    """`Field(description=...)`, a plain text, and `Doc` in `Annotated` describe a parameter."""

    def f(
        a: Annotated[int, pydantic.Field(description="field")],
        b: Annotated[int, "text"],
        c: Annotated[int, Doc("doc")],
        d: Annotated[int, pydantic.Field(ge=1)],
        e: Level,
    ) -> None:
        """F.

        Args:
            a: no
            b: no
            c: no
            d: yes
            e: which level
        """

    found = properties(f)
    assert [found[name]["description"] for name in "abcde"] == ["field", "text", "doc", "yes", "which level"]


def test_a_docstring_that_no_parser_reads_is_the_description() -> None:
    """Odd text is a description like any other."""
    assert read_docstring(": :\n    Args:\n    Attributes:").description == ": :\nArgs:\nAttributes:"


@given(st.text(max_size=300))
def test_no_docstring_breaks_a_tool(doc: str) -> None:
    """Whatever a docstring holds, the description is a text."""
    assert isinstance(read_docstring(doc).description, str)


# --- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(int, {"type": "integer"}, id="an int"),
        pytest.param(
            list[Level],
            {
                "$defs": {"Level": {"enum": [1, 2], "type": "integer"}},
                "items": {"$ref": "#/$defs/Level"},
                "type": "array",
            },
            id="members",
        ),
        pytest.param(None, {"type": "null"}, id="nothing"),
        pytest.param(Any, None, id="anything"),
        pytest.param("NotThere", None, id="a name that is not there"),
        pytest.param(Plain, None, id="a class without schema"),
        pytest.param(Iterator[int], {"type": "array", "items": {"type": "integer"}}, id="a generator"),
        pytest.param(AsyncIterator[int], {"type": "array", "items": {"type": "integer"}}, id="an async generator"),
    ],
)
def test_the_schema_of_the_result_is_a_courtesy(annotation: object, expected: object) -> None:
    """`returns` describes the result where the annotation can be described, else it is None."""

    def f() -> Any: ...

    f.__annotations__["return"] = annotation
    assert FunctionTool(f).schema.returns == expected
