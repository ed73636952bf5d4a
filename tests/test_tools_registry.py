from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.errors import PluginConflictError, ToolDefinitionError, UnknownToolError
from atlas_core.interfaces.tools import Tool, ToolSchema
from atlas_core.owner import Owner
from atlas_core.permissions import is_pattern
from atlas_core.tools.foreign import RenamedTool
from atlas_core.tools.function import FunctionTool
from atlas_core.tools.registry import ToolRegistry

KNOWLEDGE = Owner("knowledge-tools", "atlas-knowledge-tools", "1.0")
WEB = Owner("web", "atlas-web", "2.0")


def search(q: str) -> str:
    """Search."""
    return q


def named(name: str) -> FunctionTool:
    """Make a tool of that name."""
    return FunctionTool(search, name=name)


def registry(*names: str) -> ToolRegistry:
    """Make a registry of tools of these names."""
    made = ToolRegistry()
    for name in names:
        made.register(named(name))
    return made


class Odd(Tool):
    def __init__(self, name: Any = "odd", schema: Any = None) -> None:
        self._name, self._schema = name, schema if schema is not None else ToolSchema(name=name)

    @property
    def name(self) -> str:
        return self._name  # type: ignore[no-any-return]  # as a stranger would

    @property
    def description(self) -> str:
        return ""

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    def execute(self, **kwargs: Any) -> object:
        return kwargs


def test_whatever_can_be_a_tool_is_registered_with_its_owner() -> None:
    """A function, a tool or an object; the name it has here is returned."""
    tools = ToolRegistry()
    odd = Odd()
    assert tools.register(search, owner=WEB) == "search"
    assert tools.register(odd) == "odd"
    assert tools.get("odd") is odd
    assert isinstance(tools.get("search"), FunctionTool)
    assert (tools.owner("search"), tools.owner("odd")) == (WEB, Owner())
    assert tools.checker("search").check('{"q": "x"}').values == {"q": "x"}
    assert tools.checker("search") is tools.checker("search")


def test_iteration_is_in_name_order() -> None:
    """Whatever order they came in, tools are listed alike, so that requests and caches are stable."""
    tools = registry("c", "a", "B")
    assert tools.names == ["B", "a", "c"]
    assert [tool.name for tool in tools] == tools.names
    assert (len(tools), "a" in tools, "x" in tools, 3 in tools) == (3, True, False, False)
    assert repr(tools) == "ToolRegistry(['B', 'a', 'c'])"


@given(st.permutations(["a", "b-c", "d.e", "f/g", "h"]))
def test_the_contents_do_not_depend_on_the_order(names: list[str]) -> None:
    """A registry is a set of tools."""
    assert registry(*names).names == registry(*sorted(names)).names


def test_a_name_offered_twice_names_both_owners() -> None:
    """The remedy is a prefix."""
    tools = ToolRegistry()
    tools.register(search, owner=KNOWLEDGE)
    with pytest.raises(PluginConflictError) as caught:
        tools.register(search, owner=WEB)
    said = str(caught.value)
    assert said.startswith(
        "tool 'search' is offered by both plugin 'knowledge-tools' of atlas-knowledge-tools 1.0 and "
    )
    assert "plugin 'web' of atlas-web 2.0" in said
    assert "prefix" in said
    assert (caught.value.name, caught.value.owners) == ("search", (str(KNOWLEDGE), str(WEB)))
    assert tools.owner("search") == KNOWLEDGE
    with pytest.raises(PluginConflictError, match="offered twice by plugin 'knowledge-tools'"):
        tools.register(search, owner=KNOWLEDGE)


@pytest.mark.parametrize("other", ["READ-file", "read_file", "Read_File"])
def test_names_that_settings_can_not_tell_apart_conflict(other: str) -> None:
    """Case and `-` for `_` make no second tool."""
    with pytest.raises(PluginConflictError, match=rf"as 'read-file' and '{other}'"):
        registry("read-file", other)


def test_a_dot_makes_a_second_tool() -> None:
    """'calendar.add' and 'calendar_add' are two tools (case 14)."""
    assert registry("calendar.add", "calendar_add").names == ["calendar.add", "calendar_add"]


@pytest.mark.parametrize(
    ("prefix", "name"),
    [("web", "web_search"), ("web.", "web.search"), ("web/", "web/search"), ("a-", "a-search"), ("", "search")],
)
def test_a_prefix_renames_the_tool_for_everyone(prefix: str, name: str) -> None:
    """Tool and schema report the prefixed name, and so do errors about arguments."""
    tools = ToolRegistry()
    tools.register(Odd("other"))
    assert tools.register(search, prefix=prefix, owner=WEB) == name
    tool = tools.get(name)
    assert (tool.name, tool.schema.name) == (name, name)
    assert isinstance(tool, RenamedTool) == bool(prefix)
    with pytest.raises(ValueError, match=f"tool '{name}'"):
        tools.checker(name).check("{}")


def test_a_prefix_that_makes_no_name_is_refused() -> None:
    """The made-up name follows the rules of names."""
    with pytest.raises(ToolDefinitionError, match=r"'\*_search' is not usable"):
        ToolRegistry().register(search, prefix="*")


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (Odd("a*"), r"tool name 'a\*' is not usable \(.*Odd"),
        (Odd(schema={"type": "object"}), "tool 'odd' has an object of type dict as its schema"),
        (Odd(schema=ToolSchema(name="even")), "tool 'odd' calls itself 'even' in its schema"),
        (
            Odd(schema=ToolSchema(name="odd", parameters={"type": "array"})),
            "the schema of tool 'odd' has the type 'array'",
        ),
        (3, "an object of type int is no tool"),
    ],
    ids=["name", "schema of another kind", "two names", "schema of a list", "no tool"],
)
def test_a_tool_that_breaks_its_interface_is_refused(tool: Any, text: str) -> None:
    """A stranger's `Tool` is looked at before it is taken; a refused one leaves nothing behind."""
    tools = ToolRegistry()
    with pytest.raises(ToolDefinitionError, match=text):
        tools.register(tool)
    assert len(tools) == 0


def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    """`get` is exact, as a model's call is; the suggestions help it."""
    tools = registry("calculator_tool", "unit_converter")
    for use in (tools.get, tools.owner, tools.checker, tools.unregister):
        with pytest.raises(
            UnknownToolError, match=r"there is no tool 'calculater'; did you mean 'calculator_tool'\?"
        ) as caught:
            use("calculater")
    assert caught.value.suggestions == ("calculator_tool",)
    assert caught.value.tool == "calculater"
    with pytest.raises(UnknownToolError, match="did you mean 'calculator_tool'"):
        tools.get("Calculator-Tool")
    with pytest.raises(UnknownToolError) as caught:
        tools.get("x" * 10_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (["*"], ["a.one", "a.two", "b-one", "c_one"]),
        (["a.*", "c_one"], ["a.one", "a.two", "c_one"]),
        (["*one"], ["a.one", "b-one", "c_one"]),
        (["B_ONE"], ["b-one"]),
        (["b_*", "C-*"], ["b-one", "c_one"]),
        (["[ab].one", "[a-b]-one"], ["a.one", "b-one"]),
        (["?.TWO"], ["a.two"]),
        (["nothing*"], []),
        (["c_one", "c_one", "c*"], ["c_one"]),
        ([], []),
    ],
    ids=str,
)
def test_names_and_patterns_choose_in_name_order(wanted: list[str], chosen: list[str]) -> None:
    """Names compare as settings write them; each tool comes once; a pattern may match nothing."""
    assert [tool.name for tool in registry("c_one", "b-one", "a.two", "a.one").select(wanted)] == chosen


def test_a_name_in_a_list_must_exist() -> None:
    """A misspelt name in settings is an error, not an absent tool."""
    with pytest.raises(UnknownToolError, match=r"there is no tool 'serch'; did you mean 'search'\?"):
        registry("search").select(["*", "serch"])
    with pytest.raises(UnknownToolError, match="none is registered"):
        ToolRegistry().select(["search"])


def test_an_exact_name_wins_over_an_equal_one() -> None:
    """Where a name is there as written, it is meant."""
    assert [tool.name for tool in registry("read-file").select(["read-file"])] == ["read-file"]


def test_a_tool_can_be_removed_and_its_name_used_again() -> None:
    """A provider whose tools change takes back what it gave."""
    tools = registry("read-file")
    tool = tools.get("read-file")
    assert tools.unregister("read-file") is tool
    assert tools.names == []
    assert tools.register(named("read_file")) == "read_file"


def test_a_name_is_found_in_any_spelling_that_means_it() -> None:
    """Case, and `-` or `_`, make no difference; a dot and a wildcard do."""
    tools = registry("read-file", "Net.get")
    assert [tools.find(name) for name in ("READ_FILE", "read-file", "net.GET")] == ["read-file", "read-file", "Net.get"]
    assert [tools.find(name) for name in ("net_get", "read*", "read", "")] == [None] * 4


def test_a_subset_is_a_registry_of_its_own() -> None:
    """It keeps owners and checkers, may grow without the whole, and neither follows the other."""
    tools = registry("a-b", "c")
    part = tools.subset(["a-b"])
    assert part.names == ["a-b"]
    assert part.get("a-b") is tools.get("a-b")
    assert part.checker("a-b") is tools.checker("a-b")
    assert part.owner("a-b") == tools.owner("a-b")
    with pytest.raises(PluginConflictError):
        part.register(named("A_B"))
    part.register(named("c"))
    tools.unregister("a-b")
    assert (part.names, tools.names) == (["a-b", "c"], ["c"])
    with pytest.raises(UnknownToolError, match="there is no tool 'a-b'"):
        tools.subset(["a-b"])


@pytest.mark.parametrize(
    ("name", "expected"), [("a", False), ("a*", True), ("a?", True), ("[a]", True), ("a.b", False)]
)
def test_a_wildcard_makes_a_pattern(name: str, expected: bool) -> None:
    """No tool's own name can look like one."""
    assert is_pattern(name) is expected
