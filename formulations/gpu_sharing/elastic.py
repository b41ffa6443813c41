"""Schedules outside the model: preemptive and elastic ones, with their own meaning and their own checker.

A schedule is ``{"segments": {job: [[first, last, gpus], ...]}, "noise": nu, "restart": r}``: job runs on
`gpus` whole GPUs, shared with nobody, in slots first..last. The first r slots of every segment but the job's
first are spent on restoring it. GPUs are interchangeable, so only their numbers matter.

With k GPUs instead of the G asked for, at the fewest accumulation steps s that fit alone, an iteration takes
(r s - 1) t_comp + (t_comp^delta + t_comm^delta)^(1/delta), r = max(1, ceil(G / k)), t_comm = 0 for k = 1: fewer
GPUs accumulate, more GPUs enlarge the batch by k / G, of which a part (nu + 1) / (nu + k / G) counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.formulations.gpu_sharing.roots import power_norm

_KEYS = ("segments", "noise", "restart")

_FASTEST = Fraction(10**30)
"""Iterations per slot above which a rate is not told apart: no job has more than 10^9 to make."""


def check_elastic(instance: GpuSharingInstance, solution: Solution) -> CheckReport:
    """Check a preemptive or elastic schedule and recompute its mean JCT; exact up to roots (1e-60).

    Returns
    -------
    CheckReport
        Violations of: "arrival", "order" (segments overlap or are empty), "capacity", "memory" (the job fits
        no GPU), "work" (it makes too few iterations). The horizon does not bind: it is the model's.

    Raises
    ------
    InputError
        The object is malformed.
    """
    segments, noise, restart = _read(instance, solution)
    violations: list[Violation] = []
    change: dict[int, int] = {}
    total = 0
    for job in instance.jobs:
        steps = _steps(job, instance)
        if steps is None:
            violations.append(Violation("memory", f"job {job.id}: fits no GPU"))
            continue
        made, before = Fraction(0), 0
        for position, (first, last, gpus) in enumerate(segments[job.id]):
            where = f"job {job.id}, segment {position}"
            if first < job.arrival:
                text = f"{where}: starts in slot {first}, arrives in slot {job.arrival}"
                violations.append(Violation("arrival", text, job.arrival - first))
            if last < first or first <= before:
                violations.append(Violation("order", f"{where}: slots {first} to {last} after slot {before}"))
            before = last
            change[first] = change.get(first, 0) + gpus
            change[last + 1] = change.get(last + 1, 0) - gpus
            useful = max(0, last - first + 1 - (restart if position else 0))
            made += useful * iterations_per_slot(job, steps, gpus, noise, exact(instance.slot_length))
        if made < job.iterations * (1 - CHECK_TOLERANCE):
            text = f"job {job.id}: {float(made):g} iterations made, needs {job.iterations}"
            violations.append(Violation("work", text, float(job.iterations - made)))
        total += before - job.arrival + 1
    used = 0
    for slot in sorted(change):
        used += change[slot]
        if used > instance.total_gpus:
            text = f"slot {slot}: {used} GPUs used, {instance.total_gpus} there"
            violations.append(Violation("capacity", text, used - instance.total_gpus))
    completion = {job.id: segments[job.id][-1][1] for job in instance.jobs}
    return CheckReport(tuple(violations), Fraction(total, len(instance.jobs)), {"completion": completion})


def iterations_per_slot(job: Job, steps: int, gpus: int, noise: Fraction, slot_length: Fraction) -> Fraction:
    """Effective iterations of a job on `gpus` GPUs in one slot, at most 10^30.

    A job that only communicates takes no time at all on one GPU: any slot completes it.
    """
    rounds = max(1, -(-job.gpus // gpus))
    computing = exact(job.compute.fixed) + exact(job.compute.per_sample) * (job.batch_size // steps)
    link = job.communication
    sending = Fraction(0)
    if gpus > 1:
        sending = exact(link.latency) + exact(link.per_unit) * exact(link.message)
    time = (rounds * steps - 1) * computing + power_norm(computing, sending, exact(job.overlap))
    larger = max(Fraction(1), Fraction(gpus, job.gpus))
    if time == 0:
        return _FASTEST
    return min(_FASTEST, slot_length / time * larger * (noise + 1) / (noise + larger))


def _steps(job: Job, instance: GpuSharingInstance) -> int | None:
    for steps in job.accumulation_steps:
        load = exact(job.memory.fixed) + exact(job.memory.per_sample) * (job.batch_size // steps)
        if load <= exact(instance.gpu_memory) * (1 + CHECK_TOLERANCE):
            return steps
    return None


def _read(instance: GpuSharingInstance, solution: Any) -> tuple[dict[str, list[tuple[int, int, int]]], Fraction, int]:
    if not isinstance(solution, Mapping) or set(solution) != set(_KEYS):
        raise InputError(f"solution: must be an object with the keys {', '.join(_KEYS)}")
    noise, restart = solution["noise"], solution["restart"]
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1e15:
        raise InputError(f"solution.noise: must be a number from 0 to 1e15, got {noise!r}")
    if isinstance(restart, bool) or not isinstance(restart, int) or not 0 <= restart <= 10**9:
        raise InputError(f"solution.restart: must be a whole number of slots, got {restart!r}")
    given = solution["segments"]
    if not isinstance(given, Mapping) or set(given) != set(instance.job_index):
        raise InputError("solution.segments: must have an entry for each job and no other")
    result: dict[str, list[tuple[int, int, int]]] = {}
    for job_id, rows in given.items():
        if not isinstance(rows, list | tuple) or not rows:
            raise InputError(f"solution.segments.{job_id}: must be a list of [first, last, gpus], not empty")
        result[job_id] = []
        for position, row in enumerate(rows):
            whole = isinstance(row, list | tuple) and len(row) == 3 and all(type(n) is int for n in row)
            if not whole or row[2] < 1:
                raise InputError(f"solution.segments.{job_id}[{position}]: must be [first, last, gpus], got {row!r}")
            result[job_id].append((row[0], row[1], row[2]))
    return result, exact(noise), restart
