"""Looks for model servers on this machine's loopback interface; nothing else is ever touched."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atlas_core.errors import ProviderAuthError, ProviderError, ProviderTimeoutError

__all__ = ["USUAL_PORTS", "Answer", "look"]

USUAL_PORTS: Mapping[int, str] = {
    11434: "Ollama",
    8080: "llama-server, LocalAI",
    8000: "vLLM",
    1234: "LM Studio",
    30000: "SGLang",
    1337: "Jan",
    4000: "LiteLLM",
    5001: "KoboldCpp",
}
"""Where servers of OpenAI's protocol listen unless told otherwise, in the order in which they are preferred."""

TIMEOUT_S = 2.0
"""For one port. A free one refuses at once; a busy server may need some time."""

NO_SERVER = "it does not speak OpenAI's protocol"
MAX_BYTES = 4_000_000
MAX_ID_CHARS = 200

_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|\bclip\b|diffusion", re.IGNORECASE)
"""Parts of the names of models that don't write text; servers list them among the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a port answered.

    Attributes:
        port: The port.
        models: Names of models, those that probably write text first, else in the server's order.
        problem: Why it is no server to be used, or "".
    """

    port: int
    models: tuple[str, ...] = ()
    problem: str = ""

    @property
    def base_url(self) -> str:
        """Where the server's paths begin."""
        return f"http://127.0.0.1:{self.port}/v1"


async def look(ports: Sequence[int]) -> list[Answer]:
    """Ask each port for its models, all at once; a port where nobody listens is left out.

    Args:
        ports: Ports of 127.0.0.1.
    Returns:
        What answered, in the order of the ports.
    Raises:
        ServiceNotReadyError: The kernel's extra `http` is not installed.
    """
    answers = await asyncio.gather(*map(_ask, dict.fromkeys(ports)))
    return [answer for answer in answers if answer is not None]


async def _ask(port: int) -> Answer | None:
    from atlas_core.http import HttpClient, RetryPolicy

    # No proxy, whatever the environment says, and no redirect is followed: the request stays on this machine.
    client = HttpClient(
        Answer(port=port).base_url, proxy="", retry=RetryPolicy(max_attempts=1), max_response_bytes=MAX_BYTES
    )
    try:
        response = await client.get_json("models", deadline=time.monotonic() + TIMEOUT_S)
        models = _models(response.json())
    except ProviderAuthError:
        return Answer(port=port, problem="it wants a key: use `atlas init openai` and set base_url")
    except ProviderTimeoutError:
        return Answer(port=port, problem=f"it did not answer within {TIMEOUT_S:g} s")
    except ProviderError as exc:
        if exc.status is None:
            return None
        answered = f"it answered {exc.status}" if exc.status >= 500 else NO_SERVER
        return Answer(port=port, problem=answered)
    finally:
        await client.stop()
    if models is None:
        return Answer(port=port, problem=NO_SERVER)
    return Answer(port=port, models=models, problem="" if models else "it has no model yet")


def _models(value: object) -> tuple[str, ...] | None:
    """Return the names in a list of models, or None if it is no such list.

    Source: platform.openai.com/docs/api-reference/models/list, `{"object": "list", "data": [{"id": ...}]}`; Ollama
    without a model answers `"data": null`.
    """
    if not isinstance(value, Mapping) or "data" not in value:
        return None
    data = [] if value["data"] is None else value["data"]
    if not isinstance(data, list) or not all(isinstance(item, Mapping) and "id" in item for item in data):
        return None
    names = [item["id"] for item in data if _is_name(item["id"])]
    return tuple(sorted(dict.fromkeys(names), key=lambda name: _NO_CHAT.search(name) is not None))


def _is_name(value: object) -> bool:
    # It is written to a settings file and to a screen.
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS and value.isprintable()
