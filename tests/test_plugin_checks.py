"""What a plugin is refused for: its hooks before they are called, its answers, and the objects that it offers."""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from atlas_core.errors import (
    PluginError,
    PluginHookError,
    PluginResultError,
    SettingsError,
)
from atlas_core.interfaces.agents import AgentTypeSpec
from atlas_core.interfaces.executors import ExecutorSpec
from atlas_core.interfaces.llm import LLMProviderSpec
from atlas_core.interfaces.tools import Tool, ToolProvider
from atlas_core.markers import hookimpl
from atlas_core.plugin_checks import HOOKS
from atlas_core.plugins import PluginHost
from tests.plugin_factory import (
    Plain,
    failure,
    load_one,
    plugin_with,
    tool_names,
    word_count,
)

# Hooks that are wrong.


def _lambda(*spec: str) -> Any:
    return eval(f"lambda {', '.join(spec)}: []")


@pytest.mark.parametrize("parameters", [(), ("options",), ("options=None",), ("options", "/"), ("options", "_n=[]")])
def test_good_signatures(parameters: tuple[str, ...]) -> None:
    """A hook takes the arguments it wants; defaults of its own are its own business."""
    assert load_one(plugin_with("atlas_executors", _lambda(*parameters))).error is None


def test_a_default_does_not_keep_options_away() -> None:
    """`options=None` gets the options all the same."""
    seen = []

    def atlas_executors(options: object = None) -> list[ExecutorSpec]:
        seen.append(options)
        return []

    load_one(plugin_with("atlas_executors", atlas_executors))
    assert isinstance(seen[0], BaseModel)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (("settings",), "hook atlas_executors takes 'settings', which is not passed"),
        (("options", "kernel"), "hook atlas_executors takes 'kernel', which is not passed"),
        (("*args",), "hook atlas_executors takes '*args'"),
        (("**kwargs",), "hook atlas_executors takes '**kwargs'"),
        (("*", "options"), "hook atlas_executors takes 'options', and hooks pass positional"),
        (("*", "options=None"), "hook atlas_executors takes 'options=None', and hooks pass positional"),
    ],
)
def test_bad_signatures(parameters: tuple[str, ...], text: str) -> None:
    """A parameter that would never be filled is an error that shows the signature to write."""
    message = failure(plugin_with("atlas_executors", _lambda(*parameters)), PluginHookError)
    assert text in message
    assert "write `def atlas_executors(options)` or leave arguments out" in message


def test_a_hook_without_arguments_says_so() -> None:
    """`atlas_options` passes nothing, and the error shows that."""
    message = failure(plugin_with("atlas_options", _lambda("options")), PluginHookError)
    assert message.endswith("write `def atlas_options()`")


def test_an_unreadable_signature_is_reported() -> None:
    """A function that lies about its signature is refused and not called."""

    def odd() -> list[object]:
        raise AssertionError

    odd.__signature__ = "nonsense"  # type: ignore[attr-defined]  # on purpose
    assert "hook atlas_executors has no readable signature" in failure(
        plugin_with("atlas_executors", odd), PluginHookError
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("atlas_tool_provider", "did you mean 'atlas_tool_providers'?"),
        ("atlas_exectuors", "did you mean 'atlas_executors'?"),
        ("atlas_zzzzzzz", "the hooks are atlas_"),
        ("quite_different", "the hooks are atlas_"),
    ],
)
def test_a_misspelt_hook_is_reported(name: str, remedy: str) -> None:
    """A marked function that is no hook is an error with the nearest name, whatever else the plugin has."""
    plugin: Any = plugin_with(name, _lambda("options"))
    plugin.atlas_executors = hookimpl(_lambda("options"))
    message = failure(plugin, PluginHookError)
    assert f"there is no hook {name!r}" in message
    assert remedy in message


def test_a_hook_of_a_later_version_may_be_optional() -> None:
    """`optionalhook` lets a plugin carry hooks that this Atlas does not know; they are left out."""
    plugin: Any = plugin_with("atlas_dreams", _lambda("night"), optionalhook=True)
    assert load_one(plugin).status == "loaded"


@pytest.mark.parametrize(
    ("attribute", "text", "remedy"),
    [
        (lambda options: [], "atlas_executors is not marked as a hook", "put @hookimpl above it"),
        (staticmethod(lambda options: []), "atlas_executors is not marked as a hook", "put @hookimpl above it"),
        (
            functools.partial(lambda options: []),
            "atlas_executors is not marked as a hook",
            "make it a plain `def` with @hookimpl above it",
        ),
    ],
    ids=["a function", "a static method", "a partial"],
)
def test_an_unmarked_hook_is_reported(attribute: object, text: str, remedy: str) -> None:
    """A hook without its mark would be passed over in silence, so it is an error."""
    message = failure(type("Forgetful", (Plain,), {"atlas_executors": attribute}), PluginHookError)
    assert text in message
    assert message.endswith(remedy)


def test_an_unmarked_function_named_like_a_hook_is_reported() -> None:
    """Names that begin with `atlas_` are kept for hooks, so that a misspelt one without its mark is found too."""
    message = failure(type("Forgetful", (Plain,), {"atlas_executor": lambda options: []}), PluginHookError)
    assert "there is no hook 'atlas_executor'" in message


def test_what_is_no_function_may_be_named_like_a_hook() -> None:
    """Modules `atlas_x`, constants and classes are no hooks and disturb nothing."""
    extra = {"atlas_core": sys.modules["atlas_core"], "atlas_version": "1", "atlas_class": int}
    assert load_one(type("Fine", (Plain,), extra)).status == "loaded"


def test_a_plugin_without_hooks_is_reported() -> None:
    """A target that implements nothing is most likely the wrong one."""
    assert "an object implements no hook" in failure(("empty", object()), PluginHookError)
    assert "mark one with @hookimpl: atlas_" in failure(("empty", object()), PluginHookError)


async def _coroutine(options: object) -> list[object]:
    raise AssertionError


async def _async_generator(options: object) -> AsyncIterator[object]:
    raise AssertionError
    yield


@functools.wraps(_coroutine)
def _wrapping(options: object) -> object:
    raise AssertionError


@pytest.mark.parametrize("function", [_coroutine, _async_generator, _wrapping])
def test_an_async_hook_is_reported(function: Any) -> None:
    """An `async def`, decorated or not, is refused at load by its hook's name, and never called."""
    message = failure(plugin_with("atlas_tool_providers", function), PluginHookError)
    assert "hook atlas_tool_providers is an `async def`" in message
    assert "make it a plain `def`" in message


@pytest.mark.parametrize("mark", ["wrapper", "hookwrapper"])
def test_a_wrapper_is_reported(mark: str) -> None:
    """Hooks are called one plugin at a time, so a wrapper around others' hooks is refused and not silently idle."""

    def wrapping(options: object) -> Iterator[None]:
        yield

    plugin = plugin_with("atlas_executors", wrapping, **{mark: True})
    assert "marked as a wrapper" in failure(plugin, PluginHookError)


@pytest.mark.parametrize("step", ["register", "check_pending"])
def test_what_pluggy_refuses_is_reported(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A fault that only pluggy sees is still an error about the plugin, and the plugin is not left registered."""
    import pluggy

    def refuse(self: object, *args: object, **kwargs: object) -> None:
        raise pluggy.PluginValidationError(None, "a rule of a later pluggy")

    host = PluginHost(plugins=[Plain()])
    monkeypatch.setattr(pluggy.PluginManager, step, refuse)
    (record,) = host.load_given()
    assert "pluggy refused its hooks: PluginValidationError: a rule of a later pluggy" in str(record.error)
    assert host._manager.get_plugins() == set()


def test_a_plugin_that_can_not_be_looked_at_is_reported() -> None:
    """A `__dir__` that fails, or a class that can't be made, is that plugin's failure."""

    class NoDir(Plain):
        def __dir__(self) -> Iterable[str]:
            raise SystemExit(4)

    class NeedsMore(Plain):
        def __init__(self, more: object) -> None: ...

    assert "its hooks can't be read: SystemExit: 4" in failure(NoDir(), PluginResultError)
    assert "missing 1 required positional argument: 'more'" in failure(NeedsMore, PluginResultError)


# Hooks that go wrong.


def raising(error: BaseException) -> Callable[[], object]:
    """Return a function that raises."""

    def hook() -> object:
        raise error

    return hook


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("boom"),
        SystemExit(3),
        GeneratorExit("closed"),
        StopIteration("done"),
        SettingsError("not Atlas's own"),
        PluginError("nobody's"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_a_hook_that_raises_is_reported(hook: str, error: BaseException) -> None:
    """Whatever a hook raises is an error of its plugin, and the host goes on (case 90)."""
    record = load_one(plugin_with(hook, raising(error)))
    assert isinstance(record.error, PluginResultError)
    assert str(record.error).startswith(f"hook {hook} raised: {type(error).__name__}: {error}")
    assert record.error.plugin == "given"
    assert "in hook" in record.error.cause
    assert record.error.__cause__ is error


def test_a_half_offered_plugin_leaves_nothing() -> None:
    """A plugin that offers tools and then raises in another hook, or halfway through one, offers nothing (case 96)."""

    class Half(Plain):
        @hookimpl
        def atlas_observers(self) -> list[Any]:
            raise RuntimeError("too late")

    class Generator:
        @hookimpl
        def atlas_tool_providers(self) -> Iterator[Callable[..., object]]:
            yield word_count
            raise SystemExit(1)

    host = PluginHost(plugins=[Half, Generator, Plain])
    records = {record.name: record for record in host.load_given()}
    assert {name: r.status for name, r in records.items()} == {
        "Half": "failed",
        "Generator": "failed",
        "Plain": "loaded",
    }
    assert tool_names(*records.values()) == ["word_count"]
    assert len(host._manager.get_plugins()) == 1
    assert "hook atlas_tool_providers raised: SystemExit: 1" in str(records["Generator"].error)


def test_a_generator_is_an_iterable() -> None:
    """A hook may yield what it offers."""

    class Yielding:
        @hookimpl
        def atlas_tool_providers(self) -> Iterator[Callable[..., object]]:
            yield word_count

    assert tool_names(load_one(Yielding)) == ["word_count"]


async def _coroutine_inside() -> list[object]:
    return []


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, "None"),
        (3, "3"),
        ("word_count", "the text 'word_count'"),
        (b"bytes", "a bytes"),
        ({"word_count": 1}, "a dict"),
        (word_count, "the function word_count"),
        (Plain, "the class Plain"),
        (_coroutine_inside, "a coroutine"),
    ],
)
def test_an_answer_that_is_no_iterable_is_reported(answer: object, shown: str) -> None:
    """A hook that returns nothing, one object, a text, a mapping or a coroutine gets told what to return."""

    def hook() -> object:
        return _coroutine_inside() if answer is _coroutine_inside else answer

    message = failure(plugin_with("atlas_tool_providers", hook), PluginResultError)
    assert f"hook atlas_tool_providers returned {shown}, expected an iterable" in message
    assert "return a list, an empty one for nothing" in message


# Objects that break their interface.

SPECS: dict[str, type[Any]] = {
    "atlas_llm_providers": LLMProviderSpec,
    "atlas_executors": ExecutorSpec,
    "atlas_agent_types": AgentTypeSpec,
}


def offering(hook: str, *values: object) -> object:
    """Return a plugin whose one hook offers these."""
    return plugin_with(hook, lambda: list(values))


async def _async_factory(options: object) -> object:
    raise AssertionError


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": ""}, "name is '', expected a non-empty text"),
        ({"name": "  "}, "name is '  ', expected a non-empty text"),
        ({"name": " x"}, "name is ' x', expected a non-empty text"),
        ({"name": None}, "name is None, expected a non-empty text"),
        ({"factory": None}, "factory is None, expected a callable"),
        ({"factory": _async_factory}, "factory is an `async def`"),
        ({"options": dict}, "options is the class dict, expected a pydantic model class"),
        ({"options": {"a": 1}}, "options is a dict, expected a pydantic model class"),
        ({"description": None}, "description is None, expected a text"),
    ],
)
@pytest.mark.parametrize("hook", sorted(SPECS))
def test_a_spec_with_a_wrong_field_is_reported(hook: str, fields: dict[str, Any], text: str) -> None:
    """Each field of a spec is checked when the plugin loads, and the error shows the value."""
    spec = SPECS[hook](**{"name": "good", "factory": lambda _: None, **fields})
    message = failure(offering(hook, spec), PluginResultError)
    assert f"hook {hook} offers an {SPECS[hook].__name__} whose" in message
    assert text in message


@pytest.mark.parametrize("hook", sorted(SPECS))
def test_another_object_than_a_spec_is_reported(hook: str) -> None:
    """A class, a tuple or the spec of another hook is not what the hook offers."""
    other = next(spec for name, spec in SPECS.items() if name != hook)(name="x", factory=lambda _: None)
    for value in (SPECS[hook], ("name", word_count), other, True, 1.5):
        message = failure(offering(hook, value), PluginResultError)
        assert f"expected an {SPECS[hook].__name__}" in message


@pytest.mark.parametrize("hook", sorted(SPECS))
def test_a_name_offered_twice_by_one_plugin_is_reported(hook: str) -> None:
    """Two specs of one name, spelt alike or not, are the plugin's own fault."""
    specs = [SPECS[hook](name=name, factory=lambda _: None) for name in ("my-x", "My_X")]
    assert "offers the name 'My_X' twice" in failure(offering(hook, *specs), PluginResultError)


def test_a_good_spec_is_offered() -> None:
    """A spec with options and description comes through as it is."""

    class Options(BaseModel):
        n: int = 1

    spec = ExecutorSpec(name="slow", factory=lambda _: None, options=Options, description="Slow.")  # type: ignore[arg-type, return-value]  # not made
    record = load_one(offering("atlas_executors", spec))
    assert record.offers is not None
    assert [offer.value for offer in record.offers.executors] == [spec]


class _Observer:
    def on_event(self, event: object) -> None: ...


class _AsyncObserver:
    async def on_event(self, event: object) -> None: ...


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (object(), "offers an object, expected an object with on_event(event)"),
        (_Observer, "offers the class _Observer, expected an object with on_event(event)"),
        (_AsyncObserver(), "offers a _AsyncObserver whose on_event is an `async def`"),
        (print, "offers the function print, expected an object with on_event(event)"),
    ],
)
def test_an_observer_that_can_not_be_told_is_reported(value: object, text: str) -> None:
    """An observer is an object with a plain `on_event`."""
    assert text in failure(offering("atlas_observers", value), PluginResultError)


def test_observers_are_offered_by_their_class() -> None:
    """Two observers of one class are both told, as they have no names in settings."""
    record = load_one(offering("atlas_observers", _Observer(), _Observer()))
    assert record.offers is not None
    assert [offer.name for offer in record.offers.observers] == ["_Observer", "_Observer"]


class _Nameless(Tool):
    name = ""
    description = "Has no name."

    @property
    def schema(self) -> Any:
        raise SystemExit("schema")

    def execute(self, **kwargs: Any) -> object:
        return None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "no tool"),
        (_Nameless(), "tool name '' is not usable"),
        (type("Named", (_Nameless,), {"name": "named"})(), "SystemExit: schema"),
        (Plain, "is a class"),
    ],
    ids=["a number", "no name", "a schema that exits", "a class"],
)
def test_a_tool_that_can_not_be_one_is_reported(value: object, text: str) -> None:
    """A tool is checked when its plugin loads, name and schema included, and the plugin offers nothing."""
    message = failure(offering("atlas_tool_providers", word_count, value), PluginResultError)
    assert "what hook atlas_tool_providers offers is faulty" in message
    assert text in message


def test_a_tool_offered_twice_by_one_plugin_is_reported() -> None:
    """Two tools of one name in one plugin are its own fault."""
    plugin = offering("atlas_tool_providers", word_count, word_count)
    assert "offers the name 'word_count' twice" in failure(plugin, PluginResultError)


def test_tools_are_made_by_what_the_kernel_gives() -> None:
    """`coerce` decides what becomes a tool; what it raises is the plugin's failure."""

    def refuse(value: object) -> Tool:
        raise ValueError(f"never {value}")

    assert "ValueError: never 7" in failure(offering("atlas_tool_providers", 7), PluginResultError, coerce=refuse)


class _Source(ToolProvider):
    async def tools(self) -> list[Callable[..., object]]:
        return [word_count]


def test_a_tool_provider_passes_as_it_is() -> None:
    """A source of tools that are known only at run time is offered beside tools, and not asked yet."""
    source = _Source()
    record = load_one(offering("atlas_tool_providers", word_count, source))
    assert record.offers is not None
    assert [offer.value for offer in record.offers.tool_providers] == [source]
    assert tool_names(record) == ["word_count"]
