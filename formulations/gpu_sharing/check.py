"""The independent checker of gpu-sharing: exact rationals, every rate computed here.

It shares no code with the dynamics, the models or the heuristics. An iteration time is irrational where
eq. (7) takes a root; it is replaced by a rational that is below it by at most 1e-60 relative, so a total
that meets its target exactly counts as reached.
"""

from __future__ import annotations

import decimal
import heapq
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from schedgap.formulations.common.check import CheckReport, Violation, some_of
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only, one_for_each
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution

_DIGITS = decimal.Context(prec=90, Emax=999999, Emin=-999999)


_MARGIN = Fraction(1, 10**60)


MOST_BEYOND = 2_000_000
"""Steps, some seconds, for jobs that lie on each other beyond the cap; then they are followed no further."""


Gpu = tuple[int, int]


@dataclass(frozen=True)
class _Plan:
    """A solution by job position."""

    start: list[int]
    gpus: list[list[Gpu]]
    steps: list[int]


def check(instance: GpuSharingInstance, solution: GpuSharingSolution) -> CheckReport:
    """Check `solution` and recompute its mean job completion time.

    Raises InputError: a job is missing, or the instance does not have a job, server or GPU that is named.

    Parameters
    ----------
    solution : when, on which GPUs and in how many accumulation steps each job runs

    Returns
    -------
    CheckReport
        Violations of: "arrival", "gang" (number of GPUs), "distinct" (a GPU listed twice), "accumulation"
        (s is not a power of two that divides the batch), "cap" (jobs on a GPU), "memory", "horizon". The
        objective is the mean of completion - arrival + 1 in slots, None where a rate is undefined, and where so
        many jobs lie on each other's GPUs that they are not followed to their ends.
        ``details["completion"]`` has the completion slot of each job.

    Notes
    -----
    O(E (G C + log J)) exact operations for E starts and completions of jobs on G GPUs, each with C jobs, and
    MOST_BEYOND steps for GPUs with more jobs than the cap.
    """
    plan = _plan(instance, solution)
    violations: list[Violation] = []
    rated = _check_static(instance, plan, violations)
    if not rated:
        return CheckReport(tuple(violations), None)
    completion = _replay(instance, plan, violations)
    if completion is None:
        return CheckReport(tuple(violations), None)
    jobs = instance.jobs
    for job, end in zip(jobs, completion, strict=True):
        if end > instance.horizon:
            late = end - instance.horizon
            violations.append(
                Violation("horizon", f"job {job.id}: completes in slot {end}, the horizon is {instance.horizon}", late)
            )
    total = sum(end - job.arrival + 1 for job, end in zip(jobs, completion, strict=True))
    details = {"completion": {job.id: end for job, end in zip(jobs, completion, strict=True)}}
    return CheckReport(tuple(violations), Fraction(total, len(jobs)), details)


def _plan(instance: GpuSharingInstance, solution: GpuSharingSolution) -> _Plan:
    """What the solution says of the instance's jobs and GPUs."""
    one_for_each(solution.start, instance.job_index, "start")
    one_for_each(solution.gpus, instance.job_index, "gpus")
    one_for_each(solution.accumulation, instance.job_index, "accumulation")
    gpus: list[list[Gpu]] = []
    for job in instance.jobs:
        gpus.append([])
        for position, (server_id, index) in enumerate(solution.gpus[job.id]):
            where = f"gpus.{job.id}[{position}]"
            known_only((server_id,), instance.server_index, where, "server")
            server = instance.server_index[server_id]
            count = instance.servers[server].gpus
            if not 0 <= index < count:
                raise InputError(f"solution: {where}: server {server_id} has GPUs 0 to {count - 1}, got {index}")
            gpus[-1].append((server, index))
    start = [solution.start[job.id] for job in instance.jobs]
    return _Plan(start, gpus, [solution.accumulation[job.id] for job in instance.jobs])


def _check_static(instance: GpuSharingInstance, plan: _Plan, violations: list[Violation]) -> bool:
    """What does not depend on time; whether every iteration time is defined."""
    rated = True
    for position, job in enumerate(instance.jobs):
        start, steps, gpus = plan.start[position], plan.steps[position], plan.gpus[position]
        if start < job.arrival:
            text = f"job {job.id}: starts in slot {start}, arrives in slot {job.arrival}"
            violations.append(Violation("arrival", text, job.arrival - start))
        if len(gpus) != job.gpus:
            text = f"job {job.id}: {len(gpus)} GPUs given, needs {job.gpus}"
            violations.append(Violation("gang", text, abs(len(gpus) - job.gpus)))
        twice = len(gpus) - len(set(gpus))
        if twice:
            violations.append(Violation("distinct", f"job {job.id}: a GPU is listed more than once", twice))
        if steps < 1 or steps & (steps - 1) or job.batch_size % steps:
            text = f"job {job.id}: {steps} accumulation steps, must be a power of two that divides {job.batch_size}"
            violations.append(Violation("accumulation", text))
            rated = False
    return rated


def _iteration_time(job: Job, steps: int) -> Fraction:
    """Eq. (7) from eqs. (3) and (4), from below within 1e-60 relative."""
    computing = exact(job.compute.fixed) + exact(job.compute.per_sample) * (job.batch_size // steps)
    link = job.communication
    sending = Fraction(0) if job.gpus == 1 else exact(link.latency) + exact(link.per_unit) * exact(link.message)
    return (steps - 1) * computing + overlapped_time(computing, sending, exact(job.overlap))


@lru_cache(maxsize=1 << 12)
def overlapped_time(computing: Fraction, sending: Fraction, overlap: Fraction) -> Fraction:
    """(c^delta + m^delta)^(1/delta), from below within 1e-60 relative where it takes a root."""
    if overlap == 1 or computing == 0 or sending == 0:
        return computing + sending
    with decimal.localcontext(_DIGITS):
        c = decimal.Decimal(computing.numerator) / decimal.Decimal(computing.denominator)
        m = decimal.Decimal(sending.numerator) / decimal.Decimal(sending.denominator)
        delta = decimal.Decimal(overlap.numerator) / decimal.Decimal(overlap.denominator)
        largest = max(c, m)
        last = largest * ((c / largest) ** delta + (m / largest) ** delta) ** (1 / delta)
    return Fraction(last) * (1 - _MARGIN)


def _replay(instance: GpuSharingInstance, plan: _Plan, violations: list[Violation]) -> list[int] | None:
    """Completion slots, capacity checked on the way; None where GPUs beyond the cap take too many steps."""
    jobs = instance.jobs
    length = exact(instance.slot_length)
    target = [
        job.iterations * (1 - CHECK_TOLERANCE) * _iteration_time(job, steps) / length
        for job, steps in zip(jobs, plan.steps, strict=True)
    ]
    load = [
        exact(job.memory.fixed) + exact(job.memory.per_sample) * (job.batch_size // steps)
        for job, steps in zip(jobs, plan.steps, strict=True)
    ]
    memory = exact(instance.gpu_memory)
    sets = [set(gpus) for gpus in plan.gpus]
    holders: dict[Gpu, list[int]] = {}
    done = [Fraction(0)] * len(jobs)
    factor = [Fraction(1)] * len(jobs)
    since = [0] * len(jobs)
    completion = [0] * len(jobs)
    waiting = sorted(range(len(jobs)), key=lambda j: (plan.start[j], j), reverse=True)
    running: set[int] = set()
    due: list[tuple[int, int]] = []  # the slot after a job's last as it once was, and the job
    beyond = 0
    while waiting or due:
        slot = min([end for end, _ in due[:1]] + [plan.start[j] for j in waiting[-1:]])
        changed: set[int] = set()
        fresh: set[Gpu] = set()
        while due and due[0][0] == slot:
            j = heapq.heappop(due)[1]
            if j not in running or completion[j] + 1 != slot:
                continue
            running.discard(j)
            for gpu in sets[j]:
                holders[gpu].remove(j)
                changed.update(holders[gpu])
        while waiting and plan.start[waiting[-1]] == slot:
            j = waiting.pop()
            running.add(j)
            since[j] = slot
            changed.add(j)
            fresh |= sets[j]
            for gpu in sets[j]:
                holders.setdefault(gpu, []).append(j)
                changed.update(holders[gpu])
        for gpu in sorted(fresh):
            beyond += max(0, len(holders[gpu]) - instance.max_jobs_per_gpu)
            _check_capacity(instance, slot, holders[gpu], gpu, load, memory, violations)
        for j in changed & running:
            beyond += sum(max(0, len(holders[gpu]) - instance.max_jobs_per_gpu) for gpu in sets[j])
            if beyond > MOST_BEYOND:
                return None
            done[j] += (slot - since[j]) / factor[j]
            since[j] = slot
            others = {k for gpu in sets[j] for k in holders[gpu]} - {j}
            row = instance.interference.get(jobs[j].id, {})
            factor[j] = max([Fraction(1), *(exact(row.get(jobs[k].id, 1.0)) for k in others)])
            completion[j] = slot + max(1, ceil((target[j] - done[j]) * factor[j])) - 1
            heapq.heappush(due, (completion[j] + 1, j))
    return completion


def _check_capacity(
    instance: GpuSharingInstance,
    slot: int,
    here: list[int],
    gpu: Gpu,
    load: list[Fraction],
    memory: Fraction,
    violations: list[Violation],
) -> None:
    """Cap and memory of one GPU whose jobs are those `here` from this slot on."""
    cap = instance.max_jobs_per_gpu
    where = f"server {instance.servers[gpu[0]].id}, GPU {gpu[1]}, slot {slot}"
    names = some_of([instance.jobs[j].id for j in here])
    if len(here) > cap:
        violations.append(Violation("cap", f"{where}: {len(here)} jobs ({names}), at most {cap}", len(here) - cap))
    used = sum((load[j] for j in here), Fraction(0))
    if used > memory * (1 + CHECK_TOLERANCE):
        text = f"{where}: {float(used):g} memory used ({names}), {float(memory):g} there"
        violations.append(Violation("memory", text, float(used - memory)))
