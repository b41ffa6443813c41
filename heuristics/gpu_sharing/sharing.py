"""SJF-BSBF, its variant with a better alternative, and first-fit sharing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.gpu_sharing.schedule import Cluster, Decide, run_policy, start_alone
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.kernel import (
    BEST_BENEFIT,
    BEST_BENEFIT_PLUS,
    FIRST_FIT,
    Jobs,
    Occupants,
    Rule,
    Starts,
    decide,
)
from schedgap.solvers.exact.gpu_sharing.bound import priced_starts
from schedgap.solvers.result import NO_DEADLINE, Deadline

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Runs of the non-preemptive policies, and the metrics of every policy.


def simulate_policy(
    instance: GpuSharingInstance,
    decide: Decide,  # starts jobs at an event
    priority: Callable[[int], float],  # the sort key of a job in the queue; ties by position
    deadline: Deadline = NO_DEADLINE,  # looked at before every event
    ready: Ints | None = None,  # by job the slot in which it enters the queue; its arrival where not given
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


def sjf_bsbf(
    instance: GpuSharingInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE, order: Order = "time"
) -> HeuristicRun:
    """Shortest job first with best sharing benefit first (Algorithms 1 and 2).

    A waiting job, the shortest first, starts on free GPUs when there are enough. Otherwise, if free and
    singly occupied GPUs together suffice, every single occupant with which it fits the memory is a candidate
    if the exact rule of Theorem 1 says share; candidates are taken by the pair's mean completion until the
    request is met, then free GPUs. It waits when that is not enough.

    Of the sub-batches that fit, the largest is the best one: iteration times never fall with more
    accumulation steps and both alternatives rise with the new job's solo time, so Algorithm 2 needs one
    evaluation per partner. With several partners the largest number of steps any of them needs is used. The
    running job's time left is taken at its present pace, which matters when it shares other GPUs already.

    Parameters
    ----------
    order : what is short: solo time, or the number of GPUs (section V-B, one sentence)

    Notes
    -----
    O(waiting x occupants) per decision, compiled. Source: paper 003, Algorithms 1 and 2. It claims no ratio.
    """
    return _run(instance, BEST_BENEFIT, deadline, order)


def sjf_bsbf_plus(
    instance: GpuSharingInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE, order: Order = "time"
) -> HeuristicRun:
    """SJF-BSBF with a truer alternative to sharing (ours).

    Waiting does not last until the partner ends if enough GPUs free up before: the alternative of
    Algorithm 2 starts the new job after min(the partner's end, the moment at which enough GPUs are free as
    things stand), with the accumulation steps it needs alone. It shares less under strong interference.

    Notes
    -----
    O(waiting x occupants + N log N) per decision, compiled.
    """
    return _run(instance, BEST_BENEFIT_PLUS, deadline, order)


def sjf_ffs(
    instance: GpuSharingInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE, order: Order = "time"
) -> HeuristicRun:
    """Shortest job first with first-fit sharing: partners in GPU order, whatever the interference.

    Notes
    -----
    O(waiting x occupants) per decision, compiled. Source: paper 003, section VI-A4.
    """
    return _run(instance, FIRST_FIT, deadline, order)


def _run(instance: GpuSharingInstance, rule: int, deadline: Deadline, order: str) -> HeuristicRun:
    policy = SharingPolicy(tables(instance), rule)
    return simulate_policy(instance, policy.decide, shortness(instance, order), deadline)


def _by_class(instance: GpuSharingInstance, slowdown: Floats) -> tuple[Ints, Floats, Floats]:
    """The class of each job, and xi and its transpose by class: one class where nobody slows anybody down."""
    if instance.max_jobs_per_gpu == 1 or not instance.interference:
        return np.zeros(len(slowdown), dtype=np.int64), np.ones((1, 1)), np.ones((1, 1))
    return np.arange(len(slowdown)), np.ascontiguousarray(slowdown), np.ascontiguousarray(slowdown.T)


class SharingPolicy:
    """One decision at a time; the arrays that do not change are made once."""

    def __init__(self, data: SharingTables, rule: int) -> None:
        instance = data.instance
        entries = max([1, *(len(steps) for steps in data.steps)])
        shape = (len(data.steps), entries)
        works, loads = np.full(shape, np.inf), np.full(shape, np.inf)
        for j, (work, load) in enumerate(zip(data.work, data.load, strict=True)):
            works[j, : len(work)], loads[j, : len(load)] = work, load
        self.jobs = Jobs(
            data.gpus,
            np.array([len(steps) for steps in data.steps], dtype=np.int64),
            works,
            loads,
            *_by_class(instance, data.slowdown),
        )
        # A little less than the checker's tolerance: what fits here fits there.
        self.rule = Rule(rule, instance.max_jobs_per_gpu > 1, instance.gpu_memory * (1 + 0.9e-9))

    def decide(self, cluster: Cluster, waiting: Sequence[int]) -> Sequence[int]:
        """Go through the waiting jobs once and start those that Algorithm 1 starts."""
        rule = self.rule
        if cluster.free == 0 and not (rule.shares and cluster.alone.any()):
            return []
        holders = cluster.occupants() if rule.shares else np.zeros(0, dtype=np.int64)
        order = np.array(waiting, dtype=np.int64)
        none, idle = np.zeros(len(order), dtype=np.int64), np.zeros(len(order))
        occupants = Occupants(
            np.concatenate([holders, none]),
            np.concatenate([cluster.alone[holders], none]),
            np.concatenate([cluster.work_left(holders), idle]),
            np.concatenate([cluster.pace[holders], idle]),
            np.concatenate([rule.memory - cluster.load[holders], idle]),
        )
        widest = int(min(self.jobs.gpus[order].max(), len(occupants.job))) + 1 if rule.shares else 1
        shape = (len(order), widest)
        starts = Starts(np.full(len(order), -1, dtype=np.int64), np.full(shape, -1), np.zeros(shape, dtype=np.int64))
        release = cluster.releases() if rule.kind == BEST_BENEFIT_PLUS else np.zeros(0)
        decide(rule, order, cluster.free, release, self.jobs, occupants, len(holders), starts)
        started = []
        for place in np.flatnonzero(starts.entry >= 0).tolist():
            job = int(order[place])
            chosen: list[int] = []
            for partner, number in zip(starts.partners[place].tolist(), starts.taken[place].tolist(), strict=True):
                if partner < 0:
                    break
                chosen += cluster.lone_gpus(int(occupants.job[partner]), number)
            chosen += cluster.free_gpus(int(self.jobs.gpus[job]) - len(chosen))
            cluster.begin(job, int(starts.entry[place]), chosen)
            started.append(job)
        return started


# First in first out and shortest job first, one job per GPU.


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
