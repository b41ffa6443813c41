"""The independent checker of HadarE's forked schedules, in exact rationals."""

from __future__ import annotations

from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.hadar.check import utility_of
from schedgap.formulations.hadar.instance import HadarInstance, Job, Machine
from schedgap.formulations.hadar.solution import ForkedSolution


def check_forked(instance: HadarInstance, solution: ForkedSolution) -> CheckReport:
    """Check a forked schedule.

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
        The instance does not have a job or a machine that is named.
    """
    jobs = {job.id: job for job in instance.jobs}
    machines = {machine.id: machine for machine in instance.machines}
    violations: list[Violation] = []
    steps: dict[str, Fraction] = dict.fromkeys(jobs, Fraction(0))
    last: dict[str, int] = {}
    busy = Fraction(0)
    length = exact(instance.slot_length)
    speeds: dict[tuple[str, str], Fraction] = {}
    for slot, nodes in solution.rounds.items():
        known_only(nodes, machines, f"rounds.{slot}", "machine")
        if not 1 <= slot <= instance.horizon:
            violations.append(Violation("horizon", f"slot {slot} is outside 1..{instance.horizon}"))
        for node, entry in nodes.items():
            known_only((entry.job,), jobs, f"rounds.{slot}.{node}.job")
            job, done = jobs[entry.job], exact(entry.steps)
            if slot < job.arrival:
                violations.append(
                    Violation("arrival", f"job {job.id}: runs in slot {slot}, arrives in slot {job.arrival}")
                )
            if (job.id, node) not in speeds:
                speeds[job.id, node] = _speed(job, machines[node])
            speed = speeds[job.id, node]
            if done > speed * length * (1 + CHECK_TOLERANCE):
                violations.append(
                    Violation(
                        "speed",
                        f"node {node}, slot {slot}: {float(done):g} steps of job {job.id}, at most "
                        f"{float(speed * length):g} are possible",
                        float(done - speed * length),
                    )
                )
            else:
                busy += done / (speed * length)
            steps[job.id] += done
            last[job.id] = max(slot, last.get(job.id, slot))
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
            total += utility_of(instance, job, last[job.id])
        elif instance.all_jobs_must_finish:
            violations.append(
                Violation("completion", f"job {job.id}: {float(steps[job.id]):g} of {job.work} steps done")
            )
    rounds = max(solution.rounds, default=0)
    return CheckReport(tuple(violations), total, {"completion": completion, "busy": float(busy), "rounds": rounds})


def _speed(job: Job, machine: Machine) -> Fraction:
    """Iterations per unit of time of a gang on the node's fastest devices."""
    need = job.workers
    rates = sorted(((exact(job.throughput.get(kind, 0)), count) for kind, count in machine.gpus.items()), reverse=True)
    for rate, count in rates:
        need -= count
        if need <= 0:
            return job.workers * rate
    return Fraction(0)
