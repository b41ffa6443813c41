"""What drawn instances have in common: types, ranges, lengths and simple relations, which changed ones keep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from schedgap.benchmarks.hunt.edits import Data, fitted, removed, with_number
from schedgap.benchmarks.hunt.fields import Path, fields_of, groups_of, value_at
from schedgap.benchmarks.hunt.limits import Space, rounded
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json

LARGEST_DENOMINATOR = 10**6
"""The common denominator up to which fractions are changed; they come and go with their list beyond it."""
MOST_WORDS = 20
LONGEST_RECORD = 4
"""Entries of lists that are all as long up to which a place has a meaning of its own: (time, weight)."""
ENOUGH = 20
"""Instances from which on a relation that all of them have is kept."""
WRAP = "instance"
"""The key under which an instance stands in what the hunt changes, which is always an object."""

Relation = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """Instances of one generator as far as drawn ones show."""

    schema: Mapping[str, Json]  # JSON Schema of changed instances: fractions as whole numbers over a common denominator
    space: Space
    over: Mapping[str, int]  # common denominators of fractions by pattern
    kept: frozenset[Relation] = field(default_factory=frozenset)  # what every drawn instance has

    def niche(self, data: Data) -> Hashable:
        """How many entries the lists have and what single whole numbers are: instances compete with their like."""
        lengths = [len(value_at(data, g.path)) for g in groups_of(self.schema, data) if _outside_lists(g.path)]
        leaves = [leaf for leaf in fields_of(self.schema, data) if leaf.kind is int and _outside_lists(leaf.path)]
        return tuple(lengths), tuple(value_at(data, leaf.path) for leaf in leaves)

    def admits(self, data: Data) -> bool:
        """Whether an instance has all that the drawn ones have in common."""
        return self.kept <= _relations(self, data)


def shape_of(instances: Sequence[object]) -> Shape:
    """The shape of drawn instances.

    Raises
    ------
    InputError
        An instance holds something that is no dict, list, tuple, number or word.
    """
    for instance in instances:
        _check_plain(instance, "")
    schema = {"type": "object", "properties": {WRAP: _schema(instances)}}
    longest_lists: dict[str, int] = {}
    over: dict[str, int] = {}
    _notes(schema, "", longest_lists, over)
    bare = Shape(schema, Space(schema, {}, longest_lists), over)
    if len(instances) < ENOUGH:
        return bare
    sets = (_relations(bare, data_of(schema, {WRAP: instance})) for instance in instances)
    return Shape(schema, bare.space, over, frozenset.intersection(*sets))


def _check_plain(value: object, place: str) -> None:
    if isinstance(value, Mapping):
        for key, below in value.items():
            if not isinstance(key, str):
                raise InputError(f"draw: {place or 'the instance'}: keys must be words, got {key!r}")
            _check_plain(below, f"{place}.{key}" if place else key)
    elif isinstance(value, list | tuple):
        for position, below in enumerate(value):
            _check_plain(below, f"{place}[{position}]")
    elif not isinstance(value, bool | int | float | str | Fraction | None) or value != value:
        raise InputError(f"draw: {place or 'the instance'}: must be a dict, list, tuple, number or word, got {value!r}")


def _schema(values: Sequence[object]) -> dict[str, Json]:
    """A JSON Schema of all values; ``{}``, which is never changed, where they differ in type."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float, Fraction} and Fraction in kinds and float not in kinds:
        common = math.lcm(*(value.denominator for value in values if isinstance(value, int | Fraction)))
        whole = [value * common for value in values if isinstance(value, int | Fraction)]
        bounds = {"type": "integer", "minimum": int(min(whole)), "maximum": int(max(whole)), "over": common}
        return bounds if common <= LARGEST_DENOMINATOR else {}
    if kinds and kinds <= {int, float}:
        numbers = [value for value in values if isinstance(value, int | float)]
        kind = "integer" if kinds == {int} else "number"
        return {"type": kind, "minimum": min(numbers), "maximum": max(numbers)}
    if kinds == {bool}:
        return {"type": "boolean"}
    if kinds == {str}:
        words = sorted({str(value) for value in values})
        return {"type": "string", **({"enum": words} if 1 < len(words) <= MOST_WORDS else {})}
    rows = [value for value in values if isinstance(value, list | tuple)]
    if kinds in ({list}, {tuple}):
        lengths = [len(row) for row in rows]
        if min(lengths) == max(lengths) <= LONGEST_RECORD:
            places = {str(k): _schema(column) for k, column in enumerate(zip(*rows, strict=True))}
            return {"type": "object", "properties": places, "record": kinds.pop()}
        below = _schema(list(itertools.chain.from_iterable(rows)))
        ends = {"minItems": min(lengths), "maxItems": max(lengths)}
        return {"type": "array", "list": kinds.pop(), "items": below, **ends}
    objects = [value for value in values if isinstance(value, Mapping)]
    if kinds == {dict} and len({frozenset(value) for value in objects}) == 1:
        return {"type": "object", "properties": {k: _schema([one[k] for one in objects]) for k in objects[0]}}
    if kinds == {dict}:
        return {"type": "object", "additionalProperties": _schema([v for one in objects for v in one.values()])}
    return {}


def _notes(node: Mapping[str, Json], pattern: str, lengths: dict[str, int], over: dict[str, int]) -> None:
    """The longest list and the common denominator of each pattern, which name what the hunt calls them."""
    if "over" in node:
        over[pattern] = node["over"]
    for name, below in node.get("properties", {}).items():
        _notes(below, f"{pattern}.{name}" if pattern else name, lengths, over)
    if "additionalProperties" in node:
        _notes(node["additionalProperties"], pattern, lengths, over)
    if "maxItems" in node:
        lengths[pattern] = max(node["maxItems"], lengths.get(pattern, 0))
    if "items" in node:
        below = node["items"]
        _notes(below, pattern if below.get("type") == "object" else f"{pattern}[]", lengths, over)


def data_of(schema: Mapping[str, Json], value: Json) -> Json:
    """An instance as the hunt changes it: fractions as whole numbers, short records as objects."""
    if "over" in schema:
        return int(Fraction(value) * schema["over"])
    if "record" in schema:
        return {str(k): data_of(schema["properties"][str(k)], below) for k, below in enumerate(value)}
    if isinstance(value, Mapping):
        rest = schema.get("additionalProperties", {})
        return {key: data_of(schema.get("properties", {}).get(key, rest), below) for key, below in value.items()}
    if isinstance(value, list | tuple) and "items" in schema:
        return [data_of(schema["items"], one) for one in value]
    return value


def value_of(schema: Mapping[str, Json], data: Json) -> Json:
    """What :func:`data_of` was made of."""
    if "over" in schema:
        return Fraction(data, schema["over"])
    if isinstance(data, Mapping):
        rest = schema.get("additionalProperties", {})
        values = {key: value_of(schema.get("properties", {}).get(key, rest), below) for key, below in data.items()}
        return schema["record"](values.values()) if "record" in schema else values
    if isinstance(data, list) and "items" in schema:
        return schema["list"](value_of(schema["items"], one) for one in data)
    return data


def small_data(schema: Mapping[str, Json], rng: np.random.Generator, longest: int, spread: int) -> Json:
    """A random small instance: lists of at most so many entries where they may be so short, numbers near their least.

    Raises
    ------
    LookupError
        The schema does not say what stands in some place.
    """
    kind = schema["type"]
    if kind == "integer":
        return int(schema["minimum"] + rng.integers(0, min(spread, schema["maximum"] - schema["minimum"]) + 1))
    if kind == "number":
        return float(rounded(rng.uniform(schema["minimum"], schema["maximum"]), 1))
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "string":
        return schema["enum"][int(rng.integers(len(schema["enum"])))]
    if kind == "object":
        return {key: small_data(below, rng, longest, spread) for key, below in schema["properties"].items()}
    most = max(schema["minItems"], min(schema["maxItems"], longest))
    count = int(rng.integers(schema["minItems"], most + 1))
    return [small_data(schema["items"], rng, longest, spread) for _ in range(count)]


def jointly(data: Data, space: Space) -> Iterator[Data]:
    """Smaller instances by two changes at once, of which one alone may make a counterexample none.

    Two entries of a list fewer; an entry fewer and a single number lower by 1; two numbers of a list as their sum.
    """
    singles = [leaf for leaf in fields_of(space.schema, data) if leaf.kind is int and _outside_lists(leaf.path)]
    for group in groups_of(space.schema, data):
        entries = value_at(data, group.path)
        if group.keyed or len(entries) <= group.least:
            continue
        for k in reversed(range(len(entries))):
            fewer = removed(data, group, k)
            for leaf in singles:
                lower = space.clamp(leaf, value_at(data, leaf.path) - 1)
                if lower is not None:
                    yield with_number(fewer, leaf, lower)
            for other in reversed(range(k)):
                if len(entries) - 1 > group.least:
                    yield removed(fewer, group, other)
                if type(entries[k]) is type(entries[other]) is int:
                    merged = removed(data, group, k)
                    value_at(merged, group.path)[other] += entries[k]
                    yield fitted(merged, space)


def _outside_lists(path: Path) -> bool:
    return not any(isinstance(step, int) for step in path)


def _relations(shape: Shape, data: Data) -> frozenset[Relation]:
    """Order within lists, equal lengths, and which numbers, lengths, sums and extremes are at most which others."""
    series: dict[str, list[Fraction | float]] = {}
    amounts: dict[str, Fraction | float] = {}
    for leaf in fields_of(shape.schema, data):
        if leaf.kind not in (int, float):
            continue
        value = value_at(data, leaf.path)
        value = Fraction(value, shape.over[leaf.pattern]) if leaf.pattern in shape.over else value
        if _outside_lists(leaf.path):
            amounts[leaf.pattern] = value
        else:
            series.setdefault(leaf.pattern, []).append(value)
    for group in groups_of(shape.schema, data):
        if _outside_lists(group.path):
            amounts[f"length {group.pattern}"] = len(value_at(data, group.path))
    held: set[Relation] = set()
    for name, values in series.items():
        steps = list(itertools.pairwise(values))
        held |= {("rises", name)} if all(a <= b for a, b in steps) else set()
        held |= {("falls", name)} if all(a >= b for a, b in steps) else set()
        held |= {("distinct", name)} if len(set(values)) == len(values) else set()
        amounts |= {f"least {name}": min(values), f"largest {name}": max(values), f"sum {name}": sum(values)}
    for (name_a, a), (name_b, b) in itertools.permutations(series.items(), 2):
        pairs = list(zip(a, b, strict=False)) if len(a) == len(b) else [(1, 0), (0, 0)]
        held |= {("each at most", name_a, name_b)} if all(x <= y for x, y in pairs) else set()
        held |= {("each differs", name_a, name_b)} if all(x != y for x, y in pairs) else set()
    for (name_a, low), (name_b, high) in itertools.permutations(amounts.items(), 2):
        if low <= high:
            held.add(("at most", name_a, name_b))
        if low < high:
            held.add(("less", name_a, name_b))
    return frozenset(held)
