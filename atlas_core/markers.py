"""The marker that every plugin module imports, and nothing else, so that importing it costs no more than pluggy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, overload

import pluggy

if TYPE_CHECKING:
    from typing import Protocol

    _F = TypeVar("_F", bound=Callable[..., object])

    class _HookimplMarker(Protocol):
        @overload
        def __call__(self, function: _F, /) -> _F: ...
        @overload
        def __call__(
            self,
            *,
            optionalhook: bool = ...,
            tryfirst: bool = ...,
            trylast: bool = ...,
        ) -> Callable[[_F], _F]: ...


__all__ = ["PROJECT", "hookimpl", "hookspec"]

PROJECT = "atlas"
"""pluggy's project name, and the entry-point group that plugins register in."""

hookimpl: _HookimplMarker = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin module as the implementation of the hook of the same name."""

hookspec = pluggy.HookspecMarker(PROJECT)
