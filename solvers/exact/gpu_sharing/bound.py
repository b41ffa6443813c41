"""Certified lower bounds on the mean JCT of gpu-sharing, at any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.gpu_sharing.dynamics import Tables, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.solvers.linear_program import INFINITY, LinearProgram

Floats = NDArray[np.float64]

_BUCKETS = 400
_CELLS = 60_000
_LEAST_BUCKETS = 12
_SAFETY = 1e-9


def sharing_factor(data: Tables) -> float:
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


def capacity_weights(data: Tables) -> Floats:
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

    The larger of two bounds on the sum of JCT, rounded up to a whole number and divided by J:

    - solo: ceil(W_j) slots each;
    - mean busy times. With z_jt <= 1 the work of j in slot t and M_j = sum_t z_jt (t - 1/2) / W_j, a job
      completes no earlier than M_j + (k^2 + 2 k f + f) / (2 W_j), W_j = k + f with k whole, because that is
      the latest mean busy time of a run that ends in a given slot. Work is limited by
      sum_j G_j w_j z_jt <= N (``capacity_weights``; with w = 1/phi this is phi N). Prices on this capacity
      (Lagrange multipliers) separate the jobs, and every price vector gives a valid bound; they come from
      the LP and the bound is evaluated from them anew, so the LP's tolerances do not matter.

    Returns
    -------
    float or None
        The bound.

    Notes
    -----
    An LP with one cell per job and bucket of slots, at most about 60,000 (at least 12 buckets); a bucket
    counts as its first slot, which keeps the bound valid. J = 480: about a second.
    """
    if impossible(instance) is not None:
        return None
    data = tables(instance)
    solo = int(data.solo_slots.sum())
    total = max(solo, math.ceil(mean_busy(instance, data).value * (1 - _SAFETY) - 1e-6))
    return total / len(instance.jobs)


@dataclass(frozen=True)
class MeanBusy:
    """The second bound, on the sum of JCT.

    Attributes
    ----------
    value : the bound
    first, width : the first slot of the first bucket, and slots of a bucket
    prices, weights : of the buckets, and of the jobs
    """

    value: float
    first: int
    width: int
    prices: Floats
    weights: Floats


def mean_busy(instance: GpuSharingInstance, data: Tables) -> MeanBusy:
    """The bound by mean busy times, with the prices that prove it."""
    weights = capacity_weights(data)
    work, gpus = data.solo_work, data.gpus * weights
    arrival = data.arrival.astype(np.float64)
    capacity = float(instance.total_gpus)
    first = int(data.arrival.min())
    area = float(gpus @ work)
    end = int(min(instance.horizon, data.arrival.max() + math.ceil(area / capacity) + math.ceil(work.max())))
    buckets = int(np.clip(_CELLS // len(work), _LEAST_BUCKETS, _BUCKETS))
    width = max(1, math.ceil((end - first + 1) / buckets))
    edges = np.arange(first, end + 1, width, dtype=np.float64)
    # The slots beyond the last edge are one bucket without a price: it takes what is left.
    middle = np.append(edges, edges[-1] + width) - 0.5
    room = np.maximum(0.0, edges[None, :] + width - np.maximum(edges[None, :], arrival[:, None]))
    room = np.append(room, np.full((len(work), 1), np.inf), axis=1)
    earliest = np.maximum(middle[None, :], arrival[:, None] - 0.5)
    whole = np.floor(work)
    part = work - whole
    constant = (whole**2 + 2 * whole * part + part) / (2 * work) - arrival + 1
    problem = _Prices(earliest / work[:, None], room, work, gpus, constant, data.solo_slots, capacity * width)
    prices = problem.best()
    value, scale = max((problem.evaluate(prices * scale), scale) for scale in (0.8, 0.9, 1.0, 1.1))
    return MeanBusy(value, first, width, prices * scale, weights)


class _Prices:
    """The Lagrangian of the capacity rows."""

    def __init__(
        self,
        position: Floats,
        room: Floats,
        work: Floats,
        gpus: Floats,
        constant: Floats,
        solo: NDArray[np.int64],
        capacity: float,
    ) -> None:
        self.position, self.room, self.work, self.gpus = position, room, work, gpus
        self.constant, self.solo, self.capacity = constant, solo, capacity

    def evaluate(self, prices: Floats) -> float:
        """The bound that these prices prove: a job costs at least its solo slots, and its mean busy time."""
        cost = self.position.copy()
        cost[:, :-1] += self.gpus[:, None] * prices[None, :]
        order = np.argsort(cost, axis=1, kind="stable")
        sorted_room = np.take_along_axis(self.room, order, axis=1)
        before = np.zeros_like(sorted_room)
        np.cumsum(sorted_room[:, :-1], axis=1, out=before[:, 1:])
        filled = np.clip(self.work[:, None] - before, 0.0, sorted_room)
        own = (filled * np.take_along_axis(cost, order, axis=1)).sum(axis=1) + self.constant
        return float(np.maximum(own, self.solo).sum()) - self.capacity * float(prices.sum())

    def best(self) -> Floats:
        """Prices from the LP over the buckets; zero where it is not solved. They need not be exact."""
        jobs, buckets = self.room.shape
        row, bucket = np.nonzero(self.room > 0)
        priced = np.flatnonzero(bucket < buckets - 1)
        index = np.arange(len(row))
        entries = np.concatenate((np.ones(len(row)), self.gpus[row[priced]]))
        places = np.concatenate((row, jobs + bucket[priced])), np.concatenate((index, priced))
        matrix = sparse.csc_matrix((entries, places), shape=(jobs + buckets - 1, len(row)))
        high = np.concatenate((self.work, np.full(buckets - 1, self.capacity)))
        low = np.concatenate((self.work, np.full(buckets - 1, -INFINITY)))
        program = LinearProgram()
        program.set_matrix(matrix, self.position[row, bucket], self.room[row, bucket], low, high)
        found = program.solve()
        return np.zeros(buckets - 1) if found is None else np.maximum(0.0, -found.duals[jobs:])
