"""Policies outside the model: a two-queue preemptive one after Tiresias, an elastic one after Pollux.

Their schedules preempt or resize jobs, which the problem's meaning does not allow. They have their own
checker (formulations/gpu_sharing/check.py) and their own metrics, and no ratio to the optimum.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from schedgap.formulations.gpu_sharing.dynamics import computation_time, overlapped, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.policy_runs import late, metrics
from schedgap.solvers.result import NO_DEADLINE, Deadline

Restart: TypeAlias = Annotated[
    float, Field(ge=0, le=10**6, description="seconds lost when a job goes on after a change")
]
FASTEST = 1e30
"""Iterations per slot above which rates count as one: a job may take no time at all."""

Allocate = Callable[["Elastic"], Mapping[int, int]]
"""The GPUs of each job from now on; jobs left out have none."""


class Elastic:
    """Jobs on numbers of GPUs; what a job did is counted when its GPUs change, so the cost is per change.

    Attributes
    ----------
    present : jobs that have arrived and are not done, in order of arrival
    arrived, ended : jobs that came and went at the present event
    gpus : GPUs that each job has now
    running : jobs that have any
    began : slot since which each job has them
    remaining : iterations of each job to go at the beginning of that slot
    service : GPU slots that each job has had by then
    """

    def __init__(self, instance: GpuSharingInstance, noise: float, restart: int) -> None:
        self.instance, self.noise, self.restart = instance, noise, restart
        jobs = instance.jobs
        self.steps = [steps[0] for steps in tables(instance).steps]
        # Between the target of the checker, I (1 - 1e-9), and I: floats cannot fall short of it.
        self.remaining = [job.iterations * (1 - 0.5e-9) for job in jobs]
        self.gpus = [0] * len(jobs)
        self.service = [0] * len(jobs)
        self.began = [0] * len(jobs)
        self.idle = [0] * len(jobs)
        self.end = [0] * len(jobs)
        self.segments: list[list[list[int]]] = [[] for _ in jobs]
        self.slot = 1
        self.present: dict[int, None] = {}
        self.arrived: list[int] = []
        self.ended: list[int] = []
        self.running: set[int] = set()
        self._ends: list[tuple[int, int]] = []
        self._rates: dict[tuple[int, int], float] = {}

    def rate(self, job: int, gpus: int) -> float:
        """Effective iterations per slot on `gpus` GPUs, at most 10^30.

        With k GPUs of G, r = max(1, ceil(G / k)) rounds of s steps: (r s - 1) t_comp and one overlapped step; what
        exceeds the batch, a factor k / G, counts (nu + 1) / (nu + k / G).
        """
        key = (job, gpus)
        if key not in self._rates:
            part, steps = self.instance.jobs[job], self.steps[job]
            computing, link = computation_time(part, steps), part.communication
            sending = link.latency + link.per_unit * link.message if gpus > 1 else 0.0
            batches = max(1, -(-part.gpus // gpus)) * steps
            time = (batches - 1) * computing + overlapped(computing, sending, part.overlap)
            larger = max(1.0, gpus / part.gpus)
            made = self.instance.slot_length * larger * (self.noise + 1) / (self.noise + larger)
            self._rates[key] = made / time if made < FASTEST * time else FASTEST
        return self._rates[key]

    def next_end(self) -> int | None:
        """The last slot of the running job that ends first if all keep their GPUs."""
        while self._ends:
            end, job = self._ends[0]
            if self.gpus[job] and self.end[job] == end:
                return end
            heapq.heappop(self._ends)  # its GPUs have changed since
        return None

    def finish(self) -> None:
        """Stop the jobs that ended before the present slot."""
        self.ended = []
        while self.next_end() == self.slot - 1:
            job = self._ends[0][1]
            self.resize(job, 0)
            del self.present[job]
            self.ended.append(job)

    def resize(self, job: int, gpus: int) -> None:
        """Give a job `gpus` GPUs from the present slot on; 0 stops it."""
        before, passed = self.gpus[job], self.slot - self.began[job]
        if gpus == before:
            return
        if before and passed:
            self.remaining[job] -= max(0, passed - self.idle[job]) * self.rate(job, before)
            self.service[job] += passed * before
            self.segments[job].append([self.began[job], self.slot - 1, before])
        self.gpus[job], self.began[job] = gpus, self.slot
        self.idle[job] = self.restart if gpus and self.segments[job] else 0
        if not gpus:
            self.running.discard(job)
            return
        self.running.add(job)
        slots = math.ceil(self.remaining[job] / self.rate(job, gpus) - 1e-12)
        self.end[job] = self.slot + self.idle[job] + max(1, slots) - 1
        heapq.heappush(self._ends, (self.end[job], job))


def _run(
    instance: GpuSharingInstance,
    allocate: Allocate,
    noise: float,
    restart: int,
    review: Callable[[Elastic], int | None],
    deadline: Deadline,
) -> HeuristicRun:
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {"reason": reason})
    state = Elastic(instance, noise, restart)
    arrivals = sorted(range(len(instance.jobs)), key=lambda j: (instance.jobs[j].arrival, j), reverse=True)
    while arrivals or state.present:
        if deadline.passed:
            return late(len(arrivals) + sum(not state.gpus[job] and not state.segments[job] for job in state.present))
        end, extra = state.next_end(), review(state)
        moments = [instance.jobs[arrivals[-1]].arrival] if arrivals else []
        moments += [end + 1] if end is not None else []
        state.slot = min(moments if extra is None else [*moments, extra])
        state.finish()
        state.arrived = []
        while arrivals and instance.jobs[arrivals[-1]].arrival == state.slot:
            state.arrived.append(arrivals.pop())
        state.present.update(dict.fromkeys(state.arrived))
        wanted = allocate(state)
        for job in [job for job in state.running if job not in wanted]:
            state.resize(job, 0)
        for job, gpus in wanted.items():
            state.resize(job, gpus)
    jobs = instance.jobs
    end_of = [rows[-1][1] for rows in state.segments]
    active = [sum(last - first + 1 for first, last, _ in rows) for rows in state.segments]
    waiting = [end_of[j] - job.arrival + 1 - active[j] for j, job in enumerate(jobs)]
    solution = {
        "segments": {job.id: state.segments[j] for j, job in enumerate(jobs)},
        "noise": noise,
        "restart": restart,
    }
    changes = sum(len(rows) - 1 for rows in state.segments)
    info: dict[str, Any] = {"outside_model": True, "interruptions": changes, **metrics(instance, waiting, end_of)}
    return HeuristicRun(solution, info)


class _TwoQueues:
    """The jobs present in order, by gang size; a job moves to the second queue when its service reaches a limit."""

    def __init__(self, instance: GpuSharingInstance, limit: int) -> None:
        self.instance, self.limit = instance, limit
        self.waiting: dict[int, list[tuple[bool, int, int]]] = {job.gpus: [] for job in instance.jobs}
        self.moves: list[tuple[int, int, int]] = []
        self.late = [limit <= 0] * len(instance.jobs)

    def review(self, state: Elastic) -> int | None:
        """The slot in which a running job moves to the second queue first."""
        while self.moves:
            slot, job, began = self.moves[0]
            if state.gpus[job] and state.began[job] == began:
                return slot
            heapq.heappop(self.moves)
        return None

    def allocate(self, state: Elastic) -> Mapping[int, int]:
        """Gangs in order, each that still fits: heads of the sizes that fit are compared, no others looked at."""
        for job in state.ended:
            self._remove(job)
        while (moment := self.review(state)) is not None and moment <= state.slot:
            job = heapq.heappop(self.moves)[1]
            self._remove(job)
            self.late[job] = True
            self._insert(job)
        for job in state.arrived:
            self._insert(job)
        free, result = self.instance.total_gpus, {}
        heads = [(row[0], size, 0) for size, row in self.waiting.items() if row]
        heapq.heapify(heads)
        while heads and free:
            (_, _, job), size, place = heapq.heappop(heads)
            if size > free:
                continue
            result[job] = size
            free -= size
            if not state.gpus[job] and not self.late[job]:
                # what it has had is counted up to now: it waited
                rounds = -((state.service[job] - self.limit) // size)
                heapq.heappush(self.moves, (state.slot + rounds, job, state.slot))
            row = self.waiting[size]
            if place + 1 < len(row):
                heapq.heappush(heads, (row[place + 1], size, place + 1))
        return result

    def _key(self, job: int) -> tuple[bool, int, int]:
        return self.late[job], self.instance.jobs[job].arrival, job

    def _insert(self, job: int) -> None:
        bisect.insort(self.waiting[self.instance.jobs[job].gpus], self._key(job))

    def _remove(self, job: int) -> None:
        row = self.waiting[self.instance.jobs[job].gpus]
        del row[bisect.bisect_left(row, self._key(job))]


def _slots(instance: GpuSharingInstance, seconds: float) -> int:
    return math.ceil(seconds / instance.slot_length - 1e-9)


def tiresias(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    threshold: Annotated[
        float, Field(gt=0, le=10**12, description="GPU seconds after which a job leaves the first queue")
    ] = 3600.0,
    restart: Restart = 30.0,
) -> HeuristicRun:
    """Two-queue least attained service, preemptive, after Tiresias (outside the model).

    A job is in the first queue until it has had `threshold` GPU seconds. At arrivals, completions and
    demotions the cluster is given out anew: first queue before second, each in order of arrival; a job that
    does not fit is passed over. Differences from Tiresias: two queues with one fixed threshold, no promotion
    of starved jobs, no profile of which jobs need consolidation (the rates here do not depend on it).

    Parameters
    ----------
    threshold : GPU seconds
    restart : seconds lost when a preempted job goes on

    Notes
    -----
    O(N log J) per event for N GPUs. Source: paper 003, section VI-A3, after Gu et al., NSDI 2019.
    """
    queues = _TwoQueues(instance, math.ceil(threshold / instance.slot_length))  # service is whole
    return _run(instance, queues.allocate, 0.0, _slots(instance, restart), queues.review, deadline)


def pollux(
    instance: GpuSharingInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    noise: Annotated[
        float, Field(ge=0, le=10**6, description="gradient noise scale in batches, the same for all jobs")
    ] = 1.0,
    most: Annotated[float, Field(gt=0, le=10**6, description="largest number of GPUs over those asked for")] = 4.0,
    restart: Restart = 30.0,
) -> HeuristicRun:
    """Elastic goodput policy after Pollux (outside the model).

    At arrivals and completions GPUs are given out one at a time, each to the job whose share of
    sum_j -1 / (goodput_j(k) / goodput_j(G_j)) it improves most, first one GPU to every job in order of arrival.
    Differences from Pollux: a greedy allocation instead of its genetic search; the gradient noise scale is
    one constant `noise` (in batches) for all jobs and times instead of a measured one; no tuning of the
    learning rate; a job asks for at most `most` times its GPUs; reallocation at events instead of every 60 s;
    resizing is held back where the new number is within a quarter of the old one, instead of a penalty in
    the fitness.

    Parameters
    ----------
    noise : nu, the part (nu + 1) / (nu + k / G) of an enlarged batch counts
    most : largest number of GPUs over those asked for
    restart : seconds lost at every resizing

    Notes
    -----
    O(J + N log J) per event. Source: paper 003, section VI-A5, after Qiao et al., OSDI 2021.
    """
    total = instance.total_gpus
    limit = [min(total, max(1, math.floor(job.gpus * most))) for job in instance.jobs]

    def gain(state: Elastic, job: int, gpus: int) -> float:
        asked = state.rate(job, instance.jobs[job].gpus)
        return asked / state.rate(job, gpus) - asked / state.rate(job, gpus + 1)

    def allocate(state: Elastic) -> Mapping[int, int]:
        result = dict.fromkeys(islice(state.present, total), 1)
        free = total - len(result)
        heap = [(-gain(state, job, 1), job) for job in result if limit[job] > 1]
        heapq.heapify(heap)
        while free and heap:
            value, job = heapq.heappop(heap)
            if value >= 0:
                break
            result[job] += 1
            free -= 1
            if result[job] < limit[job]:
                heapq.heappush(heap, (-gain(state, job, result[job]), job))
        return _steady(state, result, total)

    return _run(instance, allocate, noise, _slots(instance, restart), lambda _: None, deadline)


def _steady(state: Elastic, wanted: Mapping[int, int], total: int) -> Mapping[int, int]:
    """Keep the sizes of jobs that would change by at most a quarter, as far as the GPUs go."""
    result = dict(wanted)
    used = sum(result.values())
    for job in sorted(wanted):
        now = state.gpus[job]
        if now and abs(wanted[job] - now) <= now / 4 and used + now - wanted[job] <= total:
            used += now - result[job]
            result[job] = now
    return result
