"""Good schedules for hadar by inserting jobs one at a time, and by removing and inserting again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.hadar.tables import Tables
from schedgap.solvers.exact.hadar.schedules import Prices, Rules, Schedule, Scheduler

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_TYPES = 12
"""Fits are decided over all subsets of device types, 2^R of them."""

Chosen = list[Schedule | None]
"""The schedule of each job, None where it is rejected."""


class Packing:
    """Which levels still fit in which slot.

    Devices of a slot are a transportation problem from jobs (W devices each, of the types their level allows) to
    types. It has a solution exactly when for every set S of types the jobs whose allowed types all lie in S want
    no more than S has (Hall's condition). ``load[t, S]`` is what they want.
    """

    def __init__(self, data: Tables) -> None:
        if len(data.types) > MOST_TYPES:
            raise ValueError(f"at most {MOST_TYPES} device types")
        self.data = data
        sets = np.arange(1 << len(data.types))
        self.sets = sets
        self.room = sum((((sets >> r) & 1) * int(c) for r, c in enumerate(data.capacity)), np.zeros_like(sets))
        self.load = np.zeros((data.horizon + 1, len(sets)), dtype=np.int64)
        self.masks = [
            np.array([sum(1 << r for r in np.flatnonzero(row)) for row in job.allowed], dtype=np.int64)
            for job in data.jobs
        ]

    def permits(self, j: int, permit: Bools) -> Bools:
        """`permit` (T + 1, L + 1) without the levels that do not fit any more."""
        return _permits(permit, self.load, self.room, self.masks[j], self.data.jobs[j].workers)

    def change(self, j: int, schedule: Schedule, sign: int) -> None:
        """Add (+1) or remove (-1) a job's schedule."""
        for t in np.flatnonzero(schedule.levels):
            mask = self.masks[j][schedule.levels[t] - 1]
            self.load[t, (self.sets & mask) == mask] += sign * self.data.jobs[j].workers


@numba.njit(cache=True)
def _permits(permit: Bools, load: Ints, room: Ints, masks: Ints, workers: int) -> Bools:  # pragma: no cover - compiled
    found = permit.copy()
    for t in range(1, permit.shape[0]):
        for level in range(len(masks)):
            if not found[t, level + 1]:
                continue
            mask = masks[level]
            for s in range(len(room)):
                if (s & mask) == mask and load[t, s] + workers > room[s]:
                    found[t, level + 1] = False
                    break
    return found


class Improver:
    """Builds and improves feasible choices of schedules; deterministic for a seed.

    Parameters
    ----------
    scheduler : schedules of the jobs
    must : whether unfinished jobs count first (P1)
    seed : of the order in which jobs are tried
    """

    def __init__(self, scheduler: Scheduler, must: bool, seed: int) -> None:
        self.scheduler = scheduler
        self.must = must
        self.rng = np.random.default_rng(seed)
        jobs = scheduler.data.jobs
        self.flat = [
            np.linspace(1.0, 0.0, scheduler.horizon + 1) + job.utility if must else job.utility for job in jobs
        ]

    def key(self, chosen: Sequence[Schedule | None]) -> tuple[int, float]:
        """(unfinished jobs that must finish, negative; utility): larger is better."""
        worth = sum(
            float(job.utility[s.finish])
            for job, s in zip(self.scheduler.data.jobs, chosen, strict=True)
            if s is not None
        )
        missing = sum(s is None for s in chosen) if self.must else 0
        return -missing, worth

    def insert(self, chosen: Chosen, packing: Packing, order: Sequence[int], price: Prices) -> None:
        """Give every job of `order` that has no schedule the best one that fits, by utility less its cost."""
        for j in order:
            if chosen[j] is not None:
                continue
            free = self.scheduler.free_rules[j]
            rules = Rules(packing.permits(j, free.permit), free.finish, False)
            payoff, found = self.scheduler.best(j, price, rules, 1.0, self.flat[j])
            finish = int(np.argmax(payoff))
            if np.isfinite(payoff[finish]) and (self.must or self.scheduler.data.jobs[j].utility[finish] > 0):
                schedule = Schedule(found.levels(finish), finish)
                chosen[j] = schedule
                packing.change(j, schedule, 1)

    def complete(self, wanted: Sequence[tuple[int, Schedule]], price: Prices) -> Chosen:
        """Take the wanted (job, schedule) pairs in order where they fit, then insert the other jobs."""
        jobs = self.scheduler.data.jobs
        chosen: Chosen = [None] * len(jobs)
        packing = Packing(self.scheduler.data)
        for j, schedule in wanted:
            if chosen[j] is None:
                permit = packing.permits(j, self.scheduler.free_rules[j].permit)
                if permit[np.arange(len(schedule.levels)), schedule.levels].all():
                    chosen[j] = schedule
                    packing.change(j, schedule, 1)
        order = np.argsort([-job.most / max(1, job.workers * job.min_slots) for job in jobs])
        self.insert(chosen, packing, [int(j) for j in order], price.scaled(0.5))
        return chosen

    def improve(self, chosen: Chosen, price: Prices, rounds: int, stop: Callable[[], bool]) -> Chosen:
        """Remove a few jobs and insert all that are out again, `rounds` times; returns the best seen.

        Insertion prices are perturbed at random. A trial is kept when it is not worse, or worse by less than a
        temperature that falls from 2% of the utility to 0.
        """
        n = len(chosen)
        best, best_key = list(chosen), self.key(chosen)
        now, now_key = best, best_key
        packing = Packing(self.scheduler.data)
        for j, schedule in enumerate(best):
            if schedule is not None:
                packing.change(j, schedule, 1)
        for step in range(rounds):
            if stop():
                break
            trial = list(now)
            inside = [j for j in range(n) if trial[j] is not None]
            size = min(len(inside), int(self.rng.integers(1, 7)))
            removed = [int(j) for j in self.rng.permutation(inside)[:size]] if inside else []
            saved = packing.load.copy()
            for j in removed:
                schedule = trial[j]
                if schedule is not None:
                    packing.change(j, schedule, -1)
                    trial[j] = None
            order = [int(j) for j in self.rng.permutation([j for j in range(n) if trial[j] is None])]
            factor = float(self.rng.choice([0.0, 0.3, 0.6, 1.0]))
            noise = self.rng.uniform(0.4, 1.6, price.devices.shape)
            self.insert(trial, packing, order, Prices(factor * noise * price.devices))
            trial_key = self.key(trial)
            warmth = 0.02 * (1 - step / rounds) ** 2 * abs(best_key[1]) * float(self.rng.random())
            if trial_key[0] >= now_key[0] and trial_key[1] >= now_key[1] - warmth:
                now, now_key = trial, trial_key
                if now_key > best_key:
                    best, best_key = now, now_key
            else:
                packing.load = saved
        return best
