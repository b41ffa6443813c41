"""Fields of an instance as JSON: where they lie, what each may hold, and how jobs and servers come and go."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field as Allowed

from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import Option, options_of

# The numbers and lists of an instance, found by walking its JSON beside its JSON Schema; knows no problem.

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
    """Every list and every object keyed by ids in `data`."""
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


# What bounds a hunt: the ``--set limit=value`` of the command line, and the ranges that numbers stay in.

Range = tuple[float, float]


def _search(
    *,
    evaluations: Annotated[
        int | None, Allowed(ge=1, le=10**9, description="instances tried; 4000, or no limit with --budget")
    ] = None,
    at_least: Annotated[
        float | None, Allowed(ge=1, le=1e12, description="stop at this ratio or left/right, and shrink down to it")
    ] = None,
    span: Annotated[
        float, Allowed(ge=1, description="numbers stay within those of the starts, divided and multiplied by this")
    ] = 4.0,
    work: Annotated[float, Allowed(gt=0, le=1e6, description="repeatable limit of each exact solve")] = 0.5,
    keep: Annotated[float, Allowed(gt=0, le=1, description="share of the ratio that shrinking keeps")] = 0.99,
    start: Annotated[
        str, Allowed(description="presets, families (those that verify tries), or names joined by +")
    ] = "presets",
) -> None:
    """The signature of a search: what its limits are."""


SEARCH = options_of(_search)
"""Limits of the search itself, for every problem."""
EVALUATIONS = 4000
LONGEST = 6
"""Most entries of a list of jobs, servers and so on where the starts have no more and no limit says otherwise."""

MOST = 12
"""The same where the starts have more."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a hunt."""

    search: Mapping[str, Any]  # the values of :data:`SEARCH`
    lengths: Mapping[str, int] = field(default_factory=dict)  # most entries of lists by pattern: {"jobs": 4}
    numbers: Mapping[str, Range] = field(default_factory=dict)  # ranges of numbers by pattern: {"jobs.gpus": (1, 1)}
    # allowed words by pattern: {"jobs.utility.kind": ("linear", "sqrt")}
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # of the heuristic
    given: Mapping[str, Any] = field(default_factory=dict)  # as they were given, for the record


def parse_limits(problem: Problem, method: Method | None, given: Mapping[str, Json]) -> Limits:
    """The limits that ``--set`` names.

    A name is one of :data:`SEARCH`, a list of the instance (``jobs=4``: at most 4), a number of it
    (``jobs.gpus=2``: at most 2; ``horizon=5..20``: a range), a word of it (``jobs.utility.kind=linear+sqrt``: one of
    these), or an option of the heuristic. Raises InputError: an unknown name (the line lists those there are), or a
    value that does not fit.
    """
    ranges: dict[str, Range] = {}
    choices: dict[str, tuple[str, ...]] = {}
    known = patterns_of(problem.instance_class.model_json_schema(), ranges, choices)
    own = method.options if method is not None else {}
    search = {name: option.default for name, option in SEARCH.items()}
    lengths: dict[str, int] = {}
    numbers: dict[str, Range] = {}
    words: dict[str, tuple[str, ...]] = {}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in SEARCH:
            search[name] = SEARCH[name].parse(value)
        elif known.get(name) in ("list", "map"):
            lengths[name] = Option(name, Annotated[int, Allowed(ge=1, le=10**6)], None, "").parse(value)
        elif known.get(name) == "number":
            numbers[name] = _range(name, value)
            low, high = ranges.get(name, (-math.inf, math.inf))
            if numbers[name][1] < low or numbers[name][0] > high:
                raise InputError(f"limit {name}: no instance has {value}; its range is {low:g} to {high:g}")
        elif known.get(name) == "choice" and choices.get(name):
            words[name] = tuple(str(value).split("+"))
            for word in words[name]:
                if word not in choices[name]:
                    known_words = ", ".join(choices[name])
                    close = near(word, choices[name])
                    raise InputError(f"limit {name}: unknown word {word!r}, one of: {known_words}{close}")
        elif name in own:
            options[name] = own[name].parse(value)
        else:
            there = [*SEARCH, *(n for n, kind in known.items() if kind != "choice" or choices.get(n)), *own]
            raise InputError(f"limit: unknown limit {name!r}, one of: {', '.join(there)}{near(name, there)}")
    return Limits(search, lengths, numbers, words, options, dict(given))


def _range(name: str, value: Any) -> Range:
    low, dots, high = str(value).partition("..")
    try:
        ends = (float(low), float(high)) if dots else (-math.inf, float(low))
    except ValueError:
        raise InputError(f"limit {name}: must be a number or low..high, got {value!r}") from None
    if not ends[0] <= ends[1] or math.isinf(ends[1]) or any(map(math.isnan, ends)):
        raise InputError(f"limit {name}: must be a number or low..high, got {value!r}")
    return ends


@dataclass(frozen=True)
class Space:
    """The instances a hunt may visit."""

    schema: Mapping[str, Any]  # the problem's JSON Schema
    numbers: Mapping[str, Range]  # range of each pattern
    lengths: Mapping[str, int]  # most entries of each list by pattern
    positive: frozenset[str] = frozenset()  # patterns whose limit leaves 0 out
    # the words that a pattern may have; any where it is not there
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    digits: int | None = None  # significant digits of numbers that need not be whole; None leaves them as they are
    regular: bool = False  # lists are changed many equal or evenly rising entries at a time too

    def range_of(self, leaf: Field) -> Range:
        """The range of a number here: that of its pattern within the schema's."""
        low, high = self.numbers.get(leaf.pattern, (-math.inf, math.inf))
        return max(low, leaf.low), min(high, leaf.high)

    def clamp(self, leaf: Field, value: float) -> float | int | None:
        """The nearest allowed value; None where there is none. 0 is allowed wherever the schema has it."""
        if value == 0 and leaf.low <= 0 and not (leaf.open_low and leaf.low == 0) and leaf.pattern not in self.positive:
            return 0 if leaf.kind is int else 0.0
        low, high = self.range_of(leaf)
        if leaf.kind is int:
            least, most = math.ceil(max(low, -1e15)), math.floor(min(high, 1e15))
            least += leaf.open_low and least == leaf.low
            return None if least > most else min(most, max(least, round(value)))
        value = min(high, max(low, value if self.digits is None else rounded(value, self.digits)))
        return None if low > high or (leaf.open_low and value <= leaf.low) else value


def rounded(value: float, digits: int) -> float:
    """`value` with so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def observed(schema: Mapping[str, Json], samples: Iterable[Json]) -> dict[str, Range]:
    """The smallest and the largest number of each pattern in some instances; where all are 0, 1 stands for them."""
    seen: dict[str, Range] = {}
    zeros: set[str] = set()
    for data in samples:
        for leaf in fields_of(schema, data):
            value = value_at(data, leaf.path)
            if leaf.kind in (int, float) and value == 0:
                zeros.add(leaf.pattern)
            elif leaf.kind in (int, float):
                low, high = seen.get(leaf.pattern, (value, value))
                seen[leaf.pattern] = min(low, value), max(high, value)
    return {**dict.fromkeys(sorted(zeros), (1.0, 1.0)), **seen}


def widened(seen: Mapping[str, Range], span: float, limits: Mapping[str, Range]) -> dict[str, Range]:
    """Ranges widened by `span` at both ends, then cut to the limits; a limit's own ends count beyond that."""
    result = {}
    for pattern, (low, high) in seen.items():
        ends = (low / span if low > 0 else low * span, high * span if high > 0 else high / span)
        result[pattern] = ends
    for pattern, (low, high) in limits.items():
        usual = result.get(pattern, (-math.inf, math.inf))
        result[pattern] = (min(usual[0], high) if math.isinf(low) else low, high)
    return result


# Edits of an instance as a JSON object that keep what belongs together: entries, ids, lists as long as the horizon.

Data = dict[str, Json]


def removed(data: Mapping[str, Json], group: Group, key: Json) -> Data:
    """`data` without one entry; where it had an id, whatever names that id goes too."""
    result: Data = copy.deepcopy(dict(data))
    item = value_at(result, (*group.path, key))
    del value_at(result, group.path)[key]
    if isinstance(item, Mapping) and isinstance(item.get("id"), str):
        _drop_references(result, item["id"])
    return result


def _drop_references(node: Any, name: str) -> None:
    """Drop keys equal to `name`, list entries equal to it, and objects in lists that refer to it."""
    if isinstance(node, dict):
        node.pop(name, None)
        for below in node.values():
            _drop_references(below, name)
    elif isinstance(node, list):
        node[:] = [one for one in node if not (one == name or (isinstance(one, dict) and _refers(one, name)))]
        for below in node:
            _drop_references(below, name)


def _refers(item: Mapping[str, Any], name: str) -> bool:
    return "id" not in item and any(value == name for value in item.values() if isinstance(value, str))


def duplicated(data: Mapping[str, Json], group: Group, item: Json, source: str | None = None) -> Data:
    """`data` with a copy of `item` at the end of a list, under a new id; what the old id had is copied too.

    Parameters
    ----------
    item : the entry; with an id where entries have one
    source : the id whose keys elsewhere are copied for the new entry; None copies nothing
    """
    result: Data = copy.deepcopy(dict(data))
    entries = value_at(result, group.path)
    new = copy.deepcopy(item)
    if isinstance(new, dict) and isinstance(new.get("id"), str):
        new["id"] = _fresh(new["id"], {one.get("id") for one in entries if isinstance(one, dict)})
        if source is not None:
            _copy_references(result, source, new["id"])
    entries.append(new)
    return result


def _fresh(name: str, taken: set[Any]) -> str:
    stem = name.rstrip("0123456789") or "x"
    return next(f"{stem}{k}" for k in range(len(taken) + 1) if f"{stem}{k}" not in taken)


def _copy_references(node: Any, old: str, new: str) -> None:
    """Give `new` a copy of everything that stands under the key `old`; links that name `old` get a twin."""
    if isinstance(node, dict):
        for below in node.values():
            _copy_references(below, old, new)
        if old in node:
            node[new] = copy.deepcopy(node[old])
    elif isinstance(node, list):
        for below in node:
            _copy_references(below, old, new)
        twins = [one for one in node if isinstance(one, dict) and _refers(one, old)]
        node += [{key: new if value == old else value for key, value in one.items()} for one in twins]


def with_number(data: Mapping[str, Json], leaf: Field, value: Json) -> Data:
    """`data` with another value in one place; lists as long as a changed horizon change their length with it."""
    result: Data = copy.deepcopy(dict(data))
    before = value_at(result, leaf.path)
    put_at(result, leaf.path, value)
    if leaf.path == ("horizon",):
        _resize(result, before, value)
        for job in result.get("jobs", []):
            if isinstance(job, dict) and isinstance(job.get("arrival"), int):
                job["arrival"] = min(job["arrival"], value)
    return result


def _resize(node: Any, before: int, after: int) -> None:
    if isinstance(node, dict):
        for below in node.values():
            _resize(below, before, after)
    elif isinstance(node, list):
        for below in node:
            _resize(below, before, after)
        if len(node) == before and node and not (isinstance(node[0], dict) and "id" in node[0]):
            node[:] = [copy.deepcopy(node[min(k, before - 1)]) for k in range(after)]


def fitted(data: Mapping[str, Json], space: Space) -> Data:
    """`data` cut down to the space: lists shortened from the end, numbers moved into their ranges."""
    result: Data = copy.deepcopy(dict(data))
    result.pop("name", None)
    for group in groups_of(space.schema, result):
        most = space.lengths.get(group.pattern)
        while most is not None and not group.keyed and len(value_at(result, group.path)) > most:
            result = removed(result, group, len(value_at(result, group.path)) - 1)
    for leaf in fields_of(space.schema, result):
        before = value_at(result, leaf.path)
        value: Json = None
        if leaf.kind in (int, float):
            value = space.clamp(leaf, before)
        elif leaf.pattern in space.words and before not in space.words[leaf.pattern]:
            value = space.words[leaf.pattern][0]
        if value is not None and value != before:
            result = with_number(result, leaf, value)
    return result
