from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from atlas_openai.options import OpenAIOptions
from atlas_openai.provider import OpenAILLM

from atlas_core import (
    ChatMessage,
    ConnectionConfig,
    LLMRequest,
    LLMResponse,
    ProviderAuthError,
    ProviderError,
    ServiceNotReadyError,
    SettingsError,
    ToolSchema,
)
from atlas_core.testing import LoopbackProxy, LoopbackServer, ServerReply

Connect = Callable[..., OpenAILLM]

HI = LLMRequest(messages=[ChatMessage.user("hi")])
ANSWER = ServerReply.of_json({"model": "m-1", "choices": [{"message": {"content": "pong"}, "finish_reason": "stop"}]})
CHUNK = {"model": "m-1", "choices": [{"delta": {"content": "pong"}, "finish_reason": "stop"}]}
MODELS = ServerReply.of_json({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "a"}, {"object": "model"}]})


def unconnected(model: str = "gpt-4.1", **options: Any) -> OpenAILLM:
    """Return a model of no server."""
    return OpenAILLM(ConnectionConfig(name="main", model=model, options=OpenAIOptions(**options)))


# What it says of itself --------------------------------------------------------------------------------------------


def test_label_names_model_and_server() -> None:
    """A person reads who answers; a port is shown, since it tells local servers apart."""
    assert unconnected().label == "gpt-4.1 at api.openai.com"
    assert unconnected("qwen", base_url="http://localhost:8000/v1").label == "qwen at localhost:8000"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"native_tools": True, "streaming": True, "images": True, "schema_output": True, "window_tokens": None}),
        ({"base_url": "http://localhost/v1"}, {"schema_output": False}),
        ({"base_url": "http://localhost/v1", "schema_output": True}, {"schema_output": True}),
        ({"base_url": "https://x.openai.azure.com/openai"}, {"schema_output": True}),
        ({"native_tools": False}, {"native_tools": False}),
        ({"stream": False, "images": False}, {"streaming": False, "images": False}),
        ({"context_window": 8192}, {"window_tokens": 8192}),
    ],
)
def test_capabilities_follow_the_options(options: Any, expected: dict[str, object]) -> None:
    """What a server can do is what its connection says."""
    capabilities = unconnected(**options).capabilities
    assert {name: getattr(capabilities, name) for name in expected} == expected


def test_options_of_another_kind_are_refused() -> None:
    """A program that makes the model itself is told what to give."""
    with pytest.raises(TypeError, match="a NoneType, expected OpenAIOptions"):
        OpenAILLM(ConnectionConfig(name="main", model="m", options=None))  # type: ignore[arg-type]  # that is the point


# Life --------------------------------------------------------------------------------------------------------------


async def test_a_connection_without_a_model_does_not_start(connect: Connect) -> None:
    """The error names the connection and the way to find a name."""
    with pytest.raises(SettingsError, match="atlas connections check main"):
        await connect("").start()


async def test_a_look_tells_what_is_wrong_with_the_settings(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that can't be sent is in the report, without the key."""
    monkeypatch.setenv("ODD_KEY", "sk-TESTSECRET\nmore")
    report = await connect(api_key_env="ODD_KEY").check()
    assert not report.answers
    assert "line break in the key" in report.detail
    assert "TESTSECRET" not in report.detail
    assert server.requests == []


async def test_the_vendors_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it nothing is sent, and the error names the variable and the connection."""
    with pytest.raises(ProviderAuthError, match=r"'OPENAI_API_KEY' is not set \(connection 'main', plugin"):
        await unconnected().start()
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(ProviderAuthError, match="is empty"):
        await unconnected().start()


async def test_the_vendors_key_goes_to_no_other_server(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another address gets a key only if its connection names one."""
    monkeypatch.setenv("OPENAI_API_KEY", "the-vendors-4711")
    server.then(ANSWER)
    await connect().complete(HI)
    assert "authorization" not in server.requests[0].headers
    with pytest.raises(ProviderAuthError, match=r"'LOCAL_KEY'.*not set"):
        await connect(api_key_env="LOCAL_KEY").complete(HI)


async def test_everything_that_a_connection_adds_is_sent(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, organisation, project, headers and query, by value or by variable; and nothing of it is shown."""
    for name, value in {"KEY": "k-4711", "GATEWAY": "g-4711", "CODE": "c 4711"}.items():
        monkeypatch.setenv(name, value)
    server.then(ServerReply.of_json({"error": {"message": "k-4711 g-4711 c 4711 c%204711"}}, status=400))
    llm = connect(
        api_key_env="KEY",
        organization="org-1",
        project="proj-1",
        headers={"X-Title": "Atlas", "X-Gateway_env": "GATEWAY"},
        query={"api-version": "2024-10-21", "api_key_env": "CODE"},
    )
    with pytest.raises(ProviderError) as caught:
        await llm.complete(HI)
    request = server.requests[0]
    sent = {name: request.headers.get(name) for name in ("authorization", "x-title", "x-gateway")}
    assert sent == {"authorization": "Bearer k-4711", "x-title": "Atlas", "x-gateway": "g-4711"}
    assert request.headers["openai-organization"] == "org-1"
    assert request.headers["openai-project"] == "proj-1"
    assert request.query == {"api-version": ["2024-10-21"], "api_key": ["c 4711"]}
    for shown in (
        str(caught.value),
        repr(caught.value),
        repr(llm),
        repr(llm.client),
        repr(vars(llm)),
        repr(llm.options),
    ):
        assert "4711" not in shown


async def test_an_own_authorization_wins(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's own scheme is sent in place of the key."""
    monkeypatch.setenv("LOGIN", "Basic eDp5")
    server.then(ANSWER)
    await connect(headers={"Authorization_env": "LOGIN"}).complete(HI)
    assert server.requests[0].headers["authorization"] == "Basic eDp5"


async def test_azure(server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deployment is in the path, the version in the query, and the key in Azure's own header."""
    monkeypatch.setenv("AZURE_KEY", "k-1")
    server.then(ANSWER)
    llm = connect(
        "my-gpt",
        base_url=f"{server.url}/openai",
        path_style="azure",
        api_key_env="AZURE_KEY",
        query={"api-version": "2024-10-21"},
    )
    await llm.complete(HI)
    request = server.requests[0]
    assert request.target == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert repr(llm.client) == f"HttpClient('{server.url}/openai')"
    assert request.headers["api-key"] == "k-1"
    assert "authorization" not in request.headers


@pytest.mark.parametrize("by_variable", [False, True], ids=["by address", "by variable"])
async def test_a_proxy(
    server: LoopbackServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    """Requests go through the proxy; an address with a login stands in a variable."""
    login = "user:secret-4711" if by_variable else ""
    with LoopbackProxy(login=login) as proxy:
        monkeypatch.setenv("PROXY", proxy.url.replace("//", f"//{login}@"))
        server.then(ANSWER)
        llm = connect(**({"proxy_env": "PROXY"} if by_variable else {"proxy": proxy.url}))
        assert (await llm.complete(HI)).message.text == "pong"
        assert len(proxy.asked) == 1
        assert "4711" not in repr(llm.client)


async def test_a_stopped_model_is_not_ready(server: LoopbackServer, connect: Connect) -> None:
    """It closes its connections, however often it is stopped, and also if it was never started."""
    server.then(ANSWER)
    llm = connect()
    await llm.complete(HI)
    await llm.stop()
    await llm.stop()
    with pytest.raises(ServiceNotReadyError):
        await llm.start()


async def test_errors_can_be_pickled(server: LoopbackServer, connect: Connect) -> None:
    """An error of a sub-agent survives the way between two processes, with the text so far."""
    server.then(ServerReply.of_events({"choices": [{"delta": {"content": "so far"}}]}, {"error": "broke"}))
    with pytest.raises(ProviderError) as caught:
        async for _ in connect().stream(HI):
            pass
    assert pickle.loads(pickle.dumps(caught.value)).partial_text == "so far"


# Asking ------------------------------------------------------------------------------------------------------------


async def test_a_stateless_request_is_answered(server: LoopbackServer, connect: Connect) -> None:
    """The plain interface of a provider works too, streamed and not."""
    server.then(ANSWER, ServerReply.of_events(CHUNK))
    llm = connect()
    request = LLMRequest(
        messages=[ChatMessage.user("hi")], system="help", tools=(ToolSchema(name="now"),), max_output_tokens=5
    )
    assert (await llm.complete(request)).message.text == "pong"
    pieces = [piece async for piece in llm.stream(request)]
    assert isinstance(pieces[-1], LLMResponse)
    body = server.requests[0].json()
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["max_tokens"] == 5
    assert len(body["tools"]) == 1


async def test_a_server_without_tool_calls_gets_none(server: LoopbackServer, connect: Connect) -> None:
    """With native_tools off no tool is offered; the kernel writes them into the system prompt."""
    server.then(ANSWER)
    llm = connect(native_tools=False)
    await llm.complete(LLMRequest(messages=HI.messages, tools=(ToolSchema(name="now"),)))
    assert "tools" not in server.requests[0].json()


async def test_a_session_sends_what_was_added(server: LoopbackServer, connect: Connect) -> None:
    """Each request holds all messages so far, each once and in order; a request repeated is the same to the byte."""
    from atlas_core import LLMDefaults

    server.then(ANSWER, ANSWER, ANSWER)
    session = connect().open(LLMDefaults())
    session.append([ChatMessage.user("a"), ChatMessage.assistant("b")])
    session.append(iter([ChatMessage.user("c")]))
    await session.complete()
    await session.complete()
    session.append([ChatMessage.assistant("d"), ChatMessage.user("e")])
    await session.complete()
    contents = [[message["content"] for message in request.json()["messages"]] for request in server.requests]
    assert contents == [["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c", "d", "e"]]
    assert server.requests[0].body == server.requests[1].body
    assert len(session.request().messages) == 5


# Looking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "models"),
    [
        ({"data": [{"id": "b"}, {"id": "a"}, {"id": "a"}, {"object": "model"}]}, ["a", "b"]),
        ({"models": [{"name": "x"}]}, ["x"]),
        ([{"id": "y"}], ["y"]),
        ({"data": None}, []),
        ("?", []),
    ],
)
async def test_models_are_listed(server: LoopbackServer, connect: Connect, body: object, models: list[str]) -> None:
    """Sorted, each once, in whatever form servers give them."""
    server.then(ServerReply.of_json(body))
    assert await connect().list_models() == models
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")


async def test_check_tells_what_a_connection_can_do(server: LoopbackServer, connect: Connect) -> None:
    """It answers, lists its models, takes a tool, and streams."""
    server.then(MODELS, ANSWER, ANSWER, ServerReply.of_events(CHUNK))
    report = await connect().check()
    assert (report.answers, report.models, report.tools, report.streaming) == (True, ("a", "b"), True, True)
    assert report.detail == "m-1 answered"
    assert "tools" in server.requests[2].json()
    assert server.requests[3].json()["stream"] is True


async def test_check_tells_what_a_connection_can_not_do(server: LoopbackServer, connect: Connect) -> None:
    """No list, no tools, no stream: each is said, and none ends the look."""
    no = ServerReply.of_json({"error": {"message": "not supported"}}, status=400)
    server.then(no, ANSWER, no, no)
    report = await connect().check()
    assert (report.answers, report.models, report.tools, report.streaming) == (True, (), False, False)
    assert "lists no models" in report.detail


async def test_check_knows_an_answer_at_once_from_a_stream(server: LoopbackServer, connect: Connect) -> None:
    """A server that ignores the wish for a stream does not stream."""
    server.then(MODELS, ANSWER, ANSWER, ANSWER)
    report = await connect().check()
    assert (report.answers, report.tools, report.streaming) == (True, True, False)


async def test_check_tries_only_what_the_options_allow(server: LoopbackServer, connect: Connect) -> None:
    """What is switched off is not tried."""
    server.then(MODELS, ANSWER)
    report = await connect(native_tools=False, stream=False).check()
    assert (report.answers, report.tools, report.streaming) == (True, None, None)


async def test_check_of_a_server_that_refuses(server: LoopbackServer, connect: Connect) -> None:
    """The server's own words are the detail."""
    refusal = ServerReply.of_json({"error": {"message": "no such model 'm'"}}, status=404)
    server.then(MODELS, refusal)
    report = await connect().check()
    assert not report.answers
    assert "no such model 'm'" in report.detail
    assert report.models == ("a", "b")


async def test_check_without_a_model_lists_what_there_is(server: LoopbackServer, connect: Connect) -> None:
    """So that a person can choose one."""
    server.then(MODELS)
    report = await connect("").check()
    assert (report.answers, report.models) == (False, ("a", "b"))
    assert report.detail == "the connection names no model"


async def test_check_without_a_key_says_so() -> None:
    """It raises nothing."""
    report = await unconnected().check()
    assert not report.answers
    assert "OPENAI_API_KEY" in report.detail


async def test_check_of_a_server_that_is_not_there(server: LoopbackServer, connect: Connect) -> None:
    """It is said that there is no connection."""
    llm = connect()
    server.stop()
    report = await llm.check()
    assert not report.answers
    assert "no connection to" in report.detail
