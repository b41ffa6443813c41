"""The upper bound of ddljs at any size: prices on servers in blocks of slots.

Idea: Lagrangian relaxation of capacity. Source: ours. For prices p >= 0 on the resources of server classes in blocks of
slots,

    OPT <= sum p * capacity * slots + sum_i max_{X <= B_i} (mu_i(X) - cheapest cost of X worker-slots for i),

where B_i is the most work and mu_i the utility of job i. A job may use, in a slot of its time, as many workers of a
class as its servers host of it alone, and as many in all as its largest ring. Links only count in that largest ring.
The maximum is over whole X, so mu_i need not be concave. The prices come from a linear program; whatever it returns,
the bound is computed from the prices alone. Guarantee: valid at any prices; it is counted in floats, rounded upwards.
Proof: METHODS.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.ddljs.instance import DdljsInstance, Job
from schedgap.formulations.ddljs.reach import Reach, reaches
from schedgap.formulations.ddljs.utility import highest, size, utility
from schedgap.solvers.linear_program import INFINITY, solve_once

LARGEST = 60_000
"""Variables of the linear program that blocks of slots are chosen for."""
MOST_CLASSES = 12
"""Classes of servers. Coarser blocks and classes are safe: what their prices prove is evaluated anew."""
BREAKPOINTS = 24
"""Breakpoints of an envelope in the linear program; the bound itself uses the whole table."""
GRID = 4096
"""Up to so many worker-slots a table is complete; beyond, the utility is taken at the end of each step."""
ROUNDING = 5e-10
"""Relative: of utilities in floats, for exponents of sigmoids up to 10^6, and of their sum; less than what two numbers
that agree may differ by, so that a schedule in which no job misses anything is proven to be optimal."""
EXPONENT = 4e-16
"""Relative, for each unit of a larger exponent: what a float's last digit makes of the utility."""
MARGIN = 2e-9
"""Relative: capacities and budgets may be exceeded by 1e-9, and sums round."""


@dataclass(frozen=True)
class Blocks:
    """Slots cut at arrivals, servers put into classes."""

    ends: Ints  # (K,) last slot of each block
    capacity: Floats  # (C, R) of each class
    classes: Ints  # (V,) class of each server, -1 for one that hosts nothing
    resources: tuple[str, ...]  # their names

    def slots(self, arrival: int) -> Ints:
        """(K,) slots of each block from `arrival` on."""
        starts = np.concatenate([[0], self.ends[:-1]])
        found: Ints = np.maximum(0, self.ends - np.maximum(starts, arrival - 1))
        return found


@dataclass(frozen=True)
class _User:
    """A job as the bound sees it: workers by class (C,), demand (R,), slots by block (K,)."""

    job: Job
    reach: Reach
    workers: Ints
    demand: Floats
    slots: Ints


@once_per_instance
def upper_bound(instance: DdljsInstance) -> float | None:
    """A certified upper bound on the utility.

    Returns
    -------
    ``bound >= optimum``. Computed once per instance object, with the same value on every run.

    Notes
    -----
    A linear program of at most about 60,000 variables, then O(J (K C + B)). With complete tables and a block for
    every arrival it is the LP over the concave envelopes of mu_i, without links.
    """
    return _bound(instance)


def _bound(instance: DdljsInstance) -> float:
    reach = reaches(instance)
    each = list(zip(instance.jobs, reach, strict=True))
    tops = [highest(job, own.max_work) for job, own in each]
    rounded = EXPONENT * max(
        (job.utility.steepness or 0.0) * max(job.efficiency * own.max_work, abs(job.utility.midpoint or 0.0))
        for job, own in each
    )
    best = math.fsum(tops) + math.fsum(map(abs, tops)) * (
        ROUNDING + rounded
    )  # `most` is whole, and counts what may be exceeded already
    blocks, users, prices = block_prices(instance)
    if prices is not None:
        proven = _certified(instance, blocks, users, prices)
        falling = math.fsum(size(job, own.max_work) for job, own in each if not job.rising)
        best = min(best, proven + (abs(proven) + falling) * (MARGIN + rounded))
    return 0.0 if all(job.utility.kind == "energy" for job in instance.jobs) else best + 1e-12


def block_prices(instance: DdljsInstance) -> tuple[Blocks, list[_User], Floats | None]:
    """Blocks, the jobs that can run, and (K, C, R) prices; None where no job can or the program is not solved."""
    reach = reaches(instance)
    blocks = _blocks(instance, reach)
    users = _users(instance, reach, blocks)
    return blocks, users, _prices(blocks, users) if users else None


def _blocks(instance: DdljsInstance, reach: tuple[Reach, ...]) -> Blocks:
    """Blocks end before arrivals; as many of them as the linear program's size allows."""
    running = [job for job, own in zip(instance.jobs, reach, strict=True) if own.max_work]
    used = tuple(dict.fromkeys(name for job in running for name, amount in job.demand.items() if amount))
    capacity, classes = _classes(instance, used)
    arrivals = sorted({job.arrival for job in running})
    most = max(1, LARGEST // max(1, len(running) * len(capacity)))
    if len(arrivals) > most:  # quantiles, so that every block has about as many arrivals
        every = sorted(job.arrival for job in running)
        arrivals = sorted({every[0], *(every[k * len(every) // most] for k in range(most))})
    ends = [arrival - 1 for arrival in arrivals[1:]] + [instance.horizon]
    return Blocks(np.array(ends, dtype=np.int64), capacity, classes, used)


def _classes(instance: DdljsInstance, used: tuple[str, ...]) -> tuple[Floats, Ints]:
    """Servers with the same resources, put together further where the same jobs can use them.

    With one resource the latter loses nothing: what a job takes splits in proportion to the capacities.
    """
    own = [tuple(server.resources.get(name, 0.0) for name in used) for server in instance.servers]
    caps = np.array(instance.caps, dtype=np.int64)
    pattern = [tuple((column > 0).tolist()) for column in np.unique(caps, axis=0).T]
    keys: list[tuple[object, ...]] = list(zip(own, pattern, strict=True))
    if len(used) <= 1 or len(set(keys)) > MOST_CLASSES:
        keys = [(can,) for can in pattern]
    if len(set(keys)) > MOST_CLASSES:
        keys = [(any(can),) for can in pattern]
    numbers: dict[tuple[object, ...], int] = {}
    classes = np.full(len(own), -1, dtype=np.int64)
    for u, key in enumerate(keys):
        if any(pattern[u]):
            classes[u] = numbers.setdefault(key, len(numbers))
    capacity = np.zeros((max(1, len(numbers)), len(used)))
    for u, number in enumerate(classes.tolist()):
        if number >= 0:
            capacity[number] += own[u]
    return capacity, classes


def _users(instance: DdljsInstance, reach: tuple[Reach, ...], blocks: Blocks) -> list[_User]:
    found = []
    for job, own, caps in zip(instance.jobs, reach, instance.caps, strict=True):
        if own.max_work:
            workers = np.zeros(len(blocks.capacity), dtype=np.int64)
            hosts = blocks.classes >= 0
            np.add.at(workers, blocks.classes[hosts], np.array(caps, dtype=np.int64)[hosts])
            demand = np.array([job.demand.get(name, 0.0) for name in blocks.resources])
            found.append(_User(job, own, np.minimum(workers, own.ring), demand, blocks.slots(job.arrival)))
    return found


def _points(most: int) -> Ints:
    """0..B where that is short, else as many steps as are allowed."""
    if most <= GRID:
        return np.arange(most + 1, dtype=np.int64)
    return np.unique(np.rint(np.linspace(0, most, GRID + 1)).astype(np.int64))


def _envelope(job: Job, most: int) -> tuple[Ints, Floats]:
    """A few corners of the concave envelope of mu_i over 0..B."""
    at = _points(most)
    worth = utility(job, at)
    corners: list[int] = []
    for k in range(len(at)):
        while len(corners) >= 2:
            a, b = corners[-2], corners[-1]
            if (worth[b] - worth[a]) * (at[k] - at[a]) > (worth[k] - worth[a]) * (at[b] - at[a]):
                break
            corners.pop()
        corners.append(k)
    if len(corners) > BREAKPOINTS:
        pick = np.unique(np.rint(np.geomspace(1, len(corners), BREAKPOINTS)).astype(int)) - 1
        corners = [corners[0], *(corners[k] for k in pick if k), corners[-1]]
        corners = list(dict.fromkeys(corners))
    return at[corners], worth[corners]


def _prices(blocks: Blocks, users: list[_User]) -> Floats | None:
    """(K, C, R) duals of the capacity rows of the linear program over envelopes; None where it is not solved."""
    count, kinds = blocks.capacity.shape
    stretch = len(blocks.ends)
    rows: list[Ints] = []
    columns: list[Ints] = []
    values: list[Floats] = []
    costs: list[Floats] = []
    uppers: list[Floats] = []
    right: list[float] = (blocks.slots(1)[:, None, None] * blocks.capacity[None]).ravel().tolist()
    low = [-INFINITY] * len(right)
    n = 0
    for user in users:
        at, worth = _envelope(user.job, user.reach.max_work)
        k, c = np.nonzero((user.slots[:, None] > 0) & (user.workers[None] > 0))
        x = n + np.arange(len(k), dtype=np.int64)
        costs.append(np.zeros(len(k)))
        uppers.append((user.slots[k] * user.workers[c]).astype(float))
        for r in np.flatnonzero(user.demand).tolist():
            rows.append((k * count + c) * kinds + r)
            columns.append(x)
            values.append(np.full(len(k), user.demand[r]))
        if count > 1:  # the ring over all classes
            used = np.unique(k)
            place = np.zeros(stretch, dtype=np.int64)
            place[used] = len(right) + np.arange(len(used))
            rows.append(place[k])
            columns.append(x)
            values.append(np.ones(len(k)))
            right.extend((user.slots[used] * user.reach.ring).tolist())
            low.extend([-INFINITY] * len(used))
        n += len(k)
        steps = np.diff(at)
        z = n + np.arange(len(steps), dtype=np.int64)
        costs.append(np.diff(worth) / steps)
        uppers.append(steps.astype(float))
        n += len(steps)
        rows.append(np.full(len(k) + len(steps), len(right), dtype=np.int64))
        columns.append(np.concatenate([x, z]))
        values.append(np.concatenate([np.full(len(k), -1.0), np.ones(len(steps))]))
        right.append(0.0)
        low.append(-INFINITY)
    places = np.concatenate(rows), np.concatenate(columns)
    matrix = sparse.csc_matrix((np.concatenate(values), places), shape=(len(right), n))
    cost = np.concatenate(costs)
    scale = float(np.abs(cost).max()) or 1.0
    found = solve_once(matrix, -cost / scale, np.concatenate(uppers), np.array(low), np.array(right))
    if found is None:
        return None
    return np.maximum(0.0, -found.duals[: stretch * count * kinds] * scale).reshape(stretch, count, kinds)


def _certified(instance: DdljsInstance, blocks: Blocks, users: list[_User], prices: Floats) -> float:
    """The bound that these prices prove."""
    total = float(np.sum(prices * blocks.capacity[None] * blocks.slots(1)[:, None, None]))
    idle = {user.job.id for user in users}
    total += math.fsum(float(utility(job, 0)) for job in instance.jobs if job.id not in idle)
    return total + math.fsum(_payoff(user, prices @ user.demand) for user in users)


def _payoff(user: _User, unit: Floats) -> float:
    """max over whole X of mu_i(X) less the cheapest cost of X worker-slots; `unit` (K, C) is a worker's price."""
    order = np.argsort(unit, axis=1, kind="stable")
    sizes = np.take_along_axis(np.broadcast_to(user.workers, unit.shape), order, axis=1)
    before = np.cumsum(sizes, axis=1) - sizes
    taken = np.clip(user.reach.ring - before, 0, sizes) * user.slots[:, None]
    price = np.take_along_axis(unit, order, axis=1)
    cheapest = np.argsort(price, axis=None, kind="stable")
    amounts, prices = taken.ravel()[cheapest], price.ravel()[cheapest]
    some = amounts > 0
    amounts, prices = amounts[some], prices[some]
    reached = np.concatenate([[0], np.cumsum(amounts)])
    paid = np.concatenate([[0.0], np.cumsum(amounts * prices)])
    at = _points(min(user.reach.max_work, int(reached[-1])))
    cost = np.interp(at, reached, paid)
    worth = utility(user.job, at)
    if len(at) - 1 < at[-1]:  # steps of more than 1: the utility at the better end, the cost at the beginning
        return float(max(worth[0], (np.maximum(worth[1:], worth[:-1]) - cost[:-1]).max()))
    return float((worth - cost).max())
