"""The independent checker of hadar: exact rationals, shares no code with any model or heuristic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.hadar.instance import HadarInstance, Job
from schedgap.formulations.hadar.solution import HadarSolution

Held = dict[str, dict[int, dict[tuple[str, str], int]]]
"""Devices by job, slot, and (machine, type)."""


def check(instance: HadarInstance, solution: HadarSolution) -> CheckReport:
    """Check a solution and recompute its utility.

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

    Raises
    ------
    InputError
        The instance does not have a job, a machine or a device type that is named.

    Notes
    -----
    O(size of the solution) exact operations.
    """
    held = _held(instance, solution)
    violations: list[Violation] = []
    used: dict[tuple[int, str, str], int] = defaultdict(int)
    total = Fraction(0)
    completion: dict[str, int | None] = {}
    utility: dict[str, float] = {}
    busy = 0
    for job in instance.jobs:
        slots = held.get(job.id, {})
        progress = Fraction(0)
        known: dict[tuple[str, ...], Fraction] = {}
        for slot in sorted(slots):
            devices = slots[slot]
            for (machine, kind), count in devices.items():
                used[slot, machine, kind] += count
            busy += sum(devices.values())
            progress += _slot_progress(instance, job, slot, devices, violations, known)
        finished = bool(slots) and progress >= job.work * (1 - CHECK_TOLERANCE)
        completion[job.id] = max(slots) if finished else None
        worth = utility_of(instance, job, max(slots)) if finished else Fraction(0)
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
    sizes = {(machine.id, kind): count for machine in instance.machines for kind, count in machine.gpus.items()}
    for slot, machine, kind in sorted(used):
        there = sizes.get((machine, kind), 0)
        taken = used[slot, machine, kind]
        if taken > there:
            violations.append(
                Violation(
                    "capacity",
                    f"machine {machine}, type {kind}, slot {slot}: {taken} devices used, {there} there",
                    float(taken - there),
                )
            )
    return CheckReport(tuple(violations), total, {"completion": completion, "utility": utility, "busy": busy})


def _slot_progress(
    instance: HadarInstance,
    job: Job,
    slot: int,
    devices: Mapping[tuple[str, str], int],
    violations: list[Violation],
    known: dict[tuple[str, ...], Fraction],
) -> Fraction:
    """Iterations done in one slot, W L min X (1a, 1b); 0 and a violation where the slot breaks a rule.

    `known` keeps those of the job by the types that it holds.
    """
    sound = True
    if not 1 <= slot <= instance.horizon:
        violations.append(Violation("horizon", f"job {job.id}: slot {slot} is outside 1..{instance.horizon}"))
        sound = False
    if slot < job.arrival:
        violations.append(
            Violation(
                "arrival",
                f"job {job.id}: runs in slot {slot}, arrives in slot {job.arrival}",
                float(job.arrival - slot),
            )
        )
        sound = False
    count = sum(devices.values())
    if count != job.workers:
        violations.append(
            Violation(
                "gang",
                f"job {job.id}, slot {slot}: holds {count} devices, its gang is {job.workers} or none",
                float(abs(count - job.workers)),
            )
        )
        sound = False
    kinds = tuple(sorted({kind for _, kind in devices}))
    if sound and kinds in known:
        return known[kinds]
    rates = []
    for kind in kinds:
        rate = exact(job.throughput.get(kind, 0))
        if rate <= 0:
            violations.append(Violation("type", f"job {job.id}, slot {slot}: cannot use devices of type {kind}"))
            sound = False
        rates.append(rate)
    if not sound:
        return Fraction(0)
    known[kinds] = job.workers * exact(instance.slot_length) * min(rates)
    return known[kinds]


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
    """The devices of each job, counted; slots without any are left out."""
    known_only(solution.allocation, {job.id for job in instance.jobs}, "allocation")
    machines = {machine.id for machine in instance.machines}
    kinds = {kind for machine in instance.machines for kind in machine.gpus}
    held: Held = {}
    for job, slots in solution.allocation.items():
        held[job] = {}
        for slot, entries in slots.items():
            devices: dict[tuple[str, str], int] = {}
            for position, entry in enumerate(entries):
                machine, kind = entry["machine"], entry["type"]
                if machine not in machines or kind not in kinds:
                    where = f"allocation.{job}.{slot}[{position}]"
                    known_only((machine,), machines, f"{where}.machine", "machine")
                    known_only((kind,), kinds, f"{where}.type", "device type")
                devices[machine, kind] = devices.get((machine, kind), 0) + entry["gpus"]
            if devices:
                held[job][slot] = devices
    return held
