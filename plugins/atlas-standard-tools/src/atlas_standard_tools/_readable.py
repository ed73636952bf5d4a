"""A page as text for a model: the title, the words, the links."""

from __future__ import annotations

import re
from email.message import Message
from urllib.parse import urljoin, urlsplit

from atlas_standard_tools._text import is_text_encoding

__all__ = ["describe", "media_type", "readable"]

_DROPPED = ["script", "style", "noscript", "template", "svg", "iframe", "object", "title", "meta", "link", "base"]
_DECLARATION = re.compile(rb"^\s*<\?xml[^>]*\?>")
_TEXTUAL = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|yaml|toml|x-ndjson)")


def media_type(header: str) -> tuple[str, str | None]:
    """Return the type and the charset of a Content-Type header; "" if there is none."""
    message = Message()
    message["Content-Type"] = header
    kind = message.get_content_type() if header else ""
    return kind, message.get_content_charset()


def readable(body: bytes, *, kind: str, charset: str | None, url: str, cut: bool = False) -> str | None:
    """Return the text of a page, or None if it is no text.

    Args:
        body: The bytes, unpacked.
        kind: Its media type, lower case; "" if the server did not say.
        charset: What the server said of its encoding.
        url: Its address, which links are completed with.
        cut: Whether the body was cut, perhaps within a character.
    """
    html = kind in {"text/html", "application/xhtml+xml"} or (not kind and body.lstrip()[:1] == b"<")
    if html and b"<" in body:
        return _html(body, charset, url)
    if (kind and not _TEXTUAL.fullmatch(kind)) or b"\0" in body[:4096]:
        return None
    return _decoded(body, charset, cut=cut)


def describe(kind: str, size: int) -> str:
    """Say what is known of a page that is no text."""
    return f"[{kind or 'unknown type'}, {size} bytes: no text]"


def _decoded(body: bytes, charset: str | None, *, cut: bool) -> str:
    for name in (charset, "utf-8-sig"):
        if name and is_text_encoding(name):
            try:
                return body.decode(name)
            except UnicodeDecodeError as exc:
                if cut and exc.start >= len(body) - 4:
                    return body.decode(name, errors="ignore")
    return body.decode("cp1252", errors="replace")


def _html(body: bytes, charset: str | None, url: str) -> str:
    from bs4 import BeautifulSoup

    encoding = charset if charset and is_text_encoding(charset) else None
    body = _DECLARATION.sub(b"", body)  # bs4 warns of it, taking XHTML for XML
    soup = BeautifulSoup(body, "html.parser", from_encoding=encoding)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup(_DROPPED):
        element.decompose()
    for link in soup.find_all("a", href=True):
        _complete(link, url)
    text = _markdown(soup)
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return f"# {title}\n\n{text}" if title else text


def _complete(link: object, url: str) -> None:
    from bs4 import Tag

    if not isinstance(link, Tag):
        return
    try:
        target = urljoin(url, str(link["href"]))
        scheme = urlsplit(target).scheme
    except ValueError:
        scheme, target = "", ""
    if scheme in {"http", "https", "mailto"}:
        link["href"] = target
    else:
        del link["href"]


def _markdown(soup: object) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    if not isinstance(soup, BeautifulSoup):
        raise TypeError
    try:
        return str(MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(soup))
    except RecursionError:
        # markdownify calls itself once per level of nesting, bs4's own text does not.
        return soup.get_text("\n", strip=True)
