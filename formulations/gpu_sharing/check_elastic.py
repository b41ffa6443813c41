"""Schedules outside the model: preemptive and elastic ones, with their own meaning and their own checker.

A schedule is ``{"segments": {job: [[first, last, gpus], ...]}, "noise": nu, "restart": r}``: job runs on `gpus`
whole GPUs, shared with nobody, in slots first..last. The first r slots of every segment but the job's first are
spent on restoring it. GPUs are interchangeable, so only their numbers matter. With k GPUs instead of the G
asked for, at the fewest accumulation steps s that fit alone, an iteration takes (r s - 1) t_comp +
(t_comp^delta + t_comm^delta)^(1/delta), r = max(1, ceil(G / k)), t_comm = 0 for k = 1: fewer GPUs accumulate,
more GPUs enlarge the batch by k / G, of which a part (nu + 1) / (nu + k / G) counts.
"""

from __future__ import annotations

from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import one_for_each
from schedgap.formulations.gpu_sharing.check import overlapped_time
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.formulations.gpu_sharing.solution import ElasticSolution

_FASTEST = Fraction(10**30)
"""Iterations per slot above which rates count as one: no job has more than 10^9 to make."""


def check_elastic(instance: GpuSharingInstance, solution: ElasticSolution) -> CheckReport:
    """Check a preemptive or elastic schedule and recompute its mean JCT; exact up to roots (1e-60).

    Raises InputError: a job is missing, or the instance does not have it.

    Returns
    -------
    CheckReport
        Violations of: "arrival", "order" (segments overlap or are empty), "capacity", "memory" (the job fits
        no GPU), "work" (it makes too few iterations). The horizon does not bind: it is the model's.
    """
    segments, noise, restart = solution.segments, exact(solution.noise), solution.restart
    one_for_each(segments, instance.job_index, "segments")
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
            made += useful * _iterations_per_slot(job, steps, gpus, noise, exact(instance.slot_length))
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


def _iterations_per_slot(job: Job, steps: int, gpus: int, noise: Fraction, slot_length: Fraction) -> Fraction:
    """Effective iterations of a job on `gpus` GPUs in one slot, at most 10^30.

    A job that only communicates takes no time at all on one GPU: any slot completes it.
    """
    rounds = max(1, -(-job.gpus // gpus))
    computing = exact(job.compute.fixed) + exact(job.compute.per_sample) * (job.batch_size // steps)
    link = job.communication
    sending = Fraction(0)
    if gpus > 1:
        sending = exact(link.latency) + exact(link.per_unit) * exact(link.message)
    time = (rounds * steps - 1) * computing + overlapped_time(computing, sending, exact(job.overlap))
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
