"""Read a question that asks for arithmetic, and nothing else, as an expression for the calculator.

A grammar for the whole question: each word and sign must have its place in it, and where English leaves two
readings the answer is None. "The square root of 144 multiplied by 5" is `sqrt(144) * 5`, as a phrase before a
number takes that number alone. What is added after such a phrase is another matter: "the square root of 144 plus 25",
"half of 10 plus 4" and "15% of 80 plus 5" are read in two ways by many, so by us in neither, unless a comma ends the
phrase. The same holds for "the sum of 3 and 4 squared".
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from atlas_standard_tools._question import unframe
from atlas_standard_tools._spoken_bars import is_over, is_unclear, one_fraction
from atlas_standard_tools._spoken_terms import (
    ADD,
    ATOM,
    MUL,
    POW,
    SIGN,
    Term,
    binary,
    function_template,
    joined,
    postfixed,
    tail,
)
from atlas_standard_tools._spoken_tokens import CALLS, Token, Unreadable, tokens_of
from atlas_standard_tools._words import NUMBER_WORDS

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
    r"|\b(?:24/7|9/11|7/11|50/50|20/20|4/20|4x4|2x4|10-4)\b|\d\.\d+\.\d|\+/?-|±|[@#$€£¥_\\:;\"\[\]{}<>|~&]",
    re.IGNORECASE,
)
_TIGHT_SIGN = re.compile(r"^\s*-?\d+(?:\.\d+)?[-/x]\d+(?:\.\d+)?\s*$", re.IGNORECASE)
# ten-4, nine/11: a number in words that a tight sign ties to digits names something.
_TIED = re.compile(rf"\b(?:{'|'.join(sorted(NUMBER_WORDS))})[-/]\d", re.IGNORECASE)
_YEARS = re.compile(r"((?:1[5-9]|20)\d\d) - ((?:1[5-9]|20)\d\d)")


def read_expression(question: str) -> str | None:
    """Return the expression that the question asks to evaluate, or None if it may ask for anything else."""
    text = unframe(question)
    if len(text) > 300 or not text or _LOOKALIKE.search(text) or _TIED.search(text):
        return None
    asked = _ASKING.match(text)
    body = text[asked.end() :] if asked else text
    body = _ENDING.sub("", body)
    if not asked and (_TIGHT_SIGN.match(body) or _is_span_of_years(text)):
        return None
    if _is_exclaimed(body.strip()):
        return None
    try:
        term = _Reader(tokens_of(body.lower())).whole()
    except Unreadable:
        return None
    return term.text if term.work else None


def _is_exclaimed(body: str) -> bool:
    """Tell whether the "!" at the end may be no factorial: not so in `5!` and `(2 + 1)!`, or with another before it."""
    if re.search(r"!\s*!", body):
        return True  # the factorial of a factorial, or the product of every second number
    return body.endswith("!") and body.count("!") == 1 and not re.fullmatch(r"(?:\d+|\([^()]*\))!", body)


def _is_span_of_years(text: str) -> bool:
    """Tell whether a bare `1990 - 2000` may name the years from one to the other; from late to early it is a sum."""
    years = _YEARS.fullmatch(text)
    return years is not None and years.group(1) < years.group(2)


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

    def whole(self) -> Term:
        term = self._statement()
        while self._peek().kind != "end":
            comma = self._take("comma")
            if self._take("rounded"):
                # "1.26 + 2.44 rounded to 1 decimal" may mean the last number alone.
                if term.level == ADD and not comma:
                    raise Unreadable
                term = self._rounded(term)
                continue
            self._take("and")
            self._take("then")
            term = self._step(term)
        return term

    def _statement(self) -> Term:
        if verb := self._take("verb"):
            return self._command(verb.value)
        if special := self._special():
            return special
        return self._expression()

    def _command(self, verb: str) -> Term:
        if verb in {"add", "multiply"}:
            return self._several("+" if verb == "add" else "*")
        if verb == "round":
            return self._rounded(self._expression())
        a = self._operand()
        if verb in {"subtract", "take"}:
            self._need("from")
            return binary("-", self._last(a), a)
        if verb == "divide":
            self._need("by")
            return binary("/", a, self._last(a))
        if verb in {"increase", "decrease"}:
            self._need("by")
            return self._changed(a, "+" if verb == "increase" else "-")
        if verb == "raise":
            self._need("op", "^")
            return self._powered(a)
        return Term(f"{a.at(ATOM)} ^ {2 if verb == 'square' else 3}", POW)

    def _several(self, op: str) -> Term:
        first = self._operand()
        if self._take("by" if op == "*" else "to"):
            return binary(op, first, self._last(first))
        items = self._items(first)
        return joined(op, items)

    def _step(self, before: Term) -> Term:
        """Read one "then ..." and apply it to what came before."""
        verb = self._need("verb").value
        self._take("it")
        if verb == "round":
            return self._rounded(before)
        if verb in {"square", "cube"}:
            return Term(f"{before.at(ATOM)} ^ {2 if verb == 'square' else 3}", POW)
        if verb in {"add", "subtract", "take"}:
            value = self._last(before)
            if self._take("to") or self._take("from"):
                self._need("it")
            return binary("+" if verb == "add" else "-", before, value)
        self._need("by")
        if verb in {"multiply", "divide"}:
            return binary("*" if verb == "multiply" else "/", before, self._last(before))
        if verb in {"increase", "decrease"}:
            return self._changed(before, "+" if verb == "increase" else "-")
        raise Unreadable

    def _rounded(self, value: Term) -> Term:
        """Read to what a value is rounded; with nothing said, to a whole number."""
        if not self._take("to"):
            return Term(f"round({value.text})", ATOM)
        if places := self._take("places-of"):
            return Term(f"round({value.text}, {places.value})", ATOM)
        if nearest := self._take("nearest"):
            step = nearest.value or self._need("number").value
            if step == "1":
                return Term(f"round({value.text})", ATOM)
            return Term(f"round({value.at(MUL)} / {step}) * {step}", MUL)
        digits = self._need("number").value
        self._need("places")
        return Term(f"round({value.text}, {digits})", ATOM)

    def _special(self) -> Term | None:
        """Read the forms that are a whole question: percentages of each other, "5 more than 3"."""
        start = self._at
        try:
            return self._percent_question() or self._comparison()
        except Unreadable:
            self._at = start
            return None

    def _percent_question(self) -> Term | None:
        start = self._at
        if self._take("what-percent"):
            if self._take("of"):
                base = self._operand()
                self._need("is")
                return self._share(self._last(base), base)
            self._need("is")
            part = self._operand()
            self._need("of")
            return self._share(part, self._last(part))
        if self._take("percent-change"):
            old = self._operand()
            self._need("to")
            new = self._last(old)
            return Term(f"({binary('-', new, old).text}) / {old.at(SIGN)} * 100", MUL)
        part = self._operand(percent=True)
        if self._take("is-what-percent") and self._take("of"):
            return self._share(part, self._last(part))
        self._at = start
        return None

    def _share(self, part: Term, base: Term) -> Term:
        return Term(f"{part.at(MUL)} / {base.at(SIGN)} * 100", MUL)

    def _comparison(self) -> Term | None:
        start = self._at
        first = self._operand(percent=True)
        is_percent = self._take("percent") is not None
        if is_percent and self._take("off"):
            return self._percent_of_change(first, self._last(first), "-")
        for kind, op in (("more-than", "+"), ("less-than", "-"), ("subtracted-from", "-"), ("added-to", "+")):
            if self._take(kind):
                base = self._last(first)
                if is_percent:
                    return self._percent_of_change(first, base, op)
                return binary(op, base, first)
        if not is_percent and (change := self._take("changed-by")):
            return self._changed(first, change.value)
        self._at = start
        return None

    def _changed(self, base: Term, op: str) -> Term:
        amount = self._last(base, percent=True)
        if self._take("percent"):
            return self._percent_of_change(amount, base, op)
        return binary(op, base, amount)

    def _percent_of_change(self, percent: Term, base: Term, op: str) -> Term:
        return Term(f"{base.at(MUL)} * (1 {op} {percent.at(SIGN)} / 100)", MUL)

    # --- expressions

    def _expression(self, *, argument: bool = False) -> Term:
        start = self._at
        left = self._product()
        while ((op := self._peek()).kind == "op" and op.value in {"+", "-"}) or (
            not argument and self._comma_before_sign()
        ):
            comma = self._take("comma")
            op = self._next()
            # "the square root of 144, plus 25": the comma tells that the phrase has ended.
            if (comma is not None) != (left.open == "sum") or left.open == "any":
                raise Unreadable
            right = self._product()
            left = Term(binary(op.value, left, right).text, ADD, open=right.open)
        if left.level == ADD and any(map(is_over, self._tokens[start : self._at])):
            raise Unreadable  # 1 plus 2 over 3: 1 or 1 2/3
        return left

    def _comma_before_sign(self) -> bool:
        following = self._peek(1)
        return self._peek().kind == "comma" and following.kind == "op" and following.value in {"+", "-"}

    def _product(self) -> Term:
        ends, signs = [self._at], []
        left = self._signed()
        while (op := self._peek()).kind == "op" and op.value in {"*", "/", "%"}:
            if left.open == "any":
                raise Unreadable
            signs.append(self._next())
            ends.append(self._at)
            right = self._signed()
            if right.open and op.value == "%":
                raise Unreadable
            both = {left.open, right.open}
            open_ = next((o for o in ("any", "sum", "power") if o in both), "")
            left = Term(binary(op.value, left, right).text, MUL, open=open_)
        ends.append(self._at + 1)
        if is_unclear([self._tokens[a : b - 1] for a, b in pairwise(ends)], signs):
            raise Unreadable  # 10 divided by 1/2: 20 or 5
        return left

    def _signed(self) -> Term:
        if self._take("op", "-") or self._take("negative"):
            value = self._power()
            if value.number is None and (value.level != ATOM or value.open):
                raise Unreadable  # minus five squared: 25 or -25
            number = None if value.number is None else -value.number
            return Term(f"-{value.text}", SIGN, number=number, work=value.work)
        return self._power()

    def _power(self) -> Term:
        base = self._primary()
        if (self._peek().kind == "post" or self._peek().value == "^") and base.open:
            raise Unreadable  # half of 4 squared: 8 or 4
        while post := self._take("post"):
            if post.value == "!" and base.level == POW:
                raise Unreadable  # 3 squared factorial
            base = postfixed(base, post.value)
        sign = self._take("op", "^")
        if sign is None:
            return base
        ends = self._peek().kind == "ordinal"
        raised = self._powered(base)
        end = self._tokens[self._at - 1]
        if end.kind == "post" and (sign.loose or end.written != "!"):
            raise Unreadable  # 2 to the power of 3 squared: 512 or 64
        # "2 to the power of 3 plus 1" is 9 or 16; "2 ^ 3 + 1" and "2 to the third power plus 1" are 9.
        return replace(raised, open="sum") if sign.loose and not ends else raised

    def _powered(self, base: Term) -> Term:
        if ordinal := self._take("ordinal"):
            self._need("power")
            return Term(f"{base.at(ATOM)} ^ {ordinal.value}", POW)
        exponent = self._signed()
        if exponent.open:
            raise Unreadable
        text = exponent.text if exponent.level >= POW or exponent.level == SIGN else f"({exponent.text})"
        return Term(f"{base.at(ATOM)} ^ {text}", POW)

    def _operand(self, *, percent: bool = False) -> Term:
        """Read one number, bracket or phrase, perhaps with a sign, that no operator may follow unseen."""
        negative = self._take("op", "-") or self._take("negative")
        value = self._primary(percent=percent)
        while not negative and not value.open and (post := self._take("post")):
            value = replace(postfixed(value, post.value), posted=True)
        if not negative:
            return value
        if value.number is None:
            raise Unreadable
        return Term(f"-{value.text}", SIGN, number=-value.number, work=False)

    def _last(self, *before: Term, percent: bool = False) -> Term:
        """Read the operand that ends a form: "divide 100 by 5 squared" is 4 or 400, so it may not end in a power."""
        value = self._operand(percent=percent)
        if value.posted and not all(term.posted for term in before):
            raise Unreadable
        return value

    def _primary(self, *, percent: bool = False) -> Term:
        token = self._next()
        if token.kind == "number":
            return self._number(token, percent=percent)
        if token.kind == "open":
            inner = self._expression()
            self._need("close")
            return Term(f"({inner.text})", ATOM, work=inner.work)
        if token.kind == "call":
            return self._call(token.value)
        if token.kind in {"prefix", "times-of", "fraction", "root-sign"}:
            return self._prefixed(token)
        if token.kind == "list":
            return self._list(token.value)
        if token.kind == "constant":
            return Term(token.value, ATOM, work=False)
        if token.kind == "remainder-when":
            return self._remainder()
        raise Unreadable

    def _number(self, token: Token, *, percent: bool) -> Term:
        number = Term(token.value, ATOM, number=float(token.value), work=False)
        if percent or self._peek().kind != "percent":
            return number
        self._next()
        if self._take("of"):
            argument = self._argument()
            return Term(f"{number.text} / 100 * {argument.at(SIGN)}", MUL, open=tail(argument))
        raise Unreadable

    def _prefixed(self, token: Token) -> Term:
        fraction = one_fraction(self._tokens[self._at :]) if token.kind == "prefix" else None
        if fraction and token.value != "factorial":
            self._at += 3
            return self._function(token.value, Term(f"({fraction})", ATOM))
        argument = self._argument()
        if token.kind == "prefix":
            return self._function(token.value, argument)
        if token.kind == "root-sign":
            return Term(f"sqrt({argument.text})", ATOM, open=argument.open)
        return Term(f"{token.value} * {argument.at(SIGN)}", MUL, open=tail(argument))

    def _function(self, name: str, argument: Term) -> Term:
        if name in {"sin", "cos", "tan"}:
            angle = self._need("angle").value  # the sine of 30 alone: degrees or radians
            inner = f"radians({argument.text})" if angle == "degrees" else argument.text
            return Term(f"{name}({inner})", ATOM, open="power")
        open_ = tail(argument)
        template, level = function_template(name)
        text = argument.at(ATOM) if level != ATOM else argument.text
        if argument.is_bracket and level == ATOM and text.count("(") == 1:
            text = text[1:-1]  # the function has brackets of its own
        return Term(template.format(text), level, open=open_)

    def _argument(self) -> Term:
        """Read what a phrase such as "square root of" takes: one number, bracket, list or further phrase."""
        if self._take("op", "-") or self._take("negative"):
            token = self._need("number")
            return Term(f"-{token.value}", SIGN, number=-float(token.value), work=False)
        return self._primary()

    def _call(self, name: str) -> Term:
        arguments = [self._expression(argument=True)]
        if name in {"sin", "cos", "tan"}:
            arguments = [self._angle(arguments[0])]
        commas = set()
        while comma := self._take("comma"):
            commas.add(comma.loose)
            arguments.append(self._expression(argument=True))
        self._need("close")
        least, most = CALLS[name]
        # Commas of two kinds, as in max(1,5, 2,5), may be decimal commas and others.
        if not least <= len(arguments) <= most or len(commas) > 1:
            raise Unreadable
        whole = arguments[0].number is not None and arguments[0].text.lstrip("-").isdecimal()
        if name == "round" and len(arguments) == 2 and whole:
            raise Unreadable  # nobody rounds 1 to 6 decimals: round(1,6) may be 1.6
        return Term(f"{name}({', '.join(a.text for a in arguments)})", ATOM)

    def _angle(self, value: Term) -> Term:
        if angle := self._take("angle"):
            return Term(f"radians({value.text})", ATOM) if angle.value == "degrees" else value
        if value.number != 0 and not re.search(r"\bpi\b|radians\(", value.text):
            raise Unreadable  # sin(30): degrees or radians
        return value

    def _list(self, name: str) -> Term:
        items = self._items(self._operand())
        if name in {"+", "*"}:
            return joined(name, items)
        if name in {"-", "/", "|-|"}:
            return self._pair(name, items)
        return Term(f"{name}({', '.join(i.text for i in items)})", ATOM, open="any")

    def _pair(self, op: str, items: list[Term]) -> Term:
        if len(items) != 2:
            raise Unreadable
        a, b = items
        if op == "/":
            return Term(binary("/", a, b).text, MUL, open="any")
        if a.number is None or b.number is None or (op == "-" and a.number < b.number):
            raise Unreadable  # the difference of 4 and 10: 6 or -6
        larger, smaller = (a, b) if a.number >= b.number else (b, a)
        return Term(binary("-", larger, smaller).text, ADD, open="any")

    def _items(self, first: Term) -> list[Term]:
        items = [first]
        joints = set()
        while self._peek().kind in {"and", "comma"}:
            ahead = 2 if self._peek().kind == "comma" and self._peek(1).kind == "and" else 1
            if self._peek(ahead).kind in {"verb", "then"}:
                break
            comma = self._peek().kind == "comma"
            joints.add(comma and not self._peek().loose)
            self._at += ahead
            if comma and self._peek().value == "-" and self._peek().loose:
                raise Unreadable  # the product of 3 and 4, minus 5: 7 or -60
            items.append(self._operand())
        tokens = self._tokens
        unclear = any(t.kind == "number" and t.unclear_in_list for t in tokens)
        # the average of 1,5 and 2,5: 3.25 or 2; the sum of 3 and 4 squared: 19 or 49
        unclear = unclear or len(joints) > 1 or (items[-1].posted and not all(i.posted for i in items))
        if len(items) < 2 or unclear or any(i.open == "any" for i in items):
            raise Unreadable
        return items

    def _remainder(self) -> Term:
        a = self._need("number").value
        self._take("is")
        if not self._take("op", "/"):
            raise Unreadable
        return Term(f"{a} % {self._need('number').value}", MUL, open="any")
