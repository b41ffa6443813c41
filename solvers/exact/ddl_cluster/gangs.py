"""Schedules of ddl-cluster in which GPUs are held by one job at a time, or by two of one width from the same moment.

Nothing else runs on those GPUs or uses their servers' links, so a block of one or two jobs takes the same time whenever
and wherever it runs. It is known by simulating the block alone; the whole schedule follows from the blocks and their
order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import (
    INTERPRETED_TASKS,
    Run,
    simulate_plain,
    solution_of,
    task_count,
)
from schedgap.solvers.exact.ddl_cluster.block_orders import WalkTables
from schedgap.solvers.exact.ddl_cluster.bound import priced_starts
from schedgap.solvers.exact.ddl_cluster.free_gpus import FreeGpus

Need: TypeAlias = tuple[int, bool] | tuple[Gpu, ...]
"""How many GPUs, and whether whole servers; or the GPUs that are given."""


POLICY = "srsf-1"
"""Policy of the all-reduces of two jobs that share: one waits for the other, and they do not contend."""


WORTH = 0.99
"""Two jobs are let share where that ends them earlier in sum than one after the other, by this factor."""


MOST_PAIRED = 5000
"""Jobs, pairs of which are gone through."""


HELD_PARTS = (0.0, 0.5, 0.9, 1.0)
"""Shares of the time until a job would start, at prices of GPU time."""


PARTNERS = 12
"""With how many others it is tried how long a job takes beside them."""


@dataclass(frozen=True)
class Block:
    """Jobs that hold their GPUs from one moment on; those wider than any server hold servers whole."""

    jobs: tuple[int, ...]  # one, or two that share all of their GPUs
    start: int  # ticks


@dataclass(frozen=True)
class Laid:
    """Blocks at their earliest starts, in the order in which they were planned."""

    blocks: tuple[Block, ...]  # with their starts; by planned start
    # gpus, finish: by job; ticks
    gpus: tuple[tuple[Gpu, ...], ...]
    finish: tuple[int, ...]

    @property
    def total(self) -> int:
        """The sum of finishes, in ticks."""
        return sum(self.finish)


class Gangs:
    """Blocks of one instance.

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it and share with none

    Attributes
    ----------
    arrival, alone : ticks of each job's arrival; ticks that it takes by itself
    wide : whether each job needs more than one server
    """

    def __init__(self, instance: DdlClusterInstance) -> None:
        self.instance, self.clock = instance, clock_of(instance)
        self.sizes = [server.gpus for server in instance.servers]
        widest = max(self.sizes)
        given = [None if own is None else {s for s, _ in own} for own in instance.given]
        self.wide = [
            job.gpus > widest if own is None else len(own) > 1 for job, own in zip(instance.jobs, given, strict=True)
        ]
        self.arrival = self.clock.arrival
        self._pace = [self._iteration(j) for j in range(len(instance.jobs))]
        self.alone = [job.iterations * pace for job, pace in zip(instance.jobs, self._pace, strict=True)]
        self._interpreted = task_count(instance) <= INTERPRETED_TASKS

    def _iteration(self, j: int) -> int:
        """Ticks of an iteration of a job by itself, rounded as the simulators round."""
        clock = self.clock
        compute = clock.forward[j] + clock.backward[j]
        if not self.wide[j]:
            return compute
        return compute + clock.solo[j]

    # -- what blocks take ---------------------------------------------------------------------------------------

    def pair(self, j: int, k: int) -> tuple[int, int] | None:
        """Ticks from the start to each finish of two jobs that share their GPUs; None where that gains nothing."""
        if j > k:
            turned = self.pair(k, j)
            return None if turned is None else (turned[1], turned[0])
        return self.pairs.get((j, k))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The pairs that gain, each job with the most promising others of its width."""
        jobs, memory = self.instance.jobs, self.clock.memory
        free = [j for j, wide in enumerate(self.wide) if wide and jobs[j].placement is None]
        if len(free) > MOST_PAIRED:
            return {}
        hopes: dict[int, list[tuple[float, tuple[int, int]]]] = {j: [] for j in free}
        for place, j in enumerate(free):
            for k in free[place + 1 :]:
                if jobs[j].gpus == jobs[k].gpus and memory[j] + memory[k] <= MEMORY_CAPACITY:
                    share = self._estimate(j, k) / self._apart(j, k)
                    if share < 1:
                        hopes[j].append((share, (j, k)))
                        hopes[k].append((share, (j, k)))
        found = {}
        for j, k in sorted({pair for row in hopes.values() for _, pair in sorted(row)[:PARTNERS]}):
            ends = self._simulated(j, k)
            if sum(ends) < WORTH * self._apart(j, k):
                found[j, k] = ends
        return found

    def _apart(self, j: int, k: int) -> int:
        """The sum of finishes of two jobs one after the other, the shorter first."""
        return self.alone[j] + self.alone[k] + min(self.alone[j], self.alone[k])

    def _estimate(self, j: int, k: int) -> int:
        """The sum of finishes where both go on at the pace of the slower one, or of the link that they share."""
        clock, jobs = self.clock, self.instance.jobs
        own = [self._pace[i] for i in (j, k)]
        pace = max(*own, clock.solo[j] + clock.solo[k])
        both = min(jobs[j].iterations, jobs[k].iterations)
        rest = sum((jobs[i].iterations - both) * alone for i, alone in zip((j, k), own, strict=True))
        return 2 * both * pace + rest

    def _simulated(self, j: int, k: int) -> tuple[int, int]:
        """On two servers of one GPU: every worker of such a job does what the others do."""
        one = {"id": "a", "gpus": 1}
        data = {
            "problem": "ddl-cluster",
            "name": "block",
            "gpu_memory": self.instance.gpu_memory,
            "servers": [one, one | {"id": "b"}],
            "link": self.instance.link.model_dump(),
            "jobs": [
                {**self.instance.jobs[i].model_dump(), "arrival": 0.0, "gpus": 2, "placement": [["a", 0], ["b", 0]]}
                for i in (j, k)
            ],
        }
        block = DdlClusterInstance.parse(data)
        both = [(0, 0), (1, 0)]
        run = simulate_plain(block, [both, both], POLICY, interpreted=self._interpreted, digits=self.clock.digits)
        return run.finish_ticks[0], run.finish_ticks[1]

    def lengths(self, jobs: Sequence[int]) -> tuple[int, ...]:
        """Ticks from the start of a block to the finish of each of its jobs."""
        if len(jobs) == 1:
            return (self.alone[jobs[0]],)
        found = self.pair(jobs[0], jobs[1])
        assert found is not None
        return found

    # -- whole schedules ----------------------------------------------------------------------------------------

    def lay(self, blocks: Iterable[Block]) -> Laid:
        """Start every block as early as GPUs are free, those planned first before the others."""
        free = self._all_free()
        laid: list[Block] = []
        gpus: list[tuple[Gpu, ...]] = [()] * len(self.alone)
        finish = [0] * len(self.alone)
        for block in sorted(blocks, key=lambda block: (block.start, block.jobs)):
            held, start = self._held(block.jobs, free, self.arrived(block.jobs))
            for j, length in zip(block.jobs, self.lengths(block.jobs), strict=True):
                gpus[j], finish[j] = held, start + length
            self._hold(block.jobs, held, free, max(finish[j] for j in block.jobs))
            laid.append(Block(block.jobs, start))
        return Laid(tuple(laid), tuple(gpus), tuple(finish))

    def _all_free(self) -> list[list[int]]:
        """When the GPUs of each server become free, and last its link."""
        return [[0] * (size + 1) for size in self.sizes]

    def arrived(self, jobs: Sequence[int]) -> int:
        """When the last of them is there."""
        return max(self.arrival[j] for j in jobs)

    def _held(self, jobs: Sequence[int], free: Sequence[Sequence[int]], now: int) -> tuple[tuple[Gpu, ...], int]:
        """The GPUs that are free first, from `now` on, for a block, and since when; ties leave the most room."""
        gpus, given = self.instance.jobs[jobs[0]].gpus, self.instance.given[jobs[0]]
        if given is not None:
            return given, max(now, *(free[s][g] for s, g in self._with_links(jobs[0], given)))
        order = [sorted(range(size), key=lambda g: (free[s][g], g)) for s, size in enumerate(self.sizes)]
        if not self.wide[jobs[0]]:
            fits = []
            for s, own in enumerate(order):
                if len(own) >= gpus:
                    start = max(now, free[s][own[gpus - 1]])
                    fits.append((start, sum(free[s][g] <= start for g in own), s))
            start, _, s = min(fits)
            return tuple((s, g) for g in sorted(order[s][:gpus])), start
        start, held = now, list[Gpu]()
        for s in sorted(range(len(order)), key=lambda s: (max(now, max(free[s])), s)):
            if len(held) < gpus:
                start = max(start, *free[s])
                held += [(s, g) for g in range(self.sizes[s])][: gpus - len(held)]
        return tuple(sorted(held)), start

    def _hold(self, jobs: Sequence[int], held: Iterable[Gpu], free: Sequence[list[int]], end: int) -> None:
        """GPUs and links are free again at the end: whole servers where the jobs are wider than any."""
        for s, g in self._with_links(jobs[0], held):
            if self.wide[jobs[0]] and self.instance.given[jobs[0]] is None:
                free[s][:] = [end] * (self.sizes[s] + 1)
            else:
                free[s][g] = end

    def _with_links(self, j: int, held: Iterable[Gpu]) -> list[Gpu]:
        """The GPUs that a job holds, and as one more the links of its servers where it needs more than one."""
        own = list(held)
        return own + [(s, self.sizes[s]) for s in sorted({s for s, _ in own})] if self.wide[j] else own

    def need(self, j: int) -> Need:
        """The need of a job. Jobs of the same need all fit, or none does."""
        return self.instance.given[j] or (self.instance.jobs[j].gpus, self.wide[j])

    def listed(self, groups: Iterable[tuple[int, ...]], ready: Sequence[int] | None = None) -> Laid:
        """Whenever GPUs become free or a job is ready, the shortest blocks that fit are started.

        Blocks that need the same wait in one row; O(B (log B + R S)) for B blocks, R rows, S servers at most.

        Parameters
        ----------
        ready : tick before which each job does not start, no sooner than its arrival; the arrival where not given
        """
        cluster = FreeGpus(self.instance, self.wide)
        moments = self.arrival if ready is None else ready
        coming = sorted(((max(moments[j] for j in own), own) for own in groups), reverse=True)
        rows: dict[Need, list[tuple[float, tuple[int, ...]]]] = {}
        running: list[tuple[int, int]] = []
        blocks: list[Block] = []
        gpus: list[tuple[Gpu, ...]] = [()] * len(self.alone)
        finish = [0] * len(self.alone)
        while coming or running:
            now = min([*(moment for moment, _ in coming[-1:]), *(end for end, _ in running[:1])])
            while running and running[0][0] <= now:
                over = blocks[heapq.heappop(running)[1]].jobs[0]
                cluster.free(over, gpus[over], now)
            while coming and coming[-1][0] <= now:
                own = coming.pop()[1]
                heapq.heappush(rows.setdefault(self.need(own[0]), []), (sum(self.lengths(own)) / len(own) ** 2, own))
            open_rows = [row for need, row in rows.items() if row and cluster.fits(row[0][1][0])]
            while open_rows:
                row = min(open_rows)
                own = heapq.heappop(row)[1]
                held = cluster.hold(own[0])
                for j, length in zip(own, self.lengths(own), strict=True):
                    gpus[j], finish[j] = held, now + length
                heapq.heappush(running, (max(finish[j] for j in own), len(blocks)))
                blocks.append(Block(own, now))
                open_rows = [row for row in open_rows if row and cluster.fits(row[0][1][0])]
        return Laid(tuple(blocks), tuple(gpus), tuple(finish))

    def best_listed(self, pairs: bool = True) -> Laid:
        """The best of list schedules with jobs held back for parts of the time until prices would start them."""
        groups: list[list[tuple[int, ...]]] = [[(j,) for j in range(len(self.alone))]]
        if pairs and self.pairs:
            groups.append(self.matched())
        priced = np.ceil(priced_starts(self.instance) * 10**self.clock.digits).tolist()
        waits = [max(0, int(start) - arrival) for start, arrival in zip(priced, self.arrival, strict=True)]
        found = []
        for part in HELD_PARTS:
            ready = [arrival + int(part * wait) for arrival, wait in zip(self.arrival, waits, strict=True)]
            found += [self.listed(blocks, ready) for blocks in groups]
        return min(found, key=lambda laid: laid.total)

    def matched(self) -> list[tuple[int, ...]]:
        """Every job once: alone, or with the one beside which the most is gained, greedily."""
        remaining = set(range(len(self.alone)))
        groups: list[tuple[int, ...]] = []
        for pair in sorted(self.pairs, key=lambda pair: (sum(self.pairs[pair]) / self._apart(*pair), pair)):
            if remaining.issuperset(pair):
                remaining -= set(pair)
                groups.append(pair)
        return groups + [(j,) for j in sorted(remaining)]

    def tables(self) -> WalkTables:
        """The instance for the walk; nowhere may a placement be given."""
        shared = np.zeros((len(self.alone), len(self.alone), 2), dtype=np.int64)
        for (j, k), ends in self.pairs.items():
            shared[j, k], shared[k, j] = ends, ends[::-1]
        gpus = [job.gpus for job in self.instance.jobs]
        arrival, alone, need, wide, sizes = (
            np.array(row, dtype=np.int64) for row in (self.arrival, self.alone, gpus, self.wide, self.sizes)
        )
        return WalkTables(arrival, alone, need, wide, shared, sizes)

    def solution(self, laid: Laid) -> Solution:
        """The schedule as a solution: placements, and until when jobs are held back."""
        seconds, names = self.clock.seconds, [job.id for job in self.instance.jobs]
        start = {j: block.start for block in laid.blocks for j in block.jobs}
        held = {names[j]: seconds(start[j]) for j in range(len(names)) if start[j] > self.arrival[j]}
        run = Run(tuple(seconds(end) for end in laid.finish), laid.finish, tuple(start[j] for j in sorted(start)), None)
        return solution_of(self.instance, laid.gpus, POLICY, run, held)
