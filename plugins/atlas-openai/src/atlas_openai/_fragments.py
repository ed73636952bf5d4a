"""Tool calls put together from the fragments of a stream, whatever servers do to their indices and ids.

The protocol numbers the calls of a message and names id and function in a call's first fragment. Servers also number
all calls 0, leave out index or id or both, repeat id or name in each fragment, or send a call whole. A fragment goes
to the call of its id, else to one of its index, else to one that is not complete. Where several could take it, none
gets it: their arguments are then no valid JSON, so that the model is told and nothing wrong is run. A fragment that
is a complete call once more, under its id, begins none and goes on with none: a tool that writes would run twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from atlas_openai._wire import arguments_read, is_whole, number, obj, text

__all__ = ["MIXED", "CallParts", "Fragments"]

MIXED = "(parts of several calls came mixed and can't be told apart)"
"""Begins the arguments of a call that can't be put together; it is no JSON."""


@dataclass(slots=True, eq=False)
class CallParts:
    """A call as far as it came."""

    index: int | None
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, object] = field(default_factory=dict)
    mixed: bool = False

    @property
    def arguments(self) -> str:
        """The arguments so far."""
        return "".join([MIXED, " ", *self.pieces] if self.mixed else self.pieces)

    @property
    def is_begun(self) -> bool:
        """Whether a part of the arguments came."""
        return any(piece and not piece.isspace() for piece in self.pieces)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete: nothing but spaces can follow. A number is never known to be."""
        last = next((end for piece in reversed(self.pieces) if (end := piece.rstrip())), "")
        return last[-1:] in {"}", "]", '"', "l"} and is_whole(self.arguments)

    def takes(self, written: str) -> bool:
        """Tell whether the arguments may go on with a text."""
        return not self.is_whole if self.is_begun else written.lstrip()[:1] == "{"


@dataclass(frozen=True, slots=True)
class _Fragment:
    index: int | None
    id: str
    name: str
    written: str

    @property
    def is_blank(self) -> bool:
        return not self.written or self.written.isspace()


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

    def add_whole(self, entries: Sequence[object]) -> None:
        """Take calls that are complete; each is one of its own, whatever ids and indices say."""
        for entry in entries:
            data = obj(entry)
            self._begin(_read(data), data)

    def add(self, entries: Sequence[object]) -> None:
        """Take the fragments that came at once."""
        seen: list[CallParts] = []
        for entry in entries:
            data = obj(entry)
            fragment = _read(data)
            repeated = self._repeated(fragment)
            if repeated is not None:
                self._keep(repeated, data)
                continue
            found = self._find(fragment, seen)
            if isinstance(found, CallParts):
                _go_on(found, fragment)
                self._keep(found, data)
                seen.append(found)
            elif found is None:
                seen.append(self._begin(fragment, data))
            else:
                for call in found:
                    call.mixed = True

    def _begin(self, fragment: _Fragment, data: Mapping[str, object]) -> CallParts:
        call = CallParts(fragment.index, fragment.id, fragment.name)
        if fragment.written:
            call.pieces.append(fragment.written)
        self._keep(call, data)
        self.calls.append(call)
        return call

    def _keep(self, call: CallParts, data: Mapping[str, object]) -> None:
        for key in self._extra:
            if data.get(key):
                call.extra[key] = data[key]

    def _find(self, fragment: _Fragment, seen: Sequence[CallParts]) -> CallParts | list[CallParts] | None:
        """Return the call that a fragment goes on with; None if it begins one; several if that can't be told."""
        near = self._near(fragment)
        if fragment.name:
            # No server cuts a call within one chunk and names both halves.
            near = [call for call in near if call not in seen and self._may_be_named(call, fragment.name)]
        if not near:
            return None
        known = bool(fragment.id) and near[-1].id == fragment.id
        if len(near) == 1 and not fragment.name and (known or not fragment.id):
            return near[0]
        if fragment.is_blank:
            return near[-1]
        fitting = [call for call in near if call.takes(fragment.written)]
        if not fitting:
            return None if fragment.name or (fragment.id and not known) else near[-1]
        return fitting[0] if len(fitting) == 1 else fitting

    def _repeated(self, fragment: _Fragment) -> CallParts | None:
        """Return the complete call that a fragment is once more."""
        if not fragment.id or fragment.written.lstrip()[:1] != "{" or not is_whole(fragment.written):
            return None
        return next((call for call in self.calls if _is_same(call, fragment)), None)

    def _near(self, fragment: _Fragment) -> list[CallParts]:
        """Return the calls that bear a fragment's mark."""
        index = fragment.index
        own = [call for call in self.calls if call.id == fragment.id] if fragment.id else []
        if own:
            same = [call for call in own if call.index == index]
            if same or index is None or not fragment.name:
                return same or own
            # Another number and a name: another call, though it has the same id.
            return [call for call in own if call.index is None]
        if index is None:
            found = self.calls
        else:
            found = [call for call in self.calls if call.index == index]
            if not found and not fragment.name:
                found = self.calls
        if fragment.id and fragment.name:
            # A new id with a name begins a call, unless one waits for its id.
            found = [call for call in found if not call.id]
        return list(found)

    def _may_be_named(self, call: CallParts, name: str) -> bool:
        if not call.name or name == call.name:
            return True
        # In pieces, which end before the arguments begin.
        return not call.pieces and not (self._offers(name) and self._offers(call.name))


def _read(data: Mapping[str, object]) -> _Fragment:
    function = obj(data.get("function"))
    written = arguments_read(function["arguments"]) if function.get("arguments") else ""
    return _Fragment(
        number(data.get("index")),
        text(data.get("id")),
        text(function.get("name")),
        written,
    )


def _is_same(call: CallParts, fragment: _Fragment) -> bool:
    return (
        call.id == fragment.id
        and fragment.name in {"", call.name}
        and (call.index == fragment.index or None in (call.index, fragment.index))
        and call.is_whole
        and _value(call.arguments) == _value(fragment.written)
    )


def _value(written: str) -> str:
    """Return JSON in a spelling that is the same for the same value; `==` would take 1 for true."""
    try:
        return json.dumps(json.loads(written), sort_keys=True)
    except RecursionError:  # not too deep for the check, but here
        return written


def _go_on(call: CallParts, fragment: _Fragment) -> None:
    call.id = call.id or fragment.id
    if fragment.name != call.name:  # in pieces; some servers repeat it whole instead
        call.name += fragment.name
    if fragment.written:
        call.pieces.append(fragment.written)
