"""The independent checker of hadar: exact rationals, shares no code with any model or heuristic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.hadar.instance import HadarInstance, Job

Held = dict[str, dict[int, dict[tuple[str, str], int]]]
"""Devices by job, slot, and (machine, type)."""


def check(instance: HadarInstance, solution: Solution) -> CheckReport:
    """Check a solution ``{"allocation": {job: {slot: [{"machine", "type", "gpus"}]}}}`` and recompute its utility.

    Parameters
    ----------
    instance : the instance
    solution : the bare solution object; a job that is not named is rejected

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
        The object is malformed: an id the instance does not have, a wrong type, an entry of 0 devices.

    Notes
    -----
    O(size of the solution) exact operations.
    """
    held = _read(instance, solution)
    violations: list[Violation] = []
    used: dict[tuple[int, str, str], int] = defaultdict(int)
    total = Fraction(0)
    completion: dict[str, int | None] = {}
    utility: dict[str, float] = {}
    busy = 0
    for job in instance.jobs:
        slots = held.get(job.id, {})
        progress = Fraction(0)
        for slot in sorted(slots):
            devices = slots[slot]
            for (machine, kind), count in devices.items():
                used[slot, machine, kind] += count
            busy += sum(devices.values())
            progress += _slot_progress(instance, job, slot, devices, violations)
        finished = bool(slots) and progress >= job.work * (1 - CHECK_TOLERANCE)
        completion[job.id] = max(slots) if finished else None
        worth = _utility(instance, job, max(slots)) if finished else Fraction(0)
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
) -> Fraction:
    """Iterations done in one slot, W L min X (1a, 1b); 0 and a violation where the slot breaks a rule."""
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
    rates = []
    for kind in sorted({kind for _, kind in devices}):
        rate = exact(job.throughput.get(kind, 0))
        if rate <= 0:
            violations.append(Violation("type", f"job {job.id}, slot {slot}: cannot use devices of type {kind}"))
            sound = False
        rates.append(rate)
    return job.workers * exact(instance.slot_length) * min(rates) if sound else Fraction(0)


def _utility(instance: HadarInstance, job: Job, last: int) -> Fraction:
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


def _read(instance: HadarInstance, solution: Any) -> Held:
    """The solution object, validated as an object."""
    if not isinstance(solution, Mapping):
        raise InputError(f"solution: must be an object, got {type(solution).__name__}")
    for key in solution:
        if key != "allocation":
            raise InputError(f"solution: {key}: unknown key")
    if "allocation" not in solution:
        raise InputError("solution: allocation: is missing")
    allocation = solution["allocation"]
    if not isinstance(allocation, Mapping):
        raise InputError(f"solution: allocation: must be an object, got {type(allocation).__name__}")
    jobs = {job.id for job in instance.jobs}
    machines = {machine.id for machine in instance.machines}
    kinds = {kind for machine in instance.machines for kind in machine.gpus}
    held: Held = {}
    for job, slots in allocation.items():
        where = f"solution: allocation.{job}"
        if job not in jobs:
            raise InputError(f"{where}: the instance has no job {job!r}")
        if not isinstance(slots, Mapping):
            raise InputError(f"{where}: must be an object by slot, got {type(slots).__name__}")
        held[job] = {}
        for name, entries in slots.items():
            slot = _slot(name, f"{where}.{name}")
            if slot in held[job]:
                raise InputError(f"{where}.{name}: the slot is given twice")
            devices = _entries(machines, kinds, entries, f"{where}.{name}")
            if devices:
                held[job][slot] = devices
    return held


def _slot(name: Any, where: str) -> int:
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InputError(f"{where}: a slot must be a whole number, got {name!r}")
    try:
        slot = int(name)
    except ValueError:
        raise InputError(f"{where}: a slot must be a whole number, got {name!r}") from None
    if isinstance(name, str) and name != str(slot):
        raise InputError(f"{where}: a slot must be a whole number, got {name!r}")
    return slot


def _entries(machines: set[str], kinds: set[str], entries: Any, where: str) -> dict[tuple[str, str], int]:
    if not isinstance(entries, list | tuple):
        raise InputError(f"{where}: must be a list, got {type(entries).__name__}")
    devices: dict[tuple[str, str], int] = {}
    for position, entry in enumerate(entries):
        place = f"{where}[{position}]"
        if not isinstance(entry, Mapping):
            raise InputError(f"{place}: must be an object, got {type(entry).__name__}")
        if set(entry) != {"machine", "type", "gpus"}:
            raise InputError(
                f"{place}: needs exactly machine, type and gpus, got {', '.join(map(str, entry)) or 'none'}"
            )
        machine, kind, count = entry["machine"], entry["type"], entry["gpus"]
        if not isinstance(machine, str) or machine not in machines:
            raise InputError(f"{place}.machine: the instance has no machine {machine!r}")
        if not isinstance(kind, str) or kind not in kinds:
            raise InputError(f"{place}.type: the instance has no device type {kind!r}")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{place}.gpus: must be a whole number of at least 1, got {count!r}")
        devices[machine, kind] = devices.get((machine, kind), 0) + count
    return devices
