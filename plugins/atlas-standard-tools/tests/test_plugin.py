from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from atlas_standard_tools import plugin
from atlas_standard_tools.options import Options
from pydantic import ValidationError

from atlas_core import FunctionTool, Tool, ToolError

ALWAYS = ["calculator_tool", "unit_converter", "current_time", "date_arithmetic", "read_file", "list_directory"]
EVERYTHING = {"files": {"write": True}, "fetch": {"enabled": True}}


def _tools(table: dict[str, Any] | None = None) -> dict[str, Tool]:
    options = Options.model_validate(table or {})
    tools = [FunctionTool(function) for function in plugin.atlas_tool_providers(options)]
    return {tool.name: tool for tool in tools}


def _run(tool: Tool, arguments: dict[str, Any]) -> Any:
    result = tool.execute(**tool.build_arguments(arguments))
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def test_writing_and_fetching_are_off_unless_switched_on() -> None:
    """What changes files or leaves the machine has to be asked for."""
    assert list(_tools()) == ALWAYS
    assert list(_tools({"files": {"write": True}})) == [*ALWAYS, "write_file"]
    assert list(_tools({"fetch": {"enabled": True}})) == [*ALWAYS, "fetch_url"]


def test_what_the_metadata_declares_is_what_is_offered() -> None:
    """The declared offers and the tools with everything switched on are the same."""
    declared = {
        point.name for point in entry_points(group="atlas.offers") if point.value == "atlas_standard_tools.plugin"
    }
    assert declared == {f"tool.{name}" for name in _tools(EVERYTHING)}
    (point,) = entry_points(group="atlas", name="standard-tools")
    assert point.load() is plugin


def test_each_tool_states_its_effects() -> None:
    """All read; writing a file does the same however often it runs."""
    effects = {name: tool.effects for name, tool in _tools(EVERYTHING).items()}
    assert effects.pop("write_file") == "idempotent"
    assert set(effects.values()) == {"read"}


@pytest.mark.parametrize("name", list(_tools(EVERYTHING)))
def test_each_tool_tells_a_model_what_it_needs_to_know(name: str) -> None:
    """There is a description, and one for each parameter; the schema is JSON."""
    schema = _tools(EVERYTHING)[name].schema
    assert len(schema.description) > 40
    properties: Any = schema.parameters["properties"]
    assert all(property_.get("description") for property_ in properties.values())
    json.dumps(schema.parameters)


EXAMPLES = [
    (name, example)
    for name, tool in _tools(EVERYTHING).items()
    for example in (tool.schema.hints.examples if tool.schema.hints else ())
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[e.question for _, e in EXAMPLES])
def test_each_example_is_read_by_its_tool_and_no_other_and_runs(
    name: str, example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question gives exactly the arguments, and the tool takes them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for file in ("notes.txt", "docs/plan.md"):
        (tmp_path / file).write_text("a note")
    tools = _tools(EVERYTHING)
    for other, tool in tools.items():
        parse = tool.schema.hints.parse if tool.schema.hints else None
        assert parse is not None
        assert parse(example.question) == (example.arguments if other == name else None)
    if name != "fetch_url":  # its own tests run it, against servers of their own
        assert _run(tools[name], dict(example.arguments)) not in {None, ""}


def test_the_calculator_refuses_as_a_tool_does() -> None:
    """With an error that names the tool, in words for the model. Case 136."""
    with pytest.raises(ToolError, match="divided by zero") as caught:
        _run(_tools()["calculator_tool"], {"expression": "1/0"})
    assert caught.value.tool == "calculator_tool"


def test_the_first_question_of_the_readme_has_the_answer_60() -> None:
    """From words to number through the hints and the tool."""
    tool = _tools()["calculator_tool"]
    assert tool.schema.hints is not None
    assert tool.schema.hints.parse is not None
    arguments = tool.schema.hints.parse("What is the square root of 144 multiplied by 5?")
    assert arguments is not None
    assert _run(tool, dict(arguments)) == 60


QUESTIONS = [
    "What is the square root of 144 multiplied by 5?",
    "5 miles in km",
    "what is 20 C in F",
    "how many days between 2024-01-01 and 2024-03-01",
    "2024-01-15 plus 90 days",
    "what time is it in Tokyo",
    "what is 3 days in hours",
    "what day is today",
    "read notes.txt",
    "list the files",
    "in 5 minutes",
    "5 days ago",
    "what is 7 minus 2 days",
    "fetch https://example.com/",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_for_one_tool_at_most(question: str) -> None:
    """The grammars don't overlap."""
    parsers = {name: tool.schema.hints.parse for name, tool in _tools(EVERYTHING).items() if tool.schema.hints}
    takers = [name for name, parse in parsers.items() if parse is not None and parse(question) is not None]
    assert len(takers) <= 1


LAZY = ["bs4", "certifi", "dateutil", "httpx", "markdownify", "pint", "pydantic", "simpleeval", "zoneinfo"]


def _loaded(code: str) -> set[str]:
    code += f"\nimport sys; print(*(set(sys.modules) & set({LAZY!r})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_importing_the_plugin_loads_no_library() -> None:
    """Nor does importing the modules of the tools; each library loads when first used."""
    assert _loaded("import atlas_standard_tools.plugin") == set()
    assert (
        _loaded(
            "from atlas_standard_tools import calculator, clock, fetch, files, units, _addresses, _arithmetic, _rooted"
        )
        == set()
    )
    assert _loaded("from atlas_standard_tools.calculator import calculator_tool\ncalculator_tool('1+1')") == {
        "simpleeval"
    }


def test_asking_about_something_else_loads_no_library() -> None:
    """The grammars decide on the words alone; pint loads only for what has the form of a conversion."""
    code = (
        "from atlas_standard_tools import _spoken_arithmetic as a, _spoken_units as u, _spoken_dates as d\n"
        "for q in ['hello there', 'what is 2 + 2', 'what time is it', 'who wrote Faust?']:\n"
        "    a.read_expression(q); u.read_conversion(q); d.read_now(q); d.read_reckoning(q)"
    )
    assert _loaded(code) == set()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"filez": {}}, "Extra inputs are not permitted"),
        ({"files": {"rooot": "x"}}, "Extra inputs are not permitted"),
        ({"files": {"max_read_bytes": 0}}, "greater than or equal to 8"),
        ({"fetch": {"allowed_ports": [0]}}, "greater than or equal to 1"),
        ({"fetch": {"timeout_s": 0}}, "greater than 0"),
        ({"fetch": {"allowed_private_networks": ["10.0.0.1/8"]}}, "'10.0.0.1/8' is no network"),
        ({"fetch": {"user_agent": "a\r\nCookie: x"}}, "match pattern"),
        ({"time": {"timezone": "Mordor"}}, "'Mordor' is no known time zone"),
        ({"time": {"timezone": ""}}, "at least 1 character"),
    ],
)
def test_a_wrong_option_is_refused(table: dict[str, Any], text: str) -> None:
    """The model names the key and what was expected."""
    assert plugin.atlas_options() is Options
    with pytest.raises(ValidationError, match=text):
        Options.model_validate(table)


def test_options_are_frozen() -> None:
    """Nobody changes them once they are validated."""
    options = Options.model_validate(
        {"time": {"timezone": "Tokyo"}, "fetch": {"allowed_private_networks": ["10.0.0.0/8"]}}
    )
    with pytest.raises(ValidationError, match="frozen"):
        options.time.timezone = "UTC"
