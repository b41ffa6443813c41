"""Pricing of hadar's whole-horizon schedules (paper 002, eq. (4) and (8)), compiled.

For one job and prices by slot and device type: over all finish slots f, the schedule of the largest
``weight * U(f) - cost``. A slot at level l costs its W cheapest allowed devices. Progress is a state of a small
automaton (the reachable sums of whole units), so the search is one pass of dynamic programming over
(slot, state): a multiple-choice covering knapsack for all finish slots at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.hadar.tables import JobTable, small_units

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
    level_of = np.zeros((horizon + 1, states), dtype=np.int16)
    state_of = np.zeros((horizon + 1, states), dtype=np.int32)
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
