"""The certified upper bound of hadar at any size: by columns, and by prices whose buckets are events."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_inner
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import MAXIMISE, exact
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.pricing import (
    Automaton,
    Blocks,
    automaton,
    best_schedules,
    demand,
    geometric_blocks,
    price_forked,
    price_job,
    slot_costs,
    trace,
)
from schedgap.formulations.hadar.tables import JobTable, ProgressTables, in_units, tables, worth_of
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.exact.hadar.schedules import Scheduler
from schedgap.solvers.exact.job_prices import ascend, event_edges
from schedgap.solvers.result import NO_DEADLINE, Deadline

# hadar: prices on device types by buckets of slots whose edges are events; work grows with jobs, not with slots.

Ints = NDArray[np.int64]

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
    """Of every bucket the lower hull of (progress, cost) of a slot: pieces of rising slope, and where they lead to."""

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
    whole: tuple[int, ...]  # jobs whose slots are whole; the others' may be fractions


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

    Jobs of few slots, of which fractions would be too cheap, have exact schedules.

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
    machines = {j: _short(data, j) for j in possible}

    def pricing(duals: Floats, weight: float) -> Priced:
        price = np.maximum(duals, 0.0).reshape(size, kinds)
        best = np.zeros(len(possible))
        columns: list[Column] = []
        for group, j in enumerate(possible):
            job, machine = data.jobs[j], machines[j]
            if machine is not None:
                payoff, finish, used = _price_whole(price, blocks, data.capacity, job, machine, weight)
            else:
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
    generated: Generated = master.generate(pricing, limits)
    # float sums of up to 1e5 terms: widen by what rounding could have taken away
    bound = trivial if generated.bound is None else min(trivial, generated.bound * (1 + 1e-9) + 1e-9)
    history = tuple(bound for _, bound in generated.history)
    prices = np.maximum(generated.duals, 0.0).reshape(size, kinds)
    whole = tuple(j for j, machine in machines.items() if machine is not None)
    return BlockBound(bound, generated.value, generated.iterations, size, history, blocks.start, prices, whole)


def _short(data: ProgressTables, j: int) -> Automaton | None:
    """The automaton of a job of few slots and few states; None for others."""
    job = data.jobs[j]
    if job.min_slots > _SHORT:
        return None
    machine = automaton(job, data.horizon - job.arrival + 1, _SHORT_STATES)
    return machine if machine.exact else None


def _price_whole(
    price: Floats, blocks: Blocks, capacity: Ints, job: JobTable, machine: Automaton, weight: float
) -> tuple[float, int, Floats]:
    """As :func:`~schedgap.formulations.hadar.pricing.price_job`, exactly: by slot and progress.

    Utilities do not rise and costs are not negative, so that later finishes are looked at only where they may be worth
    more than the best so far.
    """
    horizon = len(job.utility) - 1
    last = min(horizon, job.arrival + 4 * job.min_slots)
    by_slot = price[blocks.of_slot]
    while True:
        cost, order = slot_costs(by_slot[: last + 1], capacity[None], job.workers, job.allowed, job.arrival, last)
        slots = np.arange(last + 1)
        permit = np.ones((last + 1, job.levels + 1), dtype=np.bool_)
        permit[: job.arrival, 1:] = False
        payoff, end, level_of, state_of = best_schedules(
            cost, job.utility[: last + 1], machine.following, permit, slots >= job.earliest, last, weight
        )
        finish = int(payoff.argmax())
        if last == horizon or weight * job.utility[last + 1] <= payoff[finish]:
            break
        last = min(horizon, 2 * last)
    held = np.zeros_like(price)
    if payoff[finish] == -np.inf:
        return -np.inf, -1, held
    used = demand(trace(end, level_of, state_of, finish), order, capacity[None], job.workers, job.allowed)
    np.add.at(held, blocks.of_slot[: last + 1], used)
    return float(payoff[finish]), finish, held


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
_SHORT, _SHORT_STATES = 10, 500
"""Slots that a job has at its fastest, and values of progress, up to which block prices take its slots as whole.

Beyond, a job may have fractions of slots, which are worth no less.
"""


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
