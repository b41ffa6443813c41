"""hadar: prices on device types by buckets of slots whose edges are events; work grows with jobs, not with slots.

Idea: prices by buckets whose edges are arrivals and other events, so that a horizon of a million slots costs no more
than a short one. Source: Lagrangian relaxation by a subgradient method. Guarantee: any prices bound P2, and so P1,
from above; it is certified (`certificates/rules/hadar.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner
from schedgap.formulations.hadar.tables import ProgressTables
from schedgap.solvers.exact.job_prices import ascend, event_edges

_BUCKETS = 200


_EVALUATIONS = 200_000


_FEWEST, _MOST = 40, 300
"""Evaluations of prices: each is a bound by itself, so few are safe."""


_FINEST, _COARSEST, _FINISHES = 200, 25, 100_000
"""Finishes are looked at in steps of 1/n of the time since arrival; n times the jobs."""


class _Jobs(NamedTuple):
    """J jobs of at most L levels."""

    # arrival, soonest, workers, levels: (J,) first slot, slots until the earliest finish, W, and number of levels
    arrival: Ints
    soonest: Ints
    workers: Ints
    levels: Ints
    step: Floats  # (J, L) part of the work that a slot does, fastest first
    allowed: NDArray[np.bool_]  # (J, L, R) types of a level
    worth: Floats  # (J, 9) see :class:`~schedgap.formulations.hadar.tables.Worth`


class _Hulls(NamedTuple):
    """Lower hulls of a slot's (progress, cost), one a bucket: pieces of rising slope, and where they lead to."""

    slope: Floats
    progress: Floats
    level: Ints
    pieces: Ints


@njit_inner
def _worth(job: Floats, slots: int) -> float:
    """U_j of a finish so many slots after the arrival, that one included."""
    if job[0] == 0.0:
        return float(job[1] / (slots * job[2]))
    if job[0] == 2.0:
        return float(job[1])
    return 0.0 if slots > job[3] else float(job[1] * ((job[3] - slots) + job[4]) / job[5])


@njit_inner
def _gang(workers: int, allowed: NDArray[np.bool_], price: Floats, capacity: Ints, held: Ints) -> float:
    """What the cheapest gang of these types costs in a slot; `held` becomes its devices by type."""
    held[:] = 0
    need, cost = workers, 0.0
    while need > 0:
        best = -1
        for r in range(len(price)):
            if allowed[r] and held[r] == 0 and capacity[r] > 0 and (best < 0 or price[r] < price[best]):
                best = r
        if best < 0:
            return np.inf
        held[best] = min(need, capacity[best])
        need -= held[best]
        cost += held[best] * price[best]
    return cost


@njit_inner
def _hull(j: int, k: int, jobs: _Jobs, price: Floats, capacity: Ints, held: Ints, cost: Floats, hulls: _Hulls) -> None:
    """The hull of a job in bucket k."""
    for level in range(jobs.levels[j]):
        cost[level] = _gang(jobs.workers[j], jobs.allowed[j, level], price, capacity, held)
    x, y, count = 0.0, 0.0, 0
    while True:
        best, slope = -1, np.inf
        for level in range(jobs.levels[j]):
            if jobs.step[j, level] > x:
                own = (cost[level] - y) / (jobs.step[j, level] - x)
                if best < 0 or own < slope:
                    best, slope = level, own
        if best < 0:
            break
        hulls.slope[k, count] = slope
        hulls.progress[k, count] = jobs.step[j, best] - x
        hulls.level[k, count] = best
        x, y, count = jobs.step[j, best], cost[best], count + 1
    hulls.pieces[k] = count


@njit_cached
def _payoffs(
    jobs: _Jobs, capacity: Ints, horizon: int, finishes: int, edges: Ints, prices: Floats, use: Floats
) -> float:
    """At least the sum of the best payoffs at prices, (R, B); `use`, (R, B), becomes the devices times slots held."""
    kinds, buckets = prices.shape
    most = jobs.step.shape[1]
    # the buckets, one before and one after them without a price
    price = np.zeros((buckets + 2, kinds))
    price[1:-1] = prices.T
    held, other, cost = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64), np.empty(most)
    shape = (buckets + 2, most)
    hulls = _Hulls(np.empty(shape), np.empty(shape), np.empty(shape, np.int64), np.zeros(buckets + 2, np.int64))
    order_slope, order_place = np.empty((buckets + 2) * most), np.empty((buckets + 2) * most, np.int64)
    use[:] = 0.0
    total = 0.0
    for j in range(len(jobs.arrival)):
        first = jobs.arrival[j]
        begin = np.searchsorted(edges, first, side="right")
        known, count = begin, 0  # buckets with a hull so far, and pieces in order
        best, chosen, slots = 0.0, np.int64(0), jobs.soonest[j]
        for turn in range(2):
            if turn == 1:
                if chosen == 0:
                    break
                slots = chosen
            while first + slots - 1 <= horizon:
                value = _worth(jobs.worth[j], slots)
                if turn == 0 and value <= best:
                    break
                ahead = min(max(slots + 1, slots + slots // finishes), horizon - first + 2)
                end = first + ahead - 1
                while known < buckets + 2 and (known == begin or edges[known - 1] < end):
                    _hull(j, known, jobs, price[known], capacity, held, cost, hulls)
                    for piece in range(hulls.pieces[known]):
                        q = count
                        while q > 0 and order_slope[q - 1] > hulls.slope[known, piece]:
                            order_slope[q], order_place[q] = order_slope[q - 1], order_place[q - 1]
                            q -= 1
                        order_slope[q], order_place[q] = hulls.slope[known, piece], known * most + piece
                        count += 1
                    known += 1
                left, paid = 1.0, 0.0
                for q in range(count):
                    k, piece = order_place[q] // most, order_place[q] % most
                    low = first if k == 0 else max(first, edges[k - 1])
                    high = end if k == buckets + 1 else min(end, edges[k])
                    if high <= low:
                        continue
                    part = min(left, (high - low) * hulls.progress[k, piece])
                    left -= part
                    paid += part * order_slope[q]
                    if turn == 1 and 1 <= k <= buckets:
                        now = hulls.level[k, piece]
                        _gang(jobs.workers[j], jobs.allowed[j, now], price[k], capacity, held)
                        other[:] = 0
                        if piece > 0:
                            before = hulls.level[k, piece - 1]
                            _gang(jobs.workers[j], jobs.allowed[j, before], price[k], capacity, other)
                        for r in range(kinds):
                            use[r, k - 1] += part / hulls.progress[k, piece] * (held[r] - other[r])
                    if left <= 0.0:
                        break
                if turn == 1:
                    break
                if left <= 1e-9 and value - paid > best:
                    best, chosen = value - paid, slots
                slots = ahead
        total += best
    return total


@dataclass(frozen=True)
class EventPrices:
    """An upper bound on the utility, by prices."""

    value: float  # the bound
    finishes: int  # n; finishes are looked at in steps of 1/n of the time since the arrival
    # edges, prices: (B + 1,) rising slots, and (R, B) of a device in a slot between them
    edges: Ints
    prices: Floats


def event_prices(data: ProgressTables, rounds: int | None = None) -> EventPrices:
    """The best upper bound on P2, and so on P1, that a subgradient method finds for prices on buckets of slots.

    With prices p on devices a schedule is worth at most what all devices cost, and the best payoff of every job, its
    utility less what it holds, or 0. Payoffs are relaxed to fractions of slots (the lower hull of progress and cost of
    each slot), and a finish between two that are looked at has the utility of the sooner and the slots of the later
    one.

    Parameters
    ----------
    data : at least one job can finish
    rounds : evaluations, by the number of jobs where not given

    Notes
    -----
    At most 200 buckets and 300 evaluations, each O(J F B R) for the F finishes that a job looks at.
    """
    chosen = [job for j, job in enumerate(data.jobs) if data.possible[j]]
    count, levels = len(chosen), max(job.levels for job in chosen)
    step, allowed = np.zeros((count, levels)), np.zeros((count, levels, len(data.types)), dtype=bool)
    for j, job in enumerate(chosen):
        common = math.gcd(*job.step.tolist())  # sums of steps are multiples of it
        step[j, : job.levels] = (job.step // common) / -(-job.target // common)
        allowed[j, : job.levels] = job.allowed
    jobs = _Jobs(
        np.array([job.arrival for job in chosen]),
        np.array([job.min_slots for job in chosen]),
        np.array([job.workers for job in chosen]),
        np.array([job.levels for job in chosen]),
        step,
        allowed,
        np.array([job.worth.row() for job in chosen]),
    )
    area = (jobs.workers * jobs.soonest).astype(np.float64)
    edges = event_edges(jobs.arrival, jobs.soonest, area, float(data.capacity.sum()), _BUCKETS)
    edges = edges[edges <= data.horizon + 1]
    if len(edges) < 2:
        edges = np.array([1, data.horizon + 1])
    finishes = int(np.clip(_FINISHES // count, _COARSEST, _FINEST))
    capacity = data.capacity.astype(np.float64)
    width = np.diff(edges).astype(np.float64)

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        payoffs = _payoffs(jobs, data.capacity, data.horizon, finishes, edges, prices, use)
        return -payoffs - float(capacity @ prices @ width), np.repeat(capacity[:, None], len(width), axis=1)

    most = int(np.clip(_EVALUATIONS // count, _FEWEST, _MOST)) if rounds is None else rounds
    value, prices = ascend(evaluate, width, len(data.types), most, 0.3)
    return EventPrices(-value * (1 + 1e-9) + 1e-9, finishes, edges, prices)
