"""The model in this process: loads a file with llama.cpp, and answers requests in threads of its own."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xllamacpp

__all__ = ["Engine", "EngineError", "EngineSettings", "Job", "default_threads"]

_BATCH_TOKENS = 128
"""Input that is read between two looks at whether to stop; on processors larger batches are hardly faster."""
_GPU_BATCH_TOKENS = 512
_LONGEST_SOCKET_PATH = 100  # Linux allows 107 bytes (unix(7))

Chunk = Mapping[str, Any]


class EngineError(Exception):
    """llama.cpp refused the file or its settings."""


def default_threads() -> int:
    """Return half of the cores that this process may use, at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How a file is loaded.

    Attributes:
        path: The file.
        window_tokens: Tokens of input and output together, of each answer.
        threads: Threads that compute.
        gpu_layers: Layers on a graphics card.
        parallel: Answers that are written at once.
    """

    path: Path
    window_tokens: int
    threads: int
    gpu_layers: int = 0
    parallel: int = 1


class Job:
    """One request. It ends with exactly one call of `on_end`, from a thread of the engine.

    Args:
        kind: "chat", or "text" for a bare completion.
        body: What llama.cpp's server takes.
        on_chunk: Called with each piece, from a thread of the engine.
        on_end: Called with what went wrong, or None.
    """

    def __init__(
        self,
        kind: Literal["chat", "text"],
        body: dict[str, Any],
        *,
        on_chunk: Callable[[Chunk], None],
        on_end: Callable[[BaseException | None], None],
    ) -> None:
        self._kind = kind
        self._body = body
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._stopped = False

    def stop(self) -> None:
        """End the job at the next token, or the next batch of input; does nothing if it has ended."""
        self._stopped = True

    def run(self, server: xllamacpp.Server | None) -> None:
        """Do it; never raises."""
        error: BaseException | None = None
        try:
            if server is None:
                raise EngineError("the model was freed")
            if not self._stopped:
                handle = server.handle_chat_completions if self._kind == "chat" else server.handle_completions
                handle({**self._body, "stream": True}, self._take)
        except BaseException as exc:  # noqa: BLE001  # foreign code; whoever waits is told
            error = exc
        self._on_end(error)

    def _take(self, chunk: Chunk) -> bool:
        """Pass a piece on; True makes llama.cpp stop."""
        if not self._stopped:
            self._on_chunk(chunk)
        return self._stopped


class Engine:
    """A loaded model and the threads that ask it. Jobs beyond `parallel` wait for their turn, first come first served.

    The threads are daemons, so that a forgotten engine can't keep the interpreter from ending. Whoever makes one must
    see to it that it is closed before that: a thread inside llama.cpp must not outlive what it computes with.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._server: xllamacpp.Server | None = None
        self._folder: str | None = None
        self._closed = False
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._jobs: set[Job] = set()
        self._threads: list[threading.Thread] = []

    def load(self) -> None:
        """Load the file; blocks.

        Raises:
            EngineError: llama.cpp refused it, or the engine was closed meanwhile.
            ImportError: xllamacpp is not installed, or does not run on this machine.
        """
        server = self._open()
        with self._lock:
            if not self._closed:
                self._server = server
                self._threads = [
                    threading.Thread(target=self._work, name=f"atlas-llama-{n}", daemon=True)
                    for n in range(self._settings.parallel)
                ]
                for thread in self._threads:
                    thread.start()
                return
        del server
        self._remove_folder()
        raise EngineError("it was closed while it loaded")

    def _open(self) -> xllamacpp.Server:
        import xllamacpp

        s = self._settings
        params = xllamacpp.CommonParams()
        params.model.path = str(s.path)
        params.n_ctx = s.window_tokens * s.parallel  # shared out evenly
        params.n_parallel = s.parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = s.threads
        params.n_gpu_layers = s.gpu_layers
        params.n_batch = params.n_ubatch = _GPU_BATCH_TOKENS if s.gpu_layers else _BATCH_TOKENS
        params.fit_params = False  # what was asked for, or an error
        params.cache_ram_mib = 0  # else conversations are kept in up to 8 GiB of memory
        params.warmup = False  # it reads all of the file while holding the interpreter
        params.prefill_assistant = False
        params.verbosity = -1  # it writes to stderr past Python
        self._shut_in(params)
        params.endpoint_metrics = True
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as exc:
            self._remove_folder()
            raise EngineError(str(exc)) from exc
        # Freed before its loop runs, a server waits for that for ever: its loop forgets that it was told to end. An
        # answer means that the loop runs, and this is one that costs nothing.
        server.handle_metrics()
        return server

    def _shut_in(self, params: xllamacpp.CommonParams) -> None:
        """Keep others from the server that llama.cpp opens besides, whether one wants it or not."""
        params.api_keys = [secrets.token_hex(32)]
        params.ui = params.endpoint_slots = params.endpoint_props = False
        params.n_threads_http = 1
        self._folder = tempfile.mkdtemp(prefix="atlas-llama-")  # only this user may look into it
        socket = os.path.join(self._folder, "llama.sock")  # noqa: PTH118  # bytes count, not parts
        if len(os.fsencode(socket)) <= _LONGEST_SOCKET_PATH:
            params.hostnames = [socket]
        else:
            params.hostnames, params.port = ["127.0.0.1"], 0

    def _work(self) -> None:
        while (job := self._waiting.get()) is not None:
            job.run(self._server)
            self._jobs.discard(job)

    def submit(self, job: Job) -> None:
        """Have a job done.

        Raises:
            EngineError: The engine is closed, or was never loaded.
        """
        with self._lock:
            if self._closed or self._server is None:
                raise EngineError("the model was freed")
            self._jobs.add(job)
            self._waiting.put(job)

    def close(self) -> None:
        """Stop all jobs and free the model; blocks until the last token or batch of input is done. Idempotent."""
        with self._lock:
            already, self._closed = self._closed, True
            threads, self._threads = self._threads, []
            for job in tuple(self._jobs):
                job.stop()
            for _ in threads:
                self._waiting.put(None)
        if already:
            return
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()
        self._server = None
        self._remove_folder()

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(folder)
