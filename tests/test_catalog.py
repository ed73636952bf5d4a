"""The catalogue: names to objects and owners, the same whatever order plugins come in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.catalog import Catalog, Kind, Offer, Offers, PluginRecord
from atlas_core.discovery import Discovery
from atlas_core.errors import (
    AtlasError,
    PluginConflictError,
    PluginLoadError,
    PluginResultError,
    SettingsError,
)
from atlas_core.interfaces.agents import AgentTypeSpec
from atlas_core.interfaces.executors import ExecutorSpec
from atlas_core.interfaces.llm import LLMProviderSpec
from atlas_core.interfaces.tools import ToolProvider
from atlas_core.metadata import InstalledPlugin
from atlas_core.names import same_name
from atlas_core.owner import Owner
from atlas_core.tools.function import FunctionTool
from atlas_core.tools.registry import ToolRegistry


def send(to: str) -> str:
    """Send something to somebody."""
    return to


def tool(name: str) -> FunctionTool:
    """Make a tool of a name."""
    return FunctionTool(send, name=name)


def _nothing(options: Any) -> Any:
    raise AssertionError("a catalogue makes nothing")


class Source(ToolProvider):
    async def tools(self) -> list[Any]:
        raise AssertionError("a catalogue asks nothing")


class Observer:
    def on_event(self, event: object) -> None: ...


def loaded(
    plugin: str,
    *tools: str,
    llms: tuple[str, ...] = (),
    executors: tuple[str, ...] = (),
    agents: tuple[str, ...] = (),
    sources: int = 0,
    observers: int = 0,
) -> PluginRecord:
    """Make the record of a plugin that offers these names."""
    owner = Owner(plugin, f"dist-{plugin}", "1.0")
    offers = Offers(
        tools=tuple(Offer(name=n, value=tool(n), owner=owner) for n in tools),
        tool_providers=tuple(Offer(name="Source", value=Source(), owner=owner) for _ in range(sources)),
        llm_providers=tuple(Offer(name=n, value=LLMProviderSpec(name=n, factory=_nothing), owner=owner) for n in llms),
        executors=tuple(Offer(name=n, value=ExecutorSpec(name=n, factory=_nothing), owner=owner) for n in executors),
        agent_types=tuple(Offer(name=n, value=AgentTypeSpec(name=n, factory=_nothing), owner=owner) for n in agents),
        observers=tuple(Offer(name="Observer", value=Observer(), owner=owner) for _ in range(observers)),
    )
    return PluginRecord(owner=owner, status="loaded", offers=offers)


def installed(plugin: str, *offers: str) -> InstalledPlugin:
    """Make what the metadata of a plugin says."""
    return InstalledPlugin(name=plugin, distribution=f"dist-{plugin}", version="1.0", target=plugin, offers=offers)


def failed(plugin: str, *declared: str, error: PluginLoadError | SettingsError | None = None) -> PluginRecord:
    """Make the record of a plugin that failed and had declared these offers."""
    entry = installed(plugin, *declared)
    error = error or PluginLoadError(
        f"plugin {plugin!r} did not import: ImportError: no libfoo",
        plugin=plugin,
        distribution=entry.distribution,
        owner=str(entry.owner),
        remedy="install libfoo",
        cause="Traceback ...",
    )
    return PluginRecord(owner=entry.owner, plugin=entry, status="failed", error=error)


def test_names_lead_to_objects_and_owners() -> None:
    """Each kind is a mapping by name, each offer says whose it is, and all of it is read-only."""
    record = loaded("p", "send", llms=("gpt",), executors=("fast",), agents=("react",), sources=1, observers=2)
    catalog = Catalog([record])
    assert [(o.name, o.value.name, o.owner) for o in catalog.tools] == [("send", "send", record.owner)]
    assert list(catalog.llm_providers) == ["gpt"]
    assert catalog.executors["fast"].value.name == "fast"
    assert catalog.agent_types["react"].owner == record.owner
    assert [o.owner.plugin for o in (*catalog.tool_providers, *catalog.observers)] == ["p", "p", "p"]
    assert (catalog.failed, catalog.records) == ((), (record,))
    with pytest.raises(TypeError):
        catalog.executors["more"] = catalog.executors["fast"]  # type: ignore[index]  # that is the point
    assert record.offers is not None
    assert record.offers.names == ("agent.react", "executor.fast", "llm.gpt", "tool.send")


@pytest.mark.parametrize("name", ["my-tool", "my_tool", "My_Tool"])
def test_names_compare_loosely(name: str) -> None:
    """Dash, underscore and case make no difference; a point is part of a tool's name."""
    assert Catalog([loaded("p", "my_tool")]).find("tool", name).value.name == "my_tool"


def test_what_the_same_plugin_offers_counts_once() -> None:
    """A record that is given twice, as the kernel's own and as chosen, is no conflict with itself (case 98)."""
    record = loaded("p", "send", observers=1)
    catalog = Catalog([record, record])
    assert (len(catalog.tools), len(catalog.observers), catalog.contested("tool")) == (1, 1, ())


KINDS: list[tuple[Kind, str, str]] = [
    ("tool", "tools", "set plugins.prefix.p1 or plugins.prefix.p2 to rename one"),
    ("llm", "llms", "enable only one of them"),
    ("executor", "executors", "enable only one of them"),
    ("agent", "agents", "enable only one of them"),
]


def offering(plugin: str, field: str, *names: str) -> PluginRecord:
    """Make the record of a plugin that offers names of one kind."""
    return loaded(plugin, *names) if field == "tools" else loaded(plugin, **{field: names})  # type: ignore[arg-type]  # a kind's field


@pytest.mark.parametrize(("kind", "field", "remedy"), KINDS)
@pytest.mark.parametrize("flip", [False, True], ids=["in one order", "in the other"])
def test_a_name_offered_twice_is_a_conflict(kind: Any, field: str, remedy: str, *, flip: bool) -> None:
    """Neither owner wins, in either order; the error names both and the remedy, other names work (case 88)."""
    records = [offering("p1", field, "send", "one"), offering("p2", field, "Send", "two")]
    catalog = Catalog(reversed(records) if flip else records)
    with pytest.raises(PluginConflictError) as caught:
        catalog.find(kind, "send")
    error = caught.value
    assert (error.name, error.owners) == ("Send", ("plugin 'p1' of dist-p1 1.0", "plugin 'p2' of dist-p2 1.0"))
    assert str(error).endswith(
        f"'Send' is offered by plugin 'p1' of dist-p1 1.0 and by plugin 'p2' of dist-p2 1.0; {remedy}"
    )
    assert catalog.contested(kind) == ("Send",)
    assert [catalog.find(kind, name).owner.plugin for name in ("one", "two")] == ["p1", "p2"]
    assert "send" not in {same_name(o.name) for o in catalog.tools}


def test_a_prefix_settles_a_conflict_of_tools() -> None:
    """`plugins.prefix` renames all tools of one plugin, and the plain name is the other's (case 88)."""
    catalog = Catalog([loaded("p1", "send", sources=1), loaded("p-2", "send", sources=1)], prefixes={"P_2": "web"})
    assert [(o.name, o.prefix, o.owner.plugin) for o in catalog.tools] == [
        ("send", "", "p1"),
        ("web_send", "web", "p-2"),
    ]
    assert catalog.find("tool", "web-send").owner.plugin == "p-2"
    assert [(o.owner.plugin, o.prefix) for o in catalog.tool_providers] == [("p1", ""), ("p-2", "web")]


def test_a_prefix_may_clash_as_well() -> None:
    """Two plugins under one prefix conflict under the prefixed name."""
    catalog = Catalog([loaded("p1", "send"), loaded("p2", "send")], prefixes={"p1": "x", "p2": "x"})
    assert catalog.contested("tool") == ("x_send",)


@pytest.mark.parametrize("prefix", ["web", "web_", "web.", "srv/", "a-b"])
def test_prefixed_names_are_those_of_the_registry(prefix: str) -> None:
    """A tool is found under the very name that its registration will give it."""
    (offer,) = Catalog([loaded("p", "send")], prefixes={"p": prefix}).tools
    assert ToolRegistry().register(offer.value, prefix=offer.prefix) == offer.name


@pytest.mark.parametrize("prefix", ["", " ", "a b", "*", "-x", "ä"])
def test_a_prefix_that_no_tool_could_have_is_refused(prefix: str) -> None:
    """The error names the key and the value."""
    with pytest.raises(SettingsError, match=r"prefix .* can't begin a tool's name \(key plugins\.prefix\.p\); use"):
        Catalog([], prefixes={"p": prefix})


@pytest.mark.parametrize(
    ("kind", "word"),
    [("tool", "a tool"), ("llm", "a model provider"), ("executor", "an executor"), ("agent", "an agent type")],
)
def test_a_name_that_nobody_offers_gets_a_suggestion(kind: Any, word: str) -> None:
    """The error says what kind of thing was looked for, and the nearest name or all there are."""
    catalog = Catalog([loaded("p", "parallel", llms=("parallel",), executors=("parallel",), agents=("parallel",))])
    with pytest.raises(SettingsError) as caught:
        catalog.find(kind, "paralell")
    assert str(caught.value) == f"no enabled plugin offers {word} named 'paralell'; did you mean 'parallel'?"
    with pytest.raises(SettingsError, match="; on offer: parallel"):
        catalog.find(kind, "zzz")


def test_an_installed_plugin_that_declares_the_name_is_named() -> None:
    """What is installed and not enabled is the best remedy; what is chosen is not proposed again."""
    discovery = Discovery(plugins=(installed("p", "tool.gone"), installed("web", "tool.Web-Search", "llm.x")))
    chosen = PluginRecord(owner=installed("p").owner, plugin=installed("p", "tool.gone"), offers=Offers())
    catalog = Catalog([chosen], discovery=discovery)
    with pytest.raises(SettingsError, match=r"plugin 'web' of dist-web offers it: add it to plugins\.enabled"):
        catalog.find("tool", "web_search")
    with pytest.raises(SettingsError, match="none is on offer"):
        catalog.find("tool", "gone")


# Plugins that failed.


def test_a_failed_plugin_that_declares_the_name_is_the_report() -> None:
    """A profile that needs what a broken plugin declares fails with that plugin's own report."""
    records = [failed("aaa"), failed("web", "tool.search", "executor.far"), loaded("ok", "send")]
    catalog = Catalog(records)
    with pytest.raises(PluginLoadError) as caught:
        catalog.find("tool", "Search")
    assert str(caught.value) == str(records[1].error)
    assert (caught.value.plugin, caught.value.cause) == ("web", "Traceback ...")
    with pytest.raises(PluginLoadError, match="plugin 'web' did not import"):
        catalog.find("executor", "far")
    assert [r.name for r in catalog.failed] == ["aaa", "web"]


def test_a_declared_name_is_compared_with_its_prefix() -> None:
    """Where a prefix renames a broken plugin's tools, the prefixed name leads to its report."""
    catalog = Catalog([failed("web", "tool.search")], prefixes={"web": "w"})
    with pytest.raises(PluginLoadError) as caught:
        catalog.find("tool", "w_search")
    assert caught.value.problem.startswith("plugin 'web' did not import")


def test_an_unresolved_name_tells_of_a_plugin_that_might_offer_it() -> None:
    """Nothing declares the name and a plugin failed: the error is of that plugin, and keeps the suggestion."""
    catalog = Catalog([loaded("ok", "send"), failed("web")])
    with pytest.raises(PluginLoadError) as caught:
        catalog.find("tool", "sent")
    assert str(caught.value) == (
        "no enabled plugin offers a tool named 'sent' (did you mean 'send'?), and one that might failed: "
        "plugin 'web' did not import: ImportError: no libfoo (plugin 'web' of dist-web 1.0); install libfoo"
    )
    assert caught.value.cause == "Traceback ..."


def test_a_profile_that_does_not_need_it_is_not_disturbed() -> None:
    """What healthy plugins offer is found, whatever else failed."""
    assert Catalog([failed("web", "tool.search"), loaded("ok", "send")]).find("tool", "send").owner.plugin == "ok"


def test_options_that_do_not_fit_are_reported_as_such() -> None:
    """A plugin that failed for its settings is reported with the settings' error."""
    error = SettingsError("bad", key="plugins.options.web.root", source="settings.toml:3")
    with pytest.raises(SettingsError) as caught:
        Catalog([failed("web", "tool.search", error=error)]).find("tool", "search")
    assert (caught.value.key, caught.value.source) == ("plugins.options.web.root", "settings.toml:3")


def test_an_error_is_raised_anew_each_time() -> None:
    """The record's own error keeps no traceback of those who asked, and gets no longer."""
    record = failed("web", "tool.search")
    catalog = Catalog([record])
    texts = set()
    for name in ("search", "search", "other", "other"):
        with pytest.raises(PluginLoadError) as caught:
            catalog.find("tool", name)
        texts.add(str(caught.value))
        assert caught.value is not record.error
    assert len(texts) == 2
    assert record.error is not None
    assert record.error.__traceback__ is None


# The law: order makes no difference.

NAMES = st.sampled_from(["send", "Send", "se-nd", "read", "x_read", "write"])
RECORDS = st.lists(
    st.one_of(
        st.builds(
            lambda plugin, tools, runs: loaded(plugin, *tools, executors=tuple(runs), observers=1, sources=1),
            st.sampled_from(["a", "b", "c", "d", "E"]),
            st.lists(NAMES, unique_by=same_name, max_size=3),
            st.lists(NAMES, unique_by=same_name, max_size=2),
        ),
        st.builds(failed, st.sampled_from(["f", "g"]), st.sampled_from(["tool.send", "executor.read", "llm.x"])),
    ),
    max_size=6,
    unique_by=lambda record: record.owner,
)


def outcome(catalog: Catalog, kind: Any, name: str) -> object:
    """Return what a look-up comes to, in words that can be compared."""
    try:
        offer = catalog.find(kind, name)
    except AtlasError as exc:
        return type(exc), str(exc)
    return offer.name, offer.owner, id(offer.value)


def contents(catalog: Catalog) -> list[object]:
    """Return all that a catalogue holds, in words that can be compared."""
    looked_up = [outcome(catalog, kind, name) for kind in ("tool", "executor", "llm") for name in ("send", "read", "q")]
    listed = (*catalog.tools, *catalog.tool_providers, *catalog.observers, *catalog.executors.values())
    return [
        *looked_up,
        *((o.name, o.owner, id(o.value)) for o in listed),
        *catalog.contested("tool"),
        *(r.owner for r in catalog.records),
    ]


@given(records=RECORDS, data=st.data())
def test_contents_do_not_depend_on_the_order_of_plugins(records: list[PluginRecord], data: st.DataObject) -> None:
    """Any order of the same plugins gives the same names, owners, lists, conflicts and errors (cases 88, 102)."""
    shuffled = data.draw(st.permutations(records))
    prefixes = {"a": "x"}
    assert contents(Catalog(records, prefixes=prefixes)) == contents(Catalog(shuffled, prefixes=prefixes))


@given(records=RECORDS)
def test_every_offer_is_found_or_contested(records: list[PluginRecord]) -> None:
    """No offer is lost: under its name it is found with its owner, or its name is a conflict that names the owner."""
    catalog = Catalog(records)
    for record in records:
        for offer in record.offers.tools if record.offers is not None else ():
            contested = same_name(offer.name) in map(same_name, catalog.contested("tool"))
            if not contested:
                assert catalog.find("tool", offer.name).owner == record.owner
                continue
            with pytest.raises(PluginConflictError) as caught:
                catalog.find("tool", offer.name)
            assert str(record.owner) in caught.value.owners


def test_result_errors_keep_their_class() -> None:
    """The class of a failure survives being raised for a name."""
    error = PluginResultError("hook raised", plugin="web")
    record = PluginRecord(owner=Owner("web"), status="failed", error=error)
    with pytest.raises(PluginResultError, match="and one that might failed: hook raised"):
        Catalog([record]).find("llm", "gpt")
