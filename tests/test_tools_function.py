from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from atlas_core.errors import ToolDefinitionError
from atlas_core.interfaces.tools import Example, Tool, ToolContext, ToolHints, ToolSchema
from atlas_core.tools.function import FunctionTool, as_tool, tool

HINTS = ToolHints(examples=(Example("what is 1 and 1", {"a": 1, "b": 1}),))


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def aadd(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def count(n: int) -> Iterator[int]:
    """Count."""
    yield from range(n)


async def feed(n: int) -> AsyncIterator[int]:
    """Feed."""
    for i in range(n):
        yield i


# --- @tool -----------------------------------------------------------------------------------------------------------


def test_the_marker_leaves_the_function_as_it_is() -> None:
    """A marked function is the function, with and without parentheses."""

    def f(a: int) -> int:
        return a

    assert tool(f) is f
    assert tool()(f) is f
    assert tool(name="g")(f) is f
    assert f(3) == 3


def test_what_is_marked_stands_on_the_tool() -> None:
    """Each of the marker's values arrives."""

    @tool(
        name="plus",
        description="Adds.",
        timeout_s=2.5,
        effects="read",
        requires_approval=True,
        hints=HINTS,
        strict_arguments=True,
    )
    def f(a: int) -> int:
        """Not this."""
        return a

    made = as_tool(f)
    assert isinstance(made, FunctionTool)
    assert (made.name, made.description, made.timeout_s, made.effects) == ("plus", "Adds.", 2.5, "read")
    assert (made.requires_approval, made.schema.hints, made.strict_arguments) == (True, HINTS, True)
    assert made.schema.name == "plus"
    assert made.function is f


def test_an_unmarked_function_is_taken_to_write() -> None:
    """The cautious values hold where nothing is stated."""
    made = as_tool(add)
    assert (made.effects, made.timeout_s, made.requires_approval, made.schema.hints) == ("write", None, False, None)


def test_arguments_of_the_wrapper_win_over_the_marks() -> None:
    """A program may use a function under other terms than its author stated."""

    @tool(name="a", timeout_s=1, effects="read", requires_approval=True, hints=HINTS)
    def f() -> None: ...

    other = ToolHints(fallback=True)
    made = FunctionTool(f, name="b", timeout_s=2, effects="idempotent", requires_approval=False, hints=other)
    assert (made.name, made.timeout_s, made.effects, made.requires_approval) == ("b", 2, "idempotent", False)
    assert made.schema.hints is other


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"timeout_s": 0}, "timeout_s is 0, expected a positive number of seconds"),
        ({"timeout_s": -1}, "timeout_s is -1"),
        ({"timeout_s": float("inf")}, "timeout_s is inf"),
        ({"timeout_s": "3"}, "timeout_s is '3'"),
        ({"effects": "none"}, "effects is 'none', expected one of 'read', 'idempotent', 'write'"),
        ({"name": "a*"}, r"tool name 'a\*' is not usable"),
        ({"name": ""}, "tool name '' is not usable"),
    ],
)
def test_a_mark_that_makes_no_sense_is_refused_where_it_stands(options: dict[str, Any], text: str) -> None:
    """The author's line is in the traceback."""
    with pytest.raises(ValueError, match=text):
        tool(**options)


@pytest.mark.parametrize("target", [object(), 3, functools.partial(add)], ids=["object", "number", "partial"])
def test_the_marker_is_for_functions(target: Any) -> None:
    """Anything else is refused with what to do."""
    with pytest.raises(TypeError, match=r"@tool marks a function.*FunctionTool"):
        tool(target)


def test_a_wrapped_function_keeps_its_marks_and_signature() -> None:
    """`functools.wraps` carries marks, name and parameters along."""

    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    @tool(effects="read")
    def f(a: int) -> int:
        return a

    made = as_tool(f)
    assert made.effects == "read"
    assert made.execute(a=2) == 4


# --- methods ---------------------------------------------------------------------------------------------------------


class Box:
    def __init__(self, n: int) -> None:
        self.n = n

    @tool(effects="read")
    def get(self, k: int) -> int:
        """Add what is in the box."""
        return self.n + k

    @tool
    @staticmethod
    def twice(k: int) -> int:
        return 2 * k

    @staticmethod
    @tool
    def thrice(k: int) -> int:
        return 3 * k

    @tool(name="make")
    @classmethod
    def of(cls, k: int) -> int:
        return cls(k).n

    @functools.partialmethod
    def fixed(self, k: int) -> int:
        return self.n * k


def test_methods_are_bound_to_their_instance() -> None:
    """State is per instance, and no schema has self or cls (case 12)."""
    small, large = FunctionTool(Box(1).get, name="small"), FunctionTool(Box(100).get, name="large")
    assert (small.execute(k=1), large.execute(k=1)) == (2, 101)
    assert (small.effects, small.description) == ("read", "Add what is in the box.")
    statics = [as_tool(f) for f in (Box.twice, Box(1).twice, Box.thrice, Box(1).thrice, Box.of, Box(1).of)]
    assert [made.execute(k=5) for made in statics] == [10, 10, 15, 15, 5, 5]
    assert [made.name for made in statics] == ["twice", "twice", "thrice", "thrice", "make", "make"]
    for made in (small, large, *statics):
        assert made.schema.parameters["properties"] == {"k": {"type": "integer"}}
    assert as_tool(functools.partial(Box(3).get)).execute(k=1) == 4


def test_a_method_without_its_instance_is_refused() -> None:
    """Access through the class gives a clear error at registration (case 12)."""

    class Local:
        def get(self, k: int) -> int:
            return k

    for function in (Box.get, Local.get):
        with pytest.raises(
            ToolDefinitionError, match=r"tool 'get' is a method without its instance: 'self'.*\(\.\.\.\)\.get"
        ):
            as_tool(function)
    with pytest.raises(ToolDefinitionError, match="not bound to its class"):
        as_tool(Box.__dict__["of"])


def test_a_function_whose_first_parameter_is_called_self_is_a_function() -> None:
    """Only what was defined in a class can lack its instance."""

    def f(self: int) -> int:
        return self

    assert as_tool(f).execute(self=1) == 1


# --- kinds of callables ----------------------------------------------------------------------------------------------


class Caller:
    """The class."""

    def __call__(self, a: int) -> int:
        return a


class AsyncCaller:
    async def __call__(self, a: int) -> int:
        """Call it."""
        return a


class Asker:
    async def ask(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (add, False),
        (aadd, True),
        (count, False),
        (feed, True),
        (functools.partial(add, b=1), False),
        (functools.partial(aadd, b=1), True),
        (functools.partial(functools.partial(feed)), True),
        (Asker().ask, True),
        (functools.partial(Asker().ask), True),
        (Caller(), False),
        (AsyncCaller(), True),
        (functools.partial(AsyncCaller()), True),
    ],
)
def test_whether_it_belongs_on_the_event_loop_is_known(function: Any, expected: bool) -> None:
    """`is_async` sees through partials, methods and callable objects, generators included (case 32)."""
    assert FunctionTool(function, name="t").is_async is expected


async def test_each_kind_is_executed_as_it_is() -> None:
    """`execute` returns what the function returns: a value, a coroutine, or a generator of either kind (case 32)."""
    assert as_tool(add).execute(a=1) == 2
    made: list[Any] = [as_tool(function) for function in (aadd, count, feed)]
    assert await made[0].execute(a=1) == 2
    assert list(made[1].execute(n=2)) == [0, 1]
    got = made[2].execute(n=2)
    assert inspect.isasyncgen(got)
    assert [item async for item in got] == [0, 1]


def test_a_callable_object_is_described_by_its_call_or_its_class() -> None:
    """The docstring of `__call__` says what the tool does, else that of the class."""
    assert FunctionTool(Caller(), name="c").description == "The class."
    assert FunctionTool(AsyncCaller(), name="c").description == "Call it."


@pytest.mark.parametrize(
    "function", [lambda: 1, Caller(), functools.partial(Caller())], ids=["lambda", "object", "partial"]
)
def test_what_has_no_name_needs_one(function: Any) -> None:
    """A model can't call a lambda; the error says how to name it."""
    with pytest.raises(ToolDefinitionError, match=r"has no name that a model could call.*name='\.\.\.'"):
        FunctionTool(function)


def test_a_function_with_a_name_that_no_tool_may_have_is_refused() -> None:
    """A look-alike letter would let one tool pass for another."""

    def größe() -> int:  # noqa: PLC2401  # the point of the test
        return 1

    with pytest.raises(ToolDefinitionError, match=r"tool name 'größe' is not usable.*test_tools_function.py"):
        as_tool(größe)
    assert FunctionTool(größe, name="size").execute() == 1


# --- as_tool ---------------------------------------------------------------------------------------------------------


class Own(Tool):
    name = "own"
    description = ""
    schema = ToolSchema(name="own")

    def execute(self, **kwargs: Any) -> object:
        return kwargs


def test_a_tool_is_taken_as_it_is() -> None:
    """A `Tool` needs no wrapper."""
    own = Own()
    assert as_tool(own) is own


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (3, "an object of type int is no tool: 3"),
        ("add", "an object of type str is no tool: 'add'"),
        (None, "an object of type NoneType is no tool: None"),
        ({"name": "x"}, "an object of type dict is no tool: a mapping with 1 keys"),
        (["x" * 100], r"an object of type list is no tool: \['x+\.\.\."),
        (Own, "Own is a class"),
        (Caller, "Caller is a class"),
    ],
    ids=["number", "text", "none", "mapping", "list", "tool class", "class"],
)
def test_anything_else_is_refused_with_what_would_do(candidate: object, text: str) -> None:
    """The error shows the object, briefly, and what may be offered."""
    with pytest.raises(ToolDefinitionError, match=text) as caught:
        as_tool(candidate)
    assert caught.value.remedy
    assert len(str(caught.value)) < 400


def test_an_object_that_can_not_be_shown_is_refused_as_well() -> None:
    """A repr that raises does not get in the way of the error."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(ToolDefinitionError, match="its repr raises RuntimeError"):
        as_tool(Broken())


def test_a_tool_says_what_it_is() -> None:
    """The repr has name and place."""
    assert repr(as_tool(add)).startswith("FunctionTool('add', ")
    assert "test_tools_function.py:" in repr(as_tool(add))


def test_the_context_is_passed_by_its_parameter() -> None:
    """`context_parameter` names the keyword under which the runtime passes the context."""

    def f(a: int, *, run: ToolContext[str]) -> str:
        return f"{run.context}{a}"

    made = as_tool(f)
    assert made.context_parameter == "run"
    assert made.execute(a=1, run=ToolContext(context="x")) == "x1"


def test_importing_and_marking_loads_no_library() -> None:
    """A plugin's module pays for schemas only where its tools are registered."""
    code = (
        "import sys\n"
        "from atlas_core.tools.function import tool, FunctionTool, as_tool\n"
        "from atlas_core.tools.registry import ToolRegistry\n"
        "from atlas_core.tools.results import encode_result\n"
        "@tool(effects='read')\n"
        "def f(a: int) -> int: return a\n"
        "ToolRegistry(); encode_result({'a': 1})\n"
        "print(sorted({'pydantic', 'jsonschema', 'docstring_parser', 'referencing'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
