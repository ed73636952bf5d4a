"""Calls a plugin's factory and checks what it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from atlas_core.errors import AtlasError, PluginResultError

if TYPE_CHECKING:
    from atlas_core.catalog import Offer

__all__ = ["make"]

T = TypeVar("T")


def make(offer: Offer[Any], argument: object, *, what: str, kind: Callable[..., T], base: str) -> T:
    """Return what the offered spec's `factory` makes of its argument.

    Args:
        offer: The spec, and who supplied it.
        argument: What the factory takes.
        what: What is being made, for errors.
        kind: The class or runtime-checkable protocol that it must meet.
        base: The public base class that a plugin's author would derive from.
    Raises:
        AtlasError: What the factory says in Atlas' own words is passed on.
        PluginResultError: The factory raised anything else, or made something that does not meet `kind`.
    """
    try:
        made: object = offer.value.factory(argument)
    except AtlasError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # foreign code, which must not end its host
        raise PluginResultError(
            f"{what} could not be made: {exc!r}", plugin=offer.owner.plugin, owner=str(offer.owner)
        ) from exc
    # Typed as a callable, since abstract classes and protocols are no `type[T]` to a type checker.
    assert isinstance(kind, type)  # noqa: S101  # every caller passes a class
    if isinstance(made, kind):
        return cast("T", made)
    members = getattr(kind, "__protocol_attrs__", None) or {n for n in vars(kind) if not n.startswith("_")}
    missing = sorted(name for name in members if not hasattr(made, name))
    lacks = f" without {', '.join(missing)}" if missing else ""
    raise PluginResultError(
        f"{what} is a {type(made).__name__}{lacks}",
        plugin=offer.owner.plugin,
        owner=str(offer.owner),
        remedy=f"let its class derive from {base}",
    )
