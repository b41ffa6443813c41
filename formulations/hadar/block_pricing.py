"""Pricing of hadar at prices that are constant on blocks of slots, relaxed and compiled.

Prices that are constant on blocks of slots are still feasible for P3, so ``sum c k + sum_j max(0, best
payoff)`` bounds the optimum from above; so it does when a payoff is over-estimated. Inside a block every slot
of a job costs the same, so the cheapest way to do a job's work by a slot f, with fractions of slots and convex
combinations of levels allowed, is a greedy choice of the smallest cost per progress: never dearer than the best
schedule, so the payoff is never too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.common.machine.ordering import rising_order


@dataclass(frozen=True)
class Blocks:
    """Consecutive blocks of slots."""

    # start, length: (B,) first slot and number of slots
    start: Ints
    length: Ints
    of_slot: Ints  # (T + 1,) the block of a slot; slot 0 is in none (0)


def geometric_blocks(horizon: int, growth: float) -> Blocks:
    """Blocks of 1..horizon whose length is `growth` times their first slot, at least 1; growth 0 gives slots."""
    starts = [1]
    while True:
        following = starts[-1] + max(1, int(growth * starts[-1]))
        if following > horizon:
            break
        starts.append(following)
    return blocks_from(np.array(starts, dtype=np.int64), horizon)


def blocks_from(start: Ints, horizon: int) -> Blocks:
    """Blocks that begin in these slots."""
    length = np.diff(np.append(start, horizon + 1))
    of = np.repeat(np.arange(len(start)), length)
    return Blocks(start, length, np.append(0, of))


@njit_cached
def _fill(price: Floats, capacity: Ints, workers: int, allowed: Bools) -> Ints:  # pragma: no cover - compiled
    """(R,) the cheapest W allowed devices at one slot's prices."""
    used = np.zeros(len(capacity), dtype=np.int64)
    need = workers
    while need > 0:
        best = -1
        for kind in range(len(capacity)):
            if allowed[kind] and used[kind] == 0 and (best < 0 or price[kind] < price[best]):
                best = kind
        if best < 0:
            break
        used[best] = min(need, capacity[best])
        need -= used[best]
    return used


@njit_cached
def price_job(
    price: Floats,
    capacity: Ints,
    workers: int,
    allowed: Bools,
    share: Floats,
    arrival: int,
    earliest: int,
    utility: Floats,
    start: Ints,
    length: Ints,
    of_slot: Ints,
    weight: float,
) -> tuple[float, int, Floats]:  # pragma: no cover - compiled
    """(payoff, finish slot or -1, (B, R) device-slots) of a job's best relaxed schedule at block prices.

    `share` is (L,) the part of the work a slot at a level does.
    """
    blocks, kinds = price.shape
    levels = len(share)
    devices = np.zeros((blocks, levels, kinds), dtype=np.int64)
    most = blocks * levels
    slope, gain, block = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    lower, upper = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    count = 0
    horizon = len(utility) - 1
    for b in range(of_slot[arrival], blocks):
        cost = np.zeros(levels)
        for level in range(levels):
            devices[b, level] = _fill(price[b], capacity, workers, allowed[level])
            for kind in range(kinds):
                cost[level] += devices[b, level, kind] * price[b, kind]
        # the lower hull of (0, 0) and (share, cost): segments of rising slope
        x, c, at = 0.0, 0.0, -1
        while True:
            best = -1
            for level in range(levels):
                if share[level] > x:
                    s = (cost[level] - c) / (share[level] - x)
                    if best < 0 or s < slope[count] or (s == slope[count] and share[level] > share[best]):
                        best = level
                        slope[count] = s
            if best < 0:
                break
            gain[count], block[count], lower[count], upper[count] = share[best] - x, b, at, best
            x, c, at = share[best], cost[best], best
            count += 1
    order = rising_order(slope[:count])
    room = length.copy()
    first_block = of_slot[arrival]
    room[first_block] -= arrival - start[first_block]
    payoff, finish = -np.inf, -1
    for f in range(earliest, horizon + 1):
        if weight * utility[f] <= payoff:
            break  # utilities do not rise, costs are not negative
        total = _cover(order, slope, gain, block, room, of_slot[f], f, start, first_block, arrival)
        if weight * utility[f] - total > payoff:
            payoff, finish = weight * utility[f] - total, f
    used = np.zeros((blocks, kinds))
    if finish >= 0:
        remaining = 1.0
        for i in order:
            b = block[i]
            if b > of_slot[finish] or remaining <= 0:
                continue
            slots = float(room[b])
            if b == of_slot[finish]:
                slots = float(finish - max(start[b], arrival) + 1)
            taken = min(slots, remaining / gain[i])
            remaining -= taken * gain[i]
            for kind in range(kinds):
                used[b, kind] += taken * devices[b, upper[i], kind]
                if lower[i] >= 0:
                    used[b, kind] -= taken * devices[b, lower[i], kind]
    return payoff, finish, used


@njit_part
def _cover(
    order: Ints,
    slope: Floats,
    gain: Floats,
    block: Ints,
    room: Ints,
    last_block: int,
    finish: int,
    start: Ints,
    first_block: int,
    arrival: int,
) -> float:  # pragma: no cover - compiled
    """The least cost of the whole work in the slots up to `finish`, fractions allowed; inf where impossible."""
    remaining, total = 1.0, 0.0
    for i in order:
        b = block[i]
        if b > last_block:
            continue
        slots = room[b]
        if b == last_block:
            slots = finish - max(start[b], arrival) + 1
        taken = min(slots * gain[i], remaining)
        total += taken * slope[i]
        remaining -= taken
        if remaining <= 1e-12:
            return float(total)
    return float(np.inf)


@njit_cached
def price_forked(
    price: Floats, gain: Floats, many: Floats, utility: Floats, arrival: int, start: Ints, length: Ints, of_slot: Ints
) -> tuple[float, int, Floats]:  # pragma: no cover - compiled
    """(payoff, finish slot or -1, (B, K) node-time) of a job's best relaxed forked schedule; `many` nodes a kind."""
    size, nodes = price.shape
    slope, part, block, node = (
        np.empty(size * nodes),
        np.empty(size * nodes),
        np.empty(size * nodes, np.int64),
        np.empty(size * nodes, np.int64),
    )
    count = 0
    first_block = of_slot[arrival]
    for b in range(first_block, size):
        for h in range(nodes):
            if gain[h] > 0:
                slope[count], part[count], block[count], node[count] = price[b, h] / gain[h], gain[h] * many[h], b, h
                count += 1
    order = rising_order(slope[:count])
    room = length.copy()
    room[first_block] -= arrival - start[first_block]
    payoff, finish = 0.0, -1
    for f in range(arrival, len(utility)):
        if utility[f] <= 0:
            continue
        if utility[f] <= payoff:
            break  # utilities do not rise after the earliest finish, costs are not negative
        total = _cover(order, slope, part, block, room, of_slot[f], f, start, first_block, arrival)
        if utility[f] - total > payoff:
            payoff, finish = utility[f] - total, f
    used = np.zeros((size, nodes))
    if finish > 0:
        remaining = 1.0
        for i in order:
            b = block[i]
            if b > of_slot[finish] or remaining <= 0:
                continue
            slots = room[b] if b < of_slot[finish] else finish - max(start[b], arrival) + 1
            taken = min(float(slots), remaining / part[i])
            remaining -= taken * part[i]
            used[b, node[i]] += taken * many[node[i]]
    return payoff, finish, used
