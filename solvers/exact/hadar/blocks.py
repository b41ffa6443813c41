"""The block-price bound of hadar: a valid upper bound for hundreds of jobs and hundreds of slots.

Blocks grow geometrically, as utilities change fast early and slowly late; the proof of the bound is in
:mod:`schedgap.formulations.hadar.pricing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.pricing import geometric_blocks, price_job
from schedgap.formulations.hadar.tables import Tables
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.result import Deadline

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockBound:
    """What the block prices found.

    Attributes
    ----------
    bound : a valid upper bound on the optimum
    value : the value of the restricted block master (what the bound converges to)
    iterations : pricings
    blocks : number of blocks
    history : the best valid bound after every pricing
    starts, prices : (B,) the first slot of each block, and (B, R) what gave the bound
    """

    bound: float
    value: float | None
    iterations: int
    blocks: int
    history: tuple[float, ...]
    starts: NDArray[np.int64]
    prices: Floats


def block_bound(
    data: Tables,
    growth: float = 0.12,
    iterations: int = 80,
    deadline: Deadline | None = None,
    tolerance: float = 1e-3,
    progress: Callable[[float], None] | None = None,
) -> BlockBound:
    """An upper bound on P2 (and so on P1) by column generation over relaxed schedules at block prices.

    Parameters
    ----------
    growth : block length over first slot; smaller is tighter and slower, 0 is one block per slot
    iterations, deadline, tolerance : when to stop; the bound is valid whenever that is
    progress : called with the best bound after every pricing

    Returns
    -------
    BlockBound
        ``bound >= LP(P2) >= optimum``. O(J T B L) per pricing.
    """
    blocks = geometric_blocks(data.horizon, growth)
    kinds = len(data.types)
    size = len(blocks.start)
    possible = [j for j in range(len(data.jobs)) if data.possible[j]]
    trivial = sum(data.jobs[j].most for j in possible)
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
