import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from atlas_core.errors import (
    ProviderError,
    ProviderResponseError,
    ProviderTimeoutError,
    ServiceNotReadyError,
    SettingsError,
)
from atlas_core.http import HttpClient, RetryPolicy
from atlas_core.http._backend import _decodable, accepted_encodings, fault_of, faults
from atlas_core.http.failures import Fault, Server


def tree(*roots: type[Exception]) -> Iterator[type[Exception]]:
    """Yield classes and all that derive from them."""
    for root in roots:
        yield root
        yield from tree(*root.__subclasses__())


HTTPX = sorted(
    set(tree(httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError))
    | {v for v in vars(httpx).values() if isinstance(v, type) and issubclass(v, Exception)},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", [kind for kind in HTTPX if kind.__module__.startswith("httpx")])
def test_every_exception_of_httpx_has_its_place(kind: type[Exception]) -> None:
    """A new exception of the library fails here until someone decides what it stands for."""
    assert kind in faults()


@pytest.mark.parametrize(
    ("exc", "error", "retryable"),
    [
        (httpx.ConnectTimeout("x"), ProviderTimeoutError, True),
        (httpx.PoolTimeout("x"), ProviderTimeoutError, True),
        (httpx.ReadTimeout("x"), ProviderTimeoutError, True),
        (httpx.WriteTimeout("x"), ProviderTimeoutError, True),
        (httpx.ConnectError("x"), ProviderError, True),
        (httpx.ReadError("x"), ProviderError, True),
        (httpx.RemoteProtocolError("x"), ProviderError, True),
        (httpx.ProxyError("502 Bad"), ProviderError, True),
        (httpx.ProxyError("407 Login"), ProviderError, False),
        (httpx.DecodingError("x"), ProviderResponseError, False),
        (httpx.LocalProtocolError("x"), ProviderError, False),
        (httpx.StreamClosed(), ProviderError, False),
        (UnicodeError("label too long"), ProviderError, False),
    ],
)
def test_an_exception_becomes_a_typed_error(exc: Exception, error: type[ProviderError], *, retryable: bool) -> None:
    """Each kind of fault is one error, with a say on whether to try again."""
    found = Server(name="http://h").fault_error(fault_of(exc), str(exc))
    assert (type(found), found.retryable) == (error, retryable)
    assert "http://h" in str(found) or fault_of(exc) is Fault.PROXY


def test_a_subclass_that_is_unknown_counts_as_what_it_derives_from() -> None:
    """A later version's finer exceptions are still understood."""
    assert fault_of(type("NewError", (httpx.ConnectTimeout,), {})("x")) is Fault.CONNECT_TIMEOUT


async def test_a_host_that_can_t_be_looked_up_is_an_error_of_the_provider() -> None:
    """Also where the library lets another one's exception through."""
    async with HttpClient(f"http://{'a' * 80}.example", retry=RetryPolicy(max_attempts=1)) as client:
        with pytest.raises((ProviderError, SettingsError), match=r"no connection|could not be sent|can't be read"):
            await client.post_json("x", b"")


@pytest.mark.parametrize("missing", ["httpx_sse", "stamina"])
async def test_without_the_extra_the_error_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel itself needs neither."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    client = HttpClient("http://127.0.0.1:1")
    with pytest.raises(ServiceNotReadyError, match=rf"HTTP needs {missing}.*pip install 'atlas-kernel\[http\]'"):
        await client.post_json("x", b"")


def test_importing_the_package_loads_no_library() -> None:
    """Settings and plugins may name it at no cost."""
    code = (
        "import sys, atlas_core.http as h; c = h.HttpClient('http://h', headers={'a': 'b'}); "
        "print(sorted({'httpx', 'httpx_sse', 'stamina', 'pydantic', 'dynaconf', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_can_be_unpacked_is_what_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brotli and Zstandard are offered where their libraries are installed, and not otherwise."""
    installed: set[str] = set()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in installed else None)
    for more, offer in ((set(), "gzip, deflate"), ({"brotlicffi", "zstandard"}, "gzip, deflate, br, zstd")):
        installed |= more
        accepted_encodings.cache_clear()
        _decodable.cache_clear()
        assert accepted_encodings() == offer
    monkeypatch.undo()
    accepted_encodings.cache_clear()
    _decodable.cache_clear()
