"""The linear programs of Algorithm 2 by columns: solved, their rings already weighted, nothing left to decompose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.column_generation import Column, GenerationLimits, GenerationStatus
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import NO_DEADLINE, Deadline

SOLVED = 1e-7
"""Value and bound of a solved program agree to this, relative: where utilities are below 1e-9 column generation, which
goes by absolute numbers, ends early."""


LEAST_WEIGHT = 1e-9
"""Weights up to this are rounding of the simplex method."""


@dataclass(frozen=True)
class Relaxation:
    """A solved linear program over rings."""

    subproblem: RingSubproblem  # rows of the master, and the way from columns to rings
    columns: tuple[Column, ...]  # all that were generated
    weights: Floats  # (columns,) of an optimal solution; of a feasible one where `complete` is False
    value: float  # the solution's utility
    bound: float | None  # on the program's optimum; None where nothing was priced in time
    complete: bool  # the program is solved to its optimum
    reduced: Floats  # (columns,) reduced costs, at most 0 for an optimal solution

    @cached_property
    def chi(self) -> Floats:
        """(J, K + 1) weight of each ring size of each job, chi of (13)."""
        table = np.zeros_like(self.subproblem.worth)
        for column, weight in zip(self.columns, self.weights, strict=True):
            if weight > LEAST_WEIGHT:
                table[column.group, column.payload.size] += weight
        return table

    @cached_property
    def utility_chi(self) -> Floats:
        """(J, K + 1) pi times chi."""
        worth = np.where(np.isfinite(self.subproblem.worth), self.subproblem.worth, 0.0)
        product: Floats = worth * self.chi
        return product

    @property
    def sizes(self) -> Ints:
        """(J,) the ring size with the largest pi chi, 0 where the program leaves the job out: Step 3."""
        best = self.utility_chi.argmax(axis=1)
        return np.where(self.chi.sum(axis=1) > LEAST_WEIGHT, best, 0).astype(np.int64)

    @property
    def workers(self) -> Floats:
        """(J,) workers of each job in the solution, q of the paper."""
        mass: Floats = self.chi @ np.arange(self.chi.shape[1], dtype=float)
        return mass


def relax(
    instance: GVneInstance,
    *,
    # only rings that keep the job's own cap floor(min_r C_r / l_r) on every server and use no link narrower than the
    # job's bandwidth; otherwise the augmented program of Rost and Schmid, whose value is that of the plain relaxation
    # of (12)-(19)
    capped: bool,
    sizes: Ints | None = None,  # (J,) the only ring size of each job, 0 for none; None: all
    start: Relaxation | None = None,  # a program over more sizes whose columns this one begins with
    deadline: Deadline = NO_DEADLINE,  # where it passes, the solution found so far is returned
) -> Relaxation:
    """Solve the linear program over rings that are embeddable job by job, or over all valid mappings."""
    subproblem = RingSubproblem(instance, capped=capped, sizes=sizes)
    master = subproblem.master()
    first: list[Column] = []
    known = np.zeros(0)
    if start is not None:
        kept = [i for i, c in enumerate(start.columns) if sizes is None or c.payload.size == sizes[c.group]]
        first = [subproblem.column(start.columns[i].payload) for i in kept]
        known = start.weights[kept]
        master.add(first)
    done = master.generate(subproblem.price_all, GenerationLimits(deadline))
    columns = done.columns
    weights = np.zeros(len(columns))
    solved = done.value is not None
    given = done.weights if solved else known
    weights[: len(given)] = np.maximum(given, 0.0)
    worth = np.array([column.objective for column in columns], dtype=float)
    reduced = np.array(
        [
            column.objective - float(done.master_duals[column.rows] @ column.values) - done.master_payoffs[column.group]
            for column in columns
        ]
    )
    value = float(worth @ weights) if len(columns) else 0.0
    near = done.bound is not None and done.bound - value <= SOLVED * abs(done.bound)
    complete = near and done.status is GenerationStatus.CONVERGED
    return Relaxation(subproblem, columns, weights, value, done.bound, complete, reduced)
