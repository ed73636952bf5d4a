"""A tool's parameters as the rules see them: name, kind, members, whether required."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from atlas_core import ToolSchema
from atlas_offline.words import name_words

__all__ = ["Parameter", "parameters"]

_FORMATS = {
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "date": "date",
    "date-time": "datetime",
    "path": "path",
    "file-path": "path",
    "directory-path": "path",
}
_BY_NAME = (
    ("email", {"email", "mail"}),
    ("url", {"url", "uri", "link", "href"}),
    ("path", {"path", "file", "filename", "filepath", "directory", "dir", "folder"}),
    ("date", {"date"}),
)
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter.

    Attributes:
        name: Its name.
        kind: text, number, integer, boolean, array, object, or a form of text: email, url, path, date, datetime,
            pattern.
        required: Whether a call must have it.
        enum: Its members (for an array, those of its items), or empty.
        item_kind: For an array, the kind of its items.
        pattern: For the kind `pattern`, the regular expression.
        description: From the schema.
    """

    name: str
    kind: str
    required: bool = False
    enum: tuple[object, ...] = ()
    item_kind: str = ""
    pattern: str = ""
    description: str = ""

    def convert(self, text: str) -> object:
        """Return the text as a value of this kind, or None if it is none."""
        if self.kind == "array":
            return None
        if self.enum:
            return next((m for m in self.enum if str(m).casefold() == text.casefold()), None)
        return _convert(self.kind, text, self.pattern)

    def convert_item(self, text: str) -> object:
        """Return the text as an item of this array, or None if it is none."""
        return _convert(self.item_kind, text, "")


def _convert(kind: str, text: str, pattern: str) -> object:
    match kind:
        case "integer" | "number":
            return _number(text, whole=kind == "integer")
        case "boolean":
            low = text.lower()
            return True if low in _TRUE else False if low in _FALSE else None
        case "array" | "object":
            return None
        case "email":
            return text if re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text) else None
        case "url":
            return text if re.fullmatch(r"[a-z][a-z0-9+.-]*://\S+", text, re.IGNORECASE) else None
        case "pattern":
            try:
                return text if len(text) <= 200 and re.search(pattern, text) else None
            except re.error:
                return None
    return text or None


def _number(text: str, *, whole: bool) -> int | float | None:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 400 else None
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    if whole:
        return int(value) if value.is_integer() else None
    return value if abs(value) < float("inf") else None


def parameters(tool: ToolSchema) -> tuple[Parameter, ...]:
    """Read the parameters of a tool in the order of its schema; what can't be read is left out."""
    schema = tool.parameters
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    listed = schema.get("required")
    required = set(listed) if isinstance(listed, (list, tuple)) else set()
    return tuple(_parameter(str(name), spec, schema, required=name in required) for name, spec in properties.items())


def _parameter(name: str, spec: object, root: Mapping[str, object], *, required: bool) -> Parameter:
    spec = _plain(spec, root)
    described = spec.get("description")
    description = described if isinstance(described, str) else ""
    enum = _enum(spec)
    if _type(spec) == "array":
        items = _plain(spec.get("items"), root)
        return Parameter(
            name=name,
            kind="array",
            required=required,
            enum=_enum(items),
            item_kind=_kind("", items),
            description=description,
        )
    pattern = spec.get("pattern")
    kind = _kind(name, spec)
    return Parameter(
        name=name,
        kind=kind,
        required=required,
        enum=enum,
        pattern=pattern if kind == "pattern" and isinstance(pattern, str) else "",
        description=description,
    )


def _plain(spec: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """Follow local references and drop `null` from unions: an optional X is an X here."""
    for _ in range(10):  # references may form a ring
        if not isinstance(spec, Mapping):
            return {}
        ref = spec.get("$ref")
        if isinstance(ref, str):
            spec = _resolve(ref, root)
            continue
        options = spec.get("anyOf") or spec.get("oneOf")
        if not isinstance(options, (list, tuple)):
            return spec
        some = [o for o in options if not (isinstance(o, Mapping) and o.get("type") == "null")]
        if len(some) != 1:
            return {k: v for k, v in spec.items() if k not in ("anyOf", "oneOf")} | {"type": _common(some)}
        outer = {k: v for k, v in spec.items() if k not in ("anyOf", "oneOf")}
        spec = {**outer, **some[0]} if isinstance(some[0], Mapping) else {}
    return {}


def _common(options: list[object]) -> str:
    types = {o.get("type") for o in options if isinstance(o, Mapping)}
    return "number" if types <= {"integer", "number"} and types else "object"


def _resolve(ref: str, root: Mapping[str, object]) -> object:
    if not ref.startswith("#/"):
        return {}
    node: object = root
    for part in ref[2:].split("/"):
        if not isinstance(node, Mapping):
            return {}
        node = node.get(part.replace("~1", "/").replace("~0", "~"))
    return node


def _enum(spec: Mapping[str, object]) -> tuple[object, ...]:
    members = spec.get("enum")
    if isinstance(members, (list, tuple)):
        return tuple(m for m in members if isinstance(m, (str, int, float)) and not isinstance(m, bool))
    return (spec["const"],) if isinstance(spec.get("const"), (str, int, float)) else ()


def _type(spec: Mapping[str, object]) -> str:
    kind = spec.get("type")
    if isinstance(kind, (list, tuple)):
        kind = next((k for k in kind if k != "null"), None)
    return kind if isinstance(kind, str) else ""


def _kind(name: str, spec: Mapping[str, object]) -> str:
    kind = _type(spec)
    if kind in ("integer", "number", "boolean", "array", "object"):
        return kind
    if kind not in ("string", ""):
        return "object"
    if _enum(spec):
        return "text"
    form = spec.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form]
    if isinstance(spec.get("pattern"), str):
        return "pattern"
    parts = set(name_words(name))
    return next((kind for kind, names in _BY_NAME if parts & names), "text")
