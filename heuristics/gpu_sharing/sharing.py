"""SJF-BSBF, its variant with a better alternative, and first-fit sharing.

Idea: the shortest waiting job takes free GPUs if there are enough, else GPUs with one job whose pair gains most by
sharing at once (Theorem 1). Source: paper 003, Algorithms 1 and 2. Where ours differs: the text has lost its
formulas, and `docs/gpu-sharing.md` says how each gap is filled (several partners, sub-batches, what sharing is
compared with). `sjf-bsbf+` is ours: it compares with the first start on free GPUs. `sjf-ffs` shares first-fit,
whatever it costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import Cluster
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
from schedgap.heuristics.gpu_sharing.policy_runs import Order, shortness, simulate_policy
from schedgap.solvers.result import NO_DEADLINE, Deadline


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
