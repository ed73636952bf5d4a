import pytest

from atlas_core.http.proxies import bypasses, proxy_for


@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "direct"),
    [
        ("", "example.com", 443, False),
        ("*", "example.com", 443, True),
        ("other.org,*", "example.com", 443, True),
        ("example.com", "example.com", 443, True),
        ("EXAMPLE.com", "api.Example.COM", 443, True),
        ("example.com", "notexample.com", 443, False),
        (".example.com", "example.com", 443, True),
        (".example.com", "api.example.com", 443, True),
        ("*.example.com", "api.example.com", 443, True),
        ("example.com.", "example.com.", 443, True),
        ("a.org b.org, c.org", "b.org", 80, True),
        ("example.com:8080", "example.com", 8080, True),
        ("example.com:8080", "example.com", 443, False),
        ("https://example.com", "example.com", 443, True),
        ("localhost", "localhost", 11434, True),
        ("localhost", "127.0.0.1", 80, False),
        ("127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1:81", "127.0.0.1", 80, False),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("::1", "::1", 80, True),
        ("[::1]:80", "::1", 80, True),
        ("[::1]:81", "::1", 80, False),
        ("fe80::/10", "fe80::1%eth0", 80, True),
        ("0.0.0.1", "1", 80, False),
        (",, ,", "example.com", 80, False),
        (".", "example.com", 80, False),
    ],
)
def test_no_proxy_excepts_what_it_names(no_proxy: str, host: str, port: int, *, direct: bool) -> None:
    """Names with what is below them, addresses, networks, ports, and the star."""
    assert bypasses(no_proxy, host, port) is direct


@pytest.mark.parametrize(
    ("environment", "scheme", "proxy"),
    [
        ({}, "https", None),
        ({"https": "http://p:1"}, "https", "http://p:1"),
        ({"https": "http://p:1"}, "http", None),
        ({"all": "socks5://p:1"}, "http", "socks5://p:1"),
        ({"http": "p:1", "all": "q:1"}, "http", "http://p:1"),
        ({"http": "p:1", "no": "example.com"}, "http", None),
        ({"http": " "}, "http", None),
    ],
)
def test_the_environment_names_a_proxy_by_scheme(environment: dict[str, str], scheme: str, proxy: str | None) -> None:
    """The scheme's own variable goes before ALL_PROXY; an address without a scheme is one of HTTP."""
    assert proxy_for(scheme, "example.com", 443, environment) == proxy


def test_the_process_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left out, the variables of the process count, the lower-case name first."""
    monkeypatch.setenv("HTTPS_PROXY", "http://upper:1")
    monkeypatch.setenv("https_proxy", "http://lower:1")
    monkeypatch.setenv("NO_PROXY", "inside.org")
    assert proxy_for("https", "example.com", 443) == "http://lower:1"
    assert proxy_for("https", "inside.org", 443) is None
