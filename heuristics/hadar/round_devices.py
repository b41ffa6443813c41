"""Devices of one round, and choices of machines, compiled: what all round-based algorithms share."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.common.arrays import Bools, Ints
from schedgap.formulations.common.compiled import njit_cached


@njit_cached
def take_type(free: Ints, kind: int, workers: int) -> Ints:  # pragma: no cover - compiled
    """(H,) `workers` devices of one type on few machines; all zero where there are too few.

    The machine with the fewest free devices that still holds the whole gang, else the fullest machines first.
    """
    machines = free.shape[0]
    taken = np.zeros(machines, dtype=np.int64)
    if free[:, kind].sum() < workers:
        return taken
    best = -1
    for h in range(machines):
        if free[h, kind] >= workers and (best < 0 or free[h, kind] < free[best, kind]):
            best = h
    if best >= 0:
        taken[best] = workers
        return taken
    need = workers
    while need > 0:
        best = -1
        for h in range(machines):
            if taken[h] == 0 and free[h, kind] > 0 and (best < 0 or free[h, kind] > free[best, kind]):
                best = h
        taken[best] = min(need, free[best, kind])
        need -= taken[best]
    return taken


@njit_cached
def take_any(free: Ints, usable: Bools, workers: int) -> Ints:  # pragma: no cover - compiled
    """(H, R) the first free usable devices in the order of machines, whatever their type; zero where too few."""
    machines, kinds = free.shape
    taken = np.zeros((machines, kinds), dtype=np.int64)
    need = workers
    for h in range(machines):
        for r in range(kinds):
            if usable[r] and need > 0:
                taken[h, r] = min(need, free[h, r])
                need -= taken[h, r]
    if need > 0:
        taken[:] = 0
    return taken


@njit_cached
def bottleneck(taken: Ints, type_step: Ints) -> int:  # pragma: no cover - compiled
    """Units of progress in a slot on these devices: the slowest type counts (1b); 0 on none."""
    slowest = 0
    for h in range(taken.shape[0]):
        for r in range(taken.shape[1]):
            if taken[h, r] > 0 and (slowest == 0 or type_step[r] < slowest):
                slowest = type_step[r]
    return slowest
