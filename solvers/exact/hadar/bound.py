"""The certified upper bound of hadar at any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import MAXIMISE, exact
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.pricing import geometric_blocks, price_forked, price_job
from schedgap.formulations.hadar.tables import ProgressTables, in_units, tables, worth_of
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.exact.hadar.event_prices import event_prices
from schedgap.solvers.exact.hadar.schedules import Scheduler
from schedgap.solvers.result import NO_DEADLINE, Deadline

# The block-price bound of hadar: a valid upper bound for hundreds of jobs and hundreds of slots.
#
# Blocks grow geometrically, as utilities change fast early and slowly late; the proof of the bound is in
# :mod:`schedgap.formulations.hadar.pricing`.

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockBound:
    """What the block prices found."""

    bound: float  # a valid upper bound on the optimum
    value: float | None  # the value of the restricted block master (what the bound converges to)
    iterations: int  # pricings
    blocks: int  # number of blocks
    history: tuple[float, ...]  # the best valid bound after every pricing
    # starts, prices: (B,) the first slot of each block, and (B, R) what gave the bound
    starts: NDArray[np.int64]
    prices: Floats


def block_bound(
    data: ProgressTables,
    growth: float = 0.12,  # block length over first slot; smaller is tighter and slower, 0 is one block per slot
    # iterations, deadline, tolerance: when to stop; the bound is valid whenever that is
    iterations: int = 80,
    deadline: Deadline | None = None,
    tolerance: float = 1e-3,
    progress: Callable[[float], None] | None = None,  # called with the best bound after every pricing
) -> BlockBound:
    """An upper bound on P2 (and so on P1) by column generation over relaxed schedules at block prices.

    Returns
    -------
    BlockBound
        ``bound >= LP(P2) >= optimum``. O(J T B L) per pricing.
    """
    blocks = geometric_blocks(data.horizon, growth)
    kinds = len(data.types)
    size = len(blocks.start)
    possible = [j for j in range(len(data.jobs)) if data.possible[j]]
    trivial = sum(data.jobs[j].max_utility for j in possible)
    rows = [RowBounds(upper=float(c) * float(n)) for n in blocks.length for c in data.capacity]
    master = Master(MAXIMISE, rows, [False] * len(possible))
    shares = {j: data.jobs[j].step / float(data.jobs[j].target) for j in possible}

    def pricing(duals: Floats, weight: float) -> Priced:
        price = np.maximum(duals, 0.0).reshape(size, kinds)
        best = np.zeros(len(possible))
        columns: list[Column] = []
        for group, j in enumerate(possible):
            job = data.jobs[j]
            payoff, finish, used = price_job(
                price,
                data.capacity,
                job.workers,
                job.allowed,
                shares[j],
                job.arrival,
                job.earliest,
                job.utility,
                blocks.start,
                blocks.length,
                blocks.of_slot,
                weight,
            )
            best[group] = payoff
            if finish >= 0:
                flat = used.ravel()
                where = np.flatnonzero(flat > 1e-12)
                columns.append(Column(group, float(job.utility[finish]), where, flat[where], finish))
        if progress is not None:
            progress(float(price.ravel() @ master.upper) + float(np.maximum(best, 0.0).sum()))
        return Priced(best, columns)

    limits = GenerationLimits(deadline or Deadline(), iterations, tolerance, smoothing=0.6)
    found: Generated = master.generate(pricing, limits)
    # float sums of up to 1e5 terms: widen by what rounding could have taken away
    bound = trivial if found.bound is None else min(trivial, found.bound * (1 + 1e-9) + 1e-9)
    history = tuple(bound for _, bound in found.history)
    prices = np.maximum(found.duals, 0.0).reshape(size, kinds)
    return BlockBound(bound, found.value, found.iterations, size, history, blocks.start, prices)


ORDINARY = (0.1, 1e6)
"""Where the largest utility may be so that tolerances of 1e-9 mean what they should."""
SMALL = 1_000
"""Up to so many (job, slot) pairs prices are by slot and schedules exact."""
MEDIUM = 20_000
"""Up to so many, blocks are fine; beyond they are coarse."""
MANY = 1_000_000
"""Beyond so many there are prices between events, too: their work does not grow with slots."""
LARGE = 5_000_000
"""Beyond so many, utilities by slot are not made."""


@once_per_instance
def upper_bound(instance: HadarInstance) -> float | None:
    """A certified upper bound on the utility of P2, and so of P1.

    Small instances: LP(P2) by column generation with exact pricing (its last valid bound, should the iterations
    end first). Larger ones: block prices; beyond :data:`MANY` (job, slot) pairs prices between
    events, and beyond :data:`LARGE` these alone.
    Computed once per instance object; iterations are counted, not timed, so the value is repeatable. Returns ``bound >=
    optimum``; 0 where no job can finish.
    """
    scaled, unit = in_units(instance, ORDINARY)
    return _bound(tables(scaled)) * unit


def warm_up(instance: HadarInstance) -> None:
    """Compile the bounds by prices, or load them from the cache: small instances do not use them."""
    data = tables(instance)
    size = len(data.jobs) * data.horizon
    if size > MANY and data.possible.any():
        event_prices(data, 1)
    if size <= LARGE:
        block_bound(data, 0.2)


def _bound(data: ProgressTables) -> float:
    if not data.possible.any():
        return 0.0
    size = len(data.jobs) * data.horizon
    if size <= SMALL:
        exact = _slot_prices(data)
        if exact is not None:
            return exact
    between = event_prices(data).value if size > MANY else math.inf
    return between if size > LARGE else min(between, block_bound(data, 0.06 if size <= MEDIUM else 0.2).bound)


def _slot_prices(data: ProgressTables) -> float | None:
    """LP(P2), or a valid bound near it; None where a job has too many progress states."""
    scheduler = Scheduler(data, most_states=2_000)
    if not scheduler.exact:
        return None
    master = Master(MAXIMISE, scheduler.capacity_rows(), [False] * len(data.jobs))
    found = master.generate(
        lambda duals, weight: scheduler.price_all(duals, weight, scheduler.free_rules),
        GenerationLimits(iterations=200, tolerance=1e-7),
    )
    # rounding of the sums must not cut an optimum off
    return None if found.bound is None else found.bound * (1 + 1e-9) + 1e-9


# An upper bound on the forked problem of HadarE, by column generation over relaxed forked schedules.


def forked_bound(
    instance: HadarInstance,
    speed: Floats,
    growth: float = 0.2,
    iterations: int = 60,
    deadline: Deadline = NO_DEADLINE,
) -> float:
    """A valid upper bound on the utility of any forked schedule.

    Node-time in blocks of slots has a price; a job buys node-time until its steps are done, the cheapest per step
    first, in fractions. Prices and over-estimated payoffs bound the forked optimum from above, as in
    :mod:`schedgap.formulations.hadar.pricing`.

    Parameters
    ----------
    speed : (J, H) iterations per unit of time of a job's copy on a node
    growth, iterations : block length over first slot; most pricings
    deadline : ends the pricings; what is returned then is valid too. Where it has passed, and beyond
        :data:`LARGE` (job, slot) pairs, the bound is the sum of the jobs' largest utilities

    Notes
    -----
    O(J T H B) per pricing.
    """
    earliest = [_earliest(instance, j, speed) for j in range(len(instance.jobs))]
    jobs = [j for j, slot in enumerate(earliest) if slot <= instance.horizon]
    if not jobs:
        return 0.0
    values = [worth_of(instance.jobs[j], instance.horizon, exact(instance.slot_length), earliest[j]) for j in jobs]
    trivial = math.fsum(value.at(value.earliest) for value in values)
    if deadline.passed or len(instance.jobs) * instance.horizon > LARGE:
        return trivial
    blocks = geometric_blocks(instance.horizon, growth)
    # nodes with the same devices are the same to every job
    kinds: dict[frozenset[tuple[str, int]], list[int]] = {}
    for h, machine in enumerate(instance.machines):
        kinds.setdefault(frozenset(machine.gpus.items()), []).append(h)
    many = np.array([len(group) for group in kinds.values()], dtype=float)
    nodes = len(many)
    size = len(blocks.start)
    worth = {j: value.array() for j, value in zip(jobs, values, strict=True)}
    rows = [RowBounds(upper=float(length * n)) for length in blocks.length for n in many]
    master = Master(MAXIMISE, rows, [False] * len(jobs))
    # a copy holds its node for the whole round, even when it is done sooner
    first = np.array([group[0] for group in kinds.values()])
    gain = {j: np.minimum(1.0, speed[j, first] * instance.slot_length / instance.jobs[j].work) for j in jobs}

    def pricing(duals: Floats, weight: float) -> Priced:
        price = np.maximum(duals, 0.0).reshape(size, nodes)
        best = np.zeros(len(jobs))
        columns: list[Column] = []
        for group, j in enumerate(jobs):
            arrival = instance.jobs[j].arrival
            payoff, finish, grid = price_forked(
                price, gain[j], many, weight * worth[j], arrival, blocks.start, blocks.length, blocks.of_slot
            )
            used = grid.ravel()
            best[group] = payoff
            if finish > 0:
                where = np.flatnonzero(used > 1e-12)
                columns.append(Column(group, float(worth[j][finish]), where, used[where], finish))
        return Priced(best, columns)

    found = master.generate(pricing, GenerationLimits(deadline, iterations=iterations, tolerance=1e-3, smoothing=0.6))
    return trivial if found.bound is None else min(trivial, found.bound * (1 + 1e-9) + 1e-9)


def _earliest(instance: HadarInstance, j: int, speed: Floats) -> int:
    """The first slot a job can finish in with copies on all nodes; beyond the horizon where it cannot run."""
    job = instance.jobs[j]
    together = float(speed[j].sum()) * instance.slot_length
    if together <= 0:
        return instance.horizon + 1
    # rounded down a little: an optimistic slot keeps the bound valid
    return job.arrival + max(1, int(np.ceil(job.work / together * (1 - 1e-9) - 1e-9))) - 1
