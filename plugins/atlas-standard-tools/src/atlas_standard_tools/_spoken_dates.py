"""Read questions about the present time, and about the distance and weekday of dates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from atlas_standard_tools._question import unframe
from atlas_standard_tools._words import read_number

__all__ = ["read_now", "read_reckoning"]

_WHAT = r"(?:what(?:'s| is|s)|tell|show|give me)"
_AT_PRESENT = r"(?: (?:right )?now| currently| today)?"
_PLACE = r"(?: in (?P<zone>.+?))?"
_TIME = r"(?:time|date|date and time|time and date)"
_NOW = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"what (?:time|date|day)(?: of the week)? is it{_AT_PRESENT}{_PLACE}{_AT_PRESENT}",
        rf"{_WHAT} (?:the )?(?:current |local |present )?{_TIME}{_AT_PRESENT}{_PLACE}{_AT_PRESENT}",
        rf"(?:{_WHAT} )?today'?s date{_PLACE}",
        rf"(?:the )?(?:current |local )?(?:time|date and time) in (?P<zone>.+?){_AT_PRESENT}",
        r"(?:current time|current date|time now|the time)",
        rf"what day(?: of the week)? is (?:it )?today{_PLACE}",
    )
]
_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = (
    r"(?:\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTHS}\.?,? \d{{4}}|{_MONTHS}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    r"|today|now|tomorrow|yesterday)"
)
_UNITS = r"(?:year|month|week|day|hour|minute|second)s?"
_AMOUNT = rf"(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+|an?|[a-z]+(?:[ -][a-z]+){{0,8}}?) {_UNITS})"
_AMOUNTS = rf"(?P<amounts>{_AMOUNT}(?:(?:,? and |, | ){_AMOUNT}){{0,4}})"
_D = rf"(?P<date>{_DATE})"
_O = rf"(?P<other>{_DATE})"
_WHEN = (
    r"(?:(?:what(?:'s| is| was| will be| would be)|whats|which|when is|give me) )?(?:the )?(?:(?:what|which) )?"
    r"(?:date|day)?(?: (?:is|was|will be|falls))?(?: it)? ?"
)
_FALL = r"(?: (?:be|fall|fall on|on|a))?"
_FIND = r"(?:(?:what(?:'s| is)|calculate|find) )?"
_DAY = r"(?:day(?: of the week)?|weekday)"
_HOW_LONG = r"how (?:many (?:days|weeks|months|years)|long)(?: are| is| were| was)?(?: there| it| left)?"
_SPAN = rf"(?:between|from) {_D} (?:and|to|until|till) {_O}"
_RECKONINGS: list[tuple[str, re.Pattern[str]]] = [
    (operation, re.compile(pattern, re.IGNORECASE))
    for operation, pattern in (
        (
            "weekday",
            rf"(?:what|which) {_DAY}(?: (?:is|was|will|does|did))?(?: the)?(?: date)? {_D}{_FALL}",
        ),
        ("weekday", rf"(?:what(?:'s| is| was) )?the (?:day of the week|weekday) (?:of|for|on) {_D}"),
        ("weekday", rf"on (?:what|which) {_DAY} (?:is|was|does|did|will) {_D}(?: (?:fall|be))?"),
        ("difference", rf"{_HOW_LONG} {_SPAN}"),
        (
            "difference",
            rf"{_FIND}(?:the )?(?:number of days|days|difference|time|difference in days) {_SPAN}",
        ),
        ("until", rf"{_HOW_LONG} (?:until|till|to) {_D}"),
        ("since", rf"{_HOW_LONG}(?: has it been| have passed| ago)? since {_D}"),
        ("add", rf"{_WHEN}{_AMOUNTS} (?:after|from|past) {_D}"),
        ("subtract", rf"{_WHEN}{_AMOUNTS} (?:before|prior to|earlier than) {_D}"),
        ("ago", rf"{_WHEN}{_AMOUNTS} ago"),
        ("in", rf"{_WHEN}in {_AMOUNTS}(?: from now)?"),
        ("add", rf"add {_AMOUNTS} to {_D}"),
        ("subtract", rf"subtract {_AMOUNTS} from {_D}"),
        ("add", rf"(?:what(?:'s| is) )?{_D} (?:plus|\+) {_AMOUNTS}"),
        ("subtract", rf"(?:what(?:'s| is) )?{_D} (?:minus|-) {_AMOUNTS}"),
    )
]


def read_now(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `current_time`, or None if the question may ask for anything else."""
    text = unframe(question)
    if len(text) > 120:
        return None
    for form in _NOW:
        if match := form.fullmatch(text):
            zone = match.groupdict().get("zone")
            if zone is None:
                return {}
            return {"timezone": zone} if _is_zone(zone) else None
    return None


def _is_zone(name: str) -> bool:
    from atlas_standard_tools._zones import TimeError, find_zone

    try:
        find_zone(name)
    except TimeError:
        return False
    return True


def read_reckoning(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `date_arithmetic`, or None if the question may ask for anything else."""
    text = unframe(question)
    if len(text) > 200:
        return None
    for operation, form in _RECKONINGS:
        if match := form.fullmatch(text):
            found = _arguments(operation, match.groupdict())
            if found is not None:
                return found
    return None


def _arguments(operation: str, groups: Mapping[str, str | None]) -> Mapping[str, object] | None:
    dates = [d for d in (groups.get("date"), groups.get("other")) if d]
    if not all(_is_date(d) for d in dates):
        return None
    if operation == "weekday":
        if dates[0].lower() in {"today", "now"}:
            return None  # that is what current_time tells
        return {"operation": "weekday", "date": dates[0]}
    if operation == "difference":
        return {"operation": "difference", "date": dates[0], "other_date": dates[1]}
    if operation in {"until", "since"}:
        first, second = ("today", dates[0]) if operation == "until" else (dates[0], "today")
        return {"operation": "difference", "date": first, "other_date": second}
    amounts = _amounts(groups["amounts"] or "")
    if amounts is None:
        return None
    start = dates[0] if dates else "now" if amounts.keys() & {"hours", "minutes", "seconds"} else "today"
    name = {"ago": "subtract", "in": "add"}.get(operation, operation)
    return {"operation": name, "date": start, **amounts}


def _is_date(text: str) -> bool:
    from atlas_standard_tools._dates import read_moment
    from atlas_standard_tools._zones import TimeError

    try:
        read_moment(text, zone=None, now=datetime.now(UTC))
    except TimeError:
        return False
    return True


def _amounts(text: str) -> dict[str, int] | None:
    amounts: dict[str, int] = {}
    rest = text.strip()
    while rest:
        match = re.match(rf"(?P<number>.+?) (?P<unit>{_UNITS})(?:$|,? and |, | )", rest, re.IGNORECASE)
        number = _whole(match.group("number")) if match else None
        if match is None or number is None:
            return None
        unit = match.group("unit").lower().rstrip("s") + "s"
        if unit in amounts:
            return None
        amounts[unit] = number
        rest = rest[match.end() :].strip()
    return amounts


def _whole(text: str) -> int | None:
    text = text.lower().replace(",", "")
    if text in {"a", "an"}:
        return 1
    if text.isdecimal():
        return int(text)
    words = text.replace("-", " ").split()
    spoken = read_number(words)
    if spoken is None or spoken.words != len(words) or "." in spoken.text:
        return None
    return int(spoken.text)
