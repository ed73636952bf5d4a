"""`atlas_core.settings.secrets`: what looks like a secret, and that it is shown nowhere. Covers case 112."""

from __future__ import annotations

import pytest

from atlas_core.settings.secrets import MASK, literal_secrets, looks_secret, masked, masked_leaf, shown


@pytest.mark.parametrize(
    "key",
    [
        *(
            "api_key",
            "apiKey",
            "APIKey",
            "API_KEY",
            "X-Api-Key",
            "apikey",
            "OPENAI_API_KEY",
            "secret_key",
            "access-key",
        ),
        *("token", "auth_token", "authToken", "bearer_token", "api_keys", "access_tokens", "client_secret"),
        *("password", "Password", "db_passwd", "Authorization", "proxy-authorization", "credentials", "cookie"),
    ],
)
def test_a_key_that_holds_a_secret_is_told(key: str) -> None:
    """The usual names of secrets are recognised in any spelling."""
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        *("api_key_env", "token_file", "password_env", "secret_name", "auth_header", "max_tokens", "max_output_tokens"),
        *(
            "token_limit",
            "eos_token",
            "stop_token",
            "model",
            "key",
            "keyboard",
            "tokenizer",
            "monkey",
            "",
            "author",
            "42",
        ),
    ],
)
def test_a_key_that_only_speaks_of_secrets_is_not_told(key: str) -> None:
    """Names of variables and files, counts, and words that merely contain such a word are no secrets."""
    assert not looks_secret(key)


@pytest.mark.parametrize(
    "value",
    [
        "sk-TESTSECRET123",
        "use sk-proj-TESTSECRET_123 here",
        "Bearer TESTSECRET",
        "Basic dXNlclRFU1RTRUNSRVQ=",
        "https://user:TESTSECRET@proxy.example:8080/x",
        "https://api.example/v1?api_key=TESTSECRET&x=1",
        "https://api.example/v1?key=TESTSECRET",
        "ghp_TESTSECRET0123456789",
        {"headers": {"X-Api-Key": "TESTSECRET"}},
        {"tokens": [], "token": ["TESTSECRET"]},
        {"credentials": {"user": "TESTSECRET", "more": {"x": ["TESTSECRET"]}}},
        {"password": 5309},
    ],
    ids=str,
)
def test_a_secret_is_masked_wherever_it_stands(value: object) -> None:
    """A secret is masked by its form, by its key, by the table around it, and within a URL."""
    text = repr(masked(value)) + shown(value)
    assert MASK in text
    assert "TESTSECRET" not in text
    assert "5309" not in text


@pytest.mark.parametrize(
    "value",
    ["plain", "https://example.org/a?q=1&page=2", 7, None, True, {"api_key_env": "X", "a": (1, [2])}, {"token": ""}],
    ids=repr,
)
def test_what_is_no_secret_stays(value: object) -> None:
    """Everything else is shown as it is."""
    assert masked(value) == value


def test_a_table_of_secrets_may_refer_to_a_file() -> None:
    """In `credentials = {file = ...}` the file's name is no secret, for display and for the check alike."""
    table = {"credentials": {"file": "cred.json", "pin": 1234}}
    assert masked(table) == {"credentials": {"file": "cred.json", "pin": MASK}}
    assert list(literal_secrets(table)) == [("credentials", "pin")]


def test_the_path_tells_whether_a_leaf_is_hidden() -> None:
    """A leaf is masked if its key or a table around it says so."""
    assert masked_leaf("x", ("credentials", "user")) == MASK
    assert masked_leaf("x", ("connections", "user")) == "x"


def test_literal_secrets_are_found_however_deep() -> None:
    """The paths of literal secrets are listed, through tables and lists; empty ones and references are none."""
    table = {
        "api_key": "x",
        "api_key_env": "X",
        "password": "",
        "token": False,
        "proxies": [{"url": "u"}, {"password": "x"}],
        "headers": {"Authorization": "x", "Accept": "y"},
    }
    assert list(literal_secrets(table)) == [("api_key",), ("proxies", 1, "password"), ("headers", "Authorization")]


def test_what_is_shown_is_cut() -> None:
    """A long value is cut for error texts."""
    assert shown("x" * 500, most=20) == "'" + "x" * 16 + "..."
