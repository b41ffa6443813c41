"""First in first out and shortest job first, one job per GPU."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import start_alone
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.simulation import Order, shortness, simulate_policy
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
    backfill : later jobs that fit may pass the first

    Notes
    -----
    O(J) per decision. Source: paper 003, section VI-A1.
    """
    return simulate_policy(
        instance, lambda c, jobs: start_alone(c, jobs, backfill), lambda j: instance.jobs[j].arrival, deadline
    )


def sjf(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[
        bool, Field(description="a job that does not fit is passed over; false: it holds up the rest")
    ] = True,
    order: Order = "time",
) -> HeuristicRun:
    """The shortest job first, each on free GPUs; one that does not fit is passed over.

    Parameters
    ----------
    backfill : False lets the first job that does not fit hold up the rest
    order : what is short: solo time, or the number of GPUs

    Notes
    -----
    O(J) per decision. Source: paper 003, section VI-A2; passing over is what Algorithm 1 does.
    """
    return simulate_policy(
        instance, lambda c, jobs: start_alone(c, jobs, backfill), shortness(instance, order), deadline
    )
