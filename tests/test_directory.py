"""The agent directory finds who can do what."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_core import AgentDirectory, UnknownAgentError


@pytest.fixture
def directory() -> AgentDirectory:
    """Register three agents, not in the order of their names."""
    directory = AgentDirectory()
    directory.register("writer", ["prose", "web-search"])
    directory.register("Researcher", ("Web_Search", "sources"))
    directory.register("idle")
    return directory


@pytest.mark.parametrize(
    ("capability", "found"),
    [
        ("web-search", ["Researcher", "writer"]),
        ("WEB_SEARCH", ["Researcher", "writer"]),
        ("web-*", ["Researcher", "writer"]),
        ("prose", ["writer"]),
        ("*", ["Researcher", "writer"]),
        ("pro", []),
        ("", []),
    ],
)
def test_agents_are_found_by_capability_in_the_order_of_their_ids(
    directory: AgentDirectory, capability: str, found: list[str]
) -> None:
    """Names compare as tools' do, patterns work, and an unknown capability is nobody's."""
    assert directory.find(capability) == found


def test_a_capability_to_find_is_a_text(directory: AgentDirectory) -> None:
    """Anything else is a caller's mistake and no empty answer."""
    with pytest.raises(TypeError, match="capability is a list, expected text"):
        directory.find(["prose"])  # type: ignore[arg-type]  # as a careless caller does


def test_capabilities_are_told_as_registered_and_each_once(directory: AgentDirectory) -> None:
    """Spelling is kept; of two spellings of one name the same stays in whatever order they came."""
    assert directory.capabilities("WRITER") == ("prose", "web-search")
    directory.register("a", ["b_c", "B-C", "a"])
    directory.register("z", ["a", "B-C", "b_c"])
    assert directory.capabilities("a") == directory.capabilities("z") == ("B-C", "a")
    assert directory.capabilities("idle") == ()


def test_an_id_is_registered_once(directory: AgentDirectory) -> None:
    """A second agent of the same name does not silently replace the first."""
    with pytest.raises(ValueError, match=r"agent 'WRITER' is in the directory already, as 'writer'; update\(\)"):
        directory.register("WRITER", ["malware"])
    assert directory.capabilities("writer") == ("prose", "web-search")


def test_capabilities_can_be_replaced(directory: AgentDirectory) -> None:
    """The id keeps its first spelling."""
    directory.update("Writer", ["poems"])
    assert directory.find("prose") == []
    assert directory.find("poems") == ["writer"]


def test_an_agent_that_left_is_not_found(directory: AgentDirectory) -> None:
    """And its name is free again."""
    directory.unregister("RESEARCHER")
    assert directory.find("sources") == []
    assert "researcher" not in directory
    directory.register("researcher", ["sources"])
    assert directory.find("sources") == ["researcher"]


@pytest.mark.parametrize(
    "use",
    [
        lambda d: d.capabilities("writter"),
        lambda d: d.unregister("writter"),
        lambda d: d.update("writter", ["x"]),
    ],
    ids=["asked", "removed", "updated"],
)
def test_an_unknown_agent_is_an_error_with_the_nearest_name(directory: AgentDirectory, use: Any) -> None:
    """It is a KeyError and a ValueError, and holds the names as data."""
    with pytest.raises(UnknownAgentError, match="there is no agent 'writter'; did you mean 'writer'") as caught:
        use(directory)
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.agent_id == "writter"
    assert caught.value.suggestions == ("writer",)


def test_what_is_no_text_is_no_known_agent(directory: AgentDirectory) -> None:
    """Ids from a message may be anything, so a lookup says that there is no such agent."""
    with pytest.raises(UnknownAgentError, match="there is no agent 'None'; registered: Researcher, idle, writer"):
        directory.capabilities(None)  # type: ignore[arg-type]  # as a careless caller does
    assert None not in directory


@pytest.mark.parametrize(
    ("agent_id", "capabilities", "error", "text"),
    [
        ("", [], ValueError, "agent_id '' is blank"),
        ("  ", [], ValueError, "agent_id '  ' is blank"),
        ("w*", [], ValueError, r"agent_id 'w\*' is a pattern, expected a name without"),
        (7, [], TypeError, "agent_id is a int, expected text"),
        ("a", "search", TypeError, r"capabilities is the text 'search', expected a list of texts: \['search'\]"),
        ("a", [""], ValueError, "capability '' is blank"),
        ("a", ["x", None], TypeError, "capability is a NoneType"),
        ("a", ["web_*"], ValueError, r"capability 'web_\*' is a pattern"),
    ],
)
def test_bad_names_are_refused(agent_id: Any, capabilities: Any, error: type[Exception], text: str) -> None:
    """Nothing is registered, and the error holds the value."""
    directory = AgentDirectory()
    with pytest.raises(error, match=text):
        directory.register(agent_id, capabilities)
    assert len(directory) == 0


def test_the_directory_tells_what_it_holds(directory: AgentDirectory) -> None:
    """Its length, its ids and its text."""
    assert len(directory) == 3
    assert directory.agents == ["Researcher", "idle", "writer"]
    assert repr(directory) == "AgentDirectory(['Researcher', 'idle', 'writer'])"


_capabilities = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]), st.lists(st.sampled_from(["x", "X", "y", "z-1", "z_1"]), max_size=4)
)


@given(_capabilities, st.randoms(use_true_random=False))
def test_no_answer_depends_on_the_order_of_registration(agents: dict[str, list[str]], random: Any) -> None:
    """Neither on the order of agents nor of their capabilities; and exactly those are found who have it."""
    shuffled = list(agents)
    random.shuffle(shuffled)
    one, other = AgentDirectory(), AgentDirectory()
    for agent, names in agents.items():
        one.register(agent, names)
    for agent in shuffled:
        other.register(agent, random.sample(agents[agent], len(agents[agent])))
    for wanted in ("x", "y", "z-1"):
        having = sorted(a for a, names in agents.items() if wanted in [n.lower().replace("_", "-") for n in names])
        assert one.find(wanted) == other.find(wanted) == having
    assert [one.capabilities(a) for a in agents] == [other.capabilities(a) for a in agents]


def test_threads_share_a_directory() -> None:
    """Each of many threads registers, asks and leaves; in the end nobody is left."""
    directory = AgentDirectory()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(50):
                directory.register(f"agent{number}", [f"job{number}", "all"])
                assert f"agent{number}" in directory.find("all")
                assert directory.find(f"job{number}") == [f"agent{number}"]
                directory.unregister(f"agent{number}")
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(directory) == 0
