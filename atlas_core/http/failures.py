"""From what a server or a connection did to the error that says so."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from atlas_core.errors import (
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderTimeoutError,
)
from atlas_core.http.redact import Redactor
from atlas_core.http.retry_after import demanded_wait
from atlas_core.http.texts import excerpt, is_page, json_of, message_of, request_id_of
from atlas_core.settings.secrets import MASK

__all__ = ["Fault", "Server"]

_RETRYABLE = frozenset({408, 409, 425, 429})
_TIMED_OUT = frozenset({408, 504, 524})
# RFC 6838, section 4.2, without the marks that hardly any type has: a server can put anything here, and some put a key.
_MEDIA_TYPE = re.compile(r"[a-z][a-z0-9-]{0,19}/[a-z0-9][a-z0-9.+_-]{0,99}", re.IGNORECASE | re.ASCII)
_MOST_ENCODED = 5  # times
_NO_RETRY_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
# Types that vendors give errors inside of a stream or of a body with status 200, and the status that each stands for.
# Sources: platform.openai.com/docs/guides/error-codes, docs.anthropic.com/en/api/errors; both read in 2025.
_STATUS_OF = {
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "internal_server_error": 500,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "api_error": 500,
    "overloaded_error": 529,
    "overloaded": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
}


class Fault(enum.Enum):
    """What can go wrong with a connection, whatever the library below calls it."""

    CONNECT = "connect"
    CERTIFICATE = "certificate"
    CONNECT_TIMEOUT = "connect time-out"
    READ_TIMEOUT = "read time-out"
    WRITE_TIMEOUT = "write time-out"
    BROKEN = "broken"
    PROXY = "proxy"
    ENCODING = "encoding"
    REQUEST = "request"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Who is asked, as errors name it, and how to write about it.

    Attributes:
        name: The server's address without login and query.
        owner: Who owns the connection, or None.
        proxy: The proxy's address without login, or None.
        redact: Removes secrets from a text.
    """

    name: str
    owner: str | None = None
    proxy: str | None = None
    redact: Callable[[str], str] = field(default_factory=Redactor, repr=False)

    # A status that is an error ---------------------------------------------------------------------------------

    def status_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Return the error for a status outside of 200 to 299.

        Args:
            status: The HTTP status.
            headers: The answer's headers, names in lower case.
            body: The decoded body, or its beginning.
        """
        if 300 <= status < 400:
            return self._redirect(status, headers)
        kind = headers.get("content-type", "")
        said = excerpt(body, kind, self.redact)
        text = f"{self.name} answered {status}{self._named(kind)}" + (f": {said}" if said else " with an empty body")
        code = _code_in(body)
        return self._of_status(text, status, code, headers)

    def _redirect(self, status: int, headers: Mapping[str, str]) -> ProviderError:
        target = self._address(headers.get("location", ""))
        return ProviderError(
            f"{self.name} answered {status}, a redirect to {target!r}, which is not followed with a key",
            owner=self.owner,
            remedy="set base_url to the address where the server answers itself",
            status=status,
            request_id=self.request_id(headers),
        )

    def _of_status(self, text: str, status: int, code: str, headers: Mapping[str, str]) -> ProviderError:
        request_id = self.request_id(headers)
        if request_id:
            text = f"{text} [request {request_id}]"
        retryable = (status in _RETRYABLE or status >= 500) and code not in _NO_RETRY_CODES
        retryable = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower(), retryable)
        if status in {401, 403}:
            remedy = "check the key that the connection's api_key_env names" if status == 401 else None
            return ProviderAuthError(text, owner=self.owner, remedy=remedy, status=status, request_id=request_id)
        if status == 429:
            return ProviderRateLimitError(
                text,
                owner=self.owner,
                retryable=retryable,
                status=status,
                request_id=request_id,
                retry_after_s=demanded_wait(headers),
            )
        kind = ProviderTimeoutError if status in _TIMED_OUT else ProviderError
        return kind(text, owner=self.owner, retryable=retryable, status=status, request_id=request_id)

    # An error inside of a good answer ---------------------------------------------------------------------------

    def payload_error(
        self, payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ProviderError | None:
        """Return the error in a JSON value that came with a good status, or in a stream; None if it holds none.

        Args:
            payload: The value; an error is `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, or an
                object whose `type` or `object` is "error".
            status: The answer's HTTP status.
            headers: Its headers, for the request's id.
        """
        if not isinstance(payload, Mapping):
            return None
        inner = payload.get("error")
        if not inner and "error" not in (payload.get("type"), payload.get("object")):
            return None
        facts = inner if isinstance(inner, Mapping) else payload
        meant, code = _status_of(facts)
        said = message_of(payload, self.redact) or "an error without a message"
        kind = self.redact(
            ", ".join(
                str(facts[k])
                for k in ("type", "code")
                if isinstance(facts.get(k), str | int) and facts[k] not in {"", "error"}
            )
        )
        text = f"{self.name} answered {status} with an error" + (f" ({kind})" if kind else "") + f": {said}"
        return self._of_status(text, meant if meant is not None else status, code, headers or {})

    def unreadable(
        self, why: str, *, status: int, headers: Mapping[str, str], body: bytes | None = None
    ) -> ProviderResponseError:
        """Return the error for an answer with a good status that is not what was asked for.

        A web page may be the one for the time of a repair, so it is retryable.

        Args:
            why: What is wrong, as the end of a sentence.
            status: The HTTP status.
            headers: The answer's headers, names in lower case.
            body: The decoded body, or its beginning; None to leave it out.
        """
        kind = headers.get("content-type", "")
        text = f"{self.name} answered {status}{self._named(kind)}, {why}"
        if body is not None:
            said = excerpt(body, kind, self.redact)
            text += f": {said}" if said else "; the body is empty"
        page = is_page(body or b"", kind)
        return ProviderResponseError(
            text,
            owner=self.owner,
            remedy="check that base_url names the API and not a web page" if page else None,
            retryable=page,
            status=status,
            request_id=self.request_id(headers),
        )

    # A connection that failed ----------------------------------------------------------------------------------

    def fault_error(
        self, fault: Fault, detail: str, *, seconds: float | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """Return the error for a connection that failed.

        Args:
            fault: What failed.
            detail: The library's own words; "" if they say nothing.
            seconds: The time-out that passed.
            headers: The answer's headers if it had begun; then the fault interrupted it.
        """
        detail = self.redact(detail)
        begun = headers is not None
        told: dict[str, object] = {"request_id": self.request_id(headers)} if headers is not None else {}
        limit = f"{seconds:g} s" if seconds is not None else "the time allowed"
        match fault:
            case Fault.CONNECT_TIMEOUT:
                return self._timeout(f"no connection to {self._way} within {limit}", told)
            case Fault.WRITE_TIMEOUT:
                return self._timeout(f"{self.name} took no data for {limit}", told)
            case Fault.READ_TIMEOUT:
                stalled = f"the answer of {self.name} stalled: nothing came for {limit}"
                return self._timeout(stalled if begun else f"{self.name} did not answer within {limit}", told)
            case Fault.ENCODING:
                return self._response(f"the answer of {self.name} can't be decoded: {detail}", told, retryable=False)
            case Fault.BROKEN if begun:
                return self._response(f"interrupted stream: the connection to {self.name} broke: {detail}", told)
            case Fault.BROKEN:
                return self._plain(f"the connection to {self._way} broke before an answer: {detail}", retryable=True)
            case Fault.CONNECT:
                remedy = "check that the server runs and that base_url is right"
                if self.proxy:
                    remedy = f"check that the proxy {self.proxy} runs, or leave it out (proxy = '' in the connection)"
                return self._plain(f"no connection to {self._way}: {detail}", retryable=True, remedy=remedy)
            case Fault.CERTIFICATE:
                remedy = "let SSL_CERT_FILE name a file with the certificate of its authority"
                return self._plain(f"the certificate of {self.name} is refused: {detail}", remedy=remedy)
            case Fault.PROXY:
                remedy = "check the proxy's address and login"
                retryable = detail.startswith("5")
                return self._plain(f"the proxy {self.proxy} refused: {detail}", retryable=retryable, remedy=remedy)
            case _:
                return self._plain(f"the request to {self.name} could not be sent: {detail}")

    def request_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the server's id of a request, where the answer's headers have one."""
        return request_id_of(headers, self.redact)

    @property
    def _way(self) -> str:
        return f"{self.name} through the proxy {self.proxy}" if self.proxy else self.name

    def _named(self, content_type: str) -> str:
        """Return a media type in brackets; "" for anything else, such as a type that holds a secret."""
        kind = self.redact(content_type).partition(";")[0].strip()
        return f" ({kind})" if _MEDIA_TYPE.fullmatch(kind) else ""

    def _address(self, written: str) -> str:
        """Return an address without secrets: as it is written, or decoded where the encoding hid one."""
        shown = found = self.redact(written)
        for _ in range(_MOST_ENCODED):
            plain = unquote(found)
            if plain == found:
                return shown
            found = self.redact(plain)
            if found != plain:
                shown = found
        return MASK

    def _plain(self, text: str, *, retryable: bool = False, remedy: str | None = None) -> ProviderError:
        return ProviderError(text, owner=self.owner, remedy=remedy, retryable=retryable)

    def _timeout(self, text: str, told: Mapping[str, object]) -> ProviderError:
        return ProviderTimeoutError(text, owner=self.owner, retryable=True, request_id=_text(told.get("request_id")))

    def _response(self, text: str, told: Mapping[str, object], *, retryable: bool = True) -> ProviderError:
        return ProviderResponseError(
            text, owner=self.owner, retryable=retryable, request_id=_text(told.get("request_id"))
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _code_in(body: bytes) -> str:
    payload = json_of(body) if len(body) <= 65536 else None
    facts = payload.get("error") if isinstance(payload, Mapping) else None
    return _status_of(facts)[1] if isinstance(facts, Mapping) else ""


def _status_of(facts: Mapping[object, object]) -> tuple[int | None, str]:
    """Return the status that an error's `code`, `status` or `type` stands for, and its code as text."""
    words = [facts.get(key) for key in ("code", "status", "type")]
    numbers = [int(w) for w in words if isinstance(w, int | str) and str(w).isascii() and str(w).isdecimal()]
    names = [w for w in words if isinstance(w, str)]
    code = next((name for name in names if name in _NO_RETRY_CODES), names[0] if names else "")
    status = next((n for n in numbers if 400 <= n <= 599), None)
    return status or next((_STATUS_OF[name] for name in names if name in _STATUS_OF), None), code
