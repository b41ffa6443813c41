"""Prices on the time of GPUs and links, and the cheapest way of each job of ddl-cluster through its iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_kernel
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact as written
from schedgap.formulations.ddl_cluster import bounds
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.job_prices import ascend

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPAN = 16
"""Ticks of a bucket."""
_MOST_JOBS = 2_000
_FINEST = 60
_CELLS = 4_000_000
"""Ticks of all jobs times buckets, at most."""
_STEPS = 600_000_000
"""Most jobs times evaluations."""
_FEWEST, _MOST = 60, 300
"""Evaluations of prices: each is a bound by itself, so few are safe."""
_HOPE = 0.3


@dataclass(frozen=True)
class PricedPaths:
    """A bound on the sum of JCT: a tick is 2^-fineness seconds, a bucket SPAN of them, `first` buckets after 0."""

    value: float
    fineness: int
    first: int
    prices: Floats  # (2, B) of a second of a GPU, of a link


class _Path(NamedTuple):
    """One job; times in seconds."""

    bucket: int  # bucket of its arrival
    ahead: float  # from its arrival to the end of that bucket
    low: int  # fewest whole ticks that may be left of it then
    whole: float  # it takes alone
    rates: tuple[float, float]  # GPUs, and links, that it holds
    remains: Floats  # (2, ticks + 2) that are left of computing and of messages, where so many ticks are left in all


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
    since = float(arrival.min())
    longest = float((arrival + alone).max()) - since + work
    # each job has a few ticks where it is shorter than one, too
    room = _CELLS * SPAN / longest
    fineness = math.floor(min(_FINEST, math.log2(room / float(alone.sum())) / 2, math.log2(room / (3 * len(jobs)))))
    tick = 2.0**-fineness
    first = math.floor(written(since) / Fraction(SPAN * tick))
    buckets = math.ceil(longest / (SPAN * tick)) + 1
    exact = Fraction(tick)
    paths = []
    for job, wide, part in zip(jobs, spans, parts, strict=True):
        bucket = math.floor(written(job.arrival) / (SPAN * exact)) - first
        ahead = (first + bucket + 1) * SPAN * exact - written(job.arrival)
        length = written(job.forward) + written(job.backward)
        if wide > 1:
            length += written(link.latency) + written(link.seconds_per_unit) * written(job.message)
        whole = job.iterations * length
        ticks = math.floor(whole / exact)
        remains = _remains(np.arange(ticks + 2, dtype=np.float64) * tick, job.iterations, *part)
        low = max(0, math.floor((whole - ahead) / exact))
        rates = float(job.gpus), float(wide if wide > 1 else 0)
        paths.append(_Path(bucket, float(ahead), low, float(whole), rates, remains))
    width = np.full(buckets, SPAN * tick)
    longest_path = max(path.remains.shape[1] for path in paths)
    costs, order = np.empty((buckets + 1, longest_path)), np.empty(longest_path, dtype=np.int64)

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        use[:] = 0.0
        value = -float(capacity @ prices @ width)
        for path in paths:
            value += max(path.whole, _cheapest(path, tick, prices, use, costs, order))
        return value, np.repeat(capacity[:, None], buckets, axis=1)

    cells = sum(path.remains.shape[1] for path in paths) * buckets
    value, prices = ascend(evaluate, width, 2, int(np.clip(_STEPS // cells, _FEWEST, _MOST)), _HOPE)
    return PricedPaths(value, fineness, first, prices)


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


@njit_kernel
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


@njit_cached
def _cheapest(path: _Path, tick: float, prices: Floats, use: Floats, costs: Floats, order: Ints) -> float:
    """The least of JCT and cost of a job; what it holds then is added to `use`, (2, B).

    With the price p of a bucket and what is left at its edges, the cost is the sum over edges of the change of p there
    times what is left, and p of the first bucket times all: so a cost is known from what is left at edges alone.

    Parameters
    ----------
    costs, order : (B + 1, at least ticks), (ticks,): room
    """
    count, ticks, remains = prices.shape[1], path.remains.shape[1] - 2, path.remains
    begin = path.bucket
    base = 0.0
    for c in range(2):
        base += prices[c, begin] * path.rates[c] * remains[c, ticks + 1]
    best, last, end = np.inf, begin, 0
    if path.whole <= path.ahead:
        best = path.whole + base
    for k in range(begin + 1, count + 1):
        passed = path.ahead + (k - begin - 1) * SPAN * tick
        if passed >= best:
            break
        if k == begin + 1:
            costs[k, : ticks + 1] = np.inf
            costs[k, path.low : ticks + 1] = base
        else:
            _forward(costs, k, ticks, order)
        for c in range(2):
            change = -prices[c, k - 1]
            if k < count:
                change += prices[c, k]
            change *= path.rates[c]
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
            use[c, begin] += path.rates[c] * remains[c, ticks + 1]
        elif last < count:
            use[c, last] += path.rates[c] * remains[c, z]
    for k in range(last - 1, begin - 1, -1):
        before = ticks + 1
        if k > begin:
            before = z
            for y in range(z, min(z + SPAN, ticks) + 1):
                if costs[k, y] < costs[k, before]:
                    before = y
        for c in range(2):
            use[c, k] += path.rates[c] * (remains[c, before] - remains[c, z])
        z = before
    return best
