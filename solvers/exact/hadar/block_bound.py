"""The block-price bound of hadar: a valid upper bound for hundreds of jobs and hundreds of slots.

Blocks grow geometrically, as utilities change fast early and slowly late; the proof of the bound is in
:mod:`schedgap.formulations.hadar.pricing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.block_pricing import Blocks, geometric_blocks, price_job
from schedgap.formulations.hadar.pricing import Automaton, automaton, best_schedules, demand, slot_costs, trace
from schedgap.formulations.hadar.tables import JobTable, ProgressTables
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.result import Deadline


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
    """The result of :func:`~schedgap.formulations.hadar.block_pricing.price_job`, exactly: by slot and progress.

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


_SHORT, _SHORT_STATES = 10, 500
"""Slots that a job has at its fastest, and values of progress, up to which block prices take its slots as whole.

Beyond, a job may have fractions of slots, which are worth no less.
"""
