"""The checker of ddl-cluster: replays a policy with the plain simulator, or a schedule in exact rationals.

It shares no code with the compiled simulator, the models or the placement rules. A replayed run is audited for
conservation by :mod:`~schedgap.formulations.ddl_cluster.audit`, which shares no code with any simulator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.audit import AUDITED_TASKS, audit
from schedgap.formulations.ddl_cluster.check_schedule import replay_schedule
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.reading import by_job, moment, workers_of
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain, task_count

STATED = 1e-6
"""A stated finish may be rounded by this, relative; the objective is that of the replay."""
_KEYS = ("placement", "policy", "schedule", "finish")


def check(instance: DdlClusterInstance, solution: Solution) -> CheckReport:
    """Check `solution` and recompute its mean job completion time.

    Parameters
    ----------
    instance : the instance
    solution : ``{"placement": {job: [[server, index], ...]}, "policy": name, "finish": {job: seconds}}``, or
        with ``"schedule": {job: {"forward": [[seconds, ...], ...], "backward": ..., "allreduce": [...]}}`` in
        place of the policy: start times by iteration and worker, and by iteration the admissions of the
        all-reduces of a job that spans servers

    Returns
    -------
    CheckReport
        Violations of: "placement" (not the given one), "finish" (differs from the replay by more than 1e-6
        relative), those of :func:`~schedgap.formulations.ddl_cluster.audit.audit` for a policy, and those of
        :func:`~schedgap.formulations.ddl_cluster.check_schedule.replay_schedule` for a schedule. The objective
        is the mean of finish - arrival in seconds by the replay. ``details["finish"]`` has the replayed finish
        of each job, ``details["audited"]`` whether the run was audited: up to AUDITED_TASKS compute tasks it is.

    Raises
    ------
    InputError
        The object is malformed: a missing or unknown key, job, server, GPU or policy, a GPU listed twice, the
        wrong number of GPUs or start times, or a value of the wrong type.
    """
    placement, stated = _read(instance, solution)
    violations = _given_placement(instance, placement)
    audited = True
    if "policy" in solution:
        policy = solution["policy"]
        audited = task_count(instance) <= AUDITED_TASKS
        run = simulate_plain(instance, placement, policy, record=audited)
        clock = clock_of(instance)
        finish = [Fraction(tick, 10**clock.digits) for tick in run.finish_ticks]
        if run.log is not None:
            violations += audit(instance, placement, policy, run.log, clock.digits)
    else:
        finish = replay_schedule(instance, placement, solution["schedule"], violations)
    for job, end, told in zip(instance.jobs, finish, stated, strict=True):
        if not math.isclose(float(end), told, rel_tol=STATED, abs_tol=1e-9):
            text = f"job {job.id}: finish {told:.9g} stated, {float(end):.9g} replayed"
            violations.append(Violation("finish", text, abs(float(end) - told)))
    flow = [end - exact(job.arrival) for job, end in zip(instance.jobs, finish, strict=True)]
    details = {
        "finish": {job.id: float(end) for job, end in zip(instance.jobs, finish, strict=True)},
        "audited": audited,
    }
    return CheckReport(tuple(violations), sum(flow, Fraction(0)) / len(flow), details)


def _given_placement(instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]]) -> list[Violation]:
    """Jobs that are not where the instance puts them; the order of the workers does not matter."""
    violations = []
    for job, given, gpus in zip(instance.jobs, instance.given, placement, strict=True):
        if given is not None and set(given) != set(gpus):
            text = f"job {job.id}: not on its given GPUs, {len(set(gpus) - set(given))} of {job.gpus} differ"
            violations.append(Violation("placement", text, len(set(gpus) - set(given))))
    return violations


def _read(instance: DdlClusterInstance, solution: Any) -> tuple[list[tuple[Gpu, ...]], list[float]]:
    """The placement and the stated finish times, by job."""
    if not isinstance(solution, Mapping):
        raise InputError(f"solution: must be a JSON object, got {type(solution).__name__}")
    for key in solution:
        if key not in _KEYS:
            raise InputError(f"solution.{key}: unknown key")
    if ("policy" in solution) == ("schedule" in solution):
        raise InputError("solution: needs either a policy or a schedule")
    if "policy" in solution:
        policy = solution["policy"]
        if not isinstance(policy, str) or policy not in POLICIES:
            raise InputError(f"solution.policy: must be one of {', '.join(POLICIES)}, got {policy!r}")
    placement = by_job(instance, solution.get("placement"), "solution.placement")
    finish = by_job(instance, solution.get("finish"), "solution.finish")
    placed = []
    for job in instance.jobs:
        gpus = workers_of(instance, placement[job.id], f"solution.placement.{job.id}")
        if len(gpus) != job.gpus:
            raise InputError(f"solution.placement.{job.id}: {len(gpus)} GPUs given, needs {job.gpus}")
        placed.append(gpus)
    return placed, [moment(finish[job.id], f"solution.finish.{job.id}") for job in instance.jobs]
