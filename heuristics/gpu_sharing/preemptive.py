"""Policies outside the model: a two-queue preemptive one after Tiresias, an elastic one after Pollux.

Their schedules preempt or resize jobs, which the problem's meaning does not allow. They have their own
checker (formulations/gpu_sharing/check.py) and their own metrics, and no ratio to the optimum.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from schedgap.formulations.gpu_sharing.dynamics import computation_time, overlapped, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.sharing import late, metrics
from schedgap.solvers.result import NO_DEADLINE, Deadline

Restart: TypeAlias = Annotated[
    float, Field(ge=0, le=10**6, description="seconds lost when a job goes on after a change")
]
FASTEST = 1e30
"""Iterations per slot above which rates count as one: a job may take no time at all."""

Allocate = Callable[["Elastic", list[int]], Mapping[int, int]]
"""Given the jobs present, in order of arrival, the GPUs of each; jobs left out have none."""


class Elastic:
    """Jobs on numbers of GPUs, from event to event.

    Attributes
    ----------
    left : by job, iterations to go
    gpus : by job, GPUs it has now
    service : by job, GPU slots it has had
    """

    def __init__(self, instance: GpuSharingInstance, noise: float, restart: int) -> None:
        self.instance, self.noise, self.restart = instance, noise, restart
        jobs = instance.jobs
        self.steps = [steps[0] for steps in tables(instance).steps]
        # Between the target of the checker, I (1 - 1e-9), and I: floats cannot fall short of it.
        self.left = [job.iterations * (1 - 0.5e-9) for job in jobs]
        self.gpus = [0] * len(jobs)
        self.service = [0] * len(jobs)
        self.began = [0] * len(jobs)
        self.idle = [0] * len(jobs)
        self.segments: list[list[list[int]]] = [[] for _ in jobs]
        self.slot = 1
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

    def end(self, job: int) -> int:
        """Last slot of a running job if it keeps its GPUs."""
        slots = math.ceil(self.left[job] / self.rate(job, self.gpus[job]) - 1e-12)
        return self.slot + self.idle[job] + max(1, slots) - 1

    def advance(self, slot: int) -> None:
        """Run everything up to the beginning of `slot`."""
        for job, gpus in enumerate(self.gpus):
            if gpus:
                passed = slot - self.slot
                lost = min(self.idle[job], passed)
                self.idle[job] -= lost
                self.left[job] -= (passed - lost) * self.rate(job, gpus)
                self.service[job] += passed * gpus
        self.slot = slot

    def resize(self, job: int, gpus: int) -> None:
        """Give a job `gpus` GPUs from the present slot on; 0 stops it."""
        if gpus == self.gpus[job]:
            return
        if self.gpus[job] and self.slot > self.began[job]:
            self.segments[job].append([self.began[job], self.slot - 1, self.gpus[job]])
        self.gpus[job], self.began[job] = gpus, self.slot
        self.idle[job] = self.restart if gpus and self.segments[job] else 0


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
    present: list[int] = []
    while arrivals or present:
        if deadline.passed:
            return late(len(arrivals) + sum(not state.gpus[job] and not state.segments[job] for job in present))
        moments = [state.end(job) + 1 for job in present if state.gpus[job]]
        if arrivals:
            moments.append(instance.jobs[arrivals[-1]].arrival)
        extra = review(state)
        if extra is not None:
            moments.append(extra)
        ending = {job for job in present if state.gpus[job] and state.end(job) + 1 == min(moments)}
        state.advance(min(moments))
        for job in ending:
            state.resize(job, 0)
        present = [job for job in present if job not in ending]
        while arrivals and instance.jobs[arrivals[-1]].arrival == state.slot:
            present.append(arrivals.pop())
        wanted = allocate(state, present)
        for job in present:
            state.resize(job, wanted.get(job, 0))
    jobs = instance.jobs
    end = [rows[-1][1] for rows in state.segments]
    active = [sum(last - first + 1 for first, last, _ in rows) for rows in state.segments]
    waiting = [end[j] - job.arrival + 1 - active[j] for j, job in enumerate(jobs)]
    solution = {
        "segments": {job.id: state.segments[j] for j, job in enumerate(jobs)},
        "noise": noise,
        "restart": restart,
    }
    changes = sum(len(rows) - 1 for rows in state.segments)
    info: dict[str, Any] = {"outside_model": True, "interruptions": changes, **metrics(instance, waiting, end)}
    return HeuristicRun(solution, info)


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
    O(J) per event. Source: paper 003, section VI-A3, after Gu et al., NSDI 2019.
    """
    limit = threshold / instance.slot_length
    sizes = [job.gpus for job in instance.jobs]

    def allocate(state: Elastic, present: list[int]) -> Mapping[int, int]:
        free, result = instance.total_gpus, {}
        for job in sorted(present, key=lambda j: (state.service[j] >= limit, instance.jobs[j].arrival, j)):
            if sizes[job] <= free:
                result[job] = sizes[job]
                free -= sizes[job]
        return result

    def review(state: Elastic) -> int | None:
        moments = [
            state.slot + math.ceil((limit - state.service[job]) / gpus)
            for job, gpus in enumerate(state.gpus)
            if gpus and state.service[job] < limit
        ]
        return min(moments, default=None)

    return _run(instance, allocate, 0.0, _slots(instance, restart), review, deadline)


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

    def allocate(state: Elastic, present: list[int]) -> Mapping[int, int]:
        result = dict.fromkeys(present[:total], 1)
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
