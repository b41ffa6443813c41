"""Plain references of gpu-sharing: a brute force over explicit GPUs, and a slot-by-slot replay.

Written from the meaning of the problem with floats and one slot at a time; nothing is shared with the
package but the instance class.
"""

from __future__ import annotations

import itertools
import math
import time

from schedgap.formulations.common.instance import Json
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Running = dict[int, tuple[int, float]]
"""Accumulation steps and iterations done of each running job."""
Holders = tuple[tuple[int, ...], ...]
"""Jobs on each GPU."""


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
    d = job.overlap
    return float((s - 1) * computing + (computing**d + sending**d) ** (1 / d))


def load(job: Job, s: int) -> float:
    return job.memory.fixed + job.memory.per_sample * (job.batch_size / s)


def fits(instance: GpuSharingInstance, loads: list[float]) -> bool:
    return sum(loads) <= instance.gpu_memory * (1 + 1e-9)


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
        self.best = math.inf
        self.nodes = 0

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
                self._choose(slot, here, i + 1, waiting - {j}, {**running, j: (s, 0.0)}, after, cost)
        self._choose(slot, here, i + 1, waiting, running, holders, cost)

    def _subsets(self, j: int, s: int, holders: Holders, running: Running) -> list[set[int]]:
        instance = self.instance
        classes: dict[tuple[int, ...], list[int]] = {}
        for g, here in enumerate(holders):
            loads = [load(self.jobs[k], running[k][0]) for k in here] + [load(self.jobs[j], s)]
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
        for j, (s, done) in running.items():
            partners = {k for here in holders if j in here for k in here} - {j}
            done += progress(self.instance, self.jobs[j], s, [self.jobs[k] for k in partners])
            if done >= self.jobs[j].iterations * (1 - 1e-9):
                ended.add(j)
                cost += slot - self.jobs[j].arrival + 1
            else:
                after[j] = (s, done)
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
