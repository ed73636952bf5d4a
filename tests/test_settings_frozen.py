"""`atlas_core.settings.frozen`: tables that can't change."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.settings.frozen import FrozenDict, freeze, thaw

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
        lambda d: d.update(a=2),
        lambda d: d.setdefault("b", 2),
        lambda d: d.pop("a"),
        lambda d: d.popitem(),
        lambda d: d.clear(),
        lambda d: d.__ior__({"a": 2}),
    ],
    ids=["set", "delete", "update", "setdefault", "pop", "popitem", "clear", "merge in place"],
)
def test_no_method_changes_a_frozen_dict(change: Callable[[FrozenDict], object]) -> None:
    """Every way to change a dict is refused and leaves it as it was."""
    table = FrozenDict(a=1)
    with pytest.raises(TypeError, match="can't be changed"):
        change(table)
    assert table == {"a": 1}


def test_a_frozen_dict_travels_like_a_dict() -> None:
    """It pickles, copies, hashes and encodes as JSON."""
    table = freeze({"a": [1, {"b": 2}]})
    assert pickle.loads(pickle.dumps(table)) == table
    assert copy.copy(table) is table
    assert copy.deepcopy(table) is table
    assert hash(table) == hash(freeze({"a": [1, {"b": 2}]}))
    assert json.loads(json.dumps(table)) == {"a": [1, {"b": 2}]}


@given(_VALUES)
def test_thaw_undoes_freeze(value: object) -> None:
    """Freezing and thawing gives the same value back, in containers of its own."""
    assert thaw(freeze(value)) == value
