"""Prices of ``hadar-online`` and ``hadar-online+``, eqs. (5) to (7) of paper 002: their ends, and how they grow."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.block_pricing import Blocks, blocks_from
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables

_MOST_EXPONENT = 650.0
"""Beyond it e^x, times devices, may leave the floats."""


@dataclass(frozen=True)
class PriceEnds:
    """U_min and U_max of eqs. (6) and (7), and what they come from."""

    # low, high: U_min, U_max, the same for every type
    low: float
    high: float
    eta: float | None  # the scaling factor; None with ``umin="direct"``


def price_ends(
    instance: HadarInstance, data: ProgressTables, umin: str, eta: str, times: float = 1.0
) -> PriceEnds | None:
    """The ends of the prices over the jobs that can finish when alone; None where none can.

    ``U_max`` is the largest utility a schedule can have (a worker is one device). ``direct``:
    ``U_min = u / (4 T C)``, u the smallest positive utility a schedule can have, C all devices. ``printed``:
    ``U_min = (1 / (4 eta)) min_j U_j((T - a_j + 1) L) / (tmax_j W_j)`` with ``eta = max_j C / (tmax_j W_j)``, times T
    for ``eta="horizon"``, and `times` in both; tmax_j is in slots, on the slowest usable type. Raises InputError: the
    printed U_min is 0, or the direct one too small for a float.
    """
    jobs = [j for j in range(len(data.jobs)) if data.possible[j]]
    if not jobs:
        return None
    horizon = data.horizon
    devices = float(data.capacity.sum())
    high = max(data.jobs[j].max_utility for j in jobs)
    if high <= 0:
        return None
    if umin == "direct":
        smallest = min(float(u[u > 0].min()) for u in (data.jobs[j].worth.array() for j in jobs) if (u > 0).any())
        low = smallest / (4.0 * horizon * devices)
        if low < sys.float_info.min:
            raise InputError(f"the smallest utility, {smallest:g}, is too small for a price")
        return PriceEnds(low, high, None)
    slowest = {j: data.jobs[j].target / float(data.jobs[j].type_step[data.jobs[j].type_step > 0].min()) for j in jobs}
    per_device = {j: slowest[j] * data.jobs[j].workers for j in jobs}
    scale = max(devices / per_device[j] for j in jobs) * (horizon if eta == "horizon" else 1.0) * times
    last = {j: data.jobs[j].worth.at(horizon) for j in jobs}
    low = min(last[j] / per_device[j] for j in jobs) / (4.0 * scale)
    if low <= 0:
        worst = min(jobs, key=lambda j: last[j])
        raise InputError(
            f"the printed U_min is 0, since job {instance.jobs[worst].id} is worth 0 at the horizon; "
            "hadar-online+ has another (umin=direct)"
        )
    return PriceEnds(low, high, scale)


class Prices:
    """k_q(t) of every pool q = (machine, type), as it grows with what is allocated; U_max at most.

    Up to the cap it is ``U_min rho^(gamma / room)``, room = c or c - w + 1. A device at U_max is bought by nobody.
    """

    def __init__(self, data: ProgressTables, ends: PriceEnds, early: bool) -> None:
        self.where = [(h, r) for h in range(len(data.machine_capacity)) for r in range(len(data.types))]
        self.where = [(h, r) for h, r in self.where if data.machine_capacity[h, r] > 0]
        self.kind = np.array([r for _, r in self.where], dtype=np.int64)
        self.capacity = np.array([data.machine_capacity[h, r] for h, r in self.where], dtype=np.int64)
        # w_q: the most that one job can put on the pool in a slot
        self.demand = np.array(
            [
                max([min(job.workers, int(c)) for job in data.jobs if job.type_step[r] > 0], default=1)
                for (_, r), c in zip(self.where, self.capacity, strict=True)
            ],
            dtype=np.int64,
        )
        self.room = np.where(early, self.capacity - self.demand + 1, self.capacity).astype(float)
        self.ends = ends
        self.used = np.zeros((data.horizon + 1, len(self.where)), dtype=np.int64)
        self.log_rho = math.log(ends.high) - math.log(ends.low)
        self.price = np.full(self.used.shape, ends.low)
        # the largest c dk / (k dgamma) of an admission so far: Definition 1's alpha
        self.steepest: float | None = None
        self._segments: Blocks | None = None

    def alpha_step(self) -> float:
        """max(1, max over pools and w' <= w of c (rho^min(1, w'/(c - w + 1)) - 1) / w'); inf beyond the floats."""
        if len(self.where) == 0:
            return 1.0
        largest = 1.0
        for c, w, room in {*zip(self.capacity.tolist(), self.demand.tolist(), self.room.tolist(), strict=True)}:
            steps = np.arange(1, w + 1, dtype=float)
            exponent = np.minimum(1.0, steps / room) * self.log_rho
            if exponent.max() > _MOST_EXPONENT:
                return math.inf
            largest = max(largest, float((c * np.expm1(exponent) / steps).max()))
        return largest

    def at(self, used: Ints) -> Floats:
        """The prices where so much is taken."""
        part = used / self.room[None, :]
        # in logarithms: rho itself may be too large for a float
        grown = np.exp(math.log(self.ends.low) + np.minimum(part, 1.0) * self.log_rho)
        return np.where(part >= 1.0, self.ends.high, np.where(used == 0, self.ends.low, grown))

    def segments(self) -> Blocks:
        """The runs of slots with the same prices."""
        if self._segments is None:
            changes = np.flatnonzero(np.any(np.diff(self.price[1:], axis=0) != 0, axis=1)) + 2
            self._segments = blocks_from(np.append(1, changes), len(self.price) - 1)
        return self._segments

    def take(self, used: Ints, first: int = 0) -> float:
        """Add (N, P) devices in the slots from `first` on; the rise of sum c k."""
        self._segments = None
        rows = slice(first, first + len(used))
        before = self.price[rows].copy()
        self.used[rows] += used
        now = self.price[rows] = self.at(self.used[rows])
        with np.errstate(over="ignore"):
            grown = self.capacity[None, :] * (now / before - 1.0)
        taken = used > 0
        self.steepest = max(self.steepest or 0.0, float((grown[taken] / used[taken]).max()))
        return float((self.capacity[None, :] * (now - before)).sum())
