"""The independent checker of hadar: exact rationals, shares no code with any model or heuristic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.hadar.instance import HadarInstance, Job
from schedgap.formulations.hadar.solution import HadarSolution, runs_of

Pool = tuple[str, str]
"""A machine and a device type; a job and a machine."""


Held = dict[str, list[tuple[int, int, dict[Pool, int]]]]
"""Runs of each job: first slot, last slot, devices."""


def check(instance: HadarInstance, solution: HadarSolution) -> CheckReport:
    """Check a solution and recompute its utility.

    Raises InputError: the instance does not have a job, a machine or a device type that is named.

    Parameters
    ----------
    solution : the devices each job holds; a job that is not named is rejected

    Returns
    -------
    CheckReport
        Violations of horizon, arrival, gang (1e), usable types (1b), capacity (1d) and, with
        ``all_jobs_must_finish``, completion (1a). ``objective`` is the sum of the utilities of the jobs that
        finish. ``details``: ``completion`` (last slot used, None for a job that does not finish), ``utility``
        by job, and ``busy`` (device-slots held).

    Notes
    -----
    O(n log n) for n runs, one exact operation each; a slot of the form by slot is a run.
    """
    held = _held(instance, solution)
    violations: list[Violation] = []
    total = Fraction(0)
    completion: dict[str, int | None] = {}
    utility: dict[str, float] = {}
    busy = 0
    for job in instance.jobs:
        runs = held.get(job.id, [])
        done: dict[tuple[str, ...], int] = defaultdict(int)  # slots by the types held in them
        for first, last, devices in runs:
            count = sum(devices.values())
            busy += count * (last - first + 1)
            kinds = tuple(sorted({kind for _, kind in devices}))
            done[kinds] += _useful_slots(instance, job, first, last, count, violations)
            violations += [
                Violation("type", f"job {job.id}, {_slots(first, last)}: cannot use devices of type {kind}")
                for kind in kinds
                if job.throughput.get(kind, 0) <= 0
            ]
        progress = sum((slots * _in_a_slot(instance, job, kinds) for kinds, slots in done.items()), Fraction(0))
        end = max((last for _, last, _ in runs), default=0)
        finished = bool(runs) and progress >= job.work * (1 - CHECK_TOLERANCE)
        completion[job.id] = end if finished else None
        worth = utility_of(instance, job, end) if finished else Fraction(0)
        utility[job.id] = float(worth)
        total += worth
        if instance.all_jobs_must_finish and not finished:
            missing = job.work - progress
            violations.append(
                Violation(
                    "completion",
                    f"job {job.id}: {float(progress):g} of {job.work} iterations done, every job has to finish",
                    float(missing),
                )
            )
    violations += _overfull(instance, held)
    return CheckReport(tuple(violations), total, {"completion": completion, "utility": utility, "busy": busy})


def _overfull(instance: HadarInstance, held: Held) -> list[Violation]:
    """Violations of capacity: a sweep over the first and last slots of the runs, by machine and type."""
    sizes = {(machine.id, kind): count for machine in instance.machines for kind, count in machine.gpus.items()}
    changes: dict[Pool, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for runs in held.values():
        for first, last, devices in runs:
            for pool, count in devices.items():
                changes[pool][first] += count
                changes[pool][last + 1] -= count
    over = []
    for pool, steps in changes.items():
        there = sizes.get(pool, 0)
        taken = 0
        moments = sorted(slot for slot, change in steps.items() if change)
        for slot, following in pairwise(moments):
            taken += steps[slot]
            if taken > there:
                over.append((slot, pool, following - 1, taken, there))
    return [
        Violation(
            "capacity",
            f"machine {machine}, type {kind}, {_slots(slot, last)}: {taken} devices used, {there} there",
            float(taken - there),
        )
        for slot, (machine, kind), last, taken, there in sorted(over)
    ]


def _slots(first: int, last: int) -> str:
    return f"slot {first}" if first == last else f"slots {first} to {last}"


def _in_a_slot(instance: HadarInstance, job: Job, kinds: tuple[str, ...]) -> Fraction:
    """Iterations in a slot on devices of these types, W L min X (1a, 1b); 0 where one cannot be used."""
    slowest = min(exact(job.throughput.get(kind, 0)) for kind in kinds)
    return job.workers * exact(instance.slot_length) * slowest


def _useful_slots(
    instance: HadarInstance, job: Job, first: int, last: int, count: int, violations: list[Violation]
) -> int:
    """Slots of a run that count: after the arrival, up to the horizon, with the whole gang.

    What breaks a rule is added to the violations.
    """
    useful = max(0, min(last, instance.horizon) - max(first, job.arrival, 1) + 1)
    if useful == last - first + 1 and count == job.workers:
        return useful
    where = _slots(first, last)
    if first < 1 or last > instance.horizon:
        outside = "is outside" if first == last else "reach outside"
        violations.append(Violation("horizon", f"job {job.id}: {where} {outside} 1..{instance.horizon}"))
    if first < job.arrival:
        violations.append(
            Violation(
                "arrival",
                f"job {job.id}: runs in slot {first}, arrives in slot {job.arrival}",
                float(job.arrival - first),
            )
        )
    if count == job.workers:
        return useful
    violations.append(
        Violation(
            "gang",
            f"job {job.id}, {where}: holds {count} devices, its gang is {job.workers} or none",
            float(abs(count - job.workers)),
        )
    )
    return 0


def utility_of(instance: HadarInstance, job: Job, last: int) -> Fraction:
    """U_j of the completion duration (last - arrival + 1) L."""
    duration = (last - job.arrival + 1) * exact(instance.slot_length)
    weight = exact(job.utility.weight)
    if duration <= 0:
        return Fraction(0)
    if job.utility.kind == "effective-throughput":
        return weight * job.work / duration
    if job.utility.deadline is not None:
        return max(Fraction(0), weight * (1 - duration / exact(job.utility.deadline)))
    return weight


def _held(instance: HadarInstance, solution: HadarSolution) -> Held:
    """The devices of each job, counted; runs without any are left out."""
    known_only(solution.allocation, {job.id for job in instance.jobs}, "allocation")
    machines = {machine.id for machine in instance.machines}
    kinds = {kind for machine in instance.machines for kind in machine.gpus}
    held: Held = {}
    for job, given in solution.allocation.items():
        held[job] = []
        for first, last, entries in runs_of(given):
            devices: dict[Pool, int] = {}
            for position, entry in enumerate(entries):
                machine, kind = entry["machine"], entry["type"]
                if machine not in machines or kind not in kinds:
                    place = f"allocation.{job}.{first}"
                    if not isinstance(given, Mapping):
                        number = next(k for k, run in enumerate(given) if run[0] == first)
                        place = f"allocation.{job}[{number}][2]"
                    where = f"{place}[{position}]"
                    known_only((machine,), machines, f"{where}.machine", "machine")
                    known_only((kind,), kinds, f"{where}.type", "device type")
                devices[machine, kind] = devices.get((machine, kind), 0) + entry["gpus"]
            if devices:
                held[job].append((first, last, devices))
    return held
