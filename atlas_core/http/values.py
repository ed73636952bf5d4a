"""What a client is told, and what a stream hands over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["RetryPolicy", "ServerEvent", "Timeouts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long each wait may take, in seconds, besides a request's deadline.

    Attributes:
        connect_s: For a connection, TLS included.
        write_s: For each piece of the request that is sent.
        read_s: For the answer to begin, and for each further piece of a plain answer. A model that is asked not to
            stream sends nothing until it has thought: ten minutes are what the vendors' own clients allow.
        idle_s: Between two pieces of a stream; keep-alive comments count as pieces.
    """

    connect_s: float = 10.0
    write_s: float = 60.0
    read_s: float = 600.0
    idle_s: float = 120.0

    def __post_init__(self) -> None:
        for name in ("connect_s", "write_s", "read_s", "idle_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected more than 0 seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a request is tried again: after 408, 409, 429, 5xx, and when the connection failed.

    Attributes:
        max_attempts: Attempts in all, >= 1; 1 for no second one.
        max_wait_s: The longest wait between two attempts, whatever the server demands.
        first_wait_s: The wait after the first failure where the server demands none; it doubles each time, and up
            to as much again is added at random, so that many clients do not come back at once.
    """

    max_attempts: int = 3
    max_wait_s: float = 60.0
    first_wait_s: float = 0.5

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts is {self.max_attempts!r}, expected at least 1")
        for name in ("max_wait_s", "first_wait_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected 0 seconds or more")


class ServerEvent(NamedTuple):
    """One event of a stream; a tuple because thousands of them come at once.

    Attributes:
        event: Its type: "message" where the server names none.
        data: Its data, lines joined by newlines; never empty.
        id: The last id that the server gave, or "".
        retry: Milliseconds after which the server wants to be asked again, or None; nothing acts on it.
    """

    event: str
    data: str
    id: str = ""
    retry: int | None = None
