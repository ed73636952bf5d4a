"""Content as the Messages API takes it: each part becomes one encoded block. Pure functions.

Source of all forms: platform.claude.com/docs/en/api/messages/create, API version 2026-10-21, read November 2026.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from urllib.parse import unquote_to_bytes

from atlas_core import ChatMessage, Data, File, Image, Opaque, Part, ProviderError, Text, ToolCall, wire_names

__all__ = ["PROVIDER", "assistant_blocks", "encode", "tool_result", "user_blocks"]

PROVIDER = "anthropic"
"""The `provider` of the opaque parts that this plugin makes and takes back."""

_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})
_INVALID = "INVALID_JSON"
"""Key for arguments that are no JSON object, since `input` must be one. Source: the vendor's page "Fine-grained tool
streaming", section "Handling invalid JSON in tool responses", read November 2026."""


def encode(value: object) -> bytes:
    """Return compact JSON. Half a surrogate pair, which UTF-8 can't hold, becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def user_blocks(message: ChatMessage) -> list[bytes]:
    """Return the blocks of a user's message; blank text is left out, which the API refuses.

    Raises:
        ProviderError: A part can't be sent.
    """
    return _content_blocks(message)


def tool_result(message: ChatMessage) -> bytes:
    """Return the block that answers a call.

    Raises:
        ProviderError: A part can't be sent.
    """
    content: bytes | None = None
    if isinstance(message.content, str):
        content = encode(message.content) if message.content.strip() else None
    elif blocks := _content_blocks(message):
        content = b"[" + b",".join(blocks) + b"]"
    pieces = [b'{"type":"tool_result","tool_use_id":', encode(_wire_id(message.tool_call_id or ""))]
    if content is not None:
        pieces += [b',"content":', content]
    if message.is_error:
        pieces.append(b',"is_error":true')
    return b"".join([*pieces, b"}"])


def assistant_blocks(message: ChatMessage, wire_name: Callable[[str], str]) -> list[bytes]:
    """Return the blocks of an assistant's message, in the order in which the model wrote them.

    Args:
        message: The message. Opaque parts of this provider are sent as they came; those of others are left out.
        wire_name: Returns the name on the wire of a tool.
    Raises:
        ProviderError: A part can't be sent.
    """
    blocks: list[bytes] = []
    placed: set[int] = set()
    for part in _parts(message):
        if not isinstance(part, Opaque) or part.provider != PROVIDER:
            blocks += _part_blocks(part, message.role)
            continue
        payload = _object(part)
        if payload.get("type") == "tool_use":
            index = payload.get("index")
            if isinstance(index, int) and 0 <= index < len(message.tool_calls) and index not in placed:
                placed.add(index)
                extras = {k: v for k, v in payload.items() if k not in {"type", "index"}}
                blocks.append(_tool_use(message.tool_calls[index], wire_name, extras))
        elif payload.get("type") == "citations":
            if blocks and blocks[-1].startswith(b'{"type":"text"'):
                blocks[-1] = blocks[-1][:-1] + b',"citations":' + encode(payload.get("citations")) + b"}"
        else:
            blocks.append(_utf8(part.payload_json))
    blocks += [_tool_use(call, wire_name, {}) for n, call in enumerate(message.tool_calls) if n not in placed]
    return blocks


def _tool_use(call: ToolCall, wire_name: Callable[[str], str], extras: dict[str, object]) -> bytes:
    head = encode({"type": "tool_use", "id": _wire_id(call.id), "name": wire_name(call.name), **extras})
    return head[:-1] + b',"input":' + _input(call.arguments_json) + b"}"


def _input(arguments_json: str) -> bytes:
    text = arguments_json.strip()
    if text in {"", "null"}:
        return b"{}"
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    # Sent as the model wrote it: what it sees of its own past stays the same to the byte.
    return _utf8(text) if isinstance(value, dict) else encode({_INVALID: arguments_json})


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _wire_id(call_id: str) -> str:
    """Return a call's id in the characters that the API takes; ids of other servers may have any."""
    return wire_names([call_id])[call_id]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# Parts ---------------------------------------------------------------------------------------------------------


def _parts(message: ChatMessage) -> Iterable[Part]:
    return (Text(message.content),) if isinstance(message.content, str) else message.content


def _content_blocks(message: ChatMessage) -> list[bytes]:
    return [block for part in _parts(message) for block in _part_blocks(part, message.role)]


def _part_blocks(part: Part, role: str) -> list[bytes]:
    """Return a part's block, or none if there is nothing to send."""
    match part:
        case Text(text):
            return [encode({"type": "text", "text": text})] if text.strip() else []
        case Data(value_json):
            return [encode({"type": "text", "text": value_json})] if value_json.strip() else []
        case Image() if role != "assistant":
            return [encode({"type": "image", "source": _image_source(part)})]
        case File() if role != "assistant":
            return [encode(_document(part))]
        case Opaque(provider="anthropic"):
            _object(part)
            return [_utf8(part.payload_json)]
        case Opaque(provider=provider) if provider:
            return []  # thoughts of another model, which nobody but its provider can read
    raise _cant_send(_kind_of(part), role, "the Messages API takes text, images, PDF and text files, from a user")


def _object(part: Opaque) -> dict[str, object]:
    try:
        payload = part.payload
    except ValueError:
        payload = None
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        raise _cant_send("an opaque part without a `type`", "any", "carry it on as it came from the provider")
    return payload


def _kind_of(part: Part) -> str:
    if isinstance(part, Opaque):
        payload = part.payload
        kind = payload.get("type") if isinstance(payload, dict) else None
        return f"a part of unknown type {kind!r}"
    return f"a part {type(part).__name__}"


def _cant_send(what: str, role: str, remedy: str) -> ProviderError:
    return ProviderError(f"{what} in a message of role {role!r} can't be sent", remedy=remedy)


def _image_source(part: Image) -> dict[str, object]:
    if part.url is not None and not part.url.startswith("data:"):
        return {"type": "url", "url": _web_address(part.url)}
    media_type, data = _bytes_of(part)
    if media_type not in _IMAGES:
        raise ProviderError(
            f"an image of type {media_type!r} can't be sent",
            remedy=f"convert it to one of {', '.join(sorted(_IMAGES))}",
        )
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}


def _document(part: File) -> dict[str, object]:
    title: dict[str, object] = {"title": part.name} if part.name else {}
    if part.url is not None and not part.url.startswith("data:"):
        if part.media_type not in {"application/pdf", "application/octet-stream"}:
            raise ProviderError(
                f"a file of type {part.media_type!r} can't be sent as an address", remedy="give its bytes instead"
            )
        return {"type": "document", "source": {"type": "url", "url": _web_address(part.url)}, **title}
    media_type, data = _bytes_of(part)
    if media_type == "application/pdf":
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
    elif media_type.startswith("text/") or media_type in _TEXTS:
        source = {"type": "text", "media_type": "text/plain", "data": _text_of(data, part)}
    else:
        raise ProviderError(
            f"a file of type {media_type!r} can't be sent", remedy="send PDF or text, or an Image for an image"
        )
    return {"type": "document", "source": source, **title}


def _web_address(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        raise ProviderError(
            f"the address {url[:80]!r} can't be sent", remedy="give an address of http(s) or data, or the bytes"
        )
    return url


def _bytes_of(part: Image | File) -> tuple[str, bytes]:
    """Return media type and bytes, also of a `data:` address (RFC 2397)."""
    if part.data is not None:
        return part.media_type.partition(";")[0].strip().lower(), part.data
    head, _, body = (part.url or "").partition(",")
    kind, *flags = head.removeprefix("data:").split(";")
    raw = unquote_to_bytes(body)
    try:
        data = base64.b64decode(raw, validate=True) if "base64" in flags else raw
    except ValueError as exc:
        raise ProviderError(f"the address {head[:80]!r} holds no base64", remedy="give the bytes instead") from exc
    return kind.strip().lower() or "text/plain", data


def _text_of(data: bytes, part: File) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ProviderError(
            f"the file {part.name or 'without a name'!r} of type {part.media_type!r} is not UTF-8",
            remedy="convert it, or send a PDF",
        ) from exc
