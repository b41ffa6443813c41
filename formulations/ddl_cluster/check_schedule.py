"""A schedule of explicit task times, replayed in exact rationals."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from schedgap.formulations.common.check import Violation, some_of
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import one_for_each
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.solution import TaskTimes

LARGEST_SCHEDULE = 100_000
"""Start times that a schedule may have at most."""
LONGEST_REPLAY = 100_000_000
"""Digits in all numbers that a replay of transfers computes, about: they grow with every change of a rate."""


@dataclass
class _Transfer:
    """One all-reduce while it is replayed."""

    job: int
    iteration: int
    begin: Fraction
    remaining: Fraction
    end: Fraction = Fraction(0)


def replay_schedule(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    schedule: Mapping[str, TaskTimes],
    violations: list[Violation],
) -> list[Fraction]:
    """When each job finishes under explicit start times; what they break is added to `violations`.

    Parameters
    ----------
    placement : GPUs of each job; the workers of the schedule are in this order
    schedule : times of each job's tasks; ``allreduce`` is there exactly for a job whose GPUs are on several servers

    Returns
    -------
    By job, the end of its last iteration. All-reduces share links as their admissions and messages make them
    (eq. 5): nothing but their admission is taken from the schedule.

    Violations of: "arrival" (a first forward task before the arrival), "order" (a task before the one it
    follows has ended), "gpu" (two tasks on one GPU at a time), "memory" (jobs on a GPU between their first
    task and their finish). A start may be early by 1e-9 of the moment it must wait for.

    Raises
    ------
    InputError
        A job is missing or unknown, the number of its start times is wrong, or the transfers change each other's
        rates so often that numbers beyond LONGEST_REPLAY are needed.

    Notes
    -----
    O(T log T + A B L) exact operations for T tasks, A all-reduces, B of them at a time and L servers per job.
    """
    rows = _times(instance, placement, schedule)
    transfers = _replay_transfers(instance, placement, rows)
    finish = []
    for j, job in enumerate(instance.jobs):
        times = rows[j]
        forward, backward = exact(job.forward), exact(job.backward)
        ready, rule, waits_for = exact(job.arrival), "arrival", "it arrives"
        for i in range(job.iterations):
            where = f"job {job.id}, iteration {i}"
            barrier = Fraction(0)
            for w, (first, second) in enumerate(zip(times.forward[i], times.backward[i], strict=True)):
                _follows(violations, rule, f"{where}, forward of worker {w}", first, ready, waits_for)
                forward_end = first + forward
                _follows(violations, "order", f"{where}, backward of worker {w}", second, forward_end, "its forward")
                barrier = max(barrier, second + backward)
            if times.allreduce is not None:
                admitted = times.allreduce[i]
                _follows(violations, "order", f"{where}, all-reduce", admitted, barrier, "the barrier")
            ready = transfers[j, i] if times.allreduce is not None else barrier
            rule, waits_for = "order", "the iteration before"
        finish.append(ready)
    _check_gpus(instance, placement, rows, violations)
    _check_memory(instance, placement, rows, finish, violations)
    return finish


@dataclass(frozen=True)
class _Times:
    """The start times of one job."""

    forward: list[list[Fraction]]
    backward: list[list[Fraction]]
    allreduce: list[Fraction] | None


def _times(
    instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], schedule: Mapping[str, TaskTimes]
) -> list[_Times]:
    """The start times of each job, as many as it has tasks, in exact numbers."""
    total = sum(job.iterations * (2 * job.gpus + 1) for job in instance.jobs)
    if total > LARGEST_SCHEDULE:
        raise InputError(f"solution: schedule: at most {LARGEST_SCHEDULE} start times, these jobs have {total}")
    one_for_each(schedule, instance.job_index, "schedule")
    result = []
    for job, gpus in zip(instance.jobs, placement, strict=True):
        where, times = f"schedule.{job.id}", schedule[job.id]
        for key, rows in (("forward", times.forward), ("backward", times.backward)):
            _counted(rows, job.iterations, f"{where}.{key}")
            for i, row in enumerate(rows):
                _counted(row, job.gpus, f"{where}.{key}[{i}]")
        spans = len({server for server, _ in gpus}) > 1
        if (times.allreduce is not None) != spans:
            text = "is missing, the job spans servers" if spans else "the job is on one server and sends nothing"
            raise InputError(f"solution: {where}.allreduce: {text}")
        if times.allreduce is not None:
            _counted(times.allreduce, job.iterations, f"{where}.allreduce")
        result.append(
            _Times(
                [[exact(time) for time in row] for row in times.forward],
                [[exact(time) for time in row] for row in times.backward],
                None if times.allreduce is None else [exact(time) for time in times.allreduce],
            )
        )
    return result


def _counted(rows: Sequence[object], count: int, where: str) -> None:
    if len(rows) != count:
        raise InputError(f"solution: {where}: must be a list of {count}, got {len(rows)}")


def _follows(
    violations: list[Violation], rule: str, what: str, start: Fraction, need: Fraction, waits_for: str
) -> None:
    """`what` must not start before `need`."""
    if start < need * (1 - CHECK_TOLERANCE):
        text = f"{what}: starts at {float(start):.12g}, {waits_for} at {float(need):.12g}"
        if rule == "order":
            text = f"{what}: starts at {float(start):.12g}, {waits_for} ends at {float(need):.12g}"
        violations.append(Violation(rule, text, float(need - start)))


def _replay_transfers(
    instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], rows: Sequence[_Times]
) -> dict[tuple[int, int], Fraction]:
    """The end of every all-reduce, from its admission and those of all others alone."""
    a, b, eta = instance.link.exact_parameters()
    coming = [
        _Transfer(j, i, admitted + a, exact(instance.jobs[j].message))
        for j, times in enumerate(rows)
        for i, admitted in enumerate(times.allreduce or ())
    ]
    coming.sort(key=lambda transfer: transfer.begin, reverse=True)
    servers = [{server for server, _ in gpus} for gpus in placement]
    active: list[_Transfer] = []
    ends: dict[tuple[int, int], Fraction] = {}
    now = Fraction(0)
    written = 0
    while coming or active:
        written += sum(transfer.remaining.denominator.bit_length() for transfer in active) // 3
        if written > LONGEST_REPLAY:
            raise InputError("solution: schedule: transfers change each other's rates too often to be replayed exactly")
        on = Counter(server for transfer in active for server in servers[transfer.job])
        most = [max(on[server] for server in servers[transfer.job]) for transfer in active]
        costs = [k * b + (k - 1) * eta for k in most]
        moments = [now + transfer.remaining * cost for transfer, cost in zip(active, costs, strict=True)]
        if coming:
            moments.append(coming[-1].begin)
        then = min(moments)
        for transfer, cost in zip(active, costs, strict=True):
            transfer.remaining -= (then - now) / cost
        for transfer in active:
            if transfer.remaining == 0:
                ends[transfer.job, transfer.iteration] = then
        active = [transfer for transfer in active if transfer.remaining > 0]
        while coming and coming[-1].begin == then:
            active.append(coming.pop())
        now = then
    return ends


def _check_gpus(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    rows: Sequence[_Times],
    violations: list[Violation],
) -> None:
    """One compute task at a time on every GPU."""
    on_gpu: dict[Gpu, list[tuple[Fraction, Fraction, str]]] = {}
    for job, gpus, times in zip(instance.jobs, placement, rows, strict=True):
        for kind, starts, duration in (
            ("forward", times.forward, exact(job.forward)),
            ("backward", times.backward, exact(job.backward)),
        ):
            for i, row in enumerate(starts):
                for gpu, start in zip(gpus, row, strict=True):
                    entry = (start, start + duration, f"{kind} of job {job.id}, iteration {i}")
                    on_gpu.setdefault(gpu, []).append(entry)
    for gpu, tasks in on_gpu.items():
        tasks.sort()
        for (_, end, before), (start, _, after) in pairwise(tasks):
            if start < end * (1 - CHECK_TOLERANCE):
                where = f"server {instance.servers[gpu[0]].id}, GPU {gpu[1]}"
                text = f"{where}: {after} starts at {float(start):.12g}, {before} ends at {float(end):.12g}"
                violations.append(Violation("gpu", text, float(end - start)))


def _check_memory(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    rows: Sequence[_Times],
    finish: Sequence[Fraction],
    violations: list[Violation],
) -> None:
    """A job holds its memory from its first task to its finish."""
    memory = exact(instance.gpu_memory)
    on_gpu: dict[Gpu, list[int]] = {}
    for j, gpus in enumerate(placement):
        for gpu in gpus:
            on_gpu.setdefault(gpu, []).append(j)
    begin = [min(times.forward[0]) for times in rows]
    for gpu, here in on_gpu.items():
        coming = sorted(here, key=lambda j: begin[j], reverse=True)
        held: list[tuple[Fraction, int]] = []
        used = Fraction(0)
        while coming:  # the sum can only be exceeded first when a job begins
            moment = begin[coming[-1]]
            while coming and begin[coming[-1]] == moment:
                j = coming.pop()
                heapq.heappush(held, (finish[j] * (1 - CHECK_TOLERANCE), j))
                used += exact(instance.jobs[j].memory)
            while held and held[0][0] <= moment:
                used -= exact(instance.jobs[heapq.heappop(held)[1]].memory)
            if used > memory * (1 + CHECK_TOLERANCE):
                names = some_of([instance.jobs[k].id for k in sorted(k for _, k in held)])
                where = f"server {instance.servers[gpu[0]].id}, GPU {gpu[1]}, from {float(moment):.12g} s"
                text = f"{where}: {float(used):g} MB used ({names}), {float(memory):g} there"
                violations.append(Violation("memory", text, float(used - memory)))
