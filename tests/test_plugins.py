"""The plugin host: each plugin alone, each failure a typed error, nothing of a failed plugin kept."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from atlas_core.discovery import Discovery, scan
from atlas_core.errors import (
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginResultError,
    SettingsError,
)
from atlas_core.interfaces.agents import AgentTypeSpec
from atlas_core.interfaces.executors import ExecutorSpec
from atlas_core.interfaces.llm import LLMProviderSpec
from atlas_core.markers import hookimpl
from atlas_core.owner import Owner
from atlas_core.plugin_checks import HOOKS
from atlas_core.plugins import PluginHost
from atlas_core.selection import Selection, select_enabled
from tests.plugin_factory import (
    Plain,
    failure,
    importable,
    lay_out,
    load_one,
    tool_names,
    tool_plugin,
    write_module,
)


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Path]:
    with importable(tmp_path):
        yield tmp_path


def host_of(site: Path, **options: Any) -> PluginHost:
    """Make a host for what lies in a folder."""
    return PluginHost(scan([str(site)]), **options)


# Loading from entry points.


def test_a_chosen_plugin_is_loaded_with_its_owner(site: Path) -> None:
    """What a plugin offers carries plugin, distribution and version; the record holds the metadata and the time."""
    lay_out(site, "atlas-count", "1.2", plugins={"count": "pl_count"}, modules={"pl_count": tool_plugin("pl_words")})
    (record,) = host_of(site).load("count")
    assert (record.name, record.status, record.error) == ("count", "loaded", None)
    assert record.owner == Owner("count", "atlas-count", "1.2")
    assert record.plugin is not None
    assert record.plugin.entry_point == "count = pl_count"
    assert record.import_time_s > 0
    assert record.offers is not None
    assert [(o.name, o.owner) for o in record.offers.tools] == [("pl_words", record.owner)]
    assert record.offers.names == ("tool.pl_words",)


def test_loading_twice_loads_once(site: Path) -> None:
    """A plugin is imported and its hooks called once, under whichever spelling it is asked for again (case 98)."""
    source = """
        from atlas_core.markers import hookimpl
        CALLS = []
        @hookimpl
        def atlas_executors():
            CALLS.append(1)
            return []
    """
    lay_out(site, "dist-once", plugins={"once-only": "pl_once"}, modules={"pl_once": source})
    host = host_of(site)
    first = host.load("once-only", "Once_Only")
    assert host.load("once.only", "once-only@dist-once") == first
    assert host.load_selection(Selection(chosen=scan([str(site)]).plugins)) == first
    assert len(first) == 1
    assert sys.modules["pl_once"].CALLS == [1]


def test_a_plugin_on_a_path_that_is_listed_twice_is_loaded_once(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A folder reached again through a link loads nothing twice and is no conflict (case 98)."""
    lay_out(site, "dist", plugins={"p": "pl_twice"}, modules={"pl_twice": tool_plugin("twice")})
    link = tmp_path_factory.mktemp("links") / "lib64"
    link.symlink_to(site, target_is_directory=True)
    host = PluginHost(scan([str(site), str(link), str(site)]))
    assert tool_names(*host.load("p")) == ["twice"]
    assert len(host.records) == 1


def test_records_name_every_plugin(site: Path) -> None:
    """Listings show what is loaded, what failed and what was not asked for, in name order."""
    lay_out(site, "dist", plugins={"c": "pl_c", "B": "pl_b", "a": "pl_missing"}, modules={"pl_b": tool_plugin("b")})
    host = host_of(site, plugins=[("z-given", Plain())])
    host.load("a", "b")
    assert [(r.name, r.status) for r in host.records] == [
        ("a", "failed"),
        ("B", "loaded"),
        ("c", "not loaded"),
        ("z-given", "not loaded"),
    ]


def test_an_unknown_plugin_is_the_callers_mistake(site: Path) -> None:
    """Loading a name that is not installed raises, with what is."""
    with pytest.raises(SettingsError, match=r"plugin 'nope' is not installed; no plugin is installed"):
        host_of(site).load("nope")


def test_a_target_may_name_an_attribute(site: Path) -> None:
    """`module:attribute`, dotted too, may be an object, a class or a module."""
    source = """
        from atlas_core.markers import hookimpl
        class Hooks:
            @hookimpl
            def atlas_observers(self): return []
        class Nest:
            inner = Hooks()
    """
    plugins = {"one": "pl_attr:Hooks", "two": "pl_attr:Nest.inner", "three": "pl_attr:hooks"}
    lay_out(
        site, "dist", plugins=plugins, modules={"pl_attr": source + "\n        from importlib import import_module\n"}
    )
    write_module(site, "pl_attr_hooks", tool_plugin("inner"))
    with (site / "pl_attr.py").open("a", encoding="utf-8") as file:
        file.write('\nhooks = import_module("pl_attr_hooks")\n')
    assert [r.status for r in host_of(site).load(*plugins)] == ["loaded", "loaded", "loaded"]


IMPORT_FAULTS = {
    "raises": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "is no Python": ("def f(:", "SyntaxError: invalid syntax"),
    "is cancelled": ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    "closes a generator": ("raise GeneratorExit", "GeneratorExit"),
    "lacks a library": ("import no_such_library_at_all", "No module named 'no_such_library_at_all'"),
    "has an unreadable error": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "E: (its text can't be read)",
    ),
}


@pytest.mark.parametrize(("source", "text"), IMPORT_FAULTS.values(), ids=IMPORT_FAULTS.keys())
def test_a_plugin_that_does_not_import_is_reported(site: Path, source: str, text: str) -> None:
    """Whatever an import raises is kept as an error with all facts; the other plugin works (case 96)."""
    lay_out(site, "dist-bad", "0.3", plugins={"bad": "pl_bad"}, modules={"pl_bad": source})
    lay_out(site, "dist-ok", plugins={"ok": "pl_ok"}, modules={"pl_ok": tool_plugin("fine")})
    bad, ok = host_of(site).load("bad", "ok")
    assert tool_names(ok) == ["fine"]
    error = bad.error
    assert isinstance(error, PluginLoadError)
    assert (error.plugin, error.distribution, error.version) == ("bad", "dist-bad", "0.3")
    assert error.entry_point == "bad = pl_bad"
    assert text in str(error)
    assert "plugin 'bad' of dist-bad 0.3, entry point 'bad = pl_bad'" in str(error)
    assert "pl_bad.py" in error.cause
    assert error.remedy
    assert bad.offers is None


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("pl_gone", "install dist again: its entry point names a module that is not there"),
        ("pl_gone.inner", "install dist again: its entry point names a module that is not there"),
        ("pl_needs", "install what provides the module 'no_such_library', or install dist again"),
    ],
)
def test_a_missing_module_has_a_remedy(site: Path, target: str, remedy: str) -> None:
    """A module of the plugin that is gone is told apart from a library that is missing."""
    lay_out(site, "dist", plugins={"p": target}, modules={"pl_needs": "import no_such_library.part"})
    (record,) = host_of(site).load("p")
    assert isinstance(record.error, PluginLoadError)
    assert record.error.remedy == remedy


@pytest.mark.parametrize("target", ["pl_short:gone", "pl_short:x.gone", "pl_short:raising"])
def test_a_missing_attribute_is_reported(site: Path, target: str) -> None:
    """An entry point that names what the module lacks is a load error that says so."""
    source = "x = 1\ndef __getattr__(name):\n    raise SystemExit(name) if name == 'raising' else AttributeError(name)"
    lay_out(site, "dist", plugins={"p": target}, modules={"pl_short": source})
    (record,) = host_of(site).load("p")
    assert isinstance(record.error, PluginLoadError)
    attribute = target.partition(":")[2]
    assert f"module 'pl_short' has no {attribute!r}, which its entry point names" in str(record.error)


def test_an_interrupt_passes_and_leaves_the_host_usable(site: Path) -> None:
    """Ctrl-C during an import or a hook reaches the operator; the plugin can be loaded after (case 90)."""
    source = """
        import pl_switch
        from atlas_core.markers import hookimpl
        if pl_switch.where == "import":
            raise KeyboardInterrupt
        if pl_switch.where == "attribute":
            def __getattr__(name): raise KeyboardInterrupt
        @hookimpl
        def atlas_executors():
            if pl_switch.where == "hook":
                raise KeyboardInterrupt
            return []
    """
    modules = {"pl_stop": source, "pl_switch": "where = 'import'"}
    lay_out(site, "dist", plugins={"stop": "pl_stop", "attr": "pl_stop:gone"}, modules=modules)
    host = host_of(site)
    switch: Any = importlib.import_module("pl_switch")
    with pytest.raises(KeyboardInterrupt):
        host.load("stop")
    switch.where = "hook"
    with pytest.raises(KeyboardInterrupt):
        host.load("stop")
    switch.where = "attribute"
    importlib.reload(sys.modules["pl_stop"])
    with pytest.raises(KeyboardInterrupt):
        host.load("attr")
    assert [record.status for record in host.load("stop")] == ["loaded"]


def test_a_name_of_two_distributions_loads_neither(site: Path) -> None:
    """The conflict names both and the remedy, in any order; `name@distribution` settles it (case 98)."""
    lay_out(site, "dist-b", "2.0", plugins={"web": "pl_web_b"}, modules={"pl_web_b": tool_plugin("b")})
    lay_out(site, "dist-a", "1.0", plugins={"Web": "pl_web_a"}, modules={"pl_web_a": tool_plugin("a")})
    host = host_of(site)
    records = host.load("web")
    assert [str(r.plugin) for r in records] == ["Web@dist-a", "web@dist-b"]
    for record in records:
        assert isinstance(record.error, PluginConflictError)
        assert "dist-a 1.0 and dist-b 2.0" in str(record.error)
        assert "'Web@dist-a' or 'web@dist-b'" in str(record.error)
    assert not {"pl_web_a", "pl_web_b"} & set(sys.modules)
    assert tool_names(*host.load("web@dist-b")) == ["b"]
    assert [(str(r.plugin), r.status) for r in host.records] == [("Web@dist-a", "failed"), ("web@dist-b", "loaded")]


def test_what_a_selection_refused_is_kept(site: Path) -> None:
    """Records of a selection's problems join those that were loaded, for the catalogue and for listings."""
    lay_out(site, "dist-a", plugins={"web": "pl_sel_a", "x": "pl_sel_x"}, modules={"pl_sel_x": tool_plugin("x")})
    lay_out(site, "dist-b", plugins={"web": "pl_sel_b"})
    host = host_of(site, plugins=[("mine", Plain())])
    selection = select_enabled(scan([str(site)]), ["web", "x"], given=host.given)
    records = host.load_selection(selection)
    found = [(r.name, r.owner.distribution, r.status) for r in records]
    assert found == [
        ("mine", "", "loaded"),
        ("web", "dist-a", "failed"),
        ("web", "dist-b", "failed"),
        ("x", "dist-a", "loaded"),
    ]
    assert host.records == records


def test_a_plugin_can_be_refused_before_it_is_imported(site: Path) -> None:
    """The seam for trust and the version handshake sees metadata only, and nothing is imported."""
    lay_out(site, "dist-a", plugins={"a": "pl_ref_a"}, modules={"pl_ref_a": tool_plugin("a")})
    lay_out(site, "dist-b", plugins={"b": "pl_ref_b"}, modules={"pl_ref_b": tool_plugin("b")})
    refusal = PluginError("not allowed", plugin="a")
    host = host_of(site, refuse_before_import=lambda plugin: refusal if plugin.name == "a" else None)
    a, b = host.load("a", "b")
    assert (a.error, a.status, b.status) == (refusal, "failed", "loaded")
    assert "pl_ref_a" not in sys.modules


def test_a_plugin_installed_while_the_program_runs_is_imported(site: Path) -> None:
    """A host made after an install loads what came, however fresh the folder's listing was."""
    lay_out(site, "dist-one", plugins={"one": "pl_one"}, modules={"pl_one": tool_plugin("one")})
    host_of(site).load("one")
    before = site.stat()
    lay_out(site, "dist-two", plugins={"two": "pl_two"}, modules={"pl_two": tool_plugin("two")})
    os.utime(site, ns=(before.st_atime_ns, before.st_mtime_ns))  # the clock of a file system may be coarse
    assert tool_names(*host_of(site).load("two")) == ["two"]


def test_threads_load_a_plugin_once(site: Path) -> None:
    """Several threads that ask at once get the same record."""
    source = "import time\ntime.sleep(0.05)\n" + tool_plugin("threaded")
    lay_out(site, "dist", plugins={"p": "pl_thread"}, modules={"pl_thread": source})
    host, found = host_of(site), []
    threads = [threading.Thread(target=lambda: found.append(host.load("p"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(records[0] is found[0][0] for records in found)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(["alpha", "Beta", "gamma-x", "delta"]))
def test_call_order_is_the_name_order(order: list[str]) -> None:
    """Hooks are called plugin by plugin in name order, whatever order they were given or asked for in (case 102)."""
    calls: list[str] = []

    def make(name: str) -> object:
        class Noting:
            @hookimpl
            def atlas_executors(self) -> list[ExecutorSpec]:
                calls.append(name)
                return []

        return Noting()

    host = PluginHost(plugins=[(name, make(name)) for name in order])
    host.load(*order)
    assert calls == ["alpha", "Beta", "delta", "gamma-x"]


def test_a_command_does_not_import_what_it_does_not_load(site: Path) -> None:
    """In a fresh interpreter, making a host and listing its records imports no plugin (case 96)."""
    lay_out(site, "dist", plugins={"loud": "pl_loud"}, modules={"pl_loud": "raise SystemExit('imported')"})
    script = """
        import sys
        from atlas_core.discovery import scan
        from atlas_core.plugins import PluginHost
        records = PluginHost(scan()).records
        print([r.status for r in records if r.name == "loud"], "pl_loud" in sys.modules, "pydantic" in sys.modules)
    """
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", dedent(script)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "['not loaded'] False False\n"


# Plugins given directly.


def _module(name: str) -> ModuleType:
    module = ModuleType(name)
    exec(tool_plugin("from_module"), module.__dict__)
    return module


@pytest.mark.parametrize(
    ("plugin", "name"),
    [
        (Plain(), "Plain"),
        (Plain, "Plain"),
        (("mine", Plain()), "mine"),
        ((Owner("builtin", "atlas-kernel", "9"), Plain), "builtin"),
        (_module("atlas_word_tools.plugin"), "word-tools"),
        (_module("my_hooks"), "my-hooks"),
        (_module("plugin"), "plugin"),
        (_module("atlas_"), "atlas-"),
    ],
)
def test_a_given_plugin_has_a_name(plugin: object, name: str) -> None:
    """A module, an object, a class, or a pair with a name or an owner; each is loaded and named."""
    record = load_one(plugin)
    assert (record.name, record.status, record.plugin, record.import_time_s) == (name, "loaded", None, 0.0)
    assert tool_names(record) in (["word_count"], ["from_module"])


def test_a_given_owner_is_kept() -> None:
    """The kernel's own plugins carry its distribution and version."""
    owner = Owner("builtin", "atlas-kernel", "9")
    host = PluginHost(plugins=[(owner, Plain())])
    assert host.given == ("builtin",)
    assert [r.owner for r in (*host.records, *host.load("Builtin"))] == [owner, owner]


def test_two_given_plugins_of_one_name_are_refused() -> None:
    """Which of two is meant could not be told, so it is the caller's mistake."""
    with pytest.raises(ValueError, match=r"two plugins are given as 'Plain'; give one as a pair \(name, plugin\)"):
        PluginHost(plugins=[Plain(), Plain()])


def test_two_hosts_share_nothing() -> None:
    """The same object in two hosts is loaded by each, and once in each."""
    plugin = Plain()
    first, second = PluginHost(plugins=[plugin]), PluginHost(plugins=[plugin])
    assert tool_names(*first.load_given()) == tool_names(*second.load_given()) == ["word_count"]


def test_methods_of_every_kind_are_hooks() -> None:
    """Static and class methods, bound methods in a namespace, and marks on either side of the decorator all work."""

    class Kinds:
        @staticmethod
        @hookimpl
        def atlas_executors() -> list[ExecutorSpec]:
            return [ExecutorSpec(name="a", factory=lambda _: None)]  # type: ignore[arg-type, return-value]  # not made

        @hookimpl
        @staticmethod
        def atlas_llm_providers(options: object) -> list[LLMProviderSpec]:  # noqa: ARG004  # what the hook passes
            return [LLMProviderSpec(name="b", factory=lambda _: None)]  # type: ignore[arg-type, return-value]  # not made

        @classmethod
        @hookimpl
        def atlas_agent_types(cls) -> list[AgentTypeSpec]:
            return [AgentTypeSpec(name="c", factory=lambda _: None)]  # type: ignore[arg-type, return-value]  # not made

    record = load_one(Kinds)
    assert record.error is None
    assert record.offers is not None
    assert record.offers.names == ("agent.c", "executor.a", "llm.b")


def test_looking_at_a_plugin_runs_none_of_its_code() -> None:
    """Properties and dynamic attributes of a plugin are not evaluated while its hooks are looked for."""

    class Lazy(Plain):
        __hash__ = None  # type: ignore[assignment]  # as of a dataclass with values

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        @property
        def heavy(self) -> object:
            raise AssertionError("evaluated")

        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    assert PluginHost(plugins=[Lazy(), Plain()]).load_given()[0].status == "loaded"


def test_several_implementations_in_one_plugin_are_all_asked() -> None:
    """`specname` lets one plugin answer a hook twice; `tryfirst` and `trylast` order within the plugin only (102)."""
    calls = []

    class Two:
        @hookimpl(trylast=True)
        def atlas_executors(self) -> list[ExecutorSpec]:
            calls.append("last")
            return []

        def more(self) -> list[ExecutorSpec]:
            calls.append("plain")
            return []

        def most(self) -> list[ExecutorSpec]:
            calls.append("first")
            return []

    marked: Any = hookimpl
    marked(Two.more, specname="atlas_executors")
    marked(Two.most, specname="atlas_executors", tryfirst=True)
    assert load_one(Two()).status == "loaded"
    assert calls == ["first", "plain", "last"]


# Options.


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True)
    root: str = "/"


def with_options(model: object, seen: list[object]) -> object:
    """Return a plugin with options, which notes what its other hooks get."""

    class WithOptions:
        @hookimpl
        def atlas_options(self) -> Any:
            return model

        @hookimpl
        def atlas_executors(self, options: object) -> list[ExecutorSpec]:
            seen.append(options)
            return []

    return WithOptions()


def test_options_are_validated_by_the_kernel_and_passed_to_hooks() -> None:
    """The kernel gets name, model and owner, and what it returns reaches every hook."""
    asked, seen = [], list[object]()
    owner = Owner("opt", "dist", "1")

    def options_for(plugin: str, model: type[BaseModel] | None, by: Owner) -> BaseModel:
        asked.append((plugin, model, by))
        return _Options(root="/srv")

    PluginHost(plugins=[(owner, with_options(_Options, seen))], options_for=options_for).load_given()
    assert asked == [("opt", _Options, owner)]
    assert seen == [_Options(root="/srv")]


@pytest.mark.parametrize("model", [None, _Options])
def test_without_settings_options_are_the_defaults(model: Any) -> None:
    """A plugin without a model gets an empty frozen one, a plugin with one its defaults."""
    seen = list[Any]()
    assert load_one(with_options(model, seen)).error is None
    assert seen[0].model_dump() == ({} if model is None else {"root": "/"})
    with pytest.raises(ValueError, match="frozen"):
        seen[0].root = "/etc"


def test_a_settings_error_is_the_plugins_failure() -> None:
    """A table that does not fit fails that plugin with the settings' own error, before its other hooks are called."""

    def options_for(plugin: str, model: object, owner: Owner) -> BaseModel:
        raise SettingsError("bad", key=f"plugins.options.{plugin}.root", source="settings.toml:7")

    seen = list[object]()
    record = load_one(with_options(_Options, seen), options_for=options_for)
    assert isinstance(record.error, SettingsError)
    assert record.error.source == "settings.toml:7"
    assert seen == []


def test_a_required_option_that_nobody_sets_is_reported() -> None:
    """Without settings a required key is a SettingsError that names it and its owner."""

    class Strict(BaseModel):
        token_env: str

    record = load_one((Owner("opt", "dist", "1"), with_options(Strict, [])))
    assert isinstance(record.error, SettingsError)
    assert record.error.key == "plugins.options.opt.token_env"
    assert "Field required (key plugins.options.opt.token_env, plugin 'opt' of dist 1)" in str(record.error)


@pytest.mark.parametrize("model", [{"root": "/"}, dict, _Options(), [_Options]])
def test_options_that_are_no_model_are_reported(model: object) -> None:
    """`atlas_options` returns a pydantic model class and nothing else."""
    message = failure(with_options(model, []), PluginResultError)
    assert "what hook atlas_options returned is" in message
    assert "expected a pydantic model class" in message


def test_an_options_model_that_raises_is_reported() -> None:
    """A validator of the plugin that exits is the plugin's failure."""

    class Exiting(_Options):
        def model_post_init(self, context: object, /) -> None:
            raise SystemExit(5)

    message = failure(with_options(Exiting, []), PluginResultError)
    assert "its options model raised: SystemExit: 5" in message


def test_every_hook_is_asked() -> None:
    """The host calls each hook that there is; a new one can't be forgotten."""
    asked = []
    module = ModuleType("everything")
    for hook in HOOKS:

        def implementation(hook: str = hook) -> object:
            asked.append(hook)
            return None if hook == "atlas_options" else []

        setattr(module, hook, hookimpl(implementation))
    assert load_one(module).error is None
    assert asked == [
        "atlas_options",
        "atlas_tool_providers",
        "atlas_llm_providers",
        "atlas_executors",
        "atlas_agent_types",
        "atlas_observers",
    ]
    assert sorted(asked) == sorted(HOOKS)


def test_an_empty_discovery_is_the_default() -> None:
    """A host without discovery knows what it was given and nothing else."""
    assert PluginHost().records == PluginHost(Discovery()).records == ()
