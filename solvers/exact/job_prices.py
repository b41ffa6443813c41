"""Prices on capacity over time, and what jobs cost at least under them: Lagrangian bounds of any size.

Capacity has a price in every bucket of slots. A job costs the time until it completes, and the price of what it holds:
the least of that over its schedules is found job by job, and any prices give a bound. Here they are looked for in
floating point; what they prove is added up exactly elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner


class PricedJobs(NamedTuple):
    """J jobs."""

    arrival: Ints  # (J,) first slot
    length: Ints  # (J,) slots that it holds one after the other; 0 where it may pause
    work: Floats  # (J,) slots at full rate of a job that may pause
    rate: Floats  # (J,) capacity that it holds in a slot at full rate
    kind: Ints  # (J,) row of the prices
    soonest: Ints  # (J,) slots until a job that may pause completes, at least


class Pieces(NamedTuple):
    """What a job that may pause takes now, the dearest first."""

    price: Floats
    amount: Floats
    bucket: Ints


@njit_inner
def _bucket(edges: Ints, slot: int) -> int:
    """How many edges are at a slot or before it."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= slot:
            low = middle + 1
        else:
            high = middle
    return low


@njit_inner
def _until(edges: Ints, price: Floats, before: Floats, slot: int) -> float:
    """The sum of the prices of the slots before this one."""
    last = len(price)
    if slot <= edges[0]:
        return 0.0
    if slot >= edges[last]:
        return float(before[last])
    k = _bucket(edges, slot) - 1
    return float(before[k] + price[k] * (slot - edges[k]))


@njit_inner
def _hold(first: int, length: int, rate: float, edges: Ints, price: Floats, before: Floats) -> tuple[float, int]:
    """The least of completion and cost of a job that runs without a pause, and its start.

    The cost is piecewise linear in the start: the best one is the arrival, an edge, or an edge less the length.
    """
    start = first
    best = length + rate * (_until(edges, price, before, first + length) - _until(edges, price, before, first))
    for side in range(2):
        ahead = side * length
        for k in range(_bucket(edges, first + ahead), len(edges)):
            s = int(edges[k]) - ahead
            if s - first + length >= best:
                break
            value = (s - first + length) + rate * (
                _until(edges, price, before, s + length) - _until(edges, price, before, s)
            )
            if value < best:
                best, start = value, s
    return best, start


@njit_inner
def _put(pieces: Pieces, count: int, price: float, amount: float, bucket: int) -> int:
    """One more piece, in order."""
    q = count
    while q > 0 and pieces.price[q - 1] < price:
        pieces.price[q] = pieces.price[q - 1]
        pieces.amount[q] = pieces.amount[q - 1]
        pieces.bucket[q] = pieces.bucket[q - 1]
        q -= 1
    pieces.price[q], pieces.amount[q], pieces.bucket[q] = price, amount, bucket
    return count + 1


@njit_inner
def _fill(
    first: int, work: float, rate: float, soonest: int, edges: Ints, price: Floats, pieces: Pieces, kept: Pieces
) -> tuple[float, int]:
    """The least of completion and cost of a job that may pause; what it takes is put into `kept`, which has that many.

    For every completion the cheapest slots before it are taken: slot by slot a later one replaces the dearest there.
    """
    last, count, size = len(price), 0, 0
    need, cost, best, slot = work, 0.0, np.inf, first
    k = _bucket(edges, first) - 1
    while k <= last and (need > 0.0 or slot - first < best):
        p = price[k] if 0 <= k < last else 0.0
        end = int(edges[k + 1]) if k < last else 2**62
        spare, got = 0.0, 0.0  # room of a slot that is begun, and what is taken in this bucket
        while slot < end or spare > 0.0:
            if need > 0.0:
                taken = min(float(end - slot), need)
                need = 0.0 if taken == need else need - taken
                got += taken
                cost += rate * p * taken
                whole = math.ceil(taken)
                slot += whole
                spare = whole - taken
            elif count == 0 or pieces.price[0] <= p:
                break
            elif spare == 0.0 and pieces.amount[0] >= 1.0:
                whole = min(end - slot, int(pieces.amount[0]))
                if slot - first < soonest:
                    whole = min(whole, soonest - (slot - first))
                slot += whole
                cost -= rate * (pieces.price[0] - p) * whole
                pieces.amount[0] -= whole
                got += whole
            else:
                if spare == 0.0:
                    spare = 1.0
                    slot += 1
                taken = min(spare, pieces.amount[0])
                spare -= taken
                cost -= rate * (pieces.price[0] - p) * taken
                pieces.amount[0] -= taken
                got += taken
            if count > 0 and pieces.amount[0] <= 1e-12:
                for q in range(1, count):
                    pieces.price[q - 1] = pieces.price[q]
                    pieces.amount[q - 1] = pieces.amount[q]
                    pieces.bucket[q - 1] = pieces.bucket[q]
                count -= 1
            open_slot = spare > 0.0 and count > 0 and pieces.price[0] > p
            if need == 0.0 and not open_slot and max(slot - first, soonest) + cost < best:
                best = max(slot - first, soonest) + cost
                for q in range(count):
                    kept.amount[q], kept.bucket[q] = pieces.amount[q], pieces.bucket[q]
                kept.amount[count], kept.bucket[count] = got, k
                size = count + 1
        if got > 0.0:
            count = _put(pieces, count, p, got, k)
        if k < last:
            slot = max(slot, end)
        k += 1
    return best, size


@njit_cached
def least(jobs: PricedJobs, edges: Ints, prices: Floats, use: Floats) -> float:
    """The sum over jobs of the least of completion and cost, in slots; `use`, (C, B), becomes what they hold.

    Parameters
    ----------
    edges : (B + 1,) rising slots; bucket k has the slots from edges[k] to edges[k + 1] - 1
    prices : (C, B) of a slot of capacity, at least 0; beyond the buckets nothing has a price
    """
    kinds, count = prices.shape
    before = np.zeros((kinds, count + 1))
    for c in range(kinds):
        for k in range(count):
            before[c, k + 1] = before[c, k] + prices[c, k] * (edges[k + 1] - edges[k])
    room = count + 3
    pieces = Pieces(np.empty(room), np.empty(room), np.empty(room, np.int64))
    kept = Pieces(np.empty(room), np.empty(room), np.empty(room, np.int64))
    for c in range(kinds):
        for k in range(count):
            use[c, k] = 0.0
    total = 0.0
    for j in range(len(jobs.arrival)):
        c, first, length, rate = jobs.kind[j], jobs.arrival[j], jobs.length[j], jobs.rate[j]
        if length > 0:
            value, start = _hold(first, length, rate, edges, prices[c], before[c])
            k = max(0, _bucket(edges, start) - 1)
            while k < count and edges[k] < start + length:
                use[c, k] += rate * max(0, min(start + length, edges[k + 1]) - max(start, edges[k]))
                k += 1
        else:
            value, size = _fill(first, jobs.work[j], rate, jobs.soonest[j], edges, prices[c], pieces, kept)
            for q in range(size):
                if 0 <= kept.bucket[q] < count:
                    use[c, kept.bucket[q]] += rate * kept.amount[q]
        total += value
    return total


@njit_cached
def best_starts(jobs: PricedJobs, edges: Ints, prices: Floats) -> Ints:
    """Starts of least completion and cost of jobs that do not pause; parameters as of :func:`least`."""
    kinds, count = prices.shape
    before = np.zeros((kinds, count + 1))
    for c in range(kinds):
        for k in range(count):
            before[c, k + 1] = before[c, k] + prices[c, k] * (edges[k + 1] - edges[k])
    starts = np.empty(len(jobs.arrival), np.int64)
    for j in range(len(jobs.arrival)):
        c = jobs.kind[j]
        _, starts[j] = _hold(jobs.arrival[j], jobs.length[j], jobs.rate[j], edges, prices[c], before[c])
    return starts


Evaluate = Callable[[Floats, Floats], tuple[float, Floats]]
"""Prices, (C, B), to the bound that they prove, and what capacity holds in a slot where it is worth most, (C, B); the
second argument, (C, B), becomes what the jobs hold in a bucket."""

_PATIENCE, _SHORTER, _SHORTEST = 12, 0.6, 1e-4
"""Rounds without a better bound before steps get shorter, by how much, and when they are too short to go on."""
_INERTIA = 0.6


def ascend(
    evaluate: Evaluate,
    width: Floats,
    kinds: int,
    rounds: int,
    hope: float = 1.0,
    start: Floats | None = None,
    step: float = 1.0,
) -> tuple[float, Floats]:
    """The largest bound found by a subgradient method with inertia, and its prices: deterministic.

    It may stop after any round: each evaluation is a bound by itself, and the best is kept with its prices.

    Parameters
    ----------
    width : (B,) slots of the buckets
    kinds : C
    rounds : evaluations at most
    hope : the optimum is looked for so much above the best bound, relative; steps are as long as that asks for
    start : (C, B) the first prices; none is above 0 where not given
    step : length of the first step, relative to that
    """
    prices = np.zeros((kinds, len(width))) if start is None else start
    use, inertia = np.zeros_like(prices), np.zeros_like(prices)
    best, kept, stalled = -np.inf, prices, 0
    for _ in range(rounds):
        value, capacity = evaluate(prices, use)
        if best == -np.inf or value > best + 1e-7 * abs(best):
            best, kept, stalled = value, prices, 0
        else:
            stalled += 1
        if stalled > _PATIENCE:
            step, stalled, prices = step * _SHORTER, 0, kept
            inertia[:] = 0.0
            if step < _SHORTEST:
                break
            continue
        change = use / width - capacity
        change[(prices <= 0) & (change < 0)] = 0.0
        inertia = _INERTIA * inertia + (1 - _INERTIA) * change
        length = float((change**2).sum(axis=0) @ width)
        if length == 0.0:
            break
        prices = np.maximum(0.0, prices + step * (best + hope * abs(best) - value) / length * inertia)
    return best, kept


def event_edges(arrival: Ints, length: Ints, area: Floats, capacity: float, buckets: int) -> Ints:
    """Edges of buckets at quantiles of events: arrivals, when the work before is done at full capacity, and ends.

    Parameters
    ----------
    arrival, length : (J,) of the jobs, in slots
    area : (J,) capacity times slots
    capacity : capacity of a slot
    """
    order = np.argsort(arrival, kind="stable")
    own = area[order] / capacity
    passed = np.cumsum(own)
    done = passed + np.maximum.accumulate(arrival[order] - (passed - own))
    events = np.sort(np.concatenate((arrival, np.ceil(done), np.ceil(done) + length[order], arrival + length)))
    first, last = int(arrival.min()), int(events[-1])
    if last - first <= buckets:
        return np.arange(first, last + 1)
    return np.unique(events[np.linspace(0, len(events) - 1, buckets + 1).astype(np.int64)].astype(np.int64))
