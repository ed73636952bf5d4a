"""Every error survives the border between processes with its facts and its text."""

import copy
import inspect
import pickle

import pytest

from atlas_core import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]

# One value for each argument that any error takes, other than its default.
FACTS: dict[str, object] = {
    "problem": "it failed with 'x'",
    "owner": "plugin 'a' of atlas-a 1.0",
    "remedy": "do that",
    "key": "ai.agents.default_profile",
    "source": "settings.toml:12",
    "plugin": "a",
    "distribution": "atlas-a",
    "version": "1.0",
    "entry_point": "a = atlas_a.plugin",
    "cause": "Traceback ...",
    "name": "search",
    "owners": ("a", "b"),
    "tool": "search",
    "suggestions": ("research",),
    "agent_id": "writer",
    "retryable": True,
    "status": 429,
    "request_id": "req-1",
    "retry_after_s": 2.5,
    "limit": 10,
}


def _made(cls: type[errors.AtlasError]) -> errors.AtlasError:
    return cls(**{name: FACTS[name] for name in inspect.signature(cls).parameters})  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    "carry", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_error_survives(cls: type[errors.AtlasError], carry: object) -> None:
    """An error that was pickled or copied has the same class, text, arguments and attributes."""
    error = _made(cls)
    again = carry(error)  # type: ignore[operator]
    assert type(again) is cls
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_error_keeps_each_fact(cls: type[errors.AtlasError]) -> None:
    """Each argument of an error is an attribute, or part of its text, or both."""
    error = _made(cls)
    for name in inspect.signature(cls).parameters:
        assert getattr(error, name, None) == FACTS[name] or str(FACTS[name]) in str(error)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_error_text_names_problem_owner_and_remedy(cls: type[errors.AtlasError]) -> None:
    """The text holds what failed, who owns it and what to do, once each."""
    error = _made(cls)
    parts = [error.problem, error.owner, error.remedy]
    assert [str(error).count(part) for part in parts if part] == [1 for part in parts if part]


def test_tree_in_the_docstring_is_the_tree() -> None:
    """The tree drawn at the top of the module names every error below its first base."""
    drawn: dict[str, str] = {}
    stack: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        words = line.lstrip("│├└─ ").split()
        if not words or words[0] not in errors.__all__:
            continue
        depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
        stack[depth:] = [words[0]]
        drawn[words[0]] = stack[depth - 1] if depth else "Exception"
    assert drawn == {cls.__name__: cls.__bases__[0].__name__ for cls in CLASSES}
