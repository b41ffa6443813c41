"""Certified lower bounds on the mean JCT of gpu-sharing, at any size.

Idea: GPU work has a price in each bucket of slots. A job costs its completion time and the price of its work, a GPU
is worth the most that one job, or two that fit together, can do on it. For all prices the sum of the least costs less
the worth of all GPUs is at most the optimum. Source: ours, Lagrangian relaxation of capacity; a subgradient method
finds the prices. Guarantee: valid at any prices, counted in floats less 1e-9; a certificate has it
added up again in whole numbers. `priced_together` is a second bound, with prices for pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.solvers.exact.gpu_sharing.together import worth_together
from schedgap.solvers.exact.job_prices import PricedJobs, ascend, best_starts, event_edges, least

_BUCKETS = 300
_EVALUATIONS = 2_000_000
"""Jobs times evaluations of prices, at about half a microsecond each with many buckets."""
_FEWEST, _MOST = 60, 400
"""Evaluations of prices: each is a bound by itself, so few are safe."""
_MOST_CLASSES = 64
_MOST_TOGETHER = 4096
"""Jobs times GPUs up to which sets of jobs are gone through."""
_NODES, _ALL_NODES, _LAST_NODES = 20_000, 40_000_000, 100_000
"""Work of the search for the best set in one bucket, of all searches (a second or two), of the last one in a bucket.

A search that is cut answers with what no set exceeds, not with the best set so far.
"""
_SAFETY = 1e-9
_LEFT = 1.001e-9
"""Share of a job's work that the checker lets it leave undone; more than floats round."""


def sharing_factor(data: SharingTables) -> float:
    """phi = max(1, max over pairs that may share of 1/xi_jk + 1/xi_kj): solo work a GPU can do in a slot.

    A GPU that holds one job does at most 1; one that holds j and k does at most 1/xi_jk + 1/xi_kj, since a
    gang runs at the pace of its worst partner. So sum_j G_j rate_j <= phi N in every slot.
    """
    if data.instance.max_jobs_per_gpu == 1:
        return 1.0
    if not data.instance.interference:
        return 2.0 if data.load_classes[1].any() else 1.0
    rates = 1.0 / data.slowdown
    both = rates + rates.T
    return float(max(1.0, both[data.may_share].max(initial=1.0)))


def capacity_weights(data: SharingTables) -> Floats:
    """(J,) weights w with sum_j G_j w_j rate_j <= N in every slot of every schedule.

    That holds when w_j <= 1 and w_j / xi_jk + w_k / xi_kj <= 1 for all pairs that may share: it holds on each
    GPU. 1/phi for every job is such a choice; weights are then raised one by one, the largest jobs first, as
    far as the others leave room, which only tightens the bound.

    Notes
    -----
    O(J^2); without interference O(J U) for U different loads.
    """
    count = len(data.gpus)
    weights = np.full(count, 1.0 / sharing_factor(data))
    if weights.min(initial=1.0) == 1.0:  # as large as they may be
        return weights
    area = data.gpus * data.solo_work
    if not data.instance.interference:
        # the room beside a job is what the heaviest weight of each class leaves; its own is not raised yet
        classes, fits = data.load_classes
        largest = np.full(len(fits), weights[0])
        for j in np.argsort(-area, kind="stable").tolist():
            room = 1.0 - largest[fits[classes[j]]]
            weights[j] = max(weights[j], min(1.0, float(room.min(initial=1.0))))
            largest[classes[j]] = max(largest[classes[j]], weights[j])
        return weights
    for j in np.argsort(-area, kind="stable").tolist():
        partners = data.may_share[j]
        room = data.slowdown[j, partners] * (1.0 - weights[partners] / data.slowdown[partners, j])
        weights[j] = max(weights[j], min(1.0, float(room.min(initial=1.0))))
    return weights


@lru_cache(maxsize=64)
@once_per_instance
def lower_bound(instance: GpuSharingInstance) -> float | None:
    """A certified lower bound on the mean JCT in slots; None where an infeasible instance has no optimum.

    The largest of the jobs' slots alone and what :func:`priced` and :func:`priced_together` prove, rounded up to a
    whole number of slots in all, and divided by J.
    """
    if impossible(instance) is not None:
        return None
    found = (priced(instance), priced_together(instance))
    return _mean(instance, max(one.value for one in found if one is not None))


def preemptive_bound(instance: GpuSharingInstance) -> float | None:
    """The :func:`lower_bound` for schedules outside the model: every job may pause, with all its GPUs at a time.

    Slots that go into restoring a job only make a schedule longer, so it holds with them, too.
    """
    return None if impossible(instance) is not None else _mean(instance, _price(instance, True).value)


def _mean(instance: GpuSharingInstance, value: float) -> float:
    """A bound on the mean from one on the sum, which is a whole number of slots and no less than those alone."""
    alone = int(tables(instance).solo_slots.sum())
    return max(alone, math.ceil(value * (1 - _SAFETY) - 1e-6)) / len(instance.jobs)


@dataclass(frozen=True)
class Priced:
    """A bound on the sum of JCT."""

    value: float  # the bound
    edges: Ints  # (B + 1,) rising slots between the buckets
    prices: Floats  # (C, B) of a slot's work on a GPU, by class of jobs and bucket
    classes: Ints  # (J,) of the jobs; empty where there is one
    weights: Floats  # (J,) by which a job's prices are multiplied; empty where all are 1


@lru_cache(maxsize=64)
@once_per_instance
def priced(instance: GpuSharingInstance) -> Priced:
    """The best bound found by prices on the work of classes of jobs, in buckets of slots.

    A job that nobody slows down runs at full rate without a pause; others may pause in the bound. A GPU does in a
    slot what one job can, or two that may share it: at prices p it is worth p_j, or p_j / xi_jk + p_k / xi_kj.
    So the sum of JCT is at least the sum over jobs of the least of JCT and the price of what it does, less N times
    the most that a GPU's slots can be worth, for all prices. These are found by
    :func:`~schedgap.solvers.exact.job_prices.ascend`.

    Jobs are of a class where they slow others down, are slowed down and fit alike. Where there are more than 64, all
    are of one, and the weights of :func:`capacity_weights` say what a GPU can do.

    Notes
    -----
    At most 300 buckets and 400 evaluations of O(J) times the buckets that a job waits; 60 evaluations of 80,000 jobs.
    """
    return _price(instance, False)


@lru_cache(maxsize=64)
@once_per_instance
def priced_together(instance: GpuSharingInstance) -> Priced | None:
    """The bound of :func:`priced`, with a price for every job, and gangs as a whole; None beyond some size.

    The work of a slot is worth no more than that of the best set of jobs that fit the cluster together, each alone on
    its GPUs or at the pace of its best partner in the set: :func:`~.together.worth_together`.
    """
    data = tables(instance)
    count = len(data.gpus)
    if count * instance.total_gpus > _MOST_TOGETHER:
        return None
    kind = np.arange(count)
    jobs = _jobs(data, np.ones(count), kind, False)
    slow = np.where(data.may_share, data.slowdown, np.inf)
    work = data.gpus * data.solo_work
    edges = event_edges(data.arrival, data.solo_slots, work, instance.total_gpus * sharing_factor(data), _BUCKETS)
    width = np.diff(edges).astype(np.float64)
    nodes = _ALL_NODES

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        nonlocal nodes
        rate = np.zeros_like(prices)
        limit = min(_NODES, max(0, nodes) // len(width))
        worth, seen = worth_together(prices, data.gpus, slow, instance.total_gpus, width, limit, rate)
        nodes -= seen
        return least(jobs, edges, prices, use) - worth, rate

    _, prices = ascend(evaluate, width, count, _MOST)
    use = np.zeros_like(prices)
    worth, _ = worth_together(prices, data.gpus, slow, instance.total_gpus, width, _LAST_NODES, use)
    return Priced(least(jobs, edges, prices, use) - worth, edges, prices, kind, np.zeros(0))


def _jobs(data: SharingTables, rate: Floats, kind: Ints, pauses: bool) -> PricedJobs:
    """The jobs for :func:`~schedgap.solvers.exact.job_prices.least`: those that somebody slows down may pause."""
    slowed = ((data.slowdown > 1) & data.may_share).any(axis=1) if data.instance.interference else False
    slots = data.solo_slots
    whole = np.where(slowed | np.bool_(pauses), 0, slots)
    return PricedJobs(data.arrival, whole, data.solo_work * (1 - _LEFT), rate, kind, np.zeros_like(slots))


def priced_starts(instance: GpuSharingInstance) -> Ints:
    """(J,) the slots in which jobs would start at the prices of :func:`priced`, each on GPUs of its own."""
    data, found = tables(instance), priced(instance)
    weights = found.weights if len(found.weights) else np.ones(len(data.gpus))
    kind = found.classes if len(found.classes) else np.zeros(len(data.gpus), dtype=np.int64)
    slots = data.solo_slots
    jobs = PricedJobs(data.arrival, slots, data.solo_work, data.gpus * weights, kind, np.zeros_like(slots))
    starts: Ints = best_starts(jobs, found.edges, found.prices)
    return starts


def _price(instance: GpuSharingInstance, pauses: bool) -> Priced:
    """The bound of :func:`priced`; where every job pauses, all of its slots are priced one by one."""
    data = tables(instance)
    classes = _classes(data)
    weights = np.zeros(0) if classes is not None else capacity_weights(data)
    kind = np.zeros(len(data.gpus), dtype=np.int64) if classes is None else classes[0]
    one, two, first, second = np.array([(0, 0, 1.0, 0.0)] if classes is None else classes[1]).T
    one, two = one.astype(np.int64), two.astype(np.int64)
    rate = (data.gpus * (weights if classes is None else 1.0)).astype(np.float64)
    jobs = _jobs(data, rate, kind, pauses)
    gpus = float(instance.total_gpus)
    most = float((first + second).max())
    edges = event_edges(data.arrival, data.solo_slots, rate * data.solo_work, gpus * most, _BUCKETS)
    width = np.diff(edges).astype(np.float64)
    place = np.arange(len(width))

    def evaluate(prices: Floats, use: Floats) -> tuple[float, Floats]:
        does = first[:, None] * prices[one] + second[:, None] * prices[two]
        best = does.argmax(axis=0)
        capacity = np.zeros_like(prices)
        np.add.at(capacity, (one[best], place), gpus * first[best])
        np.add.at(capacity, (two[best], place), gpus * second[best])
        return least(jobs, edges, prices, use) - gpus * float(does[best, place] @ width), capacity

    rounds = int(np.clip(_EVALUATIONS // len(data.gpus), _FEWEST, _MOST))
    value, prices = ascend(evaluate, width, int(kind.max()) + 1, rounds)
    return Priced(value, edges, prices, kind if len(prices) > 1 else kind[:0], weights)


def _classes(data: SharingTables) -> tuple[Ints, list[tuple[int, int, float, float]]] | None:
    """The class of each job, and what a GPU can do; None where there are too many classes.

    Returns
    -------
    NDArray
        (J,) classes.
    list
        (class, class, share, share): the work in a slot of one job, or of two that share a GPU.
    """
    count = len(data.gpus)
    kind = np.full(count, -1, dtype=np.int64)
    alone = [(0, 0, 1.0, 0.0)]
    if data.instance.max_jobs_per_gpu == 1:
        return np.zeros_like(kind), alone
    if not data.instance.interference:
        kind, fits = data.load_classes
        pairs = [(c, d, 1.0, 1.0) for c, d in np.argwhere(np.triu(fits)).tolist()]
        return None if len(fits) > _MOST_CLASSES else (kind, [*((c, c, 1.0, 0.0) for c in range(len(fits))), *pairs])
    members: list[int] = []
    for j in range(count):
        for c, k in enumerate(members):
            if _alike(data, j, k):
                kind[j] = c
                break
        else:
            if len(members) == _MOST_CLASSES:
                return None
            kind[j] = len(members)
            members.append(j)
    found = {(c, c, 1.0, 0.0) for c in range(len(members))}
    for c, j in enumerate(members):
        for k in np.flatnonzero(data.may_share[j] & (kind >= c)).tolist():
            found.add((c, int(kind[k]), 1.0 / float(data.slowdown[j, k]), 1.0 / float(data.slowdown[k, j])))
    return kind, sorted(found)


def _alike(data: SharingTables, j: int, k: int) -> bool:
    """Whether the two mean the same to every other job."""
    rows = (data.slowdown[[j, k]], data.slowdown[:, [j, k]].T, data.may_share[[j, k]])
    differ = sum(((one != two).astype(np.int64) for one, two in rows), start=np.zeros(len(data.gpus), dtype=np.int64))
    differ[[j, k]] = 0
    return not differ.any()
