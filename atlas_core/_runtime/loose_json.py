"""JSON as models write it: read with the repairs of form that leave no doubt, refused where there is any.

Read besides JSON: trailing commas, comments (`//`, `#`, `/* */`), single and typographic quotes as delimiters, line
breaks inside strings, `True`, `False` and `None`, plain words as keys, `+5`, `.5` and `5.`. Never read: NaN and
Infinity, a key twice in one object, brackets that don't match, an unknown escape, anything that was cut off.

Numbers stay the digits that were written: they are copied, never computed. Nothing recurses over the input, each
character is looked at a bounded number of times, and what is wrong ends the reading at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TypeAlias

__all__ = ["MAX_DEPTH", "MAX_REPAIR_CHARS", "LooseError", "Node", "parse", "quoted", "render", "repair", "skip_space"]

MAX_DEPTH = 128
"""Arrays and objects inside one another; arguments are held to fewer when they are checked."""

MAX_REPAIR_CHARS = 4_000
"""What json-repair 0.64.6 may get: its worst input found takes 0.15 s at this length, and 37 s at ten times it."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]++)
  | (?P<odd_space>[\ufeff\u00a0\u2028\u2029\u200b]++ | (?://|\#)[^\r\n]*+ | /\*(?:[^*]++|\*(?!/))*+\*/)
  | (?P<mark>[{}\[\],:])
  | (?P<double>"(?:[^"\\]++|\\.)*+")
  | (?P<single>'(?:[^'\\]++|\\.)*+')
  | (?P<smart>[“”„](?:[^“”\\]++|\\.)*+[“”] | [‘’](?:[^‘’\\]++|\\.)*+[‘’])
  | (?P<number>[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?+(?![\w.]))
  | (?P<word>[-+]?[^\W\d][\w-]*+)
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][-+]?\d++)?", re.ASCII)
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_PLAIN_KEY = re.compile(r"(?!(?i:true|false|null|none|nan|infinity)\Z)[^\W\d]\w*+(?:-\w++)*+")
_ESCAPE = re.compile(r"\\(.)|\"", re.DOTALL)
_OPENERS = "\"'“”„‘’"
_CLOSES = {"}": "{", "]": "["}
_SHOWN_CHARS = 40

_Token: TypeAlias = tuple[str, int, int]


class LooseError(ValueError):
    """The text is not JSON, nor was it surely meant to be.

    Attributes:
        at: Where reading ended, as an index into the text.
        cut: Whether the text ended too early, so that what is missing can't be known.
        repairable: Whether a missing comma may be all that is wrong.
    """

    def __init__(self, problem: str, at: int, *, cut: bool = False, repairable: bool = False) -> None:
        super().__init__(problem, at)
        self.problem = problem
        self.at = at
        self.cut = cut
        self.repairable = repairable

    def __str__(self) -> str:
        return self.problem


class Node:
    """A value and where it stands.

    Attributes:
        kind: "object", "array", "string", "number" or "word".
        start, end: Its place in the text.
        text: A string's value, a number's digits, or `true`, `false` or `null`.
        items: An array's.
        members: An object's.
        exact: Whether its piece of the text is JSON as it stands.
    """

    __slots__ = ("end", "exact", "items", "kind", "members", "start", "text")

    def __init__(self, kind: str, start: int, end: int, text: str = "", *, exact: bool = True) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.text = text
        self.exact = exact
        self.items: list[Node] = []
        self.members: dict[str, Node] = {}

    @property
    def is_null(self) -> bool:
        """Whether it is `null`."""
        return self.kind == "word" and self.text == "null"


def parse(text: str, at: int = 0) -> Node:
    """Read the value that begins at `at`; what follows it is not looked at.

    Raises:
        LooseError: There is none.
    """
    return _Parser(text, at).read()


def render(node: Node) -> str:
    """Write a value as JSON on one line, numbers as they were written."""
    match node.kind:
        case "string":
            return quoted(node.text)
        case "array":
            return "[" + ", ".join(map(render, node.items)) + "]"
        case "object":
            return "{" + ", ".join(f"{quoted(key)}: {render(value)}" for key, value in node.members.items()) + "}"
        case _:
            return node.text


def quoted(text: str) -> str:
    """Write a string as JSON. Halves of a surrogate pair stay escapes, as nobody could encode the message else."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def skip_space(text: str, at: int, end: int) -> int:
    """Return the first index from `at` on that is neither space nor comment, at most `end`."""
    while at < end and (match := _TOKEN.match(text, at, end)) is not None and match.lastgroup in ("space", "odd_space"):
        at = match.end()
    return at


class _Parser:
    """Reads one value with a stack of its own; `_take` is what waits for the next token."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at
        self._stack: list[Node] = []
        self._keys: list[str] = []
        self._root: Node | None = None
        self._exact = True
        self._take: Callable[[_Token], None] = self._value

    def read(self) -> Node:
        while self._root is None:
            self._take(self._token())
        return self._root

    def _token(self) -> _Token:
        while True:
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise _no_token(self._text, self._at)
            self._at = match.end()
            kind = str(match.lastgroup)
            if kind == "odd_space":
                self._exact = False
                if self._stack:
                    self._stack[-1].exact = False
            elif kind not in {"space", "odd_space"}:
                return (match[0] if kind == "mark" else kind), match.start(), match.end()

    # What may come next ------------------------------------------------------------------------------------------

    def _value(self, token: _Token) -> None:
        kind, start, end = token
        if kind in {"{", "["}:
            if len(self._stack) == MAX_DEPTH:
                raise LooseError(f"it is nested more than {MAX_DEPTH} deep", start)
            self._stack.append(Node("object" if kind == "{" else "array", start, end))
            self._keys.append("")
            self._take = self._key if kind == "{" else self._item
        elif kind in {"double", "single", "smart"}:
            text, exact = _string(self._text, kind, start, end)
            self._attach(Node("string", start, end, text, exact=exact))
        elif kind == "number":
            digits, exact = _number(self._text, start, end)
            self._attach(Node("number", start, end, digits, exact=exact))
        elif kind == "word":
            literal = _literal(self._text, start, end)
            self._attach(Node("word", start, end, literal, exact=literal == self._text[start:end]))
        else:
            raise _unexpected(self._text, start, "a value")

    def _item(self, token: _Token) -> None:
        if token[0] == "]":
            self._close(token, trailing_comma=bool(self._stack[-1].items))
        else:
            self._value(token)

    def _key(self, token: _Token) -> None:
        kind, start, end = token
        holder = self._stack[-1]
        if kind == "}":
            self._close(token, trailing_comma=bool(holder.members))
            return
        if kind == "word" and _PLAIN_KEY.fullmatch(self._text, start, end):
            key, exact = self._text[start:end], False
        elif kind in {"double", "single", "smart"}:
            key, exact = _string(self._text, kind, start, end)
        else:
            raise _unexpected(self._text, start, "a key or '}'")
        if key in holder.members:
            raise LooseError(f"the key {key[:_SHOWN_CHARS]!r} stands twice in one object", start)
        holder.exact &= exact
        self._keys[-1] = key
        self._take = self._colon

    def _colon(self, token: _Token) -> None:
        if token[0] != ":":
            raise _unexpected(self._text, token[1], "':'")
        self._take = self._value

    def _next(self, token: _Token) -> None:
        kind, start, _ = token
        holder = self._stack[-1]
        if kind == ",":
            self._take = self._key if holder.kind == "object" else self._item
        elif kind in _CLOSES:
            self._close(token)
        else:
            raise _unexpected(self._text, start, "',' or '}'" if holder.kind == "object" else "',' or ']'")

    def _close(self, token: _Token, *, trailing_comma: bool = False) -> None:
        kind, start, end = token
        node = self._stack.pop()
        if (node.kind == "object") is not (kind == "}"):
            raise LooseError(f"its brackets don't match at {_near(self._text, start)}", start)
        self._keys.pop()
        node.end = end
        node.exact &= not trailing_comma
        self._attach(node)

    def _attach(self, node: Node) -> None:
        if not self._stack:
            node.exact &= self._exact
            self._root = node
            return
        holder = self._stack[-1]
        holder.exact &= node.exact
        if holder.kind == "object":
            holder.members[self._keys[-1]] = node
        else:
            holder.items.append(node)
        self._take = self._next


def _near(text: str, at: int) -> str:
    piece = text[at : at + _SHOWN_CHARS]
    return repr(re.split(r"[\r\n]", piece, maxsplit=1)[0] or piece[:1])


def _unexpected(text: str, at: int, wanted: str = "") -> LooseError:
    belongs = f" where {wanted} belongs" if wanted else ""
    return LooseError(f"it is not JSON at {_near(text, at)}{belongs}", at, repairable=True)


def _no_token(text: str, at: int) -> LooseError:
    if at >= len(text):
        return LooseError("it ends before its brackets are closed", at, cut=True)
    if text[at] in _OPENERS:
        return LooseError(f"the string that begins {_near(text, at)} is not closed", len(text), cut=True)
    if text.startswith("/*", at):
        return LooseError("a comment in it is not closed", len(text), cut=True)
    return LooseError(f"it is not JSON at {_near(text, at)}", at)


def _string(text: str, kind: str, start: int, end: int) -> tuple[str, bool]:
    """Return a string's value, and whether it is JSON as it stands."""
    lexeme = text[start:end]
    if kind == "double":
        try:
            return json.loads(lexeme), True
        except ValueError:
            pass
    try:
        # strict=False: line breaks and tabs stand for themselves
        return str(json.loads(f'"{_ESCAPE.sub(_escape, lexeme[1:-1])}"', strict=False)), False
    except ValueError:
        raise LooseError(
            f"the string {_near(text, start)} has an unknown escape; write each backslash twice", start
        ) from None


def _escape(match: re.Match[str]) -> str:
    """Write one escape, or a bare double quote, as JSON does."""
    if match[0] == '"':
        return '\\"'
    return match[1] if match[1] in "'“”„‘’" else match[0]


def _number(text: str, start: int, end: int) -> tuple[str, bool]:
    lexeme = text[start:end]
    if _NUMBER.fullmatch(lexeme):
        return lexeme, True
    sign = "-" if lexeme[0] == "-" else ""
    whole, point, rest = lexeme.lstrip("+-").partition(".")
    digits = sign + (whole or "0") + (f".{rest}" if rest[:1].isdigit() else f".0{rest}" if point else "")
    if not _NUMBER.fullmatch(digits):
        raise LooseError(f"{lexeme[:_SHOWN_CHARS]!r} is no JSON number", start)
    return digits, False


def _literal(text: str, start: int, end: int) -> str:
    word = text[start:end]
    if word.lstrip("+-").lower() in {"nan", "inf", "infinity"}:
        raise LooseError(f"{word} is no JSON number", start)
    if word not in _LITERALS:
        raise LooseError(f"the text {word[:_SHOWN_CHARS]!r} is not in quotes", start)
    return _LITERALS[word]


# The last step -------------------------------------------------------------------------------------------------------


def repair(text: str) -> Node:
    """Read a value that lacks commas, with json-repair's help; places are those of a text with the commas added.

    Ambiguity is decided on tokens: strings, numbers, words, brackets and colons of the repaired value must be those
    of the text, all of them and in order. Only commas may be added, and only those before a closing bracket dropped:
    nothing is closed, split, quoted or thrown away by guess, and what is read in the end is the text itself.

    Args:
        text: One value and nothing else.
    Raises:
        LooseError: It is too long, or other than that.
    """
    if len(text) > MAX_REPAIR_CHARS:
        raise LooseError("it is not JSON, and too long to be repaired", 0)
    written = list(_tokens(text))  # raises where no comma would help
    from json_repair import repair_json  # seldom needed

    try:
        repaired = str(repair_json(text, skip_json_loads=True, ensure_ascii=False))
    except Exception as exc:  # a heuristic over any text; what it can't read is simply not repaired
        raise LooseError(f"it is not JSON: {type(exc).__name__}", 0) from exc
    places = _missing_commas(written, list(_tokens(repaired)))
    if places is None:
        raise LooseError("it is not JSON, and can be repaired in more than one way", 0)
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    return parse(",".join(pieces))


def _tokens(text: str) -> Iterator[tuple[object, int]]:
    """Yield the meaning and the place of each token but space."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _no_token(text, at)
        kind, start, at = str(match.lastgroup), match.start(), match.end()
        match kind:
            case "space" | "odd_space":
                continue
            case "mark":
                yield text[start:at], start
            case "number":
                yield _worth(_number(text, start, at)[0]), start
            case "word":
                yield ("word", _literal(text, start, at)), start
            case _:
                yield ("string", _string(text, kind, start, at)[0]), start


def _worth(digits: str) -> object:
    try:
        return Decimal(digits)
    except ArithmeticError:  # an exponent beyond what even it holds
        return digits


def _missing_commas(written: list[tuple[object, int]], repaired: list[tuple[object, int]]) -> list[int] | None:
    """Return where the text lacks commas; None if the repaired value differs in more than that."""
    places: list[int] = []
    rest = iter([token for token, _ in repaired] + [None])
    expected = next(rest)
    for n, (token, start) in enumerate(written):
        if expected == "," != token:
            places.append(start)
            expected = next(rest)
        if token == expected:
            expected = next(rest)
        elif token != "," or n + 1 == len(written) or written[n + 1][0] not in _CLOSES:
            return None
    return places if expected is None else None
