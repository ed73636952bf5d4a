from collections.abc import Iterator

import pytest

from atlas_core.testing import LoopbackServer

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


@pytest.fixture(autouse=True)
def no_proxy_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own proxy out of the tests."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server whose script the test writes with `then`."""
    with LoopbackServer() as running:
        yield running
