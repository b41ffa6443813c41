"""Runs of the non-preemptive policies, and the metrics of every policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.gpu_sharing.schedule import Decide, run_policy
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.result import NO_DEADLINE, Deadline


def simulate_policy(
    instance: GpuSharingInstance,
    decide: Decide,  # starts jobs at an event
    priority: Callable[[int], float],  # the sort key of a job in the queue; ties by position
    deadline: Deadline = NO_DEADLINE,  # looked at before every event
    ready: Ints | None = None,  # slot in which each job enters the queue; its arrival where not given
) -> HeuristicRun:
    """Run a policy from the first arrival to the last completion.

    Returns
    -------
    HeuristicRun
        The solution, or None when a job can never run, the last one completes after the horizon, or the deadline
        came first (every job has to be placed: ``stopped``); metrics
        of the run in ``info`` (see :func:`metrics`).

    Notes
    -----
    At most 2 J decisions; between them nothing is computed.
    """
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {"reason": reason})
    run = run_policy(tables(instance), decide, priority, lambda: deadline.passed, ready)
    if run.stopped:
        return late(run.missing)
    if run.missing:
        return HeuristicRun(None, {"reason": "the policy leaves jobs waiting on an idle cluster"})
    cluster = run.cluster
    waiting = (cluster.start - cluster.tables.arrival).tolist()
    info = {"decisions": run.decisions, **metrics(instance, waiting, cluster.end.tolist())}
    if cluster.end.max() > instance.horizon:
        last = int(cluster.end.max())
        info["reason"] = f"the last job completes in slot {last}, the horizon is {instance.horizon}"
        return HeuristicRun(None, info)
    return HeuristicRun(cluster.solution(), info)


Order = Annotated[
    Literal["time", "gpus"], Field(description="which job is the shortest: by solo time, or by its number of GPUs")
]
"""Section V-B of paper 003 says shortest job first and, in one sentence, "according to their used GPU numbers"."""


def shortness(instance: GpuSharingInstance, order: str) -> Callable[[int], float]:
    """The key of shortest job first: solo time, or the number of GPUs; ties by position."""
    if order == "gpus":
        return lambda j: float(instance.jobs[j].gpus)
    work = tables(instance).solo_work
    return lambda j: float(work[j])


def late(missing: int) -> HeuristicRun:
    """The answer of a policy that the deadline stopped with so many jobs not yet started."""
    reason = f"the time limit came with {missing} jobs not yet started"
    return HeuristicRun(None, {"stopped": "time limit", "reason": reason})


def metrics(instance: GpuSharingInstance, waiting: Sequence[int], end: Sequence[int]) -> Mapping[str, Json]:
    """Mean JCT and queuing time in slots over all, large (more than 4 GPUs) and small jobs; makespan.

    Queuing is the time between arrival and completion in which a job has no GPU.

    The split is that of Tables III and IV of paper 003.
    """
    arrival = np.array([job.arrival for job in instance.jobs])
    large = np.array([job.gpus > 4 for job in instance.jobs])
    jct, waited = np.array(end) - arrival + 1, np.array(waiting)
    result: dict[str, Any] = {"makespan": int(max(end) - arrival.min() + 1)}
    for name, group in (("all", np.ones_like(large)), ("large", large), ("small", ~large)):
        chosen = group.astype(bool)
        result[f"jct {name}"] = float(jct[chosen].mean()) if chosen.any() else None
        result[f"queuing {name}"] = float(waited[chosen].mean()) if chosen.any() else None
    return result
