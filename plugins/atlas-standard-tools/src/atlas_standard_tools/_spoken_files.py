"""Read requests to show, list or write files or to load a page, where path or address is beyond doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlas_standard_tools._question import unframe

__all__ = ["read_address", "read_listing", "read_reading", "read_writing"]

_QUOTED = r"\"[^\"]+\"|'[^']+'|`[^`]+`"
_ENDINGS = "|".join(
    "txt md rst csv tsv json jsonl toml yaml yml ini cfg conf log py js ts html htm css xml sql sh c h cpp java go rs "
    "tex".split()
)
# A bare name is a file only with an ending that no web address has; others must be called a file, or be quoted.
_SURE = rf"(?:{_QUOTED}|(?:[\w.-]+/)*[\w-][\w.-]*\.(?:{_ENDINGS}))"
_CALLED = rf"file (?:{_QUOTED}|[\w./-]+)"
_FILE = rf"(?:the )?(?P<path>{_CALLED}|{_SURE})"
_FOLDER = rf"(?P<path>{_QUOTED}|(?!(?:this|the|my|here|that)\b)[\w.-]+(?:/[\w.-]+)*/?)"
_HERE = r"(?: (?:here|in (?:this|the current|the working) (?:folder|directory)))?"

_READING = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:read|show(?: me)?|open|print|display|cat)(?: the contents? of)? {_FILE}",
        rf"what(?:'s| is)(?: written)? (?:in|inside|the contents? of) {_FILE}",
        rf"what does {_FILE} (?:say|contain)",
    )
]
_LIST = r"(?:list|show(?: me)?)(?: all)?(?: the)?"
_LISTING = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_LIST} (?:files|folder|directory|files and folders){_HERE}",
        rf"(?:what|which) files are (?:there{_HERE}|here|in (?:this|the current|the working) (?:folder|directory))",
        rf"{_LIST} (?:files|contents?|files and folders) (?:in|of)(?: the)?(?: folder| directory)? {_FOLDER}",
        rf"(?:what|which) files are (?:there )?in(?: the)?(?: folder| directory)? {_FOLDER}",
        rf"list(?: the)? (?:folder|directory) {_FOLDER}",
        r"ls",
    )
]
_WRITING = re.compile(rf"(?:write|save|put) (?P<content>'[^']*'|\"[^\"]*\") (?:to|into|in|as) {_FILE}", re.IGNORECASE)


def _bare(path: str) -> str:
    path = re.sub(r"^file ", "", path, flags=re.IGNORECASE)
    return path[1:-1] if path[:1] in {"'", '"', "`"} else path


def _match(forms: list[re.Pattern[str]], question: str) -> re.Match[str] | None:
    text = unframe(question)
    return next((m for form in forms if len(text) <= 300 and (m := form.fullmatch(text))), None)


def read_reading(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `read_file`, or None."""
    match = _match(_READING, question)
    return {"path": _bare(match.group("path"))} if match else None


def read_listing(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `list_directory`, or None."""
    match = _match(_LISTING, question)
    if match is None:
        return None
    path = match.groupdict().get("path")
    return {"path": _bare(path)} if path else {}


def read_writing(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `write_file`, or None."""
    match = _match([_WRITING], question)
    return {"path": _bare(match.group("path")), "content": match.group("content")[1:-1]} if match else None


_FETCHING = re.compile(
    r"(?:fetch|get|open|load|download|read|show(?: me)?|visit)(?: the)?"
    r"(?: page| website| site| url| contents? of| text of)*(?: at| from)? (?P<url>https?://[^\s<>\"']+)",
    re.IGNORECASE,
)


def read_address(question: str) -> Mapping[str, object] | None:
    """Return the arguments of `fetch_url`, or None."""
    match = _FETCHING.fullmatch(" ".join(question.split()).rstrip("?!. "))
    return {"url": match.group("url")} if match else None
