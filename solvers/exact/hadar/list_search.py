"""Annealing over the order in which jobs of hadar take the devices that are left; compiled.

Idea: jobs in an order take the fastest devices that are left, slot by slot; annealing changes the order. Source: list
scheduling with simulated annealing; that only what follows a change is placed again is ours. It proves nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_inner, njit_part
from schedgap.formulations.hadar.tables import ProgressTables
from schedgap.solvers.incumbent import Incumbent

Levels = dict[int, dict[int, int]]
"""The level of each job in each slot it runs in."""


class Problem(NamedTuple):
    """The jobs and devices of an instance, for J jobs, at most L levels, R types and T slots."""

    # workers, first, target: (J,) devices of a gang, first slot, work to be done
    workers: Ints
    first: Ints
    target: Ints
    step: Ints  # (J, L) work done in a slot, by level
    allowed: Bools  # (J, L, R) the types that a level may use
    types: Ints  # (J, R) types from the slowest on
    utility: Floats  # (J, T + 1) by finish slot, 0 where it is worth nothing
    capacity: Ints  # (R,) devices by type


class State(NamedTuple):
    """The present order and the best one, with snapshots of the present one at every `gap`-th position."""

    worth: Floats  # (2,) of the present and of the best order
    gap: Ints  # (1,) positions between two snapshots
    # best_order, best_slowest: (J,) jobs in order; the slowest level that each may use
    best_order: Ints
    best_slowest: Ints
    # order, slowest: (J,) the same of the present order
    order: Ints
    slowest: Ints
    free: Ints  # (J / gap, T + 1, R + 1) devices that are free before the position, by type and all together
    worth_before: Floats  # (J / gap,) utility of the jobs before the position


LARGEST = 2 * 10**7
"""Jobs times slots that are worth the memory of the tables."""


SHARE = 0.6
"""Share of the remaining time or work."""


UNLIMITED = 20_000
"""Changes tried without any limit."""


COST = 1e-7
"""Work of one job that is placed anew."""


SECONDS = 0.2
"""Seconds of one leg, after which the clock is looked at."""


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

    def __init__(self, data: ProgressTables, must: bool) -> None:
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
        self._problem = Problem(
            np.array([job.workers for job in jobs], dtype=np.int64),
            np.array([max(1, job.arrival) for job in jobs], dtype=np.int64),
            np.array([job.target for job in jobs], dtype=np.int64),
            step,
            allowed,
            np.argsort([job.type_step for job in jobs], axis=1, kind="stable").astype(np.int64),
            utility,
            data.capacity,
        )
        self._mean = float(np.mean([job.max_utility for job in jobs]))

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
        state = _start(order, slowest, self._problem)
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
        _anneal(count, self._mean * WARM * (COLD / WARM) ** share, rng, self._slowest, state, self._problem)

    def _best(self, state: State) -> Levels:
        levels = np.zeros((len(self.data.jobs), self.data.horizon + 1), dtype=np.int64)
        _place(state.best_order, state.best_slowest, levels, self._problem)
        return {j: {int(t): int(row[t]) - 1 for t in np.flatnonzero(row)} for j, row in enumerate(levels) if row.any()}

    def _first(self) -> Ints:
        """The order of the largest utility for a device-slot, or for a device and the root of the slots."""
        jobs, slowest = self.data.jobs, self._slowest
        orders = [
            np.argsort(
                [-job.max_utility / (max(1, job.workers) * max(1, job.min_slots) ** power) for job in jobs],
                kind="stable",
            )
            for power in (1.0, 0.5)
        ]
        return max(orders, key=lambda order: float(_start(order, slowest, self._problem).worth[0]))


@njit_part
def _empty(slots: int, capacity: Ints) -> Ints:  # pragma: no cover - compiled
    """(T + 1, R + 1) devices free by slot and type, and all of them."""
    free = np.zeros((slots, len(capacity) + 1), dtype=np.int64)
    for t in range(slots):
        free[t, :-1] = capacity
        free[t, -1] = capacity.sum()
    return free


@njit_cached
def _start(order: Ints, slowest: Ints, problem: Problem) -> State:  # pragma: no cover - compiled
    """Place all jobs in this order, with a snapshot at every position that is a multiple of about the root of J."""
    jobs, slots = problem.utility.shape
    gap = max(1, int(math.sqrt(jobs)))
    now = _empty(slots, problem.capacity)
    count = (jobs - 1) // gap + 1
    free = np.zeros((count, *now.shape), dtype=np.int64)
    worth_before = np.zeros(count)
    total = 0.0
    for q in range(jobs):
        if q % gap == 0:
            free[q // gap], worth_before[q // gap] = now, total
        total += _place_job(order[q], slowest, now, problem)
    worth = np.array([total, total])
    return State(worth, np.array([gap]), order.copy(), slowest.copy(), order.copy(), slowest.copy(), free, worth_before)


@njit_inline
def _level(j: int, t: int, least: int, free: Ints, problem: Problem) -> int:  # pragma: no cover - compiled
    """The fastest level down to `least` that the free devices give a job in a slot; -1 for none."""
    workers, allowed = problem.workers, problem.allowed
    kinds = allowed.shape[2]
    if free[t, kinds] < workers[j]:
        return -1
    for level in range(least + 1):
        devices = 0
        for r in range(kinds):
            if allowed[j, level, r]:
                devices += free[t, r]
        if devices >= workers[j]:
            return level
    return -1


@njit_inner
def _place_job(j: int, slowest: Ints, free: Ints, problem: Problem) -> float:  # pragma: no cover - compiled
    """Take what a job needs from what is free; its utility, 0 where it does not finish and takes nothing."""
    types, utility = problem.types, problem.utility
    kinds = types.shape[1]
    # First see when it would finish: one that is worth nothing then takes no devices from those behind it.
    done, finish = 0, 0
    for t in range(problem.first[j], utility.shape[1]):
        level = _level(j, t, slowest[j], free, problem)
        if level >= 0:
            done += problem.step[j, level]
            if done >= problem.target[j]:
                finish = t
                break
    if finish == 0 or utility[j, finish] <= 0.0:
        return 0.0
    # The slowest types that the level allows are taken first, so that the fast ones stay for others.
    for t in range(problem.first[j], finish + 1):
        level = _level(j, t, slowest[j], free, problem)
        if level >= 0:
            need = problem.workers[j]
            free[t, kinds] -= need
            for k in range(kinds):
                r = types[j, k]
                if problem.allowed[j, level, r]:
                    take = min(need, free[t, r])
                    free[t, r] -= take
                    need -= take
    return float(utility[j, finish])


@njit_cached
def _place(order: Ints, slowest: Ints, levels: Ints, problem: Problem) -> None:  # pragma: no cover - compiled
    """(J, T + 1) one more than the level of each job in each slot, 0 where it does not run."""
    slots = levels.shape[1]
    free = _empty(slots, problem.capacity)
    for j in order:
        before = free.copy()
        if _place_job(j, slowest, free, problem) > 0.0:
            for t in range(slots):
                if (before[t] != free[t]).any():
                    levels[j, t] = 1 + _level(j, t, slowest[j], before, problem)


@njit_inner
def _move(order: Ints, source: int, goal: int) -> None:  # pragma: no cover - compiled
    job = order[source]
    way = 1 if source < goal else -1
    for k in range(source, goal, way):
        order[k] = order[k + way]
    order[goal] = job


SWAP, SHIFT, RELEVEL = 0, 1, 2
"""Changes: two jobs swap positions, one goes to another position, one gets another slowest level."""


@njit_cached
def _anneal(
    count: int, temperature: float, rng: np.random.Generator, slowest_of_all: Ints, state: State, problem: Problem
) -> None:  # pragma: no cover - compiled
    """Try so many changes at one temperature; only what follows the last snapshot before a change is done anew."""
    order, slowest = state.order, state.slowest
    jobs = len(order)
    trial_free, trial_worth = state.free.copy(), state.worth_before.copy()
    for _ in range(count):
        a = int(rng.integers(0, jobs))
        if rng.random() < 0.5:
            b = int(rng.integers(0, jobs))
        else:
            b = min(jobs - 1, max(0, a + int(rng.integers(-15, 16))))
        kind = int(rng.integers(0, 3))
        first, last, old = min(a, b), max(a, b), slowest[order[a]]
        if kind == SWAP:
            order[a], order[b] = order[b], order[a]
        elif kind == SHIFT:
            _move(order, a, b)
        else:
            first = last = a
            slowest[order[a]] = rng.integers(0, slowest_of_all[order[a]] + 1)
        total, end = _replace_from(first, last, state, problem, trial_free, trial_worth)
        gain = total - state.worth[0]
        if gain >= 0.0 or rng.random() < math.exp(gain / temperature):
            _accept(first // state.gap[0], end, total, state, trial_free, trial_worth)
        elif kind == SWAP:
            order[a], order[b] = order[b], order[a]
        elif kind == SHIFT:
            _move(order, b, a)
        else:
            slowest[order[a]] = old


@njit_part
def _replace_from(
    first: int, last: int, state: State, problem: Problem, trial_free: Ints, trial_worth: Floats
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Place the jobs anew from the snapshot before `first` on; the total, and the snapshot from which all is as before.

    Behind the `last` position that changed, free devices that equal those of a snapshot mean an equal rest.
    """
    gap = state.gap[0]
    begin, end = first // gap, len(state.worth_before)
    now, total = state.free[begin].copy(), state.worth_before[begin]
    for q in range(begin * gap, len(state.order)):
        if q % gap == 0:
            k = q // gap
            if q > last and (now == state.free[k]).all():
                total += state.worth[0] - state.worth_before[k]
                end = k
                break
            trial_free[k], trial_worth[k] = now, total
        total += _place_job(state.order[q], state.slowest, now, problem)
    return total, end


@njit_part
def _accept(
    begin: int, end: int, total: float, state: State, trial_free: Ints, trial_worth: Floats
) -> None:  # pragma: no cover - compiled
    """Take over the snapshots that were made anew, and the order if it is the best one."""
    gain = total - state.worth[0]
    for k in range(begin, len(state.worth_before)):
        if k < end:
            state.free[k], state.worth_before[k] = trial_free[k], trial_worth[k]
        else:
            state.worth_before[k] += gain
    state.worth[0] = total
    if total > state.worth[1]:
        state.worth[1] = total
        state.best_order[:], state.best_slowest[:] = state.order, state.slowest
