"""What jobs do over time: iteration times, work, who fits with whom, and the progress of one job.

Work is counted in solo slots: W = I (1 - 1e-9) t_iter / L, the slots a job needs at full rate; a slot at
slowdown x does 1/x of one. Floats are used throughout; a comparison closer than 1e-9 relative is decided
again in rationals, so that every completion slot equals the checker's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.formulations.gpu_sharing.power_norm import power_norm

_CLOSE = 1e-9


def computation_time(job: Job, steps: int) -> float:
    """t_comp of one sub-batch in seconds (eq. 3)."""
    return job.compute.fixed + job.compute.per_sample * (job.batch_size // steps)


def communication_time(job: Job) -> float:
    """t_comm in seconds (eq. 4): 0 for a gang of one."""
    link = job.communication
    return 0.0 if job.gpus == 1 else link.latency + link.per_unit * link.message


def iteration_time(job: Job, steps: int = 1) -> float:
    """t_iter in seconds with `steps` accumulation steps (eq. 7); it never falls as `steps` grows."""
    computing, sending = computation_time(job, steps), communication_time(job)
    return (steps - 1) * computing + overlapped(computing, sending, job.overlap)


def overlapped(computing: float, sending: float, overlap: float) -> float:
    """(c^delta + m^delta)^(1/delta), scaled so that nothing overflows."""
    largest, smallest = max(computing, sending), min(computing, sending)
    if smallest == 0.0:
        return largest
    if overlap == 1.0:
        return largest + smallest
    return float(largest * (1.0 + (smallest / largest) ** overlap) ** (1.0 / overlap))


def exact_work(job: Job, steps: int, slot_length: float) -> Fraction:
    """W of a job in solo slots: exact where eq. (7) takes no root, else from below within 1e-60 relative."""
    computing = exact(job.compute.fixed) + exact(job.compute.per_sample) * (job.batch_size // steps)
    link = job.communication
    sending = Fraction(0)
    if job.gpus > 1:
        sending = exact(link.latency) + exact(link.per_unit) * exact(link.message)
    iteration = (steps - 1) * computing + power_norm(computing, sending, exact(job.overlap))
    return job.iterations * (1 - CHECK_TOLERANCE) * iteration / exact(slot_length)


def exact_load(job: Job, steps: int) -> Fraction:
    """Memory on each GPU of the job."""
    return exact(job.memory.fixed) + exact(job.memory.per_sample) * (job.batch_size // steps)


@dataclass(frozen=True)
class SharingTables:
    """What every model and policy reads; jobs by position."""

    instance: GpuSharingInstance  # the instance
    # arrival, gpus: (J,) arrival slots and gang sizes
    arrival: NDArray[np.int64]
    gpus: NDArray[np.int64]
    # per job, the accumulation steps that fit a GPU alone, ascending; empty where none does
    steps: Sequence[tuple[int, ...]]
    work: Sequence[tuple[float, ...]]  # per job and entry of `steps`, W in solo slots
    load: Sequence[tuple[float, ...]]  # per job and entry of `steps`, memory on a GPU
    slowdown: NDArray[np.float64]  # (J, J), xi of the row's job while it shares with the column's

    def pair_fits(self, j: int, steps_j: int, k: int, steps_k: int) -> bool:
        """Whether the two fit one GPU together with these accumulation steps."""
        jobs, memory = self.instance.jobs, self.instance.gpu_memory
        used = _load(jobs[j], steps_j) + _load(jobs[k], steps_k)
        if abs(used - memory) > 1e-8 * memory:
            return used < memory
        total = exact_load(jobs[j], steps_j) + exact_load(jobs[k], steps_k)
        return total <= exact(memory) * (1 + CHECK_TOLERANCE)

    def smallest_fit(self, j: int, k: int, steps_k: int) -> int | None:
        """The smallest steps with which j fits beside k with `steps_k`, or None."""
        return next((s for s in self.steps[j] if self.pair_fits(j, s, k, steps_k)), None)

    @cached_property
    def solo_work(self) -> NDArray[np.float64]:
        """(J,) W with the fewest steps that fit alone, nan where none does."""
        return np.array([work[0] if work else math.nan for work in self.work])

    @cached_property
    def solo_slots(self) -> NDArray[np.int64]:
        """(J,) slots of each job alone, the fewest it can take; -1 where it fits no GPU."""
        return np.array(
            [
                RunningJob(self.instance, j, steps[0]).slots_left(1.0) if steps else -1
                for j, steps in enumerate(self.steps)
            ],
            dtype=np.int64,
        )

    @cached_property
    def load_classes(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(J,) classes of jobs with the same least memory, and (U, U) whether two jobs of the classes fit a GPU."""
        jobs = self.instance.jobs
        members: dict[tuple[float, float, int] | None, list[int]] = {}
        for j, (job, steps) in enumerate(zip(jobs, self.steps, strict=True)):
            key = (job.memory.fixed, job.memory.per_sample, job.batch_size // steps[-1]) if steps else None
            members.setdefault(key, []).append(j)
        classes = np.zeros(len(jobs), dtype=np.int64)
        fits = np.zeros((len(members), len(members)), dtype=np.bool_)
        for a, (key, row) in enumerate(members.items()):
            classes[row] = a
            for b, (other, column) in enumerate(members.items()):
                j, k = row[0], column[-1]  # the same job where it is alone in its class
                if j != k and key is not None and other is not None:
                    fits[a, b] = self.pair_fits(j, self.steps[j][-1], k, self.steps[k][-1])
        return classes, fits

    @cached_property
    def may_share(self) -> NDArray[np.bool_]:
        """(J, J), symmetric: some accumulation steps let the pair share a GPU; all False with a cap of 1."""
        n = len(self.steps)
        if self.instance.max_jobs_per_gpu == 1:
            return np.broadcast_to(np.False_, (n, n))
        least = np.array([load[-1] if load else math.inf for load in self.load])
        memory = self.instance.gpu_memory
        total = least[:, None] + least[None, :]
        result = np.asarray(total < memory, dtype=np.bool_)
        for j, k in np.argwhere(np.abs(total - memory) <= 1e-8 * memory).tolist():
            result[j, k] = self.pair_fits(j, self.steps[j][-1], k, self.steps[k][-1])
        np.fill_diagonal(result, False)
        return result


def _load(job: Job, steps: int) -> float:
    return job.memory.fixed + job.memory.per_sample * (job.batch_size // steps)


def _fits_alone(job: Job, steps: int, memory: float) -> bool:
    used = _load(job, steps)
    if abs(used - memory) > 1e-8 * memory:
        return used < memory
    return exact_load(job, steps) <= exact(memory) * (1 + CHECK_TOLERANCE)


def entries_of(
    job: Job, memory: float, slot_length: float
) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    """Accumulation steps that fit a GPU alone, and by them work and memory."""
    steps = tuple(s for s in job.accumulation_steps if _fits_alone(job, s, memory))
    work = tuple(job.iterations * (1.0 - 1e-9) * iteration_time(job, s) / slot_length for s in steps)
    return steps, work, tuple(_load(job, s) for s in steps)


@lru_cache(maxsize=64)
def tables(instance: GpuSharingInstance) -> SharingTables:
    """The tables of an instance; cached."""
    jobs = instance.jobs
    entries = [entries_of(job, instance.gpu_memory, instance.slot_length) for job in jobs]
    steps, work, load = (tuple(rows) for rows in zip(*entries, strict=True)) if entries else ((), (), ())
    shape = len(jobs), len(jobs)
    slowdown = np.ones(shape) if instance.interference else np.broadcast_to(1.0, shape)  # one number for J x J
    index = instance.job_index
    for job_id, row in instance.interference.items():
        slowdown[index[job_id], [index[other] for other in row]] = list(row.values())
    return SharingTables(
        instance,
        np.array([job.arrival for job in jobs], dtype=np.int64),
        np.array([job.gpus for job in jobs], dtype=np.int64),
        steps,
        work,
        load,
        slowdown,
    )


class RunningJob:
    """One running job: the work it has left, and when it would complete.

    ``advance`` and ``slots_left`` cost O(1) unless a completion is within 1e-9 relative of a slot's end,
    when the segments so far are added up in rationals.
    """

    __slots__ = ("_instance", "_job", "_segments", "_steps", "remaining", "work")

    def __init__(self, instance: GpuSharingInstance, job: int, steps: int, work: float | None = None) -> None:
        self._instance, self._job, self._steps = instance, job, steps
        part = instance.jobs[job]
        if work is None:
            work = part.iterations * (1.0 - 1e-9) * iteration_time(part, steps) / instance.slot_length
        self.work = self.remaining = work
        self._segments: list[tuple[int, float]] = []

    def advance(self, slots: int, slowdown: float) -> None:
        """Run `slots` slots at `slowdown`."""
        self.remaining -= slots / slowdown
        if self._segments and self._segments[-1][1] == slowdown:
            slots += self._segments.pop()[0]
        self._segments.append((slots, slowdown))

    def slots_left(self, slowdown: float) -> int:
        """Slots until the work is done if the slowdown stays; at least 1."""
        slots = self.remaining * slowdown
        nearest = round(slots)
        if abs(slots - nearest) > _CLOSE * max(1.0, self.work * slowdown):
            return max(1, math.ceil(slots))
        target = exact_work(self._instance.jobs[self._job], self._steps, self._instance.slot_length)
        done = sum((n / exact(x) for n, x in self._segments), Fraction(0))
        return max(1, math.ceil((target - done) * exact(slowdown)))
