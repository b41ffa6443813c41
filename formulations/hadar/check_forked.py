"""The independent checker of HadarE's forked schedules, in exact rationals."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.hadar.instance import HadarInstance, Job, Machine


def check_forked(instance: HadarInstance, solution: Solution) -> CheckReport:
    """Check a forked schedule ``{"rounds": {slot: {machine: {"job": id, "steps": x}}}}``.

    Rules: slots 1..horizon, not before the job's arrival; a node has one entry a round (by the form); the steps
    of an entry are at most what the node's W_j fastest devices do in a slot; the steps of a job sum to its work
    (steps are conserved: not more). The utility counts the last slot in which a copy ran, as in the model.

    Returns
    -------
    CheckReport
        ``objective`` is the sum of utilities of the jobs whose steps are complete; ``details``: ``completion``,
        ``busy`` (node-time in slots) and ``rounds``.

    Raises
    ------
    InputError
        The object is malformed or names what the instance does not have.
    """
    jobs = {job.id: job for job in instance.jobs}
    machines = {machine.id: machine for machine in instance.machines}
    if not isinstance(solution, Mapping) or set(solution) != {"rounds"} or not isinstance(solution["rounds"], Mapping):
        raise InputError("solution: must be an object with the one key rounds, an object by slot")
    violations: list[Violation] = []
    steps: dict[str, Fraction] = dict.fromkeys(jobs, Fraction(0))
    last: dict[str, int] = {}
    busy = Fraction(0)
    length = exact(instance.slot_length)
    for name, nodes in solution["rounds"].items():
        where = f"solution: rounds.{name}"
        slot = _slot(name, where)
        if not isinstance(nodes, Mapping):
            raise InputError(f"{where}: must be an object by machine, got {type(nodes).__name__}")
        if not 1 <= slot <= instance.horizon:
            violations.append(Violation("horizon", f"slot {slot} is outside 1..{instance.horizon}"))
        for node, entry in nodes.items():
            if node not in machines:
                raise InputError(f"{where}.{node}: the instance has no machine {node!r}")
            job, done = _entry(entry, jobs, f"{where}.{node}")
            if slot < job.arrival:
                violations.append(
                    Violation("arrival", f"job {job.id}: runs in slot {slot}, arrives in slot {job.arrival}")
                )
            speed = _speed(job, machines[node])
            if done > speed * length * (1 + CHECK_TOLERANCE):
                violations.append(
                    Violation(
                        "speed",
                        f"node {node}, slot {slot}: {float(done):g} steps of job {job.id}, at most "
                        f"{float(speed * length):g} are possible",
                        float(done - speed * length),
                    )
                )
            elif speed > 0:
                busy += done / (speed * length)
            steps[job.id] += done
            last[job.id] = max(slot, last.get(job.id, 0))
    total = Fraction(0)
    completion: dict[str, int | None] = {}
    for job in instance.jobs:
        if steps[job.id] > job.work * (1 + CHECK_TOLERANCE):
            violations.append(
                Violation("steps", f"job {job.id}: {float(steps[job.id]):g} steps, its work is {job.work}")
            )
        finished = steps[job.id] >= job.work * (1 - CHECK_TOLERANCE)
        completion[job.id] = last[job.id] if finished else None
        if finished:
            total += _utility(instance, job, last[job.id])
        elif instance.all_jobs_must_finish:
            violations.append(
                Violation("completion", f"job {job.id}: {float(steps[job.id]):g} of {job.work} steps done")
            )
    rounds = max((int(slot) for slot in solution["rounds"]), default=0)
    return CheckReport(tuple(violations), total, {"completion": completion, "busy": float(busy), "rounds": rounds})


def _slot(name: Any, where: str) -> int:
    if not isinstance(name, str) or not name.isdecimal() or name != str(int(name)):
        raise InputError(f"{where}: a slot must be a whole number, got {name!r}")
    return int(name)


def _entry(entry: Any, jobs: Mapping[str, Job], where: str) -> tuple[Job, Fraction]:
    if not isinstance(entry, Mapping) or set(entry) != {"job", "steps"}:
        raise InputError(f"{where}: needs exactly job and steps")
    job, done = entry["job"], entry["steps"]
    if not isinstance(job, str) or job not in jobs:
        raise InputError(f"{where}.job: the instance has no job {job!r}")
    if isinstance(done, bool) or not isinstance(done, int | float) or not 0 < done < 1e18:
        raise InputError(f"{where}.steps: must be a positive finite number, got {done!r}")
    return jobs[job], exact(done)


def _speed(job: Job, machine: Machine) -> Fraction:
    """Iterations per unit of time of a gang on the node's fastest devices."""
    need = job.workers
    rates = sorted(((exact(job.throughput.get(kind, 0)), count) for kind, count in machine.gpus.items()), reverse=True)
    for rate, count in rates:
        need -= count
        if need <= 0:
            return job.workers * rate
    return Fraction(0)


def _utility(instance: HadarInstance, job: Job, slot: int) -> Fraction:
    duration = (slot - job.arrival + 1) * exact(instance.slot_length)
    weight = exact(job.utility.weight)
    if duration <= 0:
        return Fraction(0)
    if job.utility.kind == "effective-throughput":
        return weight * job.work / duration
    if job.utility.deadline is not None:
        return max(Fraction(0), weight * (1 - duration / exact(job.utility.deadline)))
    return weight
