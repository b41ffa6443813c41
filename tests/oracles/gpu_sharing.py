"""Plain references of gpu-sharing: a brute force over explicit GPUs, and a slot-by-slot replay.

Written from the meaning of the problem with floats and one slot at a time, and in exact numbers where floats come near
a tie; nothing is shared with the package but the instance class.
"""

from __future__ import annotations

import decimal
import itertools
import math
import time
from fractions import Fraction

from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Running = dict[int, tuple[int, float, tuple[frozenset[int], ...]]]
"""Accumulation steps, iterations done and the partners of every slot so far, of each running job."""
Holders = tuple[tuple[int, ...], ...]
"""Jobs on each GPU."""
NEAR = 1e-6
"""Relative: nearer to each other than this, two numbers are compared exactly."""
LEAST = 1 - Fraction(1, 10**9)
"""The part of its iterations with which a job is done."""


def divisors(batch: int) -> list[int]:
    steps = [1]
    while batch % (2 * steps[-1]) == 0:
        steps.append(2 * steps[-1])
    return steps


def iteration_time(job: Job, s: int) -> float:
    computing = job.compute.fixed + job.compute.per_sample * (job.batch_size / s)
    sending = 0.0
    if job.gpus > 1:
        sending = job.communication.latency + job.communication.per_unit * job.communication.message
    longer = max(computing, sending)  # powers of small numbers would vanish
    part = min(computing, sending) / longer
    return float((s - 1) * computing + longer * (1 + part**job.overlap) ** (1 / job.overlap))


def exact_time(job: Job, s: int) -> Fraction:
    """:func:`iteration_time` in rational numbers; a root to 60 digits."""
    computing = exact(job.compute.fixed) + exact(job.compute.per_sample) * (job.batch_size // s)
    link = job.communication
    sending = exact(link.latency) + exact(link.per_unit) * exact(link.message) if job.gpus > 1 else Fraction(0)
    if not computing or not sending or job.overlap == 1:
        return s * computing + sending
    with decimal.localcontext(prec=60):
        c, m, d = (decimal.Decimal(x.numerator) / x.denominator for x in (computing, sending, exact(job.overlap)))
        return (s - 1) * computing + Fraction((c**d + m**d) ** (1 / d))


def load(job: Job, s: int) -> Fraction:
    return exact(job.memory.fixed) + exact(job.memory.per_sample) * (job.batch_size // s)


def fits(instance: GpuSharingInstance, loads: list[Fraction]) -> bool:
    return sum(loads, Fraction(0)) <= exact(instance.gpu_memory) * (1 + Fraction(1, 10**9))


def progress(instance: GpuSharingInstance, job: Job, s: int, partners: list[Job]) -> float:
    """Iterations of `job` in one slot."""
    worst = max([1.0] + [instance.slowdown(job.id, other.id) for other in partners])
    return instance.slot_length / (iteration_time(job, s) * worst)


def replay(instance: GpuSharingInstance, solution: dict[str, Json]) -> dict[str, int]:
    """Completion slots, one slot at a time."""
    sets = {job.id: {tuple(g) for g in solution["gpus"][job.id]} for job in instance.jobs}
    done = {job.id: 0.0 for job in instance.jobs}
    completion: dict[str, int] = {}
    slot = min(solution["start"].values())
    while len(completion) < len(instance.jobs):
        active = [j for j in instance.jobs if solution["start"][j.id] <= slot and j.id not in completion]
        ended = []
        for job in active:
            partners = [k for k in active if k.id != job.id and sets[k.id] & sets[job.id]]
            done[job.id] += progress(instance, job, solution["accumulation"][job.id], partners)
            if done[job.id] >= job.iterations * (1 - 1e-9):
                ended.append(job.id)
        for job_id in ended:
            completion[job_id] = slot
        slot += 1
    return completion


class BruteForce:
    """Depth-first search over every start slot, GPU set and accumulation; GPUs with the same jobs are alike."""

    def __init__(self, instance: GpuSharingInstance) -> None:
        self.instance = instance
        self.jobs = instance.jobs
        self.options = [
            [s for s in divisors(job.batch_size) if fits(instance, [load(job, s)])] for job in instance.jobs
        ]
        self.shortest = [
            min(
                (
                    math.ceil(job.iterations * (1 - 1e-9) / progress(instance, job, s, []) - 1e-12)
                    for s in self.options[j]
                ),
                default=0,
            )
            for j, job in enumerate(self.jobs)
        ]
        self.loads = [{s: load(job, s) for s in self.options[j]} for j, job in enumerate(self.jobs)]
        self.steps: dict[tuple[int, int, frozenset[int]], float] = {}
        self.best = math.inf
        self.nodes = 0

    def _step(self, j: int, s: int, partners: frozenset[int]) -> float:
        """Iterations of a job in a slot beside these."""
        key = (j, s, partners)
        if key not in self.steps:
            self.steps[key] = progress(self.instance, self.jobs[j], s, [self.jobs[k] for k in partners])
        return self.steps[key]

    def _done(self, j: int, s: int, done: float, beside: tuple[frozenset[int], ...]) -> bool:
        """Whether a job that had these partners in its slots has all of its iterations."""
        job = self.jobs[j]
        if abs(done - job.iterations) > NEAR * job.iterations:
            return done > job.iterations
        slowdowns = (
            max([Fraction(1), *(exact(self.instance.slowdown(job.id, self.jobs[k].id)) for k in partners)])
            for partners in beside
        )
        alone = exact(self.instance.slot_length) / exact_time(job, s)
        return alone * sum((1 / slowdown for slowdown in slowdowns), Fraction(0)) >= job.iterations * LEAST

    def solve(self) -> float | None:
        """The smallest sum of JCT divided by the number of jobs, or None when infeasible."""
        if any(not options for options in self.options):
            return None
        holders: Holders = tuple(() for _ in range(self.instance.total_gpus))
        self._slot(1, frozenset(range(len(self.jobs))), {}, holders, 0)
        return None if math.isinf(self.best) else self.best / len(self.jobs)

    def _slot(self, slot: int, waiting: frozenset[int], running: Running, holders: Holders, cost: int) -> None:
        if not waiting and not running:
            self.best = min(self.best, cost)
            return
        bound = cost
        for j in running:
            bound += slot - self.jobs[j].arrival + 1
        for j in waiting:
            end = max(slot, self.jobs[j].arrival) + self.shortest[j] - 1
            if end > self.instance.horizon:
                return
            bound += end - self.jobs[j].arrival + 1
        if slot > self.instance.horizon or bound >= self.best:
            return
        here = [j for j in sorted(waiting) if self.jobs[j].arrival <= slot]
        self._choose(slot, here, 0, waiting, running, holders, cost)

    def _choose(
        self, slot: int, here: list[int], i: int, waiting: frozenset[int], running: Running, holders: Holders, cost: int
    ) -> None:
        self.nodes += 1
        if i == len(here):
            self._advance(slot, waiting, running, holders, cost)
            return
        j = here[i]
        for s in self.options[j]:
            for chosen in self._subsets(j, s, holders, running):
                after = tuple((*h, j) if g in chosen else h for g, h in enumerate(holders))
                self._choose(slot, here, i + 1, waiting - {j}, {**running, j: (s, 0.0, ())}, after, cost)
        self._choose(slot, here, i + 1, waiting, running, holders, cost)

    def _subsets(self, j: int, s: int, holders: Holders, running: Running) -> list[set[int]]:
        instance = self.instance
        classes: dict[tuple[int, ...], list[int]] = {}
        for g, here in enumerate(holders):
            loads = [self.loads[k][running[k][0]] for k in here] + [self.loads[j][s]]
            if len(here) < instance.max_jobs_per_gpu and fits(instance, loads):
                classes.setdefault(tuple(sorted(here)), []).append(g)
        members = list(classes.values())
        need = self.jobs[j].gpus
        found = []
        for counts in itertools.product(*(range(min(len(m), need) + 1) for m in members)):
            if sum(counts) == need:
                found.append({g for m, c in zip(members, counts, strict=True) for g in m[:c]})
        return found

    def _advance(self, slot: int, waiting: frozenset[int], running: Running, holders: Holders, cost: int) -> None:
        after = {}
        ended = set()
        for j, (s, done, beside) in running.items():
            partners = frozenset(k for here in holders if j in here for k in here) - {j}
            done += self._step(j, s, partners)
            beside = (*beside, partners)
            if self._done(j, s, done, beside):
                ended.add(j)
                cost += slot - self.jobs[j].arrival + 1
            else:
                after[j] = (s, done, beside)
        left = tuple(tuple(k for k in here if k not in ended) for here in holders)
        self._slot(slot + 1, waiting, after, left, cost)


def brute_force(instance: GpuSharingInstance) -> float | None:
    """The optimal mean JCT, or None when infeasible."""
    return BruteForce(instance).solve()


def solve_brute_force(instance: GpuSharingInstance, options: SolveOptions) -> Result:
    """The search as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    value = brute_force(instance)
    seconds = time.monotonic() - began
    if value is None:
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=seconds)
    return Result(Status.OPTIMAL, value, value, termination=Termination.PROVEN, solve_seconds=seconds)
