"""The kernel joins settings, plugins and the runtime; two kernels share nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from atlas_core import (
    AgentFactory,
    AgentService,
    AgentTypeSpec,
    BaseLLM,
    BaseToolExecutor,
    ExecutorSpec,
    Kernel,
    LLMProviderSpec,
    PluginConflictError,
    PluginError,
    PluginHookError,
    PluginLoadError,
    PluginResultError,
    RunEnded,
    ServiceNotReadyError,
    SettingsError,
    ToolCall,
    ToolProvider,
    hookimpl,
)
from atlas_core.testing import FakeLLM, RecordingExecutor, RecordingObserver
from tests.plugin_factory import lay_out


def settings(profile: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return settings with one profile, changed as told."""
    agents = {
        "default_profile": "one",
        "profiles": {"connections": {"one": {"connection_name": "main", "tools": ["*"], **(profile or {})}}},
    }
    return {"ai": {"connections": {"main": {"backend": "scripted"}}, "agents": agents}, **more}


class Scripted:
    """A plugin that offers the provider `scripted`."""

    def __init__(self, *script: Any) -> None:
        self.models: list[FakeLLM] = []
        self.script = script

    @hookimpl
    def atlas_llm_providers(self) -> list[LLMProviderSpec]:
        def make(config: Any) -> BaseLLM:
            self.models.append(FakeLLM(self.script))
            return self.models[-1]

        return [LLMProviderSpec(name="scripted", factory=make)]


class Tools:
    """A plugin that offers functions."""

    def __init__(self, *tools: Any) -> None:
        self.tools = tools

    @hookimpl
    def atlas_tool_providers(self) -> list[Any]:
        return list(self.tools)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# One kernel ------------------------------------------------------------------------------------------------------


async def test_an_agent_from_plugins_given_directly() -> None:
    """Discovery is off, and what is given is enabled."""
    observer = RecordingObserver()
    plugins = [("scripted", Scripted(ToolCall.of("add", a=2, b=2), "4")), ("maths", Tools(add))]
    async with Kernel(settings(), plugins=plugins, observers=[observer]) as kernel:
        agent = kernel.agent()
        assert await agent.run("2+2?") == "4"
        assert [(e.plugin, e.distribution) for e in observer.events[1:5]] == [
            ("scripted", ""),
            ("scripted", ""),
            ("maths", ""),
            ("maths", ""),
        ]
        assert (observer.events[0].plugin, observer.events[0].distribution) == ("builtin", "atlas-kernel")
        assert kernel.llms.get("MAIN") is kernel.llms.get("main")
    with pytest.raises(ServiceNotReadyError):
        await agent.run("x")


async def test_two_kernels_share_nothing() -> None:
    """Neither plugins nor models nor tools."""
    first, second = Scripted("a"), Scripted("b")
    one, two = (Kernel(settings(), plugins=[("scripted", p)]) for p in (first, second))
    async with one, two:
        assert await one.agent().run("x") == "a"
        assert await two.agent().run("x") == "b"
        assert one.agent().parts.executor is not two.agent().parts.executor  # type: ignore[attr-defined]  # ours


async def test_agents_of_one_profile_share_model_and_executor() -> None:
    """One model per connection, one executor per choice of options."""
    plugin = Scripted("a")
    async with Kernel(settings(), plugins=[("scripted", plugin)]) as kernel:
        kernel.agent()
        kernel.agent("ONE")
        assert len(plugin.models) == 1
        assert len(kernel._executors) == 1


async def test_a_second_agent_type_from_a_plugin_is_selected_by_name() -> None:
    """An agent type adds to the kernel's own or replaces it, with options of its own."""
    from pydantic import BaseModel

    class Options(BaseModel):
        manners: str = "please"

    class Polite(AgentService):
        def system_prompt(self) -> str:
            options = self.parts.options
            assert isinstance(options, Options)
            return f"{super().system_prompt()} Say {options.manners}."

    class Types:
        @hookimpl
        def atlas_agent_types(self) -> list[AgentTypeSpec]:
            return [AgentTypeSpec(name="polite", factory=Polite.from_parts, options=Options)]

    plugin = Scripted("hello")
    profile = {"type": "polite", "system_prompt": "Help.", "options": {"manners": "thanks"}}
    plugins = [("scripted", plugin), ("types", Types())]
    async with Kernel(settings(profile), plugins=plugins) as kernel:
        assert await kernel.agent().run("x") == "hello"
        assert plugin.models[0].requests[0].system == "Help. Say thanks."
    with pytest.raises(SettingsError, match=r"manner.*did you mean 'manners'"):
        Kernel(settings({"type": "polite", "options": {"manner": 1}}), plugins=plugins).agent()


async def test_an_executor_from_a_plugin_is_selected_by_name_with_its_own_table() -> None:
    """The table's keys besides `name` belong to the executor."""
    from pydantic import BaseModel

    made: list[Any] = []

    class Options(BaseModel):
        workers: int = 1

    class Executors:
        @hookimpl
        def atlas_executors(self) -> list[ExecutorSpec]:
            def make(options: Any) -> BaseToolExecutor:
                made.append(options)
                return RecordingExecutor()

            return [ExecutorSpec(name="noting", factory=make, options=Options)]

    plugins = [("s", Scripted(ToolCall.of("add", a=1, b=1), "2")), ("e", Executors()), ("t", Tools(add))]
    choice = {"executor": {"name": "noting", "workers": 3}}
    async with Kernel(settings(choice), plugins=plugins) as kernel:
        agent = kernel.agent()
        await agent.run("x")
        assert made == [Options(workers=3)]
        assert agent.parts.executor.batches  # type: ignore[attr-defined]  # ours
    with pytest.raises(SettingsError, match="worker"):
        Kernel(settings({"executor": {"name": "noting", "worker": 3}}), plugins=plugins).agent()
    with pytest.raises(SettingsError, match=r"no enabled plugin offers an executor named 'paralel'.*'parallel'"):
        Kernel(settings({"executor": "paralel"}), plugins=plugins).agent()
    with pytest.raises(SettingsError, match="max_concurrency"):
        Kernel(settings({"executor": {"name": "parallel", "max_concurrency": 0}}), plugins=plugins).agent()


async def test_tools_known_only_at_run_time() -> None:
    """A tool provider is started before its tools are asked for, once per kernel, and stopped."""
    log: list[str] = []

    class Server(ToolProvider):
        async def start(self) -> None:
            log.append("start")

        async def tools(self) -> list[Any]:
            return [add]

        async def stop(self) -> None:
            log.append("stop")

    plugins = [("s", Scripted(ToolCall.of("srv_add", a=1, b=1), "2")), ("server", Tools(Server()))]
    chosen = settings({"tools": ["srv_add"]}, plugins={"prefix": {"server": "srv"}})
    async with Kernel(chosen, plugins=plugins) as kernel:
        answer = await kernel.agent().run("x")
        await kernel.agent().start()
        assert [r.value for r in answer.result.tool_results] == [2]
        assert answer.result.tool_results[0].plugin == "server"
    assert log == ["start", "stop"]


async def test_a_tool_provider_that_fails_hurts_only_those_who_need_it() -> None:
    """A literal name that stays unresolved needs it; a pattern does not."""

    class Down(ToolProvider):
        async def start(self) -> None:
            raise OSError("refused")

        async def tools(self) -> list[Any]:
            return []

    plugins = [("s", Scripted("hi", "hi")), ("server", Tools(Down(), add))]
    async with Kernel(settings({"tools": ["add", "far_*"]}), plugins=plugins) as kernel:
        assert await kernel.agent().run("x") == "hi"
        assert any("refused" in w for w in kernel.warnings)
    async with Kernel(settings({"tools": ["far_away"]}), plugins=plugins) as kernel:
        with pytest.raises(PluginResultError, match=r"did not start: OSError: refused \(plugin 'server'\)"):
            await kernel.agent().run("x")


async def test_one_faulty_tool_of_a_provider_takes_none_of_the_others_away() -> None:
    """It is skipped and told."""

    class Server(ToolProvider):
        async def tools(self) -> list[Any]:
            return [add, 3]

    plugins = [("s", Scripted("hi")), ("server", Tools(Server()))]
    async with Kernel(settings(), plugins=plugins) as kernel:
        agent = kernel.agent()
        await agent.run("x")
        assert agent.parts.tools.names == ["add"]  # type: ignore[attr-defined]  # ours
        assert any("int" in warning for warning in kernel.warnings)


async def test_an_observer_that_does_not_start_breaks_no_run() -> None:
    """It is told, and the run goes on."""

    class Down:
        async def start(self) -> None:
            raise OSError("disk full")

        def on_event(self, event: Any) -> None:
            pass

    async with Kernel(settings(), plugins=[("s", Scripted("hi"))], observers=[Down()]) as kernel:
        assert await kernel.agent().run("x") == "hi"
        assert any("observer Down did not start: OSError: disk full" in warning for warning in kernel.warnings)


async def test_observers_of_plugins_are_started_told_and_stopped() -> None:
    """Once per kernel, in name order, one failing `stop` keeps no other from being stopped."""
    log: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        async def start(self) -> None:
            log.append(f"start {self.name}")

        def on_event(self, event: Any) -> None:
            if isinstance(event, RunEnded):
                log.append(f"end {self.name}")

        async def stop(self) -> None:
            log.append(f"stop {self.name}")
            if self.name == "b":
                raise OSError

    class Watchers:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def atlas_observers(self) -> list[Any]:
            return [Noting(self.name)]

    plugins = [("s", Scripted("hi", "hi")), ("b", Watchers("b")), ("a", Watchers("a"))]
    async with Kernel(settings(), plugins=plugins) as kernel:
        await kernel.agent().run("x")
        await kernel.agent().run("x")
    assert log == ["start a", "start b", "end a", "end b", "end a", "end b", "stop b", "stop a"]


# Conflicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("p1", "p2"), ("p2", "p1")])
async def test_a_tool_offered_twice_is_an_error_naming_both_owners_in_both_orders(order: tuple[str, str]) -> None:
    """Case 88: no silent replacement; profiles that don't use the name run; a prefix settles it."""

    def send(to: str) -> str:
        """Send."""
        return to

    plugins = [("s", Scripted("hi", "hi")), *((name, Tools(send)) for name in order), ("other", Tools(add))]
    with pytest.raises(PluginConflictError) as caught:
        Kernel(settings({"tools": ["send"]}), plugins=plugins).agent()
    assert str(caught.value) == (
        "tool 'send' is offered by plugin 'p1' and by plugin 'p2'; "
        "set plugins.prefix.p1 or plugins.prefix.p2 to rename one"
    )
    with pytest.raises(PluginConflictError):
        Kernel(settings({"tools": ["se*"]}), plugins=plugins).agent()
    async with Kernel(settings({"tools": ["add"]}), plugins=plugins) as kernel:
        assert await kernel.agent().run("x") == "hi"
    prefixed = settings({"tools": ["*"]}, plugins={"prefix": {"p2": "two"}})
    async with Kernel(prefixed, plugins=plugins) as kernel:
        agent = kernel.agent()
        await agent.start()
        assert agent.parts.tools.names == ["add", "send", "two_send"]  # type: ignore[attr-defined]  # ours


# What the settings name and what is there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ({"type": "reakt"}, r"named 'reakt' \(key ai.agents.profiles.connections.one.type.*did you mean 'react'"),
        ({"connection_name": "mian"}, r"'mian'.*did you mean 'main'"),
        ({"tools": ["ad"]}, r"named 'ad'.*key ai.agents.profiles.connections.one.tools.*did you mean 'add'"),
        ({"executor": "sink"}, "did you mean 'sync'"),
    ],
    ids=["type", "connection", "tool", "executor"],
)
def test_a_name_that_is_not_there_is_an_error_with_a_suggestion(profile: dict[str, Any], text: str) -> None:
    """Before any model call, at `agent()`."""
    kernel = Kernel(settings(profile), plugins=[("s", Scripted()), ("t", Tools(add))])
    with pytest.raises(SettingsError, match=text):
        kernel.agent()


def test_an_unknown_profile_or_backend_is_an_error_with_a_suggestion() -> None:
    """Names compare loosely, and what is near is named."""
    kernel = Kernel(settings(), plugins=[("s", Scripted())])
    with pytest.raises(SettingsError, match="'on'"):
        kernel.agent("on")
    with pytest.raises(SettingsError, match="a model provider named 'scripted'"):
        Kernel(settings(), plugins=[]).agent()


@pytest.mark.parametrize("table", [{"options": {"scriptd": {"x": 1}}}, {"prefix": {"scriptd": "x"}}])
def test_a_table_for_a_plugin_that_is_not_there_is_an_error(table: dict[str, Any]) -> None:
    """A misspelt table would leave the plugin at its defaults."""
    kernel = Kernel(settings(plugins=table), plugins=[("scripted", Scripted())])
    with pytest.raises(SettingsError, match=r"'scriptd' is not installed.*did you mean 'scripted'"):
        kernel.agent()


async def test_names_that_differ_by_a_dot_are_two_tools() -> None:
    """Case 14: `calendar.add` and `calendar_add` don't merge, in registry, catalogue and permissions."""
    from atlas_core import FunctionTool

    dotted, plain = FunctionTool(add, name="calendar.add"), FunctionTool(add, name="calendar_add")
    plugins = [("s", Scripted()), ("a", Tools(dotted)), ("b", Tools(plain))]
    async with Kernel(settings({"tools": ["calendar.add"]}), plugins=plugins) as kernel:
        agent = kernel.agent()
        assert agent.parts.tools.names == ["calendar.add"]  # type: ignore[attr-defined]  # ours


def test_one_connection_needs_no_name_and_several_do() -> None:
    """The only connection is meant; among several the profile must choose."""
    both = settings({"connection_name": ""})
    Kernel(both, plugins=[("s", Scripted())]).agent()
    both["ai"]["connections"]["other"] = {"backend": "scripted"}
    with pytest.raises(SettingsError, match=r"names no connection.*main, other"):
        Kernel(both, plugins=[("s", Scripted())]).agent()
    both["ai"]["connections"] = {}
    with pytest.raises(SettingsError, match="names no connection"):
        Kernel(both, plugins=[("s", Scripted())]).agent()


async def test_disabled_agents_are_made_and_refuse_to_run() -> None:
    """`ai.agents.enabled = false` is a switch for production."""
    off = settings()
    off["ai"]["agents"]["enabled"] = False
    async with Kernel(off, plugins=[("s", Scripted())]) as kernel:
        agent = kernel.agent()
        with pytest.raises(ServiceNotReadyError, match=r"ai.agents.enabled is false"):
            await agent.run("x")


async def test_a_connections_output_limit_reaches_the_model() -> None:
    """`max_output_tokens` is a key of the connection."""
    plugin = Scripted("hi")
    limited = settings()
    limited["ai"]["connections"]["main"]["max_output_tokens"] = 77
    async with Kernel(limited, plugins=[("s", plugin)]) as kernel:
        await kernel.agent().run("x")
    assert plugin.models[0].requests[0].max_output_tokens == 77


# Factories that break their contract -----------------------------------------------------------------------------


class Broken:
    """A plugin whose factories are wrong, one way or another."""

    def __init__(self, make: Any) -> None:
        self.make = make

    @hookimpl
    def atlas_llm_providers(self) -> list[LLMProviderSpec]:
        return [LLMProviderSpec(name="scripted", factory=self.make)]

    @hookimpl
    def atlas_executors(self) -> list[ExecutorSpec]:
        return [ExecutorSpec(name="broken", factory=self.make)]

    @hookimpl
    def atlas_agent_types(self) -> list[AgentTypeSpec]:
        return [AgentTypeSpec(name="broken", factory=self.make)]


def raising(_: Any) -> Any:
    """Fail as foreign code does."""
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("make", "text"), [(raising, "KeyError"), (lambda _: 3, "int")], ids=["raises", "returns a number"]
)
@pytest.mark.parametrize("kind", ["llm", "executor", "agent"])
def test_a_factory_that_breaks_its_contract_is_reported_with_its_owner(kind: str, make: Any, text: str) -> None:
    """Typed, with the plugin's name."""
    profile = {"llm": {}, "executor": {"executor": "broken"}, "agent": {"type": "broken"}}[kind]
    plugins = [("bad", Broken(make))]
    if kind != "llm":
        chosen = settings(profile)
        chosen["ai"]["connections"]["main"]["backend"] = "fine"

        class Fine:
            @hookimpl
            def atlas_llm_providers(self) -> list[LLMProviderSpec]:
                return [LLMProviderSpec(name="fine", factory=lambda _: FakeLLM([]))]

        plugins.append(("fine", Fine()))  # type: ignore[arg-type]  # any object with hooks
    else:
        chosen = settings(profile)
    with pytest.raises(PluginResultError, match=f"{text}.*plugin 'bad'"):
        Kernel(chosen, plugins=plugins).agent()


def test_what_a_factory_says_in_atlas_own_words_is_passed_on() -> None:
    """A SettingsError of a factory is not wrapped."""

    def refuse(_: Any) -> Any:
        raise SettingsError("no key", remedy="set OPENAI_API_KEY")

    with pytest.raises(SettingsError, match="set OPENAI_API_KEY"):
        Kernel(settings(), plugins=[("bad", Broken(refuse))]).agent()


# Discovered plugins ----------------------------------------------------------------------------------------------

PROVIDER = """
    from atlas_core import BaseLLM, ChatMessage, LLMProviderSpec, LLMResponse, hookimpl

    class Echo(BaseLLM):
        label = "an echo"
        async def complete(self, request):
            return LLMResponse(message=ChatMessage.assistant(request.messages[-1].text))

    @hookimpl
    def atlas_llm_providers(options):
        return [LLMProviderSpec(name="echo", factory=lambda config: Echo())]
"""
GOOD = """
    from atlas_core import hookimpl

    def {name}(text: str) -> str:
        "Return the text."
        return text

    @hookimpl
    def atlas_tool_providers(options):
        return [{name}]
"""
FILE = """
    [default.plugins]
    enabled = ["kt-echo", "kt-good", "kt-bad"]

    [default.ai.connections.main]
    backend = "echo"

    [default.ai.agents]
    default_profile = "fine"

    [default.ai.agents.profiles.connections.fine]
    connection_name = "main"
    tools = ["good_tool"]

    [default.ai.agents.profiles.connections.needy]
    connection_name = "main"
    tools = ["bad_tool"]

    [default.ai.agents.profiles.connections.narrow]
    connection_name = "main"
    tools = []
    plugins = { disable = ["KT_bad", "kt.good"] }

    [lean.plugins]
    enabled = ["kt-echo", "kt_good"]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` with an echo provider and a tool plugin, and settings in the current folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, source in (("echo", PROVIDER), ("good", GOOD.format(name="good_tool"))):
        lay_out(folder, f"kt-{name}", plugins={f"kt-{name}": f"kt_{name}"}, modules={f"kt_{name}": dedent(source)})
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.toml").write_text(dedent(FILE), encoding="utf-8")
    yield folder
    for name in [m for m in sys.modules if m.startswith("kt_")]:
        del sys.modules[name]


def bad(folder: Path, source: str, *, offers: dict[str, str] | None = None) -> None:
    """Add the plugin `kt-bad`."""
    lay_out(
        folder, "kt-bad", "2.1", plugins={"kt-bad": "kt_bad"}, modules={"kt_bad": dedent(source)}, offers=offers or {}
    )


async def test_a_plugin_enabled_in_one_environment_and_disabled_in_another(site: Path) -> None:
    """The disabled one is never imported, and nothing of it is there."""
    bad(site, GOOD.format(name="bad_tool"))
    async with Kernel.from_settings(env="lean") as kernel:
        assert await kernel.agent().run("hello") == "hello"
        assert "kt_bad" not in sys.modules
        assert "kt_good" in sys.modules
        with pytest.raises(SettingsError, match=r"plugin 'kt-bad' of kt-bad offers it|named 'bad_tool'"):
            kernel.agent("needy")
    async with Kernel.from_settings() as kernel:
        await kernel.agent("needy").start()
        assert "kt_bad" in sys.modules


async def test_a_profile_may_go_without_a_plugin(site: Path) -> None:
    """Disabled in any spelling, it is not imported."""
    bad(site, GOOD.format(name="bad_tool"))
    async with Kernel.from_settings() as kernel:
        assert await kernel.agent("narrow").run("x") == "x"
    assert "kt_bad" not in sys.modules
    assert "kt_good" not in sys.modules


BROKEN = {
    "raises at import": ("raise RuntimeError('sorry')", PluginLoadError, "RuntimeError.*sorry"),
    "exits at import": ("import sys\nsys.exit(3)", PluginLoadError, "SystemExit"),
    "syntax": ("def (:", PluginLoadError, "SyntaxError"),
    "misspelt hook": (
        "from atlas_core import hookimpl\n@hookimpl\ndef atlas_tool_provider(options):\n    return []",
        PluginHookError,
        "atlas_tool_providers",
    ),
    "wrong signature": (
        "from atlas_core import hookimpl\n@hookimpl\ndef atlas_tool_providers(option):\n    return []",
        PluginHookError,
        "option",
    ),
    "async hook": (
        "from atlas_core import hookimpl\n@hookimpl\nasync def atlas_tool_providers(options):\n    return []",
        PluginHookError,
        "async",
    ),
    "broken object": (
        "from atlas_core import hookimpl\n@hookimpl\ndef atlas_executors(options):\n    return [3]",
        PluginResultError,
        "int",
    ),
    "half": (
        "from atlas_core import hookimpl\n@hookimpl\ndef atlas_tool_providers():\n    yield len\n    raise OSError",
        PluginError,
        "kt-bad",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_broken_plugin_is_reported_and_profiles_that_dont_need_it_run(site: Path, what: str) -> None:
    """Case 96: the error has distribution, version, entry point, cause and remedy."""
    source, kind, text = BROKEN[what]
    bad(site, source)
    async with Kernel.from_settings() as kernel:
        assert await kernel.agent().run("hello") == "hello"
        assert any("'kt-bad'" in warning for warning in kernel.warnings)
        with pytest.raises(kind, match=text) as caught:
            kernel.agent("needy")
    message = str(caught.value)
    assert "kt-bad 2.1" in message
    assert "kt-bad = kt_bad" in message
    assert caught.value.remedy
    assert [r.name for r in kernel.records if r.error is not None] == ["kt-bad"]


async def test_a_declared_name_leads_to_its_own_failed_plugin(site: Path) -> None:
    """A profile needs a plugin if a name it uses is declared by it."""
    bad(site, "raise RuntimeError('sorry')", offers={"tool.bad_tool": "kt_bad"})
    async with Kernel.from_settings() as kernel:
        with pytest.raises(PluginLoadError, match="sorry"):
            kernel.agent("needy")


async def test_two_distributions_with_one_name(site: Path) -> None:
    """Refused with both names unless `name@distribution` settles it."""
    bad(site, GOOD.format(name="bad_tool"))
    lay_out(site, "kt-rival", plugins={"kt-bad": "kt_rival"}, modules={"kt_rival": dedent(GOOD.format(name="rival"))})
    async with Kernel.from_settings() as kernel:
        assert await kernel.agent().run("hello") == "hello"
        with pytest.raises(PluginConflictError, match=r"kt-bad 2.1 and kt-rival 1.0.*kt-bad@kt-bad"):
            kernel.agent("needy")
    text = dedent(FILE).replace('"kt-bad"]', '"kt-bad@kt-rival"]').replace('"bad_tool"', '"rival"')
    Path("settings.toml").write_text(text, encoding="utf-8")
    async with Kernel.from_settings() as kernel:
        await kernel.agent("needy").start()
    assert "kt_bad" not in sys.modules


def test_an_enabled_plugin_that_is_not_installed_is_an_error(site: Path) -> None:
    """With the file, the line and a suggestion."""
    with pytest.raises(SettingsError, match=r"plugin 'kt-bad' is not installed.*settings.toml:3"):
        Kernel.from_settings().agent()


# The factory -----------------------------------------------------------------------------------------------------


async def test_the_factory_makes_an_agent_that_owns_its_kernel(site: Path) -> None:
    """`stop` closes the kernel it came with."""
    bad(site, GOOD.format(name="bad_tool"))
    agent = AgentFactory.create("fine")
    assert await agent.run("x") == "x"
    kernel_stop = agent._at_stop[0].__self__  # type: ignore[attr-defined]  # a bound method
    await agent.stop()
    assert not kernel_stop.is_ready
    with pytest.raises(ServiceNotReadyError):
        await agent.run("x")
    agent = AgentFactory.create(settings="settings.toml", env="lean")
    assert agent.run_sync("y") == "y"
    agent.stop_sync()


async def test_the_factory_takes_a_kernel_or_settings_not_both() -> None:
    """A caller's mistake is a TypeError."""
    kernel = Kernel(settings(), plugins=[("s", Scripted("hi"))])
    assert await AgentFactory.create(kernel=kernel).run("x") == "hi"
    with pytest.raises(TypeError, match="either kernel, or settings"):
        AgentFactory.create(kernel=kernel, env="x")
    with pytest.raises(TypeError, match="env chooses"):
        AgentFactory.create(settings={}, env="x")
    await kernel.stop()


async def test_a_foreign_agent_type_from_the_factory_stops_its_kernel_too(site: Path) -> None:
    """Even one that knows nothing of `at_stop`."""
    bad(
        site,
        """
        from atlas_core import AgentTypeSpec, Answer, RunOutcome, RunResult, hookimpl

        class Parrot:
            __slots__ = ("is_ready",)
            def __init__(self, parts): self.is_ready = True
            async def start(self): pass
            async def stop(self): self.is_ready = False
            async def run(self, input_message, history=None, **options): return self.run_sync(input_message)
            async def stream(self, input_message, history=None, **options): yield None
            def run_sync(self, input_message, history=None, **options):
                result = RunResult(run_id="", outcome=RunOutcome.ANSWERED, output="!", messages=(), new_messages=())
                return Answer(input_message, result)

        @hookimpl
        def atlas_agent_types(options):
            return [AgentTypeSpec(name="parrot", factory=Parrot)]
        """,
    )
    text = dedent(FILE).replace('tools = ["good_tool"]', 'type = "parrot"')
    Path("settings.toml").write_text(text, encoding="utf-8")
    agent: Any = AgentFactory.create()
    assert await agent.run("x") == "x"
    await agent.stop()
    assert not agent.is_ready
    assert agent._stop_kernel.__self__._state == "stopped"


async def test_without_settings_the_math_example_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The main job: no file, no key, no server."""
    monkeypatch.chdir(tmp_path)
    for name in ("ATLAS_ENV", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    agent = AgentFactory.create()
    answer = await agent.run("What is the square root of 144 multiplied by 5?")
    await agent.stop()
    assert "60" in answer
    assert [str(r.value) for r in answer.result.tool_results] == ["60"]


MATH = """
    [default.plugins]
    enabled = ["offline", "standard-tools"]

    [default.ai.connections.local]
    backend = "offline"

    [default.ai.agents]
    enabled = true
    default_profile = "math_agent"

    [default.ai.agents.profiles.connections.math_agent]
    name = "math_agent"
    description = "An agent capable of performing calculations."
    system_prompt_file = "math.txt"
    connection_name = "local"
    max_iterations = 10
    max_execution_time_seconds = 60
    tools = ["calculator_tool", "unit_converter"]
"""


async def test_the_math_agent_of_a_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file as users know it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.toml").write_text(dedent(MATH), encoding="utf-8")
    (tmp_path / "math.txt").write_text("You are a helpful assistant. Use tools for math.", encoding="utf-8")
    monkeypatch.setenv("ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__MATH_AGENT__MAX_ITERATIONS", "4")
    agent = AgentFactory.create("math_agent")
    answer = await agent.run("What is the square root of 144 multiplied by 5?")
    await agent.stop()
    assert "60" in answer
    assert agent.settings.max_iterations == 4
    assert agent.parts.system_prompt == "You are a helpful assistant. Use tools for math."
    assert agent.parts.tools.names == ["calculator_tool", "unit_converter"]
