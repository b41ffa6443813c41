"""Schedules that hold GPUs: the shortest jobs that fit begin, or jobs in order of arrival, as most clusters have it.

A job, or two of one width that gain by it, has its GPUs for itself until it ends, and a job wider than any server its
servers. So nothing contends with it but its partner, and its length is known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.ddl_cluster.policies import late
from schedgap.heuristics.ddl_cluster.run_times import check_seconds
from schedgap.solvers.exact.ddl_cluster.free_gpus import FreeGpus
from schedgap.solvers.exact.ddl_cluster.gangs import Block, Gangs, Laid, Need
from schedgap.solvers.result import NO_DEADLINE, Deadline

Pairs = Annotated[bool, Field(description="whether two jobs may share their GPUs; else each has its own")]


def list_hold(
    instance: DdlClusterInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE, pairs: Pairs = True
) -> HeuristicRun:
    """Begin the shortest jobs that fit, whenever GPUs become free or a job arrives.

    At prices of GPU time a long job costs least when it starts after a rush of short ones. Jobs are held back for none,
    half, nine tenths or all of the time until then, and with `pairs` those wider than any server are matched greedily
    before, too; the best of these schedules is taken.

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it, and share with none
    seed : not used, nothing is drawn
    deadline : a schedule whose check cannot end by then is none
    pairs : whether jobs are matched

    Returns
    -------
    HeuristicRun; ``info["pairs"]`` is how many jobs share. The solution is None where the time is too short.

    Notes
    -----
    60 to 400 evaluations of prices, and O(J (log J + R S)) for J jobs that need R different things of S servers,
    without pairs. It knows all jobs from the beginning. No ratio is claimed. Ours.
    """
    least, remaining = check_seconds(instance), deadline.remaining()
    if remaining is not None and remaining <= least:
        return late(f"its check takes {least:.3g} s or more")
    gangs = Gangs(instance)
    laid = gangs.best_listed(pairs)
    shared = sum(len(block.jobs) > 1 for block in laid.blocks)
    return HeuristicRun(gangs.solution(laid), {"pairs": shared})


def _queue(name: str, rule: str, passing: bool) -> Callable[..., HeuristicRun]:
    def method(instance: DdlClusterInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
        least, remaining = check_seconds(instance), deadline.remaining()
        if remaining is not None and remaining <= least:
            return late(f"its check takes {least:.3g} s or more")
        queue = Queue(Gangs(instance), passing)
        while queue.first < len(instance.jobs):
            if deadline.passed:
                return late(f"stopped with {len(queue.blocks)} of {len(instance.jobs)} jobs begun")
            queue.advance()
        return HeuristicRun(queue.gangs.solution(queue.laid()), {})

    method.__name__ = name
    method.__doc__ = f"""Jobs in order of arrival, each on GPUs that it holds; {rule}

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it
    seed : not used, nothing is drawn
    deadline : a schedule whose check cannot end by then is none

    Returns
    -------
    HeuristicRun; the solution is None where the time is too short.

    Notes
    -----
    O(J (log J + S R + N)) for J jobs that need R different things of S servers with N GPUs. No ratio is claimed.
    """
    return method


fifo_hold = _queue("fifo_hold", "none begins before one that arrived sooner.", False)
easy_hold = _queue(
    "easy_hold",
    """while the first does not fit, the shortest pass that end before it can begin.

    That is the first condition of EASY backfilling (D. A. Lifka, JSSPP 1995) with lengths that are known, the shortest
    first (Tsafrir, Etsion and Feitelson 2007). EASY's second, on GPUs that the first will leave free, is not in it.""",
    True,
)


class Queue:
    """Jobs in order of arrival, from one arrival or end to the next."""

    def __init__(self, gangs: Gangs, passing: bool) -> None:
        self.gangs, self.passing = gangs, passing
        self.order = sorted(range(len(gangs.alone)), key=lambda j: (gangs.arrival[j], j))
        self.arrived = self.first = 0  # in this order; between them wait all but those that have passed
        self.cluster = FreeGpus(gangs.instance, gangs.wide)
        self.finish = [-1] * len(gangs.alone)
        self.gpus: list[tuple[Gpu, ...]] = [()] * len(gangs.alone)
        self.blocks: list[Block] = []
        self._running: list[tuple[int, int]] = []
        self._rows: dict[Need, list[tuple[int, int]]] = {}  # the shortest first, also those that have begun
        self._reserved = (-1, -1)  # who is first in the queue and does not fit, and when it will

    def laid(self) -> Laid:
        """The schedule, when all have begun."""
        return Laid(tuple(self.blocks), tuple(self.gpus), tuple(self.finish))

    def advance(self) -> None:
        """Go to the next moment, and begin what may."""
        gangs, order = self.gangs, self.order
        coming = [gangs.arrival[j] for j in order[self.arrived : self.arrived + 1]]
        now = min(coming + [end for end, _ in self._running[:1]])
        while self._running and self._running[0][0] <= now:
            over = heapq.heappop(self._running)[1]
            self.cluster.free(over, self.gpus[over], now)
        while self.arrived < len(order) and gangs.arrival[order[self.arrived]] <= now:
            j = order[self.arrived]
            heapq.heappush(self._rows.setdefault(gangs.need(j), []), (gangs.alone[j], j))
            self.arrived += 1
        while self.first < self.arrived:
            j = order[self.first]
            if self.finish[j] < 0:
                if not self.cluster.fits(j):
                    break
                self._begin(j, now)
            self.first += 1
        if self.passing and self.first < self.arrived:
            self._pass(order[self.first], now)

    def _begin(self, j: int, now: int) -> None:
        self.gpus[j], self.finish[j] = self.cluster.hold(j), now + self.gangs.alone[j]
        heapq.heappush(self._running, (self.finish[j], j))
        self.blocks.append(Block((j,), now))

    def _pass(self, first: int, now: int) -> None:
        """Begin the shortest jobs that fit and end by when the first one can begin; that stays what it is."""
        if self._reserved[0] != first:
            self._reserved = first, self._room_for(first)
        while True:
            tops = []
            for row in self._rows.values():
                while row and self.finish[row[0][1]] >= 0:
                    heapq.heappop(row)
                if row and now + row[0][0] <= self._reserved[1] and self.cluster.fits(row[0][1]):
                    tops.append(row[0])
            if not tops:
                return
            self._begin(min(tops)[1], now)

    def _room_for(self, j: int) -> int:
        """When a job fits if nothing else begins."""
        later = self.cluster.copy()
        for end, over in sorted(self._running):
            later.free(over, self.gpus[over], end)
            if later.fits(j):
                return end
        raise AssertionError(f"job {j} does not fit an empty cluster")
