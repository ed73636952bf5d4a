"""Is a tool's JSON Schema sound? Asked once, when the tool is registered, so that no call finds out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from atlas_core.errors import ToolDefinitionError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Resource, Specification
    from referencing._core import Resolver

__all__ = ["build_validator", "plain_copy"]


def plain_copy(parameters: object, tool: str, owner: str) -> dict[str, Any]:
    """Return a schema as plain JSON values that nobody else holds.

    Raises:
        ToolDefinitionError: It is no JSON, or describes something other than an object.
    """
    if parameters is True:
        return {}
    try:
        copy = json.loads(json.dumps(parameters, allow_nan=False, default=_mapping))
    except (TypeError, ValueError, RecursionError) as exc:
        raise _faulty(tool, owner, f"is no JSON: {exc}") from exc
    if not isinstance(copy, dict):
        raise _faulty(tool, owner, f"is {json.dumps(copy)[:40]}, expected a JSON object")
    kind = copy.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise _faulty(tool, owner, f"has the type {kind!r}, but arguments are always an object")
    return copy


def _mapping(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _faulty(tool: str, owner: str, problem: str) -> ToolDefinitionError:
    return ToolDefinitionError(
        f"the schema of tool {tool!r} {problem}"[:600],
        tool=tool,
        owner=owner or None,
        remedy="correct the schema; until then the tool can't be used",
    )


def build_validator(schema: dict[str, Any], tool: str, owner: str) -> tuple[Validator, tuple[str, ...]]:
    """Build a validator for a sound schema; nothing is ever fetched.

    `format` is not asserted, as Draft 2020-12 has it by default: it tells the model what is wanted, and typed
    functions check it when their values are built. A `pattern` that is no regular expression to Python (schemas speak
    JavaScript's dialect) can't be asserted either; it is taken out of `schema`, and noted.

    Args:
        schema: Plain JSON values that the validator may keep and change.
        tool: The tool's name, for errors.
        owner: Who supplies it, for errors.
    Returns:
        The validator, and what it leaves unchecked.
    Raises:
        ToolDefinitionError: The schema breaks its draft, or refers to what is not in it.
    """
    import jsonschema
    import referencing.exceptions
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # the drafts' own schemas
    from referencing.jsonschema import specification_with

    cls = _validator_class(schema, tool, owner)
    try:
        cls.check_schema(schema, format_checker=None)  # Python is no judge of another dialect's patterns
    except jsonschema.SchemaError as exc:
        raise _faulty(tool, owner, f"is not valid at {exc.json_path}: {exc.message[:300]}") from exc
    except RecursionError as exc:
        raise _faulty(tool, owner, "is nested too deeply") from exc
    except referencing.exceptions.Unresolvable as exc:  # pragma: no cover  # the drafts' own schemas are all there
        raise _faulty(tool, owner, f"needs a metaschema that is not there: {exc}") from exc
    specification = specification_with(cls.META_SCHEMA["$schema"])
    resource = specification.create_resource(schema)
    walk = _Walk(tool, owner, specification)
    walk.run(resource, REGISTRY.with_resource("", resource).resolver_with_root(resource))
    validator: Validator = cls(schema, registry=REGISTRY)
    _try_out(validator, tool, owner)
    return validator, tuple(walk.unchecked)


def _validator_class(schema: Mapping[str, Any], tool: str, owner: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    dialect = schema.get("$schema")
    if dialect is None:
        return Draft202012Validator
    stand_in: Any = _Unknown
    cls = validator_for({"$schema": dialect}, default=stand_in) if isinstance(dialect, str) else stand_in
    if cls is _Unknown:
        raise _faulty(tool, owner, f"has the $schema {dialect!r}, which is none of the drafts 3 to 2020-12")
    return cls


class _Unknown:
    """Stands for a draft that jsonschema does not know."""


class _Walk:
    """Visits each subschema that validation could reach, and looks up its references."""

    def __init__(self, tool: str, owner: str, specification: Specification[Any]) -> None:
        self._specification = specification
        self.unchecked: list[str] = []
        self._seen: set[int] = set()
        self._todo: list[tuple[Resource[Any], Resolver[Any]]] = []
        self._tool = tool
        self._owner = owner

    def run(self, resource: Resource[Any], resolver: Resolver[Any]) -> None:
        self._todo.append((resource, resolver))
        while self._todo:  # no recursion: chains of references may be longer than Python's stack
            self._visit(*self._todo.pop())

    def _visit(self, resource: Resource[Any], resolver: Resolver[Any]) -> None:
        schema = resource.contents
        if id(schema) in self._seen or not isinstance(schema, dict):
            return
        self._seen.add(id(schema))
        self._patterns(schema)
        self._forbidden(schema)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(schema.get(keyword), str):
                self._follow(keyword, schema[keyword], resolver)
        self._todo.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())

    def _follow(self, keyword: str, reference: str, resolver: Resolver[Any]) -> None:
        import referencing.exceptions

        try:
            found = resolver.lookup(reference)
        except referencing.exceptions.Unresolvable as exc:
            remote = "://" in reference.partition("#")[0]
            why = "outside itself, and nothing is fetched" if remote else "which is not in it"
            raise _faulty(self._tool, self._owner, f"has a {keyword} to {reference[:200]!r}, {why}") from exc
        except Exception as exc:  # a pointer through a number, say, fails in as many ways as there are types
            raise _faulty(self._tool, self._owner, f"has a {keyword} to {reference[:200]!r}: {exc!r}") from exc
        if not isinstance(found.contents, (dict, bool)):
            raise _faulty(self._tool, self._owner, f"has a {keyword} to {reference[:200]!r}, which is no schema")
        self._todo.append((self._specification.create_resource(found.contents), found.resolver))

    @staticmethod
    def _forbidden(schema: dict[str, Any]) -> None:
        """Write a property of `false` as `{"not": {}}`: for the former, jsonschema 4.26 does not tell the path."""
        properties = schema.get("properties", {})
        for name, inner in properties.items():
            if inner is False:
                properties[name] = {"not": {}}

    def _patterns(self, schema: dict[str, Any]) -> None:
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not _compiles(pattern):
            del schema["pattern"]
            self.unchecked.append(f"pattern {pattern[:100]!r}")
        names = schema.get("patternProperties")
        for name in names if isinstance(names, dict) else ():
            if not _compiles(name):
                raise _faulty(self._tool, self._owner, f"has the pattern {name[:100]!r}, which Python can't read")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _try_out(validator: Validator, tool: str, owner: str) -> None:
    """Refuse a schema that refers to itself without end for whatever value, such as `{"$ref": "#"}`."""
    try:
        validator.is_valid({})
    except RecursionError as exc:
        raise _faulty(tool, owner, "refers to itself without end") from exc
