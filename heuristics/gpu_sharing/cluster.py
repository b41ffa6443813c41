"""The state of a simulated cluster between two events; jobs and GPUs by number."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.dynamics import Progress, Tables

Ints = NDArray[np.int64]


class Cluster:
    """Running jobs, the GPUs they hold, and the moments at which they end if nothing changes.

    Every change of a job's partners moves its work forward to the present slot in one step, so the cost is
    per event, not per slot. Completions are exact (see ``Progress``).

    Attributes
    ----------
    slot : the present slot
    holders : by GPU, the jobs on it
    alone : by job, how many GPUs it holds alone
    end, pace, left, since : by job: last slot, slowdown, work left at the beginning of slot `since`
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        instance = tables.instance
        jobs, gpus = len(instance.jobs), instance.total_gpus
        self.slot = 1
        self.server = np.repeat(np.arange(len(instance.servers)), [s.gpus for s in instance.servers])
        self.holders: list[list[int]] = [[] for _ in range(gpus)]
        self.occupancy = np.zeros(gpus, dtype=np.int64)
        self.free_on = np.bincount(self.server, minlength=len(instance.servers)).astype(np.int64)
        self.free = gpus
        self.running: dict[int, list[int]] = {}
        self.partners: list[set[int]] = [set() for _ in range(jobs)]
        self.progress: dict[int, Progress] = {}
        self.alone = np.zeros(jobs, dtype=np.int64)
        self.left = np.zeros(jobs)
        self.pace = np.ones(jobs)
        self.load = np.zeros(jobs)
        self.since = np.zeros(jobs, dtype=np.int64)
        self.end = np.zeros(jobs, dtype=np.int64)
        self.start = np.zeros(jobs, dtype=np.int64)
        self.steps = np.ones(jobs, dtype=np.int64)
        self.placed: list[list[int]] = [[] for _ in range(jobs)]
        self._queue: list[tuple[int, int]] = []

    def begin(self, job: int, entry: int, gpus: list[int]) -> None:
        """Start `job` now on `gpus` with the accumulation steps ``tables.steps[job][entry]``."""
        steps = self.tables.steps[job][entry]
        self.start[job], self.steps[job], self.placed[job] = self.slot, steps, gpus
        self.running[job] = gpus
        self.progress[job] = Progress(self.tables.instance, job, steps, self.tables.work[job][entry])
        self.left[job], self.since[job], self.pace[job] = self.progress[job].left, self.slot, 1.0
        self.load[job] = self.tables.load[job][entry]
        beside: set[int] = set()
        for gpu in gpus:
            here = self.holders[gpu]
            if here:
                beside.add(here[0])
                self.alone[here[0]] -= 1
            else:
                self.alone[job] += 1
                self.free -= 1
                self.free_on[self.server[gpu]] -= 1
            here.append(job)
            self.occupancy[gpu] += 1
        self.partners[job] = beside
        for other in sorted(beside):
            self.partners[other].add(job)
            self._revise(other)
        self._revise(job)

    def finish(self) -> list[int]:
        """Release every job that ended before the present slot; those jobs, in order."""
        ended = []
        while self._queue and self._queue[0][0] < self.slot:
            end, job = heapq.heappop(self._queue)
            if job in self.running and self.end[job] == end:
                ended.append(job)
                self._release(job)
        touched: set[int] = set()
        for job in ended:
            touched |= self.partners[job]
            for other in self.partners[job]:
                self.partners[other].discard(job)
        for other in sorted(touched):
            if other in self.running:
                self._revise(other)
        return ended

    def next_end(self) -> int | None:
        """The last slot of the job that ends first, or None when none runs."""
        while self._queue:
            end, job = self._queue[0]
            if job in self.running and self.end[job] == end:
                return end
            heapq.heappop(self._queue)
        return None

    def work_left(self, jobs: Ints) -> NDArray[np.float64]:
        """Work left at the beginning of the present slot, in solo slots."""
        done = (self.slot - self.since[jobs]) / self.pace[jobs]
        return np.maximum(self.left[jobs] - done, 0.0)

    def free_gpus(self, count: int) -> list[int]:
        """`count` free GPUs on few servers: the tightest server that holds them all, else the emptiest first."""
        if count == 0:
            return []
        fitting = np.flatnonzero(self.free_on >= count)
        if len(fitting):
            server = int(fitting[np.argmin(self.free_on[fitting])])
            here: list[int] = np.flatnonzero((self.server == server) & (self.occupancy == 0)).tolist()
            return here[:count]
        order = np.argsort(-self.free_on, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        idle = np.flatnonzero(self.occupancy == 0)
        chosen: list[int] = idle[np.argsort(rank[self.server[idle]], kind="stable")].tolist()
        return chosen[:count]

    def lone_gpus(self, job: int, count: int) -> list[int]:
        """`count` GPUs that only `job` holds, on few servers."""
        mine = [gpu for gpu in self.running[job] if self.occupancy[gpu] == 1]
        supply = np.bincount(self.server[mine], minlength=len(self.free_on))
        return sorted(mine, key=lambda gpu: (-supply[self.server[gpu]], gpu))[:count]

    def releases(self) -> NDArray[np.float64]:
        """Slots from now after which each busy GPU is free if nobody starts, ascending."""
        latest = np.zeros(len(self.holders), dtype=np.int64)
        for job, gpus in self.running.items():
            latest[gpus] = np.maximum(latest[gpus], self.end[job])
        return np.sort(latest[self.occupancy > 0] + 1 - self.slot).astype(np.float64)

    def occupants(self) -> Ints:
        """Running jobs that hold GPUs alone, by the first of these GPUs."""
        first = [
            (next(gpu for gpu in gpus if self.occupancy[gpu] == 1), job)
            for job, gpus in self.running.items()
            if self.alone[job] > 0
        ]
        return np.array([job for _, job in sorted(first)], dtype=np.int64)

    def solution(self) -> Solution:
        """The bare solution object of everything that was started."""
        instance = self.tables.instance
        index = [[server.id, i] for server in instance.servers for i in range(server.gpus)]
        jobs = instance.jobs
        return {
            "start": {job.id: int(self.start[j]) for j, job in enumerate(jobs)},
            "gpus": {job.id: [list(index[gpu]) for gpu in sorted(self.placed[j])] for j, job in enumerate(jobs)},
            "accumulation": {job.id: int(self.steps[j]) for j, job in enumerate(jobs)},
        }

    def _release(self, job: int) -> None:
        for gpu in self.running.pop(job):
            here = self.holders[gpu]
            here.remove(job)
            self.occupancy[gpu] -= 1
            if here:
                self.alone[here[0]] += 1
            else:
                self.free += 1
                self.free_on[self.server[gpu]] += 1
        self.alone[job] = 0

    def _revise(self, job: int) -> None:
        """Move a job's work to the present slot and compute its end under its present partners."""
        progress = self.progress[job]
        passed = self.slot - int(self.since[job])
        if passed:
            progress.advance(passed, float(self.pace[job]))
        row = self.tables.slowdown[job]
        pace = max([1.0, *(float(row[other]) for other in self.partners[job] if other in self.running)])
        self.left[job], self.since[job], self.pace[job] = progress.left, self.slot, pace
        self.end[job] = self.slot + progress.slots_left(pace) - 1
        heapq.heappush(self._queue, (int(self.end[job]), job))
