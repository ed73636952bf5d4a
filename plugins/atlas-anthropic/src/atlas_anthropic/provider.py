"""The LLM provider `anthropic`: a connection to a server that speaks the Messages API."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from atlas_anthropic._blocks import PROVIDER
from atlas_anthropic._response import read_models
from atlas_anthropic._session import AnthropicSession
from atlas_anthropic.options import AnthropicOptions, named_by_variable
from atlas_core import (
    AtlasError,
    BaseLLM,
    Capabilities,
    ChatMessage,
    ConnectionConfig,
    ConnectionReport,
    LLMDefaults,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    ProviderAuthError,
    ProviderError,
    SettingsError,
    ToolSchema,
)

if TYPE_CHECKING:
    from atlas_core.http import HttpClient, Secret

__all__ = ["AnthropicLLM"]

_KEY = "ANTHROPIC_API_KEY"
_MAX_PAGES = 50
_PROBE = ToolSchema(name="unused_probe", description="Not to be called.")
_PROBE_TOKENS = 64


class AnthropicLLM(BaseLLM):
    """A model behind the Messages API.

    Args:
        config: The connection.

    Attributes:
        model: The model's name.
        owner: The connection and the plugin, as errors name them.

    Raises:
        SettingsError: The connection names no model.
    """

    def __init__(self, config: ConnectionConfig) -> None:
        options = config.options
        if not isinstance(options, AnthropicOptions):
            raise TypeError(f"options is a {type(options).__name__}, expected a AnthropicOptions")
        if not config.model.strip():
            raise SettingsError(
                f"connection {config.name!r} names no model",
                key=f"ai.connections.{config.name}.model",
                remedy='set it to the name of one, such as "claude-sonnet-5-5"',
            )
        self._options = options
        self.owner = f"connection {config.name!r}, plugin {PROVIDER!r}"
        self._client: HttpClient | None = None
        self.model = config.model
        self.label = f"{config.model} ({_host(options.base_url)})"
        self.capabilities = Capabilities(
            native_tools=options.native_tools,
            streaming=options.stream,
            images=options.images,
            schema_output=options.schema_output,
            window_tokens=options.context_window,
        )

    # Life ------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        from atlas_core.http import HttpClient, RetryPolicy, Secret, Timeouts

        options = self._options
        client = HttpClient(
            options.base_url,
            headers=self._headers(),
            proxy=Secret(self._variable("proxy_env", options.proxy_env)) if options.proxy_env else options.proxy,
            timeouts=Timeouts(
                connect_s=options.connect_timeout_seconds,
                read_s=options.read_timeout_seconds,
                idle_s=options.idle_timeout_seconds,
            ),
            retry=RetryPolicy(max_attempts=options.max_retries + 1),
            owner=self.owner,
        )
        await client.start()
        self._client = client

    def _headers(self) -> dict[str, str | Secret]:
        from atlas_core.http import Secret

        options = self._options
        headers: dict[str, str | Secret] = {"anthropic-version": options.version}
        if options.beta:
            headers["anthropic-beta"] = ",".join(options.beta)
        for name, text in options.headers.items():
            by_variable = named_by_variable(name)
            headers[by_variable or name] = Secret(self._variable(f"headers.{name}", text)) if by_variable else text
        variable = options.api_key_env or (_KEY if options.is_vendor else None)
        if variable is not None:
            key = self._variable("api_key_env", variable)
            bearer = options.auth == "bearer"
            headers["authorization" if bearer else "x-api-key"] = Secret(f"Bearer {key}" if bearer else key)
        return headers

    def _variable(self, key: str, name: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise ProviderAuthError(
                f"the variable {name!r} is {'empty' if name in os.environ else 'not set'}",
                owner=f"{self.owner}, {key}",
                remedy=f"set {name}, or name another variable in {key}",
            )
        return value

    async def _stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.stop()

    async def client(self) -> HttpClient:
        """Return the started client; private to this package."""
        await self.start()
        return cast("HttpClient", self._client)

    def redacted(self, text: str) -> str:
        """Return a text that the server wrote without keys; private to this package."""
        return self._client.redacted(text) if self._client is not None else text

    def path(self, name: str) -> str:
        """Return a path below `base_url`, which may end in the version or not; private to this package."""
        return name if self._options.base_url.partition("?")[0].rstrip("/").endswith("/v1") else f"v1/{name}"

    # Asking ----------------------------------------------------------------------------------------------------

    def open(self, defaults: LLMDefaults) -> AnthropicSession:
        """Begin a run's conversation.

        Raises:
            ProviderError: Options and defaults contradict each other.
        """
        return AnthropicSession(self, defaults, self._options)

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request by itself.

        Raises:
            ProviderError: The server failed, or a message can't be sent.
        """
        return await self._opened(request).complete(deadline=request.deadline)

    async def stream(self, request: LLMRequest) -> AsyncIterator[LLMDelta | LLMResponse]:
        """Answer one request by itself, in pieces."""
        async with aclosing(self._opened(request).stream(deadline=request.deadline)) as pieces:
            async for piece in pieces:
                yield piece

    def _opened(self, request: LLMRequest) -> AnthropicSession:
        session = self.open(
            LLMDefaults(
                system=request.system,
                tools=request.tools,
                max_output_tokens=request.max_output_tokens,
                output_schema=request.output_schema,
                output_name=request.output_name,
            )
        )
        session.append(request.messages)
        return session

    # Looking ---------------------------------------------------------------------------------------------------

    async def list_models(self) -> list[str]:
        """Return the models the server names, sorted.

        Raises:
            ProviderError: The server failed, or has no list.
        """
        client = await self.client()
        found: set[str] = set()
        params = {"limit": "1000"}
        for _ in range(_MAX_PAGES):
            page = (await client.get_json(self.path("models"), params=params)).json()
            names, after = read_models(page)
            found |= names
            if after is None:
                break
            params["after_id"] = after
        return sorted(found)

    async def check(self) -> ConnectionReport:
        """Ask the model for a word, then with a tool, then as a stream.

        Each costs some tokens of input and up to 64 of output, or what the model thinks with a thinking budget. What
        went wrong, with the server or with the settings, is in the report.
        """
        try:
            models, unlisted = tuple(await self.list_models()), ""
        except AtlasError as exc:
            models, unlisted = (), f"; it lists no models: {exc}"
        try:
            await self._probe(()).complete()
        except AtlasError as exc:
            return ConnectionReport(answers=False, detail=str(exc), models=models)
        # Apart from one another: a model that calls the tool would have nothing to stream.
        tools, refused = await self._probe_tools()
        streaming, broken = await self._probe_stream()
        detail = f"{self.model!r} answers{refused}{broken}{unlisted}"
        return ConnectionReport(answers=True, detail=detail, models=models, tools=tools, streaming=streaming)

    def _probe(self, tools: tuple[ToolSchema, ...]) -> AnthropicSession:
        limit = None if isinstance(self._options.thinking, int) else _PROBE_TOKENS
        session = self.open(LLMDefaults(tools=tools, max_output_tokens=limit))
        session.append([ChatMessage.user("Answer with the word: ready")])
        return session

    async def _probe_tools(self) -> tuple[bool | None, str]:
        if not self._options.native_tools:
            return None, ""
        try:
            await self._probe((_PROBE,)).complete()
        except ProviderError as exc:
            return False, f", but not with a tool: {exc}"
        return True, ""

    async def _probe_stream(self) -> tuple[bool | None, str]:
        if not self._options.stream:
            return None, ""
        session = self._probe(())
        try:
            async with aclosing(session.stream()) as pieces:
                async for _ in pieces:
                    pass
        except ProviderError as exc:
            return False, f", but not as a stream: {exc}"
        return bool(session.streamed), ""


def _host(base_url: str) -> str:
    return urlsplit(base_url).hostname or base_url
