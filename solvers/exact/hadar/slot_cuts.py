"""Cuts for hadar's master: which gangs can run together in one slot.

A running job is of a *class* (W, the set of device types its level allows). How many jobs of each class run in
a slot is a vector n of whole numbers, and whether it fits is decided by Hall's condition over sets of types.
The capacity rows of P2 allow convex combinations outside the hull of these vectors: on 2 + 2 + 2 devices, 4/3
gangs of 3 that use two of the types, where only one fits. An inequality ``alpha n <= 1`` that every fitting n
satisfies, alpha >= 0, cuts them off. It charges a job by slot and class, so pricing only sees another cost of a
slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.hadar.tables import ProgressTables
from schedgap.solvers.linear_program import INFINITY, LinearProgram

VIOLATION = 1e-3
"""A cut must be violated by this much."""


MOST_PACKINGS = 4000
"""With more maximal packings than this there are no cuts."""


MOST_STEPS = 40_000
"""Nor with more steps than this to find them: about half a second."""


class SlotCuts:
    """The classes of an instance and the cuts so far; its maximal packings of one slot when a cut is looked for first.

    Parameters
    ----------
    data : the instance's tables
    """

    def __init__(self, data: ProgressTables) -> None:
        self.horizon = data.horizon
        wanted: dict[tuple[int, int], int] = {}
        self.classes: list[Ints] = []
        most: dict[tuple[int, int], int] = {}
        for job in data.jobs:
            own = [(job.workers, sum(1 << int(r) for r in np.flatnonzero(row))) for row in job.allowed]
            for key in own:
                wanted.setdefault(key, len(wanted))
                most[key] = most.get(key, 0) + 1
            self.classes.append(np.array([wanted[key] for key in own], dtype=np.int64))
        self.keys = list(wanted)
        self._most = [most[key] for key in self.keys]
        self._capacity: list[int] = data.capacity.tolist()
        self.slots = np.zeros(0, dtype=np.int64)
        self.alpha = np.zeros((0, len(self.keys)))
        self._separator: LinearProgram | None = None

    @cached_property
    def packings(self) -> Ints | None:
        """(packings, classes) the maximal packings of one slot; None where there are too many."""
        return maximal_packings(self.keys, self._most, self._capacity)

    def charges(self, duals: Floats) -> Floats | None:
        """(T + 1, classes) what a job of a class pays for running in a slot, from the cuts' duals."""
        if not len(duals):
            return None
        charges = np.zeros((self.horizon + 1, len(self.keys)))
        np.add.at(charges, self.slots[: len(duals)], duals[:, None] * self.alpha[: len(duals)])
        return charges

    def entries(self, j: int, levels: Ints, first: int = 0) -> tuple[Ints, Floats]:
        """The cuts (from number `first`) that a schedule of job j takes part in, and its coefficients."""
        if len(self.slots) == first:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        at = levels[self.slots[first:]]
        values = np.where(
            at > 0, self.alpha[np.arange(first, len(self.slots)), self.classes[j][np.maximum(at, 1) - 1]], 0
        )
        where = np.flatnonzero(values)
        return where + first, values[where]

    def load(self, schedules: Sequence[tuple[int, Ints, float]]) -> Floats:
        """(T + 1, classes) how much of each class runs in each slot, for weighted (job, levels, weight)."""
        load = np.zeros((self.horizon + 1, len(self.keys)))
        for j, levels, weight in schedules:
            slots = np.flatnonzero(levels)
            np.add.at(load, (slots, self.classes[j][levels[slots] - 1]), weight)
        return load

    def separate(self, load: Floats) -> int:
        """Add the most violated cut of every slot; returns how many were added."""
        if self.packings is None:
            return 0
        found: list[tuple[int, Floats]] = []
        for slot in range(1, self.horizon + 1):
            if load[slot].sum() <= 1 + VIOLATION:
                continue
            alpha = self._cut(load[slot])
            if float(alpha @ load[slot]) > 1 + VIOLATION:
                found.append((slot, alpha))
        if found:
            self.slots = np.append(self.slots, [slot for slot, _ in found])
            self.alpha = np.vstack([self.alpha, [alpha for _, alpha in found]])
        return len(found)

    def _cut(self, load: Floats) -> Floats:
        """max alpha load, alpha n <= 1 for every maximal packing n, 0 <= alpha <= 1."""
        assert self.packings is not None
        if self._separator is None:
            self._separator = _separator(self.packings)
        # a little on every class lifts the coefficients of those that do not run here
        self._separator.set_costs(np.arange(len(load)), -(load + 1e-4))
        found = self._separator.solve()
        if found is None:  # 0 is feasible, and 1 the largest coefficient: HiGHS gave up
            return np.zeros(len(load))
        alpha = np.clip(found.x, 0.0, 1.0)
        alpha[alpha < 1e-9] = 0.0
        return np.asarray(alpha / max(1.0, float((self.packings @ alpha).max())))


def _separator(packings: Ints) -> LinearProgram:
    rows, n = packings.shape
    program = LinearProgram()
    program.add_columns(np.zeros(n), np.ones(n))
    used = [np.flatnonzero(packing) for packing in packings]
    entries = [(index, packing[index].astype(float)) for index, packing in zip(used, packings, strict=True)]
    program.add_rows(np.full(rows, -INFINITY), np.ones(rows), entries)
    return program


def maximal_packings(keys: Sequence[tuple[int, int]], most: Sequence[int], capacity: Sequence[int]) -> Ints | None:
    """(packings, classes) the maximal numbers of gangs by class that fit one slot; None where there are too many.

    Parameters
    ----------
    keys : (workers, set of types as bits) of each class
    most : jobs of each class
    capacity : devices by type
    """
    sets = np.arange(1 << len(capacity))
    room = sum((((sets >> r) & 1) * c for r, c in enumerate(capacity)), np.zeros_like(sets))
    weight = np.array([[w if (s & mask) == mask else 0 for s in sets] for w, mask in keys]).reshape(
        len(keys), len(sets)
    )
    found: list[Ints] = []
    counts = np.zeros(len(keys), dtype=np.int64)
    steps = 0

    def extend(position: int, left: Ints) -> bool:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS or len(found) > MOST_PACKINGS:
            return False
        if position == len(keys):
            fits = (weight <= left[None, :]).all(axis=1) & (counts < np.array(most))
            if not fits.any():
                found.append(counts.copy())
            return True
        free = left.copy()
        for count in range(most[position] + 1):
            counts[position] = count
            if not extend(position + 1, free):
                return False
            free = free - weight[position]
            if (free < 0).any():
                break
        counts[position] = 0
        return True

    if len(capacity) > 8 or not extend(0, room):
        return None
    return np.array(found, dtype=np.int64).reshape(len(found), len(keys))
