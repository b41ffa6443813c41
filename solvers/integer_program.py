"""Integer programs from arrays, on HiGHS: the integer restricted master, and whatever else has 0-1 columns and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.solvers.column_generation import Column
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline


@dataclass(frozen=True)
class SearchLimits:
    """When HiGHS's search stops, and what it may leave out."""

    nodes: int  # nodes of branch and bound
    # deadline, seconds: whichever comes first
    deadline: Deadline = NO_DEADLINE
    seconds: float = INFINITY
    seed: int = 0  # random seed
    tolerance: float = 1e-9  # tolerance of integers and rows


@dataclass(frozen=True)
class IntegerAnswer:
    """How a search ended."""

    x: Floats | None  # (columns,) the best point found, or None
    bound: float | None  # a lower bound on the optimum, or None; of no meaning where there is no point at all
    complete: bool  # `x` is optimal, or there is no point where it is None


class IntegerProgram(LinearProgram):
    """A program whose columns are all whole numbers; see :class:`~schedgap.solvers.linear_program.LinearProgram`."""

    def search(self, limits: SearchLimits, start: Floats | None = None) -> IntegerAnswer:
        """Branch and bound from scratch, from a feasible point where one is given."""
        n = self.columns
        self._highs.changeColsIntegrality(
            n, np.arange(n, dtype=np.int32), np.full(n, self._engine.HighsVarType.kInteger)
        )
        self._set("mip_rel_gap", 0.0)
        self._set("mip_abs_gap", 1e-9)
        self._set("mip_max_nodes", limits.nodes)
        self._set("random_seed", limits.seed % 2**31)
        self._set("mip_feasibility_tolerance", limits.tolerance)
        self._set("primal_feasibility_tolerance", limits.tolerance)
        self._set("dual_feasibility_tolerance", 1e-9)
        self._limit(limits.deadline, limits.seconds)
        if start is not None:
            point = self._engine.HighsSolution()
            point.col_value = start.tolist()
            self._highs.setSolution(point)
        status = self._run()
        if status == "kInfeasible":
            return IntegerAnswer(None, None, True)
        info = self._highs.getInfo()
        feasible = info.primal_solution_status == self._engine.SolutionStatus.kSolutionStatusFeasible
        x = np.array(self._highs.getSolution().col_value) if feasible else None
        bound = float(info.mip_dual_bound)
        return IntegerAnswer(x, bound if np.isfinite(bound) else None, status == "kOptimal")


def integer_master(
    columns: Sequence[Column],  # their objectives count as worth
    capacity: Floats,  # (rows,) upper limits
    groups: int,  # how many there are
    limits: SearchLimits,  # limits of the search
    *,
    must: bool = False,  # exactly one column of each group
    start: Sequence[int] = (),  # positions of a choice that keeps the limits
) -> list[int] | None:
    """The best choice of at most one column of each group within the rows: the restricted master with whole weights.

    Returns positions of the chosen columns in order, which keep the limits to 1e-12 relative; None where none were
    found.

    Notes
    -----
    A multidimensional multiple-choice knapsack, NP-hard; one thread, so that without a deadline the same input gives
    the same answer.
    """
    if not columns:
        return None
    n, rows = len(columns), len(capacity)
    program = IntegerProgram()
    low = np.concatenate([np.full(rows, -INFINITY), np.full(groups, 1.0 if must else -INFINITY)])
    program.add_rows(low, np.concatenate([capacity, np.ones(groups)]))
    entries = [(np.append(column.rows, rows + column.group), np.append(column.values, 1.0)) for column in columns]
    program.add_columns(np.array([-column.objective for column in columns]), np.ones(n), entries)
    point = None
    if len(start):
        point = np.zeros(n)
        point[list(start)] = 1.0
    x = program.search(limits, point).x
    if x is None:
        return None
    chosen: list[int] = np.flatnonzero(x > 0.5).tolist()
    load = np.zeros(rows)
    for position in chosen:
        load[columns[position].rows] += columns[position].values
    taken = [columns[position].group for position in chosen]
    within = bool((load <= capacity + 1e-12 * np.abs(capacity)).all()) and len(set(taken)) == len(taken)
    return chosen if within else None
