from __future__ import annotations

import functools
import types
from typing import Any

import pytest

from atlas_core.errors import ToolDefinitionError
from atlas_core.interfaces.tools import ToolSchema
from atlas_core.tools.foreign import ObjectTool, RenamedTool
from atlas_core.tools.function import as_tool

PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


class Search:
    name = "search"
    description = "Search."
    schema: Any = PARAMETERS

    def execute(self, **kwargs: Any) -> object:
        return kwargs


class Full(Search):
    effects = "read"
    timeout_s = 3
    requires_approval = True
    context_parameter = "ctx"
    strict_arguments = True
    schema = ToolSchema(name="other", description="From the schema.", parameters=PARAMETERS, returns={"type": "object"})

    def __init__(self) -> None:
        self.log: list[str] = []

    async def execute(self, **kwargs: Any) -> object:
        return kwargs

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"built": arguments}

    def start(self) -> None:
        self.log.append("start")

    async def stop(self) -> None:
        self.log.append("stop")


def variant(**parts: Any) -> object:
    """Make a tool object with other parts."""
    return type("Variant", (Search,), parts)()


async def test_an_object_with_the_four_parts_is_a_tool() -> None:
    """No base class is needed, and a mapping will do as the schema."""
    made = as_tool(Search())
    assert isinstance(made, ObjectTool)
    assert (made.name, made.description) == ("search", "Search.")
    assert made.schema == ToolSchema(name="search", description="Search.", parameters=PARAMETERS)
    assert (made.effects, made.timeout_s, made.requires_approval, made.is_async) == ("write", None, False, False)
    assert made.execute(q="x") == {"q": "x"}
    assert made.build_arguments({"q": "x"}) == {"q": "x"}
    await made.start()
    await made.stop()
    assert "search" in repr(made)


async def test_what_else_the_object_states_is_taken() -> None:
    """Effects, limits, approval, context, `start` and `stop` of either kind, and a schema object with results."""
    inner = Full()
    made = as_tool(inner)
    assert isinstance(made, ObjectTool)
    assert (made.effects, made.timeout_s, made.requires_approval, made.context_parameter) == ("read", 3, True, "ctx")
    assert (made.is_async, made.strict_arguments) == (True, True)
    assert (made.schema.name, made.schema.description, made.schema.returns) == ("search", "Search.", {"type": "object"})
    assert await made.execute(q="x") == {"q": "x"}
    assert made.build_arguments({"q": 1}) == {"built": {"q": 1}}
    await made.start()
    await made.stop()
    assert inner.log == ["start", "stop"]


def test_no_description_is_an_empty_one() -> None:
    """None is never sent; the schema's own text stands in where there is one."""
    assert as_tool(variant(description=None)).description == ""
    assert as_tool(variant(description="", schema=Full.schema)).description == "From the schema."


def test_a_schema_of_true_takes_anything() -> None:
    """JSON Schema's `true` is a schema."""
    assert as_tool(variant(schema=True)).schema.parameters == {}


@pytest.mark.parametrize("execute", [functools.partial(Full().execute), Full().execute], ids=["partial", "method"])
def test_an_async_execute_is_seen_through_a_partial(execute: Any) -> None:
    """`is_async` does not depend on how `execute` came about."""
    assert as_tool(types.SimpleNamespace(name="t", description="", schema={}, execute=execute)).is_async


def test_a_doubtful_approval_flag_asks() -> None:
    """Only a plain False does without a person."""
    assert as_tool(variant(requires_approval=None)).requires_approval is True


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (types.SimpleNamespace(execute=print), "has no name, description, schema .*; give it name, description"),
        (types.SimpleNamespace(name="a", schema={}), "has no description, execute"),
        (variant(name="a b  c"), "tool name 'a b  c' is not usable"),
        (variant(name=3), "has an object of type int as its name"),
        (variant(name=lambda _: "x"), "has a method as its name .*; make name a text"),
        (variant(description=3), "has an object of type int as its description"),
        (variant(schema=lambda _: {}), "has a method as its schema"),
        (variant(schema=[1]), "has an object of type list as its schema"),
        (variant(schema=False), "has an object of type bool as its schema"),
        (variant(schema={"name": "x", "parameters": {}}), "describes a whole function"),
        (variant(schema={"type": "function", "function": {}}), "describes a whole function"),
        (variant(execute=3), "has an execute that can't be called: 3"),
        (variant(effects="none"), "has effects 'none' .*; use 'read'"),
        (variant(timeout_s=0), "has timeout_s 0"),
        (variant(timeout_s="1"), "has timeout_s '1'"),
        (variant(context_parameter=1), "has context_parameter 1"),
    ],
)
def test_a_part_that_is_missing_or_wrong_is_named(candidate: object, text: str) -> None:
    """The error names the object's class, the part, and what to do."""
    with pytest.raises(ToolDefinitionError, match=text) as caught:
        as_tool(candidate)
    assert caught.value.owner


async def test_a_renamed_tool_differs_in_name_only() -> None:
    """Name and schema say the new name; all else is the inner tool's."""
    inner = Full()
    made = RenamedTool(as_tool(inner), "web_search")
    assert (made.name, made.schema.name, made.description) == ("web_search", "web_search", "Search.")
    assert (made.effects, made.timeout_s, made.requires_approval, made.context_parameter) == ("read", 3, True, "ctx")
    assert (made.is_async, made.strict_arguments) == (True, True)
    assert made.schema.parameters == PARAMETERS
    assert await made.execute(q="x") == {"q": "x"}
    assert made.build_arguments({"q": 1}) == {"built": {"q": 1}}
    await made.start()
    await made.stop()
    assert inner.log == ["start", "stop"]
    assert repr(made).startswith("RenamedTool('web_search', ObjectTool('search'")
