"""The certified lower bound on the mean JCT of ddl-cluster, with prices on GPU time.

Idea: sell GPU time at prices by buckets of time. Each job pays least for its own work, and all GPUs together take in
no more than they hold. Source: Lagrangian relaxation; what a job must compute before its last all-reduce is ours.
Guarantee: every bound holds at any prices, rounded or not, and is certified (`certificates/rules/ddl_cluster.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.ddl_cluster import bounds
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.solvers.exact.ddl_cluster.paths import priced_paths
from schedgap.solvers.exact.job_prices import PricedJobs, ascend, best_starts, event_edges, least

_BUCKETS = 300
_EVALUATIONS = 1_000_000
"""Jobs times evaluations of prices."""
_FEWEST, _MOST = 60, 400
"""Evaluations of prices: each is a bound by itself, so few are safe."""
_FINEST = 60
_LONGEST = 2**45
"""Ticks until all can be done, at most."""
_TICKS = 2**30
"""Until all could be done, where no bound is certified."""
_SAFETY = 1e-9


@dataclass(frozen=True)
class Priced:
    """A bound on the sum of JCT."""

    value: float  # the bound, in seconds
    fineness: int  # a tick is 2^-fineness seconds
    # edges, prices: (B + 1,) rising ticks, and (B,) of GPU time between them
    edges: NDArray[np.int64]
    prices: Floats


@once_per_instance
def lower_bound(instance: DdlClusterInstance) -> float:
    """A lower bound on the mean of finish - arrival, in seconds: the best of one resource, of shares, and of prices."""
    paths = priced_paths(instance)
    value = max(priced(instance).value, -math.inf if paths is None else paths.value)
    return max(bounds.lower_bound(instance), value * (1 - _SAFETY) / len(instance.jobs))


@once_per_instance
def priced(instance: DdlClusterInstance) -> Priced:
    """The best bound found by prices on GPU time.

    A job computes I_j c_j seconds on each of its G_j GPUs, and while one of its all-reduces, of m_j seconds at least,
    is under way it does not compute: its last task ends I_j c_j + (I_j - 1) m_j after its arrival at the earliest, and
    m_j before its finish. So the sum of JCT is at least the sum over jobs of m_j and the least of the time until that
    task and the price of the GPU time before it, less what N GPUs are worth over all.

    Notes
    -----
    At most 300 buckets and 400 evaluations of O(J) times the buckets that a job waits.
    """
    jobs = instance.jobs
    alone = np.array(bounds.alone_times(instance))
    compute = np.array([job.iterations * (job.forward + job.backward) for job in jobs])
    message = (alone - compute) / np.array([job.iterations for job in jobs])
    arrival, gpus = np.array([job.arrival for job in jobs]), np.array([float(job.gpus) for job in jobs])
    longest = float(arrival.max() + gpus @ compute / instance.total_gpus + alone.max())
    fineness = min(_FINEST, math.floor(math.log2(_LONGEST / longest)))
    tick = 2.0**-fineness
    first = np.floor(arrival / tick).astype(np.int64)
    work = np.maximum(np.floor(compute / tick), 1.0)
    soonest = np.floor((alone - message) / tick).astype(np.int64)
    none = np.zeros(len(jobs), dtype=np.int64)
    edges = event_edges(first, work.astype(np.int64), gpus * work, instance.total_gpus, _BUCKETS)
    rounds = int(np.clip(_EVALUATIONS // len(jobs), _FEWEST, _MOST))
    number = float(instance.total_gpus)
    width = np.diff(edges).astype(np.float64)
    priced_jobs = PricedJobs(first, none, work, gpus, none, soonest)

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        return least(priced_jobs, edges, prices, use) - number * float(prices[0] @ width), np.full_like(prices, number)

    value, prices = ascend(evaluate, width, 1, rounds)
    rounded = tick + arrival - first * tick  # ticks begin before jobs, and a last one is not used up
    return Priced(value * tick + float((message - rounded).sum()), fineness, edges, prices[0])


def priced_starts(instance: DdlClusterInstance) -> Floats:
    """(J,) the moments at which jobs would start at prices of GPU time, if each held its GPUs from start to finish.

    The prices are those of the best bound on such schedules; they bound no others.
    """
    arrival = np.array([job.arrival for job in instance.jobs])
    alone = np.array(bounds.alone_times(instance))
    gpus, number = np.array([float(job.gpus) for job in instance.jobs]), float(instance.total_gpus)
    tick = (arrival.max() + gpus @ alone / number + alone.max()) / _TICKS
    first, length = np.ceil(arrival / tick).astype(np.int64), np.ceil(alone / tick).astype(np.int64)
    none = np.zeros(len(first), dtype=np.int64)
    jobs = PricedJobs(first, length, length.astype(np.float64), gpus, none, none)
    edges = event_edges(first, length, gpus * length, number, _BUCKETS)
    width = np.diff(edges).astype(np.float64)

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        return least(jobs, edges, prices, use) - number * float(prices[0] @ width), np.full_like(prices, number)

    _, prices = ascend(evaluate, width, 1, int(np.clip(_EVALUATIONS // len(first), _FEWEST, _MOST)))
    starts: Floats = np.maximum(best_starts(jobs, edges, prices) * tick, arrival)
    return starts
