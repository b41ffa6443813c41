"""The numbers and lists of an instance, found by walking its JSON beside its JSON Schema; knows no problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schedgap.formulations.common.instance import Json

Path = tuple[str | int, ...]
"""Keys and positions that lead to a value in a JSON document."""


@dataclass(frozen=True)
class Field:
    """A number, a truth value or a choice in one instance."""

    path: Path  # where it is: ("jobs", 2, "gpus")
    # the same without positions and without keys that are ids: "jobs.gpus"; "jobs[]" for the items of a list of plain
    # numbers
    pattern: str
    kind: type  # int, float, bool, or str where it is one of `choices`
    # low, high: the schema's range, ends included unless `open_low`
    low: float = float("-inf")
    high: float = float("inf")
    open_low: bool = False  # `low` itself is not allowed
    choices: tuple[str, ...] = ()  # the allowed words


@dataclass(frozen=True)
class Group:
    """A list, or an object whose keys are ids, in one instance."""

    # path, pattern: as of a :class:`Field`
    path: Path
    pattern: str
    least: int  # how many entries it must have
    keyed: bool  # an object, not a list


def fields_of(schema: Mapping[str, Json], data: Json) -> list[Field]:
    """Every number, truth value and choice in `data`, in the order of the document."""
    return [node for node in _walk(schema, schema, data, (), "") if isinstance(node, Field)]


def groups_of(schema: Mapping[str, Json], data: Json) -> list[Group]:
    """Every object keyed by ids and every list in `data`, but those whose places have meanings of their own."""
    return [node for node in _walk(schema, schema, data, (), "") if isinstance(node, Group)]


def patterns_of(
    schema: Mapping[str, Json],
    ranges: dict[str, tuple[float, float]] | None = None,
    words: dict[str, tuple[str, ...]] | None = None,
) -> dict[str, str]:
    """All patterns that instances of this schema can have: "number", "choice", "list" or "map" by name.

    `ranges` receives the range that the schema gives each number, as far as it does; `words` those of a choice.
    """
    found: dict[str, str] = {}

    def look(node: Mapping[str, Any], pattern: str) -> None:
        for branch in _branches(schema, node):
            kind = branch.get("type")
            if kind in ("integer", "number"):
                found[pattern] = "number"
                low = branch.get("minimum", branch.get("exclusiveMinimum", -math.inf))
                high = branch.get("maximum", branch.get("exclusiveMaximum", math.inf))
                if ranges is not None:
                    before = ranges.get(pattern, (low, high))
                    ranges[pattern] = (min(low, before[0]), max(high, before[1]))
            elif kind == "boolean" or "enum" in branch:
                found[pattern] = "choice"
                if words is not None and len(branch.get("enum", ())) > 1:
                    words[pattern] = tuple(branch["enum"])
            elif kind == "array":
                found[pattern] = "list"
                for items in (*branch.get("prefixItems", ()), *([branch["items"]] if branch.get("items") else [])):
                    look(items, _of_items(schema, items, pattern))
            elif kind == "object":
                for name, below in branch.get("properties", {}).items():
                    look(below, f"{pattern}.{name}" if pattern else name)
                if isinstance(branch.get("additionalProperties"), Mapping):
                    found[pattern] = "map"
                    look(branch["additionalProperties"], pattern)

    look(schema, "")
    return {name: kind for name, kind in found.items() if name not in ("", "version")}


def value_at(data: Json, path: Path) -> Json:
    """What stands at `path`."""
    for key in path:
        data = data[key]
    return data


def put_at(data: Json, path: Path, value: Json) -> None:
    """Set what stands at `path`."""
    value_at(data, path[:-1])[path[-1]] = value


def _branches(root: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The plain schemas that `node` stands for: references followed, alternatives one by one."""
    if "$ref" in node:
        target: Any = root
        for part in str(node["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        yield from _branches(root, target)
        return
    several = node.get("anyOf") or node.get("oneOf") or node.get("allOf")
    if several:
        for one in several:
            yield from _branches(root, one)
        return
    yield node


def _of_items(root: Mapping[str, Any], items: Mapping[str, Any], pattern: str) -> str:
    """The pattern of a list's items: its own where they are objects, "jobs[]" where they are plain values."""
    return pattern if any(one.get("type") == "object" for one in _branches(root, items)) else f"{pattern}[]"


def _fits(branch: Mapping[str, Any], data: Any) -> bool:
    """Whether `data` can be meant by this alternative: its type, and for objects its keys and fixed words."""
    kind = branch.get("type")
    if isinstance(data, Mapping):
        if kind != "object":
            return False
        names = branch.get("properties", {})
        if branch.get("additionalProperties") is False and any(key not in names for key in data):
            return False
        words = ((data[name], below.get("const")) for name, below in names.items() if name in data)
        return all(fixed is None or word == fixed for word, fixed in words)
    if isinstance(data, bool):
        return kind == "boolean"
    if isinstance(data, int | float):
        return kind == "number" or (kind == "integer" and isinstance(data, int))
    if isinstance(data, list):
        return kind == "array"
    return kind == "string" or "enum" in branch


def _walk(
    root: Mapping[str, Any], node: Mapping[str, Any], data: Any, path: Path, pattern: str
) -> Iterator[Field | Group]:
    branch = next((one for one in _branches(root, node) if _fits(one, data)), None)
    if branch is None or pattern == "version":
        return
    if isinstance(data, Mapping):
        names = branch.get("properties", {})
        rest = branch.get("additionalProperties")
        if isinstance(rest, Mapping):
            yield Group(path, pattern, int(branch.get("minProperties", branch.get("minLength", 0))), keyed=True)
        for key, below in data.items():
            if key in names:
                yield from _walk(root, names[key], below, (*path, key), f"{pattern}.{key}" if pattern else key)
            elif isinstance(rest, Mapping):
                yield from _walk(root, rest, below, (*path, key), pattern)
    elif isinstance(data, list):
        fixed = branch.get("prefixItems", ())  # a pair, a triple: each place has a meaning of its own
        if not fixed:
            yield Group(path, pattern, int(branch.get("minItems", 0)), keyed=False)
        for position, below in enumerate(data):
            items = fixed[position] if position < len(fixed) else branch.get("items", {})
            yield from _walk(root, items, below, (*path, position), _of_items(root, items, pattern))
    elif isinstance(data, bool):
        yield Field(path, pattern, bool)
    elif isinstance(data, int | float):
        open_low = "exclusiveMinimum" in branch
        low = branch.get("exclusiveMinimum", branch.get("minimum", float("-inf")))
        high = branch.get("maximum", branch.get("exclusiveMaximum", float("inf")))
        kind = int if branch.get("type") == "integer" else float
        yield Field(path, pattern, kind, float(low), float(high), open_low)
    elif "enum" in branch and len(branch["enum"]) > 1:
        yield Field(path, pattern, str, choices=tuple(branch["enum"]))
