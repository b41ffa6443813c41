"""Prices on the time of GPUs and links, and the cheapest way of each job of ddl-cluster through its iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact as written
from schedgap.formulations.ddl_cluster import bounds
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.job_prices import ascend

SPAN = 16
"""Ticks of a bucket."""
_MOST_JOBS = 2_000
_FINEST = 60
_CELLS = 4_000_000
"""Ticks of all jobs times buckets, at most."""
_LEVELS = ((3, 300, 1.0), (2, 150, 0.05), (1, 60, 0.02), (0, 100, 0.02))
"""Coarse ticks first, whose prices the finer ones begin with: how often ticks are doubled, evaluations of prices at
most, and the length of the first step. Each evaluation is a bound by itself, so few are safe."""
_HOPE = 0.3


@dataclass(frozen=True)
class PricedPaths:
    """A bound on the sum of JCT: a tick is 2^-fineness seconds, a bucket SPAN of them, `first` buckets after 0."""

    value: float
    fineness: int
    first: int
    prices: Floats  # (2, B) of a second of a GPU, of a link


class _Paths(NamedTuple):
    """The jobs; times in seconds."""

    bucket: Ints  # (J,) bucket of the arrival
    ahead: Floats  # (J,) from the arrival to the end of that bucket
    low: Ints  # (J,) fewest whole ticks that may be left then
    whole: Floats  # (J,) that a job takes alone
    rates: Floats  # (J, 2) GPUs, and links, that it holds
    begin: Ints  # (J + 1,) first column of `remains`, which has two more than ticks
    remains: Floats  # (2, ...) that are left of computing and of messages, where so many ticks are left in all


@once_per_instance
def priced_paths(instance: DdlClusterInstance) -> PricedPaths | None:
    """The best bound found by prices on GPUs and links along the way of each job; None where there are too many jobs.

    What a worker of a job does is, iteration by iteration, c seconds of computing, the latency, and the b M seconds of
    the message, at full pace or slower, and pauses. So what is left of it falls by at most a second a second; while
    that is in the part of computing it holds its GPU, in the part of a message it loads h links by the pace at which
    it moves. Prices of GPUs and links that are constant over buckets of time, less what N GPUs and S links are worth,
    bound the sum of JCT by the sum over jobs of the least of finish and cost. The least is found by dynamic
    programming over what is left at the edges of buckets, in whole ticks: what is between two ticks counts as the one
    at which it costs less.

    Notes
    -----
    O(T B) an evaluation, with the T ticks of all jobs alone and B buckets; at most 4 million.
    """
    jobs, link = instance.jobs, instance.link
    if len(jobs) > _MOST_JOBS:
        return None
    spans = bounds.servers_spanned(instance)
    alone = np.array(bounds.alone_times(instance))
    arrival = np.array([job.arrival for job in jobs])
    capacity = np.array([float(instance.total_gpus), float(len(instance.servers))])
    parts = [
        (
            job.forward + job.backward,
            link.latency if wide > 1 else 0.0,
            link.seconds_per_unit * job.message if wide > 1 else 0.0,
        )
        for job, wide in zip(jobs, spans, strict=True)
    ]
    work = sum(job.iterations * job.gpus * part[0] for job, part in zip(jobs, parts, strict=True)) / capacity[0]
    work += sum(job.iterations * s * part[2] for job, s, part in zip(jobs, spans, parts, strict=True)) / capacity[1]
    longest = float((arrival + alone).max()) - float(arrival.min()) + work
    # each job has a few ticks where it is shorter than one, too
    room = _CELLS * SPAN / longest
    finest = math.floor(min(_FINEST, math.log2(room / float(alone.sum())) / 2, math.log2(room / (3 * len(jobs)))))
    best: PricedPaths | None = None
    last: PricedPaths | None = None
    for doublings, rounds, step in _LEVELS:
        grid = _Grid(instance, spans, parts, finest - doublings, longest)
        start = None if last is None else grid.prices_of(last)
        value, prices = ascend(grid.evaluate, grid.width, 2, rounds, _HOPE, start, step)
        last = PricedPaths(value, grid.fineness, grid.first, prices)
        if best is None or value >= best.value:
            best = last
    return best


class _Grid:
    """Ticks and buckets of one fineness, and the ways of all jobs in them.

    Parameters
    ----------
    spans : (J,) servers that a job spans at least
    parts : (J,) seconds of computing, of latency and of the message of an iteration
    longest : seconds from the first arrival until all can be done
    """

    def __init__(
        self,
        instance: DdlClusterInstance,
        spans: Sequence[int],
        parts: Sequence[tuple[float, float, float]],
        fineness: int,
        longest: float,
    ) -> None:
        jobs, link = instance.jobs, instance.link
        self.fineness, self.tick = fineness, 2.0**-fineness
        exact = Fraction(self.tick)
        self.first = math.floor(written(min(job.arrival for job in jobs)) / (SPAN * exact))
        self.capacity = np.array([float(instance.total_gpus), float(len(instance.servers))])
        self.width = np.full(math.ceil(longest / (SPAN * self.tick)) + 1, SPAN * self.tick)
        rows, remains = [], []
        for job, wide, part in zip(jobs, spans, parts, strict=True):
            bucket = math.floor(written(job.arrival) / (SPAN * exact)) - self.first
            ahead = (self.first + bucket + 1) * SPAN * exact - written(job.arrival)
            length = written(job.forward) + written(job.backward)
            if wide > 1:
                length += written(link.latency) + written(link.seconds_per_unit) * written(job.message)
            whole = job.iterations * length
            ticks = math.floor(whole / exact)
            remains.append(_remains(np.arange(ticks + 2, dtype=np.float64) * self.tick, job.iterations, *part))
            low = max(0, math.floor((whole - ahead) / exact))
            held = float(job.gpus), float(wide if wide > 1 else 0)
            rows.append((bucket, float(ahead), low, float(whole), held))
        buckets, aheads, lows, wholes, rates = (np.array(column) for column in zip(*rows, strict=True))
        sizes = [part.shape[1] for part in remains]
        begin = np.cumsum([0, *sizes])
        self._paths = _Paths(buckets, aheads, lows, wholes, rates, begin, np.concatenate(remains, axis=1))
        self._costs = np.empty((len(self.width) + 1, max(sizes)))
        self._order = np.empty(max(sizes), dtype=np.int64)

    def prices_of(self, coarser: PricedPaths) -> Floats:
        """The prices of coarser buckets, each as long as a power of two of these, for these."""
        doublings = self.fineness - coarser.fineness
        ahead = self.first - (coarser.first << doublings)  # small, where the first alone may be beyond 64 bits
        buckets = (ahead + np.arange(len(self.width))) >> doublings
        return coarser.prices[:, np.minimum(buckets, coarser.prices.shape[1] - 1)]

    def evaluate(self, prices: Floats, use: Floats) -> tuple[float, Floats]:
        """The bound that prices prove, and capacities; see :data:`~schedgap.solvers.exact.job_prices.Evaluate`."""
        value = _least(self._paths, self.tick, prices, use, self._costs, self._order)
        value -= float(self.capacity @ prices @ self.width)
        return value, np.repeat(self.capacity[:, None], len(self.width), axis=1)


def _remains(time: Floats, iterations: int, compute: float, latency: float, message: float) -> Floats:
    """(2, ...) seconds of computing and of messages in the last `time` of a job."""
    whole = compute + latency + message
    done = np.minimum(np.floor(time / whole), iterations)
    rest = np.where(done < iterations, time - done * whole, 0.0)
    return np.stack(
        (
            np.minimum(iterations * compute, done * compute + np.maximum(0.0, rest - latency - message)),
            np.minimum(iterations * message, done * message + np.clip(rest, 0.0, message)),
        )
    )


@njit_inner
def _forward(costs: Floats, k: int, ticks: int, order: Ints) -> None:
    """At edge k the least of what led there: up to SPAN ticks more were left a bucket before."""
    head = tail = 0
    for z in range(ticks, -1, -1):
        while tail > head and costs[k - 1, order[tail - 1]] >= costs[k - 1, z]:
            tail -= 1
        order[tail] = z
        tail += 1
        while order[head] > z + SPAN:
            head += 1
        costs[k, z] = costs[k - 1, order[head]]


@njit_inner
def _cheapest(paths: _Paths, j: int, tick: float, prices: Floats, use: Floats, costs: Floats, order: Ints) -> float:
    """The least of JCT and cost of job j; what it holds then is added to `use`.

    With the price p of a bucket and what is left at its edges, the cost is the sum over edges of the change of p there
    times what is left, and p of the first bucket times all: so a cost is known from what is left at edges alone.
    """
    remains = paths.remains[:, paths.begin[j] : paths.begin[j + 1]]
    count, ticks = prices.shape[1], remains.shape[1] - 2
    begin, ahead, low = paths.bucket[j], paths.ahead[j], paths.low[j]
    base = 0.0
    for c in range(2):
        base += prices[c, begin] * paths.rates[j, c] * remains[c, ticks + 1]
    best, last, end = np.inf, begin, 0
    if paths.whole[j] <= ahead:
        best = paths.whole[j] + base
    for k in range(begin + 1, count + 1):
        passed = ahead + (k - begin - 1) * SPAN * tick
        if passed >= best:
            break
        if k == begin + 1:
            costs[k, : ticks + 1] = np.inf
            costs[k, low : ticks + 1] = base
        else:
            _forward(costs, k, ticks, order)
        for c in range(2):
            change = -prices[c, k - 1]
            if k < count:
                change += prices[c, k]
            change *= paths.rates[j, c]
            if change != 0.0:
                later = 0 if change > 0 else 1
                for z in range(ticks + 1):
                    costs[k, z] += change * remains[c, z + later]
        for z in range(min(ticks, SPAN if k < count else ticks) + 1):
            if costs[k, z] + passed + z * tick < best:
                best, last, end = costs[k, z] + passed + z * tick, k, z
    z = end
    for c in range(2):
        if last == begin:
            use[c, begin] += paths.rates[j, c] * remains[c, ticks + 1]
        elif last < count:
            use[c, last] += paths.rates[j, c] * remains[c, z]
    for k in range(last - 1, begin - 1, -1):
        before = ticks + 1
        if k > begin:
            before = z
            for y in range(z, min(z + SPAN, ticks) + 1):
                if costs[k, y] < costs[k, before]:
                    before = y
        for c in range(2):
            use[c, k] += paths.rates[j, c] * (remains[c, before] - remains[c, z])
        z = before
    return best


@njit_cached
def _least(paths: _Paths, tick: float, prices: Floats, use: Floats, costs: Floats, order: Ints) -> float:
    """The sum over jobs of the least of JCT and cost; `use`, (2, B), becomes what they hold.

    Parameters
    ----------
    costs, order : (B + 1, at least the most ticks), (the most ticks,): room
    """
    for c in range(2):
        for k in range(prices.shape[1]):
            use[c, k] = 0.0
    total = 0.0
    for j in range(len(paths.bucket)):
        total += max(paths.whole[j], _cheapest(paths, j, tick, prices, use, costs, order))
    return total
