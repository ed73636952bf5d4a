"""A whole answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from atlas_core.http.failures import Server

__all__ = ["Response"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer with a status of 200 to 299.

    Attributes:
        status: The HTTP status.
        headers: The answer's headers, names in lower case, repeated ones joined by ", ".
        body: The body, decoded from gzip and the like.
        request_id: The server's id of the request, where it gave one.
        server: Who answered, for errors.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    request_id: str | None = None
    server: Server = field(default_factory=lambda: Server(name="the server"), repr=False, compare=False)

    def json(self) -> object:
        """Return the body's JSON value.

        Raises:
            ProviderResponseError: The body is not JSON; the text has status, content type and an excerpt.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as exc:
            reason = str(exc)[:200]
        # Not `from exc`: JSONDecodeError keeps the whole document, which may be large and is not ours to log.
        raise self.server.unreadable(
            f"which is not JSON ({reason})", status=self.status, headers=self.headers, body=self.body
        )
