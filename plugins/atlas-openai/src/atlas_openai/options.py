"""A connection's options, as they stand in its table beside `backend`, `model` and `max_output_tokens`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

__all__ = ["OpenAIOptions"]

_OWN_FIELDS = frozenset({"input", "instructions", "messages", "model", "stream", "stream_options", "tools"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_Seconds = Annotated[float, Field(gt=0)]


def _is_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address such as 'https://api.openai.com/v1'")
    if parts.username or parts.password:
        raise ValueError("an address holds no login here; name the variable that holds the key, through api_key_env")
    return value.rstrip("/")


def _is_variable(value: str | None) -> str | None:
    if value is not None and not _VARIABLE.fullmatch(value):
        # The value is not quoted: it may be the key itself.
        raise ValueError("expected the name of an environment variable, such as 'OPENAI_API_KEY', and not a key")
    return value


def _name_variables(value: Mapping[str, str]) -> Mapping[str, str]:
    for name, text in value.items():
        if named_by_variable(name) and not _VARIABLE.fullmatch(text):
            raise ValueError(f"{name!r} must be the name of an environment variable, such as 'GATEWAY_KEY'")
    return value


def _leaves_own_fields(value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    taken = sorted(_OWN_FIELDS & value.keys())
    if taken:
        raise ValueError(f"{', '.join(taken)} can't be set here: the provider writes it itself")
    return value


def named_by_variable(name: str) -> str | None:
    """Return what `NAME_env` or `NAME-env` names, or None: its value is then a variable's name."""
    return name[:-4] if name.lower().endswith(("_env", "-env")) and len(name) > 4 else None


_Texts = Annotated[Mapping[str, str], AfterValidator(_name_variables)]


class OpenAIOptions(BaseModel):
    """What a connection of this provider can set. Secrets are never written here: options name their variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Where it goes ---------------------------------------------------------------------------------------------
    api: Literal["chat", "responses"] = Field(
        default="chat", description="The protocol: Chat Completions, or Responses."
    )
    base_url: Annotated[str, AfterValidator(_is_address)] = Field(
        default="https://api.openai.com/v1", description="Where paths begin; another server that speaks the protocol."
    )
    path_style: Literal["openai", "azure"] = Field(
        default="openai",
        description="azure: chat requests go to deployments/MODEL below base_url, and the key is sent as api-key.",
    )
    query: _Texts = Field(
        default_factory=dict, description="Added to each address, such as api-version; NAME_env names a variable."
    )
    proxy: str | None = Field(
        default=None,
        description="The proxy's address without login; '' for none; left out, the environment's.",
    )
    proxy_env: Annotated[str | None, AfterValidator(_is_variable)] = Field(
        default=None, description="The variable that holds the proxy's address, where that has a login."
    )

    # Who asks --------------------------------------------------------------------------------------------------
    api_key_env: Annotated[str | None, AfterValidator(_is_variable)] = Field(
        default=None,
        description="The variable that holds the key. Left out: OPENAI_API_KEY at OpenAI's own address, else no key.",
    )
    organization: str | None = Field(default=None, description="Sent as OpenAI-Organization.")
    project: str | None = Field(default=None, description="Sent as OpenAI-Project.")
    headers: _Texts = Field(
        default_factory=dict, description="Sent with each request; the value of NAME_env is a variable's name."
    )

    # How long it may take --------------------------------------------------------------------------------------
    connect_timeout_seconds: _Seconds = Field(default=10, description="For a connection, TLS included.")
    read_timeout_seconds: _Seconds = Field(default=600, description="For an answer to begin.")
    idle_timeout_seconds: _Seconds = Field(default=120, description="Between two pieces of a streamed answer.")
    max_retries: int = Field(default=2, ge=0, le=20, description="Further attempts after a failure of the server's.")

    # What the model is asked -----------------------------------------------------------------------------------
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = Field(default=None, description="For answers that repeat, where the server can; chat only.")
    reasoning_effort: str | None = Field(default=None, min_length=1, description="Such as none, low, medium or high.")
    parallel_tool_calls: bool | None = Field(default=None, description="Whether several calls may come at once.")
    strict_tools: bool = Field(default=False, description="Hold calls to the tools' schemas, where they can be.")
    extra_body: Annotated[Mapping[str, JsonValue], AfterValidator(_leaves_own_fields)] = Field(
        default_factory=dict, description="Further fields of each request's body; they win over the provider's own."
    )
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] | None = Field(
        default=None,
        description="The field of a chat request that carries max_output_tokens. Left out: max_completion_tokens at "
        "OpenAI and Azure, max_tokens elsewhere.",
    )
    send_reasoning: bool = Field(
        default=False,
        description="Send the model's reasoning text back to it with the history; some models with tools want it.",
    )
    store: bool = Field(default=False, description="Let the server keep the answers; Responses only.")
    encrypted_reasoning: bool | None = Field(
        default=None,
        description="Ask for reasoning that can be sent back; Responses only. Left out: for models that reason.",
    )

    # What the model can do -------------------------------------------------------------------------------------
    stream: bool = Field(default=True, description="Whether answers may be streamed.")
    stream_usage: bool = Field(default=True, description="Ask for the usage of streamed answers; chat only.")
    native_tools: bool = Field(
        default=True, description="False for a model or server without tool calls: they go through text then."
    )
    images: bool = Field(default=True, description="Whether the model reads images.")
    schema_output: bool | None = Field(
        default=None,
        description="Whether answers can be held to a JSON Schema while tools are on offer. Left out: at OpenAI and "
        "Azure. Other servers often forbid tool calls then.",
    )
    context_window: int | None = Field(default=None, ge=1, description="Tokens of input and output together.")

    @property
    def is_vendor(self) -> bool:
        """Whether the address is OpenAI's own, regional ones included."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "api.openai.com" or host.endswith(".api.openai.com")

    @property
    def is_azure(self) -> bool:
        """Whether the address is Azure's."""
        host = urlsplit(self.base_url).hostname or ""
        return self.path_style == "azure" or host.endswith((".openai.azure.com", ".services.ai.azure.com"))
