"""The page about this provider describes every option, and each of its connections is one that the provider takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from atlas_openai.options import OpenAIOptions

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "openai.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
OWN = {"backend", "model", "max_output_tokens"}  # the kernel's keys

pytestmark = pytest.mark.skipif(not TEXT, reason="tested outside of the repository")


def _connections() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL):
        found |= tomllib.loads(block)["default"]["ai"]["connections"]
    return found


@pytest.mark.parametrize("name", _connections())
def test_each_connection_is_valid(name: str) -> None:
    """What a reader copies passes the provider's own model."""
    table = _connections()[name]
    assert table["backend"] == "openai"
    OpenAIOptions(**{key: value for key, value in table.items() if key not in OWN})


@pytest.mark.parametrize("option", OpenAIOptions.model_fields)
def test_each_option_is_described(option: str) -> None:
    """No option is left for the reader to find in the source."""
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert any(f"`{option}`" in row.split("|")[1] for row in rows)


def test_it_says_what_was_not_tried() -> None:
    """In plain words."""
    assert "never run against the live service" in TEXT
