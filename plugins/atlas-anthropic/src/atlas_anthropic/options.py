"""A connection's options, as they stand in its table beside the keys that the kernel owns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

__all__ = ["AnthropicOptions", "named_by_variable"]

WITHOUT_SAMPLING = "2026-10-21"
"""The API version that refuses `temperature` and `top_p`, whatever their value.

Source: platform.claude.com/docs/en/api/versioning, read November 2026.
"""

_OWN_FIELDS = frozenset({"messages", "model", "stream", "system", "tools"})
_OWN_HEADERS = frozenset({"anthropic-beta", "anthropic-version", "content-type", "x-api-key"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def _is_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address such as 'https://api.anthropic.com'")
    if parts.username or parts.password:
        raise ValueError("an address holds no login here; name the variable that holds the key, through api_key_env")
    return value.rstrip("/")


def _is_variable(value: str | None) -> str | None:
    if value is not None and not _VARIABLE.fullmatch(value):
        # The value is not quoted: it may be the key itself.
        raise ValueError("expected the name of an environment variable, such as 'ANTHROPIC_API_KEY', and not a key")
    return value


def _leaves_own_headers(value: Mapping[str, str]) -> Mapping[str, str]:
    for name, text in value.items():
        if (named_by_variable(name) or name).lower() in _OWN_HEADERS:
            raise ValueError(f"{name!r} is set by the provider; use api_key_env, auth, version or beta")
        if named_by_variable(name) and not _VARIABLE.fullmatch(text):
            raise ValueError(f"{name!r} must be the name of an environment variable, such as 'GATEWAY_KEY'")
    return value


def _leaves_own_fields(value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    if taken := sorted(_OWN_FIELDS & value.keys()):
        raise ValueError(
            f"{', '.join(taken)} can't be set here: the provider writes it itself; tools of the vendor go into "
            "server_tools"
        )
    return value


def _are_tools(value: tuple[Mapping[str, JsonValue], ...]) -> tuple[Mapping[str, JsonValue], ...]:
    for number, tool in enumerate(value):
        if not isinstance(tool.get("type"), str) or not isinstance(tool.get("name"), str):
            raise ValueError(f"item {number} needs the texts `type` and `name`, as the vendor's page on that tool says")
    return value


def named_by_variable(name: str) -> str | None:
    """Return what `NAME_env` or `NAME-env` names, or None: its value is then a variable's name."""
    return name[:-4] if name.lower().endswith(("_env", "-env")) and len(name) > 4 else None


class AnthropicOptions(BaseModel):
    """What a connection of this provider can set. Secrets are never written here: options name their variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Where it goes ---------------------------------------------------------------------------------------------
    base_url: Annotated[str, AfterValidator(_is_address)] = Field(
        default="https://api.anthropic.com",
        description="The server; /v1/messages is added, or /messages if it ends in /v1.",
    )
    proxy: str | None = Field(
        default=None,
        description="The proxy's address, without login; '' for none; left out, what the environment says.",
    )
    proxy_env: Annotated[str | None, AfterValidator(_is_variable)] = Field(
        default=None, description="The variable that holds the proxy's address, where that has a login."
    )

    # Who asks --------------------------------------------------------------------------------------------------
    api_key_env: Annotated[str | None, AfterValidator(_is_variable)] = Field(
        default=None,
        description="The variable that holds the key. Left out: ANTHROPIC_API_KEY at Anthropic's own address, else "
        "no key.",
    )
    auth: Literal["x-api-key", "bearer"] = Field(
        default="x-api-key", description="The header for the key; bearer is `Authorization: Bearer KEY`."
    )
    version: str = Field(
        default=WITHOUT_SAMPLING, pattern=r"^\d{4}-\d{2}-\d{2}$", description="The API's, sent as anthropic-version."
    )
    beta: tuple[str, ...] = Field(default=(), description="Features in trial, sent as anthropic-beta.")
    headers: Annotated[Mapping[str, str], AfterValidator(_leaves_own_headers)] = Field(
        default_factory=dict, description="Sent with each request; the value of NAME_env is a variable's name."
    )

    # How long it may take --------------------------------------------------------------------------------------
    connect_timeout_seconds: _Seconds = Field(default=10, description="For a connection, TLS included.")
    read_timeout_seconds: _Seconds = Field(default=600, description="For an answer to begin.")
    idle_timeout_seconds: _Seconds = Field(default=120, description="Between two pieces of a streamed answer.")
    max_retries: int = Field(default=2, ge=0, le=20, description="Further attempts after a failure of the server's.")

    # What the model is asked -----------------------------------------------------------------------------------
    temperature: _Share | None = Field(default=None, description="Refused by API version 2026-10-21.")
    top_p: _Share | None = Field(default=None, description="Refused by API version 2026-10-21.")
    thinking: Literal["adaptive", "disabled"] | Annotated[int, Field(ge=1024)] | None = Field(
        default=None,
        description="adaptive (Claude 4.6 and later), a budget in tokens (up to Claude 4.6) or disabled. Left out: "
        "what the model does by itself.",
    )
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = Field(
        default=None, description="How much work goes into an answer. Left out: what the model does by itself."
    )
    prompt_caching: bool | Literal["5m", "1h"] = Field(
        default=True, description="Mark the prompt for the server's cache, and for how long; true is 5m."
    )
    server_tools: Annotated[tuple[Mapping[str, JsonValue], ...], AfterValidator(_are_tools)] = Field(
        default=(), description="Tools that the server runs itself, such as web search."
    )
    extra_body: Annotated[Mapping[str, JsonValue], AfterValidator(_leaves_own_fields)] = Field(
        default_factory=dict, description="Further fields of each request's body; they win over the provider's own."
    )

    # What the model can do -------------------------------------------------------------------------------------
    stream: bool = Field(default=True, description="Whether answers may be streamed.")
    native_tools: bool = Field(
        default=True, description="False for a model or server without tool calls: they go through text then."
    )
    images: bool = Field(default=True, description="Whether the model reads images.")
    schema_output: bool = Field(
        default=True,
        description="Whether answers can be held to a JSON Schema (Claude 4.5 and later); if not, a tool does it.",
    )
    context_window: int | None = Field(default=None, ge=1, description="Tokens of input and output together.")

    @property
    def is_vendor(self) -> bool:
        """Whether the address is Anthropic's own."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "anthropic.com" or host.endswith(".anthropic.com")

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        sampling = [name for name in ("temperature", "top_p") if getattr(self, name) is not None]
        if sampling and self.version >= WITHOUT_SAMPLING:
            raise ValueError(
                f"{sampling[0]} is refused by version {self.version} of the API, whatever its value; leave it out, "
                "or set version = '2023-06-01' for a model that still takes it"
            )
        if isinstance(self.thinking, int) and self.temperature not in {None, 1.0}:
            raise ValueError("temperature and a thinking budget exclude each other; leave one of them out")
        if self.proxy is not None and self.proxy_env is not None:
            raise ValueError("proxy and proxy_env exclude each other; leave one of them out")
        if self.auth == "bearer" and "authorization" in map(str.lower, self.headers):
            raise ValueError("auth = 'bearer' and a header authorization exclude each other; leave one of them out")
        return self
