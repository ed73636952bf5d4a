"""The steps that take values out of a question, each for one kind of parameter."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from atlas_offline.finders import FINDERS, find_dates, find_numbers
from atlas_offline.schemas import Parameter
from atlas_offline.words import QUOTED, name_words

__all__ = ["Reader", "read_all", "unquote"]

# A lone number may fill a lone number parameter only where the name says no more than "a number".
_PLAIN_NUMBER = frozenset({"n", "x", "num", "number", "value", "integer", "int", "float", "arg"})
# Nobody lists the number 000: a comma before it can only part thousands.
_JOINED = re.compile(r"(?<![\w.,(\[])\d{1,3}(?:,\d{3})*,(?!000(?!\d))\d{3}(?!\d)")
_JSON_TAIL = re.compile(r"\{.*\}$", re.DOTALL)
_TELLING = r"(?P<value>[A-Z][\w'-]*(?: [A-Z][\w'-]*)*|[\w.+-]+@[\w.-]+\w|https?://[^\s,]+|\w*[\d._-]\w[\w.-]*)"


@dataclass(slots=True)
class Reader:
    """A clause while values are taken out of it. Spans taken are neither read twice nor left over."""

    text: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    unclear: str = ""

    def take(self, parameter: Parameter, value: object, *spans: tuple[int, int]) -> None:
        self.values[parameter.name] = value
        self.spans.extend(spans)

    def is_free(self, span: tuple[int, int]) -> bool:
        return all(span[1] <= start or end <= span[0] for start, end in self.spans)

    def open(self, params: Sequence[Parameter], *kinds: str) -> list[Parameter]:
        return [p for p in params if p.name not in self.values and (not kinds or p.kind in kinds)]


def read_all(reader: Reader, params: Sequence[Parameter]) -> None:
    """Read all parameters: what is said outright first, what is told by its form next, free text last."""
    if not read_json(reader, params):
        for step in (read_assigned, read_quoted, read_forms, read_enums, read_numbers, read_flags, read_rest):
            step(reader, params)


def read_json(reader: Reader, params: Sequence[Parameter]) -> bool:
    """Take arguments written as a JSON object at the end of the clause, all or none."""
    found = _JSON_TAIL.search(reader.text)
    if not found:
        return False
    try:
        value = json.loads(found[0])
    except ValueError:
        return False
    if not isinstance(value, dict) or not set(value) <= {p.name for p in params}:
        return False
    reader.values.update(value)
    reader.spans.append(found.span())
    return True


def _name_pattern(parameter: Parameter) -> str:
    return r"[\s_-]?".join(map(re.escape, name_words(parameter.name))) or re.escape(parameter.name)


def read_assigned(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take `name=value`, `name: value` and `--name value`, for any type; `name of value` where the form is plain."""
    for parameter in params:
        pattern = (
            rf"(?<![\w-])(?:--)?{_name_pattern(parameter)}\s*(?:=|:(?!//)|(?<=\w) is (?=[\"'`\d-]))\s*"
            r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|[^\s,;?!]+)"
        )
        found = [m for m in re.finditer(pattern, reader.text, re.IGNORECASE) if reader.is_free(m.span())]
        if len(found) > 1:
            reader.unclear = reader.unclear or f"{parameter.name} is given {len(found)} times"
        elif found and not _goes_on(reader.text, found[0], parameter):
            text = unquote(found[0]["value"])
            values = (parameter.convert(form) for form in (text, text.rstrip(".")))
            if (value := next((v for v in values if v is not None), None)) is not None:
                reader.take(parameter, value, found[0].span())


def _goes_on(text: str, found: re.Match[str], parameter: Parameter) -> bool:
    """Tell whether `text: one two` gives a text of several words, which `_read_rest` takes as a whole."""
    if parameter.kind != "text" or parameter.enum or found["value"][0] in "\"'`" or ": " not in found[0]:
        return False
    return re.match(r"\s*(?:$|[,;.?!]|and\b|[\w-]+\s*[=:])", text[found.end() :], re.IGNORECASE) is None


def unquote(text: str) -> str:
    """Return the text without the quotes around it, where both are the same."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def read_quoted(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take quoted texts: one for one text parameter, several for a list, else beside the parameter's name."""
    found = [m for m in QUOTED.finditer(reader.text) if reader.is_free(m.span())]
    if not found:
        return
    texts = [next(g for g in m.groups() if g is not None) for m in found]
    lists = [p for p in reader.open(params, "array") if p.item_kind == "text"]
    plain = [p for p in reader.open(params, "text", "path") if not p.enum]
    if len(lists) == 1 and not any(p.required for p in plain):
        reader.take(lists[0], texts, *(m.span() for m in found))
        return
    for match, text in zip(found, texts, strict=True):
        beside = [p for p in plain if p.name not in reader.values and _stands_before(reader.text, match.start(), p)]
        wanted = beside or [p for p in plain if p.required and p.name not in reader.values] or reader.open(plain)
        if len(wanted) == 1 and (beside or len(found) == 1):
            reader.take(wanted[0], text, match.span())
        elif len(wanted) > 1:
            names = ", ".join(p.name for p in wanted)
            reader.unclear = reader.unclear or f"{text!r} may be any of {names}; write one as {wanted[0].name}={text!r}"


def _stands_before(text: str, start: int, parameter: Parameter) -> bool:
    before = text[max(0, start - 60) : start]
    return bool(
        re.search(rf"(?<![\w-]){_name_pattern(parameter)}(?: is| of| named| called| as)?:?\s*$", before, re.IGNORECASE)
    )


def read_forms(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take e-mail addresses, URLs, dates, paths and texts of a stated pattern, where only one parameter takes them."""
    for kind in ("email", "url", "date", "datetime", "path", "pattern"):
        wanted = reader.open(params, kind)
        if not wanted:
            continue
        find = find_dates if kind in ("date", "datetime") else FINDERS.get(kind)
        for group in _by_pattern(wanted) if kind == "pattern" else [wanted]:
            finder = find or _pattern_finder(group[0])
            found = [(value, span) for value, span in finder(reader.text) if reader.is_free(span)]
            _assign(reader, group, found, kind)


def _by_pattern(wanted: Sequence[Parameter]) -> list[list[Parameter]]:
    groups: dict[str, list[Parameter]] = {}
    for parameter in wanted:
        groups.setdefault(parameter.pattern, []).append(parameter)
    return list(groups.values())


def _pattern_finder(parameter: Parameter) -> Callable[[str], list[tuple[str, tuple[int, int]]]]:
    def find(text: str) -> list[tuple[str, tuple[int, int]]]:
        tokens = [(m[0].rstrip("?!.,;"), m.start()) for m in re.finditer(r"\S+", text)]
        return [(t, (start, start + len(t))) for t, start in tokens if t and parameter.convert(t) is not None]

    return find


def _assign(
    reader: Reader, wanted: Sequence[Parameter], found: Sequence[tuple[object, tuple[int, int]]], kind: str
) -> None:
    """Give values of one form to the parameters of that form: one to one, else by the word before each."""
    rest = list(found)
    for value, span in found:
        beside = [
            p
            for p in wanted
            if p.name not in reader.values and _word_before(reader.text, span[0]) in name_words(p.name)
        ]
        if len(beside) == 1:
            reader.take(beside[0], value, span)
            rest.remove((value, span))
    need = [p for p in wanted if p.required and p.name not in reader.values] or reader.open(wanted)
    if len(rest) == 1 and len(need) == 1:
        reader.take(need[0], rest[0][0], rest[0][1])
    elif rest and need:
        reader.unclear = reader.unclear or (
            f"{len(rest)} value{'s' if len(rest) > 1 else ''} of the form {kind} for {', '.join(p.name for p in need)}"
        )


def _word_before(text: str, start: int) -> str:
    found = re.search(r"([A-Za-z]+)\W*$", text[max(0, start - 40) : start])
    return found[1].lower() if found else ""


def read_enums(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take members of enumerations; parameters with the same members are told apart by the word before."""
    groups: dict[tuple[object, ...], list[Parameter]] = {}
    for parameter in params:
        if parameter.enum and parameter.name not in reader.values and any(isinstance(m, str) for m in parameter.enum):
            groups.setdefault(parameter.enum, []).append(parameter)
    for members, group in groups.items():
        found = _members(reader, members)
        lists = [p for p in group if p.kind == "array"]
        if lists and len(group) == 1 and found:
            reader.take(lists[0], [value for value, _ in found], *(span for _, span in found))
        elif found:
            _assign(reader, group, found, "enumeration")


def _members(reader: Reader, members: Sequence[object]) -> list[tuple[object, tuple[int, int]]]:
    found: list[tuple[object, tuple[int, int]]] = []
    for member in sorted((m for m in members if isinstance(m, str) and m), key=len, reverse=True):
        spelling = r"[\s_-]".join(map(re.escape, re.split(r"[\s_-]+", member)))
        for match in re.finditer(rf"(?<![\w-]){spelling}(?![\w-])", reader.text, re.IGNORECASE):
            if reader.is_free(match.span()) and not any(s <= match.start() < e for _, (s, e) in found):
                found.append((member, match.span()))
    return sorted(found, key=lambda item: item[1])


def read_numbers(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take numbers beside their names, then a lone number for a lone parameter that only says "a number"."""
    for parameter in reader.open(params, "number", "integer"):
        _read_number_beside(reader, parameter)
    free = [(value, span) for value, span in find_numbers(reader.text) if reader.is_free(span)]
    wanted = reader.open(params, "number", "integer")
    lists = [p for p in reader.open(params, "array") if p.item_kind in ("number", "integer")]
    if lists and (joined := next((m for m in _JOINED.finditer(reader.text) if reader.is_free(m.span())), None)):
        reader.unclear = reader.unclear or (
            f"{joined[0]!r} may be one number or several; write a number without commas, and a blank after each comma"
        )
    elif len(lists) == 1 and len(free) > 1 and not wanted and _are_listed(reader.text, [span for _, span in free]):
        values = [lists[0].convert_item(text) for text, _ in free]
        if None not in values:
            reader.take(lists[0], values, *(span for _, span in free))
    elif len(wanted) == len(free) == 1 and set(name_words(wanted[0].name)) <= _PLAIN_NUMBER:
        value = wanted[0].convert(free[0][0])
        if value is not None:
            reader.take(wanted[0], value, free[0][1])


def _are_listed(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    gaps = [text[one[1] : other[0]] for one, other in itertools.pairwise(spans)]
    return all(re.fullmatch(r"\s*(?:,|,?\s*and|\s)\s*", gap, re.IGNORECASE) for gap in gaps)


def _read_number_beside(reader: Reader, parameter: Parameter) -> None:
    name = _name_pattern(parameter)
    last = re.escape(name_words(parameter.name)[-1]) if name_words(parameter.name) else name
    joints = r"(?:s|es)?(?: of| is| to| at| be| set to| equal to| number)?\s+"
    shapes = (rf"(?<![\w-]){name}{joints}(?P<value>NUMBER)", rf"(?<![\w-])(?P<value>NUMBER)[\s-]+(?:{name}|{last})s?\b")
    for shape in shapes:
        found = [
            (value, around) for value, span in find_numbers(reader.text) for around in _around(reader, shape, span)
        ]
        if len(found) > 1:
            reader.unclear = reader.unclear or f"{parameter.name} is given {len(found)} times"
        elif found and (converted := parameter.convert(found[0][0])) is not None:
            reader.take(parameter, converted, found[0][1])
            return


def _around(reader: Reader, shape: str, span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return where the number at `span` stands in the shape asked for."""
    pattern = shape.replace("NUMBER", re.escape(reader.text[span[0] : span[1]]))
    found = re.finditer(pattern, reader.text, re.IGNORECASE)
    return [m.span() for m in found if m.span("value") == span and reader.is_free(m.span())]


def read_flags(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take booleans that are mentioned: `recursive`, `with verbose on`, `not recursive`, `without headers`."""
    for parameter in reader.open(params, "boolean"):
        pattern = (
            rf"(?P<no>\b(?:not|non|no|without|don't|do not|never)[\s-]+)?(?<![\w]){_name_pattern(parameter)}(?:s|ly)?\b"
            r"(?:\s*(?:is|set to)?\s*\b(?P<state>on|off|true|false|yes|no|enabled|disabled)\b)?"
        )
        found = list(re.finditer(pattern, reader.text, re.IGNORECASE))
        if len(found) == 1 and reader.is_free(found[0].span()):
            off = (found[0]["state"] or "").lower() in ("off", "false", "no", "disabled")
            reader.take(parameter, (not found[0]["no"]) != off, found[0].span())


def read_rest(reader: Reader, params: Sequence[Parameter]) -> None:
    """Take `name Value` for a text, then all that follows a colon for the one text that is still wanted."""
    for parameter in reader.open(params, "text"):
        # The name in any case, the value only where its own capital or digit shows that it is one.
        pattern = rf"(?i:(?<![\w-]){_name_pattern(parameter)}(?: of| named| called)?) {_TELLING}"
        found = [m for m in re.finditer(pattern, reader.text) if reader.is_free(m.span())]
        if len(found) == 1:
            reader.take(parameter, found[0]["value"].rstrip("."), found[0].span())
    wanted = [p for p in reader.open(params, "text") if p.required]
    tail = re.search(r"(?<=[\w)]):\s+(\S.*)$", reader.text, re.DOTALL)
    if len(wanted) == 1 and tail and reader.is_free(tail.span(1)):
        reader.take(wanted[0], tail[1].strip(), tail.span(1))
