"""The checker of ddl-cluster: replays a policy with the plain simulator, or a schedule in exact rationals.

It shares no code with the compiled simulator, the models or the placement rules. A replayed run is audited for
conservation by :mod:`~schedgap.formulations.ddl_cluster.audit`, which shares no code with any simulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.solution import known_only, one_for_each
from schedgap.formulations.ddl_cluster.audit import AUDITED_TASKS, WHOLE_TASKS, audit
from schedgap.formulations.ddl_cluster.check_schedule import replay_schedule
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain, task_count
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution

STATED = 1e-6
"""A stated finish may be rounded by this, relative; the objective is that of the replay."""


def check(instance: DdlClusterInstance, solution: DdlClusterSolution) -> CheckReport:
    """Check `solution` and recompute its mean job completion time.

    Raises InputError: a job is missing, the instance does not have a job, server or GPU that is named, a GPU is listed
    twice, or the number of GPUs or start times is wrong.

    Parameters
    ----------
    solution : GPUs, stated finish times, and a policy (with jobs held back or not) or explicit start times

    Returns
    -------
    CheckReport
        Violations of: "placement" (not the given one), "finish" (differs from the replay by more than 1e-6
        relative), those of :func:`~schedgap.formulations.ddl_cluster.audit.audit` for a policy, and those of
        :func:`~schedgap.formulations.ddl_cluster.check_schedule.replay_schedule` for a schedule. The objective
        is the mean of finish - arrival in seconds by the replay. ``details["finish"]`` has the replayed finish
        of each job, ``details["audited"]`` whether the run was audited, ``details["cycles"]`` for how many more
        cycles those stand that were gone through: of runs of up to WHOLE_TASKS compute tasks none, of longer ones any
        number, and no more than AUDITED_TASKS may be gone through where it is audited.
    """
    one_for_each(solution.finish, instance.job_index, "finish")
    placement = _placed(instance, solution)
    violations = _given_placement(instance, placement)
    audited, cycles = True, 0
    if solution.schedule is not None:
        finish = replay_schedule(instance, placement, solution.schedule, violations)
    else:
        assert solution.policy is not None  # one of the two is there
        policy = solution.policy
        release = _released(instance, solution)
        run = None
        if task_count(instance) > WHOLE_TASKS:
            run = simulate_plain(instance, placement, policy, release=release)
            audited = task_count(instance, run.iterations) <= AUDITED_TASKS
        if audited:
            run = simulate_plain(instance, placement, policy, release=release, record=True, logged=run)
        assert run is not None and run.skipped is not None  # it is simulated
        cycles = run.skipped
        clock = clock_of(instance)
        finish = [Fraction(tick, 10**clock.digits) for tick in run.finish_ticks]
        if run.log is not None:
            violations += audit(instance, placement, policy, run.log, clock.digits)
    for job, end in zip(instance.jobs, finish, strict=True):
        stated = solution.finish[job.id]
        if not math.isclose(float(end), stated, rel_tol=STATED):
            text = f"job {job.id}: finish {stated:.9g} stated, {float(end):.9g} replayed"
            violations.append(Violation("finish", text, abs(float(end) - stated)))
    flow = [end - exact(job.arrival) for job, end in zip(instance.jobs, finish, strict=True)]
    details = {
        "finish": {job.id: float(end) for job, end in zip(instance.jobs, finish, strict=True)},
        "audited": audited,
        "cycles": cycles,
    }
    return CheckReport(tuple(violations), sum(flow, Fraction(0)) / len(flow), details)


def _released(instance: DdlClusterInstance, solution: DdlClusterSolution) -> dict[str, float]:
    """Until when jobs are held back; ticks stay in range where that is no later than everything may last."""
    held = solution.release or {}
    known_only(held, instance.job_index, "release")
    for name, moment in held.items():
        if moment > instance.longest_run:
            most = f"all jobs one after another end by {instance.longest_run:.6g} s"
            raise InputError(f"solution: release.{name}: {most}, got {moment:g}")
    return held


def _given_placement(instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]]) -> list[Violation]:
    """Jobs that are not where the instance puts them; the order of the workers does not matter."""
    violations = []
    for job, given, gpus in zip(instance.jobs, instance.given, placement, strict=True):
        if given is not None and set(given) != set(gpus):
            text = f"job {job.id}: not on its given GPUs, {len(set(gpus) - set(given))} of {job.gpus} differ"
            violations.append(Violation("placement", text, len(set(gpus) - set(given))))
    return violations


def _placed(instance: DdlClusterInstance, solution: DdlClusterSolution) -> list[tuple[Gpu, ...]]:
    """The GPUs of each job."""
    one_for_each(solution.placement, instance.job_index, "placement")
    placed = []
    for job in instance.jobs:
        where = f"placement.{job.id}"
        try:
            gpus = instance.located(solution.placement[job.id], where)
        except ValueError as error:
            raise InputError(f"solution: {error}") from None
        if len(gpus) != job.gpus:
            raise InputError(f"solution: {where}: {len(gpus)} GPUs given, needs {job.gpus}")
        placed.append(gpus)
    return placed
