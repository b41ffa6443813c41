"""A compiled local search for gpu-sharing: good schedules of a few dozen jobs, which the exact method starts from.

Idea: a schedule is made from an order of jobs, their steps and who may share with whom; annealing changes these.
Source: simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983). It proves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_inner, njit_part
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.gpu_lists import placed
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices

_FAR = 1 << 40


_DONE = 1e-11
"""Share of its work below which a job has ended."""


WAITING, RUNNING, DONE = 0, 1, 2


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
    seed : seed of all randomness
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
        self._jobs = Jobs(
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
        self._now = Genes(order, mode, allowed, eager)
        self._best = (none.copy(), none.copy(), none.copy(), nothing)
        self._sums = np.array([_FAR, _FAR], dtype=np.int64)

    def run(self, rounds: int, first: int = 0, count: int | None = None) -> None:
        """Try `count` changes from the `first` on of an annealing of so many rounds; all where not given."""
        last = rounds if count is None else min(rounds, first + count)
        _anneal(self._now, self._best, self._sums, (first, last, rounds), self._heat, self._rng, self._jobs)

    @property
    def found(self) -> OverlapSchedule | None:
        """The best schedule within the horizon; None where none was found."""
        total = int(self._sums[1])
        start, end, mode, overlap = (part.copy() for part in self._best)
        return None if total >= _FAR else OverlapSchedule(start, end, mode, overlap, total)


class Jobs(NamedTuple):
    """What is to be scheduled, for compiled code."""

    # arrival, gpus: (J,)
    arrival: Ints
    gpus: Ints
    work: Floats  # (J, M) slots alone by mode
    counts: Ints  # (J,) how many modes there are
    slowdown: Floats  # (J, J) xi
    fits: Bools  # (J, J, M, M) whether two jobs fit one GPU in these modes
    # total_gpus, horizon: of the instance
    total_gpus: int
    horizon: int


class Genes(NamedTuple):
    """What a schedule is made of: an order, a mode by job, who may share, and who shares though GPUs are free."""

    order: Ints
    mode: Ints
    allowed: Bools
    eager: Bools


class Run(NamedTuple):
    """A schedule while it is made; arrays that compiled code changes."""

    # start, end, overlap: (J,), (J,) and (J, J), the schedule
    start: Ints
    end: Ints
    overlap: Ints
    # remaining, factor: (J,) slots alone to go, and the present slowdown
    remaining: Floats
    factor: Floats
    state: Ints  # (J,) WAITING, RUNNING or DONE
    alone: Ints  # (J,) GPUs that a running job shares with nobody
    take: Ints  # (J,) GPUs that the job at hand would share with each other one


@njit_part
def _new_run(n: int) -> Run:  # pragma: no cover - compiled
    start, end, overlap = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros((n, n), dtype=np.int64)
    state, alone, take = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return Run(start, end, overlap, np.zeros(n), np.ones(n), state, alone, take)


@njit_inline
def _clear(run: Run) -> None:  # pragma: no cover - compiled
    """All jobs wait. What was of a former schedule in `remaining`, `factor` and `take` is set before it is read."""
    for j in range(run.state.size):
        run.state[j] = WAITING
        run.alone[j] = 0
        for k in range(run.state.size):
            run.overlap[j, k] = 0


@njit_inline
def _cheapest_partner(jobs: Jobs, genes: Genes, run: Run, j: int, need: int) -> int:  # pragma: no cover - compiled
    """With whom j shares next: the least slots lost by both for each GPU shared; -1 where nobody can."""
    n, partner, least = run.state.size, -1, 1e18
    mode = genes.mode
    for k in range(n):
        if run.state[k] != RUNNING or run.alone[k] == 0 or run.take[k] > 0 or not genes.allowed[j, k]:
            continue
        if not jobs.fits[j, k, mode[j], mode[k]]:
            continue
        loss = run.remaining[k] * max(0.0, jobs.slowdown[k, j] - run.factor[k])
        loss += jobs.work[j, mode[j]] * (jobs.slowdown[j, k] - 1)
        loss /= min(need, run.alone[k])
        if loss < least:
            partner, least = k, loss
    return partner


@njit_inline
def _free_needed(jobs: Jobs, genes: Genes, run: Run, j: int, free: int) -> int:  # pragma: no cover - compiled
    """How many free GPUs j takes beside those that it shares (`take`); -1 where it cannot start.

    It shares what free GPUs do not give; an eager job shares as much as it can.
    """
    need, lonely = jobs.gpus[j], 0
    for k in range(run.state.size):
        run.take[k] = 0
        lonely += run.alone[k]
    if free >= need and not genes.eager[j]:
        return int(need)
    if free + lonely < need:
        return -1
    shared = need if genes.eager[j] else need - free
    while shared > 0:
        k = _cheapest_partner(jobs, genes, run, j, shared)
        if k < 0:
            break
        run.take[k] = min(shared, run.alone[k])
        shared -= run.take[k]
        need -= run.take[k]
    return need if need <= free else -1


@njit_inline
def _begin(jobs: Jobs, genes: Genes, run: Run, j: int, slot: int, lonely: int) -> None:  # pragma: no cover - compiled
    """Start j with so many GPUs of its own, and slow down those beside it."""
    run.alone[j], run.state[j], run.start[j] = lonely, RUNNING, slot
    run.remaining[j], run.factor[j] = jobs.work[j, genes.mode[j]], 1.0
    for k in range(run.state.size):
        if run.take[k] > 0:
            run.overlap[j, k] = run.overlap[k, j] = run.take[k]
            run.alone[k] -= run.take[k]
            run.factor[j] = max(run.factor[j], jobs.slowdown[j, k])
            run.factor[k] = max(run.factor[k], jobs.slowdown[k, j])


@njit_inline
def _until_next(jobs: Jobs, genes: Genes, run: Run, slot: int) -> int:  # pragma: no cover - compiled
    """Slots until a job ends or arrives; _FAR where none will."""
    ahead = _FAR
    for j in range(run.state.size):
        if run.state[j] == RUNNING:
            rounded = run.remaining[j] * run.factor[j] - _DONE * jobs.work[j, genes.mode[j]]
            ahead = min(ahead, max(1, math.ceil(rounded)))
        elif run.state[j] == WAITING and jobs.arrival[j] > slot:
            ahead = min(ahead, jobs.arrival[j] - slot)
    return ahead


@njit_inline
def _advance(jobs: Jobs, genes: Genes, run: Run, last: int, ahead: int) -> tuple[int, int]:  # pragma: no cover
    """Run to the end of slot `last`, `ahead` slots on: how many jobs end there, and how many GPUs they free."""
    n, ended, freed = run.state.size, 0, 0
    for j in range(n):
        if run.state[j] == RUNNING:
            run.remaining[j] -= ahead / run.factor[j]
    for j in range(n):
        if run.state[j] == RUNNING and run.remaining[j] <= _DONE * jobs.work[j, genes.mode[j]]:
            run.state[j], run.end[j] = DONE, last
            ended += 1
            freed += run.alone[j]
            run.alone[j] = 0
            # GPUs that it shared are the other's alone, or free where that has ended too.
            for k in range(n):
                if run.state[k] == RUNNING and run.overlap[j, k] > 0:
                    run.alone[k] += run.overlap[j, k]
    return ended, freed


@njit_inline
def _pace(jobs: Jobs, run: Run) -> None:  # pragma: no cover - compiled
    """The slowdown of every running job beside those that still run: that of its worst partner."""
    for j in range(run.state.size):
        if run.state[j] == RUNNING:
            run.factor[j] = 1.0
            for k in range(run.state.size):
                if run.state[k] == RUNNING and run.overlap[j, k] > 0:
                    run.factor[j] = max(run.factor[j], jobs.slowdown[j, k])


@njit_inner
def _decode(jobs: Jobs, genes: Genes, run: Run) -> int:  # pragma: no cover - compiled
    """List scheduling by `order`; the sum of last slots, or a huge number beyond the horizon."""
    n = run.state.size
    _clear(run)
    slot = jobs.arrival[0]
    for j in range(n):
        slot = min(slot, jobs.arrival[j])
    free, open_jobs, cost, last = jobs.total_gpus, n, 0, 0
    while open_jobs > 0:
        if slot > jobs.horizon:
            return _FAR
        for place in range(n):
            j = genes.order[place]
            if run.state[j] == WAITING and jobs.arrival[j] <= slot:
                lonely = _free_needed(jobs, genes, run, j, free)
                if lonely >= 0:
                    free -= lonely
                    _begin(jobs, genes, run, j, slot, lonely)
        ahead = _until_next(jobs, genes, run, slot)
        if ahead == _FAR:
            return _FAR
        last = slot + ahead - 1
        slot += ahead
        ended, freed = _advance(jobs, genes, run, last, ahead)
        cost += ended * last
        open_jobs -= ended
        free += freed
        _pace(jobs, run)
    return _FAR if last > jobs.horizon else cost


@njit_inner
def _change(jobs: Jobs, genes: Genes, kind: int, a: int, b: int, rng: np.random.Generator) -> None:  # pragma: no cover
    """Change places (kind 0 to 2) or move in the order (3 to 5), whether a and b may share, a mode, or who is eager."""
    order = genes.order
    if kind < 3:
        order[a], order[b] = order[b], order[a]
    elif kind < 6:
        _move(order, a, b)
    elif kind < 8:
        genes.allowed[a, b] = not genes.allowed[a, b]
    elif kind < 9:
        genes.mode[a] = int(jobs.counts[a] * rng.random())
    else:
        genes.eager[a] = not genes.eager[a]


@njit_inline
def _move(order: Ints, source: int, target: int) -> None:  # pragma: no cover - compiled
    """The job at one place goes to another; those between move up or down."""
    job, step = order[source], 1 if source < target else -1
    for place in range(source, target, step):
        order[place] = order[place + step]
    order[target] = job


@njit_cached
def _anneal(
    genes: Genes,
    kept_best: tuple[Ints, Ints, Ints, Ints],
    sums: Ints,
    part: tuple[int, int, int],
    heat: float,
    rng: np.random.Generator,
    jobs: Jobs,
) -> None:  # pragma: no cover - compiled
    """A part (from, to, of how many) of an annealing in four coolings; `sums` are of the present and the best one."""
    best_start, best_end, best_mode, best_overlap = kept_best
    n = len(jobs.arrival)
    run, before = _new_run(n), np.empty(n, np.int64)
    first, last, rounds = part
    for r in range(first - 1 if first == 0 else first, last):  # one more at the beginning: the state as it is
        phase = (r % max(1, rounds // 4)) / max(1, rounds // 4)
        limit = heat * (1 - phase) + 0.05
        kind = int(10 * rng.random())
        a, b = int(n * rng.random()), int(n * rng.random())
        old_mode, old_allowed = genes.mode[a], genes.allowed[a, b]
        for j in range(n):
            before[j] = genes.order[j]
        if r >= 0:
            _change(jobs, genes, kind, a, b, rng)
        value = _decode(jobs, genes, run)
        if value <= sums[0] or rng.random() < math.exp((sums[0] - value) / limit):
            sums[0] = value
            if value < sums[1]:
                sums[1] = value
                for j in range(n):
                    best_start[j], best_end[j], best_mode[j] = run.start[j], run.end[j], genes.mode[j]
                    for k in range(n):
                        best_overlap[j, k] = run.overlap[j, k]
        elif r >= 0:
            for j in range(n):
                genes.order[j] = before[j]
            genes.mode[a], genes.allowed[a, b] = old_mode, old_allowed
            if kind == 9:
                genes.eager[a] = not genes.eager[a]


def _compile() -> None:
    """Run once, so that what is kept on disk is loaded: the clock of a solve starts after the imports."""
    one, numbers, flags = np.ones(1, dtype=np.int64), np.ones((1, 1)), np.zeros((1, 1), dtype=np.bool_)
    genes = Genes(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), flags, np.zeros(1, dtype=np.bool_))
    best = (one.copy(), one.copy(), one.copy(), np.zeros((1, 1), dtype=np.int64))
    jobs = Jobs(one, one, numbers, one, numbers, np.zeros((1, 1, 1, 1), dtype=np.bool_), 1, 1)
    _anneal(genes, best, np.array([_FAR, _FAR]), (0, 1, 1), 1.0, np.random.default_rng(0), jobs)


_compile()
