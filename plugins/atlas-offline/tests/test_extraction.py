from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from atlas_offline.extraction import coerce, extract, required_missing, text_parameter
from atlas_offline.relevance import concerns
from pydantic import Field

from atlas_core import ToolSchema


class Unit(enum.StrEnum):
    EURO = "euro"
    DOLLAR = "dollar"
    POUND_STERLING = "pound_sterling"


def start_server(port: int, host: str = "localhost", verbose: bool = False, timeout_s: float | None = None) -> str:
    """Start a web server."""
    return ""


def exchange(amount: float, from_currency: Unit, to_currency: Unit) -> str:
    """Exchange an amount of money."""
    return ""


def set_mode(mode: Literal["fast", "slow"]) -> str:
    """Set the mode of a motor."""
    return ""


def paint(colors: list[Literal["red", "blue", "green"]]) -> str:
    """Paint in colors."""
    return ""


def get_weather(city: str, day: str | None = None) -> str:
    """Get the weather for a city."""
    return ""


def translate(text: str, target: Literal["french", "german"]) -> str:
    """Translate a text into another language."""
    return ""


def send_email(to: str, subject: str, body: str) -> str:
    """Send a message."""
    return ""


def word_count(text: str) -> int:
    """Count the words in a text."""
    return 0


def square(n: float) -> float:
    """Compute the square of a number."""
    return n * n


def roll_dice(sides: int) -> int:
    """Roll dice."""
    return 1


def average(values: list[float]) -> float:
    """Compute the average of numbers."""
    return 0.0


def tag_photo(labels: list[str]) -> str:
    """Tag a photo with labels."""
    return ""


def invite(email: str, date: str) -> str:
    """Invite a guest for a date."""
    return ""


def open_ticket(number: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{4}$")]) -> str:
    """Open a ticket."""
    return ""


def download(url: str, path: str) -> str:
    """Download a page into a file."""
    return ""


def copy_file(source_path: str, to_path: str) -> str:
    """Copy a file."""
    return ""


def replace_text(old: str, new: str) -> str:
    """Replace a text by another."""
    return ""


def make(schemas: Any, function: Any) -> ToolSchema:
    """Return the schema of one function."""
    schema: ToolSchema
    (schema,) = schemas(function)
    return schema


@pytest.mark.parametrize(
    ("function", "question", "expected"),
    [
        (start_server, "start the server on port 8080", {"port": 8080}),
        (start_server, "start server port=8080", {"port": 8080}),
        (start_server, "start server, port: 8080", {"port": 8080}),
        (start_server, "start a server with a port of 8080", {"port": 8080}),
        (start_server, "start the server at port 1,024", {"port": 1024}),
        (start_server, 'start the server on port 80 host="a.example"', {"port": 80, "host": "a.example"}),
        (start_server, "start the server on port 80, verbose", {"port": 80, "verbose": True}),
        (start_server, "start the server on port 80, not verbose", {"port": 80, "verbose": False}),
        (start_server, "start the server on port 80, verbose off", {"port": 80, "verbose": False}),
        (start_server, "start server port=80 timeout_s=2.5", {"port": 80, "timeout_s": 2.5}),
        (start_server, 'start_server {"port": 80, "verbose": true}', {"port": 80, "verbose": True}),
        (
            exchange,
            "exchange an amount of 50 from euro to dollar",
            {"amount": 50.0, "from_currency": "euro", "to_currency": "dollar"},
        ),
        (
            exchange,
            "exchange the amount 50 to pound sterling from euro",
            {"amount": 50.0, "from_currency": "euro", "to_currency": "pound_sterling"},
        ),
        (set_mode, "set the motor mode to fast", {"mode": "fast"}),
        (paint, "paint in the colors red and blue", {"colors": ["red", "blue"]}),
        (get_weather, "the weather in the city New York", {"city": "New York"}),
        (get_weather, "weather for city of Paris.", {"city": "Paris"}),
        (get_weather, "weather city: New York", {"city": "New York"}),
        (get_weather, "weather city: Paris, day=tomorrow", {"city": "Paris", "day": "tomorrow"}),
        (translate, 'translate "in french" into German', {"text": "in french", "target": "german"}),
        (
            send_email,
            'send an e-mail to bob@example.com with subject "Hi" and body "Hello there"',
            {"to": "bob@example.com", "subject": "Hi", "body": "Hello there"},
        ),
        (word_count, "count the words in this text: one two 3", {"text": "one two 3"}),
        (square, "the square of 12", {"n": 12}),
        (average, "the average of 1, 2 and 3.5", {"values": [1, 2, 3.5]}),
        (average, "the average of 1,000 and 2,000", {"values": [1000, 2000]}),
        (average, "average(5,100)", {"values": [5, 100]}),
        (tag_photo, 'tag the photo with "sea" and "sun"', {"labels": ["sea", "sun"]}),
        (
            invite,
            "invite guest bob@example.com on 5 March 2024",
            {"email": "bob@example.com", "date": "2024-03-05"},
        ),
        (open_ticket, "open ticket AB-1234", {"number": "AB-1234"}),
        (
            download,
            "download https://example.com/a into file a.html",
            {"url": "https://example.com/a", "path": "a.html"},
        ),
        (copy_file, "copy the file source a.txt to b.txt", {"source_path": "a.txt", "to_path": "b.txt"}),
        (replace_text, "replace the text old='a b' new='c'", {"old": "a b", "new": "c"}),
    ],
)
def test_arguments_are_read_by_type(schemas: Any, function: Any, question: str, expected: dict[str, Any]) -> None:
    """Numbers beside names, members, flags, addresses, paths, dates and quoted texts find their parameter."""
    tool = make(schemas, function)
    found = extract(question, tool)
    assert (found.arguments, found.missing, found.leftover, found.unclear) == (expected, (), (), "")


@pytest.mark.parametrize(
    ("function", "question", "missing"),
    [
        (start_server, "start the server", ("port",)),
        (start_server, "start_server {port: 80}", ("port",)),
        (start_server, 'start_server {"haven": 80}', ("port",)),
        (get_weather, "the weather in Paris", ("city",)),
        (roll_dice, "roll 6 dice", ("sides",)),
        (exchange, "exchange an amount of 50", ("from_currency", "to_currency")),
        (set_mode, "set the motor mode to warp", ("mode",)),
        (invite, "invite a guest on 12/05/2024", ("email", "date")),
        (open_ticket, "open ticket ab1234", ("number",)),
    ],
)
def test_a_missing_argument_is_named_and_not_guessed(
    schemas: Any, function: Any, question: str, missing: tuple[str, ...]
) -> None:
    """What the question does not say stays open."""
    assert extract(question, make(schemas, function)).missing == missing


@pytest.mark.parametrize(
    ("function", "question", "unclear"),
    [
        (copy_file, "copy the file a.txt b.txt", "2 values of the form path"),
        (exchange, "exchange amount 5 euro dollar", "2 values of the form enumeration"),
        (replace_text, 'replace the text "a"', "may be any of old, new"),
        (start_server, "start server port 80 port 81", "port is given 2 times"),
        (start_server, "start server port=80 port=81", "port is given 2 times"),
        (average, "the average of 100,200 and 300", "'100,200' may be one number or several"),
        (average, "the average of 1,100,900", "'1,100,900' may be one number or several"),
        (average, "the average of 1,000,100 and 5", "'1,000,100' may be one number or several"),
    ],
)
def test_two_readings_are_told_as_such(schemas: Any, function: Any, question: str, unclear: str) -> None:
    """Where a value may belong to several parameters, none gets it."""
    assert unclear in extract(question, make(schemas, function)).unclear


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("start the server on port 80 tomorrow", "tomorrow"),
        ("don't start the server on port 80", "don't"),
        ("start the server on port 80 with 3 dogs", "3"),
        ("start the server on port 80/443", "443"),
        ("start the server on port 80 + 1", "+"),
    ],
)
def test_what_the_call_would_ignore_is_left_over(schemas: Any, question: str, left: str) -> None:
    """Words, numbers and signs without a place in the call are reported."""
    assert left in " ".join(extract(question, make(schemas, start_server)).leftover)


@pytest.mark.parametrize(
    ("function", "question", "expected"),
    [
        (start_server, "start a server", True),
        (start_server, "is the server started?", False),
        (start_server, "is there a start server", False),
        (start_server, "the server", False),
        (square, "the square of 5", True),
        (average, "is the average of 2 and 3 high", True),
        (invite, "a guest and a date", False),
        (download, "fetch a page", False),
    ],
)
def test_a_tool_that_changes_something_must_be_asked_for_by_its_verb(
    schemas: Any, function: Any, question: str, expected: bool
) -> None:
    """A question about a thing is no order to change it."""
    assert concerns(question, make(schemas, function)) is expected


def test_a_tool_is_found_by_two_words_of_its_description() -> None:
    """A name that says nothing is no hindrance."""
    tool = ToolSchema(name="ping", description="Check whether a host is reachable.")
    assert concerns("is the host example.com reachable", tool)
    assert not concerns("the host of the show", tool)
    assert not concerns("anything", ToolSchema(name="ping"))
    shutdown = ToolSchema(name="shutdown", description="Shut down the machine.")
    reboot = ToolSchema(name="reboot_machine", description="Reboot the machine.")
    status = ToolSchema(name="order_status", description="Get the status of an order.")
    assert concerns("please shutdown", shutdown)
    assert concerns("reboot the machine", reboot)
    assert concerns("what is the status of the order", status)
    assert not concerns("what is a shutdown?", shutdown)
    assert not concerns("what is a machine reboot?", reboot)
    assert not concerns("", reboot)
    sender = ToolSchema(name="outbox", description="Send a letter to a friend.")
    assert concerns("send a letter to my friend", sender)
    assert not concerns("did you send a letter to my friend", sender)
    assert not concerns("the letter from a friend", sender)


def test_a_pattern_s_groups_become_values_of_the_schema_s_types(schemas: Any) -> None:
    """Text from a pattern is converted, and refused where it does not fit."""
    tool = make(schemas, start_server)
    assert coerce(tool, {"port": "80", "verbose": "yes"}) == {"port": 80, "verbose": True}
    assert coerce(tool, {"port": "eighty"}) is None
    assert coerce(tool, {"host_": "'a b'"}) == {"host": "a b"}
    assert required_missing(tool, {"host": "a"}) == ("port",)


@pytest.mark.parametrize(
    ("properties", "required", "expected"),
    [
        ({"query": {"type": "string"}}, ["query"], "query"),
        ({"query": {"type": "string"}, "limit": {"type": "integer"}}, ["query"], "query"),
        ({"query": {"type": "string"}, "limit": {"type": "integer"}}, ["query", "limit"], None),
        ({"query": {"type": "string"}}, [], "query"),
        ({"a": {"type": "string"}, "b": {"type": "string"}}, [], None),
        ({}, [], None),
    ],
)
def test_the_text_parameter_of_a_search_is_the_only_one_it_needs(
    properties: dict[str, Any], required: list[str], expected: str | None
) -> None:
    """A tool that needs more than a text can't take any question."""
    schema = {"type": "object", "properties": properties, "required": required}
    assert text_parameter(ToolSchema(name="search", parameters=schema)) == expected
