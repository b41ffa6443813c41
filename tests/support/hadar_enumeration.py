"""LP(P2) of tiny hadar instances over every schedule of every job, written out."""

from __future__ import annotations

from fractions import Fraction

import highspy
import numpy as np
from oracles.hadar import TOLERANCE, gangs, slot_progress, worth

from schedgap.formulations.hadar.instance import HadarInstance, Job


def schedules(instance: HadarInstance, job: Job) -> list[tuple[Fraction, dict[tuple[int, int], int]]]:
    """Every schedule of a job that ends when its work is done: (utility, devices by (type index, slot))."""
    found = []
    need = job.epochs * job.iterations_per_epoch * TOLERANCE
    options = gangs(instance, job)

    def extend(slot: int, done: Fraction, used: dict[tuple[int, int], int]) -> None:
        if slot > instance.horizon:
            return
        extend(slot + 1, done, used)
        for counts in options:
            more = {**used, **{(k, slot): n for k, n in enumerate(counts) if n}}
            after = done + slot_progress(instance, job, counts)
            if after >= need:
                found.append((worth(instance, job, slot), more))
            else:
                extend(slot + 1, after, more)

    extend(job.arrival, Fraction(0), {})
    return found


def enumerated_lp(instance: HadarInstance) -> float | None:
    """LP(P2) (of P1 with equality rows) over every schedule of every job; None where infeasible."""
    columns = [(j, u, use) for j, job in enumerate(instance.jobs) for u, use in schedules(instance, job)]
    pools = [(k, t) for k in range(len(instance.capacity)) for t in range(1, instance.horizon + 1)]
    row_of = {pool: len(instance.jobs) + i for i, pool in enumerate(pools)}
    sizes = list(instance.capacity.values())
    rows = len(instance.jobs) + len(pools)
    matrix = np.zeros((rows, len(columns)))
    for c, (j, _, use) in enumerate(columns):
        matrix[j, c] = 1
        for pool, n in use.items():
            matrix[row_of[pool], c] = n
    upper = [1.0] * len(instance.jobs) + [float(sizes[k]) for k, _ in pools]
    lower = [1.0 if instance.all_jobs_must_finish else -highspy.kHighsInf] * len(instance.jobs)
    lower += [-highspy.kHighsInf] * len(pools)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for c, (_, u, _) in enumerate(columns):
        solver.addVar(0, highspy.kHighsInf)
        solver.changeColCost(c, -float(u))
    for i in range(rows):
        where = np.flatnonzero(matrix[i]).astype(np.int32)
        solver.addRow(lower[i], upper[i], len(where), where, matrix[i, where])
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    return -solver.getInfo().objective_function_value
