from __future__ import annotations

from typing import Any

import pytest
from atlas_openai.options import OpenAIOptions, named_by_variable
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_url": "localhost:8000"}, "expected an address such as"),
        ({"base_url": "ftp://localhost"}, "expected an address such as"),
        ({"base_url": "https://me:secret@localhost"}, "holds no login"),
        ({"api_key_env": "sk-abc def"}, "expected the name of an environment variable"),
        ({"proxy_env": "http://x"}, "expected the name of an environment variable"),
        ({"headers": {"X-Key_env": "not a name"}}, "'X-Key_env' must be the name of an environment variable"),
        ({"query": {"key-env": "not a name"}}, "'key-env' must be the name of an environment variable"),
        ({"extra_body": {"messages": []}}, "messages can't be set here"),
        ({"extra_body": {"stream": True, "model": "x"}}, "model, stream can't be set here"),
        ({"api": "completions"}, "'chat' or 'responses'"),
        ({"temperature": 3}, "less than or equal to 2"),
        ({"max_retries": -1}, "greater than or equal to 0"),
        ({"idle_timeout_seconds": 0}, "greater than 0"),
        ({"bas_url": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_option_is_refused(options: Any, words: str) -> None:
    """The error says what was expected."""
    with pytest.raises(ValidationError) as caught:
        OpenAIOptions(**options)
    assert words in str(caught.value)


def test_a_key_in_place_of_a_variable_is_not_repeated() -> None:
    """Whoever writes the key itself does not find it in a log."""
    with pytest.raises(ValidationError) as caught:
        OpenAIOptions(api_key_env="my-4711-key")
    assert "4711" not in caught.value.errors()[0]["msg"]


def test_the_address_loses_its_last_slash() -> None:
    """Both ways of writing it are one."""
    assert OpenAIOptions(base_url="http://localhost:1/v1/").base_url == "http://localhost:1/v1"


@pytest.mark.parametrize(
    ("name", "bare"), [("X-Key_env", "X-Key"), ("x-key-ENV", "x-key"), ("X-Title", None), ("_env", None)]
)
def test_names_of_variables_are_told_by_their_end(name: str, bare: str | None) -> None:
    """`NAME_env` holds the name of the variable with NAME's value."""
    assert named_by_variable(name) == bare
