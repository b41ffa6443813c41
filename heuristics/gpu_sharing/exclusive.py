"""First in first out and shortest job first, one job per GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.cluster import Cluster
from schedgap.heuristics.gpu_sharing.simulation import simulate_policy
from schedgap.solvers.result import NO_DEADLINE, Deadline


def fifo(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[bool, Field(description="later jobs that fit may pass the first")] = False,
) -> HeuristicRun:
    """Jobs in order of arrival, each on free GPUs; the first that does not fit holds up the rest.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic
    deadline : looked at before every event; a schedule that is not complete by then is none
    backfill : later jobs that fit may pass the first

    Notes
    -----
    O(J) per decision. Source: paper 003, section VI-A1.
    """
    return simulate_policy(instance, _Exclusive(backfill), lambda j: (float(instance.jobs[j].arrival),), deadline)


def sjf(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[
        bool, Field(description="a job that does not fit is passed over; false: it holds up the rest")
    ] = True,
) -> HeuristicRun:
    """Jobs by solo time, the shortest first, each on free GPUs; one that does not fit is passed over.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic
    deadline : looked at before every event; a schedule that is not complete by then is none
    backfill : False lets the first job that does not fit hold up the rest

    Notes
    -----
    O(J) per decision. Source: paper 003, section VI-A2; passing over is what Algorithm 1 does.
    """
    data = tables(instance)
    return simulate_policy(instance, _Exclusive(backfill), lambda j: (float(data.solo_work[j]),), deadline)


class _Exclusive:
    """Start what fits on free GPUs."""

    def __init__(self, backfill: bool) -> None:
        self.backfill = backfill

    def __call__(self, cluster: Cluster, waiting: Sequence[int]) -> Sequence[int]:
        started = []
        for job in waiting:
            if cluster.free == 0:
                break
            size = int(cluster.tables.gpus[job])
            if size <= cluster.free:
                cluster.begin(job, 0, cluster.free_gpus(size))
                started.append(job)
            elif not self.backfill:
                break
        return started
