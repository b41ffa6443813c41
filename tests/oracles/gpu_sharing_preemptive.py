"""The preemptive policies of gpu-sharing in their plain form: every job is looked at, at every event."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.dynamics import computation_time, overlapped, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

FASTEST = 1e30

Allocate = Callable[["Elastic", list[int]], Mapping[int, int]]


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
) -> Solution:
    state = Elastic(instance, noise, restart)
    arrivals = sorted(range(len(instance.jobs)), key=lambda j: (instance.jobs[j].arrival, j), reverse=True)
    present: list[int] = []
    while arrivals or present:
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
    return {
        "segments": {job.id: state.segments[j] for j, job in enumerate(jobs)},
        "noise": noise,
        "restart": restart,
    }


def _slots(instance: GpuSharingInstance, seconds: float) -> int:
    return math.ceil(seconds / instance.slot_length - 1e-9)


def tiresias(instance: GpuSharingInstance, threshold: float, restart: float) -> Solution:
    """Two-queue least attained service."""
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

    return _run(instance, allocate, 0.0, _slots(instance, restart), review)


def pollux(instance: GpuSharingInstance, noise: float, most: float, restart: float) -> Solution:
    """Elastic goodput policy."""
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

    return _run(instance, allocate, noise, _slots(instance, restart), lambda _: None)


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
