"""An instance in whole numbers: time in ticks, memory in parts of a GPU. Both simulators read this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor

from schedgap.formulations.common.errors import ModelTooLarge
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

FINEST_DIGITS = 60
"""Finest digits of ticks for which 10^digits and its inverse are ordinary floats."""


LARGEST_TICK = 2**60


LARGEST_SUM = 2**62


FINE_TASK = 2**42
"""Ticks that no task and no all-reduce alone reaches: their products with a slowdown are exact to 0.001 tick."""


COARSE_TASK = 2**35
"""Ticks of the longest task, but for a factor of ten, where the sum of all finishes then passes LARGEST_SUM."""


MEMORY_PARTS = 10**15


MEMORY_CAPACITY = MEMORY_PARTS + 10**6
"""What the jobs of a GPU may hold together: all of it, and 1e-9 more, so that 0.1 + 0.2 fits 0.3."""


LARGEST_SETS = 10_000
"""Sets of jobs that do not fit a GPU that a linear model may have rows for."""


JobSet = tuple[int, ...]


def misfits(here: Sequence[int], parts: Sequence[int], limit: int = LARGEST_SETS) -> list[JobSet]:
    """The smallest sets of jobs that do not fit one GPU. Raises ModelTooLarge: they are more than `limit`."""
    sets: list[JobSet] = []
    order = sorted(here, key=lambda j: -parts[j])
    # by place in the order, what the jobs from there on hold: only what goes on to some such set is tried
    rest = list(accumulate((parts[j] for j in reversed(order)), initial=0))[::-1]
    fitting: list[tuple[JobSet, int, int]] = [((), 0, 0)] if rest[0] > MEMORY_CAPACITY else []
    while fitting and len(sets) + len(fitting) <= limit:
        chosen, held, place = fitting.pop()
        while held + rest[place] > MEMORY_CAPACITY:
            j = order[place]
            place += 1
            total = held + parts[j]
            if total > MEMORY_CAPACITY:
                # without any other, none of which is less, it fits
                sets.append((*chosen, j))
            elif total + rest[place] > MEMORY_CAPACITY:
                fitting.append(((*chosen, j), total, place))
    if len(sets) + len(fitting) > limit:
        raise ModelTooLarge(f"more than {limit} sets of jobs that do not fit a GPU")
    return sets


@dataclass(frozen=True)
class Clock:
    """An instance in ticks of 10^-digits seconds.

    Simultaneous events are then exactly simultaneous, in whatever order the times were added up, and a
    pattern that repeats does so exactly. Durations are rounded up, so nothing is faster than it can be. How fine
    ticks are follows from the instance alone: the longest task has 4e11 to 4e12 of them, or at least 3e9 where
    sums would become too large. So units do not matter: the same instance in milliseconds or in bytes is the same
    in ticks.
    """

    digits: int  # a tick is 10^-digits seconds
    # arrival, forward, backward: by job, ticks
    arrival: tuple[int, ...]
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    latency: int  # ticks, the same for all jobs
    transfer: tuple[int, ...]  # ticks in which each job's message is moved by an all-reduce that meets no other
    solo: tuple[int, ...]  # latency + transfer of each job
    # by number of transfers k from 0 to 4, how many times longer each takes: k + (k - 1) eta / b
    slowdown: tuple[float, ...]
    pair_factor: float  # 2 (b + eta) / b, for AdaDUAL's comparison
    # by job, parts of 10^-15 of a GPU's memory, rounded down; a GPU has MEMORY_CAPACITY of them
    memory: tuple[int, ...]

    def seconds(self, ticks: int) -> float:
        """`ticks` in seconds, correctly rounded."""
        scale: int = 10**self.digits
        return int(ticks) / scale


@lru_cache(maxsize=64)
def clock_of(instance: DdlClusterInstance, digits: int | None = None) -> Clock:
    """The clock of an instance.

    Where `digits` are not given they are the most for which every task and every all-reduce alone takes less than
    FINE_TASK ticks and the sum of all finishes less than LARGEST_SUM; at least as many as COARSE_TASK allows; but
    at most so many that everything ends within LARGEST_TICK (see ``longest_run``).
    """
    if digits is None:
        link = instance.link
        task = max(max(job.forward, job.backward, link.seconds_per_unit * job.message) for job in instance.jobs)
        task = max(task, link.latency)
        last = instance.longest_run
        digits = min(_digits(task, FINE_TASK), _digits(len(instance.jobs) * last, LARGEST_SUM))
        digits = min(max(digits, _digits(task, COARSE_TASK)), _digits(last, LARGEST_TICK))
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
        transfer=tuple(ticks(b * exact(job.message)) for job in jobs),
        solo=tuple(ticks(a) + ticks(b * exact(job.message)) for job in jobs),
        slowdown=(0.0, *(float(k + (k - 1) * eta / b) for k in (1, 2, 3, 4))),
        pair_factor=float(2 * (b + eta) / b),
        memory=tuple(floor(exact(job.memory) / memory * MEMORY_PARTS) for job in jobs),
    )


def _digits(seconds: float, limit: int) -> int:
    """The most digits up to FINEST_DIGITS for which `seconds` are less than `limit` ticks."""
    digits = FINEST_DIGITS
    while exact(seconds) * 10**digits >= limit:
        digits -= 1
    return digits
