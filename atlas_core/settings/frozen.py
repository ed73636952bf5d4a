"""Tables that can't change, so that one set of settings may be shared between runs and threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["FrozenDict", "freeze", "thaw"]


class FrozenDict(dict[Any, Any]):
    """A dict that refuses changes; pickles, copies, compares and encodes as JSON like any other.

    `types.MappingProxyType` would neither pickle nor encode.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("settings can't be changed; make a copy with dict(...)")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = _refuse
    __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # a dict is unhashable because it changes; this does not
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, _memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: object) -> Any:
    """Return `value` with every mapping as a `FrozenDict` and every list as a tuple, to the bottom."""
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: object) -> Any:
    """Return `value` with plain dicts and lists to the bottom; the opposite of `freeze`."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
