"""First in first out and shortest job first, one job per GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.gpu_sharing.schedule import Cluster, start_alone
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.policy_runs import Order, shortness, simulate_policy
from schedgap.solvers.exact.gpu_sharing.bound import priced_starts
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


def quick(instance: GpuSharingInstance) -> Solution | None:
    """First in, first out, where the model is too large to build."""
    return fifo(instance).solution


def first_seconds(instance: GpuSharingInstance) -> float:
    """Seconds, at least, of a first schedule and its check.

    Two thirds of the 13 s that the 82,247 jobs of the Philly log take on one core: a quicker one is not refused.
    """
    return 1e-4 * len(instance.jobs)


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


RESERVE_POWER = 8
"""So high that three jobs in four leave less than a tenth of the reserve free."""


def sjf_reserve(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    reserve: Annotated[
        float, Field(ge=0, lt=1, description="share of the GPUs that the longest job leaves free")
    ] = 0.2,
) -> HeuristicRun:
    """The shortest job first, each on free GPUs, where longer jobs leave some free for shorter ones that may come.

    Parameters
    ----------
    reserve : a job starts only if floor(reserve N r^8) of the N GPUs stay free, r the share of all jobs that are
        shorter than it, or if the cluster is idle

    Notes
    -----
    O(J) per decision. It claims no ratio. It knows how long a job is among all jobs of the instance, later ones too;
    a cluster would take the lengths of last month.
    """
    slots = tables(instance).solo_slots
    shorter = np.searchsorted(np.sort(slots), slots) / len(slots)
    left_free: list[int] = np.floor(reserve * instance.total_gpus * shorter**RESERVE_POWER).astype(np.int64).tolist()
    return simulate_policy(
        instance, lambda c, jobs: start_alone(c, jobs, True, left_free), shortness(instance, "time"), deadline
    )


HELD_PARTS = (1.0, 0.9, 0.75, 0.5)


def sjf_priced(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    held: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="part of the time until its start at the bound's prices for which a job is held back",
        ),
    ] = None,
) -> HeuristicRun:
    """The shortest job first, each on free GPUs, where a job is held back until the bound would have it start.

    The prices of GPUs over time that the certified bound rests on are high while many short jobs wait: at them a long
    job costs least after the rush.

    Parameters
    ----------
    held : 0 is `sjf`; where not given, the best of 1, 0.9, 0.75 and 0.5

    Notes
    -----
    The bound, and O(J) per decision. It knows all jobs from the beginning and claims no ratio. Ours.
    """
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {"reason": reason})
    arrival, starts = tables(instance).arrival, priced_starts(instance)
    runs = []
    for part in HELD_PARTS if held is None else (held,):
        ready = arrival + np.floor(part * (starts - arrival)).astype(np.int64)
        run = simulate_policy(
            instance, lambda c, jobs: start_alone(c, jobs, True), shortness(instance, "time"), deadline, ready
        )
        runs.append(replace(run, info={**run.info, "held": part}))
    ended = [run for run in runs if run.solution is not None]
    return min(ended, key=lambda run: float(run.info["jct all"])) if ended else runs[-1]


def easy(instance: GpuSharingInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """Jobs in order of arrival with EASY backfilling, one job per GPU, durations known.

    The first job that does not fit gets a reservation: the moment at which, as things stand, enough GPUs are free. A
    later one may pass it if it fits now and either ends by then or takes none of the GPUs that are reserved.

    Notes
    -----
    O(J + N log N) per decision. It claims no ratio. Source: D. A. Lifka, The ANL/IBM SP scheduling system, JSSPP 1995;
    Slurm's backfill plugin reserves for more jobs than the first.
    """
    slots = tables(instance).solo_slots.tolist()
    return simulate_policy(
        instance, lambda c, jobs: _start_easy(c, jobs, slots), lambda j: instance.jobs[j].arrival, deadline
    )


def _start_easy(cluster: Cluster, waiting: Sequence[int], slots: Sequence[int]) -> list[int]:
    """Start the first jobs that fit, and of those behind the first that does not, who does not make it wait."""
    started = start_alone(cluster, waiting, False)
    behind = waiting[len(started) + 1 :]
    if not behind or cluster.free == 0:
        return started
    first = int(cluster.tables.gpus[waiting[len(started)]])
    releases = cluster.releases()
    reserved_at = releases[first - cluster.free - 1]
    spare = cluster.free + int(np.searchsorted(releases, reserved_at, side="right")) - first
    for job in behind:
        size = int(cluster.tables.gpus[job])
        in_time = slots[job] <= reserved_at
        if size > cluster.free or not (in_time or size <= spare):
            continue
        cluster.begin(job, 0, cluster.free_gpus(size))
        started.append(job)
        if not in_time:  # it holds its GPUs beyond the reservation
            spare -= size
    return started
