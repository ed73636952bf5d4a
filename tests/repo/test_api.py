"""The public API is what `atlas_core/__init__.py` lists, and it is complete in each place that lists it."""

import ast
import importlib
import inspect
from types import FunctionType

import pytest

import atlas_core

NAMES = [name for name in atlas_core.__all__ if name != "__version__"]


def _typed_names() -> dict[str, str]:
    """Return each name that type checkers see, with the module it comes from."""
    tree = ast.parse(inspect.getsource(atlas_core))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or "": (node.module or "").removeprefix("atlas_core.") for node in imports for alias in node.names
    }


def test_type_checkers_see_what_the_program_gets() -> None:
    """The imports under TYPE_CHECKING and the table of lazy names agree, home by home."""
    assert _typed_names() == atlas_core._HOME_OF


def test_all_is_complete() -> None:
    """`__all__` is the table of lazy names and the version, sorted, each once."""
    assert atlas_core.__all__ == sorted({*atlas_core._HOME_OF, "__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_name_resolves(name: str) -> None:
    """A public name is the object of that name in the module that defines it, and that module lists it."""
    home = importlib.import_module(f"atlas_core.{atlas_core._HOME_OF[name]}")
    assert getattr(atlas_core, name) is getattr(home, name)
    assert name in home.__all__


@pytest.mark.parametrize("name", NAMES)
def test_name_is_documented(name: str) -> None:
    """A public class or function has a docstring, and so has each public method, its own or its interface's."""
    value = getattr(atlas_core, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return  # an alias or a marker object; its comment stands in its module
    assert (value.__doc__ or "").strip()
    if not inspect.isclass(value):
        return
    methods = {
        key: inspect.getdoc(getattr(value, key))
        for key, member in vars(value).items()
        if not key.startswith("_") and isinstance(member, (FunctionType, classmethod, staticmethod, property))
    }
    assert [key for key, text in methods.items() if not text] == []


def test_misspelt_name_is_an_attribute_error() -> None:
    """A name that is not there is an AttributeError naming it, so that `hasattr` and `import` behave."""
    with pytest.raises(AttributeError, match="'atlas_core' has no attribute 'AgentFactroy'"):
        _ = atlas_core.AgentFactroy  # type: ignore[attr-defined]


def test_dir_lists_names_before_they_load() -> None:
    """`dir(atlas_core)` offers every public name, for completion in a shell."""
    assert set(atlas_core.__all__) <= set(dir(atlas_core))
