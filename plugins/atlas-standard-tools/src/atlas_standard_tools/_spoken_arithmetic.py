"""Read a question that asks for arithmetic, and nothing else, as an expression for the calculator.

A grammar for the whole question: each word and sign must have its place in it, and where English leaves two
readings the answer is None. "The square root of 144 multiplied by 5" is `sqrt(144) * 5`, as a phrase before a
number takes that number alone; "the square root of 144 plus 25" is read by many as 13, by many as 37, so by us
as neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from atlas_standard_tools._question import unframe
from atlas_standard_tools._spoken_tokens import Token, Unreadable, tokens_of

__all__ = ["read_expression"]

_ASKING = re.compile(
    r"(?:what(?:'s| is| are| does| do you get if you| do you get when you| would be)|whats|how much (?:is|are)"
    r"|how many (?:is|are)|calculate|compute|evaluate|work out|solve|find|figure out|give me|determine|show me)"
    r"(?P<of>\s+(?:the )?(?:result|value|answer|outcome) (?:of|to|for|when you|if you))?\s*:?\s+",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\s*(?:(?:is )?equals?(?: to)?(?: what)?|make|makes what|is what|=+)\s*$", re.IGNORECASE)
# Spellings that look like arithmetic and seldom are: ranges of years, phone numbers, dates, screen sizes, idioms.
_LOOKALIKE = re.compile(
    r"\d-\d+-\d|\d/\d+/\d|\b\d{3}-\d{4}\b|\b[12]\d{3}-[12]\d{3}\b|(?<![\d.,])0\d|\d{3,}x\d{3,}|\b0x"
    r"|\b(?:24/7|9/11|7/11|50/50|20/20|4/20|4x4|2x4|10-4)\b|\d\.\d+\.\d|[@#$€£¥_\\:;\"\[\]{}<>|~&]",
    re.IGNORECASE,
)
_TIGHT_SIGN = re.compile(r"^\s*-?\d+(?:\.\d+)?[-/x]\d+(?:\.\d+)?\s*$", re.IGNORECASE)
_ADD, _MUL, _SIGN, _POW, _ATOM = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class _Term:
    """A piece of the expression.

    Attributes:
        text: Its text.
        level: How tightly it holds together; a looser one gets brackets where a tighter one is wanted.
        open: What must not follow, as it could be read as part of this piece: "" nothing, "power" a power,
            "sum" also + and -, "any" every operator.
        number: Its value, if it is a bare number.
        work: Whether it computes anything.
    """

    text: str
    level: int
    open: str = ""
    number: float | None = None
    work: bool = True

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def read_expression(question: str) -> str | None:
    """Return the expression that the question asks to evaluate, or None if it may ask for anything else."""
    text = unframe(question)
    if len(text) > 300 or not text or _LOOKALIKE.search(text):
        return None
    asked = _ASKING.match(text)
    body = text[asked.end() :] if asked else text
    body = _ENDING.sub("", body)
    if not asked and _TIGHT_SIGN.match(body):
        return None
    if body.rstrip().endswith("!") and not re.fullmatch(r"\d+!", body.strip()):
        return None
    try:
        term = _Reader(tokens_of(body.lower())).whole()
    except Unreadable:
        return None
    return term.text if term.work else None


def _binary(op: str, a: _Term, b: _Term) -> _Term:
    level = _ADD if op in "+-" else _MUL
    # The right side of - and / must hold together more tightly than the left: 10 - (4 - 1).
    return _Term(f"{a.at(level)} {op} {b.at(level + 1)}", level)


class _Reader:
    """A recursive-descent reader over the tokens of one question."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    # --- tokens

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else Token("end", "")

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, kind: str, value: str | None = None) -> Token | None:
        token = self._peek()
        return self._next() if token.kind == kind and value in {None, token.value} else None

    def _need(self, kind: str, value: str | None = None) -> Token:
        token = self._take(kind, value)
        if token is None:
            raise Unreadable
        return token

    # --- the whole question

    def whole(self) -> _Term:
        term = self._statement()
        while self._peek().kind != "end":
            self._take("comma")
            self._take("and")
            self._take("then")
            term = self._step(term)
        return term

    def _statement(self) -> _Term:
        if verb := self._take("verb"):
            return self._command(verb.value)
        if special := self._special():
            return special
        return self._expression()

    def _command(self, verb: str) -> _Term:
        if verb in {"add", "multiply"}:
            return self._several("+" if verb == "add" else "*")
        a = self._operand()
        if verb in {"subtract", "take"}:
            self._need("from")
            return _binary("-", self._operand(), a)
        if verb == "divide":
            self._need("by")
            return _binary("/", a, self._operand())
        if verb in {"increase", "decrease"}:
            self._need("by")
            return self._changed(a, "+" if verb == "increase" else "-")
        if verb == "raise":
            self._need("op", "^")
            return self._powered(a)
        return _Term(f"{a.at(_ATOM)} ^ {2 if verb == 'square' else 3}", _POW)

    def _several(self, op: str) -> _Term:
        first = self._operand()
        if self._take("by" if op == "*" else "to"):
            return _binary(op, first, self._operand())
        items = self._items(first)
        return _joined(op, items)

    def _step(self, before: _Term) -> _Term:
        """Read one "then ..." and apply it to what came before."""
        verb = self._need("verb").value
        self._take("it")
        if verb in {"square", "cube"}:
            return _Term(f"{before.at(_ATOM)} ^ {2 if verb == 'square' else 3}", _POW)
        if verb in {"add", "subtract", "take"}:
            value = self._operand()
            if self._take("to") or self._take("from"):
                self._need("it")
            return _binary("+" if verb == "add" else "-", before, value)
        self._need("by")
        if verb in {"multiply", "divide"}:
            return _binary("*" if verb == "multiply" else "/", before, self._operand())
        if verb in {"increase", "decrease"}:
            return self._changed(before, "+" if verb == "increase" else "-")
        raise Unreadable

    def _special(self) -> _Term | None:
        """Read the forms that are a whole question: percentages of each other, "5 more than 3"."""
        start = self._at
        try:
            return self._percent_question() or self._comparison()
        except Unreadable:
            self._at = start
            return None

    def _percent_question(self) -> _Term | None:
        start = self._at
        if self._take("what-percent"):
            if self._take("of"):
                base = self._operand()
                self._need("is")
                return self._share(self._operand(), base)
            self._need("is")
            part = self._operand()
            self._need("of")
            return self._share(part, self._operand())
        if self._take("percent-change"):
            old = self._operand()
            self._need("to")
            new = self._operand()
            return _Term(f"({_binary('-', new, old).text}) / {old.at(_SIGN)} * 100", _MUL)
        part = self._operand(percent=True)
        if self._take("is-what-percent") and self._take("of"):
            return self._share(part, self._operand())
        self._at = start
        return None

    def _share(self, part: _Term, base: _Term) -> _Term:
        return _Term(f"{part.at(_MUL)} / {base.at(_SIGN)} * 100", _MUL)

    def _comparison(self) -> _Term | None:
        start = self._at
        first = self._operand(percent=True)
        is_percent = self._take("percent") is not None
        if is_percent and self._take("off"):
            return self._percent_of_change(first, self._operand(), "-")
        for kind, op in (("more-than", "+"), ("less-than", "-"), ("subtracted-from", "-"), ("added-to", "+")):
            if self._take(kind):
                base = self._operand()
                if is_percent:
                    return self._percent_of_change(first, base, op)
                return _binary(op, base, first)
        if not is_percent and (change := self._take("changed-by")):
            return self._changed(first, change.value)
        self._at = start
        return None

    def _changed(self, base: _Term, op: str) -> _Term:
        amount = self._operand(percent=True)
        if self._take("percent"):
            return self._percent_of_change(amount, base, op)
        return _binary(op, base, amount)

    def _percent_of_change(self, percent: _Term, base: _Term, op: str) -> _Term:
        return _Term(f"{base.at(_MUL)} * (1 {op} {percent.at(_SIGN)} / 100)", _MUL)

    # --- expressions

    def _expression(self) -> _Term:
        left = self._product()
        while ((op := self._peek()).kind == "op" and op.value in {"+", "-"}) or self._comma_before_sign():
            comma = self._take("comma")
            op = self._next()
            # "the square root of 144, plus 25": the comma tells that the phrase has ended.
            if (comma is not None) != (left.open == "sum") or left.open == "any":
                raise Unreadable
            right = self._product()
            left = _Term(_binary(op.value, left, right).text, _ADD, open=right.open)
        return left

    def _comma_before_sign(self) -> bool:
        following = self._peek(1)
        return self._peek().kind == "comma" and following.kind == "op" and following.value in {"+", "-"}

    def _product(self) -> _Term:
        left = self._signed()
        while (op := self._peek()).kind == "op" and op.value in {"*", "/", "%"}:
            if left.open == "any":
                raise Unreadable
            self._next()
            right = self._signed()
            if right.open and op.value == "%":
                raise Unreadable
            both = {left.open, right.open}
            open_ = next((o for o in ("any", "sum", "power") if o in both), "")
            left = _Term(_binary(op.value, left, right).text, _MUL, open=open_)
        return left

    def _signed(self) -> _Term:
        if self._take("op", "-") or self._take("negative"):
            value = self._power()
            if value.number is None and not value.text.startswith("("):
                raise Unreadable  # minus five squared: 25 or -25
            number = None if value.number is None else -value.number
            return _Term(f"-{value.text}", _SIGN, number=number, work=value.work)
        return self._power()

    def _power(self) -> _Term:
        base = self._primary()
        if (self._peek().kind == "post" or self._peek().value == "^") and base.open:
            raise Unreadable  # half of 4 squared: 8 or 4
        while post := self._take("post"):
            base = _postfixed(base, post.value)
        return self._powered(base) if self._take("op", "^") else base

    def _powered(self, base: _Term) -> _Term:
        if ordinal := self._take("ordinal"):
            self._need("power")
            return _Term(f"{base.at(_ATOM)} ^ {ordinal.value}", _POW)
        exponent = self._signed()
        if exponent.open:
            raise Unreadable
        text = exponent.text if exponent.level >= _POW or exponent.level == _SIGN else f"({exponent.text})"
        return _Term(f"{base.at(_ATOM)} ^ {text}", _POW)

    def _operand(self, *, percent: bool = False) -> _Term:
        """Read one number, bracket or phrase, perhaps with a sign, that no operator may follow unseen."""
        negative = self._take("op", "-") or self._take("negative")
        value = self._primary(percent=percent)
        while not negative and not value.open and (post := self._take("post")):
            value = _postfixed(value, post.value)
        if not negative:
            return value
        if value.number is None:
            raise Unreadable
        return _Term(f"-{value.text}", _SIGN, number=-value.number, work=False)

    def _primary(self, *, percent: bool = False) -> _Term:
        token = self._next()
        if token.kind == "number":
            return self._number(token, percent=percent)
        if token.kind == "open":
            inner = self._expression()
            self._need("close")
            return _Term(f"({inner.text})", _ATOM, work=inner.work)
        if token.kind == "call":
            return self._call(token.value)
        if token.kind in {"prefix", "times-of", "fraction", "root-sign"}:
            return self._prefixed(token)
        if token.kind == "list":
            return self._list(token.value)
        if token.kind == "constant":
            return _Term(token.value, _ATOM, work=False)
        if token.kind == "remainder-when":
            return self._remainder()
        raise Unreadable

    def _number(self, token: Token, *, percent: bool) -> _Term:
        number = _Term(token.value, _ATOM, number=float(token.value), work=False)
        if percent or self._peek().kind != "percent":
            return number
        self._next()
        if self._take("of"):
            argument = self._argument()
            return _Term(f"{number.text} / 100 * {argument.at(_SIGN)}", _MUL, open=argument.open or "power")
        raise Unreadable

    def _prefixed(self, token: Token) -> _Term:
        argument = self._argument()
        if token.kind == "prefix":
            return self._function(token.value, argument)
        if token.kind == "root-sign":
            return _Term(f"sqrt({argument.text})", _ATOM, open=argument.open)
        return _Term(f"{token.value} * {argument.at(_SIGN)}", _MUL, open=argument.open or "power")

    def _function(self, name: str, argument: _Term) -> _Term:
        if name in {"sin", "cos", "tan"}:
            angle = self._need("angle").value  # the sine of 30 alone: degrees or radians
            inner = f"radians({argument.text})" if angle == "degrees" else argument.text
            return _Term(f"{name}({inner})", _ATOM, open="power")
        bracket = argument.text.startswith("(") and argument.level == _ATOM
        open_ = argument.open if argument.open == "any" else "power" if bracket else "sum"
        template, level = _templates(name)
        text = argument.at(_ATOM) if level != _ATOM else argument.text
        if bracket and level == _ATOM and text.count("(") == 1:
            text = text[1:-1]  # the function has brackets of its own
        return _Term(template.format(text), level, open=open_)

    def _argument(self) -> _Term:
        """Read what a phrase such as "square root of" takes: one number, bracket, list or further phrase."""
        if self._take("op", "-") or self._take("negative"):
            token = self._need("number")
            return _Term(f"-{token.value}", _SIGN, number=-float(token.value), work=False)
        return self._primary()

    def _call(self, name: str) -> _Term:
        arguments = [self._expression()]
        while self._take("comma"):
            arguments.append(self._expression())
        self._need("close")
        return _Term(f"{name}({', '.join(a.text for a in arguments)})", _ATOM)

    def _list(self, name: str) -> _Term:
        items = self._items(self._operand())
        if name in {"+", "*"}:
            return _joined(name, items)
        if name in {"-", "/", "|-|"}:
            return self._pair(name, items)
        return _Term(f"{name}({', '.join(i.text for i in items)})", _ATOM, open="any")

    def _pair(self, op: str, items: list[_Term]) -> _Term:
        if len(items) != 2:
            raise Unreadable
        a, b = items
        if op == "/":
            return _Term(_binary("/", a, b).text, _MUL, open="any")
        if a.number is None or b.number is None or (op == "-" and a.number < b.number):
            raise Unreadable  # the difference of 4 and 10: 6 or -6
        larger, smaller = (a, b) if a.number >= b.number else (b, a)
        return _Term(_binary("-", larger, smaller).text, _ADD, open="any")

    def _items(self, first: _Term) -> list[_Term]:
        items = [first]
        while self._peek().kind in {"and", "comma"}:
            ahead = 2 if self._peek().kind == "comma" and self._peek(1).kind == "and" else 1
            if self._peek(ahead).kind in {"verb", "then"}:
                break
            self._at += ahead
            items.append(self._operand())
        tokens = self._tokens
        unclear = any(t.kind == "number" and t.unclear_in_list for t in tokens)
        if len(items) < 2 or unclear or any(i.open == "any" for i in items):
            raise Unreadable
        return items

    def _remainder(self) -> _Term:
        a = self._need("number").value
        self._take("is")
        if not self._take("op", "/"):
            raise Unreadable
        return _Term(f"{a} % {self._need('number').value}", _MUL, open="any")


def _templates(name: str) -> tuple[str, int]:
    """Return the pattern a phrase is written with, and how tightly that holds together."""
    if name.startswith("root "):
        return f"{{}} ^ (1 / {name[5:]})", _POW
    return {
        "square": ("{} ^ 2", _POW),
        "cube": ("{} ^ 3", _POW),
        "reciprocal": ("1 / {}", _MUL),
    }.get(name, (f"{name}({{}})", _ATOM))


def _postfixed(base: _Term, post: str) -> _Term:
    if post == "!":
        return _Term(f"factorial({base.text})", _ATOM)
    return _Term(f"{base.at(_ATOM)} ^ {post}", _POW)


def _joined(op: str, items: list[_Term]) -> _Term:
    level = _ADD if op == "+" else _MUL
    return _Term(f" {op} ".join(i.at(level + 1) for i in items), level, open="any")
