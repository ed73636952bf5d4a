"""Where requests go, what they carry, and how errors speak of it."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit, urlunsplit

from atlas_core._version import __version__
from atlas_core.errors import SettingsError
from atlas_core.http import _backend
from atlas_core.http.failures import Server
from atlas_core.http.proxies import proxy_for
from atlas_core.http.redact import Redactor, shown_url, url_secrets
from atlas_core.http.secret import RawHeaders, Secret, revealed

if TYPE_CHECKING:
    import httpx

__all__ = ["Call", "Target"]

# Names whose values are no secrets; whatever else is sent stays out of errors.
_HARMLESS = re.compile(r"accept.*|cache-control|content-type|user-agent|anthropic-(version|beta)|openai-beta|x-title")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROXY_KINDS = ("http", "https", "socks5", "socks5h")
_MOST_URLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, as the client's user describes it."""

    method: str
    path: str
    body: bytes = field(default=b"", repr=False)
    params: Mapping[str, str] | None = field(default=None, repr=False)
    headers: Mapping[str, str | Secret] | None = field(default=None, repr=False)
    accept: str = "application/json"


class Target:
    """A server's address with the headers and the proxy that belong to it.

    Args:
        base_url, headers, proxy: As for `HttpClient`.
        owner: Who owns the connection, or None.
    Raises:
        SettingsError: One of them can't be used; the text quotes no value.
    """

    def __init__(
        self, base_url: str | Secret, headers: Mapping[str, str | Secret], proxy: str | Secret | None, owner: str | None
    ) -> None:
        self._base = Secret(revealed(base_url).strip())
        self._hidden = isinstance(base_url, Secret)
        parts = _checked(self._base.reveal(), "base_url", ("http", "https"), owner, hidden=self._hidden)
        self._scheme = parts.scheme
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self.shown = shown_url(self._base.reveal(), whole=self._hidden)
        self._owner = owner
        self._fixed = {name.lower(): Secret(value) for name, value in checked_headers(headers, owner).items()}
        if parts.username and "authorization" not in self._fixed:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._fixed["authorization"] = Secret(f"Basic {base64.b64encode(login.encode()).decode()}")
        self._proxy = None if proxy is None else Secret(revealed(proxy).strip())
        if self._proxy is not None and self._proxy.reveal():
            _checked(self._proxy.reveal(), "proxy", _PROXY_KINDS, owner)
        self._lock = threading.Lock()
        self._prepared = False
        self._urls: dict[str, httpx.URL] = {}
        self._sent: dict[str, RawHeaders] = {}
        self.server = self._server(None)

    def __repr__(self) -> str:
        return f"Target({getattr(self, 'shown', 'not made')!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Target holds keys and is not pickled")

    def _server(self, proxy: str | None) -> Server:
        secrets = [*url_secrets(self._base.reveal(), whole=self._hidden), *(url_secrets(proxy) if proxy else ())]
        secrets += [value.reveal() for name, value in self._fixed.items() if not _HARMLESS.fullmatch(name)]
        shown = shown_url(proxy) if proxy else None
        return Server(name=self.shown, owner=self._owner, proxy=shown, redact=Redactor(secrets))

    def prepare(self) -> None:
        """Look for the libraries and for the environment's proxy; does nothing the second time.

        Raises:
            ServiceNotReadyError: The extra `http` is not installed.
            SettingsError: The environment names a proxy that can't be used.
        """
        if self._prepared:
            return
        with self._lock:
            _backend.check_installed()
            proxy = self._proxy.reveal() if self._proxy is not None else None
            if proxy is None:
                proxy = proxy_for(self._scheme, self._host, self._port)
                if proxy:
                    _checked(proxy, "the proxy that the environment names", _PROXY_KINDS, self._owner)
            self._proxy = Secret(proxy or "")
            self.server = self._server(proxy or None)
            self._prepared = True

    def connect(self) -> _backend.Connection:
        """Return a new connection to the server."""
        proxy = self._proxy.reveal() if self._proxy is not None else ""
        return _backend.connect(self._scheme, proxy or None)

    def url(self, call: Call) -> httpx.URL:
        """Return a request's address."""
        key = call.path if not call.params else f"{call.path}?{urlencode(call.params)}"
        known = self._urls.get(key)
        if known is None:
            known = _backend.full_url(self._joined(call.path, call.params))
            if len(self._urls) < _MOST_URLS:
                self._urls[key] = known
        return known

    def _joined(self, path: str, params: Mapping[str, str] | None) -> str:
        base = urlsplit(self._base.reveal())
        if "://" in path or path.startswith("//"):
            raise ValueError(f"path is {shown_url(path)!r}, expected one below base_url, without a host")
        more = urlsplit(path)
        query = "&".join(part for part in (base.query, more.query, urlencode(params or {})) if part)
        host = base.netloc.rpartition("@")[2]
        below = more.path.lstrip("/")
        joined = f"{base.path.rstrip('/')}/{below}" if below else base.path or "/"
        return urlunsplit((base.scheme, host, quote(joined, safe="/%:@!$&'()*+,;=~"), query, ""))

    def headers(self, call: Call) -> RawHeaders:
        """Return a request's headers."""
        known = self._sent.get(call.accept) if not call.headers else None
        if known is None:
            own = {name.lower(): value for name, value in checked_headers(call.headers or {}, self._owner).items()}
            known = RawHeaders(self._all_headers(call, own))
            if not call.headers:
                self._sent[call.accept] = known
        return known

    def _all_headers(self, call: Call, own: Mapping[str, str]) -> dict[str, str]:
        sent = {
            "host": self.url(call).netloc.decode("ascii"),
            "accept": call.accept,
            "accept-encoding": _backend.accepted_encodings(),
            "user-agent": f"atlas-kernel/{__version__}",
        }
        if call.method == "POST":
            sent["content-type"] = "application/json"
        sent |= {name: value.reveal() for name, value in self._fixed.items()}
        sent |= own
        return sent


def checked_headers(headers: Mapping[str, str | Secret], owner: str | None) -> dict[str, str]:
    """Return headers as plain texts, without spaces around their values.

    Raises:
        SettingsError: A name or value can't be sent; the text names the header and shows no value.
    """
    found: dict[str, str] = {}
    for name, secret in headers.items():
        value = revealed(secret).strip()
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{name!r} is no name of an HTTP header", owner=owner)
        bad = next((c for c in value if (ord(c) < 32 and c != "\t") or ord(c) == 127), None)
        if bad is not None:
            raise SettingsError(
                f"the value of header {name!r} holds the character {bad!r}",
                owner=owner,
                remedy="look for a line break in the key",
            )
        found[name] = value
    return found


def _checked(url: str, what: str, schemes: tuple[str, ...], owner: str | None, *, hidden: bool = False) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        kinds = " or ".join(f"{scheme}://" for scheme in schemes)
        raise SettingsError(f"{what} is {shown_url(url, whole=hidden)!r}, expected {kinds} and a host", owner=owner)
    return parts
