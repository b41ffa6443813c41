"""An instance in whole numbers: time in ticks, memory in parts of a GPU. Both simulators read this."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

FINEST_DIGITS = 10
LARGEST_TICK = 2**60
MEMORY_PARTS = 10**15
MEMORY_CAPACITY = MEMORY_PARTS + 10**6
"""What the jobs of a GPU may hold together: all of it, and 1e-9 more, so that 0.1 + 0.2 fits 0.3."""


@dataclass(frozen=True)
class Clock:
    """An instance in ticks of 10^-digits seconds.

    Simultaneous events are then exactly simultaneous, in whatever order the times were added up, and a
    pattern that repeats does so exactly. Durations are rounded up, so nothing is faster than it can be; a
    duration of at most 10 decimals is not rounded at all unless the instance runs for years.

    Attributes
    ----------
    digits : a tick is 10^-digits seconds: 10, or fewer where 2^60 ticks would not do
    arrival, forward, backward : by job, ticks
    latency : ticks, the same for all jobs
    solo : by job, ticks of one all-reduce that meets no other, its latency included
    message : by job, MB
    ticks_per_unit : by number of transfers k from 0 to 4, the ticks per MB of each: k b + (k - 1) eta
    pair_cost, unit_cost : 2 (b + eta) and b in seconds per MB, for AdaDUAL's comparison
    memory : by job, parts of 10^-15 of a GPU's memory, rounded down; a GPU has MEMORY_CAPACITY of them
    """

    digits: int
    arrival: tuple[int, ...]
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    latency: int
    solo: tuple[int, ...]
    message: tuple[float, ...]
    ticks_per_unit: tuple[float, ...]
    pair_cost: float
    unit_cost: float
    memory: tuple[int, ...]

    def seconds(self, ticks: int) -> float:
        """`ticks` in seconds, correctly rounded."""
        scale: int = 10**self.digits
        return int(ticks) / scale


@lru_cache(maxsize=64)
def clock_of(instance: DdlClusterInstance) -> Clock:
    """The clock of an instance.

    The number of digits is the largest up to 10 for which all tasks one after another, each counted for every
    GPU of its job and each all-reduce as one of three, take less than 2^60 ticks after the last arrival.
    """
    digits = FINEST_DIGITS
    while instance.longest_run * 10**digits >= LARGEST_TICK:
        digits -= 1
    scale: int = 10**digits
    a, b, eta = instance.link.exact_parameters()

    def ticks(seconds: Fraction) -> int:
        return ceil(seconds * scale)

    memory = exact(instance.gpu_memory)
    jobs = instance.jobs
    return Clock(
        digits=digits,
        arrival=tuple(ticks(exact(job.arrival)) for job in jobs),
        forward=tuple(ticks(exact(job.forward)) for job in jobs),
        backward=tuple(ticks(exact(job.backward)) for job in jobs),
        latency=ticks(a),
        solo=tuple(ticks(a) + ticks(b * exact(job.message)) for job in jobs),
        message=tuple(job.message for job in jobs),
        ticks_per_unit=(0.0, *(float((k * b + (k - 1) * eta) * scale) for k in (1, 2, 3, 4))),
        pair_cost=float(2 * (b + eta)),
        unit_cost=float(b),
        memory=tuple(floor(exact(job.memory) / memory * MEMORY_PARTS) for job in jobs),
    )
