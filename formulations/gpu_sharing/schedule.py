"""The schedule generation scheme of gpu-sharing: a simulated cluster, and the event loop that decides on it.

Policies, the quick schedules of the models and the simulation of a given solution all run on the same cluster.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.dynamics import RunningJob, SharingTables, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance


@dataclass(frozen=True)
class Stretch:
    """Slots first..last in which a job runs at one slowdown beside the same partners."""

    first: int
    last: int
    slowdown: float
    partners: tuple[str, ...]


@dataclass(frozen=True)
class Schedule:
    """What a solution does."""

    completion: Mapping[str, int]  # last slot of each job
    # per job, its run cut where its partners change
    stretches: Mapping[str, tuple[Stretch, ...]] = field(default_factory=dict)


class Cluster:
    """Running jobs, the GPUs they hold, and the moments at which they end if nothing changes.

    Jobs and GPUs go by number. Every change of a job's partners moves its work forward to the present slot in
    one step, so the cost is per event, not per slot. Completions are exact (see ``RunningJob``).

    Attributes
    ----------
    slot : the present slot
    holders : jobs on each GPU
    alone : number of GPUs that each job holds alone
    end, pace, remaining, since : values of each job: last slot, slowdown, work left at the beginning of slot `since`
    stretches : run of each job so far, cut where its partners changed; empty lists unless ``traced``
    """

    def __init__(self, tables: SharingTables, traced: bool = False) -> None:
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
        self.progress: dict[int, RunningJob] = {}
        self.alone = np.zeros(jobs, dtype=np.int64)
        self.remaining = np.zeros(jobs)
        self.pace = np.ones(jobs)
        self.load = np.zeros(jobs)
        self.since = np.zeros(jobs, dtype=np.int64)
        self.end = np.zeros(jobs, dtype=np.int64)
        self.start = np.zeros(jobs, dtype=np.int64)
        self.steps = np.ones(jobs, dtype=np.int64)
        self.placed: list[list[int]] = [[] for _ in range(jobs)]
        self.stretches: list[list[Stretch]] = [[] for _ in range(jobs)]
        self._traced = traced
        self._beside: list[tuple[int, ...]] = [()] * jobs
        self._queue: list[tuple[int, int]] = []

    def begin(self, job: int, entry: int, gpus: list[int]) -> None:
        """Start `job` now on `gpus` with the accumulation steps ``tables.steps[job][entry]``."""
        self.load[job] = self.tables.load[job][entry]
        self.begin_with(job, self.tables.steps[job][entry], gpus, self.tables.work[job][entry])

    def begin_with(self, job: int, steps: int, gpus: list[int], work: float | None = None) -> None:
        """Start `job` now with any accumulation steps, and `work` in solo slots where that is known."""
        self.start[job], self.steps[job], self.placed[job] = self.slot, steps, gpus
        self.running[job] = gpus
        self.progress[job] = RunningJob(self.tables.instance, job, steps, work)
        self.remaining[job], self.since[job], self.pace[job] = self.progress[job].remaining, self.slot, 1.0
        beside: set[int] = set()
        for gpu in gpus:
            here = self.holders[gpu]
            if here:
                beside.update(here)
                if len(here) == 1:
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
        self._part(ended)
        return ended

    def take_off(self, jobs: Sequence[int]) -> None:
        """Release jobs at the present slot, whatever their ends are believed to be."""
        for job in jobs:
            self._release(job)
        self._part(jobs)

    def extend(self, tables: SharingTables) -> None:
        """Go on with tables that have the same jobs and room for more behind them."""
        more = len(tables.steps) - len(self.partners)
        self.tables = tables
        for name in ("alone", "remaining", "load", "since", "end", "start"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        for name in ("pace", "steps"):
            setattr(self, name, np.pad(getattr(self, name), (0, more), constant_values=1))
        self.partners += [set() for _ in range(more)]
        self.placed += [[] for _ in range(more)]
        self.stretches += [[] for _ in range(more)]
        self._beside += [()] * more

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
        return np.maximum(self.remaining[jobs] - done, 0.0)

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

    def _part(self, ended: Sequence[int]) -> None:
        """Jobs that ran beside released ones go on without them."""
        touched: set[int] = set()
        for job in ended:
            touched |= self.partners[job]
            for other in self.partners[job]:
                self.partners[other].discard(job)
        for other in sorted(touched):
            if other in self.running:
                self._revise(other)

    def _release(self, job: int) -> None:
        for gpu in self.running.pop(job):
            here = self.holders[gpu]
            here.remove(job)
            self.occupancy[gpu] -= 1
            if len(here) == 1:
                self.alone[here[0]] += 1
            elif not here:
                self.free += 1
                self.free_on[self.server[gpu]] += 1
        self.alone[job] = 0
        if self._traced:
            self._trace(job, int(self.end[job]))

    def _revise(self, job: int) -> None:
        """Move a job's work to the present slot and compute its end under its present partners."""
        progress = self.progress[job]
        passed = self.slot - int(self.since[job])
        if passed:
            progress.advance(passed, float(self.pace[job]))
            if self._traced:
                self._trace(job, self.slot - 1)
        row = self.tables.slowdown[job]
        pace = max([1.0, *(float(row[other]) for other in self.partners[job] if other in self.running)])
        self.remaining[job], self.since[job], self.pace[job] = progress.remaining, self.slot, pace
        self.end[job] = self.slot + progress.slots_left(pace) - 1
        heapq.heappush(self._queue, (int(self.end[job]), job))
        if self._traced:
            self._beside[job] = tuple(sorted(self.partners[job] & self.running.keys()))

    def _trace(self, job: int, last: int) -> None:
        names = tuple(self.tables.instance.jobs[other].id for other in self._beside[job])
        self.stretches[job].append(Stretch(int(self.since[job]), last, float(self.pace[job]), names))


def simulate(instance: GpuSharingInstance, solution: Solution) -> Schedule:
    """Run a well-formed solution from event to event, whatever its memory, its jobs per GPU or the horizon.

    Returns completion slots and stretches.

    Parameters
    ----------
    solution : start slots, GPU lists and valid accumulation steps of every job; a GPU named twice counts once
    """
    cluster = Cluster(tables(instance), traced=True)
    names = [(server.id, index) for server in instance.servers for index in range(server.gpus)]
    number = {name: gpu for gpu, name in enumerate(names)}
    jobs = instance.jobs
    waiting = sorted(range(len(jobs)), key=lambda j: (solution["start"][jobs[j].id], j), reverse=True)
    while waiting or cluster.running:
        end = cluster.next_end()
        start = [solution["start"][jobs[j].id] for j in waiting[-1:]]
        cluster.slot = min(start if end is None else [*start, end + 1])
        cluster.finish()
        while waiting and solution["start"][jobs[waiting[-1]].id] == cluster.slot:
            j = waiting.pop()
            gpus = dict.fromkeys(number[server, index] for server, index in solution["gpus"][jobs[j].id])
            cluster.begin_with(j, solution["accumulation"][jobs[j].id], list(gpus))
    return Schedule(
        {job.id: int(cluster.end[j]) for j, job in enumerate(jobs)},
        {job.id: tuple(cluster.stretches[j]) for j, job in enumerate(jobs)},
    )


Decide = Callable[[Cluster, Sequence[int]], Sequence[int]]
"""Starts jobs on the cluster; given the waiting jobs by priority, returns those it started."""


@dataclass(frozen=True)
class Run:
    """What a policy did: the cluster at the end, decisions made, jobs not started, and whether it was stopped."""

    cluster: Cluster
    decisions: int
    missing: int
    stopped: bool


def run_policy(
    data: SharingTables,
    decide: Decide,
    priority: Callable[[int], float],
    stop: Callable[[], bool],
    ready: Ints | None = None,
) -> Run:
    """Decide at arrivals and after completions, from the first arrival to the last completion.

    Returns run; jobs are missing where it was stopped, or where `decide` leaves them waiting on an idle cluster.

    Parameters
    ----------
    data : tables of an instance of which every job can run alone
    decide : starts jobs at an event
    priority : the sort key of a job in the queue; ties by position
    stop : looked at before every event
    ready : slot, no sooner than its arrival, in which each job enters the queue; its arrival where not given

    Notes
    -----
    At most 2 J decisions; between them nothing is computed.
    """
    cluster = Cluster(data)
    arrival = (data.arrival if ready is None else ready).tolist()
    coming = sorted(range(len(arrival)), key=lambda j: (arrival[j], j), reverse=True)
    keys: list[tuple[float, int]] = []  # keys of the jobs that wait, in order
    queue: list[int] = []
    key_of: dict[int, tuple[float, int]] = {}
    decisions = 0
    stopped = False
    while coming or queue or cluster.running:
        stopped = stop()
        moments = [arrival[job] for job in coming[-1:]]
        end = cluster.next_end()
        if end is not None:
            moments.append(end + 1)
        if stopped or not moments:
            break
        cluster.slot = min(moments)
        cluster.finish()
        while coming and arrival[coming[-1]] == cluster.slot:
            job = coming.pop()
            key_of[job] = priority(job), job
            place = bisect.bisect_left(keys, key_of[job])
            keys.insert(place, key_of[job])
            queue.insert(place, job)
        if queue:
            decisions += 1
            for job in set(decide(cluster, queue)):
                place = bisect.bisect_left(keys, key_of.pop(job))
                del keys[place], queue[place]
    return Run(cluster, decisions, len(coming) + len(queue), stopped)


def start_alone(
    cluster: Cluster, waiting: Sequence[int], backfill: bool, left_free: Sequence[int] | None = None
) -> list[int]:
    """Start what fits on free GPUs, in order; without `backfill` the first that does not fit holds up the rest.

    A job fits if ``left_free[job]`` GPUs stay free, or nothing runs.
    """
    started = []
    for job in waiting:
        if cluster.free == 0:
            break
        size = int(cluster.tables.gpus[job])
        margin = left_free[job] if left_free is not None and cluster.running else 0
        if size + margin <= cluster.free:
            cluster.begin(job, 0, cluster.free_gpus(size))
            started.append(job)
        elif not backfill:
            break
    return started


def quick_total(instance: GpuSharingInstance) -> int | None:
    """The sum of JCT of shortest-first list scheduling on whole GPUs; None where it ends after the horizon.

    Every job must fit the cluster and the memory alone.
    """
    data = tables(instance)
    slots = data.solo_slots.tolist()
    run = run_policy(data, lambda c, jobs: start_alone(c, jobs, True), lambda j: slots[j], lambda: False)
    if run.cluster.end.max() > instance.horizon:
        return None
    return sum(end - job.arrival + 1 for job, end in zip(instance.jobs, run.cluster.end.tolist(), strict=True))


def latest_ends(instance: GpuSharingInstance) -> list[int]:
    """The last slot for each job in which it can end in a schedule no worse than the quick one.

    Every job takes at least its solo slots, so one job can exceed its own by at most what the quick schedule
    exceeds them by in total.
    """
    data = tables(instance)
    total = quick_total(instance)
    ends = []
    for job, slots in zip(instance.jobs, data.solo_slots.tolist(), strict=True):
        spare = instance.horizon if total is None else total - int(data.solo_slots.sum())
        ends.append(min(instance.horizon, job.arrival + slots - 1 + spare))
    return ends
