"""What an agent may do is decided by data, one rule for each tool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core.permissions import Decision, decide, is_pattern, matches, unmatched_rules


@pytest.mark.parametrize(
    ("pattern", "name", "hit"),
    [
        ("read_file", "read_file", True),
        ("read-file", "READ_FILE", True),
        ("read_*", "read_file", True),
        ("READ-*", "read_file", True),
        ("net.*", "net.get", True),
        ("net.*", "network", False),
        ("tool[12]", "tool2", True),
        ("tool[a-c]", "TOOLB", True),
        ("tool[a-c]", "tool-", False),
        ("tool?", "tool10", False),
        ("read", "read_file", False),
    ],
)
def test_names_and_patterns(pattern: str, name: str, *, hit: bool) -> None:
    """`-` and `_` are equal, in any case; a dot in a pattern is a dot."""
    assert matches(pattern, name) is hit


@pytest.mark.parametrize(
    ("rules", "decision", "because"),
    [
        ({"tools": []}, None, ""),
        ({"tools": ["x"]}, Decision.ALLOW, "tools: 'x'"),
        ({"tools": ["*"], "allow": []}, Decision.DENY, "permissions.allow does not name it"),
        ({"tools": ["*"], "allow": ["x"], "deny": ["x"]}, Decision.DENY, "permissions.deny: 'x'"),
        ({"tools": ["*"], "ask": ["x"], "deny": ["?"]}, Decision.DENY, "permissions.deny: '?'"),
        ({"tools": ["*"], "ask": ["x"]}, Decision.ASK, "permissions.ask: 'x'"),
        ({"tools": ["*"], "requires_approval": True}, Decision.ASK, "the tool requires approval"),
        ({"tools": ["*"], "allow": ["y"], "ask": ["x"]}, Decision.DENY, "permissions.allow does not name it"),
    ],
)
def test_deny_beats_ask_beats_allow(rules: dict[str, object], decision: Decision | None, because: str) -> None:
    """And the rule says where it comes from."""
    rule = decide("x", **rules)  # type: ignore[arg-type]  # a table of keywords
    assert (rule.decision if rule else None) is decision
    assert (rule.because if rule else "") == because


names = st.lists(st.sampled_from(["a", "b", "c", "*", "a*"]), max_size=3)


@given(names, st.none() | names, names, names, st.randoms())
def test_permissions_only_narrow_and_do_not_depend_on_order(
    tools: list[str], allow: list[str] | None, ask: list[str], deny: list[str], random: object
) -> None:
    """No rule makes a tool usable that `tools` does not choose, and no order changes a decision."""
    for name in ("a", "b", "c"):
        plain = decide(name, tools=tools)
        narrowed = decide(name, tools=tools, allow=allow, ask=ask, deny=deny)
        assert (plain is None) == (narrowed is None)
        turned = decide(name, tools=tools[::-1], allow=allow and allow[::-1], ask=ask[::-1], deny=deny[::-1])
        assert (turned and turned.decision) == (narrowed and narrowed.decision)
        more = decide(name, tools=tools, allow=allow, ask=ask, deny=[*deny, name])
        assert more is None or more.decision is Decision.DENY


def test_rules_that_mean_no_tool_are_told() -> None:
    """A misspelt deny protects nothing, so it must not be silent."""
    assert unmatched_rules(["shell"], allow=["shel"], ask=["s*"], deny=["net.*"]) == (
        "permissions.allow names 'shel', which matches no tool",
        "permissions.deny names 'net.*', which matches no tool",
    )
    assert unmatched_rules(["a"]) == ()
    assert is_pattern("a?")
    assert not is_pattern("a")
