"""`atlas init --look`, and templates that fit the providers they are for."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atlas_core import AgentService, Kernel
from atlas_core.cli.init import templates
from atlas_core.cli.look import USUAL_PORTS, look
from atlas_core.settings.loader import load_settings, settings_from_mapping
from atlas_core.testing import LoopbackProxy, LoopbackServer, ReceivedRequest, ServerReply, Then
from tests.cli.conftest import Done
from tests.cli.world import SETTINGS, World, stop, wait_for

Atlas = Callable[..., Done]
Serve = Callable[..., LoopbackServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, which are stopped at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda reply: stack.enter_context(LoopbackServer(always=reply))


def models(*names: object) -> ServerReply:
    """Return a list of models as servers send it."""
    return ServerReply.of_json({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def free_port() -> int:
    """Return a port where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_a_server_that_was_found_becomes_a_connection(world: World, atlas: Atlas, serve: Serve) -> None:
    """Its address and a model that writes text are written; it was asked one thing, without a key."""
    server = serve(models("nomic-embed-text", 'odd "name\\', "odd \x7f", 7, "", "x" * 201))
    done = atlas("init", "--look", "--port", str(free_port()), "--port", str(server.port), "--file", "found.toml")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0] == f'wrote found.toml: model odd "name\\ of the server at {server.url}/v1'
    assert "next: atlas connections check main\n" in done.out
    assert "variable" not in done.out
    loaded = load_settings(world.work / "found.toml")
    name, connection = loaded.connection(loaded.profile()[1].connection_name)
    assert (name, connection.backend, connection.model) == ("main", "openai", 'odd "name\\')
    assert connection.options == {"base_url": f"{server.url}/v1"}
    assert "# It also has: nomic-embed-text\n" in (world.work / "found.toml").read_text()
    assert loaded.problems() == ()
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("GET", "/v1/models", b"")
    assert "authorization" not in request.headers


def test_of_several_servers_the_first_port_wins(atlas: Atlas, serve: Serve) -> None:
    """The others are told with how to choose them; one without a model is passed over."""
    empty, first, second = serve(ServerReply.of_json({"data": None})), serve(models("a")), serve(models("b", "c"))
    words = [word for server in (empty, first, second, first) for word in ("--port", str(server.port))]
    done = atlas("init", "openai", "--look", "--file", "new.toml", *words)
    assert done.status == 0
    assert done.out.splitlines()[:3] == [
        f"port {empty.port}: it has no model yet",
        f"also found {second.url}/v1 with b, c: choose it with --port {second.port}",
        f"wrote new.toml: model a of the server at {first.url}/v1",
    ]
    assert "also has" not in Path("new.toml").read_text()
    assert len(first.requests) == 1


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        pytest.param(models(), "it has no model yet", id="no model"),
        pytest.param(ServerReply.of_json({"data": [{}]}), "it does not speak OpenAI's protocol", id="items of a kind"),
        pytest.param(ServerReply.of_json({"data": {}}), "it does not speak OpenAI's protocol", id="a table of data"),
        pytest.param(ServerReply.of_json([]), "it does not speak OpenAI's protocol", id="a list"),
        pytest.param(ServerReply.of_json({"models": []}), "it does not speak OpenAI's protocol", id="other JSON"),
        pytest.param(
            ServerReply.of_bytes(b"<html>Jenkins", "text/html"), "it does not speak OpenAI's protocol", id="a page"
        ),
        pytest.param(ServerReply(status=404), "it does not speak OpenAI's protocol", id="no such path"),
        pytest.param(
            ServerReply(steps=[b"x" * 4_000_001]), "it does not speak OpenAI's protocol", id="more than is read"
        ),
        pytest.param(ServerReply(status=503), "it answered 503", id="busy"),
        pytest.param(
            ServerReply(status=401), "it wants a key: use `atlas init openai` and set base_url", id="wants a key"
        ),
        pytest.param(
            ServerReply(steps=[b"{", Then.STALL], chunked=True), "it did not answer within 0.3 s", id="stalls"
        ),
    ],
)
def test_what_is_no_server_to_use(
    atlas: Atlas, serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: ServerReply, problem: str
) -> None:
    """It is told why, nothing is written, and the status is 1."""
    monkeypatch.setattr("atlas_core.cli.look.TIMEOUT_S", 0.3 if "0.3" in problem else 30.0)
    server = serve(reply)
    done = atlas("init", "--look", "--file", "new.toml", "--port", str(server.port))
    assert (done.status, done.out) == (1, f"port {server.port}: {problem}\n")
    assert done.err == (
        f"atlas: error: no model server was found on 127.0.0.1 (ports {server.port}), and nothing was written\n"
    )
    assert not Path("new.toml").exists()


@pytest.mark.parametrize("reply", [None, ServerReply(wire=b"SSH-2.0-OpenSSH_9.6\r\n", steps=[Then.CLOSE])])
def test_a_port_that_answers_nothing_readable_is_not_worth_a_line(
    atlas: Atlas, serve: Serve, reply: ServerReply | None
) -> None:
    """Neither a free one nor one of another protocol."""
    port = serve(reply).port if reply else free_port()
    done = atlas("init", "--look", "--file", "new.toml", "--port", str(port))
    assert (done.status, done.out) == (1, "")


def test_nothing_but_loopback_is_touched(atlas: Atlas, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect is not followed, and a proxy of the environment is not used."""
    elsewhere = serve(models("a"))
    astray = serve(ServerReply(status=307, headers=[("location", f"{elsewhere.url}/v1/models")]))
    with LoopbackProxy() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        done = atlas("init", "--look", "--file", "new.toml", "--port", str(astray.port))
        assert proxy.connections == 0
    assert done.status == 1
    assert (len(astray.requests), elsewhere.requests) == (1, [])


def test_only_who_asks_to_look_is_looked_for(world: World, atlas: Atlas, serve: Serve) -> None:
    """Without --look nothing is sent, and an existing file is reason enough not to look."""
    server = serve(models("a"))
    assert atlas("init", "openai", "--file", "new.toml").status == 0
    without = atlas("init", "--port", str(server.port), "--file", "other.toml")
    assert (without.status, without.out) == (2, "")
    assert "it goes with --look" in without.err
    (world.work / "link.toml").symlink_to("nowhere.toml")
    for existing in ("settings.toml", "link.toml"):
        done = atlas("init", "--look", "--port", str(server.port), "--file", existing)
        assert (done.status, done.out) == (2, "")
        assert "exists and is left as it is" in done.err
    assert (world.work / "settings.toml").read_text() == SETTINGS
    assert server.requests == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["llama", "--look"], "--look finds servers for provider 'openai', not 'llama'", id="provider"),
        pytest.param(["opanai", "--look"], "did you mean 'openai'?", id="no template"),
        pytest.param(["--look", "--port", "0"], "invalid value for '--port'", id="no port"),
    ],
)
def test_wrong_use_of_look(atlas: Atlas, words: list[str], told: str) -> None:
    """Status 2, in plain words."""
    done = atlas("init", *words, "--file", "new.toml")
    assert done.status == 2
    assert told in done.err


def test_ctrl_c_ends_a_look(world: World, serve: Serve) -> None:
    """At once, and nothing is written."""
    server = serve(ServerReply(steps=[b"{", Then.STALL], chunked=True))
    process = world.start("init", "--look", "--file", "new.toml", "--port", str(server.port))
    wait_for(lambda: bool(server.requests))
    status, _, err = stop(process, signal.SIGINT)
    assert status == 130
    assert "Traceback" not in err
    assert not (world.work / "new.toml").exists()


async def test_answers_come_in_the_order_of_the_ports(serve: Serve) -> None:
    """Whichever server is the fastest."""
    servers = [serve(models(name)) for name in "abc"]
    answers = await look([server.port for server in reversed(servers)])
    assert [answer.models for answer in answers] == [("c",), ("b",), ("a",)]
    assert [answer.base_url for answer in answers] == [f"{server.url}/v1" for server in reversed(servers)]


def test_the_usual_ports_are_documented() -> None:
    """The reference names each port with its server."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for port, server in USUAL_PORTS.items():
        assert f"{port} ({server})" in page


# Templates -------------------------------------------------------------------------------------------------------

PROVIDERS = ["anthropic", "llama", "openai"]


def written_out(text: str) -> dict[str, Any]:
    """Return a template's tables as they are when every line that is commented out is in force."""
    tables: dict[str, Any] = tomllib.loads(re.sub(r"^# (?=\w+ = |\[\S+\]$)", "", text, flags=re.MULTILINE))["default"]
    return tables


@pytest.mark.parametrize("name", sorted(templates()))
def test_what_templates_leave_out_is_right_too(name: str) -> None:
    """Each line that is commented out is valid when it is not, and shows each key for limits and costs."""
    tables = written_out(templates()[name].text)
    connections = tables["ai"]["connections"]
    connections["backup"] = {"backend": "offline"}
    loaded = settings_from_mapping(tables)
    assert loaded.profile()[1].permissions is not None
    assert templates()[name].check in {"", *connections}
    if name == "offline":
        return
    main, profile = loaded.connection("main")[1], loaded.profile()[1]
    assert main.fallback == ("backup",)
    assert (profile.max_tokens, profile.tool_calls) == (100_000, "text")
    if name != "llama":
        assert main.requests_per_minute is not None
        assert main.prices is not None
        assert profile.max_cost is not None


@pytest.mark.parametrize("name", PROVIDERS)
def test_templates_fit_the_options_of_their_provider(name: str) -> None:
    """The provider's own model takes the connection's table, as it is written and with every line in force."""
    plugin = pytest.importorskip(f"atlas_{name}.plugin", reason="the provider's plugin is not installed")
    options = Kernel(plugins=[plugin]).catalog().find("llm", name).value.options
    assert options is not None
    text = templates()[name].text
    for tables in (tomllib.loads(text)["default"], written_out(text)):
        (table,) = tables["ai"]["connections"].values()
        own = settings_from_mapping({"ai": {"connections": {"main": table}}}).settings.ai.connections["main"].options
        assert options.model_validate(own).model_dump(include=own.keys()) == own


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_agent_can_be_made_from_a_template(name: str, tmp_path: Path) -> None:
    """Kernel, plugin and tools agree with it; nothing is sent for that."""
    pytest.importorskip(f"atlas_{name}.provider", reason="the provider's plugin is not installed")
    pytest.importorskip("atlas_standard_tools", reason="the tools' plugin is not installed")
    path = tmp_path / "settings.toml"
    path.write_text(templates()[name].text, encoding="utf-8")
    agent = Kernel.from_settings(path).agent()
    assert isinstance(agent, AgentService)
    assert (agent.settings.name, agent.parts.connection) == ("assistant", "main")


def test_from_a_look_to_an_answer(world: World, atlas: Atlas, serve: Serve) -> None:
    """What --look wrote is checked and answers, with the real provider."""
    pytest.importorskip("atlas_openai.provider", reason="the provider's plugin is not installed")
    pytest.importorskip("atlas_standard_tools")

    def reply(request: ReceivedRequest) -> ServerReply:
        if request.path.endswith("/models"):
            return models("tiny")
        body = request.json()
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        head = {"id": "1", "created": 1, "model": "tiny"}
        if body.get("stream"):
            choice = {"index": 0, "delta": {"role": "assistant", "content": "hello"}, "finish_reason": None}
            last = {"index": 0, "delta": {}, "finish_reason": "stop"}
            chunk = {**head, "object": "chat.completion.chunk"}
            return ServerReply.of_events(
                {**chunk, "choices": [choice]}, {**chunk, "choices": [last]}, {**chunk, "choices": [], "usage": usage}
            )
        choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
        return ServerReply.of_json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    server = LoopbackServer(always=reply)
    with server:
        (world.work / "settings.toml").unlink()
        assert atlas("init", "--look", "--port", str(server.port)).status == 0
        checked = atlas("connections", "check", "main", "--json")
        assert checked.status == 0, checked.err
        facts = json.loads(checked.out)
        assert (facts["answers"], facts["models"], facts["streaming"]) == (True, ["tiny"], True)
        done = atlas("run", "hi")
    assert done.status == 0, done.err
    assert "hello" in done.out
    assert "used: 1 request, 9 tokens in, 2 out\n" in done.out
