"""Plain references for hadar: the optimum by dynamic programming over exact progress, and LP(P2) by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import highspy
import numpy as np

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.instance import HadarInstance, Job

TOLERANCE = 1 - Fraction(1, 10**9)


def gangs(instance: HadarInstance, job: Job) -> list[tuple[int, ...]]:
    """Every way to take W devices of usable types, as counts by type."""
    kinds = list(instance.capacity)
    most = [min(job.workers, instance.capacity[kind]) if job.throughput.get(kind, 0) > 0 else 0 for kind in kinds]
    return [c for c in itertools.product(*(range(m + 1) for m in most)) if sum(c) == job.workers]


def slot_progress(instance: HadarInstance, job: Job, counts: tuple[int, ...]) -> Fraction:
    """W L min X over the types used."""
    rates = [exact(job.throughput[kind]) for kind, n in zip(instance.capacity, counts, strict=True) if n]
    return job.workers * exact(instance.slot_length) * min(rates)


def worth(instance: HadarInstance, job: Job, slot: int) -> Fraction:
    """Utility of finishing in a slot."""
    d = (slot - job.arrival + 1) * exact(instance.slot_length)
    w = exact(job.utility.weight)
    if job.utility.kind == "effective-throughput":
        return w * job.epochs * job.iterations_per_epoch / d
    if job.utility.kind == "linear":
        return max(Fraction(0), w * (1 - d / exact(job.utility.deadline)))
    return w


def brute_force(instance: HadarInstance) -> Fraction | None:
    """The optimum; None where all jobs must finish and cannot."""
    jobs = instance.jobs
    options = [gangs(instance, job) for job in jobs]
    capacity = tuple(instance.capacity.values())

    def choices(slot: int, done: tuple[bool, ...], j: int, free: tuple[int, ...]) -> Iterator[tuple]:
        if j == len(jobs):
            yield ()
            return
        for rest in choices(slot, done, j + 1, free):
            yield (None, *rest)
        if not done[j] and slot >= jobs[j].arrival:
            for counts in options[j]:
                if all(c <= f for c, f in zip(counts, free, strict=True)):
                    left = tuple(f - c for c, f in zip(counts, free, strict=True))
                    for rest in choices(slot, done, j + 1, left):
                        yield (counts, *rest)

    @cache
    def best(slot: int, progress: tuple[Fraction, ...]) -> Fraction | None:
        needs = [job.epochs * job.iterations_per_epoch * TOLERANCE for job in jobs]
        done = tuple(p >= n for p, n in zip(progress, needs, strict=True))
        if slot > instance.horizon:
            return None if instance.all_jobs_must_finish and not all(done) else Fraction(0)
        top: Fraction | None = None
        seen = set()
        for choice in choices(slot, done, 0, capacity):
            gained = Fraction(0)
            after = list(progress)
            for j, counts in enumerate(choice):
                if counts is not None:
                    after[j] += slot_progress(instance, jobs[j], counts)
                    if after[j] >= needs[j]:
                        gained += worth(instance, jobs[j], slot)
            key = tuple(after)
            if key in seen:
                continue
            seen.add(key)
            later = best(slot + 1, key)
            if later is not None and (top is None or gained + later > top):
                top = gained + later
        return top

    return best(1, tuple(Fraction(0) for _ in jobs))


def schedules(instance: HadarInstance, job: Job) -> list[tuple[Fraction, dict[tuple[int, int], int]]]:
    """Every schedule of a job that ends when its work is done: (utility, devices by (type index, slot))."""
    found = []
    need = job.epochs * job.iterations_per_epoch * TOLERANCE
    options = gangs(instance, job)

    def extend(slot: int, done: Fraction, used: dict[tuple[int, int], int]) -> None:
        if slot > instance.horizon:
            return
        extend(slot + 1, done, used)
        for counts in options:
            more = {**used, **{(k, slot): n for k, n in enumerate(counts) if n}}
            after = done + slot_progress(instance, job, counts)
            if after >= need:
                found.append((worth(instance, job, slot), more))
            else:
                extend(slot + 1, after, more)

    extend(job.arrival, Fraction(0), {})
    return found


def enumerated_lp(instance: HadarInstance) -> float | None:
    """LP(P2) (of P1 with equality rows) over every schedule of every job; None where infeasible."""
    columns = [(j, u, use) for j, job in enumerate(instance.jobs) for u, use in schedules(instance, job)]
    pools = [(k, t) for k in range(len(instance.capacity)) for t in range(1, instance.horizon + 1)]
    row_of = {pool: len(instance.jobs) + i for i, pool in enumerate(pools)}
    sizes = list(instance.capacity.values())
    rows = len(instance.jobs) + len(pools)
    matrix = np.zeros((rows, len(columns)))
    for c, (j, _, use) in enumerate(columns):
        matrix[j, c] = 1
        for pool, n in use.items():
            matrix[row_of[pool], c] = n
    upper = [1.0] * len(instance.jobs) + [float(sizes[k]) for k, _ in pools]
    lower = [1.0 if instance.all_jobs_must_finish else -highspy.kHighsInf] * len(instance.jobs)
    lower += [-highspy.kHighsInf] * len(pools)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for c, (_, u, _) in enumerate(columns):
        solver.addVar(0, highspy.kHighsInf)
        solver.changeColCost(c, -float(u))
    for i in range(rows):
        where = np.flatnonzero(matrix[i]).astype(np.int32)
        solver.addRow(lower[i], upper[i], len(where), where, matrix[i, where])
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    return -solver.getInfo().objective_function_value
