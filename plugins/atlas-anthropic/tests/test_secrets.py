"""No error holds a key, wherever a report may look: text, attributes, causes, contexts, the variables of frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import stamina
from atlas_anthropic.options import AnthropicOptions
from atlas_anthropic.provider import AnthropicLLM

from atlas_core import AtlasError, ChatMessage, ConnectionConfig, LLMDefaults, LLMRequest
from atlas_core.testing import LoopbackServer, ReceivedRequest, ServerReply, Then

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MARK = "TESTSECRET"
KEY = f"sk-{MARK}123"
ODD = f"{MARK}-is-in-no-known-form"
HERE = Path(__file__).parent

Turn = Callable[[str], ServerReply]


def shown(exc: BaseException) -> Iterator[str]:
    """Yield everything that reports show of an exception and of all that hangs on it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        inner = waiting.pop()
        if inner is None or id(inner) in seen:
            continue
        seen.add(id(inner))
        yield f"{inner} {inner!r} {inner.args!r} {vars(inner)!r} {getattr(inner, '__notes__', '')}"
        trace = inner.__traceback__
        while trace is not None:
            if Path(trace.tb_frame.f_code.co_filename).parent != HERE:  # the test itself knows the key
                yield f"{trace.tb_frame.f_code.co_qualname} {trace.tb_frame.f_locals!r}"
            trace = trace.tb_next
        waiting += [inner.__cause__, inner.__context__]


def test_the_walk_finds_what_is_hidden() -> None:
    """In a suppressed context, an attribute, an argument or a variable."""

    def hide() -> None:
        try:
            raise ValueError(MARK)
        except ValueError:
            raise RuntimeError("x") from None

    with pytest.raises(RuntimeError) as caught:
        hide()
    assert MARK in "".join(shown(caught.value))


def error(said: str, status: int = 200) -> ServerReply:
    """Return an error that repeats the key."""
    return ServerReply.of_json(
        {"type": "error", "error": {"type": said, "message": f"you sent {said}"}},
        status=status,
        headers={"request-id": said},
    )


def message(**more: Any) -> ServerReply:
    """Return a message, as far as it is one."""
    return ServerReply.of_json({"type": "message", "stop_reason": "end_turn", **more})


async def read_all(pieces: AsyncIterator[object]) -> None:
    """Read a stream to its end."""
    async for _ in pieces:
        pass


def events(*found: object, **more: Any) -> ServerReply:
    """Return a stream."""
    return ServerReply.of_events(*found, **more)


TURNS: dict[str, Turn] = {
    "an error with status 200": error,
    "an error with status 401": lambda said: error(said, 401),
    "an error with status 503": lambda said: error(said, 503),
    "a page": lambda said: ServerReply.of_bytes(f"<p>{said}</p>".encode(), "text/html"),
    "a text": lambda said: ServerReply.of_bytes(said.encode(), "application/json"),
    "no blocks": lambda said: message(content=[said]),
    "a block without a type": lambda said: message(content=[{"x": "y" * 150, "text": said}]),
    "a call without a name": lambda said: message(content=[{"type": "tool_use", "id": said}]),
    "a list": lambda said: ServerReply.of_json([said]),
    "an event that is no JSON": lambda said: events(f"data: {'x' * 130}{said}"),
    "an event that is a list": lambda said: events([said]),
    "an event that is an error": lambda said: events({"type": "error", "error": {"message": said}}),
    "a block that was never begun": lambda said: events(
        {"type": "content_block_delta", "index": 0, "delta": {"type": said}}
    ),
    "an end before its time": lambda said: events({"type": "message_start", "message": {"id": said}}, done=False),
    "an end inside of an event": lambda said: events(f"data: {said}".encode(), done=False),
    "a break": lambda said: events({"id": said}, Then.CUT),
    "no HTTP": lambda said: ServerReply(wire=f"{said}\r\n\r\n".encode()),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("auth", ["x-api-key", "bearer"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("key", [KEY, ODD], ids=["a known form", "no known form"])
async def test_nothing_of_an_error_holds_a_key(
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    turn: Turn,
    auth: Literal["x-api-key", "bearer"],
    streamed: bool,
    key: str,
) -> None:
    """Whatever the server makes of the header that it was sent (cases 64 and 112)."""
    monkeypatch.setenv("SOME_KEY", key)

    def answer(request: ReceivedRequest) -> ServerReply:
        sent = request.headers["authorization" if auth == "bearer" else "x-api-key"]
        assert MARK in sent
        return turn(sent)

    server.then(answer, answer)
    options = AnthropicOptions(base_url=server.url, api_key_env="SOME_KEY", auth=auth, max_retries=1, proxy="")
    llm = AnthropicLLM(ConnectionConfig(name="main", model="m", options=options))
    session = llm.open(LLMDefaults())
    session.append([ChatMessage.user("hi")])
    with stamina.set_testing(True, attempts=100, cap=True), pytest.raises(AtlasError) as caught:
        await (read_all(session.stream()) if streamed else session.complete())
    await llm.stop()
    assert server.requests
    assert MARK.casefold() not in "\n".join(shown(caught.value)).casefold()
    assert caught.value.__context__ is None


async def test_nor_does_that_of_one_request(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ways around a session lead through it."""
    monkeypatch.setenv("SOME_KEY", KEY)
    server.then(error(KEY), error(KEY))
    options = AnthropicOptions(base_url=server.url, api_key_env="SOME_KEY", max_retries=0, proxy="")
    llm = AnthropicLLM(ConnectionConfig(name="main", model="m", options=options))
    request = LLMRequest(messages=(ChatMessage.user("hi"),))
    with pytest.raises(AtlasError) as whole:
        await llm.complete(request)
    with pytest.raises(AtlasError) as streamed:
        await read_all(llm.stream(request))
    await llm.stop()
    for caught in (whole, streamed):
        assert MARK not in "\n".join(shown(caught.value))
