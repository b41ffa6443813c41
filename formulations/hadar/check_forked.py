"""The independent checker of HadarE's forked schedules, in exact rationals."""

from __future__ import annotations

from collections import defaultdict
from decimal import Context, Decimal, Inexact
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.hadar.check import Pool, utility_of
from schedgap.formulations.hadar.instance import HadarInstance, Job, Machine
from schedgap.formulations.hadar.solution import ForkedSolution

_SUMS = Context(prec=400, traps=[Inexact])
"""Floats below 10^18, the smallest 5e-324, add up in so many digits."""


def check_forked(instance: HadarInstance, solution: ForkedSolution) -> CheckReport:
    """Check a forked schedule.

    Rules: slots 1..horizon, not before the job's arrival; a node has one entry a round (by the form); the steps of an
    entry are at most what the node's W_j fastest devices do in a slot; the steps of a job sum to its work (steps are
    conserved: not more). The utility counts the last slot in which a copy ran, as in the model. Returns ``objective``
    is the sum of utilities of the jobs whose steps are complete; ``details``: ``completion``, ``busy`` (node-time in
    slots) and ``rounds``. Raises InputError: the instance does not have a job or a machine that is named.
    """
    jobs = {job.id: job for job in instance.jobs}
    machines = {machine.id: machine for machine in instance.machines}
    violations: list[Violation] = []
    length = exact(instance.slot_length)
    # by job and node
    steps: dict[Pool, Decimal] = {}
    too_many: dict[Pool, Decimal] = defaultdict(Decimal)
    possible: dict[Pool, Fraction] = {}  # in a slot
    surely: dict[Pool, float] = {}  # up to here it is within the tolerance
    last: dict[str, int] = {}
    for slot, nodes in solution.rounds.items():
        known_only(nodes, machines, f"rounds.{slot}", "machine")
        if not 1 <= slot <= instance.horizon:
            violations.append(Violation("horizon", f"slot {slot} is outside 1..{instance.horizon}"))
        for node, entry in nodes.items():
            known_only((entry.job,), jobs, f"rounds.{slot}.{node}.job")
            job = jobs[entry.job]
            pair = job.id, node
            done = Decimal(repr(entry.steps))
            if slot < job.arrival:
                text = f"job {job.id}: runs in slot {slot}, arrives in slot {job.arrival}"
                violations.append(Violation("arrival", text))
            if pair not in steps:
                steps[pair] = Decimal()
                most = _speed(job, machines[node]) * length
                possible[pair] = most
                surely[pair] = float(most * (1 + CHECK_TOLERANCE / 2))
            most = possible[pair]
            over = entry.steps > surely[pair]
            if over and Fraction(done) > most * (1 + CHECK_TOLERANCE):
                violations.append(
                    Violation(
                        "speed",
                        f"node {node}, slot {slot}: "
                        f"{float(done):g} steps of job {job.id}, at most "
                        f"{float(most):g} are possible",
                        float(Fraction(done) - most),
                    )
                )
                too_many[pair] = _SUMS.add(too_many[pair], done)
            steps[pair] = _SUMS.add(steps[pair], done)
            last[job.id] = max(slot, last.get(job.id, slot))
    busy = Fraction(0)
    made_of: dict[str, Fraction] = dict.fromkeys(jobs, Fraction(0))
    for pair, made in steps.items():
        made_of[pair[0]] += Fraction(made)
        if possible[pair]:
            made = _SUMS.subtract(made, too_many[pair])
            busy += Fraction(made) / possible[pair]
    total = Fraction(0)
    completion: dict[str, int | None] = {}
    for job in instance.jobs:
        if made_of[job.id] > job.work * (1 + CHECK_TOLERANCE):
            violations.append(
                Violation("steps", f"job {job.id}: {float(made_of[job.id]):g} steps, its work is {job.work}")
            )
        finished = made_of[job.id] >= job.work * (1 - CHECK_TOLERANCE)
        completion[job.id] = last[job.id] if finished else None
        if finished:
            total += utility_of(instance, job, last[job.id])
        elif instance.all_jobs_must_finish:
            violations.append(
                Violation("completion", f"job {job.id}: {float(made_of[job.id]):g} of {job.work} steps done")
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
