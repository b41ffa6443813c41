"""The column LP of gpu-sharing: a lower bound on the sum of JCT, and reduced costs that rule columns out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.linear_program import solve_once
from schedgap.solvers.result import Deadline

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST = 6_000_000
"""Nonzeros beyond which the LP is not built."""
_MARGIN = 1e-6


@dataclass(frozen=True)
class Columns:
    """Every run of every job: arrays of equal length.

    Attributes
    ----------
    job, mode, start, slots : what the run is
    cost : its JCT in slots
    """

    job: Ints
    mode: Ints
    start: Ints
    slots: Ints
    cost: Ints

    def only(self, keep: NDArray[np.bool_]) -> Columns:
        """The columns where `keep` is set."""
        return Columns(self.job[keep], self.mode[keep], self.start[keep], self.slots[keep], self.cost[keep])


@dataclass(frozen=True)
class ColumnBound:
    """What the LP proves.

    Attributes
    ----------
    value : a lower bound on the sum of JCT
    reduced : of each column, the least by which using it raises the bound
    """

    value: float
    reduced: Floats


def all_columns(instance: GpuSharingInstance, choices: Choices) -> Columns:
    """Every start, mode and duration within the horizon."""
    parts: list[tuple[Ints, ...]] = []
    for j, own in enumerate(choices.jobs):
        arrival = instance.jobs[j].arrival
        for m, mode in enumerate(own.modes):
            for d in choices.slots(j, mode):
                start = np.arange(arrival, instance.horizon - d + 2, dtype=np.int64)
                same = np.ones_like(start)
                parts.append((same * j, same * m, start, same * d, start + d - arrival))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Columns(empty, empty, empty, empty, empty)
    return Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def lp_nonzeros(instance: GpuSharingInstance, choices: Choices) -> int:
    """About how many nonzeros the LP has."""
    total = 0
    for j, own in enumerate(choices.jobs):
        for mode in own.modes:
            for d in choices.slots(j, mode):
                total += max(0, instance.horizon - d - instance.jobs[j].arrival + 2) * (2 * d + 2)
    return total + 5 * instance.horizon * len(choices.pairs)


def column_bound(
    instance: GpuSharingInstance, choices: Choices, columns: Columns, deadline: Deadline
) -> ColumnBound | None:
    """Solve the LP relaxation over the columns; None when the deadline comes first.

    x chooses a run per job, v[j, k, t] >= 0 is how many GPUs j and k share in slot t. With l_jk = 1 - 1/xi_jk::

        sum_j G_j run[j, t] - sum v[j, k, t] <= N,      sum_k v[j, k, t] <= G_j run[j, t]
        sum_kt l_jk v[j, k, t] / G_j <= sum (d - W) x   (the largest loss is at least the mean over the GPUs)

    The bound is evaluated again from the duals, so that it holds whatever the LP's tolerances are.
    """
    job_rows, slots = len(instance.jobs), instance.horizon
    pairs = np.array(choices.pairs, dtype=np.int64).reshape(-1, 2)
    matrix = sparse.hstack([_run_part(instance, choices, columns), _pair_part(instance, choices, pairs)]).tocsc()
    count = len(columns.job)
    cost = np.zeros(matrix.shape[1])
    cost[:count] = columns.cost
    arrival, gpus = choices.tables.arrival, choices.tables.gpus
    most = np.minimum(gpus[pairs[:, 0]], gpus[pairs[:, 1]]).repeat(slots).astype(float)
    early = np.tile(np.arange(1, slots + 1), len(pairs)) < arrival[pairs].max(axis=1, initial=0).repeat(slots)
    upper = np.concatenate([np.ones(count), np.where(early, 0.0, most)])
    low = np.full(matrix.shape[0], -np.inf)
    high = np.zeros(matrix.shape[0])
    low[:job_rows] = high[:job_rows] = 1.0
    high[job_rows : job_rows + slots] = instance.total_gpus
    found = solve_once(matrix, cost, upper, low, high, deadline)
    if found is None:
        return None
    duals = found.duals
    duals[job_rows:] = np.minimum(duals[job_rows:], 0.0)
    reduced = cost - matrix.T @ duals
    value = float(duals[: job_rows + slots] @ high[: job_rows + slots])
    # A job takes exactly one of its columns, so what they cost below zero counts once per job.
    least = np.zeros(job_rows)
    np.minimum.at(least, columns.job, reduced[:count])
    value += float(least.sum()) + float(np.minimum(reduced[count:], 0.0) @ upper[count:])
    return ColumnBound(value - _MARGIN, np.maximum(reduced[:count] - least[columns.job], 0.0) - _MARGIN)


def _run_part(instance: GpuSharingInstance, choices: Choices, columns: Columns) -> sparse.csc_matrix:
    """Columns of the runs: rows are jobs, capacity by slot, sharing by job and slot, budgets."""
    jobs, slots = len(instance.jobs), instance.horizon
    gpus = choices.tables.gpus
    index = np.arange(len(columns.job))
    total = int(columns.slots.sum())
    owner = index.repeat(columns.slots)
    first = np.concatenate([[0], np.cumsum(columns.slots)[:-1]]) if len(index) else np.zeros(0, dtype=np.int64)
    slot = np.arange(total) - first.repeat(columns.slots) + columns.start.repeat(columns.slots) - 1
    job = columns.job[owner]
    size = gpus[job].astype(float)
    slack = np.array(
        [float(d - choices.jobs[j].modes[m].work) for j, m, d in _triples(columns)],
    )
    rows = np.concatenate(
        [columns.job, jobs + slot, jobs + slots + job * slots + slot, columns.job + _budgets(jobs, slots)]
    )
    places = np.concatenate([index, owner, owner, index])
    values = np.concatenate([np.ones(len(index)), size, -size, -slack])
    return sparse.csc_matrix((values, (rows, places)), shape=(_budgets(jobs, slots) + jobs, len(index)))


def _pair_part(instance: GpuSharingInstance, choices: Choices, pairs: Ints) -> sparse.csc_matrix:
    """Columns of the shared GPUs, by pair and slot."""
    jobs, slots = len(instance.jobs), instance.horizon
    gpus, slowdown = choices.tables.gpus, choices.tables.slowdown
    count = len(pairs) * slots
    index = np.arange(count)
    slot = np.tile(np.arange(slots), len(pairs))
    one, other = pairs[:, 0].repeat(slots), pairs[:, 1].repeat(slots)
    loss = (1 - 1 / slowdown[one, other]) / gpus[one] if count else np.zeros(0)
    other_loss = (1 - 1 / slowdown[other, one]) / gpus[other] if count else np.zeros(0)
    share, budget = jobs + slots, _budgets(jobs, slots)
    rows = np.concatenate(
        [jobs + slot, share + one * slots + slot, share + other * slots + slot, budget + one, budget + other]
    )
    ones = np.ones(count)
    values = np.concatenate([-ones, ones, ones, loss, other_loss])
    return sparse.csc_matrix((values, (rows, np.tile(index, 5))), shape=(budget + jobs, count))


def _budgets(jobs: int, slots: int) -> int:
    """The first row of the loss budgets."""
    return jobs + slots + jobs * slots


def _triples(columns: Columns) -> Iterator[tuple[int, int, int]]:
    return zip(columns.job.tolist(), columns.mode.tolist(), columns.slots.tolist(), strict=True)
