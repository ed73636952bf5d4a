"""Plugins are chosen by name, and a name switched off stays off."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from atlas_core.discovery import Discovery, scan
from atlas_core.errors import PluginConflictError, PluginLoadError, SettingsError
from atlas_core.plugins import PluginHost
from atlas_core.selection import Selection, select_enabled
from tests.plugin_factory import importable, lay_out, tool_plugin


@pytest.fixture(name="installed")
def _installed(tmp_path: Path) -> Discovery:
    lay_out(tmp_path, "dist-a", "1.0", plugins={"web": "a", "my-plugin": "a.mine"})
    lay_out(tmp_path, "dist-b", "2.0", plugins={"web": "b", "only-b": "b"})
    return scan([str(tmp_path)])


def chosen(selection: Selection) -> list[str]:
    """Return what was chosen, each plugin with its distribution."""
    return [str(plugin) for plugin in selection.chosen]


def test_installed_is_not_enabled(installed: Discovery) -> None:
    """Without settings nothing is chosen, whatever is installed."""
    assert select_enabled(installed) == Selection()


def test_a_profile_widens_and_narrows_what_the_environment_enables(installed: Discovery) -> None:
    """`enable` adds to `enabled`, `disable` takes away from both."""
    assert chosen(select_enabled(installed, ["my-plugin"], ["only-b"])) == ["my-plugin@dist-a", "only-b@dist-b"]
    narrowed = select_enabled(installed, ["my-plugin", "only-b"], ["only-b"], ["only-b"])
    assert chosen(narrowed) == ["my-plugin@dist-a"]
    assert [str(plugin) for plugin in narrowed.disabled] == ["only-b@dist-b"]


@pytest.mark.parametrize("name", ["my-plugin", "my_plugin", "My.Plugin", "my-plugin@dist_a"])
def test_spellings_of_a_disabled_name_are_equal(installed: Discovery, name: str) -> None:
    """Dash, underscore, point and case make no difference to switching off (case 100)."""
    assert chosen(select_enabled(installed, ["MY_PLUGIN", "only_b"], disable=[name])) == ["only-b@dist-b"]


def test_a_single_text_is_one_name(installed: Discovery) -> None:
    """A text in place of a list is one name and not a sequence of letters (case 100)."""
    assert chosen(select_enabled(installed, "my-plugin", "only-b")) == ["my-plugin@dist-a", "only-b@dist-b"]
    assert chosen(select_enabled(installed, "my-plugin", "only-b", "only-b")) == ["my-plugin@dist-a"]


def test_an_unknown_disabled_name_is_a_warning(installed: Discovery) -> None:
    """Switching off what is not installed has no effect, and the user is told with a suggestion (case 100)."""
    selection = select_enabled(
        installed, disable=["only_c"], profile_key="p.plugins", source_of={"p.plugins.disable": "settings.toml:4"}.get
    )
    place = "key p.plugins.disable, set in settings.toml:4"
    assert selection.warnings == (f"plugin 'only_c' is disabled and not installed ({place}); did you mean 'only-b'?",)
    assert "(key plugins.disable); installed: " in select_enabled(installed, disable="zzz").warnings[0]


def test_an_unknown_enabled_name_is_an_error(installed: Discovery) -> None:
    """Enabling what is not installed names key, source and the nearest name."""
    with pytest.raises(SettingsError) as caught:
        select_enabled(installed, ["only-c"], source_of={"plugins.enabled": "ATLAS_PLUGINS__ENABLED"}.get)
    assert str(caught.value) == (
        "plugin 'only-c' is not installed (key plugins.enabled, set in ATLAS_PLUGINS__ENABLED); did you mean 'only-b'?"
    )
    with pytest.raises(SettingsError, match=r"key ai\.x\.plugins\.enable\)"):
        select_enabled(installed, enable=["only-c"], profile_key="ai.x.plugins")


def test_a_missing_plugin_that_is_disabled_is_no_error(installed: Discovery) -> None:
    """A profile can do without a plugin that its environment enables and this machine lacks; a warning remains."""
    selection = select_enabled(installed, ["my-plugin", "gone"], disable=["gone"])
    assert chosen(selection) == ["my-plugin@dist-a"]
    assert len(selection.warnings) == 1


def test_two_distributions_of_one_name_are_refused(installed: Discovery) -> None:
    """A name that two distributions offer is loaded from neither; others are (case 98)."""
    selection = select_enabled(installed, ["web", "only-b"])
    assert chosen(selection) == ["only-b@dist-b"]
    assert [(str(r.plugin), r.status) for r in selection.problems] == [
        ("web@dist-a", "failed"),
        ("web@dist-b", "failed"),
    ]
    assert all(isinstance(r.error, PluginConflictError) for r in selection.problems)


@pytest.mark.parametrize(
    ("enabled", "enable", "disable"),
    [
        (["web@dist-b"], [], []),
        (["web"], ["Web@Dist_B"], []),
        (["web@dist-b"], ["web"], []),
        (["web"], [], ["web@dist-a"]),
    ],
    ids=["in enabled", "in the profile", "named again without", "by disabling the other"],
)
def test_a_distribution_settles_which_is_meant(
    installed: Discovery, enabled: list[str], enable: list[str], disable: list[str]
) -> None:
    """`name@distribution` settles a conflict, wherever it stands."""
    selection = select_enabled(installed, enabled, enable, disable)
    assert (chosen(selection), selection.problems) == (["web@dist-b"], ())


def test_both_of_one_name_by_distribution_are_refused(installed: Discovery) -> None:
    """Two plugins of one name can't be told apart in settings, so both at once are a conflict."""
    selection = select_enabled(installed, ["web@dist-a", "web@dist-b"])
    assert (chosen(selection), len(selection.problems)) == ([], 2)


def test_plugins_given_directly_count_as_enabled(installed: Discovery) -> None:
    """A given plugin may be named like an installed one would be, and a profile can disable it."""
    selection = select_enabled(installed, ["Mine"], disable=["other_one"], given=["mine", "other-one"])
    assert (selection.given, selection.chosen, selection.warnings) == (("mine",), (), ())


@pytest.mark.parametrize("disable", ["q", "q@dist-q"])
def test_a_plugin_that_requires_a_disabled_one_is_refused(tmp_path: Path, disable: str) -> None:
    """z, whose distribution requires that of the disabled q, reports so and is not imported (case 104)."""
    lay_out(tmp_path, "dist-q", "1.0", plugins={"q": "q"})
    lay_out(tmp_path, "dist-z", "1.0", plugins={"z": "z"}, requires=["Dist.Q >= 1"])
    lay_out(tmp_path, "dist-ok", "1.0", plugins={"ok": "ok"}, requires=["dist-q; extra == 'more'"])
    selection = select_enabled(scan([str(tmp_path)]), ["q", "z", "ok"], disable=disable)
    assert chosen(selection) == ["ok@dist-ok"]
    (record,) = selection.problems
    assert isinstance(record.error, PluginLoadError)
    assert str(record.error) == (
        "plugin 'z' requires 'dist-q', whose plugin 'q' is disabled (plugin 'z' of dist-z 1.0); "
        "disable 'z' too, or don't disable 'q'"
    )


def test_a_distribution_with_another_plugin_may_be_required(tmp_path: Path) -> None:
    """Where only one of a distribution's plugins is disabled, or it is one's own, requiring it is fine."""
    lay_out(tmp_path, "dist-q", plugins={"q": "q", "r": "r"}, requires=["dist-q"])
    lay_out(tmp_path, "dist-z", plugins={"z": "z"}, requires=["dist-q"])
    selection = select_enabled(scan([str(tmp_path)]), ["r", "z"], disable=["q"])
    assert chosen(selection) == ["r@dist-q", "z@dist-z"]


def test_a_disabled_plugin_is_never_imported(tmp_path: Path) -> None:
    """However often plugins are loaded, a disabled one leaves no module and no offer (cases 100, 104)."""
    lay_out(tmp_path, "dist-on", plugins={"sel-on": "sel_on"}, modules={"sel_on": tool_plugin("on")})
    lay_out(tmp_path, "dist-off", plugins={"sel-off": "sel_off"}, modules={"sel_off": tool_plugin("off")})
    with importable(tmp_path):
        discovery = scan([str(tmp_path)])
        for _ in range(2):  # the second stands for a reload, a sub-agent's kernel, a worker
            host = PluginHost(discovery)
            selection = select_enabled(discovery, ["sel-on", "sel-off"], disable="SEL_OFF")
            records = host.load_selection(selection)
            assert [(r.name, r.status) for r in records] == [("sel-on", "loaded")]
            assert {r.name: r.status for r in host.records} == {"sel-on": "loaded", "sel-off": "not loaded"}
        assert "sel_on" in sys.modules
        assert "sel_off" not in sys.modules
