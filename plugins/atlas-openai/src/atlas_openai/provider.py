"""The LLM provider `openai`: drives the kernel's HTTP client with either protocol."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

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
from atlas_core.http import HttpClient, RetryPolicy, Secret, Timeouts
from atlas_openai._chat_replies import ChatReader, read_chat
from atlas_openai._chat_requests import ChatEncoder
from atlas_openai._responses_replies import ResponsesReader, read_response
from atlas_openai._responses_requests import ResponsesEncoder
from atlas_openai._wire import PROVIDER, items, obj, text
from atlas_openai.options import OpenAIOptions, named_by_variable
from atlas_openai.session import OpenAISession

if TYPE_CHECKING:
    from atlas_openai._output import OutputForm
    from atlas_openai._tools import ToolTable
    from atlas_openai._wire import Encoder, Reader

__all__ = ["OpenAILLM"]

_VENDOR_KEY = "OPENAI_API_KEY"
_PROBE = ToolSchema(name="ping", description="Answer with pong.")


class OpenAILLM(BaseLLM):
    """A model of OpenAI, or of a server that speaks its protocol.

    Args:
        config: The connection; its options are an `OpenAIOptions`.

    Attributes:
        options: The connection's.
        model: The model's name.
        label: Model and server, as errors name them.
        owner: The connection and the plugin, as errors name them.
        expects_usage: Whether streams are held open for their usage: it is asked for, and was never left out by a
            server that left its stream open.
    """

    def __init__(self, config: ConnectionConfig) -> None:
        if not isinstance(config.options, OpenAIOptions):
            raise TypeError(f"options are a {type(config.options).__name__}, expected OpenAIOptions")
        self.options = config.options
        self.model = config.model
        self._name = config.name
        options = self.options
        self.capabilities = Capabilities(
            native_tools=options.native_tools,
            streaming=options.stream,
            images=options.images,
            schema_output=options.schema_output
            if options.schema_output is not None
            else options.is_vendor or options.is_azure,
            window_tokens=options.context_window,
        )
        self.label = f"{self.model or 'a model'} at {urlsplit(options.base_url).netloc}"
        self.owner = f"connection {config.name!r}, plugin {PROVIDER!r}"
        self.expects_usage = options.api == "chat" and options.stream_usage
        self._client: HttpClient | None = None

    # Life ------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        if not self.model:
            raise SettingsError(
                f"connection {self._name!r} names no model",
                key=f"ai.connections.{self._name}.model",
                remedy=f"set model; `atlas connections check {self._name}` lists what the server has",
            )
        await self.client.start()

    async def _stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.stop()

    async def stop(self) -> None:
        """Close the connections to the server."""
        # Looking for models needs no start, so one that was never started may hold connections too.
        if self._state == "new":
            await self._stop()
        await super().stop()

    @property
    def client(self) -> HttpClient:
        """The client, made when first needed.

        Raises:
            ProviderAuthError: The key's variable, or that of a header, is not set.
        """
        return self._client if self._client is not None else self._connect()

    def _connect(self) -> HttpClient:
        options = self.options
        self._client = HttpClient(
            self._address(),
            headers=self._headers(),
            proxy=Secret(self._variable(options.proxy_env, "proxy_env")) if options.proxy_env else options.proxy,
            timeouts=Timeouts(
                connect_s=options.connect_timeout_seconds,
                read_s=options.read_timeout_seconds,
                idle_s=options.idle_timeout_seconds,
            ),
            retry=RetryPolicy(max_attempts=options.max_retries + 1),
            owner=self.owner,
        )
        return self._client

    def _address(self) -> str | Secret:
        """Return the address with its query, a secret where a variable gave a part of it."""
        query = self._named_values(self.options.query, "query")
        if not query:
            return self.options.base_url
        plain = {name: value.reveal() if isinstance(value, Secret) else value for name, value in query.items()}
        address = f"{self.options.base_url}?{urlencode(plain, quote_via=quote)}"
        return Secret(address) if any(isinstance(value, Secret) for value in query.values()) else address

    def _headers(self) -> dict[str, str | Secret]:
        options = self.options
        own: dict[str, str | Secret | None] = {
            "OpenAI-Organization": options.organization,
            "OpenAI-Project": options.project,
        }
        found = {name: value for name, value in own.items() if value is not None}
        found |= self._named_values(options.headers, "headers")
        variable = options.api_key_env or (_VENDOR_KEY if options.is_vendor else None)
        given = {name.lower() for name in found}
        if variable and not given & {"authorization", "api-key"}:
            key = self._variable(variable, "api_key_env")
            if options.path_style == "azure":
                found["api-key"] = Secret(key)
            else:
                found["Authorization"] = Secret(f"Bearer {key}")
        return found

    def _named_values(self, table: Mapping[str, str], key: str) -> dict[str, str | Secret]:
        """Return a table with the values of the variables that it names."""
        found: dict[str, str | Secret] = {}
        for name, value in table.items():
            bare = named_by_variable(name)
            if bare is None:
                found[name] = value
            else:
                found[bare] = Secret(self._variable(value, f"{key}.{name}"))
        return found

    def _variable(self, variable: str, key: str) -> str:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ProviderAuthError(
                f"the variable {variable!r} is {'empty' if variable in os.environ else 'not set'}",
                owner=f"{self.owner}, {key}",
                remedy=f"set {variable}, or name another variable in {key}",
            )
        return value

    # Asking ----------------------------------------------------------------------------------------------------

    def open(self, defaults: LLMDefaults) -> OpenAISession:
        """Begin a run's conversation."""
        return OpenAISession(self, defaults)

    def _session(self, request: LLMRequest) -> OpenAISession:
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

    async def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; a run's session does the same at less cost."""
        return await self._session(request).complete(deadline=request.deadline)

    async def stream(self, request: LLMRequest) -> AsyncIterator[LLMDelta | LLMResponse]:
        """Answer one request in pieces."""
        async for piece in self._session(request).stream(deadline=request.deadline):
            yield piece

    # The protocol ----------------------------------------------------------------------------------------------

    def encoder(self, defaults: LLMDefaults, tools: ToolTable, output: OutputForm | None) -> Encoder:
        """Return what writes a session's requests."""
        kind = ResponsesEncoder if self.options.api == "responses" else ChatEncoder
        return kind(self.model, self.options, defaults, tools, output)

    def reader(self, tools: ToolTable) -> Reader:
        """Return what reads one stream."""
        if self.options.api == "responses":
            return ResponsesReader(tools)
        return ChatReader(tools, keep_reasoning=self.options.send_reasoning)

    def read(self, value: object, tools: ToolTable) -> LLMResponse:
        """Read a whole reply."""
        if self.options.api == "responses":
            return read_response(value, tools)
        return read_chat(value, tools, keep_reasoning=self.options.send_reasoning)

    # Looking ---------------------------------------------------------------------------------------------------

    async def list_models(self) -> list[str]:
        """Return the models the server names, sorted.

        Raises:
            ProviderError: It names none, or can't be reached.
        """
        value = (await self.client.get_json("models")).json()
        entries = items(value) or items(obj(value).get("data")) or items(obj(value).get("models"))
        names = (text(obj(entry).get("id")) or text(obj(entry).get("name")) for entry in entries)
        return sorted({name for name in names if name})

    async def check(self) -> ConnectionReport:
        """Look which models the server has and whether this one answers, with a tool and streamed; costs some tokens.

        What went wrong, with the server or with the settings, is in the report.
        """
        try:
            models = tuple(await self.list_models())
            listing = ""
        except AtlasError as exc:
            models, listing = (), str(exc)
        if not self.model:
            return ConnectionReport(answers=False, detail=listing or "the connection names no model", models=models)
        try:
            answer = await self._probe(())
        except AtlasError as exc:
            return ConnectionReport(answers=False, detail=str(exc), models=models)
        tools, streaming = await self._probe_tools(), await self._probe_stream()
        return ConnectionReport(
            answers=True,
            detail=f"{answer.model or self.model} answered" + ("" if models else "; the server lists no models"),
            models=models,
            tools=tools,
            streaming=streaming,
        )

    def _probe_session(self, tools: tuple[ToolSchema, ...]) -> OpenAISession:
        session = self.open(LLMDefaults(tools=tools))
        session.append([ChatMessage.user("Answer with the one word: pong")])
        return session

    async def _probe(self, tools: tuple[ToolSchema, ...]) -> LLMResponse:
        return await self._probe_session(tools).complete()

    async def _probe_tools(self) -> bool | None:
        if not self.options.native_tools:
            return None
        try:
            await self._probe((_PROBE,))
        except ProviderError:
            return False
        return True

    async def _probe_stream(self) -> bool | None:
        if not self.options.stream:
            return None
        session = self._probe_session(())
        try:
            async with contextlib.aclosing(session.stream()) as pieces:
                async for _ in pieces:
                    pass
        except ProviderError:
            return False
        return bool(session.streamed)
