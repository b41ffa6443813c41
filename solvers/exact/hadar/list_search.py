"""Annealing over the order in which jobs of hadar take the devices that are left; compiled."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.hadar.tables import Tables
from schedgap.solvers.incumbent import Incumbent

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Levels = dict[int, dict[int, int]]
"""The level of each job in each slot it runs in."""

Table = tuple[Ints, Ints, Ints, Ints, Bools, Ints, Floats, Ints]
"""Of the jobs: workers, first slots, targets, progress by level, types by level, types from the slowest on, utility by
finish; and the devices by type."""

State = tuple[Floats, Ints, Ints, Ints, Ints, Ints, Ints, Floats]
"""Worth of the present and the best order; positions between two snapshots; best order and its slowest levels; the
present ones; what is free, and the worth so far, at each snapshot of the present order."""

LARGEST = 2 * 10**7
"""Jobs times slots that are worth the memory of the tables."""
SHARE = 0.6
"""Of the time or work that is left."""
UNLIMITED = 20_000
"""Changes tried without any limit."""
COST = 1e-7
"""Work of one job that is placed anew."""
SECONDS = 0.2
"""Of one leg, after which the clock is looked at."""
WARM, COLD = 0.25, 0.001
"""Temperatures at first and at last, of the mean utility of a job."""


class ListSearch:
    """Jobs one after another, each as early as what the earlier ones leave allows, in orders that are annealed.

    In each slot from its arrival on, a job runs at the fastest level that the free devices still give it, down to a
    slowest one of its own, on the slowest types that level allows. Where an order is changed, only the jobs from there
    on are placed again. It proves nothing, and not every schedule comes from an order.

    Parameters
    ----------
    data : the instance
    must : every job has to finish
    """

    def __init__(self, data: Tables, must: bool) -> None:
        jobs, kinds = data.jobs, len(data.types)
        most = max([1, *(job.levels for job in jobs)])
        self.data = data
        self._slowest = np.array([max(0, job.levels - 1) for job in jobs], dtype=np.int64)
        step = np.zeros((len(jobs), most), dtype=np.int64)
        allowed = np.zeros((len(jobs), most, kinds), dtype=np.bool_)
        for j, job in enumerate(jobs):
            step[j, : job.levels], allowed[j, : job.levels] = job.step, job.allowed
        utility = np.array([job.utility for job in jobs])
        if must:  # to finish is worth more than all utilities, and sooner is better
            utility = np.where(np.arange(data.horizon + 1) > 0, utility + float(utility.max(axis=1).sum()) + 1.0, 0.0)
        self._table: Table = (
            np.array([job.workers for job in jobs], dtype=np.int64),
            np.array([max(1, job.arrival) for job in jobs], dtype=np.int64),
            np.array([job.target for job in jobs], dtype=np.int64),
            step,
            allowed,
            np.argsort([job.type_step for job in jobs], axis=1, kind="stable").astype(np.int64),
            utility,
            data.capacity,
        )
        self._mean = float(np.mean([job.most for job in jobs]))

    def run(self, best: Incumbent, found: Callable[[Levels], None]) -> None:
        """Anneal in a share of what is left of the time or work.

        Parameters
        ----------
        best : says what is left, and counts the work
        found : is given the best levels at the end
        """
        jobs, work = len(self.data.jobs), best.work_left(SHARE)
        rng = np.random.default_rng(best.options.seed)
        order, slowest = self._first(), self._slowest
        state = _start(order, slowest, self._table)
        total = UNLIMITED if work is None else max(1, int(work / (COST * jobs)))
        seconds = best.seconds_left(SHARE)
        began, done, leg = time.monotonic(), 0, 50
        share = 0.0
        while share < 1.0 and not best.finished():
            self._leg(leg, share, rng, state)
            done += leg
            best.work += COST * jobs * leg
            if seconds is None:
                share = done / total
            else:
                spent = max(1e-3, time.monotonic() - began)
                share = max(spent / seconds, done / total if work is not None else 0.0)
                if work is None:
                    leg = max(1, min(2 * leg, int(leg * SECONDS / spent * done / leg)))
        found(self._best(state))
        best.info["orders tried"] = done

    def _leg(self, count: int, share: float, rng: np.random.Generator, state: State) -> None:
        """So many changes after this share of the cooling."""
        _anneal(count, self._mean * WARM * (COLD / WARM) ** share, rng, self._slowest, state, self._table)

    def _best(self, state: State) -> Levels:
        levels = np.zeros((len(self.data.jobs), self.data.horizon + 1), dtype=np.int64)
        _place(state[2], state[3], levels, self._table)
        return {j: {int(t): int(own[t]) - 1 for t in np.flatnonzero(own)} for j, own in enumerate(levels) if own.any()}

    def _first(self) -> Ints:
        """The order of the largest utility for a device-slot, or for a device and the root of the slots."""
        jobs, slowest = self.data.jobs, self._slowest
        orders = [
            np.argsort(
                [-job.most / (max(1, job.workers) * max(1, job.min_slots) ** power) for job in jobs], kind="stable"
            )
            for power in (1.0, 0.5)
        ]
        return max(orders, key=lambda order: float(_start(order, slowest, self._table)[0][0]))


@njit_cached
def _empty(slots: int, capacity: Ints) -> Ints:  # pragma: no cover - compiled
    """(T + 1, R + 1) devices free by slot and type, and all of them."""
    free = np.zeros((slots, len(capacity) + 1), dtype=np.int64)
    for t in range(slots):
        free[t, :-1] = capacity
        free[t, -1] = capacity.sum()
    return free


@njit_cached
def _start(order: Ints, slowest: Ints, table: Table) -> State:  # pragma: no cover - compiled
    jobs, slots = table[6].shape
    gap = max(1, int(np.sqrt(jobs)))
    now = _empty(slots, table[7])
    count = (jobs - 1) // gap + 1
    free = np.zeros((count, *now.shape), dtype=np.int64)
    worth = np.zeros(count)
    total = 0.0
    for q in range(jobs):
        if q % gap == 0:
            free[q // gap], worth[q // gap] = now, total
        total += _job(order[q], slowest, now, table)
    return (
        np.array([total, total]),
        np.array([gap]),
        order.copy(),
        slowest.copy(),
        order.copy(),
        slowest.copy(),
        free,
        worth,
    )


@njit_cached
def _level(j: int, t: int, least: int, free: Ints, workers: Ints, allowed: Bools) -> int:  # pragma: no cover - compiled
    """The fastest level down to `least` that the free devices give a job in a slot; -1 for none."""
    kinds = allowed.shape[2]
    if free[t, kinds] < workers[j]:
        return -1
    for level in range(least + 1):
        there = 0
        for r in range(kinds):
            if allowed[j, level, r]:
                there += free[t, r]
        if there >= workers[j]:
            return level
    return -1


@njit_cached
def _job(j: int, slowest: Ints, free: Ints, table: Table) -> float:  # pragma: no cover - compiled
    """Take what a job needs from what is free; its utility, 0 where it does not finish and takes nothing."""
    workers, arrival, target, step, allowed, types, utility, _ = table
    done, finish = 0, 0
    for t in range(arrival[j], utility.shape[1]):
        level = _level(j, t, slowest[j], free, workers, allowed)
        if level >= 0:
            done += step[j, level]
            if done >= target[j]:
                finish = t
                break
    if finish == 0 or utility[j, finish] <= 0.0:
        return 0.0
    for t in range(arrival[j], finish + 1):
        level = _level(j, t, slowest[j], free, workers, allowed)
        if level >= 0:
            need = workers[j]
            free[t, types.shape[1]] -= need
            for k in range(types.shape[1]):
                r = types[j, k]
                if allowed[j, level, r]:
                    take = min(need, free[t, r])
                    free[t, r] -= take
                    need -= take
    return float(utility[j, finish])


@njit_cached
def _place(order: Ints, slowest: Ints, levels: Ints, table: Table) -> None:  # pragma: no cover - compiled
    """(J, T + 1) one more than the level of each job in each slot, 0 where it does not run."""
    slots = levels.shape[1]
    free = _empty(slots, table[7])
    for j in order:
        before = free.copy()
        if _job(j, slowest, free, table) > 0.0:
            for t in range(slots):
                if (before[t] != free[t]).any():
                    levels[j, t] = 1 + _level(j, t, slowest[j], before, table[0], table[4])


@njit_cached
def _move(order: Ints, source: int, goal: int) -> None:  # pragma: no cover - compiled
    job = order[source]
    way = 1 if source < goal else -1
    for k in range(source, goal, way):
        order[k] = order[k + way]
    order[goal] = job


@njit_cached
def _anneal(
    count: int, temperature: float, rng: np.random.Generator, most: Ints, state: State, table: Table
) -> None:  # pragma: no cover - compiled
    """Try so many changes at one temperature; only what follows the last snapshot before a change is done anew."""
    value, gaps, best_order, best_slowest, order, slowest, free, worth = state
    jobs, gap = len(order), gaps[0]
    trial_free, trial_worth = free.copy(), worth.copy()
    for _ in range(count):
        a = int(rng.integers(0, jobs))
        if rng.random() < 0.5:
            b = int(rng.integers(0, jobs))
        else:
            b = min(jobs - 1, max(0, a + int(rng.integers(-15, 16))))
        kind = int(rng.integers(0, 3))
        first, last, old = min(a, b), max(a, b), slowest[order[a]]
        if kind == 0:
            order[a], order[b] = order[b], order[a]
        elif kind == 1:
            _move(order, a, b)
        else:
            first = last = a
            slowest[order[a]] = rng.integers(0, most[order[a]] + 1)
        begin = first // gap
        now, total = free[begin].copy(), worth[begin]
        end = len(worth)
        for q in range(begin * gap, jobs):
            if q % gap == 0:
                k = q // gap
                if q > last and (now == free[k]).all():  # what follows is as before
                    total += value[0] - worth[k]
                    end = k
                    break
                trial_free[k], trial_worth[k] = now, total
            total += _job(order[q], slowest, now, table)
        gain = total - value[0]
        if gain >= 0.0 or rng.random() < np.exp(gain / temperature):
            for k in range(begin, len(worth)):
                if k < end:
                    free[k], worth[k] = trial_free[k], trial_worth[k]
                else:
                    worth[k] += gain
            value[0] = total
            if total > value[1]:
                value[1] = total
                best_order[:], best_slowest[:] = order, slowest
        elif kind == 0:
            order[a], order[b] = order[b], order[a]
        elif kind == 1:
            _move(order, b, a)
        else:
            slowest[order[a]] = old
