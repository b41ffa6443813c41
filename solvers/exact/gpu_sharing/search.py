"""A compiled local search for gpu-sharing: good schedules of a few dozen jobs, which the exact method starts from."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices, placed
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import propose_initial

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_FAR = 1 << 40


@dataclass(frozen=True)
class OverlapSchedule:
    """A schedule by overlap counts: start and last slot, mode index, (J, J) overlaps; sum of last slots."""

    start: Ints
    end: Ints
    mode: Ints
    overlap: Ints
    total: int

    def solution(self, instance: GpuSharingInstance, choices: Choices) -> Solution:
        """The same with GPU lists."""
        n = len(self.start)
        counts = {(j, k): int(self.overlap[j, k]) for j in range(n) for k in range(j + 1, n) if self.overlap[j, k]}
        steps = [choices.jobs[j].modes[int(m)].steps for j, m in enumerate(self.mode)]
        return placed(instance, self.start.tolist(), self.end.tolist(), counts, steps)


class Search:
    """Simulated annealing over priorities, modes and which pairs may share.

    Parameters
    ----------
    instance, choices : the instance and its modes; no job may be blocked
    seed : of all randomness
    heat : how many slots, summed over the jobs, a schedule may be worse by at first, about; 0.3 sqrt(J) where not given
    start : a schedule whose priorities and shared pairs are the first; shortest first and all pairs where not given

    Notes
    -----
    One schedule costs O(E J^2) for E events; about 30 microseconds for 16 jobs.
    """

    def __init__(
        self,
        instance: GpuSharingInstance,
        choices: Choices,
        *,
        seed: int,
        heat: float | None = None,
        start: OverlapSchedule | None = None,
    ) -> None:
        n = len(instance.jobs)
        most = max(len(choice.modes) for choice in choices.jobs)
        work = np.full((n, most), np.inf)
        for j, choice in enumerate(choices.jobs):
            work[j, : len(choice.modes)] = [float(mode.work) for mode in choice.modes]
        counts = np.array([len(choice.modes) for choice in choices.jobs], dtype=np.int64)
        fits = np.zeros((n, n, most, most), dtype=np.bool_)
        for j, k in choices.pairs:
            clashes = set(choices.clashes(j, k))
            for a in range(counts[j]):
                for b in range(counts[k]):
                    fits[j, k, a, b] = fits[k, j, b, a] = (a, b) not in clashes
        data = choices.tables
        self._problem = (
            data.arrival,
            data.gpus,
            work,
            counts,
            data.slowdown,
            fits,
            instance.total_gpus,
            instance.horizon,
        )
        self._rng = np.random.default_rng(seed)
        self._heat = 0.3 * max(1.0, float(np.sqrt(n))) if heat is None else heat
        if start is None:
            order, mode = np.argsort(work[:, 0], kind="stable"), np.zeros(n, dtype=np.int64)
            allowed, eager = np.ones((n, n), dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        else:
            order, mode = np.lexsort((work[:, 0], start.start)), start.mode.copy()
            allowed, eager = start.overlap > 0, np.zeros(n, dtype=np.bool_)
        none, nothing = np.zeros(n, dtype=np.int64), np.zeros((n, n), dtype=np.int64)
        self._now = (order, mode, allowed, eager)
        self._best = (none.copy(), none.copy(), none.copy(), nothing)
        self._sums = np.array([_FAR, _FAR], dtype=np.int64)

    def run(self, rounds: int, first: int = 0, count: int | None = None) -> None:
        """Try `count` changes from the `first` on of an annealing of so many rounds; all where not given."""
        last = rounds if count is None else min(rounds, first + count)
        _anneal(self._now, self._best, self._sums, (first, last, rounds), self._heat, self._rng, self._problem)

    @property
    def found(self) -> OverlapSchedule | None:
        """The best schedule within the horizon; None where none was found."""
        total = int(self._sums[1])
        start, end, mode, overlap = (part.copy() for part in self._best)
        return None if total >= _FAR else OverlapSchedule(start, end, mode, overlap, total)


@njit_cached
def _decode(
    order: Ints,
    mode: Ints,
    allowed: Flags,
    eager: Flags,
    arrival: Ints,
    gpus: Ints,
    work: Floats,
    slowdown: Floats,
    fits: Flags,
    total_gpus: int,
    horizon: int,
    start: Ints,
    end: Ints,
    overlap: Ints,
) -> int:  # pragma: no cover - compiled
    """List scheduling by `order`; the sum of last slots, or a huge number beyond the horizon."""
    n = len(order)
    remaining = np.empty(n)
    factor = np.ones(n)
    state = np.zeros(n, dtype=np.int64)  # 0 waiting, 1 running, 2 done
    alone = np.zeros(n, dtype=np.int64)
    overlap[:, :] = 0
    free = total_gpus
    slot = arrival.min()
    open_jobs = n
    cost = 0
    take = np.zeros(n, dtype=np.int64)
    while open_jobs > 0:
        if slot > horizon:
            return _FAR
        for place in range(n):
            j = order[place]
            if state[j] != 0 or arrival[j] > slot:
                continue
            need = gpus[j]
            take[:] = 0
            if free < need or eager[j]:
                if free + alone.sum() < need:
                    continue
                first = 0 if eager[j] else free
                need -= min(first, need)
                while need > 0:
                    best, best_cost = -1, 1e18
                    for k in range(n):
                        if state[k] != 1 or alone[k] == 0 or take[k] > 0 or not allowed[j, k]:
                            continue
                        if not fits[j, k, mode[j], mode[k]]:
                            continue
                        loss = remaining[k] * max(0.0, slowdown[k, j] - factor[k]) + work[j, mode[j]] * (
                            slowdown[j, k] - 1
                        )
                        loss /= min(need, alone[k])
                        if loss < best_cost:
                            best, best_cost = k, loss
                    if best < 0:
                        break
                    take[best] = min(need, alone[best])
                    need -= take[best]
                need = gpus[j] - take.sum()
                if need > free:
                    continue
            free -= need
            alone[j] = need
            state[j] = 1
            start[j] = slot
            remaining[j] = work[j, mode[j]]
            factor[j] = 1.0
            for k in range(n):
                if take[k] > 0:
                    overlap[j, k] = overlap[k, j] = take[k]
                    alone[k] -= take[k]
                    factor[j] = max(factor[j], slowdown[j, k])
                    factor[k] = max(factor[k], slowdown[k, j])
        ahead = _FAR
        for j in range(n):
            if state[j] == 1:
                ahead = min(ahead, max(1, int(np.ceil(remaining[j] * factor[j] - 1e-11 * work[j, mode[j]]))))
            elif state[j] == 0 and arrival[j] > slot:
                ahead = min(ahead, arrival[j] - slot)
        if ahead == _FAR:
            return _FAR
        for j in range(n):
            if state[j] == 1:
                remaining[j] -= ahead / factor[j]
        last = slot + ahead - 1
        slot += ahead
        for j in range(n):
            if state[j] == 1 and remaining[j] <= 1e-11 * work[j, mode[j]]:
                state[j] = 2
                end[j] = last
                cost += last
                open_jobs -= 1
                free += alone[j]
                alone[j] = 0
                for k in range(n):
                    if state[k] == 1 and overlap[j, k] > 0:
                        alone[k] += overlap[j, k]
        for j in range(n):
            if state[j] == 1:
                factor[j] = 1.0
                for k in range(n):
                    if state[k] == 1 and overlap[j, k] > 0:
                        factor[j] = max(factor[j], slowdown[j, k])
    if end.max() > horizon:
        return _FAR
    return cost


@njit_cached
def _anneal(
    state: tuple[Ints, Ints, Flags, Flags],
    kept_best: tuple[Ints, Ints, Ints, Ints],
    sums: Ints,
    part: tuple[int, int, int],
    heat: float,
    rng: np.random.Generator,
    problem: tuple[Ints, Ints, Floats, Ints, Floats, Flags, int, int],
) -> None:  # pragma: no cover - compiled
    """A part (from, to, of how many) of an annealing in four coolings; `sums` are of the present and the best one."""
    arrival, gpus, work, counts, slowdown, fits, total_gpus, horizon = problem
    order, mode, allowed, eager = state
    best_start, best_end, best_mode, best_overlap = kept_best
    n = len(arrival)
    start, end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    overlap = np.zeros((n, n), dtype=np.int64)
    first, last, rounds = part
    for r in range(first - 1 if first == 0 else first, last):  # one more at the beginning: the state as it is
        phase = (r % max(1, rounds // 4)) / max(1, rounds // 4)
        limit = heat * (1 - phase) + 0.05
        kind = int(10 * rng.random())
        a, b = int(n * rng.random()), int(n * rng.random())
        old_mode, old_allowed = mode[a], allowed[a, b]
        before = order.copy()
        if r < 0:
            kind = 10
        elif kind < 3:
            order[a], order[b] = before[b], before[a]
        elif kind < 6:
            moved = before[a]
            if a < b:
                order[a:b] = before[a + 1 : b + 1]
            else:
                order[b + 1 : a + 1] = before[b:a]
            order[b] = moved
        elif kind < 8:
            allowed[a, b] = not old_allowed
        elif kind < 9:
            mode[a] = int(counts[a] * rng.random())
        else:
            eager[a] = not eager[a]
        value = _decode(
            order, mode, allowed, eager, arrival, gpus, work, slowdown, fits, total_gpus, horizon, start, end, overlap
        )
        if value <= sums[0] or rng.random() < np.exp((sums[0] - value) / limit):
            sums[0] = value
            if value < sums[1]:
                sums[1] = value
                best_start[:], best_end[:], best_mode[:] = start, end, mode
                best_overlap[:, :] = overlap
        else:
            order[:] = before
            mode[a], allowed[a, b] = old_mode, old_allowed
            if kind == 9:
                eager[a] = not eager[a]


def _compile() -> None:
    """Compile now, or load what is kept on disk: the clock of a solve starts after the imports."""
    one, numbers, flags = np.ones(1, dtype=np.int64), np.ones((1, 1)), np.zeros((1, 1), dtype=np.bool_)
    state = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), flags, np.zeros(1, dtype=np.bool_))
    best = (one.copy(), one.copy(), one.copy(), np.zeros((1, 1), dtype=np.int64))
    problem = (one, one, numbers, one, numbers, np.zeros((1, 1, 1, 1), dtype=np.bool_), 1, 1)
    _anneal(state, best, np.array([_FAR, _FAR]), (0, 1, 1), 1.0, np.random.default_rng(0), problem)


_compile()


# The first phase of gpu-sharing's `lns`: annealed priorities, from the start and from nothing.

MOST_JOBS = 600
"""Beyond, a single schedule takes too long."""
COST = 2e-8
"""Work of one schedule, about its seconds, over the square of the jobs."""
SHARE = 0.5
"""Of the time or work that is left."""
UNLIMITED = 2.0
"""Work without any limit."""
LEG = 0.1
"""Work after which the clock is looked at."""
FIRST = 0.5
"""Work of the first annealing; each pair of further ones takes twice as much."""
WARM = 0.01
"""Heat of an annealing from the start, of the mean completion time."""


def from_orders(
    instance: GpuSharingInstance,
    best: Incumbent,
    start: NDArray[np.int64],
    steps: list[int],
    overlap: Mapping[tuple[int, int], int],
) -> None:
    """Anneal by turns from a schedule and from shortest first, each pair twice as long, in a share of what is left.

    Parameters
    ----------
    best : receives what is better; says what is left, and counts the work
    start, steps, overlap : first slots, accumulation steps and shared GPUs by pair of the schedule
    """
    n = len(instance.jobs)
    if n > MOST_JOBS:
        return
    options = choices(instance)
    given = _as_found(options, start, steps, overlap)
    mean = float(best.objective or 0) / n
    work = best.work_left(SHARE)
    seconds = best.seconds_left(SHARE)
    work = UNLIMITED if work is None and seconds is None else work
    one = COST * n * n
    began, used = time.monotonic(), 0.0
    leg = max(1, int(LEG / one))
    tried, least = 0, math.inf
    for turn in itertools.count():
        rounds = max(4, int(FIRST * 2 ** (turn // 2) / one))
        if work is not None:
            rounds = min(rounds, max(4, int((work - used) / one)))
        search = Search(
            instance,
            options,
            seed=best.options.seed + turn,
            heat=WARM * mean if turn % 2 == 0 else None,
            start=given if turn % 2 == 0 else None,
        )
        for first in range(0, rounds, leg):
            if best.finished() or (seconds is not None and time.monotonic() - began > seconds):
                break
            search.run(rounds, first, leg)
            tried, used = tried + leg, used + one * leg
            best.work += one * leg
        found = search.found
        if found is not None and found.total < least:
            propose_initial(best, found.solution(instance, options), "orders", n)
            given, least = found, found.total
        over = seconds is not None and time.monotonic() - began > seconds
        if over or best.finished() or (work is not None and used >= work - 4 * one):
            break
    best.info["orders tried"] = tried


def _as_found(
    options: Choices, start: NDArray[np.int64], steps: list[int], overlap: Mapping[tuple[int, int], int]
) -> OverlapSchedule:
    """A schedule in the form of the search; its ends and its total are not asked for."""
    n = len(steps)
    mode = [
        next((m for m, choice in enumerate(options.jobs[j].modes) if choice.steps == s), 0) for j, s in enumerate(steps)
    ]
    shared = np.zeros((n, n), dtype=np.int64)
    for (j, k), count in overlap.items():
        shared[j, k] = shared[k, j] = count
    return OverlapSchedule(start.copy(), start.copy(), np.array(mode, dtype=np.int64), shared, 0)
