"""A text that is used and never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from atlas_core.settings.secrets import MASK

__all__ = ["RawHeaders", "Secret", "revealed"]


class Secret:
    """A key, token or address that no `repr`, log, copy or pickle shows.

    Args:
        value: The text.

    Example:
        >>> key = Secret("sk-123456")
        >>> f"{key!r} {key}"
        'Secret(***) ***'
        >>> key.reveal()
        'sk-123456'
    """

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """Return the text, for the one place that sends it."""
        return self.__value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.__value == self.__value

    def __hash__(self) -> int:
        return hash((Secret, self.__value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled; send the name of the variable that holds it instead")


def revealed(value: str | Secret) -> str:
    """Return the text of either."""
    return value.reveal() if isinstance(value, Secret) else value


class RawHeaders:
    """Headers as they are sent; shown nowhere."""

    __slots__ = ("__items",)

    def __init__(self, items: Mapping[str, str]) -> None:
        self.__items = [(name.encode("ascii"), value.encode("utf-8")) for name, value in items.items()]

    def reveal(self, length: int | None) -> list[tuple[bytes, bytes]]:
        """Return them with the body's length, for the transport."""
        if length is None:
            return self.__items
        return [*self.__items, (b"Content-Length", b"%d" % length)]

    def __repr__(self) -> str:
        return f"<{len(self.__items)} headers>"
