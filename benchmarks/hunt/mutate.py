"""Random changes of an instance: its numbers, its lists, its choices; nothing here knows a problem."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.benchmarks.hunt.edits import Data, duplicated, removed, with_number
from schedgap.benchmarks.hunt.fields import Field, Group, fields_of, groups_of, put_at, value_at
from schedgap.benchmarks.hunt.limits import Space, rounded
from schedgap.formulations.common.instance import Json

FACTORS = (2.0, 0.5, 1.5, 2 / 3, 1.1, 0.9, 4.0, 0.25, 10.0, 0.1)
TRIES = 12


def mutated(
    data: Mapping[str, Json], space: Space, rng: np.random.Generator, partner: Mapping[str, Json]
) -> Data | None:
    """`data` with one change or, more and more rarely, several; None where none of them was possible.

    Parameters
    ----------
    data : an instance as a JSON object
    space : what may be visited
    rng : all randomness
    partner : another instance, whose entries may be copied
    """
    result: Data | None = None
    for _ in range(int(rng.geometric(0.55))):
        kinds, weights = _REGULAR if space.regular else _USUAL
        kind = kinds[int(rng.choice(len(kinds), p=weights))]
        for _ in range(TRIES):
            changed = kind(result or data, space, rng, partner)
            if changed is not None:
                result = changed
                break
    return None if result == data else result


def _numbers(data: Mapping[str, Any], space: Space) -> list[Field]:
    return [leaf for leaf in fields_of(space.schema, data) if leaf.kind in (int, float)]


def _pick(rng: np.random.Generator, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))] if items else None


def _by_pattern(data: Mapping[str, Any], space: Space, rng: np.random.Generator) -> tuple[Field, list[Field]] | None:
    """A number, each pattern as likely as another, and all numbers of its pattern."""
    leaves = _numbers(data, space)
    pattern = _pick(rng, list(dict.fromkeys(leaf.pattern for leaf in leaves)))
    same = [leaf for leaf in leaves if leaf.pattern == pattern]
    return (_pick(rng, same), same) if same else None


def _moved(leaf: Field, value: float, space: Space, rng: np.random.Generator) -> float | int | None:
    """Another value near or far."""
    way = int(rng.integers(8))
    low, high = space.range_of(leaf)
    if way < 4:
        new = value * FACTORS[int(rng.integers(len(FACTORS)))] if value else min(high, 1.0)
    elif way < 6:
        step = 1.0 if leaf.kind is int else 10.0 ** math.floor(math.log10(abs(value))) if value else 0.1
        new = value + step * float(rng.choice([-1, 1]))
    elif way == 6 and math.isfinite(low) and math.isfinite(high) and low > 0:
        new = float(np.exp(rng.uniform(math.log(low), math.log(high)))) if high > low else low
    else:
        new = float(rng.choice([0.0, low if math.isfinite(low) else 0.0, high if math.isfinite(high) else 1.0]))
    return space.clamp(leaf, rounded(new, 3))


def _one_number(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    found = _by_pattern(data, space, rng)
    if found is None:
        return None
    value = _moved(found[0], value_at(data, found[0].path), space, rng)
    same = value is None or value == value_at(data, found[0].path)
    return None if same else with_number(data, found[0], value)


def _all_numbers(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """All numbers of one pattern by the same factor, or all made equal."""
    found = _by_pattern(data, space, rng)
    if found is None:
        return None
    first, same = found
    factor = _pick(rng, FACTORS) if rng.random() < 0.6 else None
    anchor = value_at(data, first.path)
    result: Data = copy.deepcopy(dict(data))
    for leaf in same:
        value = value_at(result, leaf.path)
        new = space.clamp(leaf, anchor if factor is None else rounded(value * factor, 3))
        if new is not None:
            result = with_number(result, leaf, new)
    return None if result == data else result


def _sibling(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """One number becomes that of a sibling, or the two change places."""
    found = _by_pattern(data, space, rng)
    if found is None or len(found[1]) < 2:
        return None
    first, other = found[0], _pick(rng, found[1])
    a, b = value_at(data, first.path), value_at(data, other.path)
    if a == b:
        return None
    result = with_number(data, first, b)
    return with_number(result, other, a) if rng.random() < 0.5 else result


def _round(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    found = _by_pattern(data, space, rng)
    if found is None:
        return None
    before = value_at(data, found[0].path)
    value = space.clamp(found[0], rounded(before, 1))
    return None if value is None or value == before else with_number(data, found[0], value)


def _lists(data: Mapping[str, Any], space: Space, rng: np.random.Generator) -> Group | None:
    groups = [g for g in groups_of(space.schema, data) if not g.keyed and value_at(data, g.path)]
    pattern = _pick(rng, list(dict.fromkeys(g.pattern for g in groups)))
    chosen: Group | None = _pick(rng, [g for g in groups if g.pattern == pattern])
    return chosen


def _remove(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    groups = [g for g in groups_of(space.schema, data) if len(value_at(data, g.path)) > g.least]
    pattern = _pick(rng, list(dict.fromkeys(g.pattern for g in groups)))
    group = _pick(rng, [g for g in groups if g.pattern == pattern])
    if group is None:
        return None
    there = value_at(data, group.path)
    return removed(data, group, _pick(rng, list(there) if group.keyed else range(len(there))))


def _duplicate(
    data: Mapping[str, Any], space: Space, rng: np.random.Generator, partner: Mapping[str, Any]
) -> Data | None:
    """A copy of an entry of the same list, or of the partner's."""
    group = _lists(data, space, rng)
    if group is None or len(value_at(data, group.path)) >= space.lengths.get(group.pattern, 10**9):
        return None
    entries, source = value_at(data, group.path), data
    if rng.random() < 0.3:
        theirs = [g for g in groups_of(space.schema, partner) if g.pattern == group.pattern and not g.keyed]
        other = _pick(rng, theirs)
        entries, source = (value_at(partner, other.path), partner) if other is not None else (entries, data)
    item = _pick(rng, entries)
    if item is None:
        return None
    name = item.get("id") if isinstance(item, Mapping) and source is data else None
    return duplicated(data, group, item, name)


def _order(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """Two entries of a list change places."""
    group = _lists(data, space, rng)
    if group is None or len(value_at(data, group.path)) < 2:
        return None
    result: Data = copy.deepcopy(dict(data))
    entries = value_at(result, group.path)
    a, b = rng.choice(len(entries), 2, replace=False)
    entries[a], entries[b] = entries[b], entries[a]
    return None if result == data else result


def _choice(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """Another word, another truth value."""
    leaves = [leaf for leaf in fields_of(space.schema, data) if leaf.kind in (bool, str)]
    leaf = _pick(rng, leaves)
    if leaf is None:
        return None
    before = value_at(data, leaf.path)
    if leaf.kind is bool:
        return with_number(data, leaf, not before)
    words = [word for word in space.words.get(leaf.pattern, leaf.choices) if word != before]
    return with_number(data, leaf, _pick(rng, words)) if words else None


def _part(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """A whole part of an entry (its utility, its demand) becomes that of a sibling."""
    group = _lists(data, space, rng)
    entries = value_at(data, group.path) if group is not None else []
    if group is None or len(entries) < 2 or not isinstance(entries[0], Mapping):
        return None
    a, b = (int(k) for k in rng.choice(len(entries), 2, replace=False))
    names = [key for key, value in entries[a].items() if key != "id" and key in entries[b] and value != entries[b][key]]
    name = _pick(rng, names)
    if name is None:
        return None
    result: Data = copy.deepcopy(dict(data))
    put_at(result, (*group.path, a, name), copy.deepcopy(entries[b][name]))
    return result


def _key(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """An object keyed by ids gains a key that another object of its pattern has."""
    groups = [g for g in groups_of(space.schema, data) if g.keyed]
    group = _pick(rng, groups)
    if group is None:
        return None
    own = value_at(data, group.path)
    others = [(k, v) for g in groups if g.pattern == group.pattern for k, v in value_at(data, g.path).items()]
    others = [(k, v) for k, v in others if k not in own]
    if not others:
        return None
    key, value = _pick(rng, others)
    result: Data = copy.deepcopy(dict(data))
    put_at(result, (*group.path, key), copy.deepcopy(value))
    return result


def _scale_all(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """All numbers of two patterns at once, one by a factor and one by it or its inverse."""
    leaves = _numbers(data, space)
    patterns = list(dict.fromkeys(leaf.pattern for leaf in leaves))
    if len(patterns) < 2:
        return None
    factor = float(rng.choice([2.0, 3.0]))
    a, b = (patterns[int(k)] for k in rng.choice(len(patterns), 2, replace=False))
    factors = {a: factor, b: factor if rng.random() < 0.5 else 1 / factor}
    result: Data = copy.deepcopy(dict(data))
    for leaf in leaves:
        if leaf.pattern in factors:
            new = space.clamp(leaf, rounded(value_at(result, leaf.path) * factors[leaf.pattern], 3))
            if new is not None:
                result = with_number(result, leaf, new)
    return None if result == data else result


def _after(data: Data, group: Group, place: int, item: Json, source: str | None) -> Data:
    """A copy of `item` right after an entry of a list."""
    result = duplicated(data, group, item, source)
    entries = value_at(result, group.path)
    entries.insert(place + 1, entries.pop())
    return result


def _repeat(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """Several copies of an entry, right after it."""
    group = _lists(data, space, rng)
    if group is None:
        return None
    entries = value_at(data, group.path)
    place, most = int(rng.integers(len(entries))), space.lengths.get(group.pattern, 10**9) - len(entries)
    item, result = entries[place], dict(data)
    for _copy in range(min(most, int(rng.choice([1, 2, 3, 4, 6])))):
        result = _after(result, group, place, item, item.get("id") if isinstance(item, Mapping) else None)
    return None if result == data else result


def _extend(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """A copy of an entry right after it, its numbers as far from it as it is from the one before, or one step on."""
    group = _lists(data, space, rng)
    if group is None or len(value_at(data, group.path)) >= space.lengths.get(group.pattern, 10**9):
        return None
    entries = value_at(data, group.path)
    place = int(rng.integers(len(entries)))
    item = entries[place]
    result = _after(dict(data), group, place, item, item.get("id") if isinstance(item, Mapping) else None)
    depth, before = len(group.path) + 1, {}
    leaves = [s for s in _numbers(result, space) if s.path[:depth] == (*group.path, place + 1)]
    if place and rng.random() < 0.6:
        here = (*group.path, place - 1)
        before = {s.path[depth:]: value_at(data, s.path) for s in _numbers(data, space) if s.path[:depth] == here}
    down = rng.random() < 0.5
    for leaf in leaves:
        value = value_at(result, leaf.path)
        step = value - before[leaf.path[depth:]] if leaf.path[depth:] in before else 0
        if not before and rng.random() < 0.5:
            step = (-1 if down and rng.random() < 0.7 else 1) * _unit(value)
        new = space.clamp(leaf, value + step)
        if new is not None:
            result = with_number(result, leaf, new)
    return result


def _drop(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """An entry and all that are like it are removed."""
    group = _lists(data, space, rng)
    if group is None:
        return None
    entries = [_nameless(item) for item in value_at(data, group.path)]
    one = _pick(rng, entries)
    alike = [k for k, item in enumerate(entries) if item == one]
    if len(entries) - len(alike) < max(1, group.least):
        return None
    result: Data = dict(data)
    for k in reversed(alike):
        result = removed(result, group, k)
    return result


def _become(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """An entry gives way to copies of its neighbour."""
    group = _lists(data, space, rng)
    if group is None or len(value_at(data, group.path)) < 2:
        return None
    entries = value_at(data, group.path)
    place = int(rng.integers(len(entries)))
    other = place + 1 if place == 0 or (place + 1 < len(entries) and rng.random() < 0.5) else place - 1
    item, count = entries[other], int(rng.integers(1, 5))
    if len(entries) - 1 + count > space.lengths.get(group.pattern, 10**9) or _nameless(item) == _nameless(
        entries[place]
    ):
        return None
    result: Data = dict(data)
    for _copy in range(count):
        result = _after(result, group, other, item, item.get("id") if isinstance(item, Mapping) else None)
    return removed(result, group, place if place < other else place + count)


def _kin(data: Mapping[str, Any], space: Space, rng: np.random.Generator, _: Mapping[str, Any]) -> Data | None:
    """The same number of an entry and of all that are like it."""
    group = _lists(data, space, rng)
    if group is None:
        return None
    entries = [_nameless(item) for item in value_at(data, group.path)]
    place, depth = int(rng.integers(len(entries))), len(group.path) + 1
    leaf = _pick(rng, [s for s in _numbers(data, space) if s.path[:depth] == (*group.path, place)])
    if leaf is None:
        return None
    value = _moved(leaf, value_at(data, leaf.path), space, rng)
    if value is None or value == value_at(data, leaf.path):
        return None
    result: Data = dict(data)
    for k, item in enumerate(entries):
        if item == entries[place]:
            result = with_number(result, replace(leaf, path=(*group.path, k, *leaf.path[depth:])), value)
    return result


def _nameless(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "id"} if isinstance(item, Mapping) else item


def _unit(value: float) -> float:
    return 1.0 if value == int(value) else 10.0 ** math.floor(math.log10(abs(value)))


Change = Callable[[Mapping[str, Json], Space, np.random.Generator, Mapping[str, Json]], "Data | None"]
CHANGES: tuple[tuple[Change, float], ...] = (
    (_one_number, 10),
    (_all_numbers, 4),
    (_sibling, 3),
    (_round, 1),
    (_remove, 2),
    (_duplicate, 3),
    (_order, 2),
    (_choice, 1),
    (_part, 1),
    (_key, 0.5),
    (_scale_all, 2),
)
"""Every change and how often it is tried."""
REGULAR: tuple[tuple[Change, float], ...] = (
    *CHANGES,
    (_key, 2),
    (_part, 2),
    (_repeat, 5),
    (_extend, 6),
    (_drop, 3),
    (_become, 3),
    (_kin, 8),
)
"""The same where what is looked for is regular."""


def _tables(changes: Sequence[tuple[Change, float]]) -> tuple[list[Change], list[float]]:
    total = sum(weight for _, weight in changes)
    return [change for change, _ in changes], [weight / total for _, weight in changes]


_USUAL, _REGULAR = _tables(CHANGES), _tables(REGULAR)
