"""Tool calls put together from the fragments of a stream, whatever servers do to their indices and ids.

The protocol numbers the calls of a message and names id and function in a call's first fragment. Servers also number
all calls 0, leave out index or id or both, repeat id or name in each fragment, or send a call whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from atlas_openai._wire import arguments_read, is_whole, obj, text

__all__ = ["CallParts", "Fragments"]


@dataclass(slots=True)
class CallParts:
    """A call as far as it came."""

    index: int | None
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        """The arguments so far."""
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete."""
        return bool(self.pieces) and self.pieces[-1].rstrip()[-1:] == "}" and is_whole(self.arguments)


class Fragments:
    """The calls of one message.

    Args:
        offers: Tells whether a name is an offered tool's.
        extra: Fields of a call that are kept.
    """

    def __init__(self, offers: Callable[[str], bool], extra: tuple[str, ...] = ()) -> None:
        self._offers = offers
        self._extra = extra
        self.calls: list[CallParts] = []

    def add(self, data: object) -> None:
        """Take a fragment."""
        fragment = obj(data)
        function = obj(fragment.get("function"))
        index = fragment.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        given, name = text(fragment.get("id")), text(function.get("name"))
        call = self._find(index, given, name)
        if call is None or self._is_new(call, given, name):
            call = CallParts(index, given, name)
            self.calls.append(call)
        else:
            call.id = call.id or given
            if name != call.name:  # in pieces; some servers repeat it whole instead
                call.name += name
        if function.get("arguments"):
            call.pieces.append(arguments_read(function["arguments"]))
        self._keep(call, fragment)

    def _keep(self, call: CallParts, fragment: Mapping[str, object]) -> None:
        for key in self._extra:
            if fragment.get(key):
                call.extra[key] = fragment[key]

    def _find(self, index: int | None, given: str, name: str) -> CallParts | None:
        """Return the call that a fragment may go on with: the last one of its index, else of its id, else the last."""
        if index is not None:
            found = next((call for call in reversed(self.calls) if call.index == index), None)
            if found is not None or name:
                return found
        if given:
            found = next((call for call in reversed(self.calls) if call.id == given), None)
            if found is not None:
                return found
        return self.calls[-1] if self.calls else None

    def _is_new(self, call: CallParts, given: str, name: str) -> bool:
        """Tell whether a fragment begins another call although it bears the mark of this one."""
        if given and call.id and given != call.id:
            # A server that makes up an id for each fragment goes on without a name.
            return bool(name) or call.is_whole
        if given and given == call.id:
            return False
        if not name or not call.name:
            return False
        if call.pieces:
            return call.is_whole
        return name != call.name and self._offers(name) and self._offers(call.name)
