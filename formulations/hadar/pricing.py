"""Pricing of hadar's whole-horizon schedules (paper 002, eq. (4) and (8)), compiled.

For one job and prices by slot and device type: over all finish slots f, the schedule of the largest
``weight * U(f) - cost``. A slot at level l costs its W cheapest allowed devices. Progress is a state of a small
automaton (the reachable sums of whole units), so the search is one pass of dynamic programming over
(slot, state): a multiple-choice covering knapsack for all finish slots at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.hadar.tables import JobTable, small_units

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

IMPOSSIBLE = -np.inf


@dataclass(frozen=True)
class Automaton:
    """Progress of a job: states in order of progress, the last one means done."""

    following: Ints  # (S, L) the state after a slot at a level
    # the states are the reachable sums themselves; otherwise progress was rounded down to a grid, so that schedules
    # stay sound but the best one may not be found
    exact: bool

    @property
    def states(self) -> int:
        """S."""
        return len(self.following)


def automaton(job: JobTable, slots: int, largest: int = 50_000) -> Automaton:
    """The automaton of a job with at most `slots` slots to run in.

    Complexity: O(S L log S) for S states. With more than `largest` reachable sums, progress is rounded down to
    `largest` units.
    """
    step, target = small_units(job.step, job.target, slots)
    values = np.zeros(1, dtype=np.int64)
    for _ in range(slots):
        sums = np.minimum(values[:, None] + step[None, :], target)
        longer = np.unique(np.concatenate([values, sums.ravel()]))
        if len(longer) == len(values):
            break
        values = longer
        if len(values) > largest:
            return _grid(step, target, largest)
    if values[-1] != target:  # not reachable at all within the slots
        values = np.append(values, target)
    sums = np.minimum(values[:, None] + step[None, :], target)
    # beyond the slots there may be sums that are not among the values: they are never reached in time
    following = np.minimum(np.searchsorted(values, sums), len(values) - 1)
    reached = values[following] == sums
    following = np.where(reached, following, np.maximum(np.searchsorted(values, sums, side="right") - 1, 0))
    return Automaton(following.astype(np.int64), True)


def _grid(step: Ints, target: int, units: int) -> Automaton:
    """Progress rounded down to `units` units of the work."""
    steps = np.array([int(s) * units // target for s in step], dtype=np.int64)
    states = np.arange(units + 1)
    return Automaton(np.minimum(states[:, None] + steps[None, :], units).astype(np.int64), False)


@njit_cached
def slot_costs(
    price: Floats, free: Ints, workers: int, allowed: Bools, first: int, last: int
) -> tuple[Floats, Ints]:  # pragma: no cover - compiled
    """(T + 1, L) cost of a slot at each level, and (T + 1, R) types (or pools of devices) by rising price.

    `free` are the devices, (T + 1, R), or (1, R) where they are the same in every slot.
    """
    horizon, kinds = price.shape
    levels = allowed.shape[0]
    cost = np.full((horizon, levels), np.inf)
    order = np.zeros((horizon, kinds), dtype=np.int64)
    for t in range(first, last + 1):
        row = t if len(free) > 1 else 0
        for i in range(kinds):  # insertion sort: few types
            k = i
            while k > 0 and price[t, order[t, k - 1]] > price[t, i]:
                order[t, k] = order[t, k - 1]
                k -= 1
            order[t, k] = i
        for level in range(levels):
            need = workers
            total = 0.0
            for i in range(kinds):
                kind = order[t, i]
                if allowed[level, kind] and need > 0:
                    taken = min(need, free[row, kind])
                    total += taken * price[t, kind]
                    need -= taken
            if need == 0:
                cost[t, level] = total
    return cost, order


@njit_cached
def best_schedules(
    cost: Floats, utility: Floats, following: Ints, permit: Bools, finish: Bools, last: int, weight: float
) -> tuple[Floats, Ints, Ints, Ints]:  # pragma: no cover - compiled
    """The best payoff for every finish slot, and what it takes to trace the schedules back.

    Parameters
    ----------
    cost : (T + 1, L) cost of a slot at a level
    utility : (T + 1,) by finish slot
    following : (S, L) the automaton
    permit : (T + 1, L + 1) what a slot may be: column 0 idle, column l + 1 level l
    finish : (T + 1,) finish slots that may be chosen
    last : none later than this

    Returns
    -------
    tuple
        payoff (T + 1,), -inf where impossible; the state before the finishing slot and its level (T + 1, 2);
        the level (or -1) and the state before, by slot and state, (T + 1, S) each.
    """
    horizon = cost.shape[0] - 1
    states, levels = following.shape
    done = states - 1
    payoff = np.full(horizon + 1, -np.inf)
    end = np.full((horizon + 1, 2), -1, dtype=np.int64)
    level_of = np.empty((horizon + 1, states), dtype=np.int16)
    state_of = np.empty((horizon + 1, states), dtype=np.int32)
    forced = 0
    for t in range(1, horizon + 1):
        if not permit[t, 0]:
            forced = t
    now = np.full(states, np.inf)
    now[0] = 0.0
    top = 0
    for t in range(1, last + 1):
        after = np.full(states, np.inf)
        if permit[t, 0]:
            for s in range(top + 1):
                if now[s] < np.inf:
                    after[s] = now[s]
                    level_of[t, s] = -1
                    state_of[t, s] = s
        best_cost = np.inf
        reach = top
        for s in range(top + 1):
            if now[s] == np.inf:
                continue
            for level in range(levels):
                if not permit[t, level + 1] or cost[t, level] == np.inf:
                    continue
                n = following[s, level]
                c = now[s] + cost[t, level]
                if n == done:
                    if c < best_cost:
                        best_cost = c
                        end[t, 0] = s
                        end[t, 1] = level
                elif c < after[n]:
                    after[n] = c
                    level_of[t, n] = level
                    state_of[t, n] = s
                    if n > reach:
                        reach = n
        if best_cost < np.inf and t >= forced and finish[t]:
            payoff[t] = weight * utility[t] - best_cost
        now = after
        top = reach
    return payoff, end, level_of, state_of


@njit_cached
def trace(end: Ints, level_of: Ints, state_of: Ints, finish: int) -> Ints:  # pragma: no cover - compiled
    """(T + 1,) the schedule that finishes in slot `finish`: 0 idle, l + 1 level l."""
    schedule = np.zeros(end.shape[0], dtype=np.int64)
    s = end[finish, 0]
    schedule[finish] = end[finish, 1] + 1
    for t in range(finish - 1, 0, -1):
        schedule[t] = level_of[t, s] + 1
        s = state_of[t, s]
    return schedule


@njit_cached
def demand(
    schedule: Ints, order: Ints, free: Ints, workers: int, allowed: Bools
) -> Ints:  # pragma: no cover - compiled
    """(T + 1, R) devices of a schedule, the cheapest allowed ones first; `free` as in :func:`slot_costs`."""
    horizon = len(schedule)
    kinds = free.shape[1]
    used = np.zeros((horizon, kinds), dtype=np.int64)
    for t in range(horizon):
        if schedule[t] > 0:
            row = t if len(free) > 1 else 0
            need = workers
            for i in range(kinds):
                kind = order[t, i]
                if allowed[schedule[t] - 1, kind] and need > 0:
                    taken = min(need, free[row, kind])
                    used[t, kind] = taken
                    need -= taken
    return used


# Pricing of hadar at prices that are constant on blocks of slots, relaxed and compiled.
#
# Prices that are constant on blocks of slots are still feasible for P3, so ``sum c k + sum_j max(0, best payoff)``
# bounds the optimum from above; so it does when a payoff is over-estimated. Inside a block every slot of a job costs
# the same, so the cheapest way to do a job's work by a slot f, with fractions of slots and convex combinations of
# levels allowed, is a greedy choice of the smallest cost per progress: never dearer than the best schedule, so the
# payoff is never too small.


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
    order = np.argsort(slope[:count])
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
    order = np.argsort(slope[:count])
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
