"""The baselines of paper 004: FIFO, dominant resource fairness, least attained service, with greedy rings.

None of them looks at utilities. Workers are placed by a greedy search for servers "where a cycle can be attained"
(:meth:`~schedgap.formulations.g_vne.ring_network.RingNetwork.place`).
"""

from __future__ import annotations

import heapq
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.ring_network import Ring
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.ddljs.greedy_state import GreedyState

Workers: TypeAlias = Annotated[
    int | None,
    Field(
        ge=1, description="workers of every ring, at most N_i; a number from 1 to 10 drawn for each job where not given"
    ),
]

MOST_WORKERS = 10
"""The paper fixes the workers of a job "within [1, 10]"; N_i still holds."""


def _fixed(progress: GreedyState, workers: int | None, seed: int) -> list[int]:
    """The ring of every job: the number given, or one drawn, as far as N_i and the network allow."""
    count = len(progress.needs)
    drawn = np.random.default_rng(seed).integers(1, MOST_WORKERS + 1, count).tolist()
    return [min(drawn[i] if workers is None else workers, progress.reach[i].ring) for i in range(count)]


def fifo(
    instance: DdljsInstance,
    *,
    seed: int = 0,  # seed of the numbers of workers, where they are drawn
    workers: Workers = None,  # number of workers of every ring
    backfill: Annotated[bool, Field(description="jobs behind one that does not fit may start")] = False,
) -> HeuristicRun:
    """First in, first out, never preempted: a job keeps its ring until its budget is used up.

    Jobs start in the order of their arrivals (ties by input order) with a fixed number of workers; one that does not
    fit blocks those behind it, unless `backfill`. The last slot of a budget may have a smaller ring.

    Notes
    -----
    No guarantee. O(T J) placements at most. Source: paper 004, section VI ("FIFO in Hadoop and Spark").
    """
    progress = GreedyState(instance)
    size = _fixed(progress, workers, seed)
    running: dict[int, Ring] = {}
    for _ in range(instance.horizon):
        active = list(progress.active())
        kept = {i: ring for i, ring in running.items() if progress.largest(i) >= len(ring.workers)}
        for i, ring in kept.items():
            progress.network.occupy(progress.needs[i], ring)
        ending = [i for i in running if i not in kept and progress.largest(i)]
        waiting = sorted((i for i in active if i not in running), key=lambda i: (instance.jobs[i].arrival, i))
        for i in ending + waiting:
            placed = progress.network.place(progress.needs[i], min(size[i], progress.largest(i)))
            if placed is not None:
                kept[i] = placed
            elif i not in ending and not backfill:
                break
        running = kept
        progress.close(running, len(active))
    return progress.run()


def las(instance: DdljsInstance, *, seed: int = 0, workers: Workers = None) -> HeuristicRun:
    """Least attained service: in every slot jobs in the order of the worker-slots they had, preemptive.

    A job takes a ring of a fixed number of workers where that fits and is skipped otherwise; ties by arrival, then by
    input order.

    Parameters
    ----------
    seed : seed of the numbers of workers, where they are drawn
    workers : number of workers of every ring

    Notes
    -----
    No guarantee. O(T J) placements. Source: paper 004, section VI ("in a round-robin fashion across jobs, according
    to the total number of accelerator hours consumed").
    """
    progress = GreedyState(instance)
    size = _fixed(progress, workers, seed)
    for _ in range(instance.horizon):
        active = list(progress.active())
        rings: dict[int, Ring] = {}
        for i in sorted(active, key=lambda i: (progress.done[i], instance.jobs[i].arrival, i)):
            ring = progress.network.place(progress.needs[i], min(size[i], progress.largest(i)))
            if ring is not None:
                rings[i] = ring
        progress.close(rings, len(active))
    return progress.run()


def drf(instance: DdljsInstance, *, seed: int = 0) -> HeuristicRun:
    """Dominant resource fairness: in every slot one worker at a time goes to the job with the smallest dominant share.

    A job's dominant share is the largest share of a resource of the whole cluster that its workers hold. When its
    ring cannot grow (N_i, budget, servers or links) the job keeps what it has. Ties by input order.

    Notes
    -----
    No guarantee. O(W log J) decisions in a slot with W workers, each a placement. Source: paper 004, section VI;
    Ghodsi et al., NSDI 2011.
    """
    del seed
    progress = GreedyState(instance)
    network = progress.network
    total = network.capacity.sum(axis=0)
    share = [
        float((need.demand[need.demand > 0] / np.maximum(total[need.demand > 0], 1e-300)).max())
        if need.hostable
        else 0.0
        for need in progress.needs
    ]
    for _ in range(instance.horizon):
        active = list(progress.active())
        rings: dict[int, Ring] = {}
        growing = [(0.0, i) for i in active]
        heapq.heapify(growing)
        while growing:
            _, i = heapq.heappop(growing)
            ring = _grown(progress, i, rings.get(i))
            if ring is not None:
                rings[i] = ring
                heapq.heappush(growing, (share[i] * len(ring.workers), i))
        progress.close(rings, len(active))
    return progress.run()


def _grown(progress: GreedyState, i: int, ring: Ring | None) -> Ring | None:
    """Place the job's ring anew with one worker more; None where that does not fit, and everything is as before."""
    network, need = progress.network, progress.needs[i]
    wanted = 1 if ring is None else len(ring.workers) + 1
    if wanted > progress.largest(i):
        return None
    if ring is not None:
        network.release(need, ring)
    found = network.place(need, wanted)
    if found is None and ring is not None:
        network.occupy(need, ring)
    return found
