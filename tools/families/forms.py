"""An instance written as runs: so many entries of a list in a row that are equal, or whose numbers rise evenly.

A *form* is a JSON document: ``{"rest": ..., "lists": {"jobs": [{"count": 6, "first": {...}, "step": {...}}]}, "pairs":
{...}}``. Numbers that nothing determines (the steps of a run of one entry) are None.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.families.polynomials import Polynomial

MOST_RUNS = 5
"""Most runs of one list."""


MOST_FORMS = 40
"""Ways to write one instance that are looked at."""


IGNORED = ("name", "note")


Form = dict[str, Json]


def fraction(value: float) -> Fraction:
    """A number as the decimal that is written."""
    return Fraction(str(value))


def number(value: Fraction) -> int | float | None:
    """A fraction as a JSON number; None where it is no whole number and no decimal of few digits."""
    if value.denominator == 1:
        return int(value)
    return float(value) if fraction(float(value)) == value else None


def is_number(value: object) -> bool:
    """Whether this is a number of an instance, or what stands for one in a generator."""
    return isinstance(value, int | float | Fraction | Polynomial) and not isinstance(value, bool)


def numbers_of(node: Json) -> Iterator[Json]:
    """Every number of a document, in its order; None counts as one that is not determined."""
    if isinstance(node, Mapping):
        for key in sorted(node):
            yield from numbers_of(node[key])
    elif isinstance(node, list | tuple):
        for below in node:
            yield from numbers_of(below)
    elif node is None or is_number(node):
        yield node


def skeleton(node: Json) -> str:
    """The document without its numbers: two forms with the same one can be compared number by number."""
    return json.dumps(with_numbers(node, itertools.repeat(0)), sort_keys=True)


def with_numbers(node: Json, values: Iterator[Json]) -> Json:
    """The document with other numbers, in the order of :func:`numbers_of`."""
    if isinstance(node, Mapping):
        return {key: with_numbers(node[key], values) for key in sorted(node)}
    if isinstance(node, list | tuple):
        return [with_numbers(below, values) for below in node]
    return next(values) if node is None or is_number(node) else node


def _differences(first: Json, second: Json) -> list[Fraction] | None:
    """Second less first, number by number; None where they differ in more than numbers."""
    if skeleton(first) != skeleton(second):
        return None
    pairs = zip(numbers_of(first), numbers_of(second), strict=True)
    return [fraction(b) - fraction(a) for a, b in pairs]


def bare(item: Json) -> Json:
    """An entry without its id, whose place stays."""
    return {**item, "id": ""} if isinstance(item, Mapping) and "id" in item else item


def _lists(data: Mapping[str, Json]) -> dict[str, list[Json]]:
    return {key: value for key, value in data.items() if isinstance(value, list)}


def fewest_runs(items: Sequence[Json]) -> list[int]:
    """The lengths of the fewest runs that make up a list, each as long as it can be from the left."""
    plain = [bare(item) for item in items]
    # Every part of a run is a run, so taking the longest one each time gives the fewest.
    return _longest([_differences(a, b) for a, b in itertools.pairwise(plain)], len(plain))


def _longest(steps: Sequence[list[Fraction] | None], count: int) -> list[int]:
    lengths, start = [], 0
    while start < count:
        end = start + 1
        while end < count and steps[end - 1] is not None and steps[end - 1] == steps[start]:
            end += 1
        lengths.append(end - start)
        start = end
    return lengths


def _partitions(items: Sequence[Json]) -> Iterator[list[int]]:
    """Lengths of runs that make up a list, those with the fewest runs first; equal neighbours stay together."""
    steps = [_differences(a, b) for a, b in itertools.pairwise(items)]
    cuts = [k + 1 for k, step in enumerate(steps) if step is None or any(step)]
    least = len(_longest(steps, len(items))) if items else 0
    for runs in range(least, min(MOST_RUNS, least + 1, len(cuts) + 1) + 1):
        for chosen in itertools.combinations(cuts, max(0, runs - 1)):
            ends = [0, *chosen, len(items)] if items else [0]
            if all(len({tuple(s or ("x",)) for s in steps[a : b - 1]}) <= 1 for a, b in itertools.pairwise(ends)) and (
                all(None not in steps[a : b - 1] for a, b in itertools.pairwise(ends))
            ):
                yield [b - a for a, b in itertools.pairwise(ends)]


def _runs(items: Sequence[Json], lengths: Sequence[int]) -> list[Json]:
    runs, start = [], 0
    for length in lengths:
        first = items[start]
        step = _differences(first, items[start + 1]) if length > 1 else None
        values = itertools.repeat(None) if step is None else iter(step)
        runs.append({"count": length, "first": first, "step": list(_taken(first, values))})
        start += length
    return runs


def _taken(first: Json, values: Iterator[Json]) -> Iterator[Json]:
    return (next(values) for _ in numbers_of(first))


def forms_of(data: Mapping[str, Json]) -> list[Form]:
    """The ways to write an instance in few runs, at most MOST_FORMS of them; none where that is not possible."""
    plain = _renamed({key: value for key, value in data.items() if key not in IGNORED})
    if None in numbers_of(plain):
        return []
    lists = _lists(plain)
    pairs = {key: value for key, value in plain.items() if _is_pairs(value, lists)}
    rest = {key: value for key, value in plain.items() if key not in lists and key not in pairs}
    every = []
    for items in lists.values():
        every.append(list(itertools.islice(_partitions([bare(item) for item in items]), MOST_FORMS)))
    found = []
    for chosen in itertools.islice(itertools.product(*every), MOST_FORMS):
        lengths = dict(zip(lists, chosen, strict=True))
        tables = {key: _table(value, lists, lengths) for key, value in pairs.items()}
        if None in tables.values():
            continue
        runs = {key: _runs([bare(item) for item in lists[key]], lengths[key]) for key in lists}
        found.append({"rest": rest, "lists": runs, "pairs": tables})
    return found


def instance_of(form: Mapping[str, Json]) -> dict[str, Json]:
    """The instance that a form writes; its numbers are fractions or numbers.

    Raises InputError: a count that is not a whole number from 0, or a number that JSON cannot hold.
    """
    data = copy.deepcopy(dict(form["rest"]))
    for name, runs in form["lists"].items():
        items: list[Json] = []
        for run in runs:
            count = Fraction(run["count"])
            if count.denominator != 1 or not 0 <= count <= 10_000:
                raise InputError(f"family: lists.{name}: a run of {count} entries")
            for k in range(int(count)):
                values = (
                    Fraction(a) + (k * Fraction(b) if k else 0)
                    for a, b in zip(map(_exactly, numbers_of(run["first"])), map(_exactly, run["step"]), strict=True)
                )
                item = with_numbers(run["first"], values)
                named = isinstance(item, Mapping) and "id" in item
                items.append({**item, "id": f"{_letter(name)}{len(items)}"} if named else item)
        data[name] = items
    for name, table in form["pairs"].items():
        data[name] = _spread(table, form["lists"], data)
    return dict(with_numbers(data, iter([_written(value) for value in numbers_of(data)])))


def _exactly(value: Json) -> Fraction:
    return Fraction(0) if value is None else value if isinstance(value, Fraction) else fraction(value)


def _written(value: Json) -> int | float:
    result = number(_exactly(value))
    if result is None:
        raise InputError(f"family: {value} is no decimal of few digits")
    return result


def _letter(name: str) -> str:
    """What ids of a list begin with: j for jobs."""
    return name[0]


def _renamed(data: Mapping[str, Json]) -> dict[str, Json]:
    """Ids by position, wherever they are named: what an entry is called is no part of a family."""
    names = {}
    for key, items in _lists(data).items():
        for k, item in enumerate(items):
            if isinstance(item, Mapping) and isinstance(item.get("id"), str):
                names[item["id"]] = f"{_letter(key)}{k}"

    def renamed(node: Any) -> Any:
        if isinstance(node, Mapping):
            return {names.get(key, key): renamed(below) for key, below in node.items()}
        if isinstance(node, list):
            return [renamed(below) for below in node]
        return names.get(node, node) if isinstance(node, str) else node

    return dict(renamed(data))


def _is_pairs(value: Json, lists: Mapping[str, list[Json]]) -> bool:
    """Whether this is an object of objects of numbers, all keyed by ids."""
    ids = {item["id"] for items in lists.values() for item in items if isinstance(item, Mapping) and "id" in item}
    return isinstance(value, Mapping) and all(
        key in ids and isinstance(row, Mapping) and all(other in ids and is_number(x) for other, x in row.items())
        for key, row in value.items()
    )


def _table(value: Json, lists: Mapping[str, list[Json]], lengths: Mapping[str, Sequence[int]]) -> Json:
    """A number for every two runs of the list whose ids are the keys; 0 where there is none. None if they differ."""
    name = next(
        (
            key
            for key, items in lists.items()
            if items
            and isinstance(items[0], Mapping)
            and "id" in items[0]
            and any(item["id"] in value for item in items)
        ),
        None,
    )
    if name is None:
        return {"of": "", "values": []}
    ids = [item["id"] for item in lists[name]]
    ends = [0, *itertools.accumulate(lengths[name])]
    groups = [ids[a:b] for a, b in itertools.pairwise(ends)]
    rows = []
    for one in groups:
        row = []
        for other in groups:
            values = {value.get(a, {}).get(b, 0) for a in one for b in other if a != b}
            if len(values) > 1:
                return None
            row.append(next(iter(values), None))
        rows.append(row)
    return {"of": name, "values": rows}


def _spread(table: Json, lists: Mapping[str, Json], data: Mapping[str, Json]) -> Json:
    result: dict[str, Json] = {}
    if not table["of"]:
        return result
    of = [k for k, run in enumerate(lists[table["of"]]) for _ in range(int(run["count"]))]
    ids = [item["id"] for item in data[table["of"]]]
    for (a, i), (b, j) in itertools.permutations(zip(of, ids, strict=True), 2):
        value = table["values"][a][b]
        if value:
            result.setdefault(i, {})[j] = value
    return result
