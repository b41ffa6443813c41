"""The smallest instance that still shows what was found: fewest entries, then the roundest numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from schedgap.benchmarks.hunt.edits import Data, removed, with_number
from schedgap.benchmarks.hunt.fields import Field, fields_of, groups_of, value_at
from schedgap.benchmarks.hunt.limits import Space, rounded
from schedgap.benchmarks.hunt.target import Probe
from schedgap.formulations.common.instance import Json

Tried = Callable[[Mapping[str, Json]], "Probe | None"]
"""Evaluates an instance; None where it no longer shows what it should."""


def shrunk(
    found: Probe,  # where it begins
    space: Space,  # ranges of the numbers
    tried: Tried,
    tell: Callable[[Probe], None] = lambda _: None,  # told of every step that was accepted
    measure: Size | None = None,  # what every step lowers; :func:`size` where not given
    more: Sequence[Stage] = (),  # further stages
) -> Probe:
    """Make an instance smaller and its numbers rounder for as long as `tried` accepts the result.

    Greedy, and deterministic: one entry removed at a time, all numbers of one pattern at once, single numbers,
    again and again until nothing changes. Every accepted step lowers (entries, slots, roughness), so it ends.
    """
    measure = measure or size
    current = found
    while True:
        before = current
        for stage in (_fewer, _alike, _rounder, _traded, *more):
            current = _through(current, stage, space, tried, tell, measure)
        if current is before:
            return current


Stage = Callable[[Data, Space], "Iterator[Data]"]
Size = Callable[[Mapping[str, Json], Space], tuple[float, ...]]


def _through(
    found: Probe, stage: Stage, space: Space, tried: Tried, tell: Callable[[Probe], None], measure: Size
) -> Probe:
    """Take every step of a stage that is accepted; after each the steps that are left are made anew."""
    current, refused = found, 0
    while True:
        now = measure(current.data, space)
        for position, data in enumerate(stage(dict(current.data), space)):
            if position < refused or measure(data, space) >= now:
                continue
            better = tried(data)
            if better is not None:
                current, refused = better, position
                tell(current)
                break
        else:
            return current


def size(data: Mapping[str, Json], space: Space) -> tuple[int, int, float]:
    """(entries of all lists and keyed objects, slots, roughness of all numbers): what shrinking lowers."""
    count = sum(len(value_at(data, group.path)) for group in groups_of(space.schema, data))
    leaves = [leaf for leaf in fields_of(space.schema, data) if leaf.kind in (int, float)]
    distinct = {(leaf.pattern, value_at(data, leaf.path)) for leaf in leaves}
    rough = sum(roughness(value_at(data, leaf.path)) for leaf in leaves)
    slots = data.get("horizon", 0)
    return count, int(slots), round(rough + 0.1 * sum(roughness(value) for _, value in distinct), 9)


def roughness(value: float) -> float:
    """0 for 0, 1 for 1; more with the digits of a fraction, the size of a whole number and the distance from 1."""
    if value == 0:
        return 0.0
    digits = f"{abs(value):.15e}".split("e")[0].replace(".", "").rstrip("0")
    far = abs(math.log10(abs(value)))
    if isinstance(value, int):
        return 1 + far + 0.05 * (len(digits) - 1)
    return len(digits) + 0.3 * far + (0.05 if digits not in ("1", "2", "5") else 0.0)


def _fewer(data: Data, space: Space) -> Iterator[Data]:
    """Without one entry, the last ones first."""
    for group in groups_of(space.schema, data):
        there = value_at(data, group.path)
        for key in reversed(list(there) if group.keyed else range(len(there))):
            if len(there) > group.least:
                yield removed(data, group, key)


def _alike(data: Data, space: Space) -> Iterator[Data]:
    """All numbers of one pattern the same, each of their values in turn, all one digit shorter, all divided alike."""
    leaves = [leaf for leaf in fields_of(space.schema, data) if leaf.kind in (int, float)]
    for pattern in dict.fromkeys(leaf.pattern for leaf in leaves):
        same = [leaf for leaf in leaves if leaf.pattern == pattern]
        if len(same) < 2:
            continue
        values = sorted({0.0, 1.0, *(value_at(data, leaf.path) for leaf in same)}, key=roughness)
        for value in values:
            yield _all(data, same, space, lambda _, value=value: value)  # type: ignore[misc]
        for digits in (1, 2):
            yield _all(data, same, space, lambda old, digits=digits: rounded(old, digits))  # type: ignore[misc]
        for factor in (2, 3, 5):
            if all(value_at(data, leaf.path) % factor == 0 for leaf in same):
                yield _all(data, same, space, lambda old, factor=factor: old / factor)  # type: ignore[misc]


def _all(data: Data, leaves: list[Field], space: Space, change: Callable[[float], float]) -> Data:
    for leaf in leaves:
        value = space.clamp(leaf, change(value_at(data, leaf.path)))
        if value is not None:
            data = with_number(data, leaf, value)
    return data


def _rounder(data: Data, space: Space) -> Iterator[Data]:
    """One number rounder, each in turn."""
    for leaf in fields_of(space.schema, data):
        if leaf.kind not in (int, float):
            continue
        before = value_at(data, leaf.path)
        seen = {before}
        for value in _simpler(before, leaf.kind is int):
            new = space.clamp(leaf, value)
            if new is not None and new not in seen:
                seen.add(new)
                yield with_number(data, leaf, new)


def _traded(data: Data, space: Space) -> Iterator[Data]:
    """Two numbers of one part with the same product, the whole one of them made 1: a count times a rate."""
    leaves = [leaf for leaf in fields_of(space.schema, data) if leaf.kind in (int, float)]
    for a, b in itertools.permutations(leaves, 2):
        first, second = value_at(data, a.path), value_at(data, b.path)
        if a.path[:-1] != b.path[:-1] or a.kind is not int or b.kind is not float or first == 1 or not second:
            continue
        new = space.clamp(b, rounded(first * second, 12))
        one = space.clamp(a, 1.0)
        if new is not None and one is not None:
            yield with_number(with_number(data, a, one), b, new)


def lowered(data: Data, space: Space) -> Iterator[Data]:
    """All whole numbers of up to three patterns lower by 1 or 2: amounts, and what they have to fit into."""
    leaves = [s for s in fields_of(space.schema, data) if s.kind in (int, float)]
    leaves = [s for s in leaves if value_at(data, s.path) == int(value_at(data, s.path))]
    patterns = [
        p
        for p in dict.fromkeys(s.pattern for s in leaves)
        if any(s.pattern == p and value_at(data, s.path) > 1 for s in leaves)
    ]
    for count in (2, 3):
        for chosen in itertools.combinations(patterns, count):
            for by in itertools.product((1, 2), repeat=count):
                less = dict(zip(chosen, by, strict=True))
                changed = data
                for leaf in leaves:
                    if leaf.pattern in less:
                        new = space.clamp(leaf, value_at(data, leaf.path) - less[leaf.pattern])
                        changed = changed if new is None else with_number(changed, leaf, new)
                yield changed


def _simpler(value: float, whole: bool) -> Iterator[float]:
    yield from (0.0, 1.0)
    if value:
        yield math.copysign(10.0 ** round(math.log10(abs(value))), value)
    for digits in (1, 2, 3):
        yield rounded(value, digits)
    if whole:
        yield from (value // 2, value - 1)
    else:
        yield float(round(value))
