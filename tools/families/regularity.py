"""How regular an instance is, and making one more so for as long as its value stays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schedgap.benchmarks.hunt.fields import fields_of, value_at
from schedgap.benchmarks.hunt.limits import Space
from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.shrink import Tried, lowered, roughness, shrunk
from schedgap.benchmarks.hunt.target import Probe, entries
from schedgap.formulations.common.instance import Json
from schedgap.tools.families.forms import (
    bare,
    fewest_runs,
    skeleton,
)

PLATEAU = 400
"""Random changes that look for other instances of the same value."""


STEPS = 150
"""Random changes that may make an instance more regular, before it is shrunk."""


def irregular(data: Mapping[str, Json], space: Space) -> tuple[float, ...]:
    """(what is needed to write it down, entries, roughness of its numbers): what is made small.

    To be written down are the kinds of entries, the runs, the numbers that change along a run, and the values of the
    numbers of one pattern.
    """
    length, entries, rough = 0, 0, 0.0
    spots = [spot for spot in fields_of(space.schema, data) if spot.kind in (int, float)]
    numbers: dict[tuple[str | int, ...], float] = {spot.path: value_at(data, spot.path) for spot in spots}
    distinct = {(spot.pattern, numbers[spot.path]) for spot in spots if not isinstance(data[str(spot.path[0])], list)}
    patterns = {spot.path: spot.pattern for spot in spots}
    for name, items in data.items():
        if not isinstance(items, list):
            continue
        length += len({skeleton(bare(item)) for item in items})
        entries, start = entries + len(items), 0
        for count in fewest_runs(items):
            length += 1
            for path in [path for path in numbers if path[:2] == (name, start)]:
                rough += roughness(numbers[path])
                distinct.add((patterns[path], numbers[path]))
                step = numbers[(name, start + 1, *path[2:])] - numbers[path] if count > 1 else 0
                length += step != 0
                rough += roughness(step)
            start += count
    rough += sum(roughness(value) for path, value in numbers.items() if not isinstance(data[str(path[0])], list))
    return length + len(distinct), entries, round(rough, 9)


def made_regular(found: Probe, space: Space, tried: Tried, rng: np.random.Generator, steps: int = STEPS) -> Probe:
    """The same value, or more, in fewer runs, fewer entries, rounder numbers.

    Random changes first, which may add entries (a run is completed), then the shrinking of every hunt.

    Parameters
    ----------
    tried : evaluates an instance; None where the value is lower than it has to be
    """
    current, now = found, irregular(found.data, space)
    for _ in range(steps):
        changed = mutated(current.data, space, rng, current.data)
        if changed is None or irregular(changed, space) > now:
            continue
        better = tried(changed)
        if better is not None:
            current, now = better, irregular(changed, space)
    return shrunk(current, space, tried, measure=irregular, more=(lowered,))


def plateau(found: Probe, space: Space, tried: Tried, rng: np.random.Generator, steps: int = PLATEAU) -> list[Probe]:
    """Other instances of the same value with no more entries, met on a random walk."""
    met: dict[str, Probe] = {}
    current, most = found, entries(found.data)
    for _ in range(steps):
        changed = mutated(current.data, space, rng, current.data)
        if changed is None or entries(changed) > most:
            continue
        other = tried(changed)
        if other is not None:
            current = other
            met.setdefault(str(other.key[-1]), other)
    return list(met.values())
