"""Devices of one round, and choices of machines, compiled: what all round-based algorithms share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
def cheapest(
    free: Ints, price: Floats, usable: Bools, workers: int, machine: int
) -> tuple[Ints, float]:  # pragma: no cover - compiled
    """(H, R) the cheapest usable free devices and their cost, on one machine (or on all: -1); cost inf if too few."""
    machines, kinds = free.shape
    taken = np.zeros((machines, kinds), dtype=np.int64)
    first, last = (0, machines) if machine < 0 else (machine, machine + 1)
    pools = (last - first) * kinds
    value = np.empty(pools)
    for i in range(pools):
        h, r = first + i // kinds, i % kinds
        value[i] = price[h, r] if usable[r] and free[h, r] > 0 else np.inf
    need, cost = workers, 0.0
    for i in np.argsort(value):
        if need == 0 or value[i] == np.inf:
            break
        h, r = first + i // kinds, i % kinds
        taken[h, r] = min(need, free[h, r])
        need -= taken[h, r]
        cost += taken[h, r] * value[i]
    return taken, cost if need == 0 else np.inf


@njit_cached
def cost_on_one(
    free: Ints, price: Floats, usable: Bools, workers: int, machine: int
) -> float:  # pragma: no cover - compiled
    """The cost of the cheapest usable free devices of one machine; inf where there are too few. Allocates nothing."""
    kinds = free.shape[1]
    need, cost = workers, 0.0
    paid, last = -1.0, -1  # types are taken by (price, number)
    while need > 0:
        best = -1
        for r in range(kinds):
            if not usable[r] or free[machine, r] == 0:
                continue
            later = price[machine, r] > paid or (price[machine, r] == paid and r > last)
            if later and (best < 0 or price[machine, r] < price[machine, best]):
                best = r
        if best < 0:
            return np.inf
        taken = min(need, free[machine, best])
        need -= taken
        cost += taken * price[machine, best]
        paid, last = price[machine, best], best
    return cost


@njit_cached
def bottleneck(taken: Ints, type_step: Ints) -> int:  # pragma: no cover - compiled
    """Units of progress in a slot on these devices: the slowest type counts (1b); 0 on none."""
    slowest = 0
    for h in range(taken.shape[0]):
        for r in range(taken.shape[1]):
            if taken[h, r] > 0 and (slowest == 0 or type_step[r] < slowest):
                slowest = type_step[r]
    return slowest
