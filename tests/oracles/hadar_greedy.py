"""The greedy choice of ``hadar-rounds`` in its plain form: every job's devices are sorted and priced for itself.

Compiled, since which of equally dear devices are taken is up to numba's sort.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from schedgap.heuristics.hadar.round_devices import bottleneck
from schedgap.heuristics.hadar.rounds import Market, prices, worth

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@numba.njit
def cheapest(free: Ints, price: Floats, usable: Bools, workers: int, machine: int) -> tuple[Ints, float]:
    """(H, R) the cheapest usable free devices and their cost, on one machine (or on all: -1); cost inf if too few."""
    machines, kinds = free.shape
    taken = np.zeros((machines, kinds), dtype=np.int64)
    first, last = (0, machines) if machine < 0 else (machine, machine + 1)
    pools = (last - first) * kinds
    value = np.empty(pools)
    for i in range(pools):
        h, r = first + i // kinds, i % kinds
        value[i] = price[h, r] if usable[r] and free[h, r] > 0 else np.inf
    need, cost = workers, 0.0
    for i in np.argsort(value):
        if need == 0 or value[i] == np.inf:
            break
        h, r = first + i // kinds, i % kinds
        taken[h, r] = min(need, free[h, r])
        need -= taken[h, r]
        cost += taken[h, r] * value[i]
    return taken, cost if need == 0 else np.inf


@numba.njit
def cost_on_one(free: Ints, price: Floats, usable: Bools, workers: int, machine: int) -> float:
    """The cost of the cheapest usable free devices of one machine; inf where there are too few. Allocates nothing."""
    kinds = free.shape[1]
    need, cost = workers, 0.0
    paid, last = -1.0, -1  # types are taken by (price, number)
    while need > 0:
        best = -1
        for r in range(kinds):
            if not usable[r] or free[machine, r] == 0:
                continue
            later = price[machine, r] > paid or (price[machine, r] == paid and r > last)
            if later and (best < 0 or price[machine, r] < price[machine, best]):
                best = r
        if best < 0:
            return np.inf
        taken = min(need, free[machine, best])
        need -= taken
        cost += taken * price[machine, best]
        paid, last = price[machine, best], best
    return cost


@numba.njit
def find_alloc(
    free: Ints,
    price: Floats,
    workers: int,
    type_step: Ints,
    left: int,
    utility: Floats,
    slot: int,
    density: bool,
    communication: float,
) -> tuple[float, Ints]:
    """FIND_ALLOC: the best payoff over bottleneck levels, on one machine or spread, and its devices (H, R)."""
    machines, kinds = free.shape
    best, chosen = 0.0, np.zeros((machines, kinds), dtype=np.int64)
    found = False
    for kind in range(kinds):  # every distinct rate is a level
        level = type_step[kind]
        if level <= 0:
            continue
        repeated = False
        for earlier in range(kind):
            if type_step[earlier] == level:
                repeated = True
        if repeated:
            continue
        usable = type_step >= level
        # on one machine: the cheapest that holds the whole gang
        packed, packed_cost = -1, np.inf
        for machine in range(machines):
            cost = cost_on_one(free, price, usable, workers, machine)
            if cost < packed_cost:
                packed, packed_cost = machine, cost
        for attempt in range(0 if packed >= 0 else 1, 2):
            machine = packed if attempt == 0 else -1
            taken, cost = cheapest(free, price, usable, workers, machine)
            if cost == np.inf:
                continue
            if machine < 0:
                spread = 0
                for h in range(machines):
                    if taken[h].sum() > 0:
                        spread += 1
                if spread > 1:
                    cost += communication
            value = worth(left, bottleneck(taken, type_step), utility, slot, density)
            payoff = value - cost
            if value > 0 and payoff > 0 and (not found or payoff > best + 1e-15 * abs(best)):
                best, chosen, found = payoff, taken, True
    return (best if found else -np.inf), chosen


@numba.njit
def greedy(
    jobs: Ints,
    free: Ints,
    capacity: Ints,
    low: Floats,
    high: Floats,
    workers: Ints,
    type_steps: Ints,
    left: Ints,
    utilities: Floats,
    slot: int,
    density: bool,
    communication: float,
) -> tuple[Ints, Ints]:
    """Take the job of the largest payoff per worker, again and again; (jobs taken, their devices).

    Prices only rise and devices only go while jobs are taken, so payoffs only fall: a payoff computed earlier is
    an upper bound, and only the job that looks best is computed again.
    """
    count = len(jobs)
    machines, kinds = free.shape
    taken_jobs = np.empty(count, dtype=np.int64)
    grids = np.zeros((count, machines, kinds), dtype=np.int64)
    taken = 0
    score = np.full(count, -np.inf)
    age = np.zeros(count, dtype=np.int64)
    held = np.zeros((count, machines, kinds), dtype=np.int64)
    price = prices(free, capacity, low, high)
    for i in range(count):
        j = jobs[i]
        payoff, held[i] = find_alloc(
            free, price, workers[j], type_steps[j], left[j], utilities[j], slot, density, communication
        )
        score[i] = payoff / workers[j]
    while True:
        i = int(np.argmax(score))
        if score[i] == -np.inf:
            break
        j = jobs[i]
        if age[i] == taken:
            free -= held[i]
            grids[taken] = held[i]
            taken_jobs[taken] = j
            taken += 1
            score[i] = -np.inf
            price = prices(free, capacity, low, high)
            continue
        payoff, held[i] = find_alloc(
            free, price, workers[j], type_steps[j], left[j], utilities[j], slot, density, communication
        )
        score[i] = payoff / workers[j]
        age[i] = taken
    return taken_jobs[:taken], grids[:taken]


class Plain:
    """One round of a market, job by job."""

    def __init__(self, market: Market, jobs: Ints, left: Ints, slot: int) -> None:
        self.market, self.jobs, self.left, self.slot = market, jobs, left, slot
        terms, kinds = market.terms, len(market.data.types)
        self.workers = np.array([job.workers for job in market.data.jobs], dtype=np.int64)
        steps = terms.type_steps[jobs]
        values = np.array(
            [
                worth(left[j], own.max(), terms.utilities[j], slot, terms.density)
                for j, own in zip(jobs, steps, strict=True)
            ]
        )
        self.low, self.high = np.zeros(kinds), np.zeros(kinds)
        for r in range(kinds):
            own = values[(steps[:, r] > 0) & (values > 0)]
            if len(own):
                self.low[r] = own.min() / (4.0 * float(market.data.capacity.sum()))
                self.high[r] = own.max()
        self.memo: dict[tuple[int, bytes], tuple[float, dict[int, Ints]]] = {}

    def payoff(self, j: int, free: Ints) -> tuple[float, Ints]:
        """FIND_ALLOC for one job."""
        terms = self.market.terms
        price = prices(free, terms.capacity, self.low, self.high)
        own = (int(self.workers[j]), terms.type_steps[j], int(self.left[j]), terms.utilities[j], self.slot)
        found: tuple[float, Ints] = find_alloc(free, price, *own, terms.density, terms.communication)
        return found

    def take(self, free: Ints) -> dict[int, Ints]:
        """The greedy choice."""
        terms = self.market.terms
        ends = (terms.capacity, self.low, self.high)
        own = (self.workers, terms.type_steps, self.left, terms.utilities, self.slot)
        taken, grids = greedy(self.jobs, free.copy(), *ends, *own, terms.density, terms.communication)
        return {int(j): grids[i] for i, j in enumerate(taken)}

    def best(self, index: int, free: Ints) -> tuple[float, dict[int, Ints]]:
        """The recursion's: the largest sum of payoffs of the jobs from `index` on, and who takes what."""
        if index == len(self.jobs) or not free.any():
            return 0.0, {}
        key = (index, free.tobytes())
        if key not in self.memo:
            without, j = self.best(index + 1, free), int(self.jobs[index])
            payoff, grid = self.payoff(j, free)
            self.memo[key] = without
            if payoff > 0:
                rest, chosen = self.best(index + 1, free - grid)
                if payoff + rest > without[0]:
                    self.memo[key] = payoff + rest, {j: grid, **chosen}
        return self.memo[key]
