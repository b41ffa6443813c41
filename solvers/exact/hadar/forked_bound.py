"""An upper bound on the forked problem of HadarE, by column generation over relaxed forked schedules."""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.numbers import MAXIMISE, exact
from schedgap.formulations.hadar.block_pricing import geometric_blocks, price_forked
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import worth_of
from schedgap.solvers.column_generation import Column, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.exact.hadar.bound import LARGE
from schedgap.solvers.result import NO_DEADLINE, Deadline


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
