"""A world for the command line: distributions on disk, a folder with settings, and ways to run `atlas` in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.plugin_factory import lay_out

PARROT = r'''
"""A provider that does what it is told: `call NAME {json}; ...`, `decline`, `fail`, `hang`, `loop`, else an echo."""

import asyncio
import json
import re

from atlas_core import (
    BaseLLM, Capabilities, ChatMessage, FinishReason, LLMDelta, LLMProviderSpec, LLMResponse, ProviderError, ToolCall,
    Usage, hookimpl,
)


class Parrot(BaseLLM):
    label = "a parrot, no language model"
    notice = "to use a real model, run `atlas init openai`"

    def __init__(self, config):
        self.capabilities = Capabilities(streaming="streaming" in config.model)

    async def complete(self, request):
        last = request.messages[-1]
        text = next(m.text for m in reversed(request.messages) if m.role == "user")
        usage = Usage(input_tokens=7, output_tokens=3)
        if last.role == "tool" and text != "loop":
            results = [m.text for m in request.messages if m.role == "tool"]
            return LLMResponse(message=ChatMessage.assistant(f"it is {results[-1]}"), usage=usage)
        if text == "decline":
            return LLMResponse(message=ChatMessage.assistant("that is not for a parrot"),
                               finish_reason=FinishReason.DECLINED)
        if text == "fail":
            raise ProviderError("the server is on fire, key sk-TESTSECRET123", remedy="call the fire brigade")
        if text == "hang":
            await asyncio.sleep(60)
        calls = re.findall(r"call (\w+) (\{.*?\})(?:;|$)", "call add {\"a\": 1, \"b\": 1}" if text == "loop" else text)
        if calls:
            asked = [ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls)]
            return LLMResponse(message=ChatMessage.assistant("I look it up", asked), usage=usage)
        asked = sum(m.role == "user" for m in request.messages)
        return LLMResponse(message=ChatMessage.assistant(f"echo {asked}: {text}"), usage=usage)

    async def stream(self, request):
        response = await self.complete(request)
        for word in re.findall(r"\S+\s*", response.message.text):
            yield LLMDelta(word)
        yield response


@hookimpl
def atlas_llm_providers():
    return [LLMProviderSpec(name="parrot", factory=Parrot)]
'''

KIT = r'''
"""Tools of every temper."""

import asyncio
import time
from pathlib import Path

from pydantic import BaseModel

from atlas_core import hookimpl, tool


class Options(BaseModel):
    limit: int = 3
    api_key: str = ""


@tool(effects="read")
def add(a: int, b: int) -> int:
    """Add two numbers.

    Both are whole.
    """
    return a + b


def nap(seconds: float) -> str:
    """Sleep in a thread, which nothing can stop."""
    Path("napping").touch()
    time.sleep(seconds)
    return "slept"


async def doze(seconds: float) -> str:
    """Sleep on the loop, or in one of its threads where told."""
    try:
        Path("dozing").touch()
        await asyncio.sleep(seconds)
    finally:
        Path("doze-ended").touch()
    return "slept"


async def snore(seconds: float) -> str:
    """Sleep in one of the loop's own threads."""
    Path("snoring").touch()
    await asyncio.to_thread(time.sleep, seconds)
    return "slept"


async def freeze(seconds: float) -> str:
    """Block the event loop, as no tool should."""
    Path("freezing").touch()
    time.sleep(seconds)
    return "thawed"


@tool(requires_approval=True)
def boom():
    """Fail."""
    raise RuntimeError("no luck")


def fails(why: str) -> str:
    """Fail for a reason."""
    raise RuntimeError(why)


def quits() -> str:
    """Call sys.exit, as a careless library does."""
    raise SystemExit(3)


def paint() -> str:
    """Answer with escapes, markup and a forged line end."""
    return "\x1b[31mred\x1b[0m [bold]x[/bold] \r\nforged: line\u202e"


@hookimpl
def atlas_options():
    return Options


@hookimpl
def atlas_tool_providers(options):
    return [add, nap, doze, snore, freeze, boom, fails, quits, paint]
'''

STUBBORN = r'''
"""Tools that neither end when told to nor keep quiet."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from atlas_core import hookimpl

print("PRINTED at import")
os.write(1, b"WRITTEN at import\n")


async def clings() -> str:
    """Ignore every cancellation."""
    Path("clinging").touch()
    while True:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            pass


async def holds() -> str:
    """Wait for a thread of the loop that does not end."""
    await asyncio.to_thread(time.sleep, 60)
    return "held"


def starts() -> str:
    """Start a thread that Python waits for at its end."""
    threading.Thread(target=time.sleep, args=(60,), name="left-by-a-tool", daemon=False).start()
    return "started"


def chatters() -> str:
    """Print in every way there is."""
    print("PRINTED")
    sys.__stdout__.write("PRINTED past sys.stdout\n")
    os.write(1, b"WRITTEN\n")
    subprocess.run(["echo", "ECHOED by a child process"], check=True)
    return "said it"


@hookimpl
def atlas_tool_providers():
    return [clings, holds, starts, chatters]
'''

SETTINGS = """
[default.plugins]
enabled = ["parrot", "kit"]

[default.ai.connections.main]
backend = "parrot"

[default.ai.agents]
default_profile = "helper"

[default.ai.agents.profiles.connections.helper]
description = "Helps with tests."
connection_name = "main"
tools = ["add", "nap", "doze", "snore", "freeze", "fails", "quits", "paint"]
max_iterations = 3

[streaming.ai.connections.main]
model = "streaming"
"""

KIT_TOOLS = ("add", "nap", "doze", "snore", "freeze", "boom", "fails", "quits", "paint")


class World:
    """A folder to work in, and one with distributions that stands for `site-packages`.

    Attributes:
        work: The current folder of commands, with a settings file.
        site: Where distributions are laid out.
    """

    def __init__(self, root: Path) -> None:
        self.work, self.site = root / "work", root / "site"
        self.work.mkdir()
        self.site.mkdir()
        self.add("atlas-parrot", "parrot", PARROT, offers=["llm.parrot"])
        self.add("atlas-kit", "kit", KIT, offers=[f"tool.{name}" for name in KIT_TOOLS])
        self.settings(SETTINGS)

    def add(self, distribution: str, plugin: str, source: str, *, offers: list[str] | None = None) -> None:
        """Lay out a distribution with one plugin."""
        module = f"{distribution.replace('-', '_')}_plugin"
        lay_out(
            self.site,
            distribution,
            plugins={plugin: module},
            modules={module: source},
            offers=dict.fromkeys(offers or [], module),
        )

    def add_stubborn(self, *, max_seconds: float = 30) -> None:
        """Lay out a plugin whose tools neither end nor keep quiet, and let the agent use them for some seconds."""
        self.add("atlas-stubborn", "stubborn", STUBBORN)
        tools = '"paint", "clings", "holds", "starts", "chatters"]'
        text = SETTINGS.replace('"kit"]', '"kit", "stubborn"]').replace('"paint"]', tools)
        self.settings(text.replace("max_iterations = 3", f"max_execution_time_seconds = {max_seconds}"))

    def settings(self, text: str, name: str = "settings.toml") -> Path:
        """Write a settings file."""
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        return path

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of a child process."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ATLAS_", "COVERAGE_"))}
        return {**kept, "PYTHONPATH": str(self.site), "PYTHONWARNINGS": "error", **variables}

    def atlas(self, *words: str, text: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the real command in a child process."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("atlas")), *words],
            cwd=self.work,
            env=self.environment(**variables),
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the real command and leave it running."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("atlas")), *words],
            cwd=self.work,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )


def wait_for(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def stop(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[int, str, str]:
    """Send a signal and return status, output and errors."""
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def lines_of(path: Path) -> Iterator[dict[str, object]]:
    """Yield the objects of a JSON Lines file."""
    import json

    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
