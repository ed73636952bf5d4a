from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.tools.wire_names import wire_names

ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def test_names_are_made_fit_for_the_wire_and_stay_apart() -> None:
    """Each name is sent under one that every provider takes, and no two merge (case 14)."""
    names = ["calendar.add", "files/read file", "x" * 90, "calendar_add"]
    sent = wire_names(names)
    assert list(sent) == names
    assert all(ALLOWED.fullmatch(name) for name in sent.values())
    assert len(set(sent.values())) == 4
    assert sent["calendar_add"] == "calendar_add"
    assert re.fullmatch(r"calendar_add_[0-9a-f]{8}", sent["calendar.add"])
    assert sent["x" * 90].startswith("x" * 55 + "_")
    assert {back: name for name, back in sent.items()}[sent["calendar.add"]] == "calendar.add"


def test_what_is_sent_does_not_depend_on_the_neighbours() -> None:
    """The same tool has the same sent name in every request, so that a provider's cache holds."""
    alone = wire_names(["calendar.add"])
    among = wire_names(["calendar_add", "calendar/add", "calendar.add", "calendar.add"])
    assert alone["calendar.add"] == among["calendar.add"]
    assert len(set(among.values())) == 3


def test_a_name_that_is_taken_is_avoided() -> None:
    """A tool that is called what another would be sent as keeps its name; the other's digest grows."""
    taken = wire_names(["a.b"])["a.b"]
    sent = wire_names(["a.b", taken])
    assert sent[taken] == taken
    assert sent["a.b"].startswith(taken)
    assert sent["a.b"] != taken


@pytest.mark.parametrize("name", ["", "\ud800", "größe", "\n", "-", "a" * 64])
def test_any_text_gets_a_name(name: str) -> None:
    """Discovery sources may send anything."""
    assert ALLOWED.fullmatch(wire_names([name])[name])


@given(st.lists(st.text(st.characters(), max_size=80) | st.text("ab._-/", max_size=70)))
def test_the_mapping_is_one_to_one(names: list[str]) -> None:
    """Deterministic, allowed, and pairwise different, whatever the names and their order."""
    sent = wire_names(names)
    assert set(sent) == set(names)
    assert len(set(sent.values())) == len(sent)
    assert all(ALLOWED.fullmatch(name) for name in sent.values())
    assert sent == wire_names(reversed(names))
