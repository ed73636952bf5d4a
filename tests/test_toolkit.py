"""Agents share tools, and each uses no more of them than it was granted."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_core import (
    AgentProfileSettings,
    AgentService,
    AgentToolkit,
    Owner,
    ParallelToolExecutor,
    PluginConflictError,
    ServiceNotReadyError,
    Tool,
    ToolArgumentsError,
    ToolCall,
    ToolContext,
    ToolDefinitionError,
    ToolDeniedError,
    ToolError,
    ToolFailedError,
    ToolSchema,
    ToolTimeoutError,
    UnknownToolError,
    tool,
)
from atlas_core.testing import FakeLLM


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def knowledge_search(query: str) -> list[str]:
    """Search."""
    return [query]


def knowledge_delete(key: str) -> str:
    """Delete."""
    return f"deleted {key}"


async def fetch_later(key: str) -> str:
    """Fetch."""
    await asyncio.sleep(0)
    return key


@tool(requires_approval=True)
def send_mail(to: str) -> str:
    """Send."""
    raise AssertionError(to)


def _named(name: str) -> Callable[..., int]:
    """Make a tool of any name; `tool` marks the function itself, so that each needs its own."""

    @tool(name=name)
    def function(a: int, b: int = 0) -> int:
        """Add."""
        return a + b

    return function


ALL = ["add", "fetch_later", "knowledge_delete", "knowledge_search", "send_mail"]


@pytest.fixture
def toolkit() -> Iterator[AgentToolkit]:
    """Register five tools; nobody may use any."""
    with AgentToolkit([add, knowledge_search, knowledge_delete, fetch_later, send_mail]) as toolkit:
        yield toolkit


def _usable(toolkit: AgentToolkit, agent_id: str) -> list[str]:
    """Return what an agent may use, which four doors must agree about."""
    names = [name for name in toolkit.list_tools() if toolkit.has_permission(agent_id, name)]
    assert [d["name"] for d in toolkit.get_tool_descriptions(agent_id)] == names
    assert toolkit.allowed_tools(agent_id).names == names
    return names


# Tools ---------------------------------------------------------------------------------------------------------------


class Lookup:
    name = "lookup"
    description = "Look up."
    schema: dict[str, object] = {"type": "object", "properties": {"word": {"type": "string"}}}

    def execute(self, **kwargs: Any) -> object:
        return str(kwargs.get("word", "")).upper()


class Shout(Tool):
    @property
    def name(self) -> str:
        return "shout"

    @property
    def description(self) -> str:
        return "Shout."

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name="shout", description="Shout.", parameters=Lookup.schema)

    def execute(self, **kwargs: Any) -> object:
        return kwargs["word"] + "!"


@pytest.mark.parametrize(
    ("given_tool", "name"),
    [(add, "add"), (Lookup(), "lookup"), (Shout(), "shout"), (functools.partial(add, b=1), "add")],
    ids=["function", "object", "tool", "partial"],
)
def test_what_can_be_a_tool_is_registered(given_tool: Any, name: str) -> None:
    """The name comes back, and the tool can be had by it, in any spelling that means it."""
    toolkit = AgentToolkit()
    assert toolkit.register_tool(given_tool) == name
    assert toolkit.list_tools() == [name]
    assert toolkit.get_tool(name.upper()).name == name
    assert toolkit.register_tool(given_tool, prefix="my") == f"my_{name}"


def test_what_is_no_tool_is_refused() -> None:
    """With the error of the registry, and nothing is registered."""
    toolkit = AgentToolkit()
    with pytest.raises(ToolDefinitionError):
        toolkit.register_tool(lambda x: x)
    with pytest.raises(ToolDefinitionError):
        toolkit.register_tool("add")  # type: ignore[arg-type]  # as a careless caller does
    assert toolkit.list_tools() == []
    assert toolkit.revision == 0


def test_two_tools_of_one_name_are_a_conflict(toolkit: AgentToolkit) -> None:
    """Case 88: a second one does not replace the first, nor take over its grants; case and `-` make no second name."""
    toolkit.grant_permission("ada", "add")
    for name in ("add", "Add", "ADD"):
        with pytest.raises(PluginConflictError, match=f"tool '{name}' is offered by both this program and plugin 'p2'"):
            toolkit.register_tool(_named(name), owner=Owner("p2"))
    with pytest.raises(PluginConflictError, match="as 'fetch_later' and 'Fetch-Later'"):
        toolkit.register_tool(_named("Fetch-Later"))
    assert toolkit.execute_tool_sync("ada", "add", {"a": 1}) == 1


def test_a_look_alike_name_is_no_name(toolkit: AgentToolkit) -> None:
    """A Cyrillic letter makes no second tool that people can't tell from the first."""
    with pytest.raises(ToolDefinitionError, match="is not usable"):
        toolkit.register_tool(_named("аdd"))


@pytest.mark.parametrize("door", ["get_tool", "grant_permission", "revoke_permission"])
def test_an_unknown_tool_is_an_error_with_the_nearest_name(toolkit: AgentToolkit, door: str) -> None:
    """A KeyError and a ValueError, and what was said stays unsaid."""
    agent = () if door == "get_tool" else ("ada",)
    with pytest.raises(UnknownToolError, match="no tool 'knowlege_search'; did you mean 'knowledge_search'") as caught:
        getattr(toolkit, door)(*agent, "knowlege_search")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, KeyError)
    assert caught.value.suggestions[0] == "knowledge_search"
    assert toolkit.list_grants("ada") == []
    with pytest.raises(UnknownToolError, match=r"there is no tool 'xx+\.\.\.'; registered: add, fetch"):
        getattr(toolkit, door)(*agent, "x" * 500)


# Permissions ---------------------------------------------------------------------------------------------------------


def test_nothing_is_allowed_until_it_is_granted(toolkit: AgentToolkit) -> None:
    """Deny by default, for a tool that is there and for one that is not."""
    assert _usable(toolkit, "ada") == []
    assert toolkit.has_permission("ada", "nonsense") is False
    assert toolkit.has_permission("ada", None) is False  # type: ignore[arg-type]  # from a task, it may be anything
    assert toolkit.list_grants("ada") == []


def test_a_grant_is_one_agents_own(toolkit: AgentToolkit) -> None:
    """Names of agents and tools compare in any case and with `-` as `_`; nobody else gains anything."""
    assert toolkit.grant_permission("Math-Agent", "ADD") == ["add"]
    assert _usable(toolkit, "math_agent") == ["add"]
    assert _usable(toolkit, "math_agent2") == _usable(toolkit, "math") == []
    assert toolkit.has_permission("MATH_AGENT", "Add")


def test_a_pattern_grants_what_it_means_now_and_later(toolkit: AgentToolkit) -> None:
    """What it means now is returned; a pattern that means nothing yet is no error."""
    assert toolkit.grant_permission("ada", "knowledge_*") == ["knowledge_delete", "knowledge_search"]
    assert toolkit.grant_permission("ada", "web-*") == []
    toolkit.register_tool(_named("web_fetch"))
    toolkit.register_tool(_named("file_read"))
    assert _usable(toolkit, "ada") == ["knowledge_delete", "knowledge_search", "web_fetch"]


def test_one_tool_can_be_taken_out_of_a_pattern(toolkit: AgentToolkit) -> None:
    """It stays out until it is granted again, by name or by pattern."""
    toolkit.grant_permission("ada", "knowledge_*")
    assert toolkit.revoke_permission("ada", "Knowledge-Delete") == ["knowledge_delete"]
    assert _usable(toolkit, "ada") == ["knowledge_search"]
    assert toolkit.list_grants("ada") == ["grant knowledge_*", "revoke knowledge_delete"]
    toolkit.grant_permission("ada", "knowledge_delete")
    assert _usable(toolkit, "ada") == ["knowledge_delete", "knowledge_search"]
    assert toolkit.revoke_permission("ada", "knowledge_*") == ["knowledge_delete", "knowledge_search"]
    assert _usable(toolkit, "ada") == []
    toolkit.grant_permission("ada", "*_search")
    assert _usable(toolkit, "ada") == ["knowledge_search"]


def test_a_pattern_taken_back_keeps_later_tools_out(toolkit: AgentToolkit) -> None:
    """Also those that are registered only after."""
    toolkit.grant_all_permissions("ada")
    toolkit.revoke_permission("ada", "admin_*")
    toolkit.register_tool(_named("admin_reset"))
    assert _usable(toolkit, "ada") == ALL


def test_all_means_later_tools_too(toolkit: AgentToolkit) -> None:
    """`grant_all_permissions` is the grant of `*`, and takes exceptions back."""
    toolkit.revoke_permission("ada", "add")
    assert toolkit.grant_all_permissions("ada") == ALL
    toolkit.register_tool(_named("later"))
    assert _usable(toolkit, "ada") == sorted([*ALL, "later"])
    assert toolkit.list_grants("ada") == ["grant *"]
    assert _usable(toolkit, "bob") == []


def test_a_pattern_that_can_match_nothing_is_refused(toolkit: AgentToolkit) -> None:
    """A Cyrillic letter in a revocation would leave everything as it was, unseen."""
    toolkit.grant_all_permissions("ada")
    with pytest.raises(ValueError, match=r"can match no tool: names have no 'е' \(U\+0435\)"):
        toolkit.revoke_permission("ada", "knowlеdge_*")


_DOORS: dict[str, Any] = {
    "grant": lambda t, a: t.grant_permission(a, "add"),
    "grant all": lambda t, a: t.grant_all_permissions(a),
    "revoke": lambda t, a: t.revoke_permission(a, "add"),
    "ask": lambda t, a: t.has_permission(a, "add"),
    "list": lambda t, a: t.list_grants(a),
    "describe": lambda t, a: t.get_tool_descriptions(a),
    "execute": lambda t, a: t.execute_tool_sync(a, "add", {"a": 1}),
}


@pytest.mark.parametrize("door", _DOORS.values(), ids=_DOORS)
def test_an_agent_has_a_name(toolkit: AgentToolkit, door: Any) -> None:
    """Blank text and anything else is a caller's mistake, at each door."""
    with pytest.raises(ValueError, match="agent_id ' ' is blank"):
        door(toolkit, " ")
    with pytest.raises(TypeError, match="agent_id is a NoneType, expected text"):
        door(toolkit, None)


def test_a_tool_is_granted_by_its_name(toolkit: AgentToolkit) -> None:
    """Not by the function, whose name may be another."""
    with pytest.raises(TypeError, match="tool is a function, expected a tool's name or a pattern"):
        toolkit.grant_permission("ada", add)  # type: ignore[arg-type]  # as a careless caller does


def test_descriptions_are_the_callers_own(toolkit: AgentToolkit) -> None:
    """Name, description and schema; changing them changes no tool."""
    toolkit.grant_permission("ada", "add")
    (described,) = toolkit.get_tool_descriptions("ada")
    assert described == {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}},
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    described["parameters"]["properties"]["a"]["type"] = "string"
    assert toolkit.get_tool_descriptions("ada")[0]["parameters"]["properties"]["a"] == {"type": "integer"}
    assert toolkit.execute_tool_sync("ada", "add", {"a": 1}) == 1


def test_the_revision_tells_of_changes(toolkit: AgentToolkit) -> None:
    """It grows with a tool and with each word, and stays with questions and refused words."""
    seen = [toolkit.revision]
    toolkit.grant_permission("ada", "add")
    seen.append(toolkit.revision)
    toolkit.revoke_permission("ada", "add")
    seen.append(toolkit.revision)
    toolkit.register_tool(Lookup())
    seen.append(toolkit.revision)
    assert seen == sorted(set(seen))
    with pytest.raises(UnknownToolError):
        toolkit.grant_permission("ada", "nothing")
    _usable(toolkit, "ada")
    assert toolkit.revision == seen[-1]
    assert repr(toolkit) == "<AgentToolkit, 6 tools, grants for 1 agents>"


_agents = st.sampled_from(["ada", "bob"])
_patterns = st.sampled_from(["*", "knowledge_*", "k*", "[af]*", *ALL])
_words = st.lists(st.tuples(_agents, _patterns, st.booleans()), max_size=10)


@settings(max_examples=40)
@given(_words, st.randoms(use_true_random=False))
def test_two_agents_never_share_grants(words: list[tuple[str, str, bool]], random: Any) -> None:
    """However words about two agents are mixed, each has what it has alone; and tools may come before or after."""
    tools: list[Callable[..., Any]] = [add, knowledge_search, knowledge_delete, fetch_later, send_mail]
    mixed = AgentToolkit(tools)
    alone = {agent: AgentToolkit(random.sample(tools, len(tools))) for agent in ("ada", "bob")}
    for agent, pattern, granted in words:
        for toolkit in (mixed, alone[agent]):
            (toolkit.grant_permission if granted else toolkit.revoke_permission)(agent, pattern)
    for agent, toolkit in alone.items():
        assert _usable(mixed, agent) == _usable(toolkit, agent)
        assert mixed.list_grants(agent) == toolkit.list_grants(agent)


# Calls ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("add", {"a": 2, "b": 3}, 5),
        ("Add", {"a": "2"}, 2),
        ("fetch-later", {"key": "k"}, "k"),
        ("knowledge_search", {"query": "q"}, ["q"]),
    ],
    ids=["plain function", "json text for a number", "async function", "list"],
)
async def test_a_granted_tool_runs(toolkit: AgentToolkit, name: str, args: dict[str, Any], value: object) -> None:
    """The value comes back as it is, through both doors, and the sync one works inside a running loop."""
    toolkit.grant_all_permissions("ada")
    assert await toolkit.execute_tool("ada", name, args) == value
    assert toolkit.execute_tool_sync("ada", name, args) == value
    assert args in ({"a": 2, "b": 3}, {"a": "2"}, {"key": "k"}, {"query": "q"})


async def test_arguments_are_built_as_a_run_builds_them() -> None:
    """Typed functions get their types, generators become lists, and none means an empty object."""

    def weekday(day: date, *, names: tuple[str, ...] = ()) -> str:
        """Tell."""
        return f"{type(day).__name__} {day.isoweekday()}"

    async def count() -> AsyncIterator[int]:
        """Count."""
        for n in range(3):
            yield n

    async with AgentToolkit([weekday, count]) as toolkit:
        toolkit.grant_all_permissions("ada")
        assert await toolkit.execute_tool("ada", "weekday", {"day": "2026-11-30"}) == "date 1"
        assert await toolkit.execute_tool("ada", "count") == [0, 1, 2]
        with pytest.raises(ToolArgumentsError, match="day"):
            await toolkit.execute_tool("ada", "weekday", {"day": "yesterday"})


@pytest.mark.parametrize("sync", [False, True], ids=["async door", "sync door"])
async def test_a_denied_tool_is_a_permission_error(toolkit: AgentToolkit, *, sync: bool) -> None:
    """It says why and what would allow it, and the tool does not run."""

    async def execute(agent_id: str, name: str, args: Any) -> object:
        if sync:
            return toolkit.execute_tool_sync(agent_id, name, args)
        return await toolkit.execute_tool(agent_id, name, args)

    with pytest.raises(PermissionError, match="agent 'ada' may not use tool 'add': it was not granted; grant_perm"):
        await execute("ada", "add", {"a": 1})
    toolkit.grant_all_permissions("ada")
    toolkit.revoke_permission("ada", "knowledge_*")
    with pytest.raises(ToolDeniedError, match=r"may not use tool 'knowledge_delete': 'knowledge_\*' was revoked"):
        await execute("ada", "knowledge_delete", {"wrong": "arguments"})
    with pytest.raises(ToolDeniedError, match="tool 'send_mail' needs a person's approval, and there is nobody to ask"):
        await execute("ada", "send_mail", {"to": "x"})
    with pytest.raises(ToolArgumentsError):
        await execute("ada", "send_mail", {"to": 5})


async def test_an_unknown_tool_names_none_that_is_denied(toolkit: AgentToolkit) -> None:
    """Case 84: hints in errors tell an agent of nothing that it may not use."""
    toolkit.grant_permission("ada", "add")
    with pytest.raises(UnknownToolError, match=r"no tool 'knowledge_delet'; agent 'ada' may use: add$") as caught:
        await toolkit.execute_tool("ada", "knowledge_delet", {})
    assert caught.value.suggestions == ()
    assert isinstance(caught.value, ValueError)
    with pytest.raises(UnknownToolError, match="no tool 'ad'; did you mean 'add'"):
        await toolkit.execute_tool("ada", "ad", {})
    with pytest.raises(UnknownToolError, match="no tool 'add'; none is agent 'bob' may use"):
        await AgentToolkit().execute_tool("bob", "add")
    with pytest.raises(UnknownToolError, match="no tool 'None'"):
        await toolkit.execute_tool("ada", None, {})  # type: ignore[arg-type]  # from a task, it may be anything


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "a: is missing, expected an integer"),
        ({"a": True}, "a: expected an integer, got true"),
        ({"a": 1, "c": 2}, "there is no 'c'"),
        ({"a": float("nan")}, "are no JSON values"),
        ({"a": object()}, "are no JSON values"),
        ([1], "are a list, expected a JSON object"),
        ("{}", "are a str, expected a JSON object"),
        ({1: 2}, "are an object with keys that are no text, expected a JSON object"),
    ],
    ids=["missing", "bool", "unknown", "nan", "object", "list", "text", "keys"],
)
async def test_arguments_that_do_not_fit_are_a_value_error(toolkit: AgentToolkit, args: Any, problem: str) -> None:
    """In the words that a model would be told."""
    toolkit.grant_permission("ada", "add")
    with pytest.raises(ToolArgumentsError, match=problem) as caught:
        await toolkit.execute_tool("ada", "add", args)
    assert isinstance(caught.value, ValueError)
    assert caught.value.tool == "add"


class Picky(Lookup):
    name = "picky"

    def build_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments.get("word") == "crash":
            raise RuntimeError("a foreign validator")
        raise ToolArgumentsError("the word is taken", tool="picky", remedy="choose another")


async def test_a_tools_own_checks_are_argument_errors() -> None:
    """Whether it says so, breaks down while it looks, or finds out only when it runs."""

    def withdraw(amount: int) -> int:
        """Withdraw."""
        raise ToolArgumentsError(f"{amount} is more than there is", remedy="ask for less")

    async with AgentToolkit([Picky(), withdraw]) as toolkit:
        toolkit.grant_all_permissions("ada")
        with pytest.raises(ToolArgumentsError, match="the word is taken; choose another"):
            await toolkit.execute_tool("ada", "picky", {"word": "x"})
        with pytest.raises(ToolArgumentsError, match="could not be read: RuntimeError: a foreign validator") as caught:
            await toolkit.execute_tool("ada", "picky", {"word": "crash"})
        assert isinstance(caught.value.__cause__, RuntimeError)
        with pytest.raises(ToolArgumentsError, match=r"^5 is more than there is; ask for less$") as caught:
            await toolkit.execute_tool("ada", "withdraw", {"amount": 5})
        assert caught.value.tool == "withdraw"


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("by zero"),
        PermissionError("no access to the file"),
        ToolDeniedError("an inner toolkit's"),
        SystemExit(3),
        StopIteration(1),
        asyncio.CancelledError(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])
async def test_a_failing_tool_is_an_error_of_its_own(error: BaseException, *, is_async: bool) -> None:
    """Case 90: whatever it raises, the host lives, and a tool's own PermissionError is no denial."""

    def fail() -> None:
        """Fail."""
        raise error

    async def fail_later() -> None:
        """Fail."""
        raise error

    async with AgentToolkit() as toolkit:
        name = toolkit.register_tool(fail_later if is_async else fail, owner=Owner("p", "atlas-p", "1.0"))
        toolkit.grant_all_permissions("ada")
        with pytest.raises(ToolFailedError, match=rf"tool '{name}' failed: .* \(plugin 'p' of atlas-p 1.0\)") as caught:
            await toolkit.execute_tool("ada", name)
    assert isinstance(caught.value, ToolError)
    assert not isinstance(caught.value, (PermissionError, ValueError))
    assert caught.value.status == "failed"
    cause = caught.value.__cause__
    assert cause is error or isinstance(cause, (RuntimeError, asyncio.CancelledError))


async def test_a_slow_tool_is_a_timeout_error() -> None:
    """By the caller's limit or by its own, in a thread or on the loop; the host goes on."""
    release = threading.Event()

    def hang() -> None:
        """Hang."""
        release.wait(30)

    @tool(timeout_s=0.02)
    async def sleep() -> None:
        """Sleep."""
        await asyncio.sleep(30)

    async with AgentToolkit([hang, sleep, add]) as toolkit:
        toolkit.grant_all_permissions("ada")
        with pytest.raises(
            ToolTimeoutError, match=r"tool 'hang' did not end: timed out: the time of .* was over"
        ) as caught:
            await toolkit.execute_tool("ada", "hang", timeout_s=0.02, call_id="c1")
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status == "timed_out"
        assert toolkit.abandoned_calls == ("tool 'hang', call 'c1' of agent 'ada'",)
        with pytest.raises(ToolTimeoutError, match=r"tool 'sleep' did not end: timed out after 0\.02 s"):
            await toolkit.execute_tool("ada", "sleep", timeout_s=20)
        with pytest.raises(ToolTimeoutError, match="no time was left; it was not started"):
            await toolkit.execute_tool("ada", "add", {"a": 1}, timeout_s=0)
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match=r"timeout_s is .*, expected at least 0"):
                await toolkit.execute_tool("ada", "add", {"a": 1}, timeout_s=wrong)
        assert await toolkit.execute_tool("ada", "add", {"a": 1}, timeout_s=20) == 1
        release.set()


async def test_a_tool_learns_for_whom_it_runs() -> None:
    """It gets the caller's context, the agent, the call and the deadline, and sees the caller's variables."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("mine")

    @tool(timeout_s=100)
    def who(ctx: ToolContext[str]) -> tuple[object, ...]:
        """Tell."""
        assert ctx.remaining_s is not None
        return ctx.context, ctx.agent_id, ctx.call_id, ctx.idempotency_key, ctx.remaining_s > 50, variable.get()

    async with AgentToolkit([who]) as toolkit:
        toolkit.grant_permission("ada", "who")
        expected = ("tenant", "ada", "c1", "c1", True, "mine")
        assert await toolkit.execute_tool("ada", "who", context="tenant", call_id="c1") == expected
        assert toolkit.execute_tool_sync("ada", "who", context="tenant", call_id="c1") == expected
        one, two = [(await toolkit.execute_tool("ada", "who"))[2] for _ in range(2)]
        assert one
        assert one != two


async def test_a_revocation_reaches_calls_that_wait_for_a_thread() -> None:
    """What has started goes on; what has not is refused when its turn comes."""
    release = threading.Event()
    started = []

    def hold(number: int) -> int:
        """Hold."""
        started.append(number)
        release.wait(30)
        return number

    async with AgentToolkit([hold]) as toolkit:
        toolkit.grant_permission("ada", "hold")
        toolkit.grant_permission("bob", "hold")
        tasks = [asyncio.create_task(toolkit.execute_tool("ada", "hold", {"number": n})) for n in range(40)]
        tasks.append(asyncio.create_task(toolkit.execute_tool("bob", "hold", {"number": 40})))
        while len(started) < 32:  # as many as there are threads
            await asyncio.sleep(0.005)
        toolkit.revoke_permission("ada", "hold")
        release.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(o) for o in outcomes] == [int] * 32 + [ToolDeniedError] * 8 + [int]
    assert "'hold' was not granted" not in str(outcomes[35])
    assert sorted(started) == [*range(32), 40]


async def test_a_revocation_reaches_calls_that_wait_for_the_tools_start() -> None:
    """An async tool too asks again right before it runs."""
    ready = asyncio.Event()
    ran = []

    class Slow(Lookup):
        async def start(self) -> None:
            await ready.wait()

        async def execute(self, **kwargs: Any) -> object:
            ran.append(kwargs)
            return kwargs

    async with AgentToolkit([Slow()]) as toolkit:
        toolkit.grant_permission("ada", "lookup")
        task = asyncio.create_task(toolkit.execute_tool("ada", "lookup"))
        await asyncio.sleep(0.01)
        toolkit.revoke_permission("ada", "lookup")
        ready.set()
        with pytest.raises(ToolDeniedError):
            await task
    assert ran == []


async def test_the_callers_cancellation_is_its_own() -> None:
    """It is raised as such and ends the tool."""
    ended = []

    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("wait")

    async with AgentToolkit([wait]) as toolkit:
        toolkit.grant_permission("ada", "wait")
        task = asyncio.create_task(toolkit.execute_tool("ada", "wait"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == ["wait"]


# Start and end -------------------------------------------------------------------------------------------------------


class Connected(Lookup):
    def __init__(self, name: str, log: list[str], fails: int = 0) -> None:
        self.name = name
        self.log = log
        self.fails = fails

    async def start(self) -> None:
        await asyncio.sleep(0.005)
        if self.fails:
            self.fails -= 1
            raise ConnectionError("no server")
        self.log.append(f"start {self.name}")

    async def stop(self) -> None:
        self.log.append(f"stop {self.name}")


@pytest.mark.parametrize("sync", [False, True], ids=["async door", "sync door"])
async def test_tools_are_started_once_and_stopped_in_reverse_order(*, sync: bool) -> None:
    """At first use and no sooner; what never ran is never started."""
    log: list[str] = []
    toolkit = AgentToolkit([Connected(name, log) for name in ("one", "two", "three")])
    toolkit.grant_all_permissions("ada")
    if sync:
        assert [toolkit.execute_tool_sync("ada", n, {"word": "a"}) for n in ("two", "one", "two")] == ["A"] * 3
    else:
        calls = [toolkit.execute_tool("ada", "two"), toolkit.execute_tool("ada", "two")]
        await asyncio.gather(*calls)
        await toolkit.execute_tool("ada", "one")
    assert log == ["start two", "start one"]
    await toolkit.stop()
    assert log[2:] == ["stop one", "stop two"]
    await toolkit.stop()
    toolkit.stop_sync()
    assert len(log) == 4


async def test_a_tool_that_does_not_start_is_tried_again() -> None:
    """The first call fails with the reason, the next one starts it."""
    log: list[str] = []
    async with AgentToolkit([Connected("shaky", log, fails=1)]) as toolkit:
        toolkit.grant_permission("ada", "shaky")
        with pytest.raises(ToolFailedError, match="could not start: ConnectionError: no server"):
            await toolkit.execute_tool("ada", "shaky")
        assert await toolkit.execute_tool("ada", "shaky", {"word": "a"}) == "A"
    assert log == ["start shaky", "stop shaky"]


async def test_after_its_end_a_toolkit_runs_nothing() -> None:
    """Both doors refuse, a call that goes on is ended, and no thread is left."""
    waiting = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        waiting.set()
        await asyncio.sleep(30)

    toolkit = AgentToolkit([wait, add])
    toolkit.grant_all_permissions("ada")
    task = asyncio.create_task(toolkit.execute_tool("ada", "wait"))
    assert await toolkit.execute_tool("ada", "add", {"a": 1}) == 1
    assert toolkit.execute_tool_sync("ada", "add", {"a": 1}) == 1
    await waiting.wait()
    await toolkit.stop()
    with pytest.raises(ServiceNotReadyError, match="the toolkit was stopped during the call"):
        await task
    with pytest.raises(ServiceNotReadyError, match="the toolkit was stopped; make a new one"):
        await toolkit.execute_tool("ada", "add", {"a": 1})
    with pytest.raises(ServiceNotReadyError, match="the toolkit was stopped; make a new one"):
        toolkit.execute_tool_sync("ada", "add", {"a": 1})
    assert [t.name for t in threading.enumerate() if t.name.startswith("atlas-")] == []
    assert toolkit.has_permission("ada", "add")  # what was granted can still be looked at


def test_threads_share_a_toolkit() -> None:
    """Each of many threads grants, uses and loses its own tool, through either door, while others do the same."""
    failures: list[BaseException] = []
    log: list[str] = []
    toolkit = AgentToolkit([add, Connected("shared", log)])

    def work(number: int) -> None:
        agent = f"agent{number}"
        try:
            mine = toolkit.register_tool(_named(f"tool{number}"))
            for n in range(15):
                toolkit.grant_permission(agent, mine)
                toolkit.grant_permission(agent, "shared")
                assert toolkit.execute_tool_sync(agent, mine, {"a": n, "b": number}) == n + number
                assert asyncio.run(toolkit.execute_tool(agent, mine, {"a": n})) == n
                assert asyncio.run(toolkit.execute_tool(agent, "shared", {"word": "a"})) == "A"
                assert [d["name"] for d in toolkit.get_tool_descriptions(agent)] == sorted([mine, "shared"])
                toolkit.revoke_permission(agent, "*")
                with pytest.raises(ToolDeniedError):
                    toolkit.execute_tool_sync(agent, mine, {"a": n})
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    toolkit.stop_sync()
    assert failures == []
    assert log == ["start shared", "stop shared"]


def test_a_sync_call_from_inside_a_tool_is_no_deadlock() -> None:
    """From a plain tool's thread it works; on the loop that it would wait for it is refused with the reason."""
    toolkit = AgentToolkit([add])

    def outer() -> int:
        """Call another."""
        return int(toolkit.execute_tool_sync("ada", "add", {"a": 1, "b": 1}))

    async def on_the_loop() -> int:
        """Call another in the wrong way."""
        return int(toolkit.execute_tool_sync("ada", "add", {"a": 1, "b": 1}))

    toolkit.register_tool(outer)
    toolkit.register_tool(on_the_loop)
    toolkit.grant_all_permissions("ada")
    began = time.monotonic()
    assert toolkit.execute_tool_sync("ada", "outer", timeout_s=20) == 2
    with pytest.raises(ToolFailedError, match="a sync door was used on the loop that it waits for"):
        toolkit.execute_tool_sync("ada", "on_the_loop", timeout_s=20)
    assert time.monotonic() - began < 10
    toolkit.stop_sync()


async def test_an_agent_can_be_built_on_what_is_allowed(toolkit: AgentToolkit) -> None:
    """The loop offers exactly those tools, and answers a call to another as unknown."""
    toolkit.grant_permission("ada", "knowledge_*")
    toolkit.revoke_permission("ada", "knowledge_delete")
    executor = ParallelToolExecutor(toolkit.allowed_tools("ada"))
    calls = [ToolCall.of("knowledge_search", query="q"), ToolCall.of("knowledge_delete", key="k")]
    llm = FakeLLM([calls, "done"])
    async with AgentService(AgentProfileSettings(name="ada", tools=("*",)), llm, executor) as agent:
        answer = await agent.run("Clean up.")
    await executor.stop()
    assert [t.name for t in llm.requests[0].tools] == ["knowledge_search"]
    assert [r.status for r in answer.result.tool_results] == ["ok", "unknown_tool"]
