from __future__ import annotations

from typing import Any

import pytest
from atlas_anthropic.options import AnthropicOptions, named_by_variable
from pydantic import ValidationError


def test_the_defaults_are_those_of_the_vendor() -> None:
    """Nothing needs to be set but the variable with the key."""
    options = AnthropicOptions()
    assert options.base_url == "https://api.anthropic.com"
    assert options.is_vendor
    assert options.version == "2026-10-21"
    assert options.prompt_caching is True


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"base_url": "api.anthropic.com"}, "expected an address such as"),
        ({"base_url": "ftp://host"}, "expected an address such as"),
        ({"base_url": "https://user:word@host"}, "an address holds no login here"),
        ({"api_key_env": "sk-ant-api03-x"}, "expected the name of an environment variable"),
        ({"proxy_env": "http://proxy"}, "expected the name of an environment variable"),
        ({"proxy": "http://a", "proxy_env": "P"}, "proxy and proxy_env exclude each other"),
        ({"headers": {"X-Api-Key": "k"}}, "'X-Api-Key' is set by the provider; use api_key_env"),
        ({"headers": {"x-api-key_env": "K"}}, "'x-api-key_env' is set by the provider"),
        ({"headers": {"gateway-key_env": "no name"}}, "must be the name of an environment variable"),
        ({"headers": {"Authorization": "x"}, "auth": "bearer"}, "exclude each other"),
        ({"extra_body": {"model": "m", "tools": []}}, "model, tools can't be set here"),
        ({"server_tools": [{"name": "web_search"}]}, "item 0 needs the texts `type` and `name`"),
        ({"temperature": 0.2}, "temperature is refused by version 2026-10-21"),
        ({"top_p": 0.9}, "top_p is refused by version 2026-10-21"),
        ({"temperature": 0.2, "version": "2023-06-01", "thinking": 2000}, "temperature and a thinking budget"),
        ({"temperature": 1.5, "version": "2023-06-01"}, "less than or equal to 1"),
        ({"thinking": 1000}, "greater than or equal to 1024"),
        ({"thinking": "much"}, "'adaptive' or 'disabled'"),
        ({"version": "latest"}, "should match pattern"),
        ({"max_retries": -1}, "greater than or equal to 0"),
        ({"idle_timeout_seconds": 0}, "greater than 0"),
        ({"api_key": "k"}, "Extra inputs are not permitted"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_does_not_fit_is_refused_in_words(table: dict[str, Any], text: str) -> None:
    """The words say what was expected; a key that stands in the wrong place is not quoted by them."""
    with pytest.raises(ValidationError) as caught:
        AnthropicOptions.model_validate(table)
    (error,) = caught.value.errors() if "thinking" not in table else caught.value.errors()[:1]
    assert text in error["msg"] or any(text in e["msg"] for e in caught.value.errors())
    assert "sk-ant" not in error["msg"]


def test_sampling_is_allowed_with_the_version_that_has_it() -> None:
    """The API version decides, since the models that take it are known to the server only."""
    options = AnthropicOptions(temperature=0.2, top_p=0.9, version="2023-06-01")
    assert (options.temperature, options.top_p) == (0.2, 0.9)


@pytest.mark.parametrize(
    ("name", "meant"), [("x-key_env", "x-key"), ("x-key-ENV", "x-key"), ("x-key", None), ("_env", None)]
)
def test_a_name_can_say_that_its_value_is_a_variable(name: str, meant: str | None) -> None:
    """By its end, so that a secret header needs no key of its own."""
    assert named_by_variable(name) == meant


@pytest.mark.parametrize(
    ("address", "vendor"),
    [
        ("https://api.anthropic.com/v1", True),
        ("https://api.anthropic.com.evil.example", False),
        ("http://[::1]:1", False),
    ],
)
def test_the_vendors_key_goes_to_the_vendor(address: str, vendor: bool) -> None:
    """Only its own address counts as the vendor's."""
    assert AnthropicOptions(base_url=address).is_vendor is vendor
