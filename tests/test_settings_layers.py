"""`atlas_core.settings.layers`: tables merge, everything else replaces."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.errors import SettingsError
from atlas_core.settings.frozen import thaw
from atlas_core.settings.layers import BUILT_IN, Layers, Setting, leaves, node_at, values
from atlas_core.settings.toml_lines import KeyPath


def _add(layers: Layers, table: Mapping[str, Any], label: str = "f") -> None:
    layers.add(table, name=label, environment="default", origin=lambda path: f"{label}:{len(path)}")


def _layered(*tables: Mapping[str, Any], use_dynaconf: bool = True) -> Layers:
    layers = Layers(use_dynaconf=use_dynaconf)
    for n, table in enumerate(tables):
        _add(layers, table, f"f{n}")
    return layers


# Texts that dynaconf would act on if it saw them.
_SCALARS = (
    st.sampled_from(
        [
            "",
            "a",
            "@format {this}",
            "@jinja {{ 1 }}",
            "@int 3",
            "@merge x",
            "@reset",
            "@del",
            "dynaconf_merge",
            "1e5",
            "true",
        ]
    )
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False)
)
_LEAVES = _SCALARS | st.lists(_SCALARS, max_size=3).filter(lambda items: items[:1] != ["@merge"])
_KEYS = st.sampled_from(["a", "b", "c_d", "model", "items", "keys", "get", "1e5", "x.y", "update"])
_TABLES = st.recursive(
    st.dictionaries(_KEYS, _LEAVES, max_size=3),
    lambda inner: st.dictionaries(_KEYS, _LEAVES | inner, max_size=4),
    max_leaves=12,
)
_TREES = _TABLES.map(lambda table: {"ai": {"connections": {"c": table}}})


def _expected(lower: Any, upper: Any) -> Any:
    """The law, written down once more: tables merge, everything else replaces."""
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return upper
    return {
        key: _expected(lower[key], upper[key]) if key in lower and key in upper else upper.get(key, lower.get(key))
        for key in {*lower, *upper}
    }


@pytest.mark.parametrize("use_dynaconf", [True, False], ids=["by dynaconf", "for a mapping"])
@given(first=_TREES, second=_TREES, third=_TREES)
def test_tables_merge_and_all_else_replaces(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any], use_dynaconf: bool
) -> None:
    """Three layers of any tables amount to what the law says, and are not changed themselves."""
    given_ = copy.deepcopy((first, second, third))
    layers = _layered(first, second, third, use_dynaconf=use_dynaconf)
    assert thaw(values(layers.tree)) == _expected(_expected(first, second), third)
    assert (first, second, third) == given_


@given(first=_TREES, second=_TREES)
def test_each_value_keeps_its_origin(first: dict[str, Any], second: dict[str, Any]) -> None:
    """A value's origin is the highest layer that sets it."""
    layers = _layered(first, second)
    top = {path for path, _ in leaves(_layered(second).tree)}
    for path, setting in leaves(layers.tree):
        assert setting.origin.partition(":")[0] == ("f1" if path in top else "f0")


def test_one_layer_needs_no_dynaconf(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing to lay over the defaults, the engine is not loaded."""
    monkeypatch.setitem(sys.modules, "dynaconf", None)
    assert values(_layered({"ai": {}}).tree) == {"ai": {}}


def test_dynaconf_reads_nothing_on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hook file, dotenv file, settings file or variable of dynaconf's takes effect."""
    for name in ("dynaconf_hooks.py", "evil.py"):
        (tmp_path / name).write_text("raise SystemExit('ran')")
    (tmp_path / ".env").write_text("ATLAS_TEST_DOTENV=1\n")
    (tmp_path / "settings.toml").write_text("[default.ai]\nfrom_file = 1\n")
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "SETTINGS_FILE_FOR_DYNACONF": "evil.py",
        "LOAD_DOTENV_FOR_DYNACONF": "true",
        "PRELOAD_FOR_DYNACONF": "['evil.py']",
        "INCLUDES_FOR_DYNACONF": "['evil.py']",
        "MERGE_ENABLED_FOR_DYNACONF": "false",
        "ENV_FOR_DYNACONF": "other",
        "DYNACONF_AI__CONNECTIONS": "@del",
    }.items():
        monkeypatch.setenv(name, text)
    layers = _layered({"ai": {"connections": {"c": {"x": 1}}}}, {"ai": {"connections": {"c": {"y": [2]}}}})
    assert values(layers.tree) == {"ai": {"connections": {"c": {"x": 1, "y": (2,)}}}}
    assert "ATLAS_TEST_DOTENV" not in os.environ


def test_two_sets_of_layers_share_nothing() -> None:
    """What one load holds does not show in another."""
    first, second = _layered({"ai": {}}, {"ai": {"a": 1}}), _layered({"ai": {}}, {"ai": {"b": 1}})
    assert values(first.tree) == {"ai": {"a": 1}}
    assert values(second.tree) == {"ai": {"b": 1}}


@pytest.mark.parametrize(
    ("below", "above", "joined"),
    [
        (["a", "b"], ["@merge", "b", "c"], ("a", "b", "c")),
        ("a", ["@merge", "b"], ("a", "b")),
        (None, ["@merge", "b"], ("b",)),
        (["a"], ["b"], ("b",)),
        (["a"], [], ()),
    ],
    ids=["adds what is new", "a single text below", "nothing below", "replaces without it", "empties"],
)
def test_a_list_joins_only_where_it_says_so(below: Any, above: Any, joined: tuple[str, ...]) -> None:
    """`@merge` as the first item adds to the list below; any other list replaces it. (case 106)"""
    lower = {} if below is None else {"enabled": below}
    layers = _layered({"plugins": lower}, {"plugins": {"enabled": above}})
    assert node_at(layers.tree, ("plugins", "enabled")).value == joined


def test_names_are_one_in_any_spelling() -> None:
    """A name keeps the spelling of the lowest layer; other keys match in any case. (cases 100, 114)"""
    layers = _layered(
        {"ai": {"connections": {"my-gpt": {"apiUrl": 1, "X-Foo": 1}}}},
        {"ai": {"connections": {"My_GPT": {"APIURL": 2, "x_foo": 2}}}},
    )
    assert values(layers.tree) == {"ai": {"connections": {"my-gpt": {"apiUrl": 2, "X-Foo": 1, "x_foo": 2}}}}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"ai": {"connections": {"a-b": {}, "A_b": {}}}}, "'A_b' stands twice"),
        ({"ai": {"connections": {"c": {"X": 1, "x": 2}}}}, "'x' stands twice"),
        ({"ai": {"connections": {"c": {"dynaconf_merge": True}}}}, "command to dynaconf"),
        ({"ai": {"connections": {"c": {"_dynaconf_merge": True}}}}, "command to dynaconf"),
    ],
    ids=["a name twice", "a key twice", "a merge mark", "a hidden mark"],
)
def test_ambiguous_keys_and_engine_commands_are_refused(table: dict[str, Any], words: str) -> None:
    """Two spellings of one key in one table, and keys that dynaconf would obey, are errors with their place."""
    with pytest.raises(SettingsError, match=words) as caught:
        _layered(table)
    assert caught.value.source == "f0:4" if "connections.c" in str(caught.value.key) else "f0:3"


def test_tables_know_where_they_were_written() -> None:
    """Even an empty table has an origin, the highest layer that names it."""
    layers = _layered({"ai": {"agents": {}}}, {"ai": {"agents": {}}})
    path: KeyPath = ("ai", "agents")
    assert layers.tables[path] == "f1:2"


def test_a_setting_hides_its_value() -> None:
    """The `repr` of a value with its origin does not show the value."""
    assert "secret" not in repr(Setting("secret", BUILT_IN, text="secret"))
