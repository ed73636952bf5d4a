"""What an error carries besides its text, and must not: frames and exceptions that hold keys, addresses and bodies."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["bare"]

_E = TypeVar("_E", bound=BaseException)


def bare(exc: _E) -> _E:
    """Drop the tracebacks of an exception and of its causes, and the exceptions that it was raised over.

    `raise ... from None` only keeps those from being printed. A report that shows variables or walks the chain would
    show what a server sent, and keys with it. Call it in the handler at a package's border: `raise bare(exc)`
    there adds the frames from the border on.

    Example:
        >>> try:
        ...     try:
        ...         raise ValueError("the body, with a key in it")
        ...     except ValueError:
        ...         raise RuntimeError("can't be read") from None
        ... except RuntimeError as exc:
        ...     found = bare(exc)
        >>> found.__context__, found.__traceback__
        (None, None)
    """
    inner: BaseException | None = exc
    seen: set[int] = set()
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        inner.__traceback__ = None
        inner.__context__ = None
        inner = inner.__cause__
    return exc
